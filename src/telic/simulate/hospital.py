"""A simulated hospital: one year of accesses to health records, with known truth.

Fixed on published marginals before any discovery was tried: the counts of Table 6.1, the sizes of
the core classes, 60 % of users with a code, 603 diagnosis categories, and two figures of
recognition (core classes at SVM F1 near .88 to .90; the naive classifier good on urology and poor
on anesthesiology). Those figures are calibration and are never listed as reproduced.

Each encounter has one practice and carries diagnoses of it, of the patient's chronic background
and, sometimes, of another practice. A specialist opens records of the own practice with
probability `focus` and otherwise any record; cross-cutting users have flat profiles. With
``focus=0`` nobody specialises: the control in which discovery must find nothing.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from telic.data.contracts import TIMESTAMP
from telic.errors import InputError
from telic.simulate.hospital_practices import (
    CORE_SIZES,
    FLAT_CODES,
    GENERAL_CONDITIONS,
    HIDDEN_SIZES,
    SURGICAL,
    conditions,
)
from telic.specialty.log.log_files import write_log

USERS, CODED_USERS, TAXONOMY_CODES = 3_269, 1_961, 165
PATIENTS, ENCOUNTERS, ACCESSES = 291_562, 890_812, 4_829_376
FINE_PATIENTS, FINE_ENCOUNTERS, FINE_USERS = 41_603, 62_390, 2_504
"""Table 6.1. Fine-grained accesses are not fixed: [Zhang2017] has fewer accesses than patients."""
SMALLEST = 1e-3
"""Share of a hospital in which every practice has its encounters yet."""

TAIL_EXPONENT = 1.1
"""Zipf exponent of the other 153 codes."""


@dataclass(frozen=True, slots=True)
class Difficulty:
    """How hard the hospital is to read."""

    focus: float = 0.45
    """Mean share of a specialist's accesses that go to the own practice, in [0, 1]."""
    wrong_codes: float = 0.03
    """Share of core users whose declared code is not what they practise."""
    hidden_coded: float = 0.4
    """Share of users of a hidden specialty who declare another code; the others declare none."""
    surgical_tilt: float = 1.6
    """How much more often an anesthesiologist opens a surgical record than other flat users do:
    1 leaves nothing to tell them by."""
    same_practice: float = 0.6
    """Probability that an encounter is of its patient's main practice."""
    background: float = 1.5
    """Mean number of background diagnoses of an encounter."""
    comorbid: float = 0.25
    """Probability that an encounter carries a diagnosis of another practice."""
    snooping: float = 2e-4
    """Share of accesses that are snooping: half to a random patient, half to a random topic."""


def simulate_hospital(
    folder: str | Path, *, scale: float = 1.0, seed: int = 0, difficulty: Difficulty | None = None
) -> None:
    """Write a simulated access log with its truth.

    Parameters
    ----------
    folder : path
        Must not exist. Gets the tables of data contract 3 and the truth: ``truth_users`` (`user`,
        `practice`), ``truth_encounters`` (`encounter`, `practice`) and ``truth_accesses`` (`row`,
        `kind`), which lists the snooping accesses.
    scale : float
        Shrinks patients, encounters and accesses; the 3,269 users stay. From 0.001 to 1.
    seed : int
    difficulty : Difficulty, optional

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp() + "/log"
    >>> simulate_hospital(folder, scale=0.002)
    """
    if not SMALLEST <= scale <= 1:
        raise InputError(f"scale is {scale}, expected a number from {SMALLEST} to 1.")
    knobs = difficulty or Difficulty()
    rng = np.random.default_rng(seed)
    practices = conditions()
    names = list(practices)
    users = _users(rng, names, knobs)
    encounters = _encounters(rng, names, scale, knobs)
    diagnoses = _diagnoses(rng, practices, encounters, knobs)
    accesses = _accesses(rng, names, users, encounters, round(ACCESSES * scale), knobs)
    write_log(
        folder,
        _tables(rng, names, users, encounters, diagnoses, accesses, scale),
        vocabulary="other",
        simulated=True,
    )


@dataclass(frozen=True, eq=False)
class _Users:
    taxonomy: np.ndarray
    practice: np.ndarray
    """Index of the practice; -1 flat, -2 flat with a tilt to surgery."""


