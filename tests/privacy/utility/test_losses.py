"""What a release has lost, each loss against a slow and obvious version."""

from itertools import combinations

import networkx
import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from scipy.sparse import csr_array
from sklearn.metrics import adjusted_rand_score, roc_auc_score

from telic.hin import LinkType, Network, Rule, Schema, induced, network_from_arrays
from telic.hin.samples import neighbours
from telic.privacy.anonymisers.ids import replace_ids
from telic.privacy.anonymisers.perturb_links import perturb_links
from telic.privacy.utility import analyses
from telic.privacy.utility.utility_loss import (
    STRUCTURE_USERS,
    UtilityLoss,
    _clustering,
    _prediction,
    link_losses,
    utility_loss,
)


def directed(rng, n=40, density=0.12):
    """Links with strengths; some lead both ways, some to the node itself."""
    return rng.integers(1, 4, (n, n)) * (rng.random((n, n)) < density)


def test_clustering_is_that_of_the_undirected_graph():
    links = directed(np.random.default_rng(0))
    around = links + links.T
    graph = networkx.from_numpy_array(around > 0)
    graph.remove_edges_from([(v, v) for v in range(40)])
    expected = [networkx.clustering(graph, v) for v in range(40)]
    np.testing.assert_allclose(_clustering(csr_array(around)), expected)


def test_prediction_is_how_well_common_neighbours_tell_linked_pairs():
    rng = np.random.default_rng(1)
    group = np.arange(40) % 4
    shown, real = (
        np.triu(rng.random((40, 40)) < np.where(group[:, None] == group, 0.8, 0.05))
        for _ in range(2)
    )
    shown, real = shown | shown.T, real | real.T
    apart = ~np.eye(40, dtype=bool)
    common = (shown & apart).astype(int) @ (shown & apart)
    for truth in (real, shown):
        expected = roc_auc_score(truth[apart], common[apart])
        found = _prediction(csr_array(shown * 3), csr_array(truth), 0, pairs=40_000)
        assert found == pytest.approx(expected, abs=0.01)
        assert expected > 0.55
    for links in (np.zeros((40, 40)), np.ones((40, 40))):  # there is nothing to tell
        assert _prediction(csr_array(shown), csr_array(links), 0) == 0.5


def test_losses_are_averaged_over_link_types_and_then_by_weight():
    schema = Schema(
        {"user": {}},
        (LinkType("a", "user", "user"), LinkType("b", "user", "user", Rule("exact"), True)),
    )
    nodes = {"user": {"id": range(3)}}
    real = network_from_arrays(schema, nodes, {"a": ([0], [1]), "b": ([0, 1], [0, 2], [1, 2])})
    shown = network_from_arrays(schema, nodes, {"a": ([0, 0], [1, 2]), "b": ([0], [0], [2])})
    found = link_losses(real, shown)

    def told(values):
        """Bits that a table of pairs tells."""
        return stats.entropy(np.unique(values, axis=0, return_counts=True)[1], base=2)

    # What is said of the 6 pairs of type a, and of the 9 of type b: really, and in the release.
    a = [(1, 1), (0, 1), *[(0, 0)] * 4]
    b = [(1, 2), (2, 0), *[(0, 0)] * 7]
    lost = {}
    for name, real_of in (("links", int), ("existence", bool)):
        tables = [np.array([(real_of(x), y) for x, y in pairs]) for pairs in (a, b)]
        lost[name] = np.mean([(told(t) - told(t[:, 1:])) / told(t[:, :1]) for t in tables])
    assert found == pytest.approx(
        lost | {"false_links": 1 / 4, "lost_links": 1 / 4, "strength": 1, "degree": 1 / 4}
    )
    loss = UtilityLoss(*np.arange(12) / 11)
    assert loss.total() == pytest.approx(1 / 2)
    assert loss.total({"model": 9.0}) == pytest.approx((55 / 11 + 9) / (11 + 9))


