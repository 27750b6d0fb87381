"""What commands say to people: their lines, without numbers and rows of tables, are in `words/`.

A line that is dropped, added or worded anew is seen here. Where that was meant,
``TELIC_WRITE=1 pytest tests/cli/test_words.py`` writes the files anew: read their difference.
"""

import os
import re
from contextlib import chdir
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.reference.small_hospital import shrink
from typer.testing import CliRunner

from telic.cli import app

WORDS = Path(__file__).parent / "words"
COMMANDS = {  # in this order: later ones read what earlier ones wrote
    "completion": """
        completion simulate log.parquet --users 12 --compositions 12
        completion evaluate log.parquet
        completion fit log.parquet model
        completion inspect model
        completion inspect model --prefix p
        completion replay log.parquet model model
        completion fit titles.csv box
        completion inspect box
        completion inspect box --prefix t
        completion key acme --keys keys --origin https://acme.example
    """,
    "auc": """
        auc fit table.csv --label y --model ranker
        auc inspect ranker
        auc rank table.csv --model ranker --output ranked.csv
        auc evaluate table.csv --model ranker
        auc compare table.csv --label y --runs 2
        auc diagnose table.csv --label y --report page.html
    """,
    "privacy": """
        privacy simulate world --users 300 --size 40 --density 0.05 --seed 2
        privacy risk world/target --max-distance 1
        privacy attack world/auxiliary world/target --max-distance 1
        privacy infer world/target gender
        privacy anonymise world/target release --steps steps.json --keep-ids
        privacy again world/target release
        privacy advise world/target --max-risk 0.5 --out advised
        privacy convert world/target world.graphml
        privacy report world/target page-of-risks.html
    """,
    "specialty": """
        specialty simulate hospital --scale 0.01
        specialty discover hospital --restarts 1 --out found
        specialty inspect found
        specialty explain hospital --found found --limit 3
        specialty review add hospital --found found --store sqlite:///review.sqlite --limit 3
        specialty review list --store sqlite:///review.sqlite
    """,
}
OPEN = re.compile(r"\S*\d\S*|telic_\S+|-:--:--")
"""Numbers, keys, pseudonyms, and a time that has not begun."""
RULES = re.compile(r"[─-╿]+")


def words(text):
    """Its lines without rows of tables, rules and widths; those alike that follow, once."""
    lines = [line for line in text.splitlines() if "│" not in line]
    bare = (" ".join(RULES.sub(" ", OPEN.sub("#", line)).split()) for line in lines)
    return [line for line, _ in groupby(filter(None, bare))]


@pytest.mark.parametrize("product", COMMANDS)
def test_commands_say_what_they_said(product, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    rng = np.random.default_rng(0)
    (tmp_path / "titles.csv").write_text("title,views\nTea,3\nTea cup,4\nToast,1\n")
    (tmp_path / "steps.json").write_text(
        '[{"method": "generalise", "attribute": "yob", "width": 10}]'
    )
    x = rng.normal(size=(200, 2))
    rows = [f"{a:.4f},{b:.4f},{'bad' if a + b > 1.5 else 'good'}\n" for a, b in x]
    (tmp_path / "table.csv").write_text("".join(["a,b,y\n", *rows]))
    said = []
    with chdir(tmp_path):
        for line in COMMANDS[product].strip().splitlines():
            done = CliRunner().invoke(app, line.split())
            assert done.exit_code == 0, f"{line}: {done.output} {done.exception}"
            if "specialty simulate" in line:
                shrink(Path("hospital"))
                file = Path("hospital/accesses.parquet")
                accesses = pq.read_table(file)
                pq.write_table(pa.concat_tables([accesses, accesses[:1]]), file)  # one row twice
            said += [f"$ {line.strip()}", *words(done.output), ""]
    file = WORDS / f"{product}.txt"
    if os.environ.get("TELIC_WRITE"):
        file.write_text("\n".join(said))
    assert "\n".join(said) == file.read_text()
