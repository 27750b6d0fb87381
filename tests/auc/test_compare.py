"""Which parameters a comparison of methods tries, and which it takes."""

import numpy as np
import pytest

from telic.auc import RegSOLAM, compare
from telic.auc.compare import BETAS, METHODS, Contender, DataSet, one_run, search
from telic.errors import DivergedError


class RightAt:
    """Ranks by the first column, the right way round with the right parameters alone."""

    def __init__(self, right):
        self.right = right

    def fit(self, X, positive):
        return self

    def decision_function(self, X):
        return X[:, 0] if self.right else -X[:, 0]


@pytest.mark.parametrize("method", METHODS)
def test_whichever_parameters_of_its_grid_rank_best_are_taken(method, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    data = DataSet("made", X, X[:, 0] > 0, "raw")
    grid = METHODS[method].grid
    for best in (grid[0], grid[len(grid) // 2], grid[-1]):
        way = Contender(lambda d, best=best, **given: RightAt(given == best), grid)
        monkeypatch.setitem(compare.METHODS, method, way)
        assert search(data, method, "raw") == best


class Diverges:
    """Its steps are too long with parameters of one kind."""

    def __init__(self, wrong):
        self.wrong = wrong

    def fit(self, X, positive):
        if self.wrong:
            raise DivergedError("the weights are not finite")

    def decision_function(self, X):
        return X[:, 0]


def test_what_diverges_ranks_nothing_and_does_not_end_the_comparison(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    data = DataSet("made", X, X[:, 0] + rng.normal(size=100) > 0, "raw")
    grid = [{"step_size": 10.0}, {"step_size": 0.1}, {"step_size": 1.0}]
    way = Contender(lambda d, step_size: Diverges(step_size > 1), grid)
    monkeypatch.setitem(compare.METHODS, "SPAM-L2", way)
    assert search(data, "SPAM-L2", "raw") == {"step_size": 0.1}
    assert one_run(data, "SPAM-L2", "raw", 0, grid[0]) == 0.5
    assert one_run(data, "SPAM-L2", "raw", 0, grid[1]) > 0.6


def test_scores_that_overflow_on_other_rows_rank_nothing():
    X = np.array([[1e200], [2e200], [0.0], [1.0]])
    way = Contender(lambda d, beta: Huge())
    assert compare.scored(way, {"beta": 1.0}, X, X[:, 0] > 1, X).tolist() == [0] * 4


class Huge:
    """Has weights that the rows of a test may be too large for."""

    def fit(self, X, positive):
        pass

    def decision_function(self, X):
        with np.errstate(over="ignore"):
            return X[:, 0] * 1e200


def test_long_steps_diverge():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.random(300) < 0.3
    with pytest.raises(DivergedError, match="RegSOLAM: the weights are not finite; scale"):
        RegSOLAM(1e-4, step_size=1e4, max_iter=5, random_state=0, pos_label=True).fit(X, y)


def test_methods_of_two_weights_have_both_searched():
    for method in ("SPAM-NET", "VRSPAM-NET"):
        tried = {(given["beta"], given["beta1"]) for given in METHODS[method].grid}
        assert {beta for beta, _ in tried} == set(BETAS)
        for beta in BETAS:
            shares = sorted(beta1 / beta for other, beta1 in tried if other == beta)
            assert shares == pytest.approx([0.01, 0.1, 1, 10])
        model = METHODS[method].make(2, beta=0.1, beta1=0.02)
        assert (model.beta, model.beta1) == (0.1, 0.02)
    steps = {(given["beta"], given["step_size"]) for given in METHODS["regSOLAM"].grid}
    assert steps == {(beta, step) for beta in BETAS for step in (0.1, 1.0, 10.0)}
    model = METHODS["regSOLAM"].make(2, beta=0.1, step_size=10.0)
    assert (model.beta, model.step_size) == (0.1, 10.0)
