import re
from pathlib import Path

from telic.scale.local import OWN
from telic.serve.state.store import STUCK
from telic.specialty.alarms.colleagues import UNEXPLAINED

ROOT = Path(__file__).parent.parent


def test_the_python_example_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    exec(compile(code, "README.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert all("," in line for line in lines)


def anchors(page):
    """What `#…` may name on a page: each heading, as GitHub and the site write it."""
    prose = re.sub(r"(?ms)^```.*?^```$", "", page.read_text())  # a comment in code is no heading
    headings = re.findall(r"(?m)^#{1,3} (.*)$", prose)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_every_link_to_a_file_or_a_heading_leads_somewhere():
    made = re.compile(r"command-line.md|../gallery/.*")  # while the site is built
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        links = re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text())
        for target, anchor in links:
            if made.fullmatch(target):
                continue
            found = page.parent / target if target else page
            assert found.exists(), f"{page.name}: {target}"
            assert not anchor or anchor in anchors(found), f"{page.name}: {target}#{anchor}"


def first_table(section):
    """Rows of the first table of a page's section, by column."""
    (lines, *_) = re.findall(r"(?:^\|.*\|\n)+", section, re.M)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines.splitlines()]
    return [dict(zip(map(str.lower, cells[0]), line, strict=True)) for line in cells[2:]]


def test_figures_of_the_table_of_what_was_reproduced_stand_on_the_pages_that_it_names():
    folder = ROOT / "docs" / "measured"
    for row in first_table((folder / "index.md").read_text(encoding="utf-8")):
        (target,) = re.findall(r"\]\(([^)#]+)", row["page"])
        page = (folder / target).read_text(encoding="utf-8")
        figures = re.findall(r"\d+\.\d+", "{published} {ours} {why}".format(**row))
        missing = [one for one in figures if not re.search(rf"(?<![\d.]){one}(?!\d)", page)]
        assert not missing, f"{row['claim']}: {missing}"


def test_the_published_mean_of_the_core_classes_stands_beside_the_same_mean():
    """F1 of the weighted precision and recall, not the plain mean over classes."""
    folder = ROOT / "docs" / "measured"
    rows = first_table((folder / "index.md").read_text(encoding="utf-8"))
    (ours,) = [row["ours"] for row in rows if "mean F1 of the core classes" in row["claim"]]
    page = (folder / "results-chapter-6.md").read_text(encoding="utf-8")
    rows = first_table(page[page.index("*Table 6.7: recognition") :])
    wanted = {"class": "mean of core classes", "classifier": "SVM"}
    (mean,) = [row["f1"] for row in rows if wanted.items() <= row.items()]
    assert mean == ours


def measured(heading, relevance):
    """Gain by feedback, and static order, of the default model in chapter 2's results."""
    page = (ROOT / "docs" / "measured" / "results-chapter-2.md").read_text()
    default = {"relevance": relevance, "protocol": "careful", "n": "10", "list": "own"}
    rows = first_table(page.split(f"## {heading}\n")[1].split("\n## ")[0])
    (row,) = (row for row in rows if default.items() <= row.items())
    return row["adaqac-online"], row["static"]


def test_the_gain_that_the_readme_states_is_the_measured_one():
    """Whoever writes results-chapter-2.md anew copies what this test expects into the README."""
    gain, static = measured("At the last keystroke", "personal-s")
    gain_every, static_every = measured("At every keystroke", "personal-s")
    gain_popular, static_popular = measured("At every keystroke", "mpc")
    (said,) = re.findall(r"With the defaults, .*?(?=\n\n)", (ROOT / "README.md").read_text(), re.S)
    assert " ".join(said.split()) == (
        f"With the defaults, feedback adds {gain} points of MRR to {static} at the last keystroke "
        f"and {gain_every} to {static_every} over all keystrokes on simulated typists. They saw "
        "lists that ranked by popularity alone, so feedback also shows which of a user's own "
        "queries these lists left out. That part of the gain ends once people see the lists that "
        "telic itself makes. With popularity as the relevance (`mpc`), feedback adds only "
        f"{gain_popular} to {static_popular} over all keystrokes. `telic completion evaluate` "
        "measures what it adds for your users."
    )


