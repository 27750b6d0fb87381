"""Paths: each penalty is solved as if it came alone, and sooner."""

import numpy as np
import pytest

from telic.errors import InputError
from telic.optim import ElasticNet, make_problem, solve, solve_path
from telic.optim.penalties import group_penalty

PENALTIES = [ElasticNet(l1, l2) for l1, l2 in ((0.2, 0.0), (0.05, 0.01), (0.0, 0.1), (0.0, 0.02))]


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
@pytest.mark.parametrize("method", ["gram", "prox_newton", "sdca", "auto"])
@pytest.mark.parametrize("far", [0.0, 1e7])
def test_each_penalty_of_a_path_is_solved_as_if_it_came_alone(make_data, loss, method, far):
    X, y = make_data(loss)
    X[:, 0] += far
    problem = make_problem(X, y, loss=loss, fit_intercept=True)
    penalties = [*PENALTIES, PENALTIES[1], ElasticNet(0.01, 0.01)]
    if method == "sdca":
        penalties = [each for each in penalties if each.l2 > 0]
    options = {"method": method, "tol": 1e-10, "max_passes": 3000}
    for penalty, found in zip(penalties, solve_path(problem, penalties, **options), strict=True):
        alone = make_problem(X, y, loss=loss, l1=penalty.l1, l2=penalty.l2, fit_intercept=True)
        expected = solve(alone, **options)
        assert found.converged
        assert found.objective == pytest.approx(expected.objective, rel=1e-9)
        np.testing.assert_allclose(found.coef, expected.coef, atol=2e-4)


@pytest.mark.parametrize("d", [15, 600])
def test_a_path_reads_the_data_less_often_than_its_penalties_do_alone(make_data, d):
    X, y = make_data("poisson", n=400, d=d)
    problem = make_problem(X, y, loss="poisson", fit_intercept=True)
    penalties = [ElasticNet(l1, l1) for l1 in np.geomspace(0.3, 0.02, 30)]
    path = sum(result.gradients for result in solve_path(problem, penalties))
    alone = [
        solve(make_problem(X, y, loss="poisson", l1=p.l1, l2=p.l2, fit_intercept=True))
        for p in penalties
    ]
    assert path < 0.7 * sum(result.gradients for result in alone)


def test_results_of_a_path_are_not_changed_by_the_next(make_data):
    X, y = make_data("poisson")
    path = solve_path(make_problem(X, y, loss="poisson"), PENALTIES)
    first = next(path)
    kept = first.coef.copy()
    assert len(list(path)) == 3
    np.testing.assert_array_equal(first.coef, kept)


def test_a_penalty_that_the_method_does_not_know_is_refused(make_data):
    X, y = make_data()
    penalties = [PENALTIES[0], group_penalty(np.arange(15) // 3, l1=0.1, l2=0.0)]
    with pytest.raises(InputError, match="prox_newton does not know groups"):
        list(solve_path(make_problem(X, y), penalties, method="prox_newton"))
    groups = list(solve_path(make_problem(X, y), penalties, method="gram", tol=1e-9))
    alone = solve(make_problem(X, y, groups=np.arange(15) // 3, l1=0.1), tol=1e-9)
    assert groups[1].objective == pytest.approx(alone.objective, rel=1e-8)
