"""How the simulated microblog's links lie, and what a snapshot of the past lacks."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from telic.hin import induced
from telic.simulate.microblog import LINKS_PER_MEMBER, Community, earlier_snapshot, microblog


@pytest.fixture(scope="module")
def world():
    return microblog(users=20_000, communities=[Community(0.01)], seed=8)


def test_one_user_is_active_in_all_types_alike_and_targets_are_popular(world):
    links = world[0].links
    follow, comment = links["follow"].out_degree, links["comment"].out_degree
    often = follow > 30
    assert spearmanr(follow[often], comment[often]).statistic > 0.8
    got = np.sort(np.bincount(links["follow"].indices, minlength=20_000))[::-1]
    # The r-th draws like r^(1/1.6 − 1), so the first x of all draw x^(1/1.6) of the links.
    assert got[:2000].sum() / got.sum() == pytest.approx(0.1 ** (1 / 1.6), abs=0.03)


def test_active_members_have_the_documented_number_of_links_and_habits(world):
    network, (members,) = world
    inside = induced(network, {"user": members})
    degrees = {name: links.out_degree for name, links in inside.links.items()}
    active = sum(degrees.values()) > 0
    assert sum(degrees.values())[active].mean() == pytest.approx(LINKS_PER_MEMBER, rel=0.06)
    # Whoever mentions also retweets and comments; following is a habit of its own.
    alike = spearmanr(degrees["mention"][active], degrees["comment"][active]).statistic
    apart = spearmanr(degrees["follow"][active], degrees["comment"][active]).statistic
    assert alike > 0.4
    assert abs(apart) < 0.25


def test_a_snapshot_lacks_the_share_that_came_since(world):
    network, (members,) = world
    now = induced(network, {"user": members})
    past = earlier_snapshot(network, members, growth=0.25, seed=2)
    tweets = [part.nodes["user"]["tweets"].to_numpy() for part in (past, now)]
    assert (tweets[0] <= tweets[1]).all()
    assert tweets[0].sum() / tweets[1].sum() == pytest.approx(0.75, abs=0.01)
    for name, links in past.links.items():
        if links.strength is None:
            continue
        matrix = [
            {(s, t): w for s, t, w in zip(one.sources, one.indices, one.strength, strict=True)}
            for one in (links, now.links[name])
        ]
        assert all(0 < weight <= matrix[1][pair] for pair, weight in matrix[0].items())
        ratio = sum(matrix[0].values()) / sum(matrix[1].values())
        assert ratio == pytest.approx(0.75, abs=0.05), name
    same = earlier_snapshot(network, members, growth=0.0)
    assert same.nodes["user"].equals(now.nodes["user"])
    for name, links in same.links.items():
        np.testing.assert_array_equal(links.indices, now.links[name].indices)


def test_other_attributes_do_not_grow(world):
    network, (members,) = world
    past = earlier_snapshot(network, members, growth=0.5)
    now = induced(network, {"user": members})
    for name in ("id", "gender", "yob", "tags"):
        assert past.nodes["user"][name] == now.nodes["user"][name]
