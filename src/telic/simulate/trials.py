"""Simulated trials of two arms, of which the truth is known."""

from dataclasses import dataclass

import numpy as np


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

    Examples
    --------
    >>> trial = simulate_trial(users=3, choices=2, seed=1)
    >>> len(trial.reward), round(trial.truth[1] - trial.truth[0], 2)
    (6, 0.05)
    """
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
