from itertools import product

import numpy as np
import pytest

from telic.errors import InputError
from telic.hin import Schema, network_from_arrays
from telic.privacy.advise import advise, confirm, levers
from telic.privacy.risk import risks
from telic.privacy.steps import apply_steps

SCHEMA = Schema.parse(
    {
        "nodes": {"user": {"attributes": {"yob": "exact", "city": "exact"}}},
        "links": [
            {"name": "mention", "source": "user", "target": "user", "strength": "at_least"},
        ],
    }
)


@pytest.fixture(scope="module")
def network():
    rng = np.random.default_rng(0)
    n = 60
    source, target = np.nonzero(np.triu(rng.random((n, n)) < 0.02, 1))
    nodes = {"id": np.arange(n), "yob": rng.integers(1950, 2000, n),
             "city": rng.choice(["a", "b", "c"], n)}  # fmt: skip
    links = {"mention": (source, target, rng.integers(1, 4, len(source)))}
    return network_from_arrays(SCHEMA, {"user": nodes}, links)


@pytest.mark.parametrize("limit", [0.05, 0.1, 0.25, 0.5, 0.9])
def test_no_release_that_meets_the_limit_keeps_more(network, limit):
    found = advise(network, max_risk=limit)
    assert found.proven
    release = apply_steps(network, found.steps)
    *_, last = risks(release, links=[[link.name for link in release.schema.links]])
    assert last.risk == found.after[-1].risk <= limit
    best = np.inf
    fields = levers(network, "user")
    for choice in product(*(lever.levels for lever in fields)):
        steps = [step for _, part, _ in choice for step in part]
        candidate = apply_steps(network, steps)
        names = [link.name for link in candidate.schema.links]
        *_, far = risks(candidate, links=[names])
        if far.risk <= limit:
            best = min(best, sum(loss for _, _, loss in choice))
    whole = sum(lever.levels[-1][2] for lever in fields)
    assert found.loss == pytest.approx(best / whole)


def test_the_attack_confirms_the_advice(network):
    found = advise(network, max_risk=0.2)
    assert found.before[-1].risk > 0.2
    assert confirm(network, found) <= found.after[-1].risk <= 0.2
    everything = {name: added for name, _, _, added in found.effects}
    assert set(everything) == {"yob", "city", "mention"}
    assert all(added >= found.after[-1].risk for added in everything.values())


def test_weights_say_what_to_keep(network):
    keep = advise(network, max_risk=0.2, weights={"mention": 50.0})
    assert keep.choice["mention"] == "as it is" or keep.choice["yob"] == "not published"
    with pytest.raises(InputError, match="'age' is neither"):
        advise(network, max_risk=0.2, weights={"age": 1.0})


def test_a_search_cut_short_still_meets_the_limit(network):
    found = advise(network, max_risk=0.1, max_tried=1)
    assert found.after[-1].risk <= 0.1


def test_limits_that_cannot_be_met_are_refused(network):
    with pytest.raises(InputError, match="cannot be met"):
        advise(network, max_risk=0.001)
    with pytest.raises(InputError, match="expected more than 0"):
        advise(network, max_risk=0)
