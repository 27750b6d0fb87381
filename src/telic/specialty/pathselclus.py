"""PathSelClus: cluster users over several meta-paths, guided by seeds, and weigh the paths.

Sun, Norick, Han, Yan, Yu, Yu, "Integrating meta-path selection with user-guided object clustering
in heterogeneous information networks", KDD 2012. The updates of θ and B are the EM steps written
without responsibilities; the objective J is maximised over θ, B and the path qualities α.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy import sparse
from scipy.special import digamma, gammaln

from telic.errors import InputError

FLOOR = 1e-12
"""Added inside logarithms and divisions."""
MAX_QUALITY = 1e4
"""Cap on a path's α."""


# Sums may be reordered, which lets the loops over clusters use vector instructions.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _em_pass(start, column, weight, theta, feature, quality, theta_gain, feature_gain):
    """Add one path's gains to θ and B; returns Σ w ln π over the path's non-zeros."""
    n_clusters = theta.shape[1]
    likelihood = 0.0
    for i in range(theta.shape[0]):
        for p in range(start[i], start[i + 1]):
            j = column[p]
            explained = 1e-12
            for k in range(n_clusters):
                explained += theta[i, k] * feature[j, k]
            likelihood += weight[p] * np.log(explained)
            ratio = weight[p] / explained
            scaled = quality * ratio
            for k in range(n_clusters):
                theta_gain[i, k] += scaled * feature[j, k]
                feature_gain[j, k] += ratio * theta[i, k]
    return likelihood


