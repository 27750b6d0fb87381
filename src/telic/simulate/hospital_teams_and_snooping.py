"""Simulated hospitals where teams care for patients, and some look up whom they do not care for.

The families of `telic.simulate.hospital_families` say why one user opens a record. Here one of an
encounter's users leads, sometimes a second is consulted, and their teams open the same record: that
is what makes an access of a nurse or a pharmacist, whose patients are anybody's, understandable at
all. Some accesses are on-call work of anybody, which nothing in the log explains. Snooping is
planted in four ways, always by users whose teams do not treat the patient:

- "random patient": a record of any such patient;
- "known person": many users who do not care for a patient look the same record up;
- "again and again": a user looks up encounter after encounter of one such patient;
- "workmates": several users of one team look up one such patient together.

With ``snooping="as care"`` the planted accesses are made as care is, so there is no difference to
find: a measure that finds one is wrong.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from telic.errors import expect_one_of
from telic.simulate.hospital_families import simulate_family
from telic.specialty.log.access_log import AccessLog

PLANTED = ("random patient", "known person", "again and again", "workmates")
SNOOPING = ("planted", "as care")
CONSULTED = 0.2
"""Share of encounters with a second lead."""
CURIOUS = 15
"""Users who look up one known person."""
TOGETHER = 4
"""Users of one team who look somebody up together, at most."""
AT_HAND = 3
"""Encounters of one person that a user looks up again and again, at most."""


@dataclass(frozen=True, eq=False)
class TeamHospital:
    """A simulated log with its truth."""

    log: AccessLog
    kind: np.ndarray
    """Of each access: `PLANTED`, or ``""`` for care."""


def simulate_teams(family: str, seed: int, *, snooping: str = "planted") -> TeamHospital:
    """Make a hospital of a family, with teams and planted snooping.

    Parameters
    ----------
    family : {"panels", "problem lists", "wards", "referrals"}
    seed : int
        Decides the teams too: 3 to 9 people, a quarter to three fifths of whom open a record that
        the lead opens; one access in fifty to in fifteen is on-call work.
    snooping : {"planted", "as care"}

    Examples
    --------
    >>> hospital = simulate_teams("wards", 0)
    >>> sorted(set(hospital.kind.tolist()))
    ['', 'again and again', 'known person', 'random patient', 'workmates']
    """
    expect_one_of(SNOOPING, snooping=snooping)
    hospital = simulate_family(family, seed)
    log, rng = hospital.log, np.random.default_rng([seed, 3])
    size, follow = int(rng.integers(3, 10)), float(rng.uniform(0.25, 0.6))
    on_call = float(rng.uniform(0.02, 0.07))

    teams = _teams(rng, hospital.practice, size)
    leads = _leads(rng, log)
    user, encounter = log.access_user[leads], log.access_encounter[leads]
    member = teams[user, rng.integers(0, teams.shape[1], len(user))]
    by_team = [np.flatnonzero((teams == t).any(axis=1)) for t in range(teams.max() + 1)]
    care_user, care = [user], [encounter]
    for u, e, t in zip(user, encounter, member, strict=True):
        others = by_team[t][by_team[t] != u]
        here = others[rng.random(len(others)) < follow]
        care_user.append(here)
        care.append(np.full(len(here), e))
    users, opened = np.concatenate(care_user), np.concatenate(care)
    anybody = rng.random(len(users)) < on_call
    users[anybody] = rng.integers(0, len(log.users), anybody.sum())

    number = max(60, len(opened) // 200)
    treated = set(zip(log.encounter_patient[encounter].tolist(), member.tolist(), strict=True))

    def stranger(e: int, n: int) -> np.ndarray:
        """Users none of whose teams treats the encounter's patient."""
        patient = int(log.encounter_patient[e])
        drawn = rng.permutation(len(log.users))
        strange = [u for u in drawn if not any((patient, int(t)) in treated for t in teams[u])]
        return np.array(strange[:n], dtype=int)

    def workmates(e: int, n: int) -> np.ndarray:
        """Some of these, of one team."""
        strange = stranger(e, len(log.users))
        team = teams[strange, rng.integers(0, teams.shape[1], len(strange))]
        return strange[team == team[:1]][:n]

    if snooping == "planted":
        planted = {
            "random patient": _looked_up(rng, stranger, encounter, number, 1),
            "known person": _looked_up(rng, stranger, encounter, number, CURIOUS),
            "again and again": _again(rng, stranger, log, encounter, number),
            "workmates": _looked_up(rng, workmates, encounter, number, TOGETHER),
        }
    else:
        taken = rng.choice(len(opened), len(PLANTED) * number, replace=False)
        planted = {"as care": (users[taken], opened[taken])}
        users, opened = np.delete(users, taken), np.delete(opened, taken)
    kind = np.concatenate(
        [np.full(len(opened), ""), *(np.full(len(who), name) for name, (who, _) in planted.items())]
    )
    users = np.concatenate([users, *(who for who, _ in planted.values())])
    opened = np.concatenate([opened, *(what for _, what in planted.values())])
    return _hospital(rng, log, users, opened, kind)


