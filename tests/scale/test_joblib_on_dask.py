"""Searches of scikit-learn's kind through joblib's Dask backend, on worker processes."""

import re
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from tests.scale.functions import threads_of_a_fit

from telic.auc import AUCClassifier, ExactAUC
from telic.auc.table_ranker import Labelled, search_beta
from telic.optim import (
    ElasticNetClassifier,
    ElasticNetClassifierCV,
    ElasticNetRegressor,
    ElasticNetRegressorCV,
)


@pytest.fixture(scope="module")
def client(cluster):
    with cluster.ready() as found:
        yield found


def done(client):
    """How many tasks the workers have ended."""
    return sum(client.run(lambda dask_worker: dask_worker.state.executed_count).values())


rng = np.random.default_rng(0)
X = rng.normal(size=(120, 6))
SCORE = X[:, 0] - X[:, 1] + rng.normal(size=120)
TWO, THREE = (SCORE > 0).astype(int), np.digitize(SCORE, [-1, 1])
GRID = [1e-3, 1e-2, 1e-1]
SPAM = {"solver": "spam", "solver_options": {"max_iter": 2}}


def grid(estimator, name, y, **options):
    search = GridSearchCV(estimator, {name: GRID}, cv=3, **options).fit(X, y)
    return [*search.cv_results_["mean_test_score"], *search.best_estimator_.coef_.ravel()]


def path(estimator, y):
    estimator.fit(X, y)
    return [*estimator.scores_.ravel(), *estimator.coef_.ravel()]


def search_of_a_table():
    told = []
    rows = Labelled(X, TWO == 1, None, "1", list("abcdef"))
    found = search_beta(rows, scaling="standard", random_state=1, progress=told.append, **SPAM)
    return [found, len(told)]


SEARCHES = {
    "grid of ExactAUC": lambda: grid(ExactAUC(), "beta", TWO, scoring="roc_auc"),
    "grid of AUCClassifier": lambda: grid(AUCClassifier(random_state=1, **SPAM), "beta", TWO),
    "grid of a regressor": lambda: grid(ElasticNetRegressor(), "alpha", SCORE),
    "grid of a classifier": lambda: grid(ElasticNetClassifier(), "C", THREE),
    "scores": lambda: cross_val_score(ExactAUC(), X, TWO, cv=4),
    "path of a regressor": lambda: path(
        ElasticNetRegressorCV(alphas=GRID, solver="saga", random_state=3), SCORE
    ),
    "path of a classifier": lambda: path(
        ElasticNetClassifierCV(Cs=GRID, l1_ratio=[0.5, 1.0]), THREE
    ),
    "beta of a table": search_of_a_table,
}


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_search_on_workers_finds_what_it_finds_here(client, name):
    search = SEARCHES[name]
    here = search()
    before = done(client)
    with joblib.parallel_config("dask", client=client):
        there = search()
    np.testing.assert_array_equal(there, here)
    assert done(client) > before


def test_a_fit_takes_threads_of_its_own_machine_not_slots_of_the_cluster(client):
    here = threads_of_a_fit(None), threads_of_a_fit(3), threads_of_a_fit(-1)
    assert here == (1, 3, joblib.cpu_count())
    with joblib.parallel_config("dask", client=client):
        asked = (None, 3, -1)
        assert tuple(map(threads_of_a_fit, asked)) == here
        tasks = (joblib.delayed(threads_of_a_fit)(n_jobs) for n_jobs in asked)
        assert tuple(joblib.Parallel()(tasks)) == here


def test_the_recipe_of_the_page_searches_on_the_cluster(cluster, client):
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "use-a-cluster.md").read_text()
    (code,) = re.findall(r"```py\n((?:(?!```).)*parallel_config.*?)```", page, re.S)
    names, before = {"X": X, "y": TWO}, done(client)
    exec(code.replace("tcp://10.0.0.1:8786", cluster.address), names)
    assert 0.5 < names["search"].best_score_ <= 1
    assert done(client) > before
