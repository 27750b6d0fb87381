"""Chapter 6 against the simulator's truth: what is found, which alarms it explains, and why not."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from telic.simulate.hospital import Difficulty, simulate_hospital
from telic.simulate.hospital_practices import HIDDEN_SIZES
from telic.specialty.access import AccessLog, read_log
from telic.specialty.discover import discover
from telic.specialty.discovery import Discovery, Specialty
from telic.specialty.effect import Effect, effect, known_snooping, together
from telic.specialty.explain import judge


class Table(NamedTuple):
    """One table of the study."""

    title: str
    columns: list[str]
    rows: list[list[Any]]


class Truth(NamedTuple):
    """What the simulator knows."""

    practice: np.ndarray
    """Of each user."""
    snooping: Mapping[str, np.ndarray]
    """1-based rows of the accesses file, by kind."""
    hidden_encounter: np.ndarray
    """Index into `HIDDEN_SIZES` of each encounter's practice, −1 for the others."""


def simulated(
    folder: Path, *, scale: float, seed: int, difficulty: Difficulty | None = None
) -> tuple[AccessLog, Truth]:
    """Simulate a hospital into `folder`, unless it is there, and read it with its truth."""
    if not folder.exists():
        simulate_hospital(folder, scale=scale, seed=seed, difficulty=difficulty)

    def column(table: str, name: str) -> np.ndarray:
        return np.array(pq.read_table(folder / f"{table}.parquet")[name].to_pylist())

    log = read_log(folder)
    # Users and encounters are numbered in sorted order, which the simulator's ids keep.
    hidden = _hidden_index(column("truth_encounters", "practice"))
    return log, Truth(column("truth_users", "practice"), known_snooping(folder) or {}, hidden)


def _hidden_index(practice: np.ndarray) -> np.ndarray:
    index = np.full(len(practice), -1)
    for k, hidden in enumerate(HIDDEN_SIZES):
        index[practice == hidden] = k
    return index


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


class Alarms(NamedTuple):
    """Alarms before and after."""

    effect: Effect
    planted: int
    """Alarms of the true users of a hidden specialty, found or missed, on its encounters."""
    planted_explained: int


def alarms(log: AccessLog, found: Discovery, truth: Truth) -> Alarms:
    """Count the alarms that `found` explains, and the planted snooping that stays caught."""
    alerts = judge(log, found)
    practised = _hidden_index(truth.practice)[log.access_user]
    own = (practised >= 0) & (practised == truth.hidden_encounter[log.access_encounter])
    own &= ~np.isin(log.access_row, np.concatenate([[], *truth.snooping.values()]))
    return Alarms(
        effect(log, found, alerts, truth.snooping),
        int((alerts.raised & own).sum()),
        int((alerts.explained & own).sum()),
    )


def against_truth(log: AccessLog, truth: Truth, found: dict[str, Discovery]) -> Table:
    """F1 of each discovery's nearest cluster to each hidden specialty."""
    rows = []
    for name, discovery in found.items():
        for hidden in HIDDEN_SIZES:
            one, score = nearest(discovery, truth, hidden, in_view(log, discovery))
            listed = (one.listed_code or "none") if one else "not found"
            rows.append([name, hidden, f"{score:.3f}", listed])
    return Table(
        "Hidden specialties against the simulator's truth (fine-grained: users in that view)",
        ["discovery", "hidden specialty", "F1", "listed code of the cluster"],
        rows,
    )


def snooping_rows(effect: Effect) -> list[list[Any]]:
    """By kind and together: snooping planted, caught before and now, lost, gained, and the test."""
    kinds = {**effect.snooping, "together": together(effect.snooping)}
    return [[kind, *(f"{n:,}" for n in one), one.text()] for kind, one in kinds.items()]


SNOOPING_COLUMNS = [
    "snooping",
    "planted",
    "caught before",
    "caught now",
    "lost",
    "gained",
    "points (95 % interval), paired test",
]


def recovery(
    *,
    scale: float,
    seeds: Sequence[int],
    method: str = "lda",
    threads: int = 1,
    on_step: Callable[[str], None] = lambda step: None,
) -> list[Table]:
    """Seed by seed: F1 of the hidden specialties and alarms explained; snooping that stays caught.

    Returns
    -------
    list of Table
        Two, with a row per seed, and per seed and kind of snooping.
    """
    rows, snooping = [], []
    for seed in seeds:
        with TemporaryDirectory() as folder:
            log, truth = simulated(Path(folder) / "log", scale=scale, seed=seed)
        found = discover(log, method=method, restarts=1, seed=seed, threads=threads)
        counted = alarms(log, found, truth)
        scores = [nearest(found, truth, one, in_view(log, found))[1] for one in HIDDEN_SIZES]
        rows.append(
            [
                seed,
                *(f"{score:.3f}" for score in scores),
                f"{counted.planted:,}",
                f"{counted.planted_explained:,}",
                f"{counted.planted_explained / max(counted.planted, 1):.1%}",
            ]
        )
        snooping += [[seed, *row] for row in snooping_rows(counted.effect)]
        on_step(f"seed {seed}")
    name = f"by {method} at scale {scale:g}"
    found_columns = [f"F1 {hidden}" for hidden in HIDDEN_SIZES]
    return [
        Table(
            f"Recovery {name}",
            ["seed", *found_columns, "planted alarms", "explained", "share"],
            rows,
        ),
        Table(
            f"Snooping caught at equal queue length, {name}", ["seed", *SNOOPING_COLUMNS], snooping
        ),
    ]
