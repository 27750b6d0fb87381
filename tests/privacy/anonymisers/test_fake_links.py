"""Fake links: random ones are found, plausible ones hardly, and nothing where nothing is fake."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from telic.errors import InputError
from telic.hin import LinkType, Network, Rule, Schema, network_from_arrays
from telic.privacy import detect_fakes
from telic.privacy.anonymisers import fake_links
from telic.privacy.anonymisers.fake_links import add_plausible_links
from telic.privacy.anonymisers.k_degree import _thinned, k_degree
from telic.privacy.anonymisers.perturb_links import perturb_links
from telic.privacy.anonymisers.random_links import add_random_links, kept_links
from telic.privacy.protected import attribute_codes

SCHEMA = Schema(
    {"user": {"town": Rule("exact")}},
    (
        LinkType("knows", "user", "user"),
        LinkType("writes", "user", "user", Rule("at_least")),
    ),
)


def towns_of_ten(n):
    """Towns of ten of n people, who know and write to each other there, mostly both ways."""
    rng = np.random.default_rng(0)
    town = np.arange(n) // 10
    chance = np.where(town[:, None] == town, 0.5, 0.001)
    close = np.triu(rng.random((n, n)) < chance, 1)
    links = {}
    for name, share in (("knows", 0.9), ("writes", 0.7)):
        one = (close | close.T) & (rng.random((n, n)) < share)
        links[name] = tuple(np.nonzero(one))
    links["writes"] += (rng.geometric(0.4, len(links["writes"][0])),)
    return network_from_arrays(SCHEMA, {"user": {"id": np.arange(n), "town": town}}, links)


@pytest.fixture(scope="module")
def towns():
    return towns_of_ten(200)


@pytest.fixture(scope="module")
def more_towns():
    """For shares that are estimated."""
    return towns_of_ten(300)


@pytest.fixture(scope="module")
def careful(towns):
    return perturb_links(towns, share=0.2)


@pytest.fixture
def fewer_rounds(monkeypatch):
    """What is new, and how much, is so after any round; each takes a second."""
    monkeypatch.setattr(fake_links, "ROUNDS", 2)


def test_random_fakes_are_found_and_plausible_ones_hardly(towns, careful):
    plain = detect_fakes(towns, perturb_links(towns, share=0.2, plausible=False))
    found = detect_fakes(towns, careful)
    assert set(plain) == set(found) == {"knows", "writes"}
    assert min(plain.values()) > 0.95
    assert max(found.values()) < 0.65


def test_nothing_is_found_where_real_links_are_called_fake(more_towns):
    rng = np.random.default_rng(1)
    half = {
        name: kept_links(links, rng.random(len(links)) < 0.5, 300)
        for name, links in more_towns.links.items()
    }
    found = detect_fakes(Network(SCHEMA, more_towns.nodes, half), more_towns)
    assert max(abs(auc - 0.5) for auc in found.values()) < 0.06


@pytest.mark.usefixtures("fewer_rounds")
def test_plausible_links_are_new_and_as_many_as_wanted(towns):
    rng = np.random.default_rng(2)
    wanted = {name: rng.integers(0, 3, 200) for name in towns.links}
    grown = add_plausible_links(towns, wanted, rng, "user")
    grown.validate()
    for name, old in towns.links.items():
        added = grown.links[name].out_degree - old.out_degree
        assert (added <= wanted[name]).all()
        assert added.sum() > 0.9 * wanted[name].sum()
        was = old.matrix(200).todense()
        assert (grown.links[name].matrix(200).todense()[was > 0] == was[was > 0]).all()


@pytest.mark.usefixtures("fewer_rounds")
def test_as_many_links_are_there_as_before_and_degrees_are_shared(towns, careful):
    careful.validate()
    assert all(len(careful.links[name]) == len(links) for name, links in towns.links.items())
    shared = k_degree(towns, k=6)
    for links in shared.links.values():
        assert np.unique(links.out_degree, return_counts=True)[1].min() >= 6


@pytest.mark.slow
def test_where_links_follow_no_pattern_fake_ones_follow_none():
    rng = np.random.default_rng(5)
    n = 300
    schema = Schema({"user": {"age": Rule("exact")}}, (LinkType("knows", "user", "user"),))
    linked = (rng.random((n, n)) < 0.01) & ~np.eye(n, dtype=bool)
    network = network_from_arrays(
        schema,
        {"user": {"id": np.arange(n), "age": rng.integers(0, 500, n)}},
        {"knows": np.nonzero(linked)},
    )
    for seed in range(2):
        found = detect_fakes(network, perturb_links(network, share=0.2, seed=seed))
        assert abs(found["knows"] - 0.5) < 0.1


@pytest.mark.slow
def test_fake_links_can_be_spread_over_all_users():
    rng = np.random.default_rng(6)
    n = 200
    schema = Schema({"user": {"age": Rule("exact")}}, (LinkType("knows", "user", "user"),))
    linked = rng.random((n, n)) < 0.02 + 0.1 * (np.arange(n)[:, None] > 160) * rng.random((n, 1))
    np.fill_diagonal(linked, False)
    network = network_from_arrays(
        schema,
        {"user": {"id": np.arange(n), "age": np.arange(n)}},
        {"knows": np.nonzero(linked)},
    )
    plain, spread = (k_degree(network, k=8, even=even) for even in (0.0, 0.4))
    was = linked.sum(axis=1)
    for release in (plain, spread):
        links = release.links["knows"]
        assert np.unique(links.out_degree, return_counts=True)[1].min() >= 8
        assert (links.out_degree == plain.links["knows"].out_degree).all()
    kept = (spread.links["knows"].matrix(n).todense().astype(bool) & linked).sum(axis=1)
    degree = spread.links["knows"].out_degree
    # A replaced link may be drawn again, so that a few more real ones are there than were kept.
    assert np.mean(1 - kept / np.maximum(degree, 1)) > 0.33
    assert (plain.links["knows"].matrix(n).todense().astype(bool) & linked).sum() == was.sum()
    assert detect_fakes(network, plain)["knows"] > 0.7
    assert detect_fakes(network, spread)["knows"] < 0.62
    with pytest.raises(InputError, match="even is 1, expected"):
        k_degree(network, k=8, even=1)


@pytest.fixture(scope="module")
def few():
    """Twenty people of three towns, linked at random; two kinds of links, one with strengths."""
    rng = np.random.default_rng(7)
    links = {}
    for name in ("knows", "writes"):
        links[name] = np.nonzero((rng.random((20, 20)) < 0.2) & ~np.eye(20, dtype=bool))
    links["writes"] += (rng.integers(1, 5, len(links["writes"][0])),)
    nodes = {"id": np.arange(20), "town": rng.integers(0, 3, 20)}
    return network_from_arrays(SCHEMA, {"user": nodes}, links)


def test_what_shows_of_a_pair_is_as_if_they_were_linked(few):
    knows, writes = (few.links[name].matrix(20).todense() > 0 for name in ("knows", "writes"))
    around = (knows | knows.T | writes | writes.T).astype(int)
    code = attribute_codes(few.nodes["user"].column("town"))
    a, b = np.divmod(np.arange(400), 20)
    found = fake_links._look(few, "knows", "user").of(fake_links._Pairs(a, b, a + 1))
    for row, i, j in zip(found, a, b, strict=True):
        paths = around[i] @ around[j]
        fewest = max(1, min(around[i].sum(), around[j].sum()))
        expected = [i + 1, paths, paths / fewest, knows[j, i], writes[i, j], writes[j, i]]
        new, first = not knows[i, j], not around[i, j]
        expected += [knows[i].sum() + new, knows[:, i].sum()]
        expected += [knows[j].sum(), knows[:, j].sum() + new]
        expected += [around[i].sum() + first, around[j].sum() + first]
        expected += [code[i] == code[j], abs(code[i] - code[j]), code[i], code[j]]
        np.testing.assert_allclose(row, np.array(expected, float))


def test_a_step_leads_to_any_neighbour_alike_and_nowhere_from_nowhere(few):
    graph = few.links["knows"].matrix(20)
    graph = csr_array(graph.todense() * (np.arange(20) != 4)[:, None])  # 4 knows nobody
    start = np.repeat(np.arange(-1, 20), 400)
    end = fake_links._step(graph, start, np.random.default_rng(0))
    for v in range(-1, 20):
        known = np.flatnonzero(graph.todense()[v]) if v >= 0 and v != 4 else np.array([-1])
        values, times = np.unique(end[start == v], return_counts=True)
        assert values.tolist() == known.tolist()
        share = 400 / len(known)
        assert np.abs(times - share).max() <= 5 * np.sqrt(share)


def test_candidates_are_new_pairs_of_who_wants_links(more_towns):
    missing = np.arange(300) % 3
    n, old = 300, more_towns.links["writes"]
    look = fake_links._look(more_towns, "writes", "user")
    linked = old.matrix(n).todense() > 0
    pool = fake_links._candidates(look, old, missing, n, np.random.default_rng(3))
    pairs = set(zip(pool.source.tolist(), pool.target.tolist(), strict=True))
    assert len(pairs) == len(pool.source)
    assert not linked[pool.source, pool.target].any()
    drawn = np.bincount(pool.source, minlength=n)
    assert (drawn <= missing * fake_links.CANDIDATES).all()
    assert (drawn[missing > 0] > 0).all()
    # Two ways of five lead anywhere; the others mostly to the nine of the same town.
    elsewhere = (pool.source // 10 != pool.target // 10).sum()
    assert elsewhere == pytest.approx(2 / 5 * missing.sum() * fake_links.CANDIDATES, rel=0.1)
    assert set(pool.strength) == set(old.strength)


@pytest.mark.usefixtures("fewer_rounds")
@pytest.mark.parametrize("self_links", [False, True])
def test_fake_links_lead_to_where_they_start_only_where_links_do(more_towns, self_links):
    schema = Schema(SCHEMA.nodes, (LinkType("knows", "user", "user", None, self_links),))
    network = Network(schema, more_towns.nodes, {"knows": more_towns.links["knows"]})
    release = perturb_links(network, share=0.3, seed=1).links["knows"]
    assert (release.sources == release.indices).any() == self_links


def _of_towns(n=200, items=100):
    """Towns of ten who know each other, and buy and are given what their town likes."""
    rng = np.random.default_rng(0)
    types = (
        LinkType("knows", "user", "user"),
        LinkType("buys", "user", "item", Rule("at_least")),
        LinkType("gift", "item", "user"),
    )
    town = np.arange(n) // 10
    known = (rng.random((n, n)) < np.where(town[:, None] == town, 0.4, 0)) & ~np.eye(n, dtype=bool)
    liked = rng.dirichlet(0.1 * np.ones(items), n // 10)[town]
    some, others = (rng.random((n, items)) < 1 - np.exp(-8 * liked) for _ in range(2))
    bought = np.nonzero(some)
    return network_from_arrays(
        Schema({"user": {}, "item": {"kind": Rule("exact")}}, types),
        {
            "user": {"id": np.arange(n)},
            "item": {"id": np.arange(items), "kind": np.arange(items) % 4},
        },
        {
            "knows": np.nonzero(known),
            "buys": (*bought, rng.geometric(0.5, len(bought[0]))),
            "gift": np.nonzero(others.T),
        },
    )


@pytest.mark.parametrize("name", ["buys", "gift"])
def test_what_shows_of_a_pair_of_two_types_is_as_if_they_were_linked(name):
    network = _of_towns(30, 12)
    knows = network.links["knows"].matrix(30).todense() > 0
    around = (knows | knows.T).astype(int)
    link = network.schema.link(name)
    sizes = network.size(link.source), network.size(link.target)
    own = network.links[name].matrix(sizes[1]).todense() > 0
    a, b = np.divmod(np.arange(sizes[0] * sizes[1]), sizes[1])
    found = fake_links._look(network, name, "user").of(fake_links._Pairs(a, b, a + 1))
    for row, i, j in zip(found, a, b, strict=True):
        shared = around[i] @ own[:, j] if name == "buys" else around[j] @ own[i]
        item = j if name == "buys" else i
        degrees = own[i].sum() + (not own[i, j]), own[:, j].sum() + (not own[i, j])
        np.testing.assert_allclose(row, [i + 1, *degrees, shared, item % 4])


@pytest.mark.parametrize("name", ["buys", "gift"])
def test_candidates_of_two_types_are_what_friends_and_their_like_are_linked_to(name):
    network = _of_towns()
    link, links = network.schema.link(name), network.links[name]
    starts, ends = network.size(link.source), network.size(link.target)
    own = links.matrix(ends).todense() > 0
    knows = network.links["knows"].matrix(200).todense() > 0
    around = (knows | knows.T).astype(int)
    each = np.repeat(np.arange(starts), 50)
    look = fake_links._look(network, name, "user")
    friends, alike = look.ways(each, np.random.default_rng(2))
    reached = around @ own if name == "buys" else own @ around
    shared = own.astype(int) @ own.T.astype(int) @ own
    for found, can in ((friends, reached), (alike, shared)):
        there = found >= 0
        assert (can[each[there], found[there]] > 0).all()
        # Fifty steps lead from nearly everybody who has somewhere to go, and to several ends.
        assert there.reshape(-1, 50).any(axis=1).sum() >= 0.95 * (can > 0).any(axis=1).sum()
        assert len(set(zip(each[there], found[there], strict=True))) > 2 * starts


def test_a_fake_link_to_a_node_of_many_links_is_drawn_as_often_as_real_ones_are():
    """As without the blur a degree that no other node has tells a pair that is not linked."""
    network, _ = shops()
    before = np.bincount(network.links["buys"].indices, minlength=200)
    popular = before >= np.sort(before)[-10]
    release = perturb_links(network, share=0.3, node_type="user", seed=3).links["buys"]
    was = network.links["buys"].matrix(200).todense() > 0
    fake = ~was[release.sources, release.indices]
    real = before[popular].sum() / before.sum()
    assert popular[release.indices[fake]].mean() == pytest.approx(real, rel=0.25)


@pytest.mark.usefixtures("fewer_rounds")
def test_fake_links_of_two_types_are_hardly_told_from_real_ones():
    network = _of_towns()
    plain, careful = (
        detect_fakes(
            network,
            perturb_links(network, share=0.2, plausible=plausible, node_type="user"),
            node_type="user",
        )
        for plausible in (False, True)
    )
    for name in ("buys", "gift"):
        assert plain[name] > 0.75
        assert careful[name] < 0.62


def test_answers_lead_back_where_no_real_link_does(few):
    old, shown = few.links["knows"], few.links["writes"]
    was, now = (links.matrix(20).todense() for links in (old, shown))
    found = fake_links._answers(shown, old, 20)
    answers = {
        (b, a): int(now[a, b]) for a, b in zip(*np.nonzero(now), strict=True) if not was[b, a]
    }
    ends = zip(found.source, found.target, strict=True)
    assert dict(zip(ends, found.strength, strict=True)) == answers
    both = fake_links._joined(found, found.take(np.arange(5)))
    assert len(both.source) == len(answers)


def test_links_are_taken_out_until_the_share_is_to_be_fake():
    n, draws, even = 60, 200, 0.4
    rng = np.random.default_rng(8)
    linked = (rng.random((n, n)) < rng.random((n, 1)) / 2) & ~np.eye(n, dtype=bool)
    schema = Schema({"user": {}}, (LinkType("knows", "user", "user"),))
    rows = np.nonzero(linked)
    old = network_from_arrays(schema, {"user": {"id": np.arange(n)}}, {"knows": rows}).links[
        "knows"
    ]
    degree = old.out_degree + rng.integers(0, 12, n)
    lost, gone = np.zeros(n), np.zeros((n, n))
    for seed in range(draws):
        left = _thinned(old, degree, even, np.random.default_rng(seed))
        lost += (old.out_degree - left.out_degree) / draws
        gone += linked & ~(left.matrix(n).todense() > 0)
    fake = degree - old.out_degree
    wanted = np.minimum(np.maximum(even * degree - fake, 0), old.out_degree)
    np.testing.assert_allclose(lost, wanted, atol=5 * 0.5 / np.sqrt(draws))
    # Any link of a user may be the one.
    share = (wanted / np.maximum(old.out_degree, 1))[:, None] * linked
    np.testing.assert_allclose(gone / draws, share, atol=5 * 0.5 / np.sqrt(draws))


def test_fakes_are_judged_where_there_are_ten_of_either_sort(few):
    knows, writes = few.links["knows"], few.links["writes"]
    rng = np.random.default_rng(9)

    def grown(number):
        missing = np.bincount(np.arange(number), minlength=20)
        links = add_random_links(few, "knows", missing, rng)
        return Network(SCHEMA, few.nodes, {"knows": links, "writes": writes})

    assert detect_fakes(few, grown(9)) == {}
    assert detect_fakes(few, grown(10)).keys() == {"knows"}
    bare = Network(SCHEMA, few.nodes, {"knows": knows})
    assert detect_fakes(few, bare) == {}


def test_too_many_links_to_draw_with_care_are_refused(towns, monkeypatch):
    monkeypatch.setattr(fake_links, "MOST_WANTED", 10)
    with pytest.raises(InputError, match='"plausible": false'):
        perturb_links(towns, share=0.5)


def test_candidates_of_whom_nothing_can_be_learned_are_as_likely_as_not(monkeypatch):
    """The one real link is in one fold, whose candidates no classifier has seen an example for."""

    class Look:
        def of(self, pairs):
            return np.column_stack([pairs.source, pairs.target]).astype(float)

    class Classifier:
        def fit(self, rows, label):
            assert label.tolist() == [1] + [0] * (len(rows) - 1)
            assert rows[0].tolist() == [7, 8]
            asked.append(len(rows) - 1)
            return self

        def predict_proba(self, rows):
            return np.full((len(rows), 2), [0.25, 0.75])

    asked = []
    monkeypatch.setattr(fake_links, "_classifier", lambda seed: Classifier())
    real = fake_links._Pairs(*np.array([[7], [8], [1]]))
    pool = fake_links._Pairs(np.arange(30), np.arange(30) + 1, np.ones(30, int))
    odds = fake_links._odds(Look(), real, pool, np.random.default_rng(4))
    again = np.random.default_rng(4)
    own = again.integers(fake_links.FOLDS, size=1)[0]
    fold = again.integers(fake_links.FOLDS, size=30)
    assert odds == pytest.approx(np.where(fold == own, 0.0, np.log(3)))
    assert asked == [(fold != k).sum() for k in range(fake_links.FOLDS) if k != own]


def shops(n=300, items=200, fakes=0.3):
    """Users buy popular items; of a release some of what they buy is fake, and drawn evenly."""
    rng = np.random.default_rng(0)
    schema = Schema({"user": {}, "item": {}}, (LinkType("buys", "user", "item"),))
    popular = rng.dirichlet(0.2 * np.ones(items))
    pairs = {(u, i) for u in range(n) for i in rng.choice(items, 6, p=popular)}
    false = {(u, i) for u in range(n) for i in rng.integers(items, size=int(6 * fakes) + 1)}

    def network(links):
        nodes = {"user": {"id": np.arange(n)}, "item": {"id": np.arange(items)}}
        return network_from_arrays(schema, nodes, {"buys": tuple(np.array(sorted(links)).T)})

    return network(pairs), network(pairs | false)


@pytest.mark.parametrize("node_type", ["user", "item"])
def test_fake_links_to_and_from_other_types_are_looked_at_too(node_type):
    network, release = shops()
    found = detect_fakes(network, release, node_type=node_type)
    assert found["buys"] > 0.75
    # The control: links that are called fake by chance are as the others are.
    rng = np.random.default_rng(1)
    links = release.links["buys"]
    some = rng.random(len(links)) < 0.7
    pairs = links.sources[some], links.indices[some]
    by_chance = network_from_arrays(
        network.schema,
        {kind: {"id": np.arange(network.size(kind))} for kind in ("user", "item")},
        {"buys": pairs},
    )
    assert detect_fakes(by_chance, release, node_type=node_type)["buys"] < 0.6
