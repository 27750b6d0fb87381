"""The ways that methods take to an optimum are held to a file: constants change nothing else."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from tests.held import column, hold

from telic.optim import METHODS, ElasticNetClassifier, make_problem, minimize, solve_path
from telic.optim.admm import METHODS as ADMM_METHODS
from telic.optim.admm import minimize_admm
from telic.optim.penalties import ElasticNet
from telic.optim.softmax import make_softmax_problem
from telic.optim.softmax_newton import solve_softmax

HERE = Path(__file__).parent / "ways"
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def way(result):
    """Passes and objective of every look, and where it ended."""
    looks = [[record.passes, record.objective] for record in result.history]
    return [*looks, [result.converged, float(result.objective), *column(result.coef)]]


def line(*name, found):
    return ["; ".join(map(str, name)), *found]


SETTINGS = {
    "asbcd": [{}, {"blocks": 4}, {"sampling": "uniform"}, {"sampling": "lipschitz"}],
    "sbcd": [{}, {"blocks": 3}],
    "mrbcd": [{}, {"blocks": 3, "batch_size": 7}],
}


def test_each_methods_first_passes(make_data):
    found = []
    for method, loss in product(METHODS, ("squared", "logistic", "huber", "poisson")):
        if loss == "poisson" and method not in ("gram", "prox_newton", "sdca"):
            continue
        X, y = make_data(loss, kind="csr")
        weight = np.random.default_rng(1).random(y.size)
        for settings, groups in product(SETTINGS.get(method, [{}]), (None, np.arange(15) // 3)):
            if groups is not None and (method == "sdca" or loss in ("huber", "poisson")):
                continue
            terms = {"l1": 0.02, "l2": 0.01, "fit_intercept": True, "groups": groups}
            result = minimize(
                *(X, y),
                loss=loss,
                method=method,
                sample_weight=weight,
                max_passes=4,
                check_every=1,
                tol=1e-3,
                **terms,
                **settings,
            )
            grouped = "groups" if groups is not None else ""
            found.append(line(method, loss, *settings.items(), grouped, found=way(result)))
    hold(HERE / "first_passes.jsonl", found, digits=6)


def test_looks_are_as_rare_as_the_forecast_has_it(make_data):
    found = []
    for method in ("asbcd", "saga", "svrg", "sdca", "mrbcd"):
        X, y = make_data()
        result = minimize(X, y, l1=0.005, l2=0.002, method=method, tol=1e-4)
        found.append(line(method, found=[[record.passes for record in result.history]]))
    hold(HERE / "looks.jsonl", found, digits=6)


def test_newtons_methods_on_many_features(make_data, monkeypatch):
    monkeypatch.setattr("telic.optim.methods.prox_newton_gram.LARGEST_SET", 70)
    found = []
    for kind, l1 in product(("dense", "csr"), (3e-2, 1e-3)):
        X, y = make_data(n=150, d=300, kind=kind)
        problem = make_problem(X, y, fit_intercept=True)
        penalties = [ElasticNet(scale * l1, 1e-4) for scale in (1.0, 0.3)]
        for method in ("prox_newton", "gram"):
            steps = solve_path(problem, penalties, method=method, tol=1e-4, max_passes=40)
            found += [line(method, kind, l1, found=way(result)) for result in steps]
    hold(HERE / "many_features.jsonl", found, digits=5)


@pytest.mark.parametrize("grouped", [False, True])
def test_several_classes_together(make_data, grouped):
    found = []
    for kind, l1, l2 in product(("dense", "csr"), (0.0, 0.01), (0.0, 0.01)):
        X, score = make_data("squared", n=200, d=8, kind=kind)
        labels = np.digitize(score, np.quantile(score, [0.3, 0.6]))
        weight = np.random.default_rng(1).random(200)
        problem = make_softmax_problem(
            X, labels, l1=l1, l2=l2, sample_weight=weight, fit_intercept=True, grouped=grouped
        )
        result = solve_softmax(problem, tol=1e-4, max_passes=60)
        found.append(line(kind, l1, l2, found=way(result)))
    hold(HERE / f"softmax_{'grouped' if grouped else 'alone'}.jsonl", found, digits=5)


def test_methods_of_multipliers():
    rng = np.random.default_rng(0)
    X, D = rng.normal(size=(80, 6)), np.diff(np.eye(6), axis=0)
    score = X @ np.repeat([1.0, -1.0], 3) + rng.normal(size=80)
    found = []
    for method, x_step in product(ADMM_METHODS, ("auto", "scaled", "exact")):
        if x_step != "auto" and method in ("stoc-admm", "sdca-admm"):
            continue
        for loss, y in (("squared", score), ("logistic", np.where(score > 0, 1.0, -1.0))):
            result = minimize_admm(
                *(X, y),
                A=D,
                l1=0.03,
                l2=0.01,
                loss=loss,
                fit_intercept=True,
                method=method,
                x_step=x_step,
                max_passes=6,
                tol=1e-2,
            )
            ends = [float(result.rho), float(result.step_size), result.stage, result.stopped]
            found.append(line(method, x_step, loss, found=[*way(result), ends]))
    hold(HERE / "multipliers.jsonl", found, digits=5)


def test_a_warm_start_goes_on_from_the_last_fit(make_data):
    X, y = make_data(n=200, d=8)
    labels = np.digitize(make_data("squared", n=200, d=8)[1], [0.5, 1.5])
    for target, multi_class in ((y, "ovr"), (labels, "ovr"), (labels, "multinomial")):
        model = ElasticNetClassifier(
            C=0.5, warm_start=True, multi_class=multi_class, tol=1e-8, solver="auto"
        )
        first = model.fit(X, target).n_iter_.copy()
        again = model.fit(X, target).n_iter_
        assert again.sum() < first.sum()
        other = model.fit(X[:, :5], target)  # what was fitted to other columns is no start
        fresh = ElasticNetClassifier(C=0.5, multi_class=multi_class, tol=1e-8).fit(X[:, :5], target)
        np.testing.assert_array_equal(other.coef_, fresh.coef_)
