import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telic.errors import InputError
from telic.hin import LinkType, Network, Rule, Schema, network_from_arrays
from telic.privacy.adversary import Adversary
from telic.privacy.link_type_sets import subsets
from telic.privacy.risk.risks import growth_bounds, risks, tuple_risk
from telic.privacy.risk.views import layer_salt, mix_all, profile_hashes

SCHEMA = Schema(
    {"user": {"yob": Rule("exact"), "city": Rule("exact"), "note": Rule("ignore")}},
    (
        LinkType("follow", "user", "user"),
        LinkType("mention", "user", "user", Rule("at_least"), True),
    ),
)


def network(seed, n=30, density=0.06):
    rng = np.random.default_rng(seed)
    links = {}
    for link in SCHEMA.links:
        source, target = np.nonzero(rng.random((n, n)) < density)
        keep = (source != target) | link.self_links
        strength = rng.integers(1, 3, int(keep.sum()))
        links[link.name] = (source[keep], target[keep], strength)
    nodes = {
        "id": np.arange(n),
        "yob": rng.integers(0, 3, n),
        "city": rng.choice(["a", None], n),
        "note": np.arange(n),
    }
    return network_from_arrays(SCHEMA, {"user": nodes}, links)


def book(net, **options):
    """The book's adversary: out-links, link type by link type."""
    return Adversary.of(net, in_links=False, joint=False, **options)


def exact_partitions(net, names, attributes, distance):
    """Refine by comparing the tuples themselves."""
    table = net.nodes["user"].select(attributes).to_pylist()
    view = [tuple(row.values()) for row in table]
    profile = list(view)
    for _ in range(distance):
        codes = {value: number for number, value in enumerate(dict.fromkeys(view))}
        label = [codes[value] for value in view]
        view = []
        for v in range(len(label)):
            around = []
            for name in names:
                links = net.links[name]
                for e in range(links.indptr[v], links.indptr[v + 1]):
                    strength = 0 if links.strength is None else int(links.strength[e])
                    around.append((name, label[links.indices[e]], strength))
            view.append((profile[v], tuple(sorted(around))))
    return view


@given(seed=st.integers(0, 10_000))
@settings(max_examples=25)
def test_risk_is_that_of_exact_refinement(seed):
    net = network(seed)
    for found in risks(net, book(net, distance=3)):
        view = exact_partitions(net, found.links, ["yob", "city"], found.distance)
        sizes = np.array([view.count(value) for value in view])
        assert found.group_sizes().tolist() == sizes.tolist()
        assert found.risk == pytest.approx(np.mean(1 / sizes))
        assert found.cardinality == len(set(view))
        assert found.unique == pytest.approx(np.mean(sizes == 1))
        assert sum(found.k_histogram().values()) == 30


@pytest.mark.parametrize("seed", range(3))
def test_risk_matches_exact_refinement_at_two_thousand_users(seed):
    net = network(seed, n=2000, density=0.0008)
    for found in risks(net, book(net, distance=3), links=[("follow", "mention")]):
        view = exact_partitions(net, found.links, ["yob", "city"], found.distance)
        assert found.cardinality == len(set(view))


@given(seed=st.integers(0, 10_000))
@settings(max_examples=20)
def test_risk_never_falls_with_distance_or_link_types(seed):
    table = {
        (r.links, r.distance): r.risk
        for r in risks(network(seed), Adversary.of(network(seed), distance=3))
    }
    for (links, distance), value in table.items():
        assert value >= table.get((links, distance - 1), 0)
        for fewer in subsets(links):
            assert value >= table[fewer, distance]


def test_without_a_limit_it_ends_when_nothing_is_added():
    net = network(1)
    *_, last = risks(net, links=[("follow", "mention")])
    *_, far = risks(net, Adversary.of(net, distance=30), links=[("follow", "mention")])
    assert last.cardinality == far.cardinality
    assert last.distance < 30


def chain(size):
    """Each user is linked with the next."""
    schema = Schema.parse(
        {"nodes": {"user": {}}, "links": [{"name": "next", "source": "user", "target": "user"}]}
    )
    users = np.arange(size)
    return network_from_arrays(
        schema, {"user": {"id": users}}, {"next": (users[:-1], users[:-1] + 1)}
    )


@pytest.mark.parametrize("size", [5, 16, 17, 40])
def test_of_many_distances_the_first_and_the_farthest_are_given(size):
    network = chain(size)
    found = [*risks(network, Adversary.of(network, in_links=False), links=[["next"]])]
    # The distance after the last one that tells more apart shows that it is the last.
    assert [risk.distance for risk in found] == [*range(min(size, 16)), size]
    assert [risk.cardinality for risk in found] == [*range(1, min(size, 16) + 1), size]
    assert found[-1].unique == 1


@pytest.mark.parametrize("distance", [0, 1, 5, 6, 7, 9, 14, 20])
def test_along_a_chain_a_step_tells_one_more_apart(distance):
    """Who stands k links before the end is told from those further off by looking k + 1 far."""
    network = chain(15)
    found = list(risks(network, Adversary.of(network, in_links=False, distance=distance)))
    kinds = {risk.distance: risk.cardinality for risk in found if risk.links}
    assert kinds == {d: min(d + 1, 15) for d in range(distance + 1)}
    for risk in found:
        if risk.links:
            assert sorted(risk.group_sizes())[-1] == max(15 - risk.distance, 1)


