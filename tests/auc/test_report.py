"""What is said of a ranker: the call is at a score of zero."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.held import drawn, hold, page

from telic.auc import report

HERE = Path(__file__).parent


def test_what_is_called_has_a_score_above_zero():
    positive = np.array([1, 1, 1, 0, 0, 0, 0], bool)
    scores = np.array([2.0, 0.5, 0.0, 0.3, -0.1, -2.0, 0.0])
    found = report.measures(positive, scores)
    assert [found[name] for name in ("rows", "positives")] == [7, 3]
    matrix = ("true_positives", "false_positives", "false_negatives", "true_negatives")
    assert [found[name] for name in matrix] == [2, 1, 1, 3]
    assert (found["precision"], found["recall"]) == (2 / 3, 2 / 3)


@pytest.fixture
def ranking():
    """Sixty rows, twenty of them positive, with ties."""
    rng = np.random.default_rng(0)
    positive = np.arange(60) % 3 == 0
    return positive, np.round(rng.normal(size=60) + positive, 1)


def test_the_page_of_a_ranking_is_what_it_was(ranking):
    with drawn() as outlines:
        made = report.page(
            "A ranking",
            "Made up.",
            *ranking,
            label="yes",
            settings={"beta": 0.1},
            features=[("a", 2.0), ("b", -1.0)],
        )
    hold(HERE / "page.jsonl", page(made, outlines))


def test_the_page_of_a_diagnosis_is_what_it_was(ranking, monkeypatch):
    positive, _ = ranking
    rows = SimpleNamespace(X=np.eye(60), positive=positive, positive_label="yes")
    last = SimpleNamespace(passes=7.0, seconds=0.5, gap=1e-9, auc=0.8)
    monkeypatch.setattr(report, "batch_sizes", lambda *_, **__: [(0.1, None, 2.0), (1, 5, 1.0)])
    figures = [report.pyplot.figure() for _ in range(4)]
    monkeypatch.setattr(report, "convergence", lambda *_, **__: ({"exact": [None, last]}, figures))
    with drawn():
        hold(HERE / "diagnosis.jsonl", page(report.diagnosis_page("table", rows)))


@pytest.mark.parametrize(("rows", "k"), [(8, 1), (80, 8), (999, 99), (1_000, 100), (5_000, 100)])
def test_precision_is_that_of_a_tenth_of_a_short_list(rows, k):
    positive = np.arange(rows) % 5 == 0
    found = report.measures(positive, positive - np.arange(rows) / rows)
    assert [name for name in found if name.startswith("precision_at")] == [
        f"precision_at_{k}{end}" for end in ("", "_low", "_high")
    ]
