"""The seconds that results tell, by a clock that moves only when it is told to."""

from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from telic.optim import make_problem
from telic.optim.admm import minimize_admm
from telic.optim.loop import Iterate, drive
from telic.optim.softmax import make_softmax_problem
from telic.optim.softmax_newton import solve_softmax


@pytest.fixture
def clock(monkeypatch):
    """What seconds are added to."""
    now = [1000.0]
    read = SimpleNamespace(perf_counter=lambda: now[0])
    for module in ("loop", "softmax_newton"):
        monkeypatch.setattr(f"telic.optim.{module}.time", read)
    return now


@pytest.mark.parametrize(("every", "told"), [(1, [5.0, 10.0, 15.0]), (2, [10.0, 15.0])])
def test_the_time_of_a_method_is_its_own_and_not_that_of_looks(clock, make_data, every, told):
    X, y = make_data(n=20, d=3)
    problem = make_problem(X, y, l2=0.1)

    def iterates():
        while True:
            clock[0] += 5.0
            yield Iterate(np.zeros(3), 0.0, gradients=20)

    def look(record, coef, intercept):
        clock[0] += 100.0

    with pytest.warns(UserWarning, match="saga stopped after 3 passes"):
        found = drive(
            problem,
            iterates(),
            method="saga",
            tol=1e-9,
            max_passes=3,
            callback=look,
            check_every=every,
        )
    assert [record.seconds for record in found.history] == told
    assert found.seconds == 15.0 + 100.0 * len(told)


def test_every_look_at_several_classes_says_since_when_it_runs(clock, make_data, monkeypatch):
    X, _ = make_data("squared", n=60, d=4)
    problem = make_softmax_problem(
        X, np.arange(60) % 3, l1=0.0, l2=0.01, sample_weight=None, fit_intercept=True
    )
    bound = type(problem).lower_bound

    def slowly(*given):
        clock[0] += 2.0
        return bound(*given)

    monkeypatch.setattr(type(problem), "lower_bound", slowly)
    history = solve_softmax(problem, tol=1e-6, max_passes=60).history
    assert [record.seconds for record in history] == [2.0 * k for k in range(1, len(history) + 1)]


def test_methods_of_multipliers_tell_the_processors_time(clock, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.where(np.arange(40) % 2, 1.0, -1.0)
    spent = count(7.0, 2.0)  # two seconds go by from one reading to the next

    def look(record, *rest):
        clock[0] += 100.0

    read = SimpleNamespace(perf_counter=lambda: clock[0], process_time=lambda: next(spent))
    monkeypatch.setattr("telic.optim.admm.loop.time", read)
    options = {"A": np.diff(np.eye(3), axis=0), "l1": 0.03, "l2": 0.01, "tol": 1e-6}
    found = minimize_admm(X, y, method="batch-admm", callback=look, check_every=1, **options)
    looks = len(found.history)
    assert looks > 3
    assert [record.seconds for record in found.history] == [2.0 * k for k in range(looks)]
    assert found.seconds == 100.0 * looks
