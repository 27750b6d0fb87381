import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telic.data.contracts import SIMULATED
from telic.errors import InputError
from telic.hin import LinkType, Network, Rule, Schema, induced, network_from_arrays
from telic.privacy.adversary import Adversary
from telic.privacy.anonymisers.coarsen import bin_strengths, generalise, link_counts
from telic.privacy.anonymisers.complete_graph import complete_graph, without_majority_strength
from telic.privacy.anonymisers.ids import randomise_ids, schema_only
from telic.privacy.anonymisers.k_degree import k_anonymous_degrees
from telic.privacy.anonymisers.perturb_links import perturb_links
from telic.privacy.anonymisers.random_links import add_random_links
from telic.privacy.anonymisers.release_steps import _check, apply_steps, rules_after
from telic.privacy.attacks.auxiliary import Auxiliary
from telic.privacy.attacks.dehin import attack
from telic.privacy.attacks.score import read_truth, scores
from telic.privacy.risk.risks import risks
from telic.privacy.utility import utility_loss as utility
from telic.privacy.utility.utility_loss import utility_loss
from telic.simulate.microblog import Community, microblog


@pytest.fixture(scope="module")
def world():
    network, (members,) = microblog(users=2000, communities=[Community(0.03, 200)], seed=1)
    return network, induced(network, {"user": members}), members


def precision(network, release, truth):
    result = attack(
        Auxiliary(network, Adversary.of(release, in_links=False, joint=False)), release, distance=2
    )
    return [score.precision for score in scores(result, network.size("user"), truth)]


def test_new_ids_hide_the_order_and_the_key_undoes_them(world):
    network, target, members = world
    release, key = randomise_ids(target, seed=5)
    release.validate()
    truth = read_truth(key, network, release, "user")
    assert sorted(truth) == sorted(members)
    assert truth.tolist() != members.tolist()
    assert precision(network, release, truth) == precision(network, target, members)


def test_without_a_seed_nobody_can_repeat_the_shuffle(world):
    _, target, _ = world
    keys = [randomise_ids(target, seed=seed)[1] for seed in (None, None, 5, 5)]
    assert not keys[0].equals(keys[1])
    assert keys[2].equals(keys[3])


def test_notes_on_columns_and_the_sign_of_a_zero_are_not_published():
    schema = Schema.parse({"nodes": {"user": {"attributes": {"x": "exact"}}}, "links": []})
    field = pa.field("x", pa.float64(), metadata={"comment": "0 is ann"})
    own = pa.field("id", pa.string(), metadata={"comment": "by hand"})
    users = pa.table([["a", "b"], [0.0, -0.0]], schema=pa.schema([own, field]))
    published = schema_only(Network(schema, {"user": users}, {})).nodes["user"]
    assert [each.metadata for each in published.schema] == [None, None]
    assert [str(x) for x in published.column("x").to_pylist()] == ["0.0", "0.0"]


def test_a_width_that_is_nothing_beside_a_value_is_refused():
    schema = Schema.parse({"nodes": {"user": {"attributes": {"x": "exact"}}}, "links": []})
    for values in ([1e308, 1.0], [-1e308, 1.0]):
        net = network_from_arrays(schema, {"user": {"id": ["a", "b"], "x": values}}, {})
        with pytest.raises(InputError, match=r"a width of 0\.1 is too small beside some values"):
            generalise(net, attribute="x", width=0.1)
    ends = [float("inf"), -2.5]
    net = network_from_arrays(schema, {"user": {"id": ["a", "b"], "x": ends}}, {})
    coarse = generalise(net, attribute="x", width=0.1).nodes["user"].column("x").to_pylist()
    assert coarse == ends


