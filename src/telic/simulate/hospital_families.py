"""Simulated hospitals that work in four ways, to see whether discovery holds where it was not made.

`telic.simulate.hospital` is fixed on published marginals; these are not fixed on anything, and are
small. What they share is who works there: practices with diagnoses of their own, some of which no
code names; users who specialise, users who do not, and everybody's leaning towards some practices.
They differ in why a user opens a record (`FAMILIES`), because a method that knows one reason may
fail where another rules. With ``control="lean"`` nobody specialises and with ``control="moved"``
whole accesses change users: there is nothing to find in either.
"""

from dataclasses import dataclass

import numpy as np

from telic.errors import expect_one_of
from telic.simulate.hospital_mechanics import FAMILIES, Encounters, Plan, World
from telic.specialty.log.access_log import AccessLog, mark_pairs

SIZES = (150, 250, 400, 700, 1200, 5000)
"""Users of a hospital, two seeds in a row each."""
DECLARED = (0.3, 0.6, 0.9)
"""Share of users who declare a code."""
CONTROLS = ("none", "lean", "moved")
GENERIC = ("Internal Medicine", "Surgery", "Nursing")
"""Codes that say nothing of what somebody practises."""
LEAN = 3.0
"""Shape of the gamma law of a user's mix of practices: the smaller, the more users lean."""
LEAST_HIDDEN = 10
"""Users of a hidden practice, at least."""


@dataclass(frozen=True, eq=False)
class FamilyHospital:
    """A simulated log with its truth."""

    log: AccessLog
    practice: np.ndarray
    """Practice of each user of the log, −1 for none."""
    plan: Plan

    @property
    def hidden(self) -> range:
        """Practices that no code names."""
        return range(self.plan.hidden)


