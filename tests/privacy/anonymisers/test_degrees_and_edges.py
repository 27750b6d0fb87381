"""Joint k-degree, and links under edge differential privacy."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telic.errors import InputError
from telic.hin import LinkType, Rule, Schema, network_from_arrays
from telic.privacy.anonymisers import differential_privacy
from telic.privacy.anonymisers.differential_privacy import keep_chances, noisy_links
from telic.privacy.anonymisers.joint_k_degree import _change, balance, degree_groups, joint_k_degree
from telic.privacy.anonymisers.k_degree import degree_classes, k_degree
from telic.privacy.anonymisers.release_steps import apply_steps

sys.path.insert(0, str(Path(__file__).parents[2] / "reference"))
from random_networks import random_network, random_schema


@given(seed=st.integers(0, 10**6), k=st.integers(1, 4))
@settings(max_examples=40, derandomize=True)
def test_at_least_k_share_all_degrees(seed, k):
    rng = np.random.default_rng(seed)
    network = random_network(rng, random_schema(rng), int(rng.integers(20, 40)), density=0.04)
    try:
        release = joint_k_degree(network, k=k, seed=seed, node_type="user")
    except InputError as error:  # few films: there is no room for more links
        if "no links were found" not in str(error):
            raise
        return
    release.validate()
    classes = degree_classes(release, node_type="user")
    assert min(classes.values(), default=k) >= k
    for link in network.schema.links:
        old, new = network.links[link.name], release.links[link.name]
        columns = network.size(link.target)
        was, now = old.matrix(columns).todense(), new.matrix(columns).todense()
        assert (now[was > 0] == was[was > 0]).all()
        if link.source == link.target and not link.self_links:
            assert not np.diag(now).any()


def world(rng, n=300, types=3, mean=3.0):
    schema = Schema(
        {"user": {}},
        tuple(LinkType(f"l{i}", "user", "user", Rule("exact")) for i in range(types)),
    )
    links = {}
    for link in schema.links:
        weight = rng.pareto(2.0, n) + 0.2
        source = rng.choice(n, int(n * mean), p=weight / weight.sum())
        target = rng.integers(n, size=len(source))
        pairs = np.unique(np.stack([source, target])[:, source != target], axis=1)
        links[link.name] = (*pairs, rng.integers(1, 4, pairs.shape[1]))
    return network_from_arrays(schema, {"user": {"id": np.arange(n)}}, links)


def test_degrees_are_shared_jointly_where_k_degree_promises_each_alone():
    network = world(np.random.default_rng(0))
    alone = degree_classes(k_degree(network, k=5, plausible=False))
    assert alone["out-degrees of all types together"] == 1
    together = degree_classes(joint_k_degree(network, k=5))
    assert min(together.values()) >= 5
    assert together["all degrees together"] >= 5


@given(
    rows=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=60),
    k=st.integers(1, 7),
)
def test_groups_hold_k_to_2k_rows(rows, k):
    sizes = np.bincount(degree_groups(np.array(rows), k))
    assert sizes.sum() == len(rows)
    assert sizes.min() >= min(k, len(rows))
    assert sizes.max() < 2 * k


def test_groups_are_halves_by_what_differs_most():
    degrees = np.random.default_rng(3).integers(0, 40, (50, 3))

    def halves(rows):
        """Cut rows in two at the median of their widest number, in logarithms, and again."""
        if len(rows) < 2 * 4:
            return {frozenset(rows)}
        spread = np.log(1 + degrees[rows])
        widest = np.argmax(spread.max(axis=0) - spread.min(axis=0))
        rows = sorted(rows, key=lambda row: degrees[row, widest])
        return halves(rows[: len(rows) // 2]) | halves(rows[len(rows) // 2 :])

    found = degree_groups(degrees, 4)
    groups = {frozenset(np.flatnonzero(found == g).tolist()) for g in range(found.max() + 1)}
    assert groups == halves([*range(50)])


@given(
    sizes=st.lists(st.integers(2, 9), min_size=1, max_size=8),
    seed=st.integers(0, 10**6),
)
def test_as_many_links_begin_as_end_after_balancing(sizes, seed):
    rng = np.random.default_rng(seed)
    most = rng.integers(0, 50, (len(sizes), 2))
    before = most.copy()
    balance(most, np.array(sizes), 0, 1, rng)
    assert np.array(sizes) @ most[:, 0] == np.array(sizes) @ most[:, 1]
    assert (most >= before).all()


def test_amounts_are_made_of_coins():
    for amount, coins in ((0, [5]), (10, [5]), (1, [4, 5]), (7, [4, 6, 9]), (1000, [7, 9])):
        assert sum(coin * sign for coin, sign in _change(amount, coins)) == amount
    # As few coins as can be but for the largest one, of which as many are taken as can be needed.
    assert len(_change(1000, [7, 9])) == min(
        a + b for a in range(200) for b in range(200) if 9 * a + 7 * b == 1000
    )
    assert sorted(_change(1, [4, 5])) == [(4, -1), (5, 1)]


@given(
    cells=st.integers(10, 10**7),
    share=st.floats(0.0001, 0.9999),
    epsilon=st.floats(0.01, 20),
)
@settings(max_examples=300)
def test_no_link_shows_by_more_than_its_budget_and_the_count_is_kept(cells, share, epsilon):
    count = share * cells
    real, false = keep_chances(cells, count, epsilon)
    assert 0 < false <= real <= 1
    assert real <= np.exp(epsilon) * false * (1 + 1e-9)
    assert 1 - false <= np.exp(epsilon) * (1 - real) * (1 + 1e-6) + 1e-15
    assert count * real + (cells - count) * false == pytest.approx(count, rel=1e-6)


def test_pairs_are_published_with_the_chances_that_are_stated():
    network = world(np.random.default_rng(1), n=60, types=1, mean=4.0)
    old = network.links["l0"].matrix(60).todense() > 0
    hits, draws = np.zeros((60, 60)), 300
    for seed in range(draws):
        release = noisy_links(network, epsilon=4.0, seed=seed)
        release.validate()
        assert release.links["l0"].strength is None
        hits += release.links["l0"].matrix(60).todense()
    real, false = keep_chances(60 * 59, old.sum(), 3.6)
    away = ~np.eye(60, dtype=bool)
    assert hits[old].mean() / draws == pytest.approx(real, abs=0.02)
    assert hits[~old & away].mean() / draws == pytest.approx(false, rel=0.05)
    assert not np.diag(hits).any()
    # No unlinked pair is preferred to another.
    assert hits[~old & away].max() / draws < false + 6 * np.sqrt(false / draws)


@pytest.mark.parametrize("self_links", [False, True])
def test_a_tenth_of_the_budget_is_for_how_many_links_there_are(self_links, monkeypatch):
    schema = Schema({"user": {}}, (LinkType("f", "user", "user", None, self_links),))
    rows = [0, *range(1, 200)], [*range(1, 200), 0]
    network = network_from_arrays(schema, {"user": {"id": np.arange(200)}}, {"f": rows})
    asked = []

    def recorded(cells, count, epsilon):
        asked.append((cells, count, epsilon))
        return keep_chances(cells, count, epsilon)

    monkeypatch.setattr(differential_privacy, "keep_chances", recorded)
    for seed in range(400):
        release = noisy_links(network, epsilon=2.0, seed=seed)
    release.validate()
    cells, counts, budgets = (np.array(each) for each in zip(*asked, strict=True))
    assert set(cells) == {200 * 200 if self_links else 200 * 199}
    assert set(budgets) == {0.9 * 2.0}
    # Laplace noise of scale 1/(0.1·2): its size is 5 on average, and as large as that by deviation.
    assert np.abs(counts - 200).mean() == pytest.approx(5, abs=5 * 5 / np.sqrt(400))
    assert np.median(counts) == pytest.approx(200, abs=1.5)


@pytest.mark.parametrize(("n", "self_links"), [(0, False), (1, False), (1, True), (2, False)])
def test_the_smallest_networks_are_published_too(n, self_links):
    schema = Schema({"user": {}}, (LinkType("f", "user", "user", None, self_links),))
    for ends in ([], range(n) if n == 2 or self_links else []):
        rows = [*ends], [n - 1 - v for v in ends]
        network = network_from_arrays(schema, {"user": {"id": np.arange(n)}}, {"f": rows})
        for seed in range(5):
            noisy_links(network, epsilon=1.0, seed=seed).validate()


def test_a_small_budget_leaves_nearly_no_real_link_and_a_large_one_nearly_all():
    network = world(np.random.default_rng(2))
    old = network.links["l0"]
    was = old.matrix(300).todense() > 0
    kept = {}
    for epsilon in (1, 10):
        release = apply_steps(network, [{"method": "edge-dp", "epsilon": epsilon}])
        now = release.links["l0"].matrix(300).todense() > 0
        assert abs(now.sum() - was.sum()) < 0.25 * was.sum()
        kept[epsilon] = (now & was).sum() / was.sum()
    assert kept[1] < 0.1 < 0.7 < kept[10]


def test_users_without_links_are_published_as_they_are():
    schema = Schema({"user": {}, "tag": {}}, (LinkType("of", "tag", "tag"),))
    nodes = {"user": {"id": [1, 2, 3]}, "tag": {"id": [1, 2]}}
    network = network_from_arrays(schema, nodes, {"of": ([1], [2])})
    assert joint_k_degree(network, k=2, node_type="user") is network


@pytest.mark.parametrize("source", ["user", "film"])
def test_links_with_other_nodes_are_added_up_to_all(source):
    target = "film" if source == "user" else "user"
    schema = Schema({"user": {}, "film": {}}, (LinkType("saw", source, target),))
    nodes = {"user": {"id": np.arange(4)}, "film": {"id": np.arange(2)}}
    users, films = [0, 0, 1, 2, 3], [0, 1, 0, 0, 0]
    links = (users, films) if source == "user" else (films, users)
    network = network_from_arrays(schema, nodes, {"saw": links})
    release = joint_k_degree(network, k=4, node_type="user")
    assert len(release.links["saw"]) == 8  # each user has both films, as the one with most
    with pytest.raises(InputError, match="k is 5, expected 1 to 4"):
        joint_k_degree(network, k=5, node_type="user")


def test_links_that_are_there_already_are_not_added_again(monkeypatch):
    schema = Schema({"user": {}}, (LinkType("follows", "user", "user"),))
    follows = [0, 0, 1, 2], [1, 2, 0, 0]  # all that users 1 and 2 lack is each other
    network = network_from_arrays(schema, {"user": {"id": [0, 1, 2]}}, {"follows": follows})
    release = joint_k_degree(network, k=3)
    assert release.links["follows"].matrix(3).sum() == 6
    monkeypatch.setattr(sys.modules[joint_k_degree.__module__], "TRIES", 0)
    with pytest.raises(InputError, match="link type 'follows': no links were found"):
        joint_k_degree(network, k=3)


@pytest.mark.parametrize("epsilon", [0, -1, float("inf"), float("nan")])
def test_budgets_out_of_range_are_refused(epsilon):
    with pytest.raises(InputError, match="epsilon is"):
        noisy_links(world(np.random.default_rng(0), n=10), epsilon=epsilon)
    with pytest.raises(InputError, match="k is 11"):
        joint_k_degree(world(np.random.default_rng(0), n=10), k=11)