def _leads(rng: np.random.Generator, log: AccessLog) -> np.ndarray:
    """One access of each encounter, of some a second."""
    order = rng.permutation(len(log.access_encounter))
    order = order[np.argsort(log.access_encounter[order], kind="stable")]
    encounter = log.access_encounter[order]
    first = np.concatenate([[True], encounter[1:] != encounter[:-1]])
    second = np.concatenate([[False], first[:-1]]) & ~first
    return order[first | (second & (rng.random(len(order)) < CONSULTED))]


def _teams(rng: np.random.Generator, practice: np.ndarray, size: int) -> np.ndarray:
    """Teams of each user, one or several: of a practice, with people who have none among them."""
    n_teams = max(2, len(practice) // size)
    order = np.argsort(practice + rng.random(len(practice)) * 0.5)
    home = np.empty(len(practice), dtype=int)
    home[order] = np.arange(len(practice)) * n_teams // len(practice)
    teams = np.repeat(home[:, None], 3, axis=1)
    # Users without a practice are anywhere, and a third of them in three teams.
    flat = np.flatnonzero(practice < 0)
    teams[flat] = rng.integers(0, n_teams, len(flat))[:, None]
    floating = flat[rng.random(len(flat)) < 1 / 3]
    teams[floating] = rng.integers(0, n_teams, (len(floating), 3))
    return teams


def _looked_up(
    rng: np.random.Generator,
    stranger: Callable[[int, int], np.ndarray],
    treated: np.ndarray,
    n: int,
    curious: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Records that several strangers look up each, at most `n` accesses in all."""
    encounters = rng.choice(treated, max(1, n // curious), replace=False)
    users = [stranger(e, curious) for e in encounters]
    return np.concatenate(users), np.repeat(encounters, [len(one) for one in users])


def _again(
    rng: np.random.Generator,
    stranger: Callable[[int, int], np.ndarray],
    log: AccessLog,
    treated: np.ndarray,
    n: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Encounters of one person that one stranger looks up, `n` accesses together."""
    users: list[np.ndarray] = []
    encounters: list[np.ndarray] = []
    seen = np.unique(treated)
    patient_of = log.encounter_patient[seen]
    while sum(map(len, encounters)) < n:
        own = seen[patient_of == rng.choice(patient_of)][:AT_HAND]
        encounters.append(own)
        users.append(np.repeat(stranger(own[0], 1), len(own)))
    return np.concatenate(users), np.concatenate(encounters)


def _hospital(
    rng: np.random.Generator, log: AccessLog, user: np.ndarray, opened: np.ndarray, kind: np.ndarray
) -> TeamHospital:
    """Put accesses into a log; one of an encounter follows the first within two days."""
    first = np.full(len(log.encounters), int(log.access_at.min()))
    first[log.access_encounter] = log.access_at
    at = first[opened] + rng.integers(0, 48 * 3600, len(opened)) * 1_000_000
    order = np.lexsort((at, opened, user))
    log = replace(
        log,
        access_user=user[order].astype(np.int32),
        access_encounter=opened[order].astype(np.int32),
        access_at=at[order],
        access_row=np.arange(1, len(user) + 1),
    )
    return TeamHospital(log, kind[order])
