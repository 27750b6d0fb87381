import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from telic.cli import app
from telic.report import Report, Table
from telic.study import book
from telic.study.chapter6.published import recognition_scores
from telic.study.claims import Claim, Found, Printed, Value, Verdict
from telic.study.sources import LEFT_OUT, SOURCES

SAID = [part.said() for part in book.PARTS]
CLAIMED = {claim.source for claims, _ in SAID for claim in claims}
PRINTED = {name for _, tables in SAID for table in tables for name in table.sources}


def test_every_table_and_figure_is_claimed_or_left_out_for_a_reason():
    assert set(SOURCES) >= CLAIMED | PRINTED | set(LEFT_OUT)
    assert set(SOURCES) == CLAIMED | set(LEFT_OUT)
    assert not CLAIMED & set(LEFT_OUT)
    assert all(LEFT_OUT.values())


def test_every_table_with_numbers_is_printed_beside_ours():
    without = {"Table 3.1", "Table 3.2", "Table 3.3", "Table 6.3", "Table 6.4", "Table 6.5"}
    tables = {name for name in CLAIMED if name.startswith("Table")}
    assert tables - PRINTED == without | {"Table 6.6"}  # words, or numbers that are in a claim


def test_a_claim_is_tried_or_says_why_not():
    for claims, _ in SAID:
        assert len({(claim.source, claim.says) for claim in claims}) == len(claims)
        for claim in claims:
            assert claim.says
            assert claim.rule.published_words()
            assert (claim.ours is None) == hasattr(claim.rule, "why")


@pytest.mark.parametrize("name", ["Table 6.7", "Table 6.8", "Table 6.9"])
def test_published_f1_is_that_of_published_precision_and_recall(name):
    off = {
        (label, place)
        for (label, place), (precision, recall, f1) in recognition_scores(name).items()
        if abs(2 * precision * recall / (precision + recall) - f1) > 0.011
    }
    assert off == MISPRINTED[name]


def test_what_is_left_of_a_lost_row_is_shown():
    """Of two rows of Table 6.7 the SVM's F1 alone is left."""
    svm = {
        label: found
        for (label, place), found in recognition_scores("Table 6.7").items()
        if place == 3
    }
    assert [svm[label][2] for label in ("Cardiovascular Disease", "Infectious Disease")] == [
        96.83,
        92.59,
    ]
    (table,) = [each for _, tables in SAID for each in tables if each.sources == ("Table 6.7",)]
    left = {cell for cell in table.cells if cell[0] == "Infectious Disease" and "SVM" in cell[1]}
    assert left == {("Infectious Disease", "SVM, F1")}


MISPRINTED = {
    "Table 6.7": {("Neonatal-Perinatal Medicine", 1)},
    "Table 6.8": {("de facto", 2)},
    "Table 6.9": set(),
}
"""F1 scores that the dissertation prints otherwise."""


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("TELIC_DATA", str(folder))
    return folder


def part(name):
    (found,) = (one for one in book.PARTS if one.name == name)
    return found


@pytest.mark.slow  # half a minute
@pytest.mark.usefixtures("no_data")
def test_studies_run_go_on_and_are_judged(tmp_path):
    parts = (
        replace(part("chapter-2"), quick={"users": 4, "compositions": 12, "seeds": 2}),
        replace(part("chapter-4"), quick={"replications": 1, "passes": 2, "share": 0.002}),
        part("chapter-5"),
    )
    begun = []
    done = book.run_all(tmp_path / "work", quick=True, seed=1, progress=begun.append, parts=parts)
    two, four, five = done.outcomes
    assert not done.failures()
    assert begun[0].startswith("chapter-2: ")
    assert four.steps.made == 3  # without COVTYPE
    assert {judged.why for judged in four.judged} == {"no data: ml/covtype.npz", ""}
    assert five.report is None
    assert {judged.verdict for judged in five.judged} == {Verdict.UNTESTED}
    assert all(judged.found for judged in two.judged)

    page = done.report()
    text = page.markdown()
    assert text.count("![") == 6 + 3
    (table,) = (one for one in page.tables if one.title == "chapter-2: claims")
    assert [row["verdict"] for row in table.records()] == [one.verdict.value for one in two.judged]
    (printed,) = (one for one in page.tables if one.title.startswith("Tables 2.3 and 2.4: MRR"))
    assert printed.cells()[0][1].startswith("50.62 / ")
    (sources,) = (one for one in page.tables if one.title == "Tables and figures")
    became = {row["name"]: row["here"] for row in sources.records()}
    assert became["Table 2.3"] == "4 claims; every number beside ours"
    assert became["Table 4.1"].startswith("left out: ")

    again = book.run_all(tmp_path / "work", quick=True, seed=1, parts=parts)
    assert [one.steps.made for one in again.outcomes] == [0, 0, 0]
    assert [one.judged for one in again.outcomes] == [one.judged for one in done.outcomes]


def number_of(*, size, seed):
    return {"size": size}


