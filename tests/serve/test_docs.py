"""What docs/reference/http.md says of errors and metrics is all that the service has, once."""

import ast
import re
from collections import Counter
from pathlib import Path

import telic.serve
from telic.serve.http.errors import _DEFAULTS
from telic.serve.operation.metrics import Metrics

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "http.md").read_text(encoding="utf-8")


def codes_in_source():
    """Status and code wherever a problem is made."""
    found = {(status, code) for status, (code, _) in _DEFAULTS.items()}
    for file in Path(telic.serve.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {
                "Problem",
                "problem",
            }:
                values = [getattr(value, "value", None) for value in node.args[:2]]
                if isinstance(values[0], int):
                    found.add(tuple(values))
    return found


def test_every_error_code_is_in_the_table_under_its_status():
    table = PAGE.partition("| status | codes | when |")[2].partition("\n\n")[0]
    said = set()
    for row in table.strip().splitlines()[1:]:
        statuses, codes = row.split("|")[1:3]
        named, numbers = re.findall(r"`(\w+)`", codes), re.findall(r"\d+", statuses)
        if len(numbers) == 1:
            numbers *= len(named)
        said |= {(int(n), code) for n, code in zip(numbers, named, strict=True)}
    assert said == codes_in_source()


def test_every_metric_is_in_the_table_once():
    metrics = Metrics(("/suggest",))
    exposed = re.findall(r"^# TYPE (\w+) (\w+)", metrics.exposition().decode(), re.M)
    exposed = [name for name, _ in exposed if not name.endswith("_created")]
    table = PAGE.partition("| metric | of what |")[2].partition("\n\n")[0]
    assert Counter(re.findall(r"^\| `(\w+)`", table, re.M)) == Counter(exposed)