@pytest.mark.parametrize(
    ("real", "shown", "lost"),
    [
        ({0: 1, 1: 2, 2: 3, 3: 4}, {0: 1, 1: 2, 2: 3, 3: 9}, 1 / 4),
        ({0: 1, 1: 2, 2: 3, 3: 4}, {0: 1, 1: 9}, 1 / 2),  # of the links that are left
        ({0: 1, 1: 2}, {2: 1}, 1),
        ({0: 1, 1: 2}, None, 1),  # without strengths: none is right
        ({}, {2: 1}, 0),
    ],
)
def test_a_strength_is_kept_or_lost(real, shown, lost):
    def linking(ends, rule):
        schema = Schema({"user": {}}, (LinkType("f", "user", "user", rule),))
        rows = [4] * len(ends), list(ends), [*ends.values()][: len(ends) if rule else 0]
        links = {"f": rows if rule else rows[:2]}
        return network_from_arrays(schema, {"user": {"id": range(5)}}, links)

    before = linking(real, Rule("exact"))
    after = linking(real if shown is None else shown, shown and Rule("exact"))
    assert link_losses(before, after)["strength"] == lost


def test_the_whole_is_put_together_of_its_parts():
    rng = np.random.default_rng(6)
    schema = Schema(
        {"user": {"a": Rule("exact"), "b": Rule("exact")}},
        (LinkType("f", "user", "user", Rule("exact")),),
    )
    group = np.arange(60) % 4
    wanted = np.where(group[:, None] == group, 0.5, 0.03) * ~np.eye(60, dtype=bool)
    rows = np.nonzero(rng.random((60, 60)) < wanted)
    nodes = {"id": np.arange(60), "a": group, "b": np.arange(60) % 2}
    links = {"f": (*rows, rng.integers(1, 4, len(rows[0])))}
    network = network_from_arrays(schema, {"user": nodes}, links)
    noisy = perturb_links(network, share=0.5, plausible=False, seed=1)
    release = Network(schema, {"user": noisy.nodes["user"].drop_columns(["b"])}, noisy.links)
    loss = utility_loss(network, release, seed=2)
    was, now = (neighbours(one, "user") for one in (network, release))
    best, left = _prediction(was, was, 2), _prediction(now, was, 2)
    real, read, sure = analyses.readings(network, release, "user")
    assert 0.5 < left < best
    parts = link_losses(network, release) | {
        "attributes": 1 / 2,
        "clustering": np.abs(_clustering(was) - _clustering(now)).mean(),
        "prediction": (best - left) / (best - 0.5),
        "communities": analyses.community_loss(real, read, 2),
        "ranking": analyses.ranking_loss(real, read),
        "model": analyses.model_loss(real, read, sure, 2),
    }
    assert {part: getattr(loss, part) for part in parts} == pytest.approx(parts)
    shuffled = induced(release, {"user": rng.permutation(60)})
    assert utility_loss(network, shuffled, seed=2) == loss  # rows are told apart by their ids
    fresh = shuffled.nodes["user"].set_column(0, "id", pa.array(range(100, 160)))
    strangers = Network(schema, {"user": fresh}, shuffled.links)
    assert utility_loss(network, strangers, seed=2).links > loss.links
    nobody = induced(network, {"user": np.empty(0, int)})
    assert utility_loss(nobody, nobody).total() == 0


@pytest.mark.parametrize("links", [([], []), ([5], [5])])
def test_a_network_of_one_user_loses_nothing_to_itself(links):
    schema = Schema({"user": {}}, (LinkType("f", "user", "user", self_links=True),))
    ends = tuple(pa.array(end, pa.int64()) for end in links)
    network = network_from_arrays(schema, {"user": {"id": [5]}}, {"f": ends})
    assert utility_loss(network, network).total() == 0


def test_a_sample_is_compared_with_a_release_of_other_ids():
    rng = np.random.default_rng(3)
    n = STRUCTURE_USERS + 50
    schema = Schema({"user": {}}, (LinkType("f", "user", "user", self_links=True),))
    rows = np.nonzero(rng.random((n, n)) < 3 / n)
    network = network_from_arrays(schema, {"user": {"id": np.arange(n)}}, {"f": rows})
    assert utility_loss(network, replace_ids(network, node_type="user")).total() == 0


def test_a_half_without_links_asks_nothing():
    star = np.zeros((20, 20))
    star[0, 1:] = 1
    for seed in range(6):  # the one user who links is in one half or the other
        links = csr_array(star)
        assert 0 <= analyses.model_loss(links, links, links, seed) <= 1


