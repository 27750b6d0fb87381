"""Attribute inference with its control, and two releases of the same people."""

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from telic.errors import InputError
from telic.hin import Network, Schema, induced, network_from_arrays
from telic.privacy import Adversary, inference, two_releases
from telic.privacy.anonymisers.coarsen import drop_strengths
from telic.privacy.anonymisers.release_steps import apply_steps
from telic.privacy.attacks.attribute_inference import _hits
from telic.privacy.attacks.measured_attack import measured_attack
from telic.privacy.attacks.two_releases import _of_some
from telic.privacy.report.intruder_tests import inferred_words
from telic.privacy.risk.risks import measure

sys.path.insert(0, str(Path(__file__).parents[2] / "reference"))
import dehin_recursion as reference
from random_networks import random_network, random_schema

SCHEMA = Schema.parse(
    {
        "nodes": {"user": {"attributes": {"city": "exact", "vote": "exact"}}},
        "links": [{"name": "knows", "source": "user", "target": "user"}],
    }
)


def town(rng, n, *, homophily=0.0, by_city=0.0):
    """People whose vote follows their city, or their friends' votes, with these chances."""
    city, vote = rng.integers(0, 6, n), rng.integers(0, 3, n)
    vote = np.where(rng.random(n) < by_city, city % 3, vote)
    source, target = rng.integers(n, size=(2, 4 * n))
    keep = (source != target) & ((vote[source] == vote[target]) | (rng.random(4 * n) > homophily))
    pairs = np.unique(np.stack([source[keep], target[keep]]), axis=1)
    nodes = {"id": np.arange(n), "city": city, "vote": vote}
    return network_from_arrays(SCHEMA, {"user": nodes}, {"knows": tuple(pairs)})


def chance(values, truth):
    """Chance that one of the commonest of some values, drawn at random, is the true one."""
    most = Counter(values).most_common()
    best = [value for value, count in most if count == most[0][1]]
    return (truth in best) / len(best)


@example(seed=66348, distance=1)  # neighbours whose city and layer changed places looked alike
@given(seed=st.integers(0, 10**6), distance=st.sampled_from([0, 1]))
@settings(max_examples=40)
def test_guesses_are_those_made_one_by_one(seed, distance):
    rng = np.random.default_rng(seed)
    net = town(rng, int(rng.integers(2, 25)))
    adversary = Adversary.of(net, distance=distance)
    found = inference(net, "vote", adversary=adversary)
    view = reference.views(net, Adversary.of(net, attributes=["city"], distance=distance), distance)
    vote = net.nodes["user"].column("vote").to_pylist()
    links = net.links["knows"]
    pairs = set(zip(links.sources.tolist(), links.indices.tolist(), strict=True))
    hits = {"row": [], "alike": [], "linked": []}
    for t, truth in enumerate(vote):
        same = [v for v in range(len(vote)) if view[v] == view[t]]
        hits["row"].append(chance([vote[v] for v in same], truth))
        others = [vote[v] for v in same if v != t]
        friends = [vote[v] for v in range(len(vote)) if (t, v) in pairs]
        friends += [vote[v] for v in range(len(vote)) if (v, t) in pairs]
        both = [v for v in range(len(vote)) if (t, v) in pairs or (v, t) in pairs]
        for way, told in (("alike", others), ("linked", [vote[v] for v in both])):
            hits[way].append(chance(told or vote, truth))
    base = max(map(vote.count, vote)) / len(vote)
    assert found.baseline == pytest.approx(base)
    for way, each in hits.items():
        assert found.gains[way][0] == pytest.approx(np.mean(each) - base)


