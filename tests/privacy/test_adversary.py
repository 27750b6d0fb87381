"""One adversary: what risk counts, what the attack finds, and what the words say."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telic.errors import InputError
from telic.hin import Network, Rule, Schema, network_from_arrays
from telic.privacy import Adversary, Auxiliary, LinkErrors, attack, risks
from telic.privacy.attacks.score import right
from telic.privacy.merged_types import flatten
from telic.privacy.risk.views import Neighbourhood, _Classes, count_kinds, layers_of, profiles

sys.path.insert(0, str(Path(__file__).parent.parent / "reference"))
import dehin_recursion as reference
from random_networks import random_network, random_schema


def options(rng, network):
    others = [name for name in network.schema.nodes if name != "user"]
    named = [link.name for link in network.schema.links]
    return {
        "node_type": "user",
        "in_links": bool(rng.random() < 0.7),
        "joint": bool(rng.random() < 0.7),
        "known_ids": None if rng.random() < 0.7 else [o for o in others if rng.random() < 0.5],
        "links": None if rng.random() < 0.7 else [n for n in named if rng.random() < 0.6],
    }


@given(seed=st.integers(0, 10**6))
@settings(max_examples=60, derandomize=True)
def test_candidate_sets_are_those_of_the_recursion_over_several_types(seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng, random_schema(rng), int(rng.integers(2, 8)))
    target = network
    if rng.random() < 0.5:  # of another moment: links and strengths of its own
        target = random_network(rng, network.schema, int(rng.integers(2, 8)), density=0.15)
    adversary = Adversary.of(target, **options(rng, network))
    result = attack(Auxiliary(network, adversary), target, distance=3)
    for distance in range(4):
        expected = reference.candidate_sets(network, target, adversary, distance)
        found = [set(result.candidates(t, distance).tolist()) for t in range(target.size("user"))]
        assert found == expected


@given(seed=st.integers(0, 10**6))
@settings(max_examples=80, derandomize=True)
def test_candidate_sets_with_errors_are_those_of_every_way_to_match(seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng, random_schema(rng), int(rng.integers(2, 8)))
    target = network
    if rng.random() < 0.5:
        target = random_network(rng, network.schema, int(rng.integers(2, 8)), density=0.15)
    adversary = Adversary.of(target, **options(rng, network))
    errors = LinkErrors(*rng.choice([0.0, 0.25, 0.34, 0.5], 2), rng.choice([0.0, 0.25, 0.5, 1.0]))
    result = attack(Auxiliary(network, adversary), target, distance=2, errors=errors)
    for distance in range(3):
        expected = reference.candidate_sets(network, target, adversary, distance, errors=errors)
        found = [set(result.candidates(t, distance).tolist()) for t in range(target.size("user"))]
        assert found == expected


@given(seed=st.integers(0, 10**6))
@settings(max_examples=60, derandomize=True)
def test_without_any_error_candidates_are_those_who_look_alike(seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng, random_schema(rng, strict=True), int(rng.integers(2, 12)))
    adversary = Adversary.of(network, **{**options(rng, network), "joint": False}, distance=3)
    nothing = LinkErrors(missing=0)  # added and changed are 0 already
    result = attack(Auxiliary(network, adversary), network, distance=3, errors=nothing)
    view = reference.views(network, adversary, 3)
    assert result.sizes[3].tolist() == [view.count(one) for one in view]


@given(seed=st.integers(0, 10**6))
@settings(max_examples=60, derandomize=True)
def test_risk_counts_the_views_that_differ(seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng, random_schema(rng), int(rng.integers(2, 12)), density=0.2)
    adversary = Adversary.of(network, **options(rng, network), distance=3)
    for found in risks(network, adversary):
        view = reference.views(network, adversary.with_links(found.links), found.distance)
        assert found.group_sizes().tolist() == [view.count(one) for one in view]
        assert found.risk == pytest.approx(len(set(view)) / len(view))


@given(seed=st.integers(0, 10**6))
@settings(max_examples=40, derandomize=True)
def test_no_attack_finds_somebody_who_is_not_alone(seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng, random_schema(rng), int(rng.integers(2, 12)), density=0.2)
    adversary = Adversary.of(network, node_type="user")
    *_, last = risks(network, adversary, links=[list(adversary.links)])
    alone = last.group_sizes() == 1
    for seen in (adversary, adversary.exactly()):
        for eliminate in (False, True):
            result = attack(Auxiliary(network, seen), network, eliminate=eliminate)
            for distance in range(len(result.sizes)):
                found = right(result, np.arange(len(alone)), distance)
                assert not (found & ~alone).any()


@given(seed=st.integers(0, 10**6))
@settings(max_examples=60, derandomize=True)
def test_the_slow_way_of_splitting_tells_the_same_apart_step_by_step(seed):
    rng = np.random.default_rng(seed)
    network = random_network(
        rng, random_schema(rng), int(rng.integers(2, 60)), density=float(rng.choice([0.02, 0.08]))
    )
    adversary = Adversary.of(network, **options(rng, network))
    flat = flatten(network, adversary)
    layers = [
        layer
        for number, (links, _) in enumerate(flat.links)
        for layer in layers_of(number, links, flat.size, adversary.in_links)
    ]
    around = Neighbourhood(layers, flat.size, adversary.joint)
    hashes = profiles(flat)
    if rng.random() < 0.5:  # else some of a class have no neighbour who could tell them anything
        hashes = around.step(hashes, hashes)
    classes = _Classes(hashes, around)
    for _ in range(6):
        before, hashes = hashes, around.step(profiles(flat), hashes)
        assert classes.split() == (count_kinds(hashes) > count_kinds(before))
        assert classes.count == count_kinds(hashes) == len(set(classes.number.tolist()))
        both = np.stack([hashes, classes.number.astype(np.uint64)])
        assert len(np.unique(both, axis=1).T) == count_kinds(hashes)
        sizes = np.bincount(classes.number, minlength=len(hashes))
        assert (sizes == classes.sizes).all()


def films(rng):
    """300 users who have seen 8 of 500 films each, all with the same profile."""
    schema = Schema.parse(
        {
            "nodes": {"user": {"attributes": {"country": "exact"}}, "film": {}},
            "links": [{"name": "saw", "source": "user", "target": "film"}],
        }
    )
    seen = np.concatenate([rng.choice(500, 8, replace=False) for _ in range(300)])
    nodes = {
        "user": {"id": np.arange(300), "country": np.arange(300) % 2},
        "film": {"id": 1000 + np.arange(500)},
    }
    return network_from_arrays(schema, nodes, {"saw": (np.repeat(np.arange(300), 8), 1000 + seen)})


def test_links_to_films_give_everybody_away():
    network = films(np.random.default_rng(0))
    adversary = Adversary.of(network, node_type="user")
    rows = list(risks(network, adversary))
    assert [round(row.risk, 4) for row in rows[:2]] == [round(2 / 300, 4), 1]
    result = attack(Auxiliary(network, adversary), network)
    assert right(result, np.arange(300), 1).all()
    # Films whose ids tell nothing still differ in how often they were seen.
    blind = Adversary.of(network, node_type="user", known_ids=[])
    rows = list(risks(network, blind))
    assert rows[1].risk == rows[0].risk < 0.01
    assert rows[-1].risk == 1


def cinema(attribute):
    """People with one attribute, and the films that they saw."""
    nodes = {
        "user": {"attributes": {attribute: "exact"}},
        "film": {"attributes": {"year": "exact"}},
    }
    saw = {"name": "saw", "source": "user", "target": "film"}
    schema = Schema.parse({"nodes": nodes, "links": [saw]})
    people = {"id": [1, 2, 3], attribute: ["x", "x", "y"]}
    films = {"id": [1, 2], "year": [1980, 1990]}
    links = {"saw": ([1, 2, 3], [1, 2, 2])}
    return network_from_arrays(schema, {"user": people, "film": films}, links)


@pytest.mark.parametrize("name", ["node type", "film.id", "city"])
def test_an_attribute_may_have_any_name(name):
    network = cinema(name)
    prepared = Auxiliary(network, Adversary.of(network, node_type="user"))
    assert attack(prepared, network).sizes[:2].tolist() == [[2, 2, 1], [1, 1, 1]]


def test_two_attributes_of_one_name_are_refused():
    with pytest.raises(InputError, match=r"'film\.year' may be one of 'user' or of 'film'"):
        Adversary.of(cinema("film.year"), node_type="user")


def test_words_name_all_that_is_seen_and_what_is_not():
    network = films(np.random.default_rng(1))
    everything = Adversary.of(network, node_type="user")
    assert everything.unseen == ()
    said = everything.words()
    for words in (
        "country",
        "In-links".lower(),
        "saw",
        "Of every film: ids",
        "until nothing changes",
    ):
        assert words in said
    less = Adversary.of(
        network, node_type="user", attributes=[], links=[], known_ids=[], in_links=False
    )
    assert "no attribute" in less.words()
    assert "unknown to the intruder: country, saw links, ids of film" in less.words()
    # Ids that were replaced are not published, so nothing is assumed of them.
    hidden = replace(network, schema=replace(network.schema, pseudonyms=frozenset({"film"})))
    assert Adversary.of(hidden, node_type="user").unseen == ()
    near = Adversary.of(network, node_type="user", in_links=False, joint=False, distance=1)
    assert "out-links alone, of type saw" in near.words()
    assert "1 link far" in near.words()
    nicks = network.nodes["user"].append_column("nick", pa.array(["x"] * network.size("user")))
    nodes = {**network.nodes, "user": nicks}
    named = Network(network.schema, nodes, network.links)  # by a column that the schema leaves out
    assert "nick" not in Adversary.of(named, node_type="user").attributes["user"]
    asked = Adversary.of(named, node_type="user", attributes=["nick"]).attributes["user"]
    assert asked["nick"] == Rule("exact")
    grown = Adversary.of(network, node_type="user", rules={"country": "at_least"})
    assert "country (may have grown)" in grown.words()
    assert grown.exactly().attributes["user"]["country"] == Rule("exact")


def test_what_the_schema_calls_pseudonyms_is_no_known_id():
    network = films(np.random.default_rng(2))
    schema = Schema(network.schema.nodes, network.schema.links, frozenset(["film"]))
    assert Schema.parse(schema.dump()) == schema
    hidden = Network(schema, network.nodes, network.links)
    assert Adversary.of(network, node_type="user").known_ids == ("film",)
    assert Adversary.of(hidden, node_type="user").known_ids == ()
    assert "Of every film: only how it is linked" in Adversary.of(hidden, node_type="user").words()


def test_what_is_not_there_is_named():
    network = films(np.random.default_rng(3))
    with pytest.raises(InputError, match="Say which one is to be protected"):
        Adversary.of(network)
    for wrong, message in [
        ({"attributes": ["age"]}, "attribute 'age' does not exist"),
        ({"links": ["like"]}, "no link type is called 'like'"),
        ({"known_ids": ["user"]}, "known ids: 'user' is no other node type"),
        ({"distance": -1}, "distance is -1"),
        ({"rules": {"saw": "exact"}}, "'saw' has no strength"),
        ({"rules": {"age": "exact"}}, "neither an attribute nor a link type"),
    ]:
        with pytest.raises(InputError, match=message):
            Adversary.of(network, node_type="user", **wrong)
    with pytest.raises(InputError, match="'like' is not among those seen"):
        next(risks(network, Adversary.of(network, node_type="user"), links=[["like"]]))


def test_the_farthest_distance_is_where_nothing_changes_any_more():
    schema = Schema.parse(
        {"nodes": {"user": {}}, "links": [{"name": "follow", "source": "user", "target": "user"}]}
    )
    path = network_from_arrays(
        schema, {"user": {"id": range(15)}}, {"follow": (range(14), range(1, 15))}
    )
    # Each step tells one more user from the rest, counted from the end of the path.
    rows = list(risks(path, Adversary.of(path, in_links=False)))
    assert [row.cardinality for row in rows] == [*range(1, 16), 15]
    longer = network_from_arrays(
        schema, {"user": {"id": range(400)}}, {"follow": (range(399), range(1, 400))}
    )
    *rows, last = risks(longer, Adversary.of(longer, in_links=False))
    assert [row.cardinality for row in rows] == [*range(1, 17)]
    assert (last.distance, last.cardinality) == (400, 400)
    sets = attack(Auxiliary(path, Adversary.of(path).exactly()), path)
    assert (sets.sizes[-1] == 1).all()


def test_one_friend_in_two_ways_is_not_two_friends():
    schema = Schema.parse(
        {
            "nodes": {"user": {}},
            "links": [
                {"name": "follow", "source": "user", "target": "user"},
                {"name": "mention", "source": "user", "target": "user"},
            ],
        }
    )
    # 0 follows and mentions 2; 1 follows 3 and mentions 4; 2, 3 and 4 have only that.
    links = {"follow": ([0, 1], [2, 3]), "mention": ([0, 1], [2, 4])}
    network = network_from_arrays(schema, {"user": {"id": range(5)}}, links)
    near = {"distance": 1, "in_links": False}
    for adversary, told_apart in [
        (Adversary.of(network, joint=False, **near), False),
        (Adversary.of(network, **near), True),
    ]:
        *_, last = risks(network, adversary, links=[["follow", "mention"]])
        assert (last.group_sizes()[0] == 1) == told_apart
        assert ("whether several links lead to the same node" in adversary.words()) == told_apart


def test_columns_that_the_schema_does_not_name_are_told_of():
    network = films(np.random.default_rng(1))
    nodes = {
        kind: table.append_column(f"{kind}_note", pa.array([str(i) for i in range(len(table))]))
        for kind, table in network.nodes.items()
    }
    noted = replace(network, nodes=nodes)
    adversary = Adversary.of(noted, node_type="user")
    assert adversary.unseen == ("user_note", "film.film_note")
    assert adversary.attributes == Adversary.of(network, node_type="user").attributes
    seen = Adversary.of(noted, node_type="user", attributes=["film.film_note"])
    assert seen.attributes["film"] == {"film_note": Rule("exact")}
