"""Do no harm: feedback re-ranks only where validation shows that it helps."""

from dataclasses import dataclass

import numpy as np

from telic.evaluate import paired_t_test

PREFIX_BINS = ((1, 3), (4, 6), (7, 9), (10, 12), (13, 10_000))
"""The ranges of prefix length of Table 2.5, in characters."""


LEVEL = 0.025
"""Chance of opening for a range of prefix length where feedback does not help."""


def bin_of(prefix_length: np.ndarray) -> np.ndarray:
    """Return the position in `PREFIX_BINS` of each prefix length (0 counts as 1)."""
    ends = np.array([last for _, last in PREFIX_BINS])
    return np.searchsorted(ends, np.clip(prefix_length, 1, ends[-1]))


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
    """

    anywhere: bool
    bins: np.ndarray
    users: np.ndarray

    @classmethod
    def always(cls, users: int) -> "Gate":
        """Return the gate that is open everywhere."""
        return cls(True, np.ones(len(PREFIX_BINS), bool), np.ones(users, bool))

    @classmethod
    def fitted(
        cls, gain: np.ndarray, user: np.ndarray, prefix_length: np.ndarray, users: int
    ) -> "Gate":
        """Decide from the gains in reciprocal rank at the keystrokes of the validation part.

        It opens for a range of prefix length if the mean gain over users is above zero there at the
        one-sided level of `LEVEL`; for a user if the user's mean gain, shrunk towards the mean of
        all by the ratio of the spread between users to its noise (empirical Bayes), is above zero;
        and at all if it opens for any range.

        Parameters
        ----------
        gain : float array of shape (T,)
            Reciprocal rank of the model minus that of the static order.
        user, prefix_length : int arrays of shape (T,)
        users : int
            Number of users.
        """
        own_bin = bin_of(prefix_length)
        bins = np.array([_clear_of_zero(gain, user, own_bin == b) for b in range(len(PREFIX_BINS))])
        open_bins = bins[own_bin]
        mean, noise, count = _by_user(gain, user, open_bins, users)
        seen = count > 0
        center = mean[seen].mean() if seen.any() else 0.0
        # Spread between users beyond what noise explains.
        spread = max(mean[seen].var() - noise[seen].mean(), 0.0) if seen.sum() > 1 else 0.0
        trust = np.divide(spread, spread + noise, out=np.zeros(users), where=spread + noise > 0)
        shrunk = np.where(seen, trust * mean + (1 - trust) * center, center)
        return cls(bool(bins.any()), bins, shrunk > 0)

    def open(self, user: np.ndarray, prefix_length: np.ndarray) -> np.ndarray:
        """Return, for each keystroke, whether the model may re-rank."""
        return self.anywhere & self.users[user] & self.bins[bin_of(prefix_length)]

    def summary(self) -> str:
        """Say in a few words where the static order is kept."""
        if not self.anywhere or not self.bins.any() or (len(self.users) and not self.users.any()):
            return "static order kept everywhere: validation shows no gain"
        closed = [
            f"{first}–{last}" if last < PREFIX_BINS[-1][1] else f"{first}+"
            for (first, last), is_open in zip(PREFIX_BINS, self.bins, strict=True)
            if not is_open
        ]
        parts = []
        if closed:
            parts.append(f"prefixes of {', '.join(closed)} characters")
        if not self.users.all():
            parts.append(f"{(~self.users).sum()} of {len(self.users)} users")
        return "static order kept for " + " and ".join(parts) if parts else "re-ranks everywhere"


def _by_user(
    gain: np.ndarray, user: np.ndarray, rows: np.ndarray, users: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean gain of each user, the variance of that mean, and the number of rows behind it."""
    gain, user = gain[rows], user[rows]
    count = np.bincount(user, minlength=users)
    mean = np.bincount(user, gain, users) / np.maximum(count, 1)
    residual = gain - mean[user]
    pooled = (residual**2).sum() / max(len(gain) - (count > 0).sum(), 1)
    return mean, pooled / np.maximum(count, 1), count


def _clear_of_zero(gain: np.ndarray, user: np.ndarray, rows: np.ndarray) -> bool:
    """Whether the mean gain, with users as the unit, is above zero beyond chance."""
    if not rows.any():
        return False
    test = paired_t_test(gain[rows], np.zeros(rows.sum()), user[rows], level=1 - 2 * LEVEL)
    return bool(test.low > 0)
