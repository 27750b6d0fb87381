"""How often ranks are looked at, and what another order would have earned, where both are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from telic.errors import InputError
from telic.evaluate import examination, ips
from telic.simulate.trials import simulate_lists

RANKS = 3


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, RANKS), st.booleans()), max_size=40))
def test_ranks_are_what_likelihood_says_of_each_choice(more):
    # Two items that were shown and chosen everywhere, so that all ranks can be compared.
    always = [(i, k, True) for i in (0, 1) for k in range(1, RANKS + 1)]
    log = always + more
    item, rank, chosen = map(np.array, zip(*log, strict=True))

    def loss(free):
        theta = np.exp(np.append(0.0, free))
        total = 0.0
        for i, k, c in log:
            if c:
                shown = [theta[other - 1] for j, other, _ in log if j == i]
                total -= np.log(theta[k - 1] / sum(shown))
        return total

    best = np.exp(np.append(0.0, minimize(loss, np.zeros(RANKS - 1), tol=1e-10).x))
    assert examination(item, rank, chosen) == pytest.approx(best / best.max(), abs=1e-4)


def examined(**changes):
    """Logs, each with how often its ranks were looked at, as estimated."""
    logs = [simulate_lists(seed=seed, **changes) for seed in range(200)]
    return [(log, examination(log.item, log.rank, log.chosen)) for log in logs]


@pytest.fixture(scope="module")
def logs():
    return examined()


def test_how_often_ranks_are_looked_at_is_found_where_their_choices_mislead(logs):
    found, plain = [], []
    for log, theta in logs:
        found.append(theta)
        rates = np.bincount(log.rank - 1, log.chosen) / np.bincount(log.rank - 1)
        plain.append(rates / rates[0])
    looked = 1 / np.arange(1, 6)
    error = np.std(found, axis=0) / np.sqrt(len(found))
    assert (np.abs(np.mean(found, axis=0) - looked) <= 4 * error + 0.01).all()
    assert (np.mean(plain, axis=0)[2:] < looked[2:] - 0.03).all()


def test_where_all_ranks_are_looked_at_alike_none_stands_out():
    apart = [theta / theta.mean() for _, theta in examined(decay=0.0)]
    assert np.mean(apart, axis=0) == pytest.approx(np.ones(5), abs=0.02)


def reversed_order(log, estimated):
    """Propensities and targets by the true θ, and by the estimated one."""
    for theta in (log.examined, estimated):
        yield theta[log.rank - 1], theta[len(theta) - log.rank]


def test_the_order_that_was_shown_is_worth_what_was_observed():
    log = simulate_lists()
    for propensity, _ in reversed_order(log, examination(log.item, log.rank, log.chosen)):
        observed = ips(log.chosen, propensity, propensity, log.user)
        assert observed.value == pytest.approx(log.chosen.mean(), abs=1e-12)


def test_intervals_hold_what_the_reversed_order_is_worth(logs):
    held = {"true": [], "estimated": []}
    for log, theta in logs:
        truth = (log.examined[5 - log.rank] * log.wanted).mean()
        for name, (propensity, target) in zip(held, reversed_order(log, theta), strict=True):
            value = ips(log.chosen, propensity, target, log.user)
            held[name].append(value.low <= truth <= value.high)
    assert np.mean(held["true"]) >= 0.90
    # The interval knows nothing of θ's own error.
    assert np.mean(held["estimated"]) >= 0.75


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"item": [], "rank": [], "chosen": []}, "nothing was shown"),
        ({"rank": [1, 2, 0, 1]}, "no whole number"),
        ({"rank": [1.0, 2.0, 1.0, 2.0]}, "no whole number"),
        ({"chosen": [True]}, "length"),
        ({"chosen": ["True", "False", "False", "True"]}, "neither True nor False"),
        ({"chosen": [1.0, 0.0, np.nan, 1.0]}, "neither True nor False"),
        ({"item": [["te", 0], ["te", 0], ["te", 1], ["te", 1]]}, "must be columns"),
        ({"item": np.array([None, "a", "b", 1], object)}, "several kinds"),
        ({"rank": [1, 2, 1, 10**9]}, "only 4 rows"),
        ({"chosen": [True, False, True, False]}, "chosen at rank 2"),
        ({"item": [0, 1, 0, 1]}, "ranks 1 and 2 cannot be compared"),
    ],
)
def test_what_tells_nothing_of_ranks_is_refused(changed, message):
    given = {"item": [0, 0, 1, 1], "rank": [1, 2, 1, 2], "chosen": [True, False, False, True]}
    assert len(examination(**{k: np.array(v) for k, v in given.items()})) == 2
    with pytest.raises(InputError, match=message):
        examination(**{k: np.array(v) for k, v in (given | changed).items()})


@pytest.mark.parametrize("wrong", [{"ranks": 9, "items": 3}, {"decay": -1.0}])
def test_lists_that_cannot_be_are_not_simulated(wrong):
    with pytest.raises(InputError, match="expected at most"):
        simulate_lists(**wrong)


def test_of_one_item_the_shares_of_choices_say_it_all():
    """So uneven that whole steps of Newton's method lead away."""
    shown, wanted = np.array([51, 60, 14]), np.array([1, 1, 6])
    rank = np.repeat([1, 2, 3], shown)
    chosen = np.concatenate([np.arange(n) < k for n, k in zip(shown, wanted, strict=True)])
    rates = wanted / shown
    found = examination(np.zeros(len(rank), int), rank, chosen)
    np.testing.assert_allclose(found, rates / rates.max(), rtol=1e-5)
