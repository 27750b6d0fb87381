import json
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telic.errors import InputError
from telic.hin import Network, Schema, network_from_arrays
from telic.privacy.adversary import Adversary
from telic.privacy.advice.advise import _released, advise
from telic.privacy.advice.coarsening_levels import levers
from telic.privacy.advice.release_search import ReleaseSearch
from telic.privacy.anonymisers.ids import randomise_ids
from telic.privacy.anonymisers.release_steps import COARSENINGS, apply_steps
from telic.privacy.attacks.auxiliary import Auxiliary
from telic.privacy.attacks.dehin import attack
from telic.privacy.attacks.score import read_truth, right
from telic.privacy.risk.limits import Limits
from telic.privacy.risk.risks import risks
from telic.privacy.risk.views import farthest

sys.path.insert(0, str(Path(__file__).parents[2] / "reference"))
import dehin_recursion as reference
from random_networks import random_network, random_schema

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
    nodes = {
        "id": np.arange(n),
        "yob": rng.integers(1950, 2000, n),
        "city": rng.choice(["a", "b", "c"], n),
    }
    links = {"mention": (source, target, rng.integers(1, 4, len(source)))}
    return network_from_arrays(SCHEMA, {"user": nodes}, links)


@pytest.mark.parametrize("limit", [0.05, 0.1, 0.25, 0.5, 0.9])
def test_no_release_that_meets_the_limit_keeps_more(network, limit):
    found = advise(network, Limits(risk=limit))
    assert found.proven
    release = apply_steps(network, found.steps)
    *_, last = risks(release, links=[[link.name for link in release.schema.links]])
    assert last.risk == found.after[-1].risk <= limit
    best = np.inf
    fields = levers(network, Adversary.of(network))
    for choice in product(*(lever.levels for lever in fields)):
        steps = [step for level in choice for step in level.steps]
        candidate = apply_steps(network, steps)
        names = [link.name for link in candidate.schema.links]
        *_, far = risks(candidate, links=[names])
        if far.risk <= limit:
            best = min(best, sum(level.loss for level in choice))
    whole = sum(lever.levels[-1].loss for lever in fields)
    assert found.loss == pytest.approx(best / whole)


def test_the_attack_confirms_the_advice(network):
    found = advise(network, Limits(risk=0.2))
    assert found.before[-1].risk > 0.2
    assert found.attacked <= found.after[-1].unique <= found.after[-1].risk <= 0.2
    everything = {name: added for name, _, _, added in found.effects}
    assert set(everything) == {"yob", "city", "mention"}
    assert all(added >= found.after[-1].risk for added in everything.values())


def test_weights_say_what_to_keep(network):
    assert advise(network, Limits(risk=0.7)).choice["mention"].startswith("as each node's")
    keep = advise(network, Limits(risk=0.7), weights={"mention": 50.0})
    assert keep.choice["mention"].startswith("strengths binned")
    with pytest.raises(InputError, match="'age' is neither"):
        advise(network, Limits(risk=0.2), weights={"age": 1.0})


def test_a_search_cut_short_still_meets_the_limit(network):
    found = advise(network, Limits(risk=0.1), max_tried=1)
    assert found.after[-1].risk <= 0.1


def test_limits_that_cannot_be_met_are_refused(network):
    with pytest.raises(InputError, match="cannot be met"):
        advise(network, Limits(risk=0.001))
    with pytest.raises(InputError, match="expected more than 0"):
        advise(network, Limits(risk=0))


@given(seed=st.integers(0, 10**6), limit=st.sampled_from([0.2, 0.35, 0.5, 0.8]))
@settings(max_examples=40, derandomize=True)
def test_what_is_promised_holds_on_networks_of_several_types(seed, limit):
    rng = np.random.default_rng(seed)
    network = random_network(rng, random_schema(rng), int(rng.integers(5, 14)), density=0.2)
    found = advise(network, Limits(risk=limit), adversary=Adversary.of(network, node_type="user"))
    # What an intruder sees of the release is taken anew from the release, not from the advice.
    coarse = apply_steps(network, found.steps, node_type="user")
    release, key = randomise_ids(
        coarse, seed=seed, node_type="user", public=[k for k in network.schema.nodes if k != "user"]
    )
    release.validate()
    seen = Adversary.of(release, node_type="user")
    view = reference.views(release, seen, network.size("user"))
    assert len(set(view)) / len(view) == pytest.approx(found.after[-1].risk)
    assert found.after[-1].risk <= limit
    known = apply_steps(network, found.steps, only=COARSENINGS, node_type="user")
    truth = read_truth(key, known, release, "user")
    for intruder in (seen, seen.exactly()):
        result = attack(Auxiliary(known, intruder), release)
        sets = reference.candidate_sets(known, release, intruder, len(result.sizes) - 1)
        by_hand = np.mean([one == {t} for one, t in zip(sets, truth, strict=True)])
        hits = right(result, truth, len(result.sizes) - 1)
        assert hits.mean() == by_hand <= found.after[-1].unique <= limit
    assert found.attacked == hits.mean()


