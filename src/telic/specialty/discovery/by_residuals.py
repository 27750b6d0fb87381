"""Group users by what they see beyond chance, with chance measured by shuffling this very log.

1. A unit is what a user saw of one patient (`telic.specialty.discovery.user_patient_units`).
2. Users × diagnoses become Pearson residuals against the hospital's mix.
3. Dealing the units to users at random, again and again, gives the residuals of a hospital without
   practices. Every singular value above all of theirs is a dimension that chance does not have.
   Practices are deviations from a common mean, so r dimensions are of r + 1 practices.
4. Users who stand out from shuffled users are clustered by their direction in these dimensions.
   `SPARE` more practices are looked for: one too weak for a dimension of its own would share a
   cluster with a neighbour.
5. Practices are refined, joined where one was cut in two, and dropped if they do not show on
   patients that did not make them (`telic.specialty.discovery.practice_mixture`).
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from sklearn.cluster import KMeans

from telic.specialty.discovery.practice_mixture import (
    ONE_THREAD,
    Practices,
    held_up,
    merge,
    refine,
    shares,
)
from telic.specialty.discovery.result import Grouping
from telic.specialty.discovery.user_patient_units import Units, units_of
from telic.specialty.log.access_log import AccessLog

SHUFFLES = 19
"""Times that units are dealt at random: exceeding all by chance has probability 1/20."""
STANDS_OUT = 0.99
"""Quantile of shuffled users' distances from the mix that a user must exceed to be clustered."""
SPARE = 1
"""Practices looked for beyond those that the dimensions are of."""
STARTS = 10
"""Starts of k-means."""
MOST_DIMENSIONS = 100
"""More are not looked for."""


@dataclass(frozen=True, eq=False)
class Signal:
    """What a log has beyond chance."""

    place: np.ndarray
    """Users × dimensions: residuals along each dimension that chance does not have."""
    standing_out: np.ndarray
    """Users who stand out from shuffled users."""

    @property
    def n_dimensions(self) -> int:
        """Dimensions that chance does not have."""
        return self.place.shape[1]

    @property
    def n_practices(self) -> int:
        """How many practices they are of."""
        return self.n_dimensions + 1 if self.n_dimensions else 0


def pearson_residuals(counts: np.ndarray) -> np.ndarray:
    """Return (counts − expected) / √expected, at most √n_users in size.

    Expected is the user's number of diagnoses in the hospital's mix. The bound keeps a rare
    diagnosis of one user from being a dimension.

    Examples
    --------
    >>> pearson_residuals(np.array([[4.0, 0.0], [0.0, 4.0]])).round(2)
    array([[ 1.41, -1.41],
           [-1.41,  1.41]])
    """
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / max(counts.sum(), 1.0)
    residual = counts - expected  # 0 where 0 is expected
    np.divide(residual, np.sqrt(expected, out=expected), out=residual, where=expected > 0)
    bound = np.sqrt(len(counts))
    return residual.clip(-bound, bound, out=residual)


@ONE_THREAD
def signal(units: Units, rng: np.random.Generator) -> Signal:
    """Measure which dimensions, and which users, stand out from shuffled ones."""
    n_users, n_codes = units.n_users, units.codes.shape[1]
    nothing = Signal(np.zeros((n_users, 0)), np.zeros(n_users, dtype=bool))
    if not n_codes:
        return nothing
    residual = pearson_residuals(units.counts().toarray())
    squares, axes = np.linalg.eigh(residual.T @ residual)
    size, axes = np.sqrt(squares[::-1].clip(0)), axes[:, ::-1][:, :MOST_DIMENSIONS]
    largest, distances = 0.0, []
    for _ in range(SHUFFLES):
        chance = pearson_residuals(units.dealt(rng).counts().toarray())
        last = [n_codes - 1, n_codes - 1]
        largest = max(largest, eigh(chance.T @ chance, eigvals_only=True, subset_by_index=last)[0])
        if size[0] <= np.sqrt(largest):  # no dimension is left, whatever else chance may do
            return nothing
        distances.append(((chance @ axes) ** 2).cumsum(axis=1))
    n = min(int((size > np.sqrt(largest)).sum()), axes.shape[1])
    place = residual @ axes[:, :n]
    usual = np.quantile(np.concatenate([one[:, n - 1] for one in distances]), STANDS_OUT)
    return Signal(place, (place**2).sum(axis=1) > usual)


def directions(found: Signal, n_clusters: int, seed: int) -> np.ndarray:
    """Cluster the users who stand out by their direction (−1: others): k-means on the sphere."""
    cluster = np.full(len(found.place), -1)
    place = found.place[found.standing_out]
    direction = place / np.linalg.norm(place, axis=1, keepdims=True)
    distinct = len(np.unique(direction.round(6), axis=0))  # along one dimension there are two
    model = KMeans(min(n_clusters, distinct), n_init=STARTS, random_state=seed)
    cluster[found.standing_out] = model.fit_predict(direction)
    return cluster


@ONE_THREAD
def group_by_residuals(
    log: AccessLog, *, restarts: int, seed: int, threads: int, progress: Callable[[str], None]
) -> Grouping:
    """Cluster users by practices beyond chance; the options are those of `discover`.

    Users without accesses are left out: chance gives them nothing either, so that whoever has some
    would stand out.

    Other sizes, for the stability, are one cluster fewer and one more. Runs share the threads.
    """
    units, active = units_of(log).of_active()
    found = signal(units, np.random.default_rng(seed))
    n = found.n_practices + SPARE if found.n_practices else 0
    progress("number of practices")
    details = {
        "dimensions": found.n_dimensions,
        "n_practices": found.n_practices,
        "looked_for": n,
    }
    if not found.standing_out.any():
        nobody = np.full(len(log.users), -1)
        return Grouping(nobody, 0, [], [], by_month=lambda rows: np.zeros((0, 0)), details=details)

    @ONE_THREAD  # again: OpenMP's limit is one of the thread that sets it
    def run(n_clusters: int, seed: int) -> tuple[np.ndarray, np.ndarray, Practices]:
        start = directions(found, n_clusters, seed)
        practices = merge(units, refine(units, start, n_clusters))
        shown = held_up(units, practices, np.random.default_rng(seed))
        progress(f"{n_clusters} practices")
        member = np.full(len(log.users), -1)
        member[active] = practices.member
        return np.where((member >= 0) & shown[member], member, -1), member, practices

    sizes = [k for k in (n - 1, n + 1) if k > 0] if restarts > 1 else []
    starts = [(n, seed + restart) for restart in range(restarts)] + [(k, seed) for k in sizes]
    with ThreadPoolExecutor(threads) as pool:
        (cluster, member, practices), *others = pool.map(run, *zip(*starts, strict=True))

    code = units.code  # without the units, which this would keep

    def by_month(rows: np.ndarray) -> np.ndarray:
        return shares(log.user_diagnosis(rows)[:, code], practices.profile)[:, :-1]

    return Grouping(
        cluster,
        len(practices.profile) - 1,
        restarts=[one for one, *_ in others[: restarts - 1]],
        sizes=[one for one, *_ in others[restarts - 1 :]],
        by_month=by_month,
        details=details,
        in_view=active,
        before_checks=member,
    )
