import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from telic.errors import InputError
from telic.hin import LinkType, Network, Schema, induced, network_from_arrays
from telic.privacy.adversary import Adversary
from telic.privacy.anonymisers.perturb_links import perturb_links
from telic.privacy.anonymisers.random_links import kept_links
from telic.privacy.attacks.auxiliary import Auxiliary
from telic.privacy.attacks.dehin import _rarest_first, attack
from telic.privacy.attacks.link_errors import LinkErrors
from telic.privacy.attacks.score import same_ids, scores
from telic.privacy.risk.risks import risks

sys.path.insert(0, str(Path(__file__).parents[2] / "reference"))
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


def book(target, **options):
    """The book's adversary: out-links, link type by link type."""
    return Adversary.of(target, **{"in_links": False, "joint": False, **options})


def found(result, distance):
    return [set(result.candidates(t, distance).tolist()) for t in range(result.sizes.shape[1])]


OVERRIDES = [
    {},
    {"tweets": "ignore"},
    {"yob": "exact", "mention": "exact"},
    {"gender": "ignore", "yob": "at_most", "tweets": "ignore", "like": "at_most"},
    {"gender": "ignore", "yob": "ignore", "tweets": "ignore"},
]


def test_each_targets_neighbours_stand_in_order_of_their_candidates():
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 5, (3, 40))  # three types of links
    ends = np.hstack([np.zeros((3, 1), int), counts.cumsum(axis=1)])
    ends += np.array([0, *ends[:-1, -1].cumsum()])[:, None]
    sizes, friends = rng.integers(0, 4, 40), rng.integers(0, 40, counts.sum())
    row = np.repeat(np.arange(120), counts.ravel())
    order = _rarest_first(ends, friends, sizes)
    np.testing.assert_array_equal(order, np.lexsort((sizes[friends], row)))
    assert not len(_rarest_first(np.zeros((1, 41), int), friends[:0], sizes))


@pytest.mark.parametrize("block", range(5))
def test_candidate_sets_are_those_of_the_literal_recursion(block):
    rng = np.random.default_rng(block)
    for number in range(160):
        network = random_network(rng, int(rng.integers(2, 9)))
        target = earlier(rng, network) if number % 2 else network
        rules = book(target, rules=OVERRIDES[number % len(OVERRIDES)])
        result = attack(Auxiliary(network, rules), target, distance=3)
        for distance in range(4):
            expected = reference.candidate_sets(network, target, rules, distance)
            assert found(result, distance) == expected


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("block", range(3))
def test_with_errors_they_are_those_of_every_way_to_match(block, joint):
    rng = np.random.default_rng(100 + block)
    differ = 0
    for number in range(40):
        network = random_network(rng, int(rng.integers(3, 9)), density=0.5)
        target = earlier(rng, network) if number % 2 else network
        rules = book(target, joint=joint, rules=OVERRIDES[1 + number % 3 * 2 % 4])
        shares = rng.choice([0.0, 0.2, 0.34, 0.5], 3)
        errors = LinkErrors(shares[0], shares[1], shares[2] if number % 3 else 1.0)
        prepared = Auxiliary(network, rules)
        result = attack(prepared, target, distance=2, errors=errors)
        differ += (result.sizes != attack(prepared, target, distance=2).sizes).any()
        for distance in range(3):
            expected = reference.candidate_sets(network, target, rules, distance, errors=errors)
            assert found(result, distance) == expected
    assert differ > 10


def around_hubs(rng, n=48):
    """A network of few links, but of three nodes who link to nearly everyone."""
    links = {}
    for link in SCHEMA.links:
        wanted = rng.random((n, n)) < np.where(np.arange(n) < 3, 0.9, 0.04)[:, None]
        source, target = np.nonzero(wanted & ~np.eye(n, dtype=bool))
        links[link.name] = (source, target, rng.integers(1, 4, len(source)))
    nodes = {
        "id": np.arange(n),
        "gender": pa.array(rng.choice(["f", "m"], n)),
        "yob": rng.integers(0, 24, n),
        "tweets": rng.integers(0, 3, n),
    }
    return network_from_arrays(SCHEMA, {"user": nodes}, links)


