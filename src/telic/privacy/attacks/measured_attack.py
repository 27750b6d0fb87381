"""One attack from networks to numbers: what an intruder finds, and how much of it is right."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from telic.data.object_storage import Place
from telic.errors import InputError
from telic.evaluate.wilson import wilson_interval
from telic.hin import Network
from telic.privacy.adversary import Adversary
from telic.privacy.attacks.auxiliary import Auxiliary
from telic.privacy.attacks.dehin import Attack, attack
from telic.privacy.attacks.link_errors import EXACT, LinkErrors
from telic.privacy.attacks.score import scores
from telic.scale import Executor


@dataclass(frozen=True)
class MeasuredAttack:
    """What `measured_attack` found."""

    result: Attack
    known: int
    """Users in the auxiliary network."""
    rows: list[dict[str, Any]]
    """For each distance: shares of targets with one candidate and with none, and with the truth
    also the precision with its 95 % interval, as JSON takes them."""


def measured_attack(
    auxiliary: Network,
    target: Network,
    *,
    adversary: Adversary,
    truth: np.ndarray | None = None,
    eliminate: bool = False,
    errors: LinkErrors = EXACT,
    executor: Executor | None = None,
    work: str | Place | None = None,
    skip_bad: bool = False,
    progress: Callable[[str], None] = lambda step: None,
) -> MeasuredAttack:
    """Attack a release, and measure the attack at each distance.

    Parameters
    ----------
    auxiliary, target : Network
        The network whose users are known, and the published one.
    adversary : Adversary
        What the intruder compares: `Adversary.of` the published network.
    truth : int array, shape (n_targets,), optional
        Auxiliary position of every target, −1 if it is not there; see `same_ids` and `read_truth`.
    eliminate, errors, executor, work, skip_bad
        As in `telic.privacy.attack`.
    progress : callable
        Told what is done next.

    Returns
    -------
    MeasuredAttack

    Raises
    ------
    InputError
        If nobody was published, or the truth names another number of users.

    Examples
    --------
    >>> from telic.hin import network_from_arrays, Schema
    >>> from telic.privacy import same_ids
    >>> schema = Schema.parse({"nodes": {"user": {"attributes": {"yob": "exact"}}}, "links": []})
    >>> network = network_from_arrays(schema, {"user": {"id": [1, 2, 3], "yob": [80, 80, 70]}}, {})
    >>> found = measured_attack(
    ...     network,
    ...     network,
    ...     adversary=Adversary.of(network),
    ...     truth=same_ids(network, network, "user"),
    ... )
    >>> round(found.rows[0]["precision"], 2)  # only one was born in 1970
    0.33
    """
    if not target.size(adversary.node_type):
        raise InputError(
            f"node type {adversary.node_type!r} of the target is empty: nobody to look for."
        )
    progress("sorting what is known")
    prepared = Auxiliary(auxiliary, adversary)
    progress("comparing")
    result = attack(
        prepared,
        target,
        eliminate=eliminate,
        errors=errors,
        executor=executor,
        work=work,
        skip_bad=skip_bad,
    )
    rows: list[dict[str, Any]] = [
        {
            "distance": distance,
            "targets": len(sizes),
            "unique": float((sizes == 1).mean()),
            "empty": float((sizes == 0).mean()),
            "reduction_rate": float((1 - sizes / max(prepared.size, 1)).mean()),
            "mean_candidates": float(sizes.mean()),
        }
        for distance, sizes in enumerate(result.sizes)
    ]
    if truth is not None:
        for row, score in zip(rows, scores(result, prepared.size, truth), strict=True):
            low, high = wilson_interval(score.precision, score.targets)
            row |= {
                "precision": score.precision,
                "precision_low": low,
                "precision_high": high,
                "unique_right": score.unique_right,
                "unique_wrong": score.unique_wrong,
                "truth_kept": score.truth_kept,
            }
            if score.right_of_unique >= 0:
                row["right_of_unique"] = score.right_of_unique
    return MeasuredAttack(result, prepared.size, rows)