@pytest.fixture
def made_up(monkeypatch):
    """Two studies: one tells a number, one fails."""

    def tells(steps, *, seed=0, size=3):
        report = Report("Tells")
        number = steps("a number", number_of, size=size, seed=seed)["size"]
        report.table(Table("Sizes", {"size": ""}, [[number]]))
        return report

    def fails(steps, *, seed=0):
        raise RuntimeError("out of paper")

    def size(tables):
        return Found(tables.row("Sizes")["size"])

    def misspelt(tables):
        return Found(tables.row("Seizes")["size"])

    right = Claim("Table 2.3", "it is three", Value(3.0, 0.0), size)
    wrong = Claim("Table 2.4", "it is three, too", Value(3.0, 0.0), misspelt)
    for name, content in {
        "tells": {"study": tells},
        "fails": {"study": fails},
        "right": {"CLAIMS": (right,), "PRINTED": ()},
        "wrong": {"CLAIMS": (right, wrong), "PRINTED": ()},
    }.items():
        monkeypatch.setitem(sys.modules, f"telic.study.{name}", SimpleNamespace(**content))

    def choose(*studies, needs=()):
        parts = tuple(
            book.Part(study, study, claims, {"size": 4} if study == "tells" else {}, needs=needs)
            for study, claims in studies
        )
        monkeypatch.setattr(book, "PARTS", parts)

    return choose


def run(tmp_path, *options):
    page = tmp_path / "page.md"
    done = CliRunner().invoke(app, ["study", "all", "--out", str(page), *options])
    return done, page


def test_a_study_that_fails_is_named_and_the_rest_goes_on(made_up, tmp_path):
    made_up(("fails", "right"), ("tells", "right"))
    done, page = run(tmp_path, "--json")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert [one["verdict"] for one in found["claims"]] == ["cannot be tested", "holds"]
    assert found["claims"][0]["why"] == "the study failed: RuntimeError: out of paper"
    assert [one["failed"] for one in found["studies"]] == [True, False]
    assert "failed: fails: the study failed: RuntimeError: out of paper" in done.stderr
    assert "out of paper" in page.read_text()


def test_a_run_goes_on_from_what_is_finished(made_up, tmp_path):
    made_up(("tells", "right"))

    def steps_of(work, seed):
        (one,) = book.run_all(work, seed=seed).outcomes
        return one.steps.made, one.steps.taken

    assert steps_of(tmp_path / "work", 0) == (1, 0)
    assert steps_of(tmp_path / "work", 0) == (0, 1)
    assert steps_of(tmp_path / "work", 1) == (1, 0)
    assert steps_of(None, 0) == (1, 0)


def test_a_study_without_its_data_is_left_out(made_up, no_data, tmp_path):
    made_up(("tells", "right"), needs=("ml/away.npz",))
    done, page = run(tmp_path, "--json")
    assert done.exit_code == 0
    (claim,) = json.loads(done.stdout)["claims"]
    assert (claim["verdict"], claim["ours"]) == ("cannot be tested", None)
    assert "no data: ml/away.npz. Set TELIC_DATA." in page.read_text()
    (no_data / "ml").mkdir()
    (no_data / "ml" / "away.npz").touch()
    done, page = run(tmp_path, "--json", "--overwrite")
    assert json.loads(done.stdout)["claims"][0]["verdict"] == "holds"


def test_a_published_table_stands_beside_ours_where_there_is_one(made_up, tmp_path):
    made_up(("tells", "right"), ("fails", "right"))
    cells = {("all", "size"): 3.0}
    printed = Printed(
        ("Table 2.3",), "Sizes", "of", ".1f", cells, lambda tables, *_: tables.row("Sizes")["size"]
    )
    sys.modules["telic.study.right"].PRINTED = (printed,)
    page = book.run_all(tmp_path / "work").report()
    own, none = (one for one in page.tables if one.title == "Sizes; published / ours")
    assert own.rows == [["all", [3.0, 3]]]
    assert none.rows == [["all", [3.0, None]]]


def test_a_claim_that_finds_no_table_is_a_failure(made_up, tmp_path):
    made_up(("tells", "wrong"))
    done, _ = run(tmp_path)
    assert done.exit_code == 1
    assert "“it is three, too”: failed: 0 tables begin with 'Seizes'" in done.stderr


def test_a_quick_run_says_so_and_how_it_is_made_again(made_up, tmp_path):
    made_up(("tells", "right"))
    done, page = run(tmp_path, "--quick", "--seed", "7", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["run"], found["seed"]) == ("quick", 7)
    (claim,) = found["claims"]
    assert (claim["published"], claim["ours"], claim["verdict"]) == (3.0, 4, "does not hold")
    assert claim["run"] == "quick"
    text = page.read_text()
    assert text.endswith('\n\nWritten by `make page ARGS="all --quick --seed 7"`; do not edit.\n')
    assert "A quick run" in text
    done, page = run(tmp_path, "--overwrite")
    assert "A quick run" not in page.read_text()


def test_a_page_that_cannot_be_written_is_refused_before_the_work(made_up, tmp_path):
    made_up(("fails", "right"))
    done = CliRunner().invoke(app, ["study", "all", "--out", str(tmp_path / "no" / "page.html")])
    assert "its folder" in str(done.exception)


def test_the_machine_is_told_without_its_name():
    import platform

    told = book.machine()
    assert {"processor", "cores", "Python", "telic", "numpy"} <= set(told)
    assert platform.node() not in told.values()