def test_neighbours_among_many_are_found_a_few_pairs_at_a_time(monkeypatch):
    rng = np.random.default_rng(13)
    for grown in (False, True):
        network = around_hubs(rng)
        target = earlier(rng, network) if grown else network
        rules = book(target, rules={"tweets": "ignore"})
        expected = [reference.candidate_sets(network, target, rules, n) for n in range(3)]
        for pairs in (10**6, 40):
            monkeypatch.setattr("telic.privacy.attacks.dehin_in_pieces.BATCH", pairs)
            result = attack(Auxiliary(network, rules), target, distance=2)
            assert [found(result, n) for n in range(3)] == expected


@pytest.mark.parametrize(
    ("values", "matches"),
    [
        ([10], True),
        ([10, 20], True),
        ([10, 10], False),  # both are the one user of value 10, or nobody
        ([15, 10], True),
        ([15, 25, 15], True),  # the second makes room for the third
        ([15, 15, 15], False),
        ([10, 20, 15], False),
        ([305], True),  # the last alone
        ([306], False),
    ],
)
def test_each_neighbour_among_many_has_a_place_of_its_own(values, matches):
    near = {"tolerance": 5}
    schema = Schema.parse(
        {
            "nodes": {"user": {"attributes": {"x": near, "y": near}}},
            "links": [{"name": "f", "source": "user", "target": "user"}],
        }
    )

    def linking(values):
        nodes = {"id": range(1 + len(values)), "x": [-99, *values], "y": [0] * (1 + len(values))}
        ends = [0] * len(values), range(1, 1 + len(values))
        return network_from_arrays(schema, {"user": nodes}, {"f": ends})

    known, release = linking(range(10, 310, 10)), linking(values)
    at = attack(Auxiliary(known, book(release)), release, distance=1)
    assert at.candidates(0, 1).tolist() == [0] * matches


def with_reversed(network):
    links = dict(network.links)
    types = list(SCHEMA.links)
    for link in SCHEMA.links:
        links[f"to-{link.name}"] = network.links[link.name].reverse(network.size("user"))
        types.append(LinkType(f"to-{link.name}", "user", "user", link.strength))
    return Network(Schema(SCHEMA.nodes, tuple(types)), network.nodes, links)


def test_in_links_are_the_out_links_of_the_reversed_network():
    rng = np.random.default_rng(7)
    for _ in range(60):
        network = random_network(rng, int(rng.integers(3, 9)))
        target = earlier(rng, network)
        result = attack(Auxiliary(network, book(target, in_links=True)), target, distance=2)
        both = with_reversed(network), with_reversed(target)
        for distance in range(3):
            expected = reference.candidate_sets(*both, book(both[1]), distance)
            assert found(result, distance) == expected


def test_joint_matching_takes_one_person_per_neighbour():
    rng = np.random.default_rng(8)
    stronger = 0
    for _ in range(60):
        network = random_network(rng, int(rng.integers(3, 9)), density=0.5)
        target = earlier(rng, network)
        rules = {"gender": "ignore", "yob": "ignore"}
        together, apart = (book(target, rules=rules, joint=joint) for joint in (True, False))
        result = attack(Auxiliary(network, together), target, distance=2)
        plain = attack(Auxiliary(network, apart), target, distance=2)
        stronger += int((result.sizes < plain.sizes).any())
        for distance in range(3):
            expected = reference.candidate_sets(network, target, together, distance)
            assert found(result, distance) == expected
    assert stronger


