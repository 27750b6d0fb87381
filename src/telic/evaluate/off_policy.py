"""What a policy would have earned, from logs of another that says how likely each choice was.

Inverse propensity scoring: Horvitz and Thompson (JASA 47, 1952); its self-normalised form:
Swaminathan and Joachims (NeurIPS 2015); doubly robust: Dudík, Langford and Li (ICML 2011).
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy  # its parts load when they are used: they take seconds

from telic.errors import InputError
from telic.evaluate.checked_numbers import checked_level
from telic.evaluate.wilson import wilson_interval


@dataclass(frozen=True)
class Value:
    """The estimated mean reward of a policy."""

    value: float
    low: float
    high: float
    """Ends of the confidence interval, with groups (users) as the unit; NaN for fewer than two."""
    effective: float
    """Choices that would tell as much if they were all the policy's own: (Σw)² / Σw²."""
    pull: np.ndarray
    """How far each group, in order of its label, moves the value."""
    groups: int
    """Groups that tell of the value; of `snips` those alone whose choices the policy might make."""

    def less(self, other: "Value", *, level: float = 0.95) -> "Value":
        """Return the difference from another estimate; InputError unless on the same choices."""
        if len(self.pull) != len(other.pull):
            raise InputError(
                f"estimates on the choices of {len(self.pull)} and {len(other.pull)} groups, "
                "expected the same."
            )
        effective, groups = min(self.effective, other.effective), min(self.groups, other.groups)
        pull = self.pull - other.pull
        return _with_interval(self.value - other.value, pull, effective, groups, level)


def ips(
    reward: np.ndarray,
    propensity: np.ndarray,
    target: np.ndarray,
    group: np.ndarray,
    *,
    level: float = 0.95,
) -> Value:
    """Estimate the mean reward of a target policy by inverse propensity scoring.

    The mean of ``w r`` with ``w = target / propensity``: unbiased if the propensities are right and
    positive wherever the target is.

    Parameters
    ----------
    reward : float array of shape (n,)
        What each choice earned.
    propensity : float array of shape (n,)
        Probability, in (0, 1], with which the policy that was logged made this choice.
    target : float array of shape (n,)
        Probability, in [0, 1], with which the target policy would have made it.
    group : array of shape (n,)
        Whose each choice is: those of one user are not independent.
    level : float in (0, 1)
        Coverage of the interval.

    Raises
    ------
    InputError
        If there are no choices, or a number is out of its range.

    Examples
    --------
    Two arms were drawn evenly; what would always the second earn?

    >>> arm, reward = np.array([0, 1, 0, 1]), np.array([0.0, 1.0, 1.0, 1.0])
    >>> ips(reward, np.full(4, 0.5), arm == 1, np.arange(4)).value
    1.0
    """
    reward, weight, codes = _weights(reward, propensity, target, group)
    weighted = weight * reward
    value = float(weighted.mean())
    pull = np.bincount(codes, weighted - value) / len(reward)
    return _with_interval(value, pull, _effective(weight), len(pull), level)


def snips(
    reward: np.ndarray,
    propensity: np.ndarray,
    target: np.ndarray,
    group: np.ndarray,
    *,
    level: float = 0.95,
) -> Value:
    """Estimate as `ips`, with the weights made to have mean one: biased a little, varies less.

    ``Σ w r / Σ w``; takes and raises what `ips` does, and raises InputError if the target policy
    would have made none of the choices. Where all rewards that it counts are alike, the interval
    has no width: their spread does not say how far users differ (`wilson_interval` does, of rewards
    from 0 to 1).

    Examples
    --------
    >>> arm, reward = np.array([0, 1, 0, 1, 1]), np.array([0.0, 1.0, 1.0, 1.0, 0.5])
    >>> round(snips(reward, np.full(5, 0.5), arm == 1, np.arange(5)).value, 3)
    0.833
    """
    reward, weight, codes = _weights(reward, propensity, target, group)
    if not weight.any():
        raise InputError("the target policy would have made none of the choices that were logged.")
    value = float(np.average(reward, weights=weight))
    pull = np.bincount(codes, weight * (reward - value)) / weight.sum()
    # A group without weight moves nothing, and so says nothing of how far groups differ.
    groups = len(np.unique(codes[weight > 0]))
    return _with_interval(value, pull, _effective(weight), groups, level)