def plan(seed: int) -> Plan:
    """Draw what a hospital is made of; two seeds in a row share their size.

    Examples
    --------
    >>> plan(0).users, plan(1).users, plan(10).users
    (150, 150, 5000)
    """
    rng = np.random.default_rng([seed, 1])
    users = SIZES[seed // 2 % len(SIZES)]
    practices = int(rng.integers(7, 10) if users < 300 else rng.integers(9, 20))
    return Plan(
        users=users,
        practices=practices,
        hidden=int(rng.integers(1, 3 if users < 300 else 4)),
        specialists=float(rng.uniform(0.5, 0.75)),
        shared=0.5,
        focus=float(rng.uniform(0.35, 0.65)),
        declared=DECLARED[seed // 2 // len(SIZES) % 3 if seed >= 12 else int(rng.integers(3))],
        accesses=int(rng.integers(40, 140)),
        drift=bool(rng.random() < 0.25),
    )


def simulate_family(family: str, seed: int, *, control: str = "none") -> FamilyHospital:
    """Make a hospital of a family.

    Parameters
    ----------
    family : {"panels", "problem lists", "wards", "referrals"}
    seed : int
        Decides its `Plan` too.
    control : {"none", "lean", "moved"}
        "lean": nobody specialises, users only lean. "moved": whole accesses change users.

    Examples
    --------
    >>> hospital = simulate_family("wards", 0)
    >>> len(hospital.log.users), hospital.log.simulated
    (150, True)
    """
    expect_one_of(FAMILIES, family=family)
    expect_one_of(CONTROLS, control=control)
    chosen = plan(seed)
    rng = np.random.default_rng([seed, list(FAMILIES).index(family), 2])
    world = _staff(rng, chosen, specialise=control != "lean")
    records = FAMILIES[family](world)
    opened = rng.permutation(records.opened) if control == "moved" else records.opened
    return FamilyHospital(
        _log(world, records, opened),
        world.practice if control == "none" else np.full(chosen.users, -1),
        chosen,
    )


def _staff(rng: np.random.Generator, plan: Plan, *, specialise: bool) -> World:
    users, practices = plan.users, plan.practices
    n_special = round(users * plan.specialists)
    size = rng.dirichlet(np.full(practices, 2.0)) * 0.7 + 0.3 / practices
    practice = np.full(users, -1)
    practice[:n_special] = rng.choice(practices, n_special, p=size)
    practice[: LEAST_HIDDEN * plan.hidden] = np.repeat(np.arange(plan.hidden), LEAST_HIDDEN)
    rng.shuffle(practice)
    share = rng.beta(8 * plan.focus, 8 * (1 - plan.focus), users) * (practice >= 0) * specialise
    mix = size * rng.gamma(LEAN, size=(users, practices))
    mix *= ((1 - share) / mix.sum(axis=1))[:, None]
    # One specialist in eight has a second practice, with two fifths of the share of both.
    second = np.where(rng.random(users) < 1 / 8, rng.integers(0, practices, users), practice)
    mix[np.arange(users), practice] += 0.6 * share  # a share of 0 for those without a practice
    mix[np.arange(users), second] += 0.4 * share

    own = rng.integers(5, 20, practices)  # diagnoses of each practice
    n_codes, n_general = int(own.sum()), int(rng.integers(15, 40))
    weights = np.zeros((2, practices, n_codes + n_general))
    start = np.concatenate([[0], np.cumsum(own)])
    for k in range(practices):
        first = _zipf(rng, own[k])
        later = np.where(rng.random(own[k]) < 0.5, rng.permutation(first), first)
        weights[0, k, start[k] : start[k + 1]] = first
        weights[1, k, start[k] : start[k + 1]] = later
    # Neighbours see some of each other's diagnoses.
    shared = rng.uniform(0, plan.shared, practices)[:, None]
    weights = (1 - shared) * weights + shared * np.roll(weights, 1, axis=1)
    general = np.concatenate([np.zeros(n_codes), _zipf(rng, n_general)])

    taxonomy = np.array([f"Practice {k}" for k in practice], dtype=object)
    elsewhere = (practice < plan.hidden) | (rng.random(users) < 0.05)
    other = np.where(
        rng.random(users) < 0.7,
        rng.choice(GENERIC, users),
        [f"Practice {k}" for k in rng.integers(plan.hidden, practices, users)],
    )
    taxonomy[elsewhere] = other[elsewhere]
    taxonomy[rng.random(users) >= plan.declared] = ""
    activity = rng.lognormal(0.0, 0.7, users)
    number = rng.poisson(plan.accesses * activity / activity.mean()) + 3
    user = np.repeat(np.arange(users), number)
    practice = practice if specialise else np.full(users, -1)
    return World(rng, plan, practice, taxonomy.astype(str), user, mix, weights, general)


def _zipf(rng: np.random.Generator, n: int) -> np.ndarray:
    """Weights ∝ 1/(rank + 2), in random order, that add up to 1."""
    weight = rng.permutation(1.0 / np.arange(2, n + 2))
    return weight / weight.sum()


def _log(world: World, records: Encounters, opened: np.ndarray) -> AccessLog:
    n, n_codes = len(records.patient), world.weights.shape[2]
    hours = records.day[opened] * 24 + world.rng.integers(0, 24, len(opened))
    start = np.datetime64("2024-01-01", "us").astype(np.int64)
    return AccessLog(
        users=np.array([f"U{i:04d}" for i in range(world.plan.users)]),
        taxonomy=world.taxonomy,
        patients=np.array([f"P{i:06d}" for i in range(int(records.patient.max()) + 1)]),
        encounters=np.array([f"E{i:06d}" for i in range(n)]),
        codes=np.array([f"D{i:03d}" for i in range(n_codes)]),
        labels={},
        access_user=world.user.astype(np.int32),
        access_encounter=opened.astype(np.int32),
        access_at=start + hours * 3_600_000_000,
        access_row=np.arange(1, len(opened) + 1),
        encounter_patient=records.patient.astype(np.int32),
        diagnosis=mark_pairs(records.encounter, records.code, (n, n_codes)),
        fine=None,
        fine_patient=None,
        simulated=True,
    )