def test_the_table_beside_other_engines_is_the_measured_one():
    """Whoever writes completion-engine.md anew copies what this test expects into the README."""
    page = (ROOT / "docs" / "measured" / "completion-engine.md").read_text(encoding="utf-8")
    engines = ("telic", "completr", "SQLite FTS5", "PostgreSQL")
    look_ups, suggested = page.split("\n## What is suggested\n")
    found = {row["work"]: row["measured"] for row in first_table(look_ups)}
    quality = {row["engine"]: row for row in first_table(suggested)}
    names = next(work for work in found if "build, " in work).partition("build, ")[2]

    def row(meaning, *cells):
        return f"| {meaning} | {' | '.join(cells)} |"

    def measured_by_each(work, pattern):
        return [re.findall(pattern, found[f"{one}: {work}"])[0] for one in engines]

    prefix = "prefix of 1 to 6 characters, by popularity"
    expected = [
        row(f"{names} of places", *engines),
        "|---" * (1 + len(engines)) + "|",
        row("build, seconds", *measured_by_each(f"build, {names}", r"([\d.]+) s")),
        row("size, bytes a name", *measured_by_each("size", r"(\d+) B")),
        row("a prefix: median, µs", *measured_by_each(prefix, r"median ([\d,]+)")),
        row("a prefix: 99 of 100 within, µs", *measured_by_each(prefix, r"p99 ([\d,]+)")),
        row(
            "a whole name with one typo: found",
            *measured_by_each("whole, with one typo", r"found (\d+%)"),
        ),
        row("a real log: the search comes first", *(quality[e]["s@1"] for e in engines)),
        row(
            "a real log: characters that need not be typed", *(quality[e]["saved"] for e in engines)
        ),
    ]
    assert "\n".join(expected) in (ROOT / "README.md").read_text(encoding="utf-8"), expected


def test_each_kind_of_linear_model_is_faster_in_the_mean_as_a_page_says():
    """If this fails, mend `docs/how-to/choose-an-estimator.md`."""
    page = (ROOT / "docs" / "measured" / "optim-speed.md").read_text(encoding="utf-8")
    means = {row["work"]: float(row["mean ratio"]) for row in first_table(page)}
    assert {"lasso", "elastic net"} < set(means)
    assert max(means.values()) < 1


def test_the_gains_that_the_page_on_the_search_box_states_are_the_measured_ones():
    page = (ROOT / "docs" / "explain" / "completion.md").read_text()
    (lines,) = re.findall(r"(?m)(?:^\|.*\|\n)+", page.split("## What was found\n")[1])
    said = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in lines.splitlines()]
    for relevance, *numbers in said[2:]:
        name = relevance.split("`")[1]
        gain, static = measured("At the last keystroke", name)
        gain_every, static_every = measured("At every keystroke", name)
        assert numbers == [static, gain, static_every, gain_every]


def test_what_the_guide_says_of_reasons_is_what_was_measured():
    page = (ROOT / "docs" / "measured" / "reasons.md").read_text()
    (row,) = (one for one in first_table(page) if one["family"] == "together")
    share = {name: cell.split()[0] for name, cell in row.items()}
    kinds = ("random patient", "known person", "again and again")
    alone = max((share[kind] for kind in kinds), key=lambda one: float(one.rstrip("%")))
    guide = (ROOT / "docs" / "explain" / "specialty.md").read_text()
    said = re.search(r"which have teams,.*?Where users open", guide, re.S)[0]
    measured = [share["care explained"], share["lowest hospital"], alone, share["workmates"]]
    assert re.findall(r"[\d.]+%", said) == measured
    assert f"counts {UNEXPLAINED:g} of this" in " ".join(guide.split())


def test_limits_that_guides_state_are_those_of_the_code():
    for page, said in (
        ("use-a-cluster", f"libraries need about {OWN >> 20} MiB of that"),
        ("run-the-service", f"does not answer at all for {STUCK:g} seconds"),
    ):
        assert said in " ".join((ROOT / "docs" / "how-to" / f"{page}.md").read_text().split())
