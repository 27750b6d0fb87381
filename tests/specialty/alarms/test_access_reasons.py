from dataclasses import replace

import numpy as np
import pytest

from telic.simulate.hospital_teams_and_snooping import PLANTED, simulate_teams
from telic.specialty.alarms.access_reasons import NO_REASON, find_reasons
from telic.specialty.alarms.beyond_chance import KINDS
from telic.specialty.alarms.colleagues import care_of
from telic.specialty.alarms.explained_alarms import judge
from telic.specialty.discovery.discover import discover


def shares(hospital, found):
    """Of care, and of what was planted, how much has a reason."""
    explained = find_reasons(hospital.log, found).explained
    return explained[hospital.kind == ""].mean(), explained[hospital.kind != ""].mean()


@pytest.fixture(scope="module")
def hospital():
    return simulate_teams("problem lists", 4)


@pytest.fixture(scope="module")
def found(hospital):
    return discover(hospital.log, restarts=1)


def test_whoever_opens_an_encounter_does_so_within_two_days_of_its_first_access(hospital):
    log = hospital.log
    first = np.full(len(log.encounters), log.access_at.max())
    np.minimum.at(first, log.access_encounter, log.access_at)
    later = log.access_at - first[log.access_encounter]
    assert later.max() < 48 * 3600 * 1_000_000
    # As likely early as late, so what is planted cannot be told by its time.
    several = np.bincount(log.access_encounter)[log.access_encounter] > 1
    care, planted = (
        later[several & chosen].mean() for chosen in (hospital.kind == "", hospital.kind != "")
    )
    assert 0.8 < planted / care < 1.25


def test_care_is_explained_and_snooping_is_not(hospital, found):
    assert set(hospital.kind) == {"", *PLANTED}
    explained = find_reasons(hospital.log, found).explained
    assert explained[hospital.kind == ""].mean() > 0.85
    for kind in set(PLANTED) - {"workmates"}:  # whom nothing tells from a team here
        assert explained[hospital.kind == kind].mean() < 0.05


def test_where_the_planted_accesses_are_care_they_are_explained_alike(found):
    hospital = simulate_teams("problem lists", 4, snooping="as care")
    care, planted = shares(hospital, found)
    n = (hospital.kind != "").sum()
    assert abs(care - planted) < 3 * np.sqrt(care * (1 - care) / n)


def test_colleagues_explain_the_same_alarms_and_accesses_whatever_the_seed(hospital, found):
    log, explained = hospital.log, []
    for seed in (0, 1):
        care = care_of(log, found, seed=seed)
        assert care.seed == seed
        alerts = judge(log, found, care=care)
        kind = find_reasons(log, found, care=care).kind
        np.testing.assert_array_equal(alerts.colleagues, kind == KINDS.index("colleagues"))
        explained.append(alerts.colleagues)
    assert (explained[0] != explained[1]).any()


def test_words_say_what_was_found(hospital, found):
    log, why = hospital.log, find_reasons(hospital.log, found)
    for a in np.flatnonzero(why.kind == 0)[:5]:
        assert why.words(log, found, a) == NO_REASON
    both = np.flatnonzero((why.kind == KINDS.index("colleagues")) & why.by_declared)[0]
    words = why.words(log, found, both)
    assert words.startswith("works with the people who treat this patient; is of ")
    assert str(log.taxonomy[log.access_user[both]]) in words
    assert str(log.codes[why.code[both]]) in words
    practised = (why.kind == KINDS.index("colleagues")) & ~why.by_declared & (why.code >= 0)
    a = np.flatnonzero(practised)[0]
    one = found.specialties[found.cluster[log.access_user[a]]]
    assert f"mostly sees patients of {one.listed_code or one.name}" in why.words(log, found, a)
    small = replace(found, specialties=[replace(s, users=s.users[:9]) for s in found.specialties])
    hidden = why.words(log, small, a, hide_small=True)
    assert "mostly sees patients of a specialty of fewer than 11 users, and such with" in hidden