@given(seed=st.integers(0, 10**6))
@settings(max_examples=40, derandomize=True)
def test_every_release_is_judged_as_if_it_were_made(seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng, random_schema(rng), int(rng.integers(5, 16)), density=0.1)
    far = None if rng.random() < 0.6 else int(rng.integers(0, 3))
    adversary = Adversary.of(
        network, node_type="user", distance=far, in_links=bool(rng.random() < 0.8)
    )
    fields = levers(network, adversary)
    search = ReleaseSearch(network, adversary, fields, Limits(risk=1.0), lambda _: None)
    for _ in range(8):
        choice = tuple(int(rng.integers(len(field.levels))) for field in fields)
        steps = [step for level in search.levels(choice) for step in level.steps]
        release, seen = _released(network, adversary, steps)
        *_, last = risks(release, seen, links=[list(seen.links)])
        assert search.measures(choice)[:5] == (
            last.risk,
            last.cardinality,
            last.unique,
            last.highest,
            last.tail,
        )


@given(seed=st.integers(0, 10**6))
@settings(max_examples=30, derandomize=True)
def test_those_who_look_alike_have_the_same_candidates(seed):
    rng = np.random.default_rng(seed)
    schema = random_schema(rng)
    target = random_network(rng, schema, int(rng.integers(4, 14)), density=0.1)
    known = random_network(rng, schema, int(rng.integers(4, 14)), density=0.3)
    adversary = Adversary.of(target, node_type="user", distance=3)
    alike = farthest(target, adversary)
    plain = attack(Auxiliary(known, adversary), target)
    once = attack(Auxiliary(known, adversary), target, alike=alike)
    assert once.sizes.tolist() == plain.sizes.tolist()
    for t in range(target.size("user")):
        assert once.candidates(t, 3).tolist() == plain.candidates(t, 3).tolist()


def test_films_are_left_out_or_made_nameless_before_the_promise_is_given():
    rng = np.random.default_rng(1)
    schema = Schema.parse(
        {
            "nodes": {"user": {"attributes": {"country": "exact"}}, "film": {}},
            "links": [{"name": "saw", "source": "user", "target": "film"}],
        }
    )
    nodes = {
        "user": {"id": np.arange(200), "country": np.arange(200) % 3},
        "film": {"id": np.arange(4)},
    }
    seen = rng.integers(0, 4, 200)
    network = network_from_arrays(schema, nodes, {"saw": (np.arange(200), seen)})
    adversary = Adversary.of(network, node_type="user")
    assert advise(network, Limits(risk=0.06), adversary=adversary).steps == []
    found = advise(network, Limits(risk=0.02), adversary=adversary)
    assert found.choice == {
        "country": "as it is",
        "ids of film": "as they are",
        "saw": "not published",
    }
    keep = advise(network, Limits(risk=0.03), adversary=adversary, weights={"saw": 9.0})
    assert keep.choice["saw"] == "as it is"
    blind = replace(adversary, known_ids=())
    assert "ids of film" not in advise(network, Limits(risk=0.02), adversary=blind).choice


def test_work_is_the_nodes_and_links_looked_at_and_ends_the_search(network, monkeypatch):
    fields = levers(network, Adversary.of(network))
    search = ReleaseSearch(network, Adversary.of(network), fields, Limits(risk=1.0), lambda _: None)
    top = tuple(len(field.levels) - 1 for field in fields)
    search.measures(top)  # nothing is published: no links are looked at
    assert (search.work, search.tried) == (60, 1)
    search.measures((0,) * len(fields))
    *_, last = risks(network)
    both_ways = 2 * len(network.links["mention"])
    assert search.work == 60 + 60 + (last.distance + 1) * (60 + both_ways)
    assert search.measures(top).cardinality == 1
    assert search.tried == 2  # nothing is judged twice
    monkeypatch.setattr(sys.modules[ReleaseSearch.__module__], "MAX_WORK", 100)
    found = advise(network, Limits(risk=0.1))
    assert not found.proven
    assert found.after[-1].risk <= 0.1


def test_an_attack_too_large_to_run_is_said_to_be_so(network, monkeypatch):
    monkeypatch.setattr(sys.modules["telic.privacy.advice.advise"], "MAX_PAIRS", 10)
    found = advise(network, Limits(risk=0.5))
    assert found.attacked is None
    assert found.after[-1].unique <= 0.5


def test_numbers_of_links_stand_between_links_and_nothing(network):
    link = levers(network, Adversary.of(network))[-1]
    losses = [level.loss for level in link.levels]
    assert losses == sorted(losses)
    counts = [level for level in link.levels if level.counts is not None]
    assert len(counts) == 3
    release = apply_steps(network, counts[0].steps)
    release.validate()
    degree = network.links["mention"].out_degree
    shown = release.nodes["user"].column("mention count").to_numpy()
    assert (shown <= degree).all()
    assert (degree < 2 * np.maximum(shown, 0.5)).all()
    assert "mention" not in release.links
    # With few links to follow, counts would tell more than the links themselves.
    near = levers(network, Adversary.of(network, distance=1))[-1]
    assert all(level.counts is None for level in near.levels)
    with pytest.raises(InputError, match="'mention count' of 'user' exists already"):
        apply_steps(
            Network(network.schema, {"user": release.nodes["user"]}, network.links),
            counts[0].steps,
        )