@dataclass(frozen=True, eq=False)
class _Encounters:
    patient: np.ndarray
    practice: np.ndarray
    day: np.ndarray


@dataclass(frozen=True, eq=False)
class _Diagnoses:
    encounter: np.ndarray
    code: np.ndarray
    codes: list[str]
    reason: np.ndarray
    """One code of each encounter's own practice: what the fine-grained view records."""


@dataclass(frozen=True, eq=False)
class _Accesses:
    user: np.ndarray
    encounter: np.ndarray
    at: np.ndarray
    kind: np.ndarray
    """0 ordinary, 1 snooping on a random patient, 2 on a random topic."""


def _users(rng: np.random.Generator, names: list[str], knobs: Difficulty) -> _Users:
    index = {name: i for i, name in enumerate(names)}
    open_practices = [i for i, name in enumerate(names) if name not in HIDDEN_SIZES]
    taxonomy: list[str] = []
    practice: list[int] = []
    for code, size in CORE_SIZES.items():
        taxonomy += [code] * size
        practice += [index[code]] * size
    core = np.array(practice)
    # Most neurosurgeons see neurology's patients: the class [Zhang2017] cannot recognise either.
    blended = (core == index["Neurological Surgery"]) & (rng.random(len(core)) < 0.6)
    core[blended] = index["Neurology"]
    wrong = rng.random(len(core)) < knobs.wrong_codes
    core[wrong] = rng.choice(open_practices, wrong.sum())
    practice = core.tolist()

    others = [name for name in names if name not in CORE_SIZES and name not in HIDDEN_SIZES]
    tail_codes = [*FLAT_CODES, *others]
    tail_codes += [
        f"Taxonomy code {i}"
        for i in range(len(CORE_SIZES) + len(tail_codes) + 1, TAXONOMY_CODES + 1)
    ]
    for place, (code, size) in enumerate(
        zip(tail_codes, _zipf_sizes(CODED_USERS - len(core), len(tail_codes)), strict=True)
    ):
        if code in index:
            own = index[code]
        elif code in FLAT_CODES:
            own = -2 if code == "Anesthesiology" else -1
        else:
            own = open_practices[place % len(open_practices)]
        taxonomy += [code] * int(size)
        practice += [own] * int(size)
    uncoded = USERS - len(taxonomy)
    specialist = rng.random(uncoded) < 0.35
    taxonomy += [""] * uncoded
    practice += np.where(specialist, rng.choice(open_practices, uncoded), -1).tolist()

    taxonomy_of, practice_of = np.array(taxonomy), np.array(practice)
    bearing = np.isin(
        taxonomy_of,
        [
            "Internal Medicine",
            "Surgery",
            "Hematology & Oncology",
            "Plastic Surgery",
            "Endocrinology",
        ],
    )
    for hidden, size in HIDDEN_SIZES.items():
        coded = round(size * knobs.hidden_coded)
        for pool, number in ((bearing, coded), (taxonomy_of == "", size - coded)):
            free = np.flatnonzero(pool & ~np.isin(practice_of, [index[h] for h in HIDDEN_SIZES]))
            practice_of[rng.choice(free, number, replace=False)] = index[hidden]
    order = rng.permutation(USERS)
    return _Users(taxonomy_of[order], practice_of[order])


def _zipf_sizes(total: int, number: int) -> np.ndarray:
    """Sizes ∝ 1/rank^TAIL_EXPONENT, at least one each, that add up to `total`."""
    share = 1.0 / np.arange(1, number + 1) ** TAIL_EXPONENT
    sizes = np.maximum(1, np.floor(share / share.sum() * total)).astype(int)
    sizes[0] += total - sizes.sum()
    return sizes


def _encounters(
    rng: np.random.Generator, names: list[str], scale: float, knobs: Difficulty
) -> _Encounters:
    n_patients, n = round(PATIENTS * scale), round(ENCOUNTERS * scale)
    # Every patient comes once; the other encounters fall on patients unevenly.
    weight = rng.gamma(0.8, size=n_patients)
    further = rng.choice(n_patients, n - n_patients, p=weight / weight.sum())
    patient = np.concatenate([np.arange(n_patients), further]).astype(np.int32)
    share = _patient_share(names)
    main = rng.choice(len(names), n_patients, p=share)
    practice = np.where(
        rng.random(n) < knobs.same_practice, main[patient], rng.choice(len(names), n, p=share)
    )
    return _Encounters(patient, practice.astype(np.int8), rng.integers(0, 365, n))