def test_eliminating_matched_users_keeps_the_truth_and_leaves_fewer():
    rng = np.random.default_rng(9)
    gained = 0
    for _ in range(60):
        network = random_network(rng, 8)
        target = earlier(rng, network)
        prepared = Auxiliary(network, book(target))
        plain = attack(prepared, target, distance=2)
        fewer = attack(prepared, target, distance=2, eliminate=True)
        truth = same_ids(network, target, "user")
        for distance in range(3):
            assert fewer.contains(truth, distance).all()
            assert (fewer.sizes[distance] <= plain.sizes[distance]).all()
        gained += int((fewer.sizes < plain.sizes).any())
    assert gained


def test_under_growth_the_truth_always_stays():
    rng = np.random.default_rng(10)
    for _ in range(40):
        network = random_network(rng, 9)
        target = earlier(rng, network)
        result = attack(Auxiliary(network, book(target)), target, distance=4)
        for score in scores(result, 9, same_ids(network, target, "user")):
            assert score.truth_kept == 1
            assert score.unique_wrong == score.empty == 0


def test_scores_keep_right_wrong_and_empty_apart():
    nodes = {"id": [1, 2, 3, 4], "yob": [1, 2, 3, 3]}
    schema = Schema.parse({"nodes": {"user": {"attributes": {"yob": "exact"}}}, "links": []})
    known = network_from_arrays(schema, {"user": nodes}, {})
    published = network_from_arrays(schema, {"user": {"id": [1, 9, 3, 4], "yob": [1, 2, 3, 8]}}, {})
    result = attack(Auxiliary(known, book(published)), published, distance=0)
    truth = same_ids(known, published, "user")
    assert truth.tolist() == [0, -1, 2, 3]
    (score,) = scores(result, 4, truth)
    assert (score.unique_right, score.unique_wrong, score.empty) == (0.25, 0.25, 0.25)
    assert score.right_of_unique == 0.5
    assert score.reduction_rate == 1 - (1 + 1 + 2 + 0) / 16


@pytest.mark.filterwarnings("error")
def test_where_nobody_is_known_nobody_is_found():
    schema = Schema.parse({"nodes": {"user": {}}, "links": []})
    nobody, people = (
        network_from_arrays(schema, {"user": {"id": pa.array(ids, pa.int64())}}, {})
        for ids in ([], [1, 2])
    )
    result = attack(Auxiliary(nobody, book(people)), people)
    (score,) = scores(result, 0, same_ids(nobody, people, "user"))
    assert (score.empty, score.reduction_rate) == (1, 1)


def test_a_value_or_link_type_that_is_not_there_is_named():
    rng = np.random.default_rng(11)
    network = random_network(rng, 5)
    with pytest.raises(InputError, match="neither an attribute nor a link type"):
        book(network, rules={"age": "exact"})
    with pytest.raises(InputError, match="'follow' has no strength"):
        book(network, rules={"follow": "exact"})
    with pytest.raises(InputError, match="compares numbers"):
        Auxiliary(network, book(network, rules={"gender": "at_least"}))
    rules = book(network)
    bare = network.nodes["user"].drop_columns(["gender"])
    with pytest.raises(InputError, match="'gender' is missing in the auxiliary"):
        Auxiliary(Network(SCHEMA, {"user": bare}, network.links), rules)
    prepared = Auxiliary(network, rules)
    with pytest.raises(InputError, match="was not prepared"):
        attack(prepared, network, distance=1, links=["like", "post"])
    with pytest.raises(InputError, match="distance is -1"):
        attack(prepared, network, distance=-1)
    with pytest.raises(InputError, match=r"added is 1\.1, expected at least 0 and at most 1"):
        LinkErrors(added=1.1)
    with pytest.raises(InputError, match="changed is 1, expected at least 0 and less than 1"):
        LinkErrors(changed=1)
    with pytest.raises(InputError, match="changed is nan"):
        LinkErrors(changed=float("nan"))
    with pytest.raises(InputError, match=r"missing is 1\.5, expected at least 0 and at most 1"):
        LinkErrors(missing=1.5)


