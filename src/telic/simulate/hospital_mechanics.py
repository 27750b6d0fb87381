"""Why users open records, in four ways: the mechanics of `telic.simulate.hospital_families`."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

WEEKS = 52


@dataclass(frozen=True, slots=True)
class Plan:
    """What a hospital is made of; `plan` draws it."""

    users: int
    practices: int
    hidden: int
    """The first so many practices have no code."""
    specialists: float
    """Share of users who specialise."""
    shared: float
    """Largest share of a practice's diagnoses that are another practice's."""
    focus: float
    """Mean share of a specialist's work that is of the own practice; 0 if nobody specialises."""
    declared: float
    accesses: int
    """Mean per user."""
    drift: bool
    """Whether half of every practice's diagnoses change at half-year."""


@dataclass(frozen=True, eq=False)
class World:
    """Who works in a hospital and what its practices see."""

    rng: np.random.Generator
    plan: Plan
    practice: np.ndarray
    taxonomy: np.ndarray
    user: np.ndarray
    """User of each access to be made, in order."""
    mix: np.ndarray
    """Users × practices: share of their work."""
    weights: np.ndarray
    """Half-years × practices × codes."""
    general: np.ndarray
    """Weights of everybody's diagnoses, over the same codes."""

    def topics(self, user: np.ndarray) -> np.ndarray:
        """Draw a practice for a piece of work of each user."""
        return draw(self.rng, self.mix, user)

    def codes(self, practice: np.ndarray, day: np.ndarray) -> np.ndarray:
        """Draw a diagnosis of each practice, on a day."""
        half = (day >= 182) & self.plan.drift
        both = self.weights.reshape(-1, self.weights.shape[2])
        return draw(self.rng, both, practice + self.plan.practices * half)

    def general_codes(self, n: int) -> np.ndarray:
        """Draw `n` diagnoses that anybody may have."""
        return draw(self.rng, self.general[None], np.zeros(n, dtype=int))


@dataclass(frozen=True, eq=False)
class Encounters:
    """Encounters and who opened them."""

    patient: np.ndarray
    day: np.ndarray
    encounter: np.ndarray
    """Of each diagnosis."""
    code: np.ndarray
    opened: np.ndarray
    """Encounter of each access."""


def _panels(world: World) -> Encounters:
    """Continuity: users have patients of their own, and read the same few charts again and again.

    A patient has one to three lasting problems, and comes for one of them at a time. A place on a
    user's panel is a patient with a problem of the practice that the user is working in.
    """
    rng, plan = world.rng, world.plan
    n_patients = 12 * plan.users
    problems = 1 + rng.binomial(2, 0.3, n_patients)
    patient_of = np.repeat(np.arange(n_patients), problems)
    practice_of = draw(rng, world.mix.mean(axis=0)[None], np.zeros(len(patient_of), int))
    visits = 1 + rng.poisson(2.0, len(patient_of))
    problem = np.repeat(np.arange(len(patient_of)), visits)
    day = rng.integers(0, 364, len(problem))
    # A problem keeps its diagnosis; one visit in three adds another of the practice.
    lasting = world.codes(practice_of, np.zeros(len(practice_of), int))
    n = len(problem)
    parts = [
        (np.arange(n), lasting[problem]),
        _some(rng, n, 0.33, lambda e: world.codes(practice_of[problem[e]], day[e])),
        _some(rng, n, 0.7, lambda e: world.general_codes(len(e))),
        _some(rng, n, 0.3, lambda e: lasting[_another(rng, patient_of, problem[e])]),
    ]
    # Runs of accesses to one chart: two or three on average, now and then ten.
    first = np.concatenate(
        [[True], (np.diff(world.user) > 0) | (rng.random(len(world.user) - 1) < 0.4)]
    )
    place = np.cumsum(first) - 1
    wanted = _pick(rng, practice_of, world.topics(world.user[first]))[place]
    visit = np.concatenate([[0], np.cumsum(visits)])
    opened = visit[wanted] + (rng.random(len(wanted)) * visits[wanted]).astype(int)
    elsewhere = rng.random(len(opened)) < 0.2
    other = _another(rng, patient_of, wanted)
    opened[elsewhere] = visit[other][elsewhere]
    return _records(patient_of[problem], day, parts, opened)


def _problem_lists(world: World) -> Encounters:
    """Copied lists: every encounter repeats all that its patient ever had, whatever it is for."""
    rng, plan = world.rng, world.plan
    n_patients = 10 * plan.users
    length = rng.geometric(0.25, n_patients) - 1
    listed = np.repeat(np.arange(n_patients), length)
    on_list = np.where(
        rng.random(len(listed)) < 0.5,
        world.general_codes(len(listed)),
        world.codes(rng.integers(0, plan.practices, len(listed)), np.zeros(len(listed), int)),
    )
    visits = rng.geometric(0.3, n_patients)
    patient = np.repeat(np.arange(n_patients), visits)
    n = len(patient)
    main = draw(rng, world.mix.mean(axis=0)[None], np.zeros(n_patients, int))
    anew = draw(rng, world.mix.mean(axis=0)[None], np.zeros(n, int))
    practice = np.where(rng.random(n) < 0.4, main[patient], anew)
    day = rng.integers(0, 364, n)
    start = np.concatenate([[0], np.cumsum(length)])
    copied = np.repeat(np.arange(n), length[patient])
    within = np.arange(len(copied)) - np.repeat(
        np.cumsum(length[patient]) - length[patient], length[patient]
    )
    parts = [
        (np.arange(n), world.codes(practice, day)),
        _some(rng, n, 0.5, lambda e: world.codes(practice[e], day[e])),
        (copied, on_list[start[patient[copied]] + within]),
    ]
    return _records(patient, day, parts, _pick(rng, practice, world.topics(world.user)))


