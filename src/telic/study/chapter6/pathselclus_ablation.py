"""Why PathSelClus finds what it finds: one thing changed at a time, against the truth."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from telic.simulate.hospital import Difficulty
from telic.simulate.hospital_practices import HIDDEN_SIZES
from telic.specialty.discovery.by_seeds import (
    MIN_THETA,
    SEED_CLASS,
    links_of,
    path_of,
    representatives,
)
from telic.specialty.discovery.pathselclus import fit_pathselclus, path_contrast
from telic.specialty.recognition.recognise import CORE_CLASSES
from telic.study.chapter6.hospital import f1, hospital

BLURRED = Difficulty(same_practice=0.1)
"""Patients whose encounters hardly share a practice, which is what the dissertation says of its
general view."""


SETTINGS: dict[str, dict[str, Any]] = {
    "fine view, as shipped": {},
    "fine view, started at the truth": {"from_truth": True},
    "fine view, every declared user a seed": {"everyone": True},
    "fine view, seeds of the 12 core codes only": {"core_only": True},
    **{f"fine view, δ = {free}": {"free": free} for free in (1, 2, 4)},
    "fine view, whatever cluster is largest": {"argmax": True},
    "fine view, U–P beside U–P–D": {"paths": ("U-P-D", "U-P")},
    "fine view, U–P–U beside U–P–D–P–U": {"paths": ("U-P-U", "U-P-D-P-U")},
    "general view": {"view": "general"},
    "general view, started at the truth": {"view": "general", "from_truth": True},
    "fine view, patients without a main practice": {"blurred": True},
    "general view, patients without a main practice": {"view": "general", "blurred": True},
    "seed 1: fine view, as shipped": {"seed": 1},
    "seed 1: fine view, started at the truth": {"seed": 1, "from_truth": True},
    "seed 2: fine view, as shipped": {"seed": 2},
    "seed 2: fine view, started at the truth": {"seed": 2, "from_truth": True},
}
"""How PathSelClus is used, and with one thing changed; seed 0 unless said."""


def clustered(
    *,
    scale: float,
    seed: int = 0,
    view: str = "fine",
    paths: tuple[str, ...] = ("U-P-D",),
    blurred: bool = False,
    core_only: bool = False,
    everyone: bool = False,
    free: int = 3,
    argmax: bool = False,
    from_truth: bool = False,
) -> dict[str, Any]:
    """Return how well PathSelClus finds the hidden specialties in one of `SETTINGS`.

    Parameters
    ----------
    scale, seed
        Of the hospital.
    view : {"fine", "general"}
    paths : tuple of str
    blurred : bool
        Patients have hardly a main practice.
    core_only : bool
        Seeds come from the twelve core codes only.
    everyone : bool
        Every user who declares a seeded code is a seed.
    free : int
        Clusters without seeds: the dissertation's δ.
    argmax : bool
        Every user is in the cluster of largest share, however small it is.
    from_truth : bool
        Start at the truth.
    """
    log, truth = hospital(scale, seed, BLURRED if blurred else None)
    frequent = sorted(code for code, size in log.class_sizes().items() if size >= SEED_CLASS)
    codes = [*CORE_CLASSES] if core_only else frequent
    patient, diagnosed = links_of(log, view)
    active = np.flatnonzero(np.asarray(diagnosed.sum(axis=1)).ravel() > 0)
    practice, declared = truth.practice[active], log.taxonomy[active]
    if everyone:
        seeds = np.array([codes.index(c) if c in codes else -1 for c in declared])
    else:
        seeds = representatives(declared, diagnosed[active], codes)
    links: Mapping[str, sparse.csr_array] = {
        name: path_of(name, patient[active], diagnosed[active]) for name in paths
    }
    n_clusters = len(codes) + free
    start = _truth_start(practice, codes, n_clusters) if from_truth else None
    model = fit_pathselclus(links, seeds, n_clusters=n_clusters, seed=seed, start=start)
    least = 0.0 if argmax else MIN_THETA
    cluster = np.where(model.theta.max(axis=1) >= least, model.labels, -1)
    scores, free = {}, 0
    for hidden in HIDDEN_SIZES:
        real = set(np.flatnonzero(practice == hidden))
        best, k = max((f1(real, set(np.flatnonzero(cluster == k))), k) for k in range(n_clusters))
        scores[hidden] = best
        free += k >= len(codes)
    practising = ~np.char.startswith(practice.astype(str), "flat")
    return {
        "f1": scores,
        "in_free": free,
        "objective": model.objective,
        "largest_share": model.theta[practising].max(axis=1).mean(),
        "ratios": path_contrast(links, model),
    }


def _truth_start(practice: np.ndarray, codes: list[str], n_clusters: int) -> np.ndarray:
    """θ with half of each user at the own practice: hidden ones and the flat in free clusters."""
    place = {code: k for k, code in enumerate(codes)}
    place |= {hidden: len(codes) + k for k, hidden in enumerate(HIDDEN_SIZES)}
    theta = np.full((len(practice), n_clusters), 0.5 / n_clusters)
    theta[np.arange(len(practice)), [place.get(p, n_clusters - 1) for p in practice]] += 0.5
    return theta
