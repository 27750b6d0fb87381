"""Where PathSelClus starts: seeded clusters at their seeds, free ones where users are missed.

Free clusters are placed as greedy k-means++ places centres: one after the other at a candidate
user, drawn by what all users would gain by sharing that user's profile. From random starts small
specialties end up inside larger clusters, at a lower objective.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy import sparse

from telic.kernels import kernel
from telic.specialty.discovery.pathselclus_path_quality import FLOOR, Path

CANDIDATES = 300
"""Users at whom a free cluster may start."""
DRAWS = 3
"""Candidates drawn for each free cluster, of which the best is taken."""
SMOOTHING = 0.1
"""Share of everybody's profile in that of a code's seeds, who may be few."""


class Start(NamedTuple):
    """A first θ, B and α; names and shapes are those of `Clustering`."""

    theta: np.ndarray
    features: dict[str, np.ndarray]
    quality: dict[str, float]


def starts(
    paths: Mapping[str, Path], guidance: np.ndarray, number: int, rng: np.random.Generator
) -> list[Start]:
    """Draw starts; they share the candidates and differ in which of them become clusters."""
    n, n_clusters = guidance.shape
    is_seed = guidance.any(axis=1)
    seeded = np.flatnonzero(guidance.any(axis=0))
    free = np.setdiff1d(np.arange(n_clusters), seeded)
    everyone = np.ones((n, 1))
    overall = {m: path.profile(everyone) for m, path in paths.items()}
    # Without a seed everybody's profile stands in for the seeded clusters.
    corner = np.sign(guidance[:, seeded]) if len(seeded) else everyone
    feature = {
        m: (1 - SMOOTHING) * path.profile(corner) + SMOOTHING * overall[m]
        for m, path in paths.items()
    }
    theta = _shares(paths, feature, corner)
    quality = {
        m: path.refit_quality(1.0, path.likelihood(theta, feature[m])) for m, path in paths.items()
    }
    missed = {m: _Missed(path, theta, feature[m], overall[m]) for m, path in paths.items()}
    deficit = np.sum([quality[m] * one.deficit() for m, one in missed.items()], axis=0)
    weight = np.where(is_seed, 0.0, np.maximum(deficit, 0.0)) + FLOOR
    candidates = rng.choice(n, min(CANDIDATES, n), replace=False, p=weight / weight.sum())
    gain = np.sum([quality[m] * one.gains(candidates) for m, one in missed.items()], axis=0)
    gain = np.maximum(gain, 0.0)

    def start() -> Start:
        chosen = _choose(gain, len(free), rng)
        first = np.full((n, n_clusters), 0.02)
        features = {m: np.empty((path.n_objects, n_clusters)) for m, path in paths.items()}
        if len(seeded):
            first[:, seeded] = theta
            for m in paths:
                features[m][:, seeded] = feature[m]
        for k, c in zip(free, chosen, strict=True):
            most = (gain[:, c] > 0) & (gain[:, c] == gain[:, chosen].max(axis=1))
            first[most, k] = 1.0
            for m, one in missed.items():
                features[m][:, k] = one.profile(candidates[c])
        first[is_seed] = 0.05 / n_clusters + 0.95 * (guidance[is_seed] > 0)
        return Start(first / first.sum(axis=1, keepdims=True), features, quality)

    return [start() for _ in range(number)]


def _shares(
    paths: Mapping[str, Path], feature: Mapping[str, np.ndarray], corner: np.ndarray
) -> np.ndarray:
    """θ by EM with the profiles held fixed and the seeds at their corner."""
    is_seed = corner.any(axis=1, keepdims=True)
    theta = np.where(is_seed, corner, 1 / corner.shape[1])
    for _ in range(10):
        gained = theta * np.sum([p.gains(theta, feature[m])[0] for m, p in paths.items()], axis=0)
        gained += FLOOR
        theta = np.where(is_seed, corner, gained / gained.sum(axis=1, keepdims=True))
    return theta


def _choose(gain: np.ndarray, number: int, rng: np.random.Generator) -> list[int]:
    """Candidates, each drawn by what users gain beyond the best of those before."""
    best, chosen = np.zeros(len(gain)), []
    for _ in range(number):
        more = np.maximum(gain - best[:, None], 0.0).sum(axis=0) + FLOOR
        drawn = rng.choice(len(more), DRAWS, p=more / more.sum())
        chosen.append(int(drawn[more[drawn].argmax()]))
        best = np.maximum(best, gain[:, chosen[-1]])
    return chosen


class _Missed:
    """What θ and B leave unexplained on one path."""

    def __init__(
        self, path: Path, theta: np.ndarray, feature: np.ndarray, overall: np.ndarray
    ) -> None:
        self.by_user = path.by_user()
        self.by_object = sparse.csr_array(self.by_user.T)
        self.overall = overall[:, 0]
        self.row_sum = path.row_sum
        W = self.by_object
        self.explained = _explained(W.indptr, W.indices, feature, theta)
        everybody = np.repeat(self.overall, np.diff(W.indptr))
        self.shared = W.data * np.log(0.5 + 0.25 * everybody / self.explained)
        """What each link gains by a profile without its object."""

    def deficit(self) -> np.ndarray:
        """Σ w ln(w / n_i) − Σ w ln π of each user: what a profile of one's own would gain."""
        W = self.by_object
        return self._of_users(W.data * np.log(W.data / self.row_sum[W.indices] / self.explained))

    def profile(self, user: int) -> np.ndarray:
        """Half the user's own, half everybody's: few links alone would explain nobody else's."""
        own = self.by_user[[user]].toarray()[0]
        return 0.5 * self.overall + 0.5 * own / max(own.sum(), FLOOR)

    def gains(self, users: np.ndarray) -> np.ndarray:
        """Users × `users`: change of Σ w ln π if half of one's share went to that profile."""
        W, gain = self.by_object, np.tile(self._of_users(self.shared), (len(users), 1))
        for row, user in zip(gain, users, strict=True):
            objects, profile = self.by_user[[user]].indices, self.profile(user)
            _add_own(
                W.indptr, W.indices, W.data, self.explained, self.shared, objects, profile, row
            )
        return gain.T

    def _of_users(self, links: np.ndarray) -> np.ndarray:
        W = self.by_object
        return np.bincount(W.indices, links, minlength=W.shape[1])


@kernel
def _explained(start, column, rows, columns):
    """π = rows · columnsᵀ at the non-zeros."""
    out = np.empty(len(column))
    for i in range(rows.shape[0]):
        for p in range(start[i], start[i + 1]):
            total = 1e-12
            for k in range(rows.shape[1]):
                total += rows[i, k] * columns[column[p], k]
            out[p] = total
    return out


@kernel
def _add_own(start, user, weight, explained, shared, objects, profile, gain):
    """Put w ln(½ + ½ profile / π) in place of `shared` at the links of some objects."""
    for j in objects:
        for p in range(start[j], start[j + 1]):
            mixed = weight[p] * np.log(0.5 + 0.5 * profile[j] / explained[p])
            gain[user[p]] += mixed - shared[p]
