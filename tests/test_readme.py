import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_python_example_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    exec(compile(code, "README.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert all("," in line for line in lines)


def test_every_link_to_a_file_leads_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_gain_that_the_readme_states_is_the_measured_one():
    page = (ROOT / "docs" / "results-chapter-2.md").read_text()
    (said,) = re.findall(r"With the defaults, .*?(?=\n\n)", (ROOT / "README.md").read_text(), re.S)
    said = " ".join(said.split())
    default = {"Relevance": "personal-s", "Protocol": "careful", "N": "10"}
    for heading, relevance, words in (
        ("## At the last keystroke", "personal-s", "{gain} points of MRR to {static} at the last"),
        ("## At every keystroke", "personal-s", "{gain} to {static} over all keystrokes"),
        ("## At every keystroke", "mpc", "popularity too, feedback adds {gain} to {static}:"),
    ):
        lines = [
            line for line in page.split(heading)[1].split("\n## ")[0].splitlines() if "|" in line
        ]
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        rows = [dict(zip(cells[0], line, strict=True)) for line in cells[2:]]
        wanted = default | {"Relevance": relevance}
        (row,) = (r for r in rows if wanted.items() <= r.items() and r.get("List", "own") == "own")
        assert words.format(gain=row["adaqac-online"], static=row["static"]) in said