def test_what_is_there_to_infer_is_found_and_the_control_gains_nothing():
    rng = np.random.default_rng(0)
    by_city = inference(town(rng, 2000, by_city=0.9), "vote", adversary=None)
    friends = inference(town(rng, 2000, homophily=0.9), "vote")
    nothing = inference(town(rng, 2000), "vote")
    assert friends.gains["linked"][1] > 0.3
    # Everybody's row is found by city and links, so the vote is read off it.
    assert nothing.gains["row"][1] > 0.3
    assert nothing.gains["linked"][1] <= 0.01
    assert nothing.gains["alike"][1] <= 0.01
    for found in (by_city, friends, nothing):
        for way in found.control:
            assert found.control[way][1] <= 0.01
    seen = Adversary.of(town(rng, 2000), links=[])
    assert inference(town(rng, 2000, by_city=0.9), "vote", adversary=seen).gains["alike"][1] > 0.3


@given(seed=st.integers(0, 10**6))
@settings(max_examples=60)
def test_guesses_from_other_values_than_the_true_ones_are_those_made_one_by_one(seed):
    """As of a shuffle: what is published of a person is then not what is asked."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 25))
    truth, shown = rng.integers(0, 3, (2, n))
    truth[: truth.max() + 1] = np.arange(truth.max() + 1)[:n]
    shown = np.minimum(shown, truth.max())
    alike, linked = rng.integers(0, 5, n), np.triu(rng.random((n, n)) < 0.2, 1)
    alike = np.unique(alike, return_inverse=True)[1]
    linked = linked | linked.T
    found = _hits(truth, shown, alike, csr_array(linked.astype(float)), np.full(n, 0.25))
    for t in range(n):
        same = [shown[v] for v in range(n) if alike[v] == alike[t]]
        others = [shown[v] for v in range(n) if alike[v] == alike[t] and v != t]
        friends = [shown[v] for v in range(n) if linked[t, v]]
        assert found["row"][t] == chance(same, truth[t])
        assert found["alike"][t] == (chance(others, truth[t]) if others else 0.25)
        assert found["linked"][t] == (chance(friends, truth[t]) if friends else 0.25)


def test_nobody_speaks_for_themselves_through_a_link_to_their_own_row():
    nodes = {"id": [1, 2, 3], "city": [0, 0, 0], "vote": [0, 1, 1]}
    links = {"knows": ([1, 1], [1, 2])}
    own = replace(SCHEMA, links=(replace(SCHEMA.links[0], self_links=True),))
    net = network_from_arrays(own, {"user": nodes}, links)
    gain = inference(net, "vote").gains["linked"][0]
    assert gain == pytest.approx((0 + 0 + 1) / 3 - 2 / 3)


def cities(sizes, order=None):
    """People who all vote as their city does, one city after the other or in another order."""
    city = np.repeat(np.arange(len(sizes)), sizes)
    order = np.arange(len(city)) if order is None else order
    nodes = {"id": order, "city": city[order], "vote": city[order] % 2}
    return network_from_arrays(SCHEMA, {"user": nodes}, {"knows": ([], [])})


@pytest.mark.parametrize("sizes", [(100, 100), (260, 240), (25,) * 20])
def test_the_control_gains_nothing_whatever_the_shuffle(sizes):
    """All of a city share a guess: of one shuffle chance would decide."""
    net = cities(sizes)
    seen = Adversary.of(net, links=[])
    surely = 0
    for seed in range(24):
        found = inference(net, "vote", adversary=seen, seed=seed)
        mean, low, high = found.control["alike"]
        assert low <= mean <= high
        assert high < 0.2
        surely += low > 0
        (gain, least, _) = found.gains["alike"]
        assert gain == pytest.approx(1 - found.baseline)
        assert "100.0% right" in inferred_words([found])
        assert least > high
    assert surely <= 3  # .6 are expected


def test_the_order_of_rows_does_not_matter_where_values_are_as_common_as_each_other():
    """In a city of one the guess is the commonest value of all: either of the two."""
    sizes, rng = (60, 58, 1, 1), np.random.default_rng(0)
    gains = []
    for order in (None, np.arange(120)[::-1], rng.permutation(120)):
        net = cities(sizes, order)
        gains.append(inference(net, "vote", adversary=Adversary.of(net, links=[])).gains)
    assert gains[0]["alike"][0] == pytest.approx(118 / 120 + 2 / 120 / 2 - 61 / 120, abs=0.01)
    for way, gain in gains[0].items():
        for other in gains[1:]:
            assert other[way] == pytest.approx(gain)


def test_links_that_the_intruder_does_not_see_tell_nothing():
    rng = np.random.default_rng(0)
    net = town(rng, 200, homophily=0.9)
    blind = inference(net, "vote", adversary=Adversary.of(net, links=[]))
    assert blind.gains["linked"][0] == 0.0
    assert blind.control["linked"] == (0.0, 0.0, 0.0)
    chain = network_from_arrays(
        SCHEMA,
        {"user": {"id": [1, 2, 3], "city": [0, 0, 0], "vote": [0, 0, 1]}},
        {"knows": ([1, 3], [2, 1])},
    )
    # Seen both ways, the first has two friends who differ; out-links alone show the one alike.
    gains = [
        inference(chain, "vote", adversary=Adversary.of(chain, in_links=ways)).gains["linked"][0]
        for ways in (True, False)
    ]
    assert gains == pytest.approx([(0.5 + 1 + 0) / 3 - 2 / 3, (1 + 1 + 0) / 3 - 2 / 3])


def test_an_attribute_that_is_not_published_cannot_be_asked_for():
    with pytest.raises(InputError, match="'shoe' is not published"):
        inference(town(np.random.default_rng(0), 5), "shoe")


def with_ids(net, ids):
    users = net.nodes["user"].set_column(0, "id", pa.array(ids))
    return Network(net.schema, {**net.nodes, "user": users}, net.links)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=30, derandomize=True)
def test_two_releases_tell_what_both_views_tell(seed):
    rng = np.random.default_rng(seed)
    schema = random_schema(rng)
    first, second = (
        with_ids(random_network(rng, schema, n, density=0.1), rng.permutation(13)[:n])
        for n in rng.integers(7, 13, 2)
    )
    seen = [Adversary.of(net, node_type="user", distance=2) for net in (first, second)]
    found = two_releases(first, second, adversary=seen[0], later=seen[1])
    views = [reference.views(n, a, 2) for n, a in zip((first, second), seen, strict=True)]
    ids = [net.ids("user").to_pylist() for net in (first, second)]
    both = [(ids[0].index(x), ids[1].index(x)) for x in ids[0] if x in ids[1]]
    assert found.people == len(both)
    assert found.first.risk == pytest.approx(
        np.mean([1 / views[0].count(views[0][a]) for a, _ in both])
    )
    assert found.second.unique == np.mean([views[1].count(views[1][b]) == 1 for _, b in both])
    pairs = [(views[0][a], views[1][b]) for a, b in both]
    assert found.joined.risk == pytest.approx(len(set(pairs)) / len(pairs))
    assert found.joined.highest >= 1 / max(pairs.count(x) for x in pairs)


def test_a_release_is_matched_with_itself_and_nobody_with_strangers():
    net = town(np.random.default_rng(3), 60)
    twice = two_releases(net, net)
    assert twice.first == twice.second == twice.joined
    assert twice.matched == twice.first.unique
    assert twice.joined[:3] == measure(np.array(reference_codes(net)))[:3]
    narrow = with_ids(net, np.arange(60, dtype=np.int8))
    wide = with_ids(net, np.r_[2**40, 1:60])
    for pair in ((narrow, wide), (wide, narrow)):  # ids of different widths
        assert two_releases(*pair).people == 59
    part = induced(net, {"user": np.arange(30)})
    rest = induced(net, {"user": np.arange(30, 60)})
    with pytest.raises(InputError, match="is in the second"):
        two_releases(part, rest)


def test_rows_are_joined_where_one_release_leaves_out_strengths():
    schema = Schema.parse(
        {
            "nodes": {"user": {}},
            "links": [{"name": "knows", "source": "user", "target": "user", "strength": "exact"}],
        }
    )
    links = {"knows": ([1, 2], [2, 3], [5, 6])}
    net = network_from_arrays(schema, {"user": {"id": [1, 2, 3]}}, links)
    less = drop_strengths(net)
    assert [two_releases(*pair).matched for pair in ((net, less), (less, net))] == [1, 1]


@pytest.mark.parametrize(("dropped", "distance"), [("vote", 0), ("knows", 1)])
def test_rows_are_joined_by_what_both_releases_show(dropped, distance):
    """Whichever of them lacks something, it is as if both did."""
    net = town(np.random.default_rng(3), 12)
    users = net.nodes["user"]
    if dropped == "vote":
        attributes = {"city": SCHEMA.nodes["user"]["city"]}
        schema, links = replace(SCHEMA, nodes={"user": attributes}), net.links
        users = users.drop_columns("vote")
    else:
        schema, links = replace(SCHEMA, links=()), {}
    less = Network(schema, {"user": users}, links)

    def matched(*releases):
        seen = [Adversary.of(one, distance=distance) for one in releases]
        return two_releases(*releases, adversary=seen[0], later=seen[1]).matched

    assert matched(net, less) == matched(less, net) == matched(less, less) < matched(net, net)


def test_an_intruder_coarsens_the_first_release_as_the_second_is():
    schema = Schema.parse({"nodes": {"user": {"attributes": {"yob": "exact"}}}, "links": []})
    fine = network_from_arrays(schema, {"user": {"id": range(20), "yob": range(3, 103, 5)}}, {})
    steps = [{"method": "generalise", "attribute": "yob", "width": 5}]
    coarse = apply_steps(fine, steps)
    plain = two_releases(fine, coarse)
    assert (plain.matched, plain.unmatched) == (0, 1)
    repeated = two_releases(fine, coarse, steps=steps)
    assert (repeated.matched, repeated.unmatched) == (1, 0)
    assert (repeated.first, repeated.joined) == (plain.first, plain.joined)
    blind = Adversary.of(fine, attributes=[])
    assert two_releases(fine, coarse, adversary=blind, steps=steps).matched == 0


def reference_codes(net):
    view = reference.views(net, Adversary.of(net), 4)
    return [list(dict.fromkeys(view)).index(one) for one in view]


@pytest.mark.parametrize(("people", "worst"), [(5, 1), (100, 1), (101, 2), (250, 3)])
def test_people_who_are_hidden_among_others_are_judged_one_by_one(people, worst):
    rng = np.random.default_rng(people)
    codes = rng.integers(0, 120, 300)
    some = rng.permutation(300)[:people]
    risk = sorted((1 / (codes == codes[v]).sum() for v in some), reverse=True)
    found = _of_some(codes, some)
    assert found.risk == pytest.approx(np.mean(risk))
    assert found.cardinality == len({codes[v] for v in some})
    assert found.unique == pytest.approx(np.mean([each == 1 for each in risk]))
    assert found.highest == risk[0]
    assert found.tail == pytest.approx(np.mean(risk[:worst]))


def test_releases_too_large_to_be_matched_are_measured_without(monkeypatch):
    schema = Schema.parse({"nodes": {"user": {"attributes": {"city": "exact"}}}, "links": []})
    months = [
        network_from_arrays(schema, {"user": {"id": [1, 2, 3, 4], "city": city}}, {})
        for city in (["a", "a", "b", "b"], ["a", "b", "a", "b"])
    ]
    found = two_releases(*months)
    assert found.matched is not None
    monkeypatch.setattr("telic.privacy.attacks.two_releases.MAX_PAIRS", 1)
    large = two_releases(*months)
    assert large.matched is None
    assert large.joined == found.joined


def test_of_a_few_users_nothing_is_known_for_certain():
    net = town(np.random.default_rng(0), 12)
    alike = replace(Adversary.of(net, links=[]), attributes={"user": {}})
    (row,) = measured_attack(net, net, adversary=alike, truth=np.arange(12)).rows
    assert (row["precision"], row["precision_low"]) == (0, 0)
    assert row["precision_high"] == pytest.approx(0.2425, abs=1e-4)
    one_vote = replace(
        net, nodes={"user": net.nodes["user"].set_column(1, "city", pa.array([0] * 12))}
    )
    assert inference(one_vote, "city").gains["row"] == pytest.approx((0, -0.14, 0.14), abs=1e-3)
