"""How well profiles cover records, by the definition."""

import numpy as np
import pytest

from telic.simulate.hospital_families import simulate_family
from telic.specialty.alarms.diagnosis_lifts import SHRINK, coverage_of
from telic.specialty.discovery.discover import discover


@pytest.fixture(scope="module")
def log():
    return simulate_family("wards", 0).log


def lift_of(profile, base, codes):
    """The largest lift of some codes in a profile that starts from the hospital's mix."""
    share = (profile[:-1] + SHRINK * base) / (profile[-1] + SHRINK)
    return max(share[d] / base[d] for d in codes)


def test_a_profile_of_others_is_asked_as_it_is(log):
    coverage = coverage_of(log, discover(log))
    rng = np.random.default_rng(0)
    users = rng.choice(len(log.users), 5, replace=False)
    codes = log.diagnosis.shape[1]
    profiles = np.column_stack([rng.integers(0, 50, (5, codes)), rng.integers(100, 200, 5)])
    asked = np.concatenate([users, np.setdiff1d(np.arange(len(log.users)), users)[:3]])
    records = np.flatnonzero(np.diff(log.diagnosis.indptr))[: len(asked)]
    found = coverage.beside(users, profiles.astype(float), asked, records)
    base = coverage.staff.seen[:, :-1].sum(axis=0) / coverage.staff.seen[:, -1].sum()
    expected = [
        lift_of(profiles[i], base, log.diagnosis[[record]].indices)
        for i, record in zip(range(5), records, strict=False)
    ]
    np.testing.assert_allclose(found, [*expected, 1, 1, 1])
    assert (coverage.own[users, -1] > 0).all(), "nobody's own accesses could be counted"
    nobody = coverage.beside(users[:0], profiles[:0], asked, records)
    assert nobody.tolist() == [1.0] * len(asked)