def _wards(world: World) -> Encounters:
    """Teams: in a week on duty one opens whoever lies on the ward; the rest is consultations.

    A ward serves two to four practices and takes strays of all. Specialists have a home ward, the
    others are on another ward every week.
    """
    rng, plan = world.rng, world.plan
    n_wards = max(3, plan.practices // 3)
    home = rng.permutation(np.arange(plan.practices) % n_wards)
    n_patients = 25 * plan.users
    practice = draw(rng, world.mix.mean(axis=0)[None], np.zeros(n_patients, int))
    ward = np.where(
        rng.random(n_patients) < 0.25, rng.integers(0, n_wards, n_patients), home[practice]
    )
    week = rng.integers(0, WEEKS, n_patients)
    day = week * 7
    n = n_patients
    parts = [
        (np.arange(n), world.codes(practice, day)),
        _some(rng, n, 0.6, lambda e: world.codes(practice[e], day[e])),
        _some(rng, n, 0.9, lambda e: world.general_codes(len(e))),
        _some(rng, n, 0.2, lambda e: world.codes(rng.integers(0, plan.practices, len(e)), day[e])),
    ]
    when = rng.integers(0, WEEKS, len(world.user))
    floating = rng.integers(0, n_wards, (plan.users, WEEKS))[world.user, when]
    own = world.practice[world.user]
    at = np.where(own >= 0, home[own], floating)
    on_duty = rng.random((plan.users, WEEKS))[world.user, when] < 0.3
    opened = np.where(
        on_duty,
        _pick(rng, ward * WEEKS + week, at * WEEKS + when),
        _pick(rng, practice, world.topics(world.user)),
    )
    return _records(np.arange(n_patients), day, parts, opened)


def _referrals(world: World) -> Encounters:
    """Departments across practices: shared diagnoses, referred patients, colleagues' patients.

    A department joins two or three practices. A fifth of its specialists' work is anybody's of the
    department; a referred patient brings along the diagnoses of the practice that sent them.
    """
    rng, plan = world.rng, world.plan
    department = rng.permutation(np.arange(plan.practices) // 2)
    n = 30 * plan.users
    n_patients = 12 * plan.users
    practice = draw(rng, world.mix.mean(axis=0)[None], np.zeros(n, int))
    sender = rng.integers(0, plan.practices, n)
    beside = _pick(rng, department, department[practice])
    sender = np.where(rng.random(n) < 0.5, beside, sender)
    day = rng.integers(0, 364, n)
    parts = [
        (np.arange(n), world.codes(practice, day)),
        _some(rng, n, 0.4, lambda e: world.codes(practice[e], day[e])),
        _some(rng, n, 0.45, lambda e: world.codes(sender[e], day[e])),
        _some(rng, n, 0.3, lambda e: world.codes(beside[e], day[e])),
        _some(rng, n, 0.8, lambda e: world.general_codes(len(e))),
    ]
    topic = world.topics(world.user)
    own = world.practice[world.user]
    for_department = (own >= 0) & (rng.random(len(own)) < 0.2)
    topic = np.where(for_department, _pick(rng, department, department[own]), topic)
    return _records(rng.integers(0, n_patients, n), day, parts, _pick(rng, practice, topic))


FAMILIES: dict[str, Callable[[World], Encounters]] = {
    "panels": _panels,
    "problem lists": _problem_lists,
    "wards": _wards,
    "referrals": _referrals,
}
"""Why a user opens a record, by name."""


def draw(rng: np.random.Generator, weights: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Draw a column with the weights of each of `row`."""
    upto = np.cumsum(weights, axis=1)
    upto /= upto[:, -1:]
    upto += np.arange(len(upto))[:, None]  # each row's steps lie between its number and the next
    drawn = np.searchsorted(upto.ravel(), row + rng.random(len(row)), side="right")
    return (drawn - row * weights.shape[1]).clip(0, weights.shape[1] - 1)


def _pick(rng: np.random.Generator, group: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Draw a member of each wanted group; of an empty group, any."""
    order = np.argsort(group, kind="stable")
    first, last = (np.searchsorted(group[order], wanted, side=s) for s in ("left", "right"))
    first, last = np.where(last > first, [first, last], [[0], [len(group)]])
    return order[first + (rng.random(len(wanted)) * (last - first)).astype(int)]


def _another(rng: np.random.Generator, patient_of: np.ndarray, problem: np.ndarray) -> np.ndarray:
    """Draw a problem of the same patient."""
    return _pick(rng, patient_of, patient_of[problem])


def _some(
    rng: np.random.Generator, n: int, mean: float, drawn: Callable[[np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Give encounters further diagnoses, `mean` of them on average."""
    encounter = np.repeat(np.arange(n), rng.poisson(mean, n))
    return encounter, drawn(encounter)


def _records(
    patient: np.ndarray,
    day: np.ndarray,
    parts: list[tuple[np.ndarray, np.ndarray]],
    opened: np.ndarray,
) -> Encounters:
    encounter, code = (np.concatenate(one) for one in zip(*parts, strict=True))
    return Encounters(patient, day, encounter, code, opened)