def test_strengths_above_255_and_65535_are_compared_in_full():
    schema = Schema.parse(
        {
            "nodes": {"user": {}},
            "links": [{"name": "mention", "source": "user", "target": "user", "strength": "exact"}],
        }
    )
    strong = [300, 44, 65_580, 2**31 - 1]
    network = network_from_arrays(
        schema, {"user": {"id": range(8)}}, {"mention": (range(4), range(4, 8), strong)}
    )
    result = attack(Auxiliary(network, book(network)), network, distance=1)
    assert result.sizes[1, :4].tolist() == [1, 1, 1, 1]


def test_a_value_that_nobody_has_matches_nobody_in_whatever_column():
    schema = Schema.parse(
        {"nodes": {"user": {"attributes": {"a": "exact", "b": "exact", "c": "exact"}}}, "links": []}
    )
    known = {
        "id": range(6),
        "a": [0, 0, 1, 1, 2, 2],
        "b": [5, 6, 5, 6, 5, 6],
        "c": [1, 1, 1, 2, 2, 2],
    }
    auxiliary = network_from_arrays(schema, {"user": known}, {})
    for column in "abc":
        for row in range(6):
            profile = {name: [values[row]] for name, values in known.items()}
            profile[column] = [99]
            target = network_from_arrays(schema, {"user": profile}, {})
            result = attack(Auxiliary(auxiliary, book(target)), target, distance=0)
            assert result.sizes.tolist() == [[0]]


@pytest.mark.parametrize("values", [[0.0, np.inf, -np.inf], [0.0, np.inf, -np.inf, None]])
@pytest.mark.parametrize("rule", ["exact", "at_least", "at_most", {"tolerance": 1}])
def test_an_infinite_number_matches_itself(values, rule):
    schema = Schema.parse({"nodes": {"user": {"attributes": {"x": rule}}}, "links": []})
    nodes = {"id": range(len(values)), "x": values}
    network = network_from_arrays(schema, {"user": nodes}, {})
    found = attack(Auxiliary(network, Adversary.of(network)), network)
    assert found.contains(np.arange(len(values)), 0).all()


@given(
    tenths=st.lists(st.integers(-3000, 3000), min_size=2, max_size=8),
    known=st.integers(-3000, 3000),
    width=st.sampled_from([1, 2, 3, 7, 10, 25]),
    scale=st.sampled_from([1, 10, 100]),
    kind=st.sampled_from([pa.float64(), pa.float32()]),
)
def test_a_tolerance_counts_decimals_as_they_are_written(tenths, known, width, scale, kind):
    rule = {"tolerance": width / scale}
    schema = Schema.parse({"nodes": {"user": {"attributes": {"x": rule}}}, "links": []})
    tenths = [*tenths, known - width, known + width]
    numbers = [tenth / scale for tenth in tenths]
    target, auxiliary = (
        network_from_arrays(schema, {"user": {"id": range(len(x)), "x": pa.array(x, kind)}}, {})
        for x in (numbers, [known / scale])
    )
    found = attack(Auxiliary(auxiliary, Adversary.of(target)), target, distance=0)
    assert found.sizes[0].tolist() == [int(abs(known - tenth) <= width) for tenth in tenths]


@pytest.mark.parametrize("width", [0.5, 1, 1.5])
def test_whole_numbers_are_within_a_tolerance_or_not(width):
    known, shifts = 10**15, range(-3, 4)
    schema = Schema.parse(
        {"nodes": {"user": {"attributes": {"x": {"tolerance": width}}}}, "links": []}
    )
    target, auxiliary = (
        network_from_arrays(schema, {"user": {"id": range(len(x)), "x": x}}, {})
        for x in ([known + shift for shift in shifts], [known])
    )
    found = attack(Auxiliary(auxiliary, Adversary.of(target)), target, distance=0)
    assert found.sizes[0].tolist() == [int(abs(shift) <= width) for shift in shifts]
    # 7 is within 0.1 of 7.1.
    target, auxiliary = (
        network_from_arrays(
            Schema.parse(
                {"nodes": {"user": {"attributes": {"x": {"tolerance": 0.1}}}}, "links": []}
            ),
            {"user": {"id": [1], "x": [x]}},
            {},
        )
        for x in (7.0, 7.1)
    )
    found = attack(Auxiliary(auxiliary, Adversary.of(target)), target, distance=0)
    assert found.sizes.tolist() == [[1]]


