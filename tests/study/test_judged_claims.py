"""What becomes of every claim on the tables of one run.

`runs/` holds the rows that the claims look at. They are inputs, and need not be the last run's.
"""

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from tests.held import column, hold

from telic.report import Table
from telic.study import book
from telic.study.claims import Tables, Verdict, judge

RUNS, JUDGED = (Path(__file__).parent / name for name in ("runs", "judged"))
PARTS = {part.name: part for part in book.PARTS if (RUNS / f"{part.name}.jsonl").exists()}


def of_run(name):
    lines = (RUNS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [Table(**json.loads(line)) for line in lines]


@pytest.fixture
def data(tmp_path):
    """A folder where each file is that a claim needs."""
    for part in PARTS.values():
        for claim in part.said()[0]:
            for file in claim.needs:
                (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / file).touch()
    return tmp_path


@pytest.mark.parametrize("name", PARTS)
def test_claims_are_judged_as_they_were(name, data):
    claims, printed = PARTS[name].said()
    tables = Tables(of_run(name))
    found = []
    for claim in claims:
        one = judge(claim, tables, data)
        said = claim.source, claim.rule.published_words(), one.found_words(), one.verdict.value
        ours = one.found and [one.found.value, one.found.low, one.found.high, one.found.of]
        found.append([*said, ours, one.why[:60]])
    for each in printed:
        table = each.table(tables)
        found += [[table.title, {**table.columns}], *table.rows]
    hold(JUDGED / f"{name}.jsonl", found)


@pytest.mark.parametrize("part", book.PARTS, ids=lambda part: part.name)
def test_published_shares_are_at_most_one(part):
    for each in part.said()[1]:
        if each.form.startswith("100 "):
            assert all(-1 <= cell <= 1 for cell in each.cells.values())


def moved(table, rng):
    """Draw each number from its column and change some signs: what names a row stays.

    That is the first column, texts and whole numbers.
    """

    def kind(cell):
        return [*map(kind, cell)] if isinstance(cell, list) else type(cell)

    def changed(cell):
        if isinstance(cell, list):
            return [changed(one) for one in cell]
        return cell * rng.choice((1, 1.5, -1, 0.5)) if isinstance(cell, float) else cell

    first, *columns = zip(*table.rows, strict=True)
    for number, cells in enumerate(columns):
        columns[number] = [
            changed(rng.choice([other for other in cells if kind(other) == kind(cell)]))
            if isinstance(cell, float | list)
            else cell
            for cell in cells
        ]
    return replace(table, rows=[*zip(first, *columns, strict=True)])


@pytest.mark.parametrize("name", PARTS)
def test_claims_are_judged_as_they_were_where_numbers_are_others(name, data):
    """One run cannot tell a comparison from another one that holds in it, too."""
    rng = random.Random(0)
    runs = [Tables([moved(table, rng) for table in of_run(name)]) for _ in range(24)]
    found = []
    for claim in PARTS[name].said()[0]:
        ours = [judge(claim, tables, data) for tables in runs]
        words = ", ".join(f"{n} {what}" for what, n in Counter(one.verdict for one in ours).items())
        tried = [one.found for one in ours if one.found]
        values = [[float(each.value), *map(float, each.interval)] for each in tried]
        found.append([claim.source, words, *column(values)])
    hold(JUDGED / f"{name}-moved.jsonl", found)


@pytest.mark.parametrize(
    ("name", "left_out"),
    [("chapter-3", {"Table 3.5"}), ("chapter-6", {"Table 6.7", "Table 6.8", "Table 6.9"})],
)
def test_tables_that_a_quick_run_leaves_out_are_no_failure(name, left_out, data):
    ours = [judge(claim, Tables([]), data) for claim in PARTS[name].said()[0] if claim.ours]
    assert {one.verdict for one in ours} == {Verdict.UNTESTED}
    assert {one.claim.source for one in ours if not one.broken} == left_out


def test_diagnoses_of_a_topic_are_urological_by_a_name_within_the_other():
    rows = [
        ["Retention of urine", "CALCULUS OF KIDNEY"],
        ["Hyperlipidemia", "Hematuria, unspecified"],
        ["Other screening", "Urinary frequency"],
        ["Cancer of ovary", "Cancer of bladder"],
    ]
    topic = Table("Table 6.3", dict.fromkeys(["user documents", "patient documents"], ""), rows)
    (claim,) = [one for one in PARTS["chapter-6"].said()[0] if one.source == "Table 6.3"]
    assert claim.ours(Tables([topic])).value == 3 - 1


def test_varying_strengths_are_held_to_what_profiles_tell_in_the_same_run():
    """The published run's profiles tell 5.4 %, those of another network more or less."""
    releases = ("VW-CGA", "VW-CGA, re-configured")
    columns = dict.fromkeys(["release, attack", *(f"n = {n}" for n in range(4))], "")
    (claim,) = [one for one in PARTS["chapter-7"].said()[0] if "varying strength," in one.says]
    for profiles, with_links, true in ((0.15, 0.15, 6), (0.15, 0.10, 6), (0.03, 0.04, 0)):
        rows = [[name, profiles, *[with_links] * 3] for name in releases]
        found = claim.ours(Tables([Table("Precision by release at density 0.01", columns, rows)]))
        assert (found.value, found.of) == (true, 6)


def test_what_profiles_alone_tell_stands_beside_ours_in_every_row():
    shown = [each for each in PARTS["chapter-7"].said()[1] if each.first == "link types"]
    alone = [{cell for (_, at), cell in each.cells.items() if at == "n = 0"} for each in shown]
    assert alone == [{1.1 / 100}, {5.4 / 100}, {99.892 / 100}]
