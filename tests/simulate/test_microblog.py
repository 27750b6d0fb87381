import numba
import numpy as np
import pytest

from telic.errors import InputError
from telic.hin import density, induced
from telic.privacy.adversary import Adversary
from telic.privacy.attacks.auxiliary import Auxiliary
from telic.privacy.attacks.dehin import attack
from telic.privacy.attacks.score import scores
from telic.privacy.risk.risks import risks
from telic.simulate.microblog import TQQ_LINKS, TQQ_USERS, Community, earlier_snapshot, microblog


def book(release, **options):
    """The book's adversary: the tag count, and out-links by type."""
    return Adversary.of(release, attributes=["tags"], in_links=False, joint=False, **options)


@pytest.fixture(scope="module")
def world():
    groups = [Community(0.01), Community(0.002), Community(0.02, 300, isolated=0.25)]
    return microblog(users=20_000, communities=groups, seed=3)


def test_it_has_the_published_marginals(world):
    network, members = world
    network.validate()
    alone, _ = microblog(users=20_000, seed=3)
    links = sum(len(part) for part in alone.links.values())
    assert links == pytest.approx(20_000 * TQQ_LINKS / TQQ_USERS, rel=0.06)
    table = network.nodes["user"].take(members[0])
    distinct = {name: len(set(table.column(name).to_pylist())) for name in table.column_names}
    assert distinct["gender"] == 3
    assert distinct["tags"] == 11
    assert 80 <= distinct["yob"] <= 87
    assert 590 <= distinct["tweets"] <= 690
    group = induced(network, {"user": members[0]})
    first = next(risks(group, book(group)))
    assert round(100 * first.risk, 1) == 1.1


def test_degrees_and_strengths_have_heavy_tails(world):
    network, _ = world
    for name, links in network.links.items():
        # The Hill estimate of a power law with exponent 2.5 is 1.5 = exponent − 1.
        top = np.sort(links.out_degree)[::-1][:400].astype(float)
        assert 1 < 1 / np.mean(np.log(top / top[-1])) < 2.5, name
        if links.strength is not None:
            assert 0.55 < np.mean(links.strength == 1) < 0.75
            assert links.strength.max() > 255


def test_groups_have_the_density_and_the_isolated_share_asked_for(world):
    network, members = world
    for chosen, wanted in zip(members, (0.01, 0.002, 0.02), strict=True):
        assert density(induced(network, {"user": chosen})) == pytest.approx(wanted, rel=0.01)
    inside = induced(network, {"user": members[2]})
    alone = sum(links.out_degree for links in inside.links.values()) == 0
    assert 0.25 <= alone.mean() < 0.30


def test_the_same_seed_gives_the_same_network_at_any_number_of_threads():
    before = numba.get_num_threads()
    networks = []
    for threads in (1, min(2, numba.config.NUMBA_NUM_THREADS)):
        numba.set_num_threads(threads)
        networks.append(microblog(users=1500, communities=[Community(0.02, 100)], seed=5)[0])
    numba.set_num_threads(before)
    for name, links in networks[0].links.items():
        assert (links.indices == networks[1].links[name].indices).all()
        assert name == "follow" or (links.strength == networks[1].links[name].strength).all()
    assert networks[0].nodes["user"].equals(networks[1].nodes["user"])
    other = microblog(users=1500, communities=[Community(0.02, 100)], seed=6)[0]
    assert not other.nodes["user"].equals(networks[0].nodes["user"])


def test_in_the_control_more_link_types_add_nothing():
    network, (members,) = microblog(users=3000, communities=[Community(0.02, 200)], copies=True)
    target = induced(network, {"user": members})
    by_distance = {}
    for found in risks(target, book(target, distance=2)):
        by_distance.setdefault(found.distance, set()).add(found.risk)
    assert all(len(values) == 1 for values in by_distance.values())
    plain, (members,) = microblog(users=3000, communities=[Community(0.02, 200)])
    real = induced(plain, {"user": members})
    table = {(r.links, r.distance): r.risk for r in risks(real, book(real, distance=1))}
    assert table[("follow", "mention", "retweet", "comment"), 1] > table[("follow",), 1]


def test_equal_strengths_tell_nothing():
    network, _ = microblog(users=500, equal_strengths=True)
    assert {int(s) for n in ("mention", "comment") for s in network.links[n].strength} == {1}


def test_an_earlier_snapshot_only_grows_into_the_present(world):
    network, members = world
    target = earlier_snapshot(network, members[0], growth=0.3, seed=1)
    now = induced(network, {"user": members[0]})
    assert len(target.links["follow"]) == pytest.approx(0.7 * len(now.links["follow"]), rel=0.05)
    result = attack(
        Auxiliary(network, Adversary.of(target, in_links=False, joint=False)), target, distance=3
    )
    found = scores(result, network.size("user"), members[0])
    assert all(s.truth_kept == 1 and s.unique_wrong == 0 for s in found)
    assert found[1].precision > found[0].precision
    assert found[3].precision - found[2].precision <= 0.03


def test_what_cannot_be_simulated_is_refused():
    for options, message in [
        ({"users": 1}, "users is 1"),
        ({"users": 100, "communities": [Community(0.1, 200)]}, "at least 200: so many are"),
        ({"users": 500, "communities": [Community(0.9, 100, 0.9)]}, "cannot hold density 0.9"),
        (
            {"users": 500, "communities": [Community(-0.1, 100)]},
            "density is -0.1, expected a share",
        ),
        (
            {"users": 500, "communities": [Community(0.1, 100, 2)]},
            "isolated is 2, expected a share",
        ),
    ]:
        with pytest.raises(InputError, match=message):
            microblog(**options)
    for growth in (-0.1, 1.0):
        with pytest.raises(InputError, match=f"growth is {growth}, expected at least 0 and less"):
            earlier_snapshot(None, [], growth=growth)


def test_links_may_all_be_of_one_strength():
    options = {"users": 300, "communities": [Community(0.3, 40)], "seed": 1}
    for equal, most in ((False, 2), (True, 1)):
        network, _ = microblog(**options, equal_strengths=equal)
        held = [links.strength for name, links in network.links.items() if name != "follow"]
        strengths = np.concatenate(held)
        assert strengths.min() == 1
        assert (strengths.max() == 1) == equal
        assert strengths.max() >= most
