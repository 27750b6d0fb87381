"""PathSelClus: cluster users over several meta-paths, guided by seeds, and weigh the paths.

Sun, Norick, Han, Yan, Yu, Yu, "Integrating meta-path selection with user-guided object clustering
in heterogeneous information networks", KDD 2012. The updates of θ and B are the EM steps written
without responsibilities; the objective J is maximised over θ, B and the path qualities α.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from telic.errors import InputError, expect_at_least, expect_whole
from telic.specialty.discovery.pathselclus_path_quality import FLOOR, Path, normalise_columns
from telic.specialty.discovery.pathselclus_starts import Start, starts

SHORT, FULL = (1, 15), (5, 60)
"""Outer rounds, and rounds of EM within each, of a run that is screened and of one that counts."""


@dataclass(frozen=True, eq=False)
class Clustering:
    """A fitted PathSelClus model."""

    theta: np.ndarray
    """Users × clusters; rows sum to 1."""
    features: dict[str, np.ndarray]
    """Per path, objects × clusters: P(object | cluster, path); empty columns are left out."""
    quality: dict[str, float]
    """α of each path."""
    objective: float
    theta_of_restarts: tuple[np.ndarray, ...] = ()
    """θ of the restarts that were finished, best first."""

    @property
    def labels(self) -> np.ndarray:
        """Cluster of each user: argmax of θ."""
        return self.theta.argmax(axis=1)


def fit_pathselclus(
    paths: Mapping[str, sparse.csr_array],
    seeds: np.ndarray,
    *,
    n_clusters: int,
    confidence: float = 50.0,
    restarts: int = 10,
    finished: int = 2,
    seed: int = 0,
    threads: int = 1,
    start: np.ndarray | None = None,
    progress: Callable[[str], None] = lambda run: None,
) -> Clustering:
    """Cluster users.

    Parameters
    ----------
    paths : mapping of str to sparse array
        Users × objects counts of each meta-path, not negative.
    seeds : ndarray of int
        Cluster of each seeded user, −1 for the others. Clusters without a seed are free: that is
        how new specialties appear.
    n_clusters : int
        N seeded + δ unseeded, at most the number of users.
    confidence : float
        λ ≥ 0: how much a seed weighs against the user's links, which weigh Σ α_m on average.
    restarts, finished : int
        `restarts` short runs are screened by J, the best `finished` are run to convergence.
    seed : int
    threads : int
        Restarts run side by side; the result does not depend on it.
    start : ndarray of shape (n_users, n_clusters), optional
        A first θ, rows summing to 1: one run from there instead of the random ones.
    progress : callable
        Told of each run when it is done, for a progress bar.

    Returns
    -------
    Clustering

    Raises
    ------
    InputError
        More clusters than users, a path without a link, a seed outside the clusters, a first θ that
        is none, or another number that is out of its range.
    """
    n = len(seeds)
    expect_whole(1, n_clusters=n_clusters, restarts=restarts, finished=finished)
    if n_clusters > n:
        raise InputError(f"{n_clusters} clusters were asked for, but there are only {n} users.")
    if seeds.max(initial=-1) >= n_clusters or seeds.min(initial=-1) < -1:
        raise InputError(f"seeds must lie in −1 … {n_clusters - 1}.")
    expect_at_least(0, confidence=confidence)
    if not paths:
        raise InputError("paths is empty, expected the counts of at least one meta-path.")
    for name, counts in paths.items():
        values = sparse.csr_array(counts).data
        if counts.shape[0] != n or not 0 < values.sum() < np.inf:
            raise InputError(f"path {name!r}: shape {counts.shape}, expected links of {n} users.")
        if values.min() < 0:
            raise InputError(
                f"path {name!r}: has a count below 0, expected how many links there are."
            )
    if start is not None:
        start = np.asarray(start, float)
        shares = (start >= 0).all() and np.allclose(start.sum(axis=-1), 1, atol=1e-6)
        if start.shape != (n, n_clusters) or not shares:
            raise InputError(
                f"start has shape {start.shape}, expected {(n, n_clusters)}: shares of each user "
                "that sum to 1."
            )
    prepared = {name: Path.of(counts) for name, counts in paths.items()}
    guidance = np.zeros((n, n_clusters))
    seeded = np.flatnonzero(seeds >= 0)
    guidance[seeded, seeds[seeded]] = confidence

    def run(start: Start | Clustering, outer: int, rounds: int) -> Clustering:
        found = _run(prepared, guidance, start, outer=outer, rounds=rounds)
        progress(f"{n_clusters} clusters")
        return found

    if start is not None:
        feature = {name: path.profile(start) for name, path in prepared.items()}
        return run(Start(start, feature, dict.fromkeys(prepared, 1.0)), *FULL)
    first = starts(prepared, guidance, restarts, np.random.default_rng(seed))
    with ThreadPoolExecutor(threads) as pool:
        short = list(pool.map(lambda one: run(one, *SHORT), first))
        short.sort(key=lambda one: -one.objective)
        full = list(pool.map(lambda one: run(one, *FULL), short[:finished]))
    full.sort(key=lambda one: -one.objective)
    return replace(full[0], theta_of_restarts=tuple(one.theta for one in full))


def path_contrast(
    paths: Mapping[str, sparse.csr_array], clustering: Clustering, *, seed: int = 0
) -> dict[str, float]:
    """How much better each path fits the clusters than a copy with its rows permuted.

    α of the path over α of the permuted path, with θ held fixed and B and α refitted for both.
    Near 1: the path says nothing about the clusters, however large its α. (α alone measures how
    concentrated a path is, not how relevant.)
    """
    rng = np.random.default_rng(seed)
    contrast = {}
    for name, counts in paths.items():
        order = rng.permutation(counts.shape[0])
        qualities = []
        for W in (counts, sparse.csr_array(counts)[order]):
            path = Path.of(W)
            _, likelihood = _fit_features(path, clustering.theta)
            qualities.append(path.refit_quality(1.0, likelihood))
        contrast[name] = qualities[0] / max(qualities[1], FLOOR)
    return contrast


def _fit_features(path: Path, theta: np.ndarray) -> tuple[np.ndarray, float]:
    """B of one path with θ held fixed, and Σ w ln π."""
    feature = path.profile(theta)
    likelihood = path.likelihood(theta, feature)
    for _ in range(10):
        for _ in range(5):
            feature = normalise_columns(feature * path.gains(theta, feature)[1])
        before, likelihood = likelihood, path.likelihood(theta, feature)
        if likelihood - before < 1e-6 * abs(likelihood):
            break
    return feature, likelihood


def _run(
    paths: Mapping[str, Path],
    guidance: np.ndarray,
    start: Start | Clustering,
    *,
    outer: int,
    rounds: int,
) -> Clustering:
    """Alternate between θ and B by EM and α by its fixed point."""
    theta, feature, quality = start.theta, start.features, start.quality
    for _ in range(outer):
        theta, feature, likelihood = _em(paths, guidance, theta, feature, quality, rounds=rounds)
        new = {m: paths[m].refit_quality(max(quality[m], 1e-3), likelihood[m]) for m in paths}
        moved = sum(abs(new[m] - quality[m]) for m in paths)
        quality = new
        if moved <= 1e-3 * sum(quality.values()):
            break
    objective = sum(paths[m].objective(quality[m], likelihood[m]) for m in paths)
    objective += float((guidance * np.log(theta + FLOOR)).sum())
    return Clustering(theta, feature, quality, objective)


def _em(
    paths: Mapping[str, Path],
    guidance: np.ndarray,
    theta: np.ndarray,
    feature: dict[str, np.ndarray],
    quality: Mapping[str, float],
    *,
    rounds: int,
) -> tuple[np.ndarray, dict[str, np.ndarray], dict[str, float]]:
    """EM at fixed α until θ moves by less than 1e-4 per user on average."""
    for _ in range(rounds):
        theta_gain, updated = np.zeros_like(theta), {}
        for name, path in paths.items():
            own, gain = path.gains(theta, feature[name])
            theta_gain += quality[name] * own
            updated[name] = normalise_columns(feature[name] * gain)
        # A user without links or guidance keeps equal shares: the prior.
        gained = theta * theta_gain + guidance + FLOOR
        new = gained / gained.sum(axis=1, keepdims=True)
        moved = np.abs(new - theta).sum(axis=1).mean()
        theta, feature = new, updated
        if moved < 1e-4:
            break
    return theta, feature, {m: path.likelihood(theta, feature[m]) for m, path in paths.items()}
