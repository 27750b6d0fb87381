"""Pages on the service say what it has: errors and metrics once, the proxy, and how to sign."""

import ast
import re
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

import telic.serve
from telic.serve.callers.tokens import sign_user
from telic.serve.http.errors import _DEFAULTS
from telic.serve.operation.metrics import Metrics

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "http.md").read_text(encoding="utf-8")


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


@pytest.mark.parametrize(
    ("page", "file"),
    [("embed", "settings.toml"), ("embed", "nginx.conf"), ("run-the-service", "alerts.yml")],
)
def test_a_page_shows_the_file_that_is_deployed(page, file):
    text = (ROOT / "docs" / "how-to" / f"{page}.md").read_text(encoding="utf-8")
    shown = re.findall(r"```\w+\n(.*?)```", text, re.S)
    assert (ROOT / "deploy" / file).read_text(encoding="utf-8") in shown


def test_alarms_ask_for_what_the_service_exposes():
    metrics = Metrics(("/suggest",))
    metrics.request("/suggest", 503, 0.01)
    exposed = metrics.exposition().decode()
    rules = (ROOT / "deploy" / "alerts.yml").read_text(encoding="utf-8")
    asked = re.findall(r"(telic_\w+)(?:\{(\w+)=)?", rules)
    assert len(asked) == 4
    for name, label in asked:
        asks = rf"{name}\{{.*{label}=" if label else rf"{name}[ {{]"
        assert re.search(f"^{asks}", exposed, re.M), asks


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_a_token_that_another_language_signs_is_ours():
    page = (ROOT / "docs" / "how-to" / "embed.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```js\n(const \{ createHash.*?)```", page, re.S)
    code += "console.log(signUser('telic_example', 'Zoë', 60))"
    done = subprocess.run(["node", "-e", code], capture_output=True, text=True, timeout=30)
    token = done.stdout.strip()
    seconds = int(token.split(".")[2])
    assert seconds == pytest.approx(time.time() + 60, abs=30)
    assert token == sign_user("telic_example", "Zoë", seconds=seconds, now=0.0), done.stderr
