"""What becomes of every claim on the tables of one run.

`runs/` holds the rows that the claims look at. They are inputs, and need not be the last run's.
"""

import json
from pathlib import Path

import pytest
from tests.held import hold

from telic.report import Table
from telic.study import book
from telic.study.claims import Tables, judge

RUNS, JUDGED = (Path(__file__).parent / name for name in ("runs", "judged"))
PARTS = {part.name: part for part in book.PARTS if (RUNS / f"{part.name}.jsonl").exists()}


@pytest.mark.parametrize("name", PARTS)
def test_claims_are_judged_as_they_were(name, tmp_path):
    claims, printed = PARTS[name].said()
    lines = (RUNS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    tables = Tables([Table(**json.loads(line)) for line in lines])
    found = []
    for claim in claims:
        for file in claim.needs:
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).touch()
        one = judge(claim, tables, tmp_path)
        said = claim.source, claim.rule.published_words(), one.found_words(), one.verdict.value
        ours = one.found and [one.found.value, one.found.low, one.found.high, one.found.of]
        found.append([*said, ours, one.why[:60]])
    for each in printed:
        table = each.table(tables)
        found += [[table.title, {**table.columns}], *table.rows]
    hold(JUDGED / f"{name}.jsonl", found)
