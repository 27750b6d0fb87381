import numpy as np
import pyarrow.compute as pc
import pytest

from telic.data.compositions import read_compositions
from telic.errors import InputError
from telic.simulate import (
    Catalogue,
    affinity_of_pairs,
    made_up_affinity,
    phone_marginals,
    query_app_affinity,
    simulate_phones,
    simulate_typists,
)
from telic.simulate.phones import _Devices
from telic.simulate.query_app_affinity import example_phones

PLACES = Catalogue(
    [f"{a} {b}" for a in ("north", "south", "new") for b in ("town", "port", "bay", "hill")],
    np.arange(1.0, 13.0),
)


@pytest.fixture(scope="module")
def log():
    return simulate_phones(PLACES, users=40, compositions=25, seed=3)


def test_published_marginals_are_met(log):
    found = phone_marginals(log)
    assert found["installed"] == pytest.approx(95, abs=4)
    assert found["openings a day"] == pytest.approx(100, abs=0.1)
    assert found["distinct apps a day"] == pytest.approx(35, abs=1.5)
    assert found["share with an app opened"] == pytest.approx(0.849, abs=0.035)
    assert found["distinct opened, where any"] == pytest.approx(4.0, abs=0.4)
    assert 10 <= found["most distinct opened"] <= 60


def test_the_log_keeps_its_contract_and_says_that_it_is_simulated(log):
    read = read_compositions(log)
    assert read.simulated
    assert len(read.apps) == 300


def test_equal_seeds_give_equal_logs_and_strength_changes_only_what_is_wanted(log):
    assert simulate_phones(PLACES, users=40, compositions=25, seed=3).equals(log)
    idle = simulate_phones(PLACES, users=40, compositions=25, seed=3, strength=0.0)
    assert idle["installed"].equals(log["installed"])
    plain = simulate_typists(PLACES, users=40, compositions=25, seed=3)
    assert idle["query"].equals(plain["query"])
    assert not log["query"].equals(plain["query"])


def test_the_control_moves_the_apps_and_nothing_else(log):
    control = simulate_phones(PLACES, users=40, compositions=25, seed=3, independent=True)
    assert control["query"].equals(log["query"])
    assert control["keystrokes"].equals(log["keystrokes"])
    assert not control["installed"].equals(log["installed"])

    def openings(table):
        return np.sort(pc.list_value_length(table["opened"]).to_numpy())

    np.testing.assert_array_equal(openings(control), openings(log))


def test_apps_cause_phrases_of_their_own():
    affinity = made_up_affinity(PLACES, apps=5, seed=1)
    rng = np.random.default_rng(0)
    app = rng.integers(0, 5, 500)
    for a, phrase in zip(app, affinity.caused(app, rng), strict=True):
        assert phrase in affinity.phrase[affinity.start[a] : affinity.start[a + 1]]


def test_real_pairs_become_an_affinity(tmp_path):
    file = tmp_path / "pairs.csv"
    file.write_text("user,query,app\n1,rain,weather\n2,rain,search\n2,rain,weather\n3,mail,mail\n")
    catalogue, affinity = affinity_of_pairs(file)
    assert catalogue.phrases == ["rain", "mail"]
    assert affinity.apps == ["weather", "search", "mail"]
    assert affinity.popularity.tolist() == [2, 1, 1]
    assert affinity.odds.tolist() == [2, 1, 1]
    assert affinity.caused(np.array([2, 2]), 0).tolist() == [1, 1]


def test_a_strength_out_of_range_is_refused():
    with pytest.raises(InputError, match=r"strength is 1\.5"):
        simulate_phones(PLACES, strength=1.5)


def test_a_phone_without_an_app_that_causes_queries_has_a_cause_all_the_same():
    devices = _Devices(made_up_affinity(PLACES, apps=5), 3, np.random.default_rng(0))
    devices.causing[:] = False
    nothing = np.empty(0, np.int64), np.empty(0)
    for user in range(3):
        assert devices.cause(user, nothing, np.random.default_rng(0)) == devices.owned[user][0]


def test_no_apps_are_refused_and_the_examples_tools_cause_nothing():
    with pytest.raises(InputError, match="apps is 0, expected a whole number >= 1"):
        made_up_affinity(PLACES, apps=0)
    catalogue, affinity = example_phones()
    assert len(catalogue.phrases) == len(set(catalogue.phrases)) == len(catalogue.weights)
    size = np.diff(affinity.start)
    assert (len(affinity.apps), size.sum()) == (len(size), len(affinity.phrase))
    named = np.array([not name.startswith("tool ") for name in affinity.apps])
    assert (size[named] > 0).all()
    assert (size[~named] == 0).all()
    assert (~named).sum() == 200
    every = np.arange(len(size))
    caused = affinity.caused(every, 0)
    assert (caused[~named] == -1).all()
    texts = {
        app: catalogue.phrases[p] for app, p in zip(affinity.apps, caused, strict=True) if p >= 0
    }
    for app, phrases in query_app_affinity._EXAMPLE.items():
        assert texts[app] in phrases