def test_columns_that_the_schema_does_not_name_are_not_published():
    schema = Schema.parse({"nodes": {"user": {"attributes": {"yob": "exact"}}}, "links": []})
    table = pa.table({"id": [1, 2], "email": ["a@x", "b@x"], "yob": [70, 80]})
    table = table.replace_schema_metadata({b"owner": b"a@x", SIMULATED: b"true"})
    release, _ = randomise_ids(network_from_arrays(schema, {"user": table}, {}))
    assert release.nodes["user"].column_names == ["id", "yob"]
    assert release.nodes["user"].schema.metadata == {SIMULATED: b"true"}


def test_complete_graphs_fall_to_the_reconfigured_attack_and_varying_ones_do_not(world):
    network, target, members = world
    plain = precision(network, target, members)
    weighed = [link.name for link in target.schema.links if link.strength is not None]
    complete = complete_graph(target, strengths=dict.fromkeys(weighed, 1))
    complete.validate()
    assert all(len(links) == 200 * 199 for links in complete.links.values())
    assert precision(network, complete, members)[1] == 0
    attacked, removed = without_majority_strength(complete)
    obscured, _ = without_majority_strength(target)
    assert removed["follow"] == 200 * 199
    # Fake strength = the majority real one: exactly the same as on the plain release (7.6.4).
    found = precision(network, attacked, members)
    assert found == precision(network, obscured, members)
    assert plain[0] < found[2] <= plain[2]
    varying = complete_graph(target, varying=True)
    for release in (varying, without_majority_strength(varying)[0]):
        result = attack(
            Auxiliary(network, Adversary.of(release, in_links=False, joint=False)),
            release,
            distance=1,
        )
        assert (result.sizes[0] > 0).all()
        assert (result.sizes[1] == 0).all()


@given(degrees=st.lists(st.integers(0, 12), min_size=1, max_size=14), k=st.integers(1, 5))
@settings(max_examples=120)
def test_degrees_are_shared_by_k_at_the_least_cost(degrees, k):
    degrees = np.array(degrees)
    if k > len(degrees):
        return
    out = k_anonymous_degrees(degrees, k)
    assert (out >= degrees).all()
    assert np.unique(out, return_counts=True)[1].min() >= k
    assert out.sum() == cheapest(tuple(sorted(degrees.tolist(), reverse=True)), k)


def cheapest(falling, k):
    """Try every way to cut the falling sequence into groups of k or more."""
    best = falling[0] * len(falling)
    for cut in range(k, len(falling) - k + 1):
        best = min(best, falling[0] * cut + cheapest(falling[cut:], k))
    return best


