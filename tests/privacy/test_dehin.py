import sys
from pathlib import Path

import numba
import numpy as np
import pyarrow as pa
import pytest

from telic.hin import Schema, induced, network_from_arrays
from telic.privacy.auxiliary import Auxiliary, Rules
from telic.privacy.dehin import attack

sys.path.insert(0, str(Path(__file__).parent.parent / "reference"))
import dehin_recursion as reference

SCHEMA = Schema.parse(
    {
        "nodes": {
            "user": {
                "attributes": {
                    "gender": "exact",
                    "yob": {"tolerance": 1},
                    "tweets": "at_least",
                }
            }
        },
        "links": [
            {"name": "follow", "source": "user", "target": "user"},
            {"name": "mention", "source": "user", "target": "user", "strength": "at_least"},
            {"name": "like", "source": "user", "target": "user", "strength": {"tolerance": 1}},
        ],
    }
)


def random_network(rng, n, density=0.3):
    links = {}
    for link in SCHEMA.links:
        source, target = np.nonzero(rng.random((n, n)) < density * rng.random((n, 1)) * 2)
        keep = source != target
        source, target = source[keep], target[keep]
        links[link.name] = (source, target, rng.integers(1, 4, len(source)))
    gaps = rng.random(n) < 0.1
    nodes = {
        "id": np.arange(n),
        "gender": pa.array(rng.choice(["f", "m"], n)),
        "yob": pa.array(rng.integers(0, 4, n), mask=gaps & (rng.random() < 0.3)),
        "tweets": rng.integers(0, 3, n),
    }
    return network_from_arrays(SCHEMA, {"user": nodes}, links)


def earlier(rng, network):
    """A part of the network before it grew."""
    n = network.size("user")
    part = induced(network, {"user": rng.permutation(n)[: max(2, n // 2)]})
    links = {}
    for link in SCHEMA.links:
        old = part.links[link.name]
        keep = rng.random(len(old)) < 0.8
        strength = old.strength
        if strength is not None:
            strength = np.maximum(strength - rng.integers(0, 2, len(old)), 1)[keep]
        ids = part.ids("user").to_numpy()
        links[link.name] = (ids[old.sources[keep]], ids[old.indices[keep]], strength)
        links[link.name] = tuple(x for x in links[link.name] if x is not None)
    table = part.nodes["user"]
    tweets = np.maximum(table.column("tweets").to_numpy() - rng.integers(0, 2), 0)
    table = table.set_column(table.column_names.index("tweets"), "tweets", pa.array(tweets))
    return network_from_arrays(SCHEMA, {"user": table}, links)


def found(result, distance):
    return [set(result.candidates(t, distance).tolist()) for t in range(result.sizes.shape[1])]


OVERRIDES = [
    {},
    {"tweets": "ignore"},
    {"yob": "exact", "mention": "exact"},
    {"gender": "ignore", "yob": "at_most", "tweets": "ignore", "like": "at_most"},
    {"gender": "ignore", "yob": "ignore", "tweets": "ignore"},
]


@pytest.mark.parametrize("block", range(5))
def test_candidate_sets_are_those_of_the_literal_recursion(block):
    numba.set_num_threads(1)  # thousands of tiny launches: two threads would only wait
    rng = np.random.default_rng(block)
    for number in range(420):
        network = random_network(rng, int(rng.integers(2, 9)))
        target = earlier(rng, network) if number % 2 else network
        noise = 0.34 if number % 7 == 0 else 0.0
        rules = Rules.of(target, override=OVERRIDES[number % len(OVERRIDES)])
        result = attack(Auxiliary(network, rules), target, max_distance=3, noise=noise)
        for distance in range(4):
            expected = reference.candidate_sets(network, target, rules, distance, noise=noise)
            assert found(result, distance) == expected