def test_links_are_not_counted_where_their_count_is_an_attribute_already(network):
    table = network.nodes["user"]
    counts = pa.array([0] * len(table))
    network = Network(
        network.schema, {"user": table.append_column("mention count", counts)}, network.links
    )
    link = levers(network, Adversary.of(network))[-1]
    assert all(level.counts is None for level in link.levels)
    for limit in (0.1, 0.3, 0.5):
        assert advise(network, Limits(risk=limit)).after[-1].risk <= limit


@pytest.mark.parametrize(
    "odd",
    [
        [np.inf],
        [-np.inf, None],
        [np.inf, -np.inf, np.nan],
        [1e308, -1e308],
        [1e25],
        [2**63 - 1, -(2**63)],
    ],
)
def test_values_far_from_all_others_leave_the_rest_to_be_coarsened(odd):
    schema = Schema.parse({"nodes": {"user": {"attributes": {"x": "exact"}}}, "links": []})
    values = odd + [5, 6, 7, 8] * 3
    nodes = {"id": range(len(values)), "x": values}
    network = network_from_arrays(schema, {"user": nodes}, {})
    advice = advise(network, Limits(risk=0.7))
    assert advice.after[-1].risk <= 0.7


def test_infinite_values_change_no_width():
    schema = Schema.parse({"nodes": {"user": {"attributes": {"x": "exact"}}}, "links": []})
    labels = []
    for odd in ([], [np.inf], [-np.inf, np.nan]):
        values = [*map(float, range(9)), *odd]
        nodes = {"id": range(len(values)), "x": values}
        network = network_from_arrays(schema, {"user": nodes}, {})
        (lever,) = levers(network, Adversary.of(network))
        labels.append([level.label for level in lever.levels])
    assert len(labels[0]) > 2
    assert labels[0] == labels[1] == labels[2]


def test_a_search_without_time_still_keeps_its_limits_and_goes_on_later(network, tmp_path):
    kept = tmp_path / "judged.json"
    short = advise(network, Limits(risk=0.2), seconds=0, resume=kept)
    assert short.after[-1].risk <= 0.2
    assert not short.proven
    longer = advise(network, Limits(risk=0.2), resume=kept)
    fresh = advise(network, Limits(risk=0.2))
    assert longer.proven
    assert longer.steps == fresh.steps
    told = []
    again = advise(network, Limits(risk=0.2), resume=kept, progress=told.append)
    assert again.steps == fresh.steps
    assert not any("judged" in line for line in told)
    with pytest.raises(InputError, match="another network, or another intruder"):
        advise(network, Limits(risk=0.2), resume=kept, adversary=Adversary.of(network, distance=2))
    kept.write_text("[]")
    with pytest.raises(InputError, match="does not hold judged"):
        advise(network, Limits(risk=0.2), resume=kept)


def test_what_was_judged_before_does_not_count_against_the_releases_to_judge(network, tmp_path):
    kept, limits = tmp_path / "judged.json", Limits(risk=0.2)
    fresh = advise(network, limits)
    advise(network, Limits(risk=0.9), resume=kept)
    assert len(json.loads(kept.read_text())["judged"]) > fresh.tried
    resumed = advise(network, limits, resume=kept, max_tried=fresh.tried)
    assert resumed.proven
    assert resumed.steps == fresh.steps


def test_a_search_that_is_interrupted_keeps_what_was_judged(network, tmp_path):
    kept, limits = tmp_path / "judged.json", Limits(risk=0.2)

    def interrupt(line):
        if line.startswith("5 releases"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        advise(network, limits, resume=kept, progress=interrupt)
    assert len(json.loads(kept.read_text())["judged"]) == 5
    assert advise(network, limits, resume=kept).steps == advise(network, limits).steps


def test_what_was_judged_is_not_taken_for_a_network_of_more_people(tmp_path):
    schema = Schema.parse(
        {
            "nodes": {"item": {}, "user": {}},
            "links": [{"name": "tags", "source": "item", "target": "user"}],
        }
    )
    kept, links = tmp_path / "judged.json", {"tags": ([1, 2, 2], [0, 1, 2])}
    for users in (4, 40):  # those who are not tagged show nothing
        nodes = {"item": {"id": [1, 2]}, "user": {"id": range(users)}}
        network = network_from_arrays(schema, nodes, links)
        seen = {"adversary": Adversary.of(network, node_type="user"), "resume": kept}
        if users == 40:
            with pytest.raises(InputError, match="another network"):
                advise(network, Limits(risk=0.9), **seen)
        else:
            advise(network, Limits(risk=0.9), **seen)
