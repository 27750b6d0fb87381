import numpy as np
import pytest

from telic.simulate import Catalogue
from telic.study import chapter2_controls as controls


@pytest.fixture(scope="module")
def catalogue():
    rng = np.random.default_rng(0)
    letters = rng.integers(0, 3, (80, 10))
    phrases = sorted({"".join("abc"[i] for i in row) for row in letters})
    return Catalogue(phrases, rng.pareto(1.2, len(phrases)) + 1)


def test_what_the_lists_know_shows_in_the_re_ranked_row_alone(catalogue):
    rows = controls.knowledge(
        catalogue, settings=("inattentive",), seeds=2, users=12, compositions=24
    )
    found = {row["told"]: row for row in rows}
    assert tuple(found) == controls.TOLD
    everything, older, nothing = (found[told] for told in controls.TOLD)
    # Told what the lists are made from, a completer has the list that was shown.
    assert everything["static"] == pytest.approx(everything["reranked"])
    assert everything["shown"] > 0.9
    assert nothing["static"] < nothing["reranked"] - 0.02
    assert older["static"] < everything["static"]
    assert nothing["shown"] < older["shown"] < everything["shown"]
    for row in rows:  # nobody looks: dwell times tell nothing, whatever lists know
        assert abs(row["dwell"]) < 0.02


def test_a_row_is_the_effect_on_one_log_where_there_is_one_seed(catalogue):
    (row, _) = controls.knowledge(
        catalogue, settings=("readers",), told=("all", "older"), seeds=2, users=8, compositions=16
    )
    one, two = (
        controls.dwell_effect(catalogue, setting="readers", seed=s, users=8, compositions=16)
        for s in (0, 1)
    )
    for key in ("static", "gain", "dwell"):
        assert row[key] == pytest.approx((one[key] + two[key]) / 2)
