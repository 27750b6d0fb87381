"""Why PathSelClus finds what it finds: one thing changed at a time, against the truth."""

from collections.abc import Callable, Mapping
from pathlib import Path as Folder
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy import sparse

from telic.simulate.hospital import Difficulty
from telic.simulate.hospital_practices import HIDDEN_SIZES
from telic.specialty.access import AccessLog
from telic.specialty.pathselclus import Clustering, fit_pathselclus, path_contrast
from telic.specialty.recognise import CORE_CLASSES
from telic.specialty.seeded import MIN_THETA, SEED_CLASS, links_of, path_of, representatives
from telic.study.chapter6_truth import Table, f1, simulated

BLURRED = Difficulty(same_practice=0.1)
"""Patients whose encounters hardly share a practice: what the text says of its general view."""


def diagnosis(*, scale: float = 1.0, on_step: Callable[[str], None] = lambda step: None) -> Table:
    """F1 of the hidden specialties as PathSelClus is used, and with one thing changed.

    Notes
    -----
    In the general view a start at the truth gives every user one practice and EM stays near it, at
    a lower J (the column "largest share" is the mean over users who have a practice): the records
    they open hold other practices' diagnoses too. J and F1 part ways there.
    """

    def hospital(seed: int, difficulty: Difficulty | None = None) -> tuple[AccessLog, np.ndarray]:
        with TemporaryDirectory() as folder:
            log, truth = simulated(
                Folder(folder) / "log", scale=scale, seed=seed, difficulty=difficulty
            )
        return log, truth.practice

    rows = []

    def add(
        name: str, log: AccessLog, view: str, practice: np.ndarray, seed: int = 0, **change: Any
    ) -> None:
        codes = sorted(code for code, size in log.class_sizes().items() if size >= SEED_CLASS)
        rows.append([name, *_try(log, practice, view, seed, **{"codes": codes, **change})])
        on_step(name)

    log, own = hospital(0)
    add("fine view, as shipped", log, "fine", own)
    add("fine view, started at the truth", log, "fine", own, from_truth=True)
    add("fine view, every declared user a seed", log, "fine", own, everyone=True)
    add("fine view, seeds of the 12 core codes only", log, "fine", own, codes=[*CORE_CLASSES])
    add("fine view, U–P beside U–P–D", log, "fine", own, paths=("U-P-D", "U-P"))
    add("general view", log, "general", own)
    add("general view, started at the truth", log, "general", own, from_truth=True)
    blurred, own = hospital(0, BLURRED)
    add("fine view, patients without a main practice", blurred, "fine", own)
    add("general view, patients without a main practice", blurred, "general", own)
    for seed in (1, 2):
        log, own = hospital(seed)
        add(f"seed {seed}: fine view, as shipped", log, "fine", own, seed)
        add(
            f"seed {seed}: fine view, started at the truth", log, "fine", own, seed, from_truth=True
        )
    return Table(
        f"What PathSelClus rests on (scale {scale:g}, seed 0 unless said; F1 among users in view)",
        [
            "",
            *(f"F1 {hidden}" for hidden in HIDDEN_SIZES),
            "in free clusters",
            "J",
            "largest share",
            "α ratios",
        ],
        rows,
    )


def _try(
    log: AccessLog,
    practice: np.ndarray,
    view: str,
    seed: int,
    *,
    codes: list[str],
    paths: tuple[str, ...] = ("U-P-D",),
    everyone: bool = False,
    from_truth: bool = False,
) -> list[str]:
    patient, diagnosed = links_of(log, view)
    active = np.flatnonzero(np.asarray(diagnosed.sum(axis=1)).ravel() > 0)
    practice, declared = practice[active], log.taxonomy[active]
    if everyone:
        seeds = np.array([codes.index(c) if c in codes else -1 for c in declared])
    else:
        seeds = representatives(declared, diagnosed[active], codes)
    links: Mapping[str, sparse.csr_array] = {
        name: path_of(name, patient[active], diagnosed[active]) for name in paths
    }
    n_clusters = len(codes) + 3
    start = _truth_start(practice, codes, n_clusters) if from_truth else None
    model = fit_pathselclus(links, seeds, n_clusters=n_clusters, seed=seed, start=start)
    cluster = np.where(model.theta.max(axis=1) >= MIN_THETA, model.labels, -1)
    scores, free = [], 0
    for hidden in HIDDEN_SIZES:
        real = set(np.flatnonzero(practice == hidden))
        best, k = max((f1(real, set(np.flatnonzero(cluster == k))), k) for k in range(n_clusters))
        scores.append(f"{best:.3f}")
        free += k >= len(codes)
    practising = ~np.char.startswith(practice.astype(str), "flat")
    return [
        *scores,
        f"{free} of {len(scores)}",
        f"{model.objective:,.0f}",
        f"{model.theta[practising].max(axis=1).mean():.2f}",
        _ratios(links, model),
    ]


def _ratios(links: Mapping[str, sparse.csr_array], model: Clustering) -> str:
    return ", ".join(f"{name} {ratio:.2f}" for name, ratio in path_contrast(links, model).items())


def _truth_start(practice: np.ndarray, codes: list[str], n_clusters: int) -> np.ndarray:
    """θ with half of each user at the own practice: hidden ones and the flat in free clusters."""
    place = {code: k for k, code in enumerate(codes)}
    place |= {hidden: len(codes) + k for k, hidden in enumerate(HIDDEN_SIZES)}
    theta = np.full((len(practice), n_clusters), 0.5 / n_clusters)
    theta[np.arange(len(practice)), [place.get(p, n_clusters - 1) for p in practice]] += 0.5
    return theta
