"""What is said of a ranker: the call is at a score of zero."""

import numpy as np

from telic.auc.report import measures


def test_what_is_called_has_a_score_above_zero():
    positive = np.array([1, 1, 1, 0, 0, 0, 0], bool)
    scores = np.array([2.0, 0.5, 0.0, 0.3, -0.1, -2.0, 0.0])
    found = measures(positive, scores)
    assert [found[name] for name in ("rows", "positives")] == [7, 3]
    matrix = ("true_positives", "false_positives", "false_negatives", "true_negatives")
    assert [found[name] for name in matrix] == [2, 1, 1, 3]
    assert (found["precision"], found["recall"]) == (2 / 3, 2 / 3)
