"""Do no harm: feedback re-ranks only where validation shows that it helps, and while it does.

The gate is fitted once. Users change and online weights move on, so each user has a running check.
"""

import heapq
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from telic.evaluate import paired_t_test

PREFIX_BINS = ((1, 3), (4, 6), (7, 9), (10, 12), (13, 10_000))
"""The ranges of prefix length of Table 2.5, in characters."""
BIN_NAMES = (*(f"{first}–{last}" for first, last in PREFIX_BINS[:-1]), f"{PREFIX_BINS[-1][0]}+")
LEVEL = 0.05
"""Family-wise level of the gate: the chance to open for any range of prefix length in which
feedback does not help, whatever it does in the others."""

_ENDS = [last for _, last in PREFIX_BINS[:-1]]

FORGETTING = 0.98
"""What the running check keeps of its evidence at each submission: it looks back about 50."""
MARGIN = 0.1
"""The running check closes while the sum of recent gains lies this far below zero."""
BUDGET = 1.5
"""The running check closes while this much was lost beyond the allowance, in reciprocal rank."""
ALLOWANCE = 0.002
"""What may be lost for each submission without being counted against `BUDGET`."""


def bin_of(prefix_length: np.ndarray) -> np.ndarray:
    """Return the position in `PREFIX_BINS` of each prefix length (0 counts as 1)."""
    return np.searchsorted(_ENDS, prefix_length)


@dataclass(frozen=True)
class Gate:
    """Where a fitted model may change the static order.

    Parameters
    ----------
    anywhere : bool
        False: nowhere.
    bins : bool array of shape (5,)
        By range of prefix length.
    users : bool array of shape (g,)
        By user; users without validation data follow the average.
    p_values : float array of shape (5,), optional
        By range of prefix length, adjusted for testing several; NaN where nothing was tested.
    """

    anywhere: bool
    bins: np.ndarray
    users: np.ndarray
    p_values: np.ndarray = field(
        default_factory=lambda: np.full(len(PREFIX_BINS), np.nan), compare=False
    )

    @classmethod
    def always(cls, users: int) -> "Gate":
        """Return the gate that is open everywhere."""
        return cls(True, np.ones(len(PREFIX_BINS), bool), np.ones(users, bool))

    @classmethod
    def fitted(
        cls, gain: np.ndarray, user: np.ndarray, prefix_length: np.ndarray, users: int
    ) -> "Gate":
        """Decide from the gains in reciprocal rank at the keystrokes of the validation part.

        It opens for a range of prefix length if the mean gain over users is above zero there, by
        one-sided tests with Holm's correction (Scandinavian Journal of Statistics 6, 1979), which
        keeps the chance to open for any range without a gain at `LEVEL`; for a user if the user's
        mean gain, shrunk towards the mean of all by the ratio of the spread between users to its
        noise (empirical Bayes), is above zero; and at all if it opens for any range.

        Parameters
        ----------
        gain : float array of shape (T,)
            Reciprocal rank of the model minus that of the static order.
        user, prefix_length : int arrays of shape (T,)
        users : int
            Number of users.
        """
        own_bin = bin_of(prefix_length).astype(np.int8)  # of a long log, these are many
        parts = (own_bin == b for b in range(len(PREFIX_BINS)))
        single = [p_of_gain(gain[rows], user[rows]) for rows in parts]
        p_values = _holm(np.array(single))
        bins = p_values <= LEVEL
        open_bins = bins[own_bin]
        mean, noise, count = _by_user(gain, user, open_bins, users)
        seen = count > 0
        center = mean[seen].mean() if seen.any() else 0.0
        # Spread between users beyond what noise explains.
        spread = max(mean[seen].var() - noise[seen].mean(), 0.0) if seen.sum() > 1 else 0.0
        trust = np.divide(spread, spread + noise, out=np.zeros(users), where=spread + noise > 0)
        shrunk = np.where(seen, trust * mean + (1 - trust) * center, center)
        return cls(bool(bins.any()), bins, shrunk > 0, p_values)

    def open(self, user: np.ndarray, prefix_length: np.ndarray) -> np.ndarray:
        """Return, for each keystroke, whether the model may re-rank."""
        return self.anywhere & self.users[user] & self.bins[bin_of(prefix_length)]

    def open_at(self, prefix_length: int) -> bool:
        """Return whether the model may re-rank one prefix, whoever types it."""
        return bool(self.anywhere and self.bins[bisect_left(_ENDS, prefix_length)])

    def summary(self) -> str:
        """Say in a few words where the static order is kept."""
        if not self.anywhere or not self.bins.any() or (len(self.users) and not self.users.any()):
            return "static order kept everywhere: validation shows no gain"
        closed = [name for name, is_open in zip(BIN_NAMES, self.bins, strict=True) if not is_open]
        parts = []
        if closed:
            parts.append(f"prefixes of {', '.join(closed)} characters")
        if not self.users.all():
            parts.append(f"{(~self.users).sum()} of {len(self.users)} users")
        return "static order kept for " + " and ".join(parts) if parts else "re-ranks everywhere"


def gate_facts(gate: Gate) -> dict[str, Any]:
    """Return what JSON says of a gate: its level and, by range, whether it opens and the p-value.

    The p-values are one-sided and adjusted for testing several ranges; None where nothing was
    tested.
    """
    return {
        "family_wise_level": LEVEL,
        "procedure": "Holm, one-sided paired t-tests over users",
        "ranges": [
            {
                "characters": name,
                "reranks": bool(gate.anywhere and is_open),
                "p_value": None if np.isnan(p) else float(p),
            }
            for name, is_open, p in zip(BIN_NAMES, gate.bins, gate.p_values, strict=True)
        ],
    }