def test_zero_is_zero_whatever_its_sign():
    schema = Schema.parse({"nodes": {"user": {"attributes": {"x": "exact"}}}, "links": []})
    minus, plus = (
        network_from_arrays(schema, {"user": {"id": [1], "x": [x]}}, {}) for x in (-0.0, 0.0)
    )
    for one, other in ((minus, plus), (plus, minus)):
        found = attack(Auxiliary(one, Adversary.of(other)), other, distance=0)
        assert found.sizes.tolist() == [[1]]
    both = network_from_arrays(schema, {"user": {"id": [1, 2], "x": [-0.0, 0.0]}}, {})
    assert [level.risk for level in risks(both)] == [0.5]


@pytest.mark.parametrize("rule", ["exact", "at_least"])
def test_a_column_of_missing_values_alone_matches_missing_ones(rule):
    schema = Schema.parse({"nodes": {"user": {"attributes": {"x": rule}}}, "links": []})
    empty, some = (
        network_from_arrays(schema, {"user": {"id": [1, 2], "x": x}}, {})
        for x in (pa.nulls(2), pa.array([None, 5]))
    )
    adversary = Adversary.of(some)
    assert attack(Auxiliary(empty, adversary), some).sizes.tolist() == [[2, 0]]
    assert attack(Auxiliary(some, adversary), empty).sizes.tolist() == [[1, 1]]


@pytest.mark.parametrize(
    ("known", "published", "matches"),
    [
        ([1, 2], ["01", "1"], [[], [0]]),  # "01" is not 1
        (["01", "1"], [1, 2], [[1], []]),
        ([True, False, None], [2, 0, None], [[], [1], [2]]),  # 2 is not true
        ([True, False, None], [None, None], [[2], [2]]),
        ([1, 2], [1.0, np.nan], [[0], []]),
    ],
)
def test_columns_of_other_types_match_by_the_same_value_alone(known, published, matches):
    schema = Schema.parse({"nodes": {"user": {"attributes": {"x": "exact"}}}, "links": []})
    auxiliary, target = (
        network_from_arrays(
            schema, {"user": {"id": range(len(x)), "x": pa.array(x, from_pandas=True)}}, {}
        )
        for x in (known, published)
    )
    found = attack(Auxiliary(auxiliary, Adversary.of(target)), target)
    assert [found.candidates(t, 0).tolist() for t in range(len(published))] == matches


def test_a_user_claimed_twice_is_settled_for_nobody():
    schema = Schema.parse({"nodes": {"user": {"attributes": {"x": "at_least"}}}, "links": []})
    auxiliary = network_from_arrays(schema, {"user": {"id": [1, 2, 3], "x": [1, 5, 9]}}, {})
    # The first two fit user 3 alone; the third fits 2 and 3, of whom nobody is struck.
    target = network_from_arrays(schema, {"user": {"id": [7, 8, 9], "x": [8, 9, 4]}}, {})
    result = attack(Auxiliary(auxiliary, book(target)), target, eliminate=True)
    assert [result.candidates(t, 0).tolist() for t in range(3)] == [[2], [2], [1, 2]]
    alone = network_from_arrays(schema, {"user": {"id": [7, 9], "x": [8, 4]}}, {})
    result = attack(Auxiliary(auxiliary, book(alone)), alone, eliminate=True)
    assert [result.candidates(t, 0).tolist() for t in range(2)] == [[2], [1]]