def test_loss_and_worst_users():
    net = network(2)
    loss = np.linspace(0, 1, 30)
    *_, found = risks(net, book(net, distance=1), links=[("follow",)], loss=loss)
    expected = loss / found.group_sizes()
    assert found.risk == pytest.approx(expected.mean())
    assert expected[found.worst(3, loss)].tolist() == sorted(expected)[::-1][:3]
    *_, same = risks(net, book(net, distance=1), links=[("follow",)], loss=lambda n: loss)
    assert same.risk == found.risk
    with pytest.raises(InputError, match="between 0 and 1"):
        list(risks(net, loss=loss + 1))


def test_a_table_that_k_anonymity_misjudges():
    t1000, t2 = np.zeros(1000, int), np.repeat(np.arange(500), 2)
    assert tuple_risk(t1000) == pytest.approx(0.001)
    assert tuple_risk(t2) == pytest.approx(0.5)
    assert tuple_risk(np.append(t1000, 9)) == pytest.approx(2 / 1001)
    assert tuple_risk(np.append(t2, 999)) == pytest.approx(501 / 1001)


def test_random_loss_halves_the_expected_risk():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 300, 1000)
    found = [tuple_risk(values, rng.random(1000)) for _ in range(400)]
    half = tuple_risk(values) / 2
    assert abs(np.mean(found) - half) < 4 * np.std(found) / 20
    assert abs(np.mean(found) - 1.2 * half) > 4 * np.std(found) / 20


def test_attributes_can_be_picked():
    net = network(3)
    assert next(risks(net, book(net, attributes=["yob"]))).cardinality == 3
    assert next(risks(net, book(net, attributes=[]))).cardinality == 1
    with pytest.raises(InputError, match="attribute 'age' does not exist"):
        next(risks(net, book(net, attributes=["age"])))


def test_who_cannot_be_judged_is_named():
    net = network(4)
    with pytest.raises(InputError, match="'like' is not among those seen"):
        next(risks(net, links=[("like",)]))
    two = Schema({**SCHEMA.nodes, "tweet": {}}, SCHEMA.links)
    both = Network(two, {**net.nodes, "tweet": net.nodes["user"]}, net.links)
    with pytest.raises(InputError, match="Say which one"):
        next(risks(both))
    assert next(risks(both, Adversary.of(both, node_type="user"))).cardinality > 1


def test_bounds_are_ordered_and_grow():
    net = network(5)
    first, second = growth_bounds(net, 1), growth_bounds(net, 2)
    assert first[0] < first[1]
    assert second[0] > 2 * first[0]


def test_of_many_link_types_each_and_all_are_judged():
    types = tuple(LinkType(f"l{i}", "user", "user") for i in range(7))
    none = {link.name: ([], []) for link in types}
    net = network_from_arrays(Schema({"user": {}}, types), {"user": {"id": [1, 2]}}, none)
    judged = {found.links for found in risks(net)}
    assert judged == {*((f"l{i}",) for i in range(7)), tuple(none)}


@pytest.mark.parametrize("joint", [True, False])
def test_a_strength_of_one_link_type_is_never_mistaken_for_another(joint):
    types, strengths = 6, np.arange(1, 41)
    schema = Schema(
        {"user": {}, "film": {}},
        tuple(LinkType(f"t{k}", "user", "film", Rule("exact")) for k in range(types)),
    )
    users = types * len(strengths)
    links = {
        f"t{k}": (np.arange(k, users, types), np.zeros(len(strengths), int), strengths)
        for k in range(types)
    }
    net = network_from_arrays(
        schema, {"user": {"id": np.arange(users)}, "film": {"id": [0]}}, links
    )
    # Everybody has one link, to the same film: nobody has the type and the strength of another.
    seen = Adversary.of(net, node_type="user", joint=joint, distance=1)
    *_, last = risks(net, seen, links=[list(links)])
    assert last.cardinality == users


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40)
def test_a_value_and_a_link_type_do_not_change_places(seed):
    """Of one attribute and links without strength: both are scrambled from small numbers."""
    rng = np.random.default_rng(seed)
    schema = Schema(
        {"user": {"city": Rule("exact")}},
        (LinkType("follow", "user", "user"), LinkType("mention", "user", "user")),
    )
    city = np.append(np.arange(5), rng.integers(0, 5, 20))  # value v is the v-th to appear
    links = {}
    for name in ("follow", "mention"):
        source, target = rng.integers(0, 25, (2, 40))
        pairs = np.unique(np.stack([source, target])[:, source != target], axis=1)
        links[name] = tuple(pairs)
    net = network_from_arrays(schema, {"user": {"id": np.arange(25), "city": city}}, links)
    for found in risks(net, book(net, distance=2)):
        view = exact_partitions(net, found.links, ["city"], found.distance)
        assert found.group_sizes().tolist() == [view.count(value) for value in view]


def test_no_neighbour_of_one_kind_looks_like_one_of_another():
    codes = np.arange(300)
    profiles = profile_hashes(300, [codes])
    salts = mix_all_of([layer_salt(number) for number in range(300)])
    assert len(np.unique(profiles[:, None] + salts)) == 300**2


def mix_all_of(values):
    values = np.array(values, np.uint64)
    mix_all(values)
    return values
