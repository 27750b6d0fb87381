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
MAX_QUALITY = 1e8
"""Cap on a path's α."""
DENSE = 0.2
"""Share of non-zeros from which a path is held as a full array."""


# Sums may be reordered, which lets the loops over clusters use vector instructions.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _sparse_gains(start, column, weight, rows, columns, row_gain, column_gain):
    """Add R · columns and Rᵀ · rows to the gains, where R = W / (rows · columnsᵀ)."""
    n_clusters = rows.shape[1]
    for i in range(rows.shape[0]):
        row, gain = rows[i], row_gain[i]
        for p in range(start[i], start[i + 1]):
            other, other_gain = columns[column[p]], column_gain[column[p]]
            explained = 1e-12
            for k in range(n_clusters):
                explained += row[k] * other[k]
            ratio = weight[p] / explained
            for k in range(n_clusters):
                gain[k] += ratio * other[k]
            for k in range(n_clusters):
                other_gain[k] += ratio * row[k]


@njit(cache=True, nogil=True)
def _sparse_likelihood(start, column, weight, rows, columns):
    """Σ w ln π over the non-zeros."""
    total = 0.0
    for i in range(rows.shape[0]):
        for p in range(start[i], start[i + 1]):
            explained = 1e-12
            for k in range(rows.shape[1]):
                explained += rows[i, k] * columns[column[p], k]
            total += weight[p] * np.log(explained)
    return total


@dataclass(frozen=True, eq=False)
class Path:
    """One meta-path, scaled so that its weights sum to the number of users."""

    weight: np.ndarray | sparse.csr_array
    """Users × objects; dense where a fifth or more is filled, because matrix products then win;
    objects × users where there are more objects, because the smaller side then stays in cache."""
    by_object: bool
    row_sum: np.ndarray
    n_objects: int
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
        row_sum = np.asarray(W.sum(axis=1)).ravel()
        n_users, n_objects = W.shape
        if W.nnz >= DENSE * n_users * n_objects:
            return cls(W.toarray(), False, row_sum, n_objects, values, repeats)
        by_object = n_objects > n_users
        W = sparse.csr_array(W.T) if by_object else W
        return cls(W, by_object, row_sum, n_objects, values, repeats)

    def profile(self, theta: np.ndarray) -> np.ndarray:
        """Objects × clusters: the objects of users, shared out by θ."""
        shared = self.weight @ theta if self.by_object else self.weight.T @ theta
        return _normalise_columns(shared + FLOOR)

    def gains(self, theta: np.ndarray, feature: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """R B and Rᵀ θ with R = W / (θ Bᵀ) on the non-zeros of W."""
        W = self.weight
        if isinstance(W, np.ndarray):
            ratio = theta @ feature.T
            ratio += FLOOR
            np.divide(W, ratio, out=ratio)
            return ratio @ feature, ratio.T @ theta
        theta_gain, feature_gain = np.zeros_like(theta), np.zeros_like(feature)
        sides = [(theta, theta_gain), (feature, feature_gain)]
        (rows, row_gain), (columns, column_gain) = sides[:: -1 if self.by_object else 1]
        _sparse_gains(W.indptr, W.indices, W.data, rows, columns, row_gain, column_gain)
        return theta_gain, feature_gain

    def likelihood(self, theta: np.ndarray, feature: np.ndarray) -> float:
        """Σ w ln π over the path's non-zeros."""
        W = self.weight
        if isinstance(W, np.ndarray):
            return float((W * np.log(theta @ feature.T + FLOOR)).sum())
        rows, columns = (feature, theta) if self.by_object else (theta, feature)
        return _sparse_likelihood(W.indptr, W.indices, W.data, rows, columns)

    def objective(self, quality: float, likelihood: float) -> float:
        """The path's part of J, given Σ w ln π."""
        spread = gammaln(quality * self.row_sum + self.n_objects).sum()
        spread -= self.repeats @ gammaln(quality * self.values + 1)
        return float(spread + quality * likelihood)

    def refit_quality(self, quality: float, likelihood: float) -> float:
        """Fixed point of dJ/dα = 0, given Σ w ln π."""
        for _ in range(200):
            pull = digamma(quality * self.row_sum + self.n_objects) @ self.row_sum
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
    start : ndarray of shape (n_users, n_clusters), optional
        A first θ, rows summing to 1: one run from there instead of the random ones.
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

    if start is not None:
        feature = {name: path.profile(start) for name, path in prepared.items()}
        warm = Clustering(start, feature, dict.fromkeys(prepared, 1.0), -np.inf)
        return run((np.random.default_rng(seed), warm))
    streams = np.random.default_rng(seed).spawn(restarts)
    with ThreadPoolExecutor(threads) as pool:
        short = list(pool.map(run, [(stream, None) for stream in streams]))
        best = sorted(range(restarts), key=lambda r: -short[r].objective)[:finished]
        full = list(pool.map(run, [(streams[r], short[r]) for r in best]))
    full.sort(key=lambda one: -one.objective)
    top = full[0]
    return Clustering(
        top.theta, top.features, top.quality, top.objective, tuple(one.theta for one in full)
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
    feature = path.profile(theta)
    likelihood = path.likelihood(theta, feature)
    for _ in range(10):
        for _ in range(5):
            feature = _normalise_columns(feature * path.gains(theta, feature)[1])
        before, likelihood = likelihood, path.likelihood(theta, feature)
        if likelihood - before < 1e-6 * abs(likelihood):
            break
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
        outer, rounds = 5, 60
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
    for _ in range(rounds):
        theta_gain, updated = np.zeros_like(theta), {}
        for name, path in paths.items():
            own, gain = path.gains(theta, feature[name])
            theta_gain += quality[name] * own
            updated[name] = _normalise_columns(feature[name] * gain)
        # A user without links or guidance keeps equal shares: the prior.
        gained = theta * theta_gain + guidance + FLOOR
        new = gained / gained.sum(axis=1, keepdims=True)
        moved = np.abs(new - theta).sum(axis=1).mean()
        theta, feature = new, updated
        if moved < 1e-4:
            break
    return theta, feature, {m: path.likelihood(theta, feature[m]) for m, path in paths.items()}


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
    return theta, {name: path.profile(theta) for name, path in paths.items()}


def _normalise_columns(matrix: np.ndarray) -> np.ndarray:
    return matrix / np.maximum(matrix.sum(axis=0), FLOOR)