def test_links_that_do_not_fit_into_memory_together_are_refused(monkeypatch):
    network = random_network(np.random.default_rng(12), 6)
    monkeypatch.setattr("telic.privacy.attacks.auxiliary.MAX_JOINT", 100)
    with pytest.raises(InputError, match="--no-joint"):
        Auxiliary(network, Adversary.of(network))
    assert Auxiliary(network, book(network)).size == 6


def test_errors_are_tolerated_as_far_as_the_error_model_says():
    schema = Schema.parse(
        {
            "nodes": {"user": {"attributes": {"kind": "exact"}}},
            "links": [{"name": "like", "source": "user", "target": "user", "strength": "exact"}],
        }
    )
    nodes = {"id": np.arange(12), "kind": [0, 0, *range(1, 11)]}

    def liking(first):
        other = [(1, 7, 1), (1, 8, 1)]
        rows = [*((0, end, strength) for end, strength in first.items()), *other]
        return network_from_arrays(
            schema, {"user": nodes}, {"like": tuple(zip(*rows, strict=True))}
        )

    known = liking(dict.fromkeys(range(2, 7), 1))
    changed = {**dict.fromkeys(range(2, 6), 1), 6: 2}  # one strength of five
    added = {**dict.fromkeys(range(2, 6), 1), 9: 1}  # one link of five in place of another
    both = {**dict.fromkeys(range(2, 5), 1), 5: 2, 9: 1}
    fewer = dict.fromkeys(range(2, 6), 1)  # four of the five known links
    none = LinkErrors(missing=0)
    for first, enough, short in (
        (changed, {"changed": 0.2}, [{"changed": 0.19}, {"missing": 0.2}]),
        (changed, {"added": 0.2, "missing": 0.2}, [{"added": 0.2, "missing": 0.19}]),
        (added, {"added": 0.2, "missing": 0.2}, [{"added": 0.2}, {"changed": 0.5, "missing": 0.5}]),
        (both, {"added": 0.2, "changed": 0.2, "missing": 0.2}, [{"added": 0.2, "missing": 0.2}]),
        (fewer, {"missing": 0.2}, [{"missing": 0.19}, {"added": 0.5, "changed": 0.5}]),
    ):
        release = liking(first)
        prepared = Auxiliary(known, book(release))
        for budgets, expected in ((enough, [0]), *((few, []) for few in short)):
            at = attack(prepared, release, distance=1, errors=replace(none, **budgets))
            assert at.candidates(0, 1).tolist() == expected, budgets
        # DeHIN itself: links that are missing in the release are growth.
        plain = attack(prepared, release, distance=1).candidates(0, 1).tolist()
        assert plain == ([0] if first is fewer else [])


def test_changed_strengths_are_counted_over_the_whole_matching():
    schema = Schema.parse(
        {
            "nodes": {"user": {"attributes": {"kind": {"tolerance": 1}}}},
            "links": [{"name": "like", "source": "user", "target": "user", "strength": "exact"}],
        }
    )

    def liking(kinds, strengths):
        ids = np.arange(6)
        table = {"user": {"id": ids, "kind": [99, *kinds]}}
        return network_from_arrays(schema, table, {"like": (np.zeros(5, int), ids[1:], strengths)})

    # The first can only be 1, which fits the second; then that one is 3: two strengths change.
    # The third's strength changes too.
    release = liking([0, 2, 10, 20, 30], [5, 1, 5, 1, 1])
    known = liking([1, 3, 10, 20, 30], [1, 9, 1, 1, 1])
    prepared = Auxiliary(known, book(release))
    for errors, expected in (
        (LinkErrors(changed=0.6), [0]),
        (LinkErrors(changed=0.4), []),
        (LinkErrors(added=0.2, changed=0.2), [0]),
        (LinkErrors(added=0.2), []),
    ):
        at = attack(prepared, release, distance=1, errors=errors)
        assert at.candidates(0, 1).tolist() == expected