def _patient_share(names: list[str]) -> np.ndarray:
    """Share of patients per practice: by class size, damped; others as a middling class."""
    size = np.array([{**CORE_SIZES, **HIDDEN_SIZES}.get(name, 30) for name in names], float)
    return np.sqrt(size) / np.sqrt(size).sum()


def _diagnoses(
    rng: np.random.Generator,
    practices: dict[str, tuple[str, ...]],
    encounters: _Encounters,
    knobs: Difficulty,
) -> _Diagnoses:
    codes = sorted({c for own in practices.values() for c in own} | set(GENERAL_CONDITIONS))
    number = {code: i for i, code in enumerate(codes)}
    own = [np.array([number[c] for c in names]) for names in practices.values()]
    general = np.array([number[c] for c in GENERAL_CONDITIONS])
    n = len(encounters.patient)

    def of_practice(which: np.ndarray) -> np.ndarray:
        drawn = np.empty(len(which), dtype=np.int32)
        for k, conditions_of in enumerate(own):
            here = np.flatnonzero(which == k)
            drawn[here] = conditions_of[_zipf(rng, len(conditions_of), len(here))]
        return drawn

    reason = of_practice(encounters.practice)
    again = np.repeat(np.arange(n), rng.poisson(0.8, n))
    comorbid = np.flatnonzero(rng.random(n) < knobs.comorbid)
    elsewhere = rng.integers(0, len(own), len(comorbid))
    behind = np.repeat(np.arange(n), rng.poisson(knobs.background, n))
    # Half of the background is the patient's own chronic conditions, which come back.
    chronic = general[_zipf(rng, len(general), 3 * (int(encounters.patient.max()) + 1))]
    returning = chronic[3 * encounters.patient[behind] + rng.integers(0, 3, len(behind))]
    fresh = general[_zipf(rng, len(general), len(behind))]
    background = np.where(rng.random(len(behind)) < 0.5, returning, fresh)
    encounter = np.concatenate([np.arange(n), again, comorbid, behind])
    code = np.concatenate(
        [reason, of_practice(encounters.practice[again]), of_practice(elsewhere), background]
    )
    pairs = np.unique(encounter * np.int64(len(codes)) + code)
    return _Diagnoses(pairs // len(codes), (pairs % len(codes)).astype(np.int32), codes, reason)


def _zipf(rng: np.random.Generator, n: int, size: int) -> np.ndarray:
    """Draw ranks 0 … n − 1 with probability ∝ 1/(rank + 2)."""
    share = np.cumsum(1.0 / np.arange(2, n + 2))
    return np.searchsorted(share / share[-1], rng.random(size)).clip(max=n - 1)


def _accesses(
    rng: np.random.Generator,
    names: list[str],
    users: _Users,
    encounters: _Encounters,
    n: int,
    knobs: Difficulty,
) -> _Accesses:
    activity = rng.lognormal(0.0, 0.8, USERS)
    user = np.sort(rng.choice(USERS, n, p=activity / activity.sum())).astype(np.int32)
    share = _patient_share(names)
    # Every user's case mix outside the own practice leans somewhere, as real ones do.
    mix = share * rng.gamma(2.0, size=(USERS, len(names)))
    tilted = np.isin(names, SURGICAL)
    mix[np.ix_(users.practice == -2, tilted)] *= knobs.surgical_tilt
    mix /= mix.sum(axis=1, keepdims=True)
    own_share = rng.beta(6 * knobs.focus, 6 * (1 - knobs.focus), USERS) if knobs.focus else 0.0
    own_share = np.where(users.practice >= 0, own_share, 0.0)

    by_practice = np.argsort(encounters.practice, kind="stable").astype(np.int32)
    start = np.searchsorted(encounters.practice[by_practice], np.arange(len(names) + 1))
    topic = np.empty(n, dtype=np.int8)
    first = np.searchsorted(user, np.arange(USERS + 1))
    for u in range(USERS):
        m = first[u + 1] - first[u]
        topic[first[u] : first[u + 1]] = rng.choice(len(names), m, p=mix[u])
    specialised = rng.random(n) < own_share[user]
    topic[specialised] = users.practice[user[specialised]]

    kind = np.zeros(n, dtype=np.int8)
    snooping = np.flatnonzero(rng.random(n) < knobs.snooping)
    kind[snooping] = 1 + (np.arange(len(snooping)) % 2)
    random_topic = kind == 2
    topic[random_topic] = rng.integers(0, len(names), random_topic.sum())
    size = np.diff(start)
    encounter = by_practice[start[topic] + (rng.random(n) * size[topic]).astype(np.int64)]
    anyone = kind == 1
    encounter[anyone] = rng.integers(0, len(encounters.patient), anyone.sum())
    hours = encounters.day[encounter] * 24 + rng.exponential(30, n)
    year = np.datetime64("2024-01-01", "us").astype(np.int64)
    at = year + (hours.clip(max=365 * 24 - 1) * 3.6e9).astype(np.int64)
    return _Accesses(user, encounter, at, kind)


def _tables(
    rng: np.random.Generator,
    names: list[str],
    users: _Users,
    encounters: _Encounters,
    diagnoses: _Diagnoses,
    accesses: _Accesses,
    scale: float,
) -> dict[str, pa.Table]:
    user_ids = [f"U{i:04d}" for i in range(USERS)]
    patient_ids = [f"P{i:06d}" for i in range(round(PATIENTS * scale))]
    encounter_ids = [f"E{i:06d}" for i in range(len(encounters.patient))]

    def ids(numbers: np.ndarray, values: list[str]) -> pa.DictionaryArray:
        return pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), pa.array(values))

    order = np.argsort(accesses.at, kind="stable")
    user, encounter = accesses.user[order], accesses.encounter[order]
    kind = accesses.kind[order]
    fine = _fine_accesses(rng, encounters, user, encounter, scale)
    practice = np.array([*names, "flat, surgical", "flat"])[users.practice]
    return {
        "accesses": pa.table(
            {
                "user": ids(user, user_ids),
                "patient": ids(encounters.patient[encounter], patient_ids),
                "encounter": ids(encounter, encounter_ids),
                "at": pa.array(accesses.at[order], TIMESTAMP),
            }
        ),
        "diagnoses": pa.table(
            {
                "patient": ids(encounters.patient[diagnoses.encounter], patient_ids),
                "encounter": ids(diagnoses.encounter, encounter_ids),
                "code": ids(diagnoses.code, diagnoses.codes),
            }
        ),
        "providers": pa.table(
            {"user": user_ids, "taxonomy": [code or None for code in users.taxonomy.tolist()]}
        ),
        "access_diagnoses": pa.table(
            {
                "user": ids(user[fine], user_ids),
                "patient": ids(encounters.patient[encounter[fine]], patient_ids),
                "encounter": ids(encounter[fine], encounter_ids),
                "code": ids(diagnoses.reason[encounter[fine]], diagnoses.codes),
            }
        ),
        "truth_users": pa.table({"user": user_ids, "practice": practice}),
        "truth_encounters": pa.table(
            {
                "encounter": ids(np.arange(len(encounters.practice)), encounter_ids),
                "practice": ids(encounters.practice, names),
            }
        ),
        "truth_accesses": pa.table(
            {
                "row": np.flatnonzero(kind) + 1,
                "kind": np.array(["", "random patient", "random topic"])[kind[kind > 0]],
            }
        ),
    }


def _fine_accesses(
    rng: np.random.Generator,
    encounters: _Encounters,
    user: np.ndarray,
    encounter: np.ndarray,
    scale: float,
) -> np.ndarray:
    """Rows of the accesses that the fine-grained view covers."""
    n_patients = int(encounters.patient.max()) + 1
    patients = rng.choice(n_patients, round(FINE_PATIENTS * scale), replace=False)
    of_patients = rng.permutation(np.flatnonzero(np.isin(encounters.patient, patients)))
    # One encounter of each patient first, then further ones.
    _, first = np.unique(encounters.patient[of_patients], return_index=True)
    rest = np.delete(of_patients, first)
    missing = max(0, round(FINE_ENCOUNTERS * scale) - len(first))
    chosen = np.concatenate([of_patients[first], rest[:missing]])
    covered = np.zeros(len(encounters.patient), dtype=bool)
    covered[chosen] = True
    known = np.zeros(USERS, dtype=bool)
    known[rng.choice(USERS, FINE_USERS, replace=False)] = True
    return np.flatnonzero(covered[encounter] & known[user])
