import numpy as np
import pyarrow as pa
import pytest

from telic.data.pairs import read_pairs
from telic.simulate import Catalogue
from telic.study import chapter3
from telic.study.chapter3_report import chapter3_study, variants_table
from telic.study.chapter3_unimobile import pairs_study


@pytest.fixture(scope="module")
def pairs():
    """Thirty people in whom the app decides which of two words is typed."""
    rng = np.random.default_rng(0)
    rows = []
    for worker in range(30):
        for task in range(8):
            app = ["mail", "maps"][rng.integers(2)]
            word = {"mail": "pack", "maps": "park"}[app]
            rows.append({"WorkerId": worker, "TaskId": task, "q": f"{word} {task}", "app": app})
    return read_pairs(pa.Table.from_pylist(rows))


def test_apps_that_decide_the_word_help_people_held_out(pairs):
    own = pairs_study(pairs, unit="word")[0]
    assert own["appaware"] > own["standard"] + 0.1
    assert own["p_value"] < 1e-6
    shuffled = pairs_study(pairs, unit="word", shuffled=True)[0]
    assert shuffled["standard"] == own["standard"]
    assert abs(shuffled["difference"]) < 0.05


def test_the_whole_chapter_runs_and_its_numbers_are_plain(tmp_path, pairs):
    rng = np.random.default_rng(0)
    letters = rng.integers(0, 3, (80, 10))
    catalogue = Catalogue(
        sorted({"".join("abc"[k] for k in row) for row in letters}), np.ones(80)
    )  # fmt: skip
    report, numbers = chapter3_study(catalogue, pairs=pairs, users=8, compositions=12, seeds=2)
    report.write(tmp_path / "report.html")
    models = {row["model"] for row in numbers["rows"] if row["lists"] == "own"}
    assert models == {"standard", "appaware-i", "appaware-o", "appaware-c", "appaware"}
    assert variants_table(numbers["rows"])[1]
    assert len(numbers["real_pairs"]) == 24
    assert {row["model"] for row in numbers["together"]} == {
        "standard", "feedback", "appaware", "together",
    }  # fmt: skip


def test_the_convergence_study_has_a_gap_for_every_method():
    rows = chapter3.convergence(replications=1, passes=4)
    last = {row["method"]: row["gap"] for row in rows}
    assert last["SAGA on touched coordinates, |B| = 10"] < 0.1
    assert all(np.isfinite(gap) or "printed" in method for method, gap in last.items())