@dataclass(frozen=True, eq=False)
class Path:
    """One meta-path, scaled so that its weights sum to the number of users."""

    weight: sparse.csr_array
    """Users × objects."""
    row_sum: np.ndarray
    values: np.ndarray
    """Distinct weights and how often each occurs: J needs only these."""
    repeats: np.ndarray

    @classmethod
    def of(cls, counts: sparse.csr_array) -> "Path":
        """Drop empty columns and scale."""
        W = sparse.csr_array(counts, dtype=np.float64, copy=True)
        W.sum_duplicates()
        W.eliminate_zeros()
        W = W[:, np.flatnonzero(np.asarray(W.sum(axis=0)).ravel() > 0)]
        W.data *= W.shape[0] / W.data.sum()
        values, repeats = np.unique(W.data, return_counts=True)
        return cls(W, np.asarray(W.sum(axis=1)).ravel(), values, repeats)

    def objective(self, quality: float, likelihood: float) -> float:
        """The path's part of J, given Σ w ln π."""
        spread = gammaln(quality * self.row_sum + self.weight.shape[1]).sum()
        spread -= self.repeats @ gammaln(quality * self.values + 1)
        return float(spread + quality * likelihood)

    def refit_quality(self, quality: float, likelihood: float) -> float:
        """Fixed point of dJ/dα = 0, given Σ w ln π."""
        for _ in range(200):
            pull = digamma(quality * self.row_sum + self.weight.shape[1]) @ self.row_sum
            pull -= self.repeats @ (digamma(quality * self.values + 1) * self.values)
            new = float(np.clip(quality * pull / max(-likelihood, FLOOR), 0.0, MAX_QUALITY))
            if abs(new - quality) <= 5e-4 * max(quality, FLOOR):
                return new
            quality = new
        return quality


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
    labels_of_restarts: tuple[np.ndarray, ...] = ()
    """Labels of the restarts that were finished, best first."""

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
    on_restart: Callable[[], None] | None = None,
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
    on_restart : callable, optional
        Called after each run, for a progress bar.

    Returns
    -------
    Clustering

    Raises
    ------
    InputError
        More clusters than users, a path without a link, or a seed outside the clusters.
    """
    n = len(seeds)
    if n_clusters > n:
        raise InputError(f"{n_clusters} clusters were asked for, but there are only {n} users.")
    if seeds.max(initial=-1) >= n_clusters or seeds.min(initial=-1) < -1:
        raise InputError(f"seeds must lie in −1 … {n_clusters - 1}.")
    for name, counts in paths.items():
        if counts.shape[0] != n or counts.sum() <= 0:
            raise InputError(f"path {name!r}: shape {counts.shape}, expected links of {n} users.")
    prepared = {name: Path.of(counts) for name, counts in paths.items()}
    guidance = np.zeros((n, n_clusters))
    seeded = np.flatnonzero(seeds >= 0)
    guidance[seeded, seeds[seeded]] = confidence

    def run(start: tuple[np.random.Generator, Clustering | None]) -> Clustering:
        found = _run(prepared, guidance, n_clusters, *start)
        if on_restart is not None:
            on_restart()
        return found

    streams = np.random.default_rng(seed).spawn(restarts)
    with ThreadPoolExecutor(threads) as pool:
        short = list(pool.map(run, [(stream, None) for stream in streams]))
        best = sorted(range(restarts), key=lambda r: -short[r].objective)[:finished]
        full = list(pool.map(run, [(streams[r], short[r]) for r in best]))
    full.sort(key=lambda one: -one.objective)
    top = full[0]
    return Clustering(
        top.theta, top.features, top.quality, top.objective, tuple(one.labels for one in full)
    )


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
    feature = _normalise_columns(path.weight.T @ theta + FLOOR)
    unused = np.zeros_like(theta)
    likelihood = -np.inf
    for _ in range(50):
        gain = np.zeros_like(feature)
        W = path.weight
        new = _em_pass(W.indptr, W.indices, W.data, theta, feature, 0.0, unused, gain)
        feature = _normalise_columns(feature * gain)
        if new - likelihood < 1e-6 * abs(new):
            return feature, new
        likelihood = new
    return feature, likelihood


def _run(
    paths: Mapping[str, Path],
    guidance: np.ndarray,
    n_clusters: int,
    rng: np.random.Generator,
    warm: Clustering | None,
) -> Clustering:
    """A short run from a random start, or the completion of one."""
    names = list(paths)
    if warm is None:
        quality = dict.fromkeys(names, 1.0)
        # α is settled roughly before the run that counts, which starts afresh.
        theta, feature = _random_start(paths, guidance, n_clusters, rng)
        theta, feature, likelihood = _em(paths, guidance, theta, feature, quality, rounds=10)
        quality = {m: paths[m].refit_quality(quality[m], likelihood[m]) for m in names}
        theta, feature = _random_start(paths, guidance, n_clusters, rng)
        outer, rounds = 1, 15
    else:
        theta, feature, quality = warm.theta, dict(warm.features), dict(warm.quality)
        outer, rounds = 10, 100
    for _ in range(outer):
        theta, feature, likelihood = _em(paths, guidance, theta, feature, quality, rounds=rounds)
        new = {m: paths[m].refit_quality(max(quality[m], 1e-3), likelihood[m]) for m in names}
        moved = sum(abs(new[m] - quality[m]) for m in names)
        quality = new
        if moved <= 1e-3 * sum(quality.values()):
            break
    objective = sum(paths[m].objective(quality[m], likelihood[m]) for m in names)
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
    likelihood: dict[str, float] = {}
    for _ in range(rounds):
        theta_gain = np.zeros_like(theta)
        updated = {}
        for name, path in paths.items():
            gain = np.zeros_like(feature[name])
            W = path.weight
            likelihood[name] = _em_pass(
                W.indptr, W.indices, W.data, theta, feature[name], quality[name], theta_gain, gain
            )
            updated[name] = _normalise_columns(feature[name] * gain)
        # A user without links or guidance keeps equal shares: the prior.
        gained = theta * theta_gain + guidance + FLOOR
        new = gained / gained.sum(axis=1, keepdims=True)
        moved = np.abs(new - theta).sum(axis=1).mean()
        theta, feature = new, updated
        if moved < 1e-4:
            break
    return theta, feature, likelihood


def _random_start(
    paths: Mapping[str, Path], guidance: np.ndarray, n_clusters: int, rng: np.random.Generator
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Seeds at their corner, others at random; B follows from both.

    Random shares are drawn sparse: from nearly equal ones all free clusters would start as the same
    average profile.
    """
    theta = rng.dirichlet(np.full(n_clusters, 0.1), size=len(guidance))
    seeded = guidance.any(axis=1)
    theta[seeded] = 0.05 / n_clusters + 0.95 * (guidance[seeded] > 0)
    theta /= theta.sum(axis=1, keepdims=True)
    feature = {
        name: _normalise_columns(path.weight.T @ theta + FLOOR) for name, path in paths.items()
    }
    return theta, feature


def _normalise_columns(matrix: np.ndarray) -> np.ndarray:
    return matrix / np.maximum(matrix.sum(axis=0), FLOOR)