def test_a_pair_shows_the_paths_of_length_two_the_link_back_and_both_users_links():
    rng = np.random.default_rng(2)
    links = directed(rng, 12).astype(float)
    pairs = np.array([*combinations(range(12), 2)]).T
    either = links + links.T
    expected = [
        (either[a] @ either[b], links[b, a], links[a].sum(), links[:, b].sum()) for a, b in pairs.T
    ]
    np.testing.assert_allclose(analyses._features(csr_array(links), pairs), np.log1p(expected))


def test_pairs_to_learn_from_are_linked_and_not_alike(monkeypatch):
    rng = np.random.default_rng(3)
    truth = (rng.random((60, 60)) < 0.2).astype(float)
    users = rng.permutation(60)[:25]
    for most in (4000, 100):
        monkeypatch.setattr(analyses, "TRAINED_ON", most)
        first, second = analyses._pairs(csr_array(truth), users, rng)
        assert set(first) <= set(users)
        assert (first != second).all()
        linked = truth[first, second] > 0
        number = truth[users].sum() - truth[users, users].sum() if most == 4000 else most / 2
        assert linked.sum() == pytest.approx(number, abs=0 if most == 4000 else 6)
        # Drawn pairs that happen to be linked are left out, a fifth of them.
        assert (~linked).sum() == pytest.approx(min(number, most / 2 * 0.8), abs=12)
        assert len(set(second)) > 25


def test_communities_are_those_of_links_weighed_both_ways():
    links = np.zeros((12, 12))
    for group in range(3):  # strong inside, weak between; a link to oneself joins nobody
        own = np.arange(12) // 4 == group
        links[np.ix_(own, own)] = 5
    links[::4, 1::4] += 1
    real = csr_array(np.triu(links))
    group = np.arange(12) // 4
    assert adjusted_rand_score(analyses._louvain(real, 0), group) == 1
    assert analyses.community_loss(real, csr_array(np.diag(np.full(12, 9.0))), 0) == 1
    halves = np.kron(np.arange(6) // 3, [1, 1])  # the release joins others
    read = csr_array((halves[:, None] == halves).astype(float))
    assert analyses.community_loss(real, read, 0) == pytest.approx(
        1 - adjusted_rand_score(group, halves)
    )


def test_rankings_are_compared_by_their_order():
    rng = np.random.default_rng(4)
    real, read = (csr_array(directed(rng, 20).astype(float)) for _ in range(2))
    order = stats.spearmanr(analyses.pagerank(real), analyses.pagerank(read)).statistic
    assert analyses.ranking_loss(real, read) == pytest.approx(1 - order)
    ring = csr_array(np.roll(np.eye(20), 1, axis=1))
    assert analyses.ranking_loss(real, ring) == 1
    assert analyses.ranking_loss(ring, real) == 0
    upside_down = csr_array(np.tril(np.ones((5, 5)), -1))
    assert analyses.ranking_loss(upside_down, csr_array(upside_down.T)) == 1


def test_a_model_learns_what_the_release_is_sure_of():
    rng = np.random.default_rng(5)
    schema = Schema({"user": {}}, (LinkType("follow", "user", "user"),))
    group = np.arange(90) % 3
    chance = np.where(group[:, None] == group, 0.4, 0.02) * ~np.eye(90, dtype=bool)
    rows = np.nonzero(rng.random((90, 90)) < chance)
    network = network_from_arrays(schema, {"user": {"id": np.arange(90)}}, {"follow": rows})
    truth = csr_array(network.links["follow"].matrix(90).astype(float))
    lost = []
    for share in (0.0, 0.3, 0.8):
        release = perturb_links(network, share=share, plausible=False, seed=1)
        lost.append(analyses.model_loss(*analyses.readings(network, release, "user"), seed=0))
        # To be less sure of every link alike, of those that there are, changes nothing.
        doubted = csr_array(release.links["follow"].matrix(90) * 0.5)
        if not share:
            assert analyses.model_loss(truth, truth, doubted, seed=0) < 0.02
    assert lost[0] == 0
    assert 0.005 < lost[1] < 0.3 < 0.5 < lost[2]
    backwards = csr_array(1 - truth.todense())
    assert analyses.model_loss(truth, truth, backwards, seed=0) == 1
