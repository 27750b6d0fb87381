"""Fake links: random ones are found, plausible ones hardly, and nothing where nothing is fake."""

import numpy as np
import pytest

from telic.errors import InputError
from telic.hin import LinkType, Network, Rule, Schema, network_from_arrays
from telic.privacy import detect_fakes
from telic.privacy.anonymisers import fake_links
from telic.privacy.anonymisers.fake_links import add_plausible_links
from telic.privacy.anonymisers.k_degree import k_degree
from telic.privacy.anonymisers.perturb_links import perturb_links
from telic.privacy.anonymisers.random_links import kept_links

SCHEMA = Schema(
    {"user": {"town": Rule("exact")}},
    (
        LinkType("knows", "user", "user"),
        LinkType("writes", "user", "user", Rule("at_least")),
    ),
)


@pytest.fixture(scope="module")
def towns():
    """Thirty towns of ten; people know and write to each other within them, mostly both ways."""
    rng = np.random.default_rng(0)
    n = 300
    town = np.arange(n) // 10
    chance = np.where(town[:, None] == town, 0.5, 0.001)
    close = np.triu(rng.random((n, n)) < chance, 1)
    links = {}
    for name, share in (("knows", 0.9), ("writes", 0.7)):
        one = (close | close.T) & (rng.random((n, n)) < share)
        links[name] = tuple(np.nonzero(one))
    links["writes"] += (rng.geometric(0.4, len(links["writes"][0])),)
    return network_from_arrays(SCHEMA, {"user": {"id": np.arange(n), "town": town}}, links)


def test_random_fakes_are_found_and_plausible_ones_hardly(towns):
    plain = detect_fakes(towns, perturb_links(towns, share=0.2, plausible=False))
    careful = detect_fakes(towns, perturb_links(towns, share=0.2))
    assert set(plain) == set(careful) == {"knows", "writes"}
    assert min(plain.values()) > 0.95
    assert max(careful.values()) < 0.65


def test_nothing_is_found_where_real_links_are_called_fake(towns):
    rng = np.random.default_rng(1)
    half = {
        name: kept_links(links, rng.random(len(links)) < 0.5, 300)
        for name, links in towns.links.items()
    }
    found = detect_fakes(Network(SCHEMA, towns.nodes, half), towns)
    assert max(abs(auc - 0.5) for auc in found.values()) < 0.06


def test_plausible_links_are_new_and_as_many_as_wanted(towns):
    rng = np.random.default_rng(2)
    wanted = {name: rng.integers(0, 3, 300) for name in towns.links}
    grown = add_plausible_links(towns, wanted, rng, "user")
    grown.validate()
    for name, old in towns.links.items():
        added = grown.links[name].out_degree - old.out_degree
        assert (added <= wanted[name]).all()
        assert added.sum() > 0.9 * wanted[name].sum()
        was = old.matrix(300).todense()
        assert (grown.links[name].matrix(300).todense()[was > 0] == was[was > 0]).all()


def test_as_many_links_are_there_as_before_and_degrees_are_shared(towns):
    release = perturb_links(towns, share=0.3)
    release.validate()
    assert all(len(release.links[name]) == len(links) for name, links in towns.links.items())
    shared = k_degree(towns, k=6)
    for links in shared.links.values():
        assert np.unique(links.out_degree, return_counts=True)[1].min() >= 6


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


def test_too_many_links_to_draw_with_care_are_refused(towns, monkeypatch):
    monkeypatch.setattr(fake_links, "MOST_WANTED", 10)
    with pytest.raises(InputError, match='"plausible": false'):
        perturb_links(towns, share=0.5)
