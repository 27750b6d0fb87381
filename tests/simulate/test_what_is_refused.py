"""Each number of a simulator is taken up to its limits, and refused beyond them."""

import math

import numpy as np
import pytest

from telic.errors import InputError
from telic.simulate import Catalogue, made_up_affinity, simulate_phones, simulate_typists
from telic.simulate.hospital import simulate_hospital
from telic.simulate.microblog import Community, earlier_snapshot, microblog
from telic.simulate.searchers import Causes, searchers
from telic.simulate.trials import simulate_lists, simulate_trial
from telic.simulate.typist_parameters import TypistParameters

CATALOGUE = Catalogue(["tea", "tea kettle", "coffee"], np.array([5.0, 1.0, 3.0]))
NEXT = math.nextafter


def typists(**options):
    return simulate_typists(CATALOGUE, **{"users": 1, "compositions": 1} | options)


def phones(strength):
    return simulate_phones(CATALOGUE, users=1, compositions=1, strength=strength)


def searched(causes=None, **options):
    return searchers(
        causes or Causes(), **{"users": 1, "sessions": 1, "nouns": 3, "days": 3} | options
    )


def group(**options):
    return microblog(users=60, links=60, communities=[Community(**options)], seed=0)


def snapshot(growth):
    network, (members,) = group(density=0.05, size=40, isolated=0.0)
    return earlier_snapshot(network, members, growth=growth)


LIMITS = {
    "drift": (lambda x: CATALOGUE.outdated(drift=x), [0.0, 1.0], [-1e-9, math.inf, math.nan]),
    "missing": (lambda x: CATALOGUE.outdated(missing=x), [0.0, 0.6], [NEXT(0.0, -1), 1.0]),
    "users": (lambda x: typists(users=x), [1], [0]),
    "compositions": (lambda x: typists(compositions=x), [1], [0]),
    "candidates": (lambda x: typists(candidates=x), [1], [0]),
    "attention": (lambda x: typists(attention=x), [0.0, 1.0], [NEXT(0.0, -1), NEXT(1.0, 2)]),
    "accept": (lambda x: TypistParameters(accept=x), [0, 1], [NEXT(0.0, -1), NEXT(1.0, 2)]),
    "typo_rate": (lambda x: TypistParameters(typo_rate=x), [0, 1], [-0.1, 1.1]),
    "depth": (
        lambda x: TypistParameters(depth=x),
        [(0.0, 1e-9)],
        [(0.0, 0.0), (1.0, -1e-9), (-1.0, 3.0)],
    ),
    "strength": (phones, [0.0, 1.0], [NEXT(0.0, -1), NEXT(1.0, 2)]),
    "apps": (lambda x: made_up_affinity(CATALOGUE, apps=x), [1], [0]),
    "ranks": (lambda x: simulate_lists(users=1, lists=1, items=3, ranks=x), [1, 3], [0, 4]),
    "decay": (lambda x: simulate_lists(users=1, lists=1, decay=x), [0.0], [-1e-9, math.nan]),
    "lists": (lambda x: simulate_lists(users=1, lists=x), [1], [0]),
    "choices": (lambda x: simulate_trial(users=1, choices=x), [1], [0]),
    "shares": (
        lambda x: simulate_trial(users=1, choices=2, shares=x),
        [(1e-9, NEXT(1.0, 0))],
        [(0.0, 0.5), (0.5, 1.0), (math.nan, 0.5)],
    ),
    "lift": (lambda x: simulate_trial(users=1, lift=x), [-1.0, 1.0], [NEXT(1.0, 2), math.nan]),
    "users of a query log": (lambda x: searched(users=x), [1], [0]),
    "sessions": (lambda x: searched(sessions=x), [1], [0]),
    "nouns": (lambda x: searched(nouns=x), [1], [0]),
    "days": (lambda x: searched(days=x), [1], [0]),
    "moves": (lambda x: searched(moves=x), [0.0], [NEXT(0.0, -1), math.inf, math.nan]),
    "habit": (lambda x: Causes(habit=x), [0.0, 1.0], [-1e-9, 1.1, math.nan]),
    "refine": (lambda x: searched(Causes(refine=x)), [0.6], [0.7]),
    "season": (lambda x: searched(Causes(season=x)), [0.9], [0.95]),
    "users of a microblog": (lambda x: microblog(users=x, links=2), [2], [1]),
    "members": (lambda x: group(density=0.05, size=x, isolated=0.0), [2, 60], [61]),
    # Half of what 30 active members of 60 can link to is 885 of 3540 pairs.
    "density": (lambda x: group(density=x, size=60, isolated=0.5), [885 / 3540], [886 / 3540]),
    "growth": (snapshot, [0.0, NEXT(1.0, 0)], [NEXT(0.0, -1), 1.0]),
}


@pytest.mark.parametrize("name", LIMITS)
def test_numbers_are_taken_up_to_their_limits(name):
    call, inside, outside = LIMITS[name]
    for value in inside:
        call(value)
    for value in outside:
        with pytest.raises(InputError):
            call(value)


@pytest.mark.parametrize("scale", [0.0, -1.0, NEXT(1.0, 2), math.nan])
def test_a_hospital_has_a_size_above_nought_and_at_most_the_published_one(scale, tmp_path):
    with pytest.raises(InputError, match="scale"):
        simulate_hospital(tmp_path / "log", scale=scale)
