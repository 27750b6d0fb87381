"""Simulated trials of two arms, of which the truth is known."""

from dataclasses import dataclass

import numpy as np

from telic.errors import InputError, expect_whole


@dataclass(frozen=True)
class Trial:
    """Choices in the order in which they were made, and what each arm is really worth."""

    user: np.ndarray
    """int64 (n,)."""
    arm: np.ndarray
    """int64 (n,): 0 or 1."""
    propensity: np.ndarray
    """float64 (n,): with what probability this arm was taken."""
    reward: np.ndarray
    """float64 (n,): 1 where a suggestion was accepted, else 0."""
    truth: tuple[float, float]
    """The mean reward of these users at these times, had all been given this arm."""


def simulate_trial(
    *,
    users: int = 400,
    choices: int = 40,
    lift: float = 0.05,
    growth: float = 0.2,
    shares: tuple[float, float] = (0.1, 0.5),
    seed: int = 0,
) -> Trial:
    """Simulate people who accept suggestions of one of two arms, drawn at each composition.

    Acceptance grows over time while the second arm is given more and more of the traffic, so the
    mean of each arm's own compositions says more of when they were than of the arm.

    Parameters
    ----------
    users, choices : int
        People, and compositions of each.
    lift : float
        By how much more often, between −1 and 1, the second arm's suggestions are accepted.
    growth : float
        By how much acceptance grows from the first to the last composition.
    shares : (float, float)
        The second arm's share of the traffic at the beginning and at the end, in (0, 1).
    seed : int

    Raises
    ------
    InputError
        If a number is out of its range.

    Examples
    --------
    >>> trial = simulate_trial(users=3, choices=2, seed=1)
    >>> len(trial.reward), round(trial.truth[1] - trial.truth[0], 2)
    (6, 0.05)
    """
    expect_whole(1, users=users, choices=choices)
    if not all(0 < share < 1 for share in shares):
        raise InputError(f"shares are {shares}, expected two between 0 and 1.")
    if not (-1 <= lift <= 1 and np.isfinite(growth)):
        raise InputError(f"lift is {lift} and growth {growth}: expected −1 to 1, and a number.")
    rng = np.random.default_rng(seed)
    habit = rng.uniform(0.1, 0.4, users)
    when = np.linspace(0, 1, choices)
    second = shares[0] + (shares[1] - shares[0]) * when
    user, at = (part.ravel() for part in np.meshgrid(np.arange(users), np.arange(choices)))
    arm = (rng.random(len(user)) < second[at]).astype(np.int64)
    chance = [np.clip(habit[user] + growth * when[at] + lift * k, 0, 1) for k in (0, 1)]
    reward = rng.random(len(user)) < np.where(arm == 1, chance[1], chance[0])
    propensity = np.where(arm == 1, second[at], 1 - second[at])
    truth = float(chance[0].mean()), float(chance[1].mean())
    return Trial(user, arm, propensity, reward.astype(float), truth)


@dataclass(frozen=True)
class ShownLists:
    """Rows of lists that were shown, one for each item, under the position-based model."""

    user: np.ndarray
    """int64 (n,)."""
    item: np.ndarray
    """int64 (n,)."""
    rank: np.ndarray
    """int64 (n,), from 1."""
    chosen: np.ndarray
    """bool (n,)."""
    wanted: np.ndarray
    """float64 (n,): the probability that the item is chosen where it is looked at."""
    examined: np.ndarray
    """float64 (ranks,): the probability that each rank is looked at."""


def simulate_lists(
    *,
    users: int = 60,
    lists: int = 20,
    items: int = 12,
    ranks: int = 5,
    decay: float = 1.0,
    vary: float = 0.15,
    seed: int = 0,
) -> ShownLists:
    """Simulate lists in which what is wanted more stands higher, and what is high is seen more.

    Rank k is looked at with probability k^-decay. As the order follows what is wanted, how often
    ranks are chosen says more of the items than of the ranks.

    Parameters
    ----------
    users, lists : int
        People, and lists that each sees.
    items, ranks : int
        Items there are, and how many of them a list shows.
    decay : float
        At least 0; 0 is the control, in which all ranks are looked at alike.
    vary : float
        Spread of the noise in the order, beside items that are wanted by probabilities of .1 to .7.
    seed : int

    Examples
    --------
    >>> log = simulate_lists(users=2, lists=3, ranks=4)
    >>> len(log.item), log.examined.round(2).tolist()
    (24, [1.0, 0.5, 0.33, 0.25])
    """
    expect_whole(1, users=users, lists=lists, items=items, ranks=ranks)
    if not (ranks <= items and 0 <= decay < np.inf):
        raise InputError(
            f"ranks is {ranks} and decay {decay:g}: expected at most {items}, the items, and at "
            "least 0."
        )
    rng = np.random.default_rng(seed)
    wanted = np.linspace(0.7, 0.1, items)
    order = np.argsort(-(wanted + vary * rng.standard_normal((users * lists, items))), axis=1)
    item = order[:, :ranks].ravel()
    rank = np.tile(np.arange(1, ranks + 1), users * lists)
    examined = np.arange(1, ranks + 1) ** -decay
    chosen = rng.random(len(item)) < examined[rank - 1] * wanted[item]
    user = np.repeat(np.arange(users), lists * ranks)
    return ShownLists(user, item, rank, chosen, wanted[item], examined)
