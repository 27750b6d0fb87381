from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from telic.simulate import Catalogue, controls_table, dwell_control, dwell_effect
from telic.simulate.dwell_controls import over_seeds

SIZE = {"users": 6, "compositions": 16}


@pytest.fixture(scope="module")
def catalogue():
    rng = np.random.default_rng(0)
    phrases = sorted({"".join("abc"[i] for i in row) for row in rng.integers(0, 3, (80, 10))})
    return Catalogue(phrases, rng.pareto(1.2, len(phrases)) + 1)


def test_the_control_is_one_effect_for_each_setting_and_seed(catalogue):
    begun = []
    settings = {"settings": ["inattentive", "readers"], "seeds": 2, **SIZE}
    found = dwell_control(catalogue, progress=begun.append, **settings)
    assert [*found] == ["inattentive", "readers"]
    assert len(begun) == 4
    assert found["readers"][1] == dwell_effect(catalogue, setting="readers", seed=1, **SIZE)
    with ThreadPoolExecutor(2) as two:
        assert dwell_control(catalogue, executor=two, **settings) == found


def test_dwell_helps_where_the_whole_interval_is_above_zero():
    effects = {
        name: [{"static": 0.5, "gain": 0.1, "dwell": dwell} for dwell in values]
        for name, values in {"helps": (0.010, 0.011, 0.012), "may not": (0.01, -0.02, 0.03)}.items()
    }
    helps, may_not = controls_table(effects).records()
    assert (helps["dwell helps"], may_not["dwell helps"]) == (True, False)
    assert helps["log − dwell twin"] == pytest.approx(0.011)
    low, high = helps["95 % interval"]
    half = 4.302653 * 0.001 / np.sqrt(3)  # Student's t with two degrees of freedom
    assert (low, high) == pytest.approx((0.011 - half, 0.011 + half), rel=1e-4)
    assert over_seeds(effects["may not"])["static"] == 0.5