def doubly_robust(
    reward: np.ndarray,
    propensity: np.ndarray,
    target: np.ndarray,
    group: np.ndarray,
    *,
    expected: np.ndarray,
    expected_of_target: np.ndarray,
    level: float = 0.95,
) -> Value:
    """Estimate as `ips`, with a model that foretells a part of the rewards.

    The mean of ``q' + w (r - q)``: unbiased if the propensities are right, whatever the model, or
    if the model is right, whatever the propensities; it varies less than `ips` as far as the model
    foretells rewards. The model must not have been fitted on these choices.

    Parameters
    ----------
    reward, propensity, target, group, level
        As of `ips`.
    expected : float array of shape (n,)
        q: what the model says that this choice earns.
    expected_of_target : float array of shape (n,)
        q': what it says that the target policy's choice would earn there, in the mean over what
        that policy draws.

    Raises
    ------
    InputError
        As `ips`; also if what is expected is no finite number.

    Examples
    --------
    A model that is right leaves nothing to chance:

    >>> arm, reward = np.array([0, 0, 1]), np.array([0.0, 0.0, 1.0])
    >>> always = {"expected": reward, "expected_of_target": np.ones(3)}
    >>> doubly_robust(reward, np.full(3, 0.5), arm == 1, np.arange(3), **always).value
    1.0
    """
    reward, weight, codes = _weights(reward, propensity, target, group)
    modelled = [np.asarray(column) for column in (expected, expected_of_target)]
    if any(
        column.shape != weight.shape
        or column.dtype.kind not in "biuf"
        or not np.isfinite(column).all()
        for column in modelled
    ):
        raise InputError("what a model expects must be one finite number for each choice.")
    each = modelled[1] + weight * (reward - modelled[0])
    value = float(each.mean())
    pull = np.bincount(codes, each - value) / len(each)
    return _with_interval(value, pull, _effective(weight), len(pull), level)


def mean_weight(
    propensity: np.ndarray, target: np.ndarray, group: np.ndarray, *, level: float = 0.95
) -> Value:
    """Return the mean of ``target / propensity``, which is one if the propensities are right.

    The control of a log: an interval without 1 says that choices were not made with the
    probabilities that stand there, and then no estimate from them means anything.

    It is a mean of groups' means. Who is drawn once and chooses a thousand times tells of one draw,
    and may choose more often because of it. The interval is Wilson's for a share of the largest
    weight, of as many items as vary like these groups: a few that were drawn against the odds would
    have too small a spread.
    """
    _, weight, codes = _weights(np.ones(len(propensity)), propensity, target, group)
    each = np.bincount(codes, weight) / np.bincount(codes)
    value, groups, most = float(each.mean()), len(each), float(weight.max())
    found = _with_interval(value, (each - value) / groups, _effective(weight), groups, level)
    if groups < 2 or not most or not np.isfinite(found.high):
        return found
    # As many items of a share have a half width like that of `found`.
    z, half = scipy.stats.norm.ppf(0.5 + level / 2), found.high - value
    share = min(value / most, 1.0)
    items = share * (1.0 - share) * (z * most / half) ** 2 if half else np.inf
    items = float(np.clip(items, 1, len(weight)))
    low, high = wilson_interval(share, items, level=level)
    return replace(found, low=low * most, high=high * most)


def _weights(
    reward: np.ndarray, propensity: np.ndarray, target: np.ndarray, group: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rewards, their weights and the number of each one's group, all checked."""
    try:
        columns = [np.asarray(column, float) for column in (reward, propensity, target)]
        _, codes = np.unique(group, return_inverse=True)
        flat = {np.ndim(column) for column in (*columns, group)} == {1}
        flat &= not any(map(np.ma.is_masked, (reward, propensity, target, group)))
    except (TypeError, ValueError):
        flat = False
    if not flat:
        raise InputError(
            "reward, propensity and target must be columns of numbers, and group one of numbers or "
            "of texts, and nothing in them masked."
        )
    reward, propensity, target = columns
    if not len(reward):
        raise InputError("no choice was logged, so there is nothing to estimate from.")
    if len({len(reward), len(propensity), len(target), len(group)}) > 1:
        raise InputError(
            "reward, propensity, target and group differ in length: one for each choice."
        )
    if not np.isfinite(reward).all():
        raise InputError("a reward is no finite number.")
    if not ((propensity > 0) & (propensity <= 1)).all():
        raise InputError("a propensity is not in (0, 1]: choices that were made had a probability.")
    if not ((target >= 0) & (target <= 1)).all():
        raise InputError("a target probability is not in [0, 1].")
    return reward, target / propensity, codes


def _effective(weight: np.ndarray) -> float:
    return float(weight.sum() ** 2 / (weight**2).sum()) if weight.any() else 0.0


def _with_interval(
    value: float, pull: np.ndarray, effective: float, groups: int, level: float
) -> Value:
    """Add the interval: pulls of groups are independent and sum to about zero."""
    checked_level(level)
    if groups < 2:
        return Value(value, np.nan, np.nan, effective, pull, groups)
    error = np.sqrt(groups / (groups - 1) * (pull**2).sum())
    half = float(scipy.stats.t.ppf(0.5 + level / 2, groups - 1) * error)
    return Value(value, value - half, value + half, effective, pull, groups)
