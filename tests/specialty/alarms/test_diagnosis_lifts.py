"""How well profiles cover records, by the definition."""

import numpy as np
import pytest

from telic.simulate.hospital_families import simulate_family
from telic.specialty.alarms.diagnosis_lifts import SHRINK, coverage_of
from telic.specialty.discovery.discover import discover
from telic.specialty.discovery.result import Discovery
from telic.specialty.log.log_files import read_log


@pytest.fixture(scope="module")
def log():
    return simulate_family("wards", 0).log


def lift_of(profile, base, codes):
    """The largest lift of some codes in a profile that starts from the hospital's mix."""
    share = (profile[:-1] + SHRINK * base) / (profile[-1] + SHRINK)
    return max(share[d] / base[d] for d in codes)


@pytest.mark.parametrize("users", range(2, 9))
def test_a_specialty_that_sees_what_the_hospital_sees_covers_nothing(tmp_path, users):
    """All of its lifts are 1, which no rounding may lift above what raises an alarm."""
    encounters = [f"e{number}" for number in range(15)]
    rows = [f"u{user},p{e},{e},2024-01-01T00:00:00Z" for user in range(users) for e in encounters]
    coded = [f"p{e},{e},{code}" for e, code in zip(encounters, "A" + "B" * 14, strict=True)]
    tables = {
        "accesses": ["user,patient,encounter,at", *rows],
        "diagnoses": ["patient,encounter,code", *coded],
        "providers": ["user,taxonomy", *(f"u{user},X" for user in range(users))],
    }
    for name, lines in tables.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "meta.json").write_text('{"vocabulary": "other"}')
    log = read_log(tmp_path)
    nothing = Discovery("residuals", [], np.full(users, -1))
    lift, _ = coverage_of(log, nothing).declared(log.access_user, log.access_encounter)
    assert lift.tolist() == [1.0] * len(rows)


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