def test_a_share_of_links_is_rounded_down_as_it_is_written():
    schema = Schema({"user": {}}, (LinkType("follow", "user", "user"),))
    nodes = {"user": {"id": np.arange(102)}}
    known = network_from_arrays(schema, nodes, {"follow": (np.zeros(71, int), np.arange(1, 72))})
    release = network_from_arrays(
        schema, nodes, {"follow": (np.zeros(100, int), np.arange(1, 101))}
    )
    prepared = Auxiliary(known, book(release))  # 29 of 100 links more; 0.29 * 100 < 29 in binary
    for added, expected in ((0.29, [0]), (0.28, [])):
        at = attack(prepared, release, distance=1, errors=LinkErrors(added=added))
        assert at.candidates(0, 1).tolist() == expected


def test_who_has_no_links_matches_only_who_misses_few():
    schema = Schema({"user": {}}, (LinkType("follow", "user", "user"),))
    nodes = {"user": {"id": np.arange(4)}}
    known = network_from_arrays(schema, nodes, {"follow": ([0, 0, 1], [1, 2, 3])})
    release = network_from_arrays(schema, nodes, {"follow": ([0], [1])})
    prepared = Auxiliary(known, book(release))
    assert attack(prepared, release, distance=1).candidates(3, 1).tolist() == [0, 1, 2, 3]
    at = attack(prepared, release, distance=1, errors=LinkErrors(missing=0.5))
    assert at.candidates(3, 1).tolist() == [2, 3]
    assert at.candidates(0, 1).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        (LinkErrors(), "The attack assumes that no published link is false; any number of known"),
        (LinkErrors(0.2, 0.05), "up to 20 may be false or unknown to the intruder and up to 5 may"),
        (
            LinkErrors(1.0, 0.05, 0.0),
            "Any number of published links may be false or unknown to the intruder. Of every 100 "
            "published links of a person, up to 5 may have a strength",
        ),
        (
            LinkErrors(missing=0.1),
            "Of every 100 links that the intruder knows of a person, up to 10",
        ),
    ],
)
def test_the_error_model_is_said_in_words(errors, words):
    assert words in errors.words()


def test_whoever_knows_a_few_links_of_each_person_keeps_the_right_one_and_rules_others_out():
    rng = np.random.default_rng(6)
    release = random_network(rng, 40, density=0.15)
    known = {}
    for name, links in release.links.items():
        some = kept_links(links, rng.random(len(links)) < 0.3, 40)
        known[name] = some
    few = Network(SCHEMA, release.nodes, known)
    prepared = Auxiliary(few, Adversary.of(release, joint=False))
    errors = LinkErrors(added=1, missing=0)
    found = scores(attack(prepared, release, distance=2, errors=errors), 40, np.arange(40))
    assert [one.truth_kept for one in found] == [1, 1, 1]
    assert found[1].unique_right > found[0].unique_right + 0.1
    # All links that are known of somebody who is left as a candidate are published of the target.
    at = attack(prepared, release, distance=1, errors=errors)
    for target in range(40):
        for v in at.candidates(target, 1):
            for name, links in few.links.items():
                assert links.out_degree[v] <= release.links[name].out_degree[target]


def test_tolerance_finds_people_whom_fake_links_hid():
    rng = np.random.default_rng(4)
    n = 150
    source, target = np.nonzero((rng.random((n, n)) < 0.06) & ~np.eye(n, dtype=bool))
    schema = Schema({"user": {}}, (LinkType("follow", "user", "user"),))
    network = network_from_arrays(
        schema, {"user": {"id": np.arange(n)}}, {"follow": (source, target)}
    )
    release = perturb_links(network, share=0.1, plausible=False, seed=1)
    prepared = Auxiliary(network, Adversary.of(release))
    kept = {
        added: scores(
            attack(prepared, release, distance=2, errors=LinkErrors(added)), n, np.arange(n)
        )[-1]
        for added in (0.0, 0.35)
    }
    assert kept[0.0].truth_kept < 0.1
    assert kept[0.35].truth_kept > 0.9