def test_each_step_does_what_it_says_and_costs_utility(world):
    _, target, _ = world
    yob = target.nodes["user"].column("yob").to_numpy()
    cases = {
        "k-degree": {"k": 5, "plausible": False},  # whether they are plausible: test_fake_links
        "perturb": {"share": 0.3, "plausible": False},
        "bin": {"base": 4},
        "drop-strengths": {},
        "drop-links": {"links": ["follow"]},
        "generalise": {"attribute": "yob", "width": 10},
        "suppress": {"attribute": "yob"},
    }
    assert utility_loss(target, target).total() == 0
    for method, options in cases.items():
        release = apply_steps(target, [{"method": method, **options}])
        release.validate()
        assert 0 < utility_loss(target, release).total() < 1, method
        if method == "k-degree":
            for links in release.links.values():
                assert np.unique(links.out_degree, return_counts=True)[1].min() >= 5
        if method == "perturb":
            assert all(len(release.links[n]) == len(x) for n, x in target.links.items())
        if method == "bin":
            values = np.unique(release.links["mention"].strength)
            assert set(values) <= {1, 4, 16, 64, 256, 1024, 4096, 16384}
        if method == "generalise":
            assert (release.nodes["user"].column("yob").to_numpy() == yob // 10 * 10).all()
        if method == "suppress":
            assert "yob" not in release.nodes["user"].column_names


@pytest.mark.parametrize("self_links", [False, True])
@pytest.mark.parametrize("n", [2, 9, 400])
def test_random_links_are_new_distinct_and_as_many_as_fit(n, self_links):
    schema = Schema({"user": {}}, (LinkType("follow", "user", "user", self_links=self_links),))
    rng = np.random.default_rng(n)
    rows = np.nonzero((rng.random((n, n)) < rng.random((n, 1))) & ~np.eye(n, dtype=bool))
    network = network_from_arrays(schema, {"user": {"id": np.arange(n)}}, {"follow": rows})
    old = network.links["follow"]
    missing = rng.integers(0, n + 2, n)
    new = add_random_links(network, "follow", missing, rng)
    Network(schema, network.nodes, {"follow": new}).validate()
    room = n - (not self_links)
    assert (new.out_degree == np.minimum(old.out_degree + missing, room)).all()
    assert (new.matrix(n).todense() >= old.matrix(n).todense()).all()


def test_random_links_lead_anywhere_alike():
    schema = Schema({"user": {}}, (LinkType("follow", "user", "user"),))
    network = network_from_arrays(schema, {"user": {"id": np.arange(40)}}, {"follow": ([0], [1])})
    rng, draws = np.random.default_rng(0), np.zeros(40)
    for _ in range(3000):
        draws[add_random_links(network, "follow", np.eye(40, dtype=int)[0] * 5, rng).indices] += 1
    assert draws[0] == 0
    assert draws[1] == 3000
    # Mean 3000·5/38 = 395, standard deviation 18.5: five of them.
    assert np.abs(draws[2:] - 3000 * 5 / 38).max() < 93


def test_any_link_may_be_the_one_that_is_removed():
    schema = Schema({"user": {}}, (LinkType("follow", "user", "user"),))
    rows = (
        np.repeat(np.arange(30), 5),
        (np.repeat(np.arange(30), 5) + np.tile([1, 2, 3, 4, 5], 30)) % 30,
    )
    network = network_from_arrays(schema, {"user": {"id": np.arange(30)}}, {"follow": rows})
    before = network.links["follow"].matrix(30).todense() > 0
    gone = np.zeros((30, 30))
    for seed in range(300):
        release = perturb_links(network, share=0.3, plausible=False, seed=seed)
        gone += before & ~(release.links["follow"].matrix(30).todense() > 0)
    # Removed with 30 % and not drawn again: 300·0.3·(1 − about 1.5/25) ≈ 84, deviation about 8.
    share = gone[before]
    assert 84 - 45 < share.min() < share.max() < 84 + 45
    assert len(set(share.tolist())) > 5


def test_link_prediction_and_communities_notice_noise():
    size = 72
    group = np.arange(size) // 12
    rows = np.nonzero((group[:, None] == group) & ~np.eye(size, dtype=bool))
    schema = Schema.parse(
        {"nodes": {"user": {}}, "links": [{"name": "follow", "source": "user", "target": "user"}]}
    )
    cliques = network_from_arrays(schema, {"user": {"id": np.arange(size)}}, {"follow": rows})
    little, much = (
        utility_loss(
            cliques,
            apply_steps(cliques, [{"method": "perturb", "share": share, "plausible": False}]),
        )
        for share in (0.1, 1.0)
    )
    assert little.prediction < 0.3 < 0.7 < much.prediction
    assert little.communities < 0.3 < 0.7 < much.communities
    assert little.clustering < much.clustering
    assert little.total({"links": 5.0}) > little.total({"attributes": 5.0})


def lists(pairs):
    """Links as sources, targets and strengths, of {(source, target): strength}."""
    source, target = zip(*pairs, strict=True) if pairs else ((), ())
    return [*source], [*target], [*pairs.values()]


STRONG = Schema.parse(
    {
        "nodes": {"user": {"attributes": {"yob": "exact"}}},
        "links": [{"name": "mention", "source": "user", "target": "user", "strength": "exact"}],
    }
)


def strong(pairs, size=8, yob=None):
    nodes = {"id": np.arange(size), "yob": np.arange(size) % 4 if yob is None else yob}
    return network_from_arrays(STRONG, {"user": nodes}, {"mention": lists(pairs)})


def test_losses_compare_link_with_link():
    real = {(0, 1): 2, (1, 2): 3, (2, 3): 2, (3, 0): 1}
    shown = {(0, 1): 2, (1, 2): 9, (4, 5): 2, (4, 6): 2, (4, 7): 2}
    loss = utility_loss(strong(real), strong(shown))
    assert loss.false_links == 3 / 5
    assert loss.lost_links == 2 / 4
    assert loss.strength == 1 / 2
    # Out-degrees 1 1 1 1 0 …, and 1 1 0 0 3 0 …
    assert loss.degree == pytest.approx(3 / 8)
    assert 0 < loss.links < 1


def test_information_lost_is_that_of_the_joint_table():
    rng = np.random.default_rng(0)
    old, new = rng.integers(0, 3, 60), rng.integers(0, 4, 60)
    joint = np.zeros((3, 4))
    np.add.at(joint, (old, new), 1 / 60)
    outer = joint.sum(1)[:, None] * joint.sum(0)
    mutual = (joint[joint > 0] * np.log2(joint[joint > 0] / outer[joint > 0])).sum()
    whole = -(joint.sum(1) * np.log2(joint.sum(1))).sum()
    assert utility.lost_information(old, new, np.ones(60)) == pytest.approx(1 - mutual / whole)
    assert utility.lost_information(old, 5 - old, np.ones(60)) == pytest.approx(0)


def test_shuffled_values_are_lost_though_their_distribution_stays():
    rng = np.random.default_rng(1)
    real = {(v, w): int(rng.integers(1, 9)) for v in range(40) for w in (v - 1, v - 7) if w >= 0}
    strengths = rng.permutation([*real.values()])
    shuffled = dict(zip(real, strengths.tolist(), strict=True))
    yob = np.arange(40) % 4
    loss = utility_loss(strong(real, 40, yob), strong(shuffled, 40, rng.permutation(yob)))
    assert loss.attributes > 0.7
    assert loss.strength > 0.7
    assert loss.links > 0.2
    assert loss.false_links == loss.lost_links == loss.degree == 0


def test_varying_weights_cost_more_since_real_links_cannot_be_told(world):
    _, target, _ = world
    same, varying = (utility_loss(target, complete_graph(target, varying=v)) for v in (False, True))
    # At face value both are one complete graph, with every real link as it was …
    for name in ("attributes", "false_links", "lost_links", "strength", "degree", "clustering"):
        assert getattr(same, name) == getattr(varying, name)
    # … but only fake links of one strength can be told, which whatever is asked of links shows.
    for name in ("links", "existence", "communities", "ranking", "model"):
        assert getattr(same, name) < getattr(varying, name) - 0.1
    assert varying.links > 0.8
    assert varying.existence > 0.95
    assert varying.ranking > 0.8
    assert same.total() < varying.total() - 0.1


def test_links_to_other_nodes_count_as_losses():
    schema = Schema.parse(
        {
            "nodes": {"user": {}, "film": {"attributes": {"year": "exact"}}},
            "links": [{"name": "saw", "source": "user", "target": "film"}],
        }
    )
    nodes = {"user": {"id": range(6)}, "film": {"id": range(4), "year": [1, 1, 2, 2]}}
    network = network_from_arrays(schema, nodes, {"saw": (range(6), [0, 1, 2, 3, 0, 1])})
    noisy = apply_steps(network, [{"method": "perturb", "share": 1.0}], node_type="user")
    noisy.validate()
    loss = utility_loss(network, noisy, node_type="user")
    assert loss.false_links == loss.lost_links > 0
    suppress = [{"method": "suppress", "attribute": "year", "node_type": "film"}]
    coarse = apply_steps(network, suppress, node_type="user")
    assert utility_loss(network, coarse, node_type="user").attributes == 1


@pytest.mark.parametrize("base", [1.3, 2, 2.5, 10, 1e3])
def test_strengths_and_numbers_of_links_fall_to_powers(base):
    most = 2**31 - 1
    values = np.unique([*range(1, 40), 255, 256, 999, 1000, 2**30 - 1, 2**30, most])
    powers = [int(np.ceil(base**k)) for k in range(90) if base**k <= most]
    expected = [max(one for one in powers if one <= value) for value in values]
    n = len(values)
    schema = Schema.parse(
        {
            "nodes": {"user": {}},
            "links": [{"name": "f", "source": "user", "target": "user", "strength": "exact"}],
        }
    )
    rows = np.zeros(n, int), np.arange(1, n + 1), values
    network = network_from_arrays(schema, {"user": {"id": np.arange(n + 1)}}, {"f": rows})
    binned = bin_strengths(network, base=base)
    binned.validate()
    assert binned.links["f"].strength.tolist() == expected
    assert binned.links["f"].strength.dtype == np.int32
    assert link_counts(np.append(0, values), base).tolist() == [0, *expected]


@pytest.mark.parametrize("width", [3, 0.5])
def test_numbers_are_rounded_down_to_multiples(width):
    schema = Schema.parse(
        {"nodes": {"user": {"attributes": {"x": "exact", "y": "exact"}}}, "links": []}
    )
    nodes = {"id": range(4), "x": [-4, 0, 7, None], "y": [-0.1, 0.5, 2.99, None]}
    network = network_from_arrays(schema, {"user": nodes}, {})
    for name in "xy":
        column = generalise(network, attribute=name, width=width).nodes["user"].column(name)
        expected = [None if v is None else np.floor(v / width) * width for v in nodes[name]]
        assert column.to_pylist() == expected
        assert pa.types.is_integer(column.type) == (name == "x" and width == 3)


@pytest.mark.parametrize("base", [1.5, 2, 16])
@pytest.mark.parametrize("tolerance", [0, 1, 7.5, 1e6])
def test_strengths_within_a_tolerance_are_so_in_powers_too(base, tolerance):
    rng = np.random.default_rng(0)
    link = LinkType("f", "user", "user", strength=Rule("tolerance", tolerance))
    schema, targets = Schema({"user": {}}, (link,)), np.arange(1, 200)
    before = np.ceil(10 ** rng.uniform(0, 5, 199))
    change = np.trunc(rng.uniform(-1, 1, 199) * tolerance)
    binned = [
        bin_strengths(
            network_from_arrays(
                schema, {"user": {"id": range(200)}}, {"f": ([0] * 199, targets, strengths)}
            ),
            base=base,
        )
        for strengths in (before, np.maximum(before + change, 1))
    ]
    rule = binned[0].schema.link("f").strength
    values = [one.links["f"].strength.astype(float) for one in binned]
    assert rule == Rule.parse(rule.dump()) == Rule("tolerance", tolerance, base)
    low, high = rule.bounds(values[0])
    assert ((low <= values[1]) & (values[1] <= high)).all()
    # No wider than what some strengths of the power may have become.
    powers = values[0].astype(int)
    of_power = {p: before[powers == p] for p in set(powers.tolist())}
    for p, floor, top in zip(powers.tolist(), low.tolist(), high.tolist(), strict=True):
        assert floor <= p <= top
        assert top <= base * (max(of_power[p]) * base + tolerance)
        assert floor * base >= p - tolerance - 1 or floor == 1
    with pytest.raises(InputError, match="already"):
        bin_strengths(binned[0], base=3)
    assert bin_strengths(binned[0], base=base).schema == binned[0].schema


def test_rules_of_values_as_they_were_widen_with_steps():
    schema = Schema.parse(
        {
            "nodes": {"user": {"attributes": {"yob": "exact", "tags": "at_least"}}},
            "links": [
                {"name": "f", "source": "user", "target": "user", "strength": "exact"},
            ],
        }
    )
    users = {"id": [1, 2], "yob": [80, 84], "tags": [1, 2]}
    network = network_from_arrays(schema, {"user": users}, {"f": ([1], [2], [7])})
    steps = [{"method": "generalise", "attribute": "yob", "width": 5}, {"method": "bin"}]
    given = {"yob": {"tolerance": 1}, "tags": "at_most", "f": {"tolerance": 2}}
    wide = rules_after(network, steps, given, node_type="user")
    powers = {"tolerance": 2.0, "powers": 2.0}
    assert wide == {"yob": {"tolerance": 5.0}, "tags": "at_most", "f": powers}
    assert rules_after(network, [], given, node_type="user") == given
    # What is ignored stays so, and what a step makes is not there before it.
    steps.append({"method": "count-links", "links": ["f"]})
    given = {"yob": "ignore", "f count": {"tolerance": 1}}
    assert rules_after(network, steps, given, node_type="user") == given


@pytest.mark.parametrize("tolerance", [0, 0.3, 1, 7])
@pytest.mark.parametrize("width", [0.1, 0.3, 1, 5, 2.5])
def test_values_within_a_tolerance_are_so_in_the_release_too(width, tolerance):
    rng = np.random.default_rng(3)
    rule = {"tolerance": tolerance}
    schema = Schema.parse({"nodes": {"user": {"attributes": {"x": rule}}}, "links": []})
    before = np.round(rng.uniform(-90, 90, 300), 2)
    step = {"method": "generalise", "attribute": "x", "width": width}
    release, known = (
        apply_steps(
            network_from_arrays(schema, {"user": {"id": range(300), "x": values}}, {}), [step]
        )
        for values in (before, before + rng.uniform(-1, 1, 300) * 0.999 * tolerance)
    )
    found = attack(Auxiliary(known, Adversary.of(release)), release)
    assert found.contains(np.arange(300), 0).all()
    wide = release.schema.nodes["user"]["x"].width
    assert wide < tolerance + width + 0.001
    assert Schema.parse(release.schema.dump()) == release.schema


def test_decimals_that_are_multiples_stay_and_coarser_widths_join_what_finer_ones_do():
    values = [round(0.01 * i, 2) for i in range(-50, 200)]
    schema = Schema.parse({"nodes": {"user": {"attributes": {"x": "exact"}}}, "links": []})
    network = network_from_arrays(schema, {"user": {"id": range(250), "x": values}}, {})
    rounded = {
        width: generalise(network, attribute="x", width=width).nodes["user"]["x"].to_pylist()
        for width in (0.01, 0.02, 0.1, 0.5)
    }
    assert rounded[0.01] == values
    hundredths = [round(100 * value) for value in values]
    for width, found in rounded.items():
        step = round(100 * width)
        assert found == [(n - n % step) / 100 for n in hundredths]


@pytest.mark.parametrize("width", [2, 0.5])
def test_negative_zero_is_no_multiple_of_its_own(width):
    schema = Schema.parse({"nodes": {"user": {"attributes": {"x": "exact"}}}, "links": []})
    network = network_from_arrays(schema, {"user": {"id": [1, 2, 3], "x": [0.0, 0.3, -0.0]}}, {})
    rounded = generalise(network, attribute="x", width=width)
    assert [str(x) for x in rounded.nodes["user"]["x"].to_pylist()] == ["0.0"] * 3
    assert next(risks(rounded)).highest == 1 / 3


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64()])
@pytest.mark.parametrize("width", [7, 100, 1000])
def test_numbers_of_few_bits_are_rounded_as_others(kind, width):
    schema = Schema.parse({"nodes": {"user": {"attributes": {"x": "exact"}}}, "links": []})
    values = [-128, -1, 0, 99, 127, None]
    nodes = {"id": range(6), "x": pa.array(values, kind)}
    network = network_from_arrays(schema, {"user": nodes}, {})
    found = generalise(network, attribute="x", width=width).nodes["user"]["x"].to_pylist()
    assert found == [None if x is None else x // width * width for x in values]


def test_a_multiple_that_needs_more_than_64_bits_is_refused():
    schema = Schema.parse({"nodes": {"user": {"attributes": {"x": "exact"}}}, "links": []})
    network = network_from_arrays(schema, {"user": {"id": [1, 2], "x": [-(2**63), 5]}}, {})
    with pytest.raises(InputError, match="64 bits"):
        generalise(network, attribute="x", width=3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("width", [2, 0.5])
def test_infinite_numbers_stay_infinite(width):
    schema = Schema.parse({"nodes": {"user": {"attributes": {"x": "exact"}}}, "links": []})
    nodes = {"id": [1, 2, 3], "x": [np.inf, -np.inf, 2.0]}
    network = network_from_arrays(schema, {"user": nodes}, {})
    found = generalise(network, attribute="x", width=width).nodes["user"]["x"].to_pylist()
    assert found == [np.inf, -np.inf, 2.0]


def test_numbers_are_rounded_down_and_not_to_the_nearest_however_many_digits_they_have():
    values = [1_700_000_000.119, 1_700_000_000.999, 123_456.7899]
    schema = Schema.parse({"nodes": {"user": {"attributes": {"x": "exact"}}}, "links": []})
    network = network_from_arrays(schema, {"user": {"id": range(3), "x": values}}, {})
    found = generalise(network, attribute="x", width=0.01).nodes["user"]["x"].to_pylist()
    assert found == [1_700_000_000.11, 1_700_000_000.99, 123_456.78]


def test_whole_numbers_are_rounded_exactly_however_large():
    values = [2**60 + 1, 1_700_000_000_000_000_007, -(2**55) - 1, None]
    schema = Schema.parse({"nodes": {"user": {"attributes": {"x": "exact"}}}, "links": []})
    network = network_from_arrays(schema, {"user": {"id": range(4), "x": values}}, {})
    found = generalise(network, attribute="x", width=10).nodes["user"]["x"].to_pylist()
    assert found == [None if value is None else value - value % 10 for value in values]
    assert generalise(network, attribute="x", width=0.5).nodes["user"]["x"].null_count == 1


def test_wrong_steps_are_named(world):
    _, target, _ = world
    for step, message in [
        ({"method": "blur"}, "step 1: method 'blur'"),
        ({"method": "suppress", "attribute": "age"}, "attribute 'age' does not exist"),
        ({"method": "generalise", "attribute": "yob", "width": 0}, "width is 0"),
        *(
            ({"method": "generalise", "attribute": "yob", "width": width}, "expected a number")
            for width in (float("nan"), float("inf"), 10**400)
        ),
        ({"method": "k-degree", "k": 0}, "k is 0"),
        ({"method": "perturb", "share": 2}, "share is 2"),
        ({"method": ["bin"]}, r"step 1: method \['bin'\]. Methods are complete, k-degree"),
        ({"method": "bin", "size": 3}, "step 1 .bin.: has no option 'size'. Its options are base,"),
        ({"method": "generalise"}, "lacks 'attribute'. Its options are attribute, width, node_ty"),
        ({"method": "complete", "strengths": {"like": 1}}, "users is called 'like'"),
        ({"method": "drop-links", "links": ["like"]}, "no link type is called 'like'"),
        ({"method": "drop-links", "links": "like"}, "'links' is 'like', expected a list of names"),
        ({"method": "perturb", "share": "half"}, "'share' is 'half', expected a number"),
        ({"method": "k-degree", "k": 2.5}, "'k' is 2.5, expected a whole number"),
        ({"method": "complete", "strengths": {"mention": 0}}, "object of whole numbers from 1"),
        ({"method": "complete", "strengths": {"mention": 2**31}}, "object of whole numbers from 1"),
    ]:
        with pytest.raises(InputError, match=message):
            apply_steps(target, [step])
    told, steps = [], [{"method": "drop-strengths"}, {"method": "blur"}]
    with pytest.raises(InputError, match=r"^steps.json: step 2: method 'blur'"):
        apply_steps(target, steps, progress=told.append, where="steps.json: ")
    assert told == []  # all are looked at first


def test_what_is_left_out_is_gone_and_all_else_stays(world):
    _, target, _ = world
    release = apply_steps(target, [{"method": "suppress", "attribute": "yob"}])
    rules, table = target.schema.nodes["user"], target.nodes["user"]
    assert release.schema.nodes["user"] == {k: v for k, v in rules.items() if k != "yob"}
    assert release.nodes["user"].equals(table.drop_columns(["yob"]))
    assert release.links == target.links
    release = apply_steps(target, [{"method": "drop-links", "links": ["mention", "retweet"]}])
    assert [link.name for link in release.schema.links] == ["follow", "comment"]
    assert release.links == {name: target.links[name] for name in ("follow", "comment")}
    assert release.nodes == target.nodes
    release = apply_steps(target, [{"method": "drop-strengths", "links": ["mention"]}])
    for link in target.schema.links:
        kept = None if link.name == "mention" else link.strength
        assert release.schema.link(link.name).strength == kept
    with pytest.raises(InputError, match=r"attribute 'id' does not exist\. Attributes are \['ge"):
        apply_steps(target, [{"method": "suppress", "attribute": "id"}])


@pytest.mark.parametrize(
    ("option", "fits", "fails"),
    [
        ("attribute", ["yob"], [3, None]),
        ("base", [2, 1.5], ["2", True]),
        ("epsilon", [1, 0.1], ["1", False]),
        ("even", [0, 0.5], [None]),
        ("k", [0, 5], [5.0, -1, True]),
        ("links", [[], ["a", "b"]], ["a", [1]]),
        ("node_type", ["user"], [["user"]]),
        ("plausible", [True, False], [1, "yes"]),
        ("seed", [0], [-1, 0.0]),
        ("share", [0.5], ["half"]),
        ("strengths", [{}, {"a": 1, "b": 9}], [{"a": 0}, {"a": 1.0}, {"a": True}, ["a"], 1]),
        ("varying", [False], [0]),
        ("width", [5, 0.5], ["5"]),
    ],
)
def test_an_option_of_a_step_is_of_its_kind(option, fits, fails):
    for value in fits:
        _check({option: value}, "step 1")
    for value in fails:
        with pytest.raises(
            InputError, match=f"step 1: '{option}' is {re.escape(repr(value))}, exp"
        ):
            _check({option: value}, "step 1")


def test_truth_must_name_known_users(world):
    network, target, _ = world
    with pytest.raises(InputError, match="row 1: -7 is not in the target network"):
        read_truth(pa.table({"target": [-7], "auxiliary": [1]}), network, target, "user")
    with pytest.raises(InputError, match="column 'auxiliary' is missing"):
        read_truth(pa.table({"target": [-7]}), network, target, "user")


def test_structure_of_a_large_network_is_compared_on_a_sample(monkeypatch):
    network, _ = microblog(users=3000, seed=3)
    monkeypatch.setattr(utility, "STRUCTURE_USERS", 150)
    assert utility_loss(network, network, seed=1).total() == 0
    noisy = apply_steps(network, [{"method": "perturb", "share": 0.9, "plausible": False}])
    loss = utility_loss(network, noisy, seed=1)
    assert loss.links > 0.5
    assert loss.clustering > 0
    assert loss == utility_loss(network, noisy, seed=1)
    real, shown = utility._structure(network, noisy, 1, "user")
    assert real.size("user") == shown.size("user") == 150
