"""The simulated hospital of chapter 6, its truth, and what is found in it."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from telic.simulate.hospital import Difficulty, simulate_hospital
from telic.simulate.hospital_practices import HIDDEN_SIZES
from telic.specialty.alarms.before_and_after import known_snooping
from telic.specialty.discovery.discover import discover
from telic.specialty.discovery.result import Discovery, Specialty
from telic.specialty.log.access_log import AccessLog
from telic.specialty.log.log_files import read_log


class Truth(NamedTuple):
    """What the simulator knows."""

    practice: np.ndarray
    """Of each user."""
    snooping: Mapping[str, np.ndarray]
    """1-based rows of the accesses file, by kind."""
    hidden_encounter: np.ndarray
    """Index into `HIDDEN_SIZES` of each encounter's practice, −1 for the others."""


@lru_cache(maxsize=1)  # of the published size, a hospital takes a gigabyte
def hospital(
    scale: float, seed: int, difficulty: Difficulty | None = None
) -> tuple[AccessLog, Truth]:
    """Simulate a hospital and read its log with its truth."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "log"
        simulate_hospital(folder, scale=scale, seed=seed, difficulty=difficulty)

        def column(table: str, name: str) -> np.ndarray:
            return np.array(pq.read_table(folder / f"{table}.parquet")[name].to_pylist())

        log = read_log(folder)
        # Users and encounters are numbered in sorted order, which the simulator's ids keep.
        hidden = hidden_index(column("truth_encounters", "practice"))
        return log, Truth(column("truth_users", "practice"), known_snooping(folder) or {}, hidden)


def hidden_index(practice: np.ndarray) -> np.ndarray:
    """Return the place in `HIDDEN_SIZES` of each practice, −1 for the others."""
    index = np.full(len(practice), -1)
    for k, hidden in enumerate(HIDDEN_SIZES):
        index[practice == hidden] = k
    return index


NAMING = "overlap"
"""When a listed code names a cluster, in this study: the rule that its results were found with."""


def found_in(
    *, scale: float, seed: int, method: str = "lda", threads: int = 1, **options: Any
) -> dict[str, Any]:
    """Return what `discover` finds, in the form of `Discovery.as_json`."""
    log, _ = hospital(scale, seed)
    found = discover(log, method=method, naming=NAMING, seed=seed, threads=threads, **options)
    return found.as_json(log)


def f1(truth: set, found: set) -> float:
    """F1 of one set against another."""
    return 2 * len(truth & found) / max(len(truth) + len(found), 1)


def nearest(
    found: Discovery, truth: Truth, hidden: str, users: np.ndarray | None = None
) -> tuple[Specialty | None, float]:
    """The specialty nearest to a hidden one, and its F1 (among `users`, if given)."""
    true = truth.practice == hidden
    real = set(np.flatnonzero(true if users is None else true & users))
    scored = [(f1(real, set(one.users)), one) for one in found.specialties]
    score, one = max(scored, key=lambda pair: pair[0], default=(0.0, None))
    return one, score


def in_view(log: AccessLog, found: Discovery) -> np.ndarray | None:
    """Users that a discovery in the fine-grained view could see; None for all."""
    if found.details.get("view") != "fine" or log.fine is None:
        return None
    return np.asarray(log.fine.sum(axis=1)).ravel() > 0
