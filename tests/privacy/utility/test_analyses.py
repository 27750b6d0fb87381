"""What is asked of a release read as well as it can be, against slow and obvious versions."""

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from telic.hin import LinkType, Rule, Schema, network_from_arrays
from telic.privacy.anonymisers.complete_graph import complete_graph
from telic.privacy.anonymisers.perturb_links import perturb_links
from telic.privacy.utility.analyses import (
    community_loss,
    model_loss,
    pagerank,
    ranking_loss,
    readings,
)

SCHEMA = Schema(
    {"user": {}},
    (
        LinkType("follow", "user", "user"),
        LinkType("mention", "user", "user", Rule("at_least")),
    ),
)


def network(rng, n, density):
    links = {}
    for link in SCHEMA.links:
        source, target = np.nonzero((rng.random((n, n)) < density) & ~np.eye(n, dtype=bool))
        links[link.name] = (source, target)
        if link.strength is not None:
            links[link.name] += (rng.integers(1, 4, len(source)),)
    return network_from_arrays(SCHEMA, {"user": {"id": np.arange(n)}}, links)


@given(seed=st.integers(0, 10**6), varying=st.booleans(), share=st.sampled_from([0.0, 0.4, None]))
@settings(max_examples=40)
def test_a_link_counts_by_what_links_published_alike_really_are(seed, varying, share):
    rng = np.random.default_rng(seed)
    real = network(rng, int(rng.integers(2, 9)), 0.3)
    if share is None:
        release = complete_graph(real, varying=varying, seed=seed)
    else:
        release = perturb_links(real, share=share, seed=seed, plausible=False)
    n = real.size("user")
    strong, read, sure = np.zeros((3, n, n))
    for name in real.links:
        was, now = (x.links[name].matrix(n).todense() for x in (real, release))
        strong += was
        for a, b in zip(*np.nonzero(now), strict=True):
            alike = was[now == now[a, b]]
            read[a, b] += alike.mean()
            sure[a, b] += (alike > 0).mean()
    for found, expected in zip(readings(real, release, "user"), (strong, read, sure), strict=True):
        assert found.todense() == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(5))
def test_pagerank_is_networkx_s(seed):
    rng = np.random.default_rng(seed)
    links = rng.integers(1, 5, (30, 30)) * (rng.random((30, 30)) < 0.1)
    expected = networkx.pagerank(
        networkx.from_numpy_array(links, create_using=networkx.DiGraph), tol=1e-12, max_iter=1000
    )
    found = pagerank(csr_array(links))
    assert found == pytest.approx([expected[v] for v in range(30)], abs=1e-5)
    assert found.sum() == pytest.approx(1)


def grouped(rng, n=120):
    """Four groups, dense inside."""
    group = np.arange(n) % 4
    chance = np.where(group[:, None] == group, 0.4, 0.01)
    links = np.triu(rng.random((n, n)) < chance, 1)
    return csr_array((links | links.T).astype(float))


def test_questions_are_answered_worse_as_the_links_are_replaced():
    rng = np.random.default_rng(1)
    real = grouped(rng)
    noise = csr_array(rng.permutation(real.todense().ravel()).reshape(real.shape))
    for loss in (
        lambda read: community_loss(real, read, 0),
        lambda read: ranking_loss(real, read),
        lambda read: model_loss(real, read, csr_array((read > 0).astype(float)), 0),
    ):
        assert loss(real) == 0
        assert loss(noise) > 0.6
        assert loss(csr_array(real.shape)) == pytest.approx(1, abs=0.05)


def test_a_network_without_links_asks_nothing():
    none = csr_array((5, 5))
    assert ranking_loss(none, none) == 0
    assert model_loss(none, none, none, 0) == 0
