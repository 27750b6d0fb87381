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


def first_table(section):
    """Rows of the first table of a page's section, by column."""
    (lines, *_) = re.findall(r"(?:^\|.*\|\n)+", section, re.M)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines.splitlines()]
    return [dict(zip(map(str.lower, cells[0]), line, strict=True)) for line in cells[2:]]


def test_the_gain_that_the_readme_states_is_the_measured_one():
    """Whoever writes results-chapter-2.md anew copies what this test expects to the README."""
    page = (ROOT / "docs" / "results-chapter-2.md").read_text()
    measured = []
    for heading in ("At the last keystroke", "At every keystroke"):
        default = {"relevance": "personal-s", "protocol": "careful", "n": "10"}
        rows = first_table(page.split(f"## {heading}\n")[1].split("\n## ")[0])
        own = [row for row in rows if row.get("list", "own") == "own"]
        (row,) = (row for row in own if default.items() <= row.items())
        measured += [row["adaqac-online"], row["static"]]
    expected = (
        "With the defaults, feedback adds {} points of MRR to {} at the last keystroke and {} to "
        "{} over all keystrokes on simulated typists: little."
    ).format(*measured)
    (said,) = re.findall(
        r"With the defaults, .*?: little\.", (ROOT / "README.md").read_text(), re.S
    )
    assert " ".join(said.split()) == expected
