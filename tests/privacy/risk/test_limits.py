"""What the mean hides: the highest risk, the worst 1 %, those alone; limits on each; the words."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from telic.errors import InputError
from telic.hin import Schema, network_from_arrays
from telic.privacy import Adversary, Limits, advise, apply_steps, risks
from telic.privacy.advice.coarsening_levels import levers
from telic.privacy.report.intruder_tests import intruder_tests
from telic.privacy.risk.risk_in_words import for_one_person, hidden_among, meaning
from telic.privacy.risk.risks import Risk, measure

SCHEMA = Schema.parse(
    {
        "nodes": {"user": {"attributes": {"yob": "exact", "city": "exact"}}},
        "links": [{"name": "knows", "source": "user", "target": "user", "strength": "at_least"}],
    }
)


def network(seed=0, n=80):
    rng = np.random.default_rng(seed)
    source, target = np.nonzero(np.triu(rng.random((n, n)) < 0.02, 1))
    nodes = {
        "id": np.arange(n),
        "yob": rng.integers(1950, 1970, n),
        "city": rng.choice(["a", "b"], n),
    }
    links = {"knows": (source, target, rng.integers(1, 3, len(source)))}
    return network_from_arrays(SCHEMA, {"user": nodes}, links)


@given(
    values=st.lists(st.integers(0, 12), min_size=1, max_size=350),
    losses=st.integers(0, 10**6),
    weighed=st.booleans(),
)
def test_measures_are_those_of_the_users_one_by_one(values, losses, weighed):
    loss = np.random.default_rng(losses).random(len(values)) if weighed else None
    found = measure(np.array(values), loss)
    each = [
        (1 if loss is None else loss[v]) / values.count(value) for v, value in enumerate(values)
    ]
    few = -(-len(values) // 100)
    assert found.risk == pytest.approx(np.mean(each))
    assert found.highest == pytest.approx(max(each))
    assert found.tail == pytest.approx(np.mean(sorted(each)[-few:]))
    assert found.unique == pytest.approx(np.mean([values.count(x) == 1 for x in values]))
    assert found.cardinality == len(set(values))
    assert found.risk <= found.tail + 1e-12 <= found.highest + 1e-11


@pytest.mark.parametrize(
    "limits",
    [
        Limits(highest=0.25),
        Limits(unique=0.0),
        Limits(tail=0.4),
        Limits(risk=0.3, highest=0.5),
        Limits(risk=0.12, unique=0.05, tail=0.9),
    ],
)
def test_no_release_that_keeps_the_limits_keeps_more(limits):
    net = network()
    found = advise(net, limits)
    assert found.proven
    assert limits.met_by(found.after[-1])
    release = apply_steps(net, found.steps)
    *_, last = risks(release, links=[[link.name for link in release.schema.links]])
    assert limits.met_by(last)
    best = np.inf
    for choice in product(*(lever.levels for lever in levers(net, Adversary.of(net)))):
        candidate = apply_steps(net, [step for level in choice for step in level.steps])
        names = [link.name for link in candidate.schema.links]
        *_, far = risks(candidate, links=[names])
        if limits.met_by(far):
            best = min(best, sum(level.loss for level in choice))
    whole = sum(lever.levels[-1].loss for lever in levers(net, Adversary.of(net)))
    assert found.loss == pytest.approx(best / whole)


def test_a_limit_on_the_highest_risk_asks_for_more_than_one_on_the_mean():
    net = network()
    mean, highest = advise(net, Limits(risk=0.3)), advise(net, Limits(risk=0.3, highest=0.1))
    assert mean.after[-1].highest > 0.1 >= highest.after[-1].highest
    assert highest.loss > mean.loss


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "none is given"),
        ({"risk": 0}, "mean risk is 0, expected more than 0"),
        ({"highest": 1.5}, "highest individual risk is 1.5"),
        ({"unique": -0.1}, "alone of their kind is -0.1, expected 0"),
        ({"tail": float("nan")}, "worst 1 % is nan"),
    ],
)
def test_limits_out_of_range_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        Limits(**given)


def risk_of(sizes):
    hashes = np.repeat(np.arange(len(sizes)), sizes)
    return Risk((), 0, *measure(hashes), hashes)


def test_words_say_what_the_numbers_are():
    eight = risk_of([8] * 25)
    assert eight.risk == 0.125
    assert "hidden among about 8" in meaning(eight)
    assert "among 8 who look the same" in meaning(eight)
    assert "found for certain" not in meaning(eight)
    some = risk_of([1, 1, 48, 50])
    assert "2 of 100 people are alone of their kind and are found for certain" in meaning(some)
    assert "everybody is alone" in meaning(risk_of([1, 1, 1]))
    assert hidden_among(0.005) == "hidden among about 200"
    assert for_one_person(1).startswith("Only one row fits")
    assert "1 time in 12" in for_one_person(12)


def test_the_three_tests_name_who_is_told_apart_and_linked():
    some = risk_of([1, 1, 48, 50])
    adversary = Adversary.of(network())
    single, link, infer = intruder_tests(adversary, some, 0.015, "Not measured here.")
    assert single.answer.startswith("2 of 100 can; the risk is at most 100.0%")
    assert link.answer.startswith("1.5%")
    assert infer.answer == "Not measured here."
    assert "at most the 2.0% alone" in intruder_tests(adversary, some, None, "")[1].answer