@dataclass
class RunningCheck:
    """Whether re-ranking still does one user no harm, by what it was worth lately.

    Two numbers, brought up to date at each submission. `recent` sums the gains of the model's order
    over the static one with exponential forgetting, whether it was shown or not: the check closes
    while that is below ``-MARGIN`` and opens again when the model's order, unseen, has done better
    for a while. `drawdown` is the largest loss of any stretch of submissions that ends now, from
    what was shown alone and less `ALLOWANCE` a submission: the check also closes while that is
    `BUDGET` or more, and opens again as the allowance pays it off.

    **A bound for every sequence of submissions**, whatever the user does and whatever the weights
    become: over any n submissions in a row, typed one after another, the served order loses to the
    static one at most ``BUDGET + 1 + ALLOWANCE * n`` in total (a composition's loss is the mean
    over its keystrokes of the difference in reciprocal rank). For a loss adds to `drawdown` what it
    exceeds the allowance by, a new one is risked only below `BUDGET`, and one loses at most 1.

    Examples
    --------
    >>> check = RunningCheck()
    >>> check.observe(-0.5, -0.5)
    >>> check.open
    False
    >>> for _ in range(100):
    ...     check.observe(0.0, 0.0)
    >>> check.open
    True
    """

    recent: float = 0.0
    drawdown: float = 0.0

    @property
    def open(self) -> bool:
        """Whether the model may re-rank in the next composition."""
        return self.recent >= -MARGIN and self.drawdown < BUDGET

    def observe(self, gain: float, served: float) -> None:
        """Take in one composition.

        Parameters
        ----------
        gain : float in [-1, 1]
            Mean over its keystrokes of the submitted query's reciprocal rank in the order that the
            gate would have let the model show, minus that in the static order.
        served : float in [-1, 1]
            The same for the order that was shown.
        """
        self.recent = FORGETTING * self.recent + gain
        self.drawdown = max(0.0, self.drawdown - served - ALLOWANCE)


def run_checks(
    gain: np.ndarray,
    composition: np.ndarray,
    user: np.ndarray,
    *,
    begun: np.ndarray,
    submitted: np.ndarray,
) -> tuple[np.ndarray, dict[int, RunningCheck]]:
    """Walk every user's running check through a log.

    It knows of a composition once that is submitted: of several that are open at once, the later
    do not know of the earlier.

    Parameters
    ----------
    gain : float array of shape (T,)
        At each keystroke, reciprocal rank of the gated model minus that of the static order.
    composition, user : int arrays of shape (T,)
        Of each keystroke; in order of user, then of when the composition began.
    begun, submitted : int arrays
        When each composition of the log was, by its number.

    Returns
    -------
    is_open : bool array of shape (T,)
        Whether the check, as it was before each composition, lets the model re-rank.
    checks : dict of int to RunningCheck
        Of each user, after the last composition.
    """
    begin = np.flatnonzero(np.diff(composition, prepend=-1))
    length = np.diff(begin, append=len(composition))
    mean = np.add.reduceat(gain, begin) / length if len(begin) else np.empty(0)
    is_open = np.empty(len(begin), bool)
    checks: dict[int, RunningCheck] = {}
    # What is not submitted yet: when it will be, its place, its gain, and what of that was served.
    open_now: dict[int, list[tuple[int, int, float, float]]] = {}
    which = composition[begin]
    rows = zip(mean.tolist(), user[begin].tolist(), begun[which].tolist(), strict=True)
    for i, (worth, u, now) in enumerate(rows):
        check, waiting = checks.setdefault(u, RunningCheck()), open_now.setdefault(u, [])
        while waiting and waiting[0][0] < now:
            check.observe(*heapq.heappop(waiting)[2:])
        is_open[i] = check.open
        served = worth if check.open else 0.0
        heapq.heappush(waiting, (int(submitted[which[i]]), i, worth, served))
    for u, waiting in open_now.items():
        for *_, worth, served in sorted(waiting):
            checks[u].observe(worth, served)
    return np.repeat(is_open, length), checks


def _by_user(
    gain: np.ndarray, user: np.ndarray, rows: np.ndarray, users: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean gain of each user, the variance of that mean, and the number of rows behind it.

    The variance is infinite where no user has two rows from which it could be told.
    """
    gain, user = gain[rows], user[rows]
    count = np.bincount(user, minlength=users)
    mean = np.bincount(user, gain, users) / np.maximum(count, 1)
    residual = gain - mean[user]
    freedom = len(gain) - np.count_nonzero(count)
    pooled = (residual**2).sum() / freedom if freedom else np.inf
    return mean, pooled / np.maximum(count, 1), count


def p_of_gain(gain: np.ndarray, user: np.ndarray) -> float:
    """One-sided p-value of a mean gain of zero or less, with users as the unit; NaN if none.

    So few users that the signs of their means say less than the t-test claims count by the signs:
    where gains and losses are equally likely, all n are gains with probability 2^-n.
    """
    if not len(gain):
        return np.nan
    count, total = np.bincount(user), np.bincount(user, gain)
    mean = total[count > 0] / count[count > 0]
    test = paired_t_test(mean, np.zeros(len(mean)), np.arange(len(mean)))
    one_sided = test.p_value / 2 if test.difference > 0 else 1 - test.p_value / 2
    differ = np.count_nonzero(total)
    return float(np.maximum(one_sided, 0.5**differ))


def _holm(p_values: np.ndarray) -> np.ndarray:
    """Holm's adjusted p-values: those at most a level are rejected at that family-wise level."""
    order = np.argsort(p_values)[: np.count_nonzero(~np.isnan(p_values))]
    adjusted = np.full(len(p_values), np.nan)
    steps = np.arange(len(order), 0, -1) * p_values[order]
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted
