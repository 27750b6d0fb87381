"""How well an attack did: right, wrong and empty answers apart, with intervals."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.errors import InputError, expect_whole
from telic.evaluate.checked_numbers import checked_level
from telic.hin import Network
from telic.hin.links import int64_ids
from telic.privacy.attacks.dehin import Attack


@dataclass(frozen=True, slots=True)
class Score:
    """An attack at one distance (Section 7.6.1); shares are of *all* targets, in [0, 1].

    Parameters
    ----------
    distance : int
    targets : int
    unique_right : float
        Precision of [Zhang2017]: one candidate, and it is the right one.
    unique_wrong : float
    empty : float
        No candidate at all; under pure growth this cannot happen to a user who is there.
    right_of_unique : float
        Share of the unique answers that are right; NaN if there is none.
    truth_kept : float
        The right user is among the candidates.
    reduction_rate : float
        Mean of one minus the candidates' share of the auxiliary users.
    mean_candidates, median_candidates : float
    """

    distance: int
    targets: int
    unique_right: float
    unique_wrong: float
    empty: float
    right_of_unique: float
    truth_kept: float
    reduction_rate: float
    mean_candidates: float
    median_candidates: float

    @property
    def precision(self) -> float:
        """Unique and right, of all targets."""
        return self.unique_right


def same_ids(auxiliary: Network, target: Network, node_type: str) -> np.ndarray:
    """Return each target's auxiliary position if ids are kept; −1 if the id is not there.

    Raises
    ------
    InputError
        If one of the networks has no such nodes.
    """
    for network in (auxiliary, target):
        if node_type not in network.nodes:
            raise InputError(
                f"node type {node_type!r} is in one of the two networks only: the other has "
                f"{list(network.nodes)}."
            )
    known, wanted = auxiliary.ids(node_type), target.ids(node_type)
    if pa.types.is_integer(known.type) != pa.types.is_integer(wanted.type):
        return np.full(len(wanted), -1)
    return _places(known, wanted)


def read_truth(table: pa.Table, auxiliary: Network, target: Network, node_type: str) -> np.ndarray:
    """Return each target's auxiliary position from a table with columns `target`, `auxiliary`.

    Raises
    ------
    InputError
        If a column is missing, a named user is not in its network, or a target is named twice.
    """
    for column in ("target", "auxiliary"):
        if column not in table.column_names:
            raise InputError(f"truth: column {column!r} is missing. Columns: {table.column_names}.")
    truth = np.full(target.size(node_type), -1)
    places = {}
    for column, network in (("target", target), ("auxiliary", auxiliary)):
        ids = network.ids(node_type)
        values = table.column(column)
        if pa.types.is_integer(values.type) != pa.types.is_integer(ids.type):
            raise InputError(f"truth: column {column!r} is {values.type}, the ids {ids.type}.")
        place = _places(ids, values)
        if (place < 0).any():
            row = int((place < 0).argmax())
            raise InputError(
                f"truth: row {row + 1}: {values[row].as_py()!r} is not in the {column} network."
            )
        places[column] = place
    named, first = np.unique(places["target"], return_index=True)
    if len(named) < len(places["target"]):
        row = int(np.setdiff1d(np.arange(len(places["target"])), first)[0])
        raise InputError(
            f"truth: row {row + 1}: target {table.column('target')[row].as_py()!r} is named twice. "
            "Keep the right one of the two rows."
        )
    truth[places["target"]] = places["auxiliary"]
    return truth


def _places(known: pa.Array, wanted: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Return where each id stands among the known ones, of the same kind; −1 if it is not there."""
    if pa.types.is_integer(known.type):
        known, wanted = int64_ids(known, "ids"), int64_ids(wanted, "ids")
    place = pc.index_in(wanted.cast(known.type), value_set=known)
    return pc.fill_null(place, -1).to_numpy().astype(np.int64)


def scores(result: Attack, auxiliary_size: int, truth: np.ndarray) -> list[Score]:
    """Score an attack at every distance.

    Parameters
    ----------
    result : Attack
    auxiliary_size : int
        Number of auxiliary users.
    truth : int array, shape (n_targets,)
        Auxiliary position of every target; −1 if it is not there (it can then never be right).
    """
    if len(truth) != result.sizes.shape[1] or not len(truth):
        raise InputError(f"truth names {len(truth)} users, the attack {result.sizes.shape[1]}.")
    return [_score(result, n, auxiliary_size, truth) for n in range(len(result.sizes))]


def right(result: Attack, truth: np.ndarray, distance: int) -> np.ndarray:
    """Say for each target whether it was found: one candidate, and the right one."""
    return (result.sizes[distance] == 1) & result.contains(truth, distance)


def _score(result: Attack, distance: int, auxiliary_size: int, truth: np.ndarray) -> Score:
    sizes = result.sizes[distance]
    kept = result.contains(truth, distance)
    unique = sizes == 1
    n_right = int((unique & kept).sum())
    return Score(
        distance=distance,
        targets=len(sizes),
        unique_right=n_right / len(sizes),
        unique_wrong=float((unique & ~kept).mean()),
        empty=float((sizes == 0).mean()),
        right_of_unique=n_right / int(unique.sum()) if unique.any() else float("nan"),
        truth_kept=float(kept.mean()),
        reduction_rate=float(np.mean(1 - sizes / max(auxiliary_size, 1))),
        mean_candidates=float(sizes.mean()),
        median_candidates=float(np.median(sizes)),
    )


def bootstrap_interval(
    values: np.ndarray, *, level: float = 0.95, draws: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of a mean; the unit that is drawn is one entry of `values`.

    Give one value per sampled network. Of users who are found or not, take
    `telic.evaluate.wilson_interval`: where all values are equal, this interval is a point. Of fewer
    than about ten networks it covers less than `level`: it ends at the largest value, at most.

    Parameters
    ----------
    values : array of shape (n,)
        Finite numbers, at least one.
    level : float in (0, 1)
    draws : int
        At least 1.
    seed : int

    Examples
    --------
    >>> import numpy as np
    >>> low, high = bootstrap_interval(np.array([0.2, 0.4, 0.6]))
    >>> round(low, 3), round(high, 3)
    (0.2, 0.6)
    """
    checked_level(level)
    expect_whole(1, draws=draws)
    values = np.asarray(values, float)
    if not len(values):
        raise InputError("no values to draw from: give at least one.")
    if not np.isfinite(values).all():
        raise InputError("values: some are NaN or infinite. Leave those out, or mend them.")
    rng = np.random.default_rng(seed)
    means = [values[rng.integers(len(values), size=len(values))].mean() for _ in range(draws)]
    tail = (1 - level) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)
