"""Which row is drawn next: probabilities, alias tables, a generator that kernels carry."""

import numpy as np

from telic.errors import InputError
from telic.kernels import kernel

SCHEMES = ("uniform", "lipschitz", "optimal")


def probabilities(sampling: str, constants: np.ndarray, mu: float) -> np.ndarray:
    """Return the sampling probabilities of the component functions [Zhang2017] (4.4.3).

    Parameters
    ----------
    sampling : {"uniform", "lipschitz", "optimal"}
        ``uniform`` is 1/n; ``lipschitz`` is proportional to L_i; ``optimal`` to n + L_i/μ, which
        maximises the step size min_i n p_i / [2(nμ + L_i)] of Theorem 4.3.4 (printed with max).
    constants : array, shape (n,)
        L_i, the Lipschitz constants of the gradients of f_i.
    mu : float
        Strong convexity of each f_i; 0 makes ``optimal`` the same as ``lipschitz``.

    Returns
    -------
    array, shape (n,)
        Sums to 1. Rows of zeros keep a small probability under ``lipschitz``, so that each can be
        drawn.

    Examples
    --------
    >>> probabilities("optimal", np.array([1.0, 3.0]), mu=1.0)
    array([0.375, 0.625])
    """
    n = constants.size
    if sampling == "uniform":
        weights = np.ones(n)
    elif sampling == "lipschitz":
        weights = np.maximum(constants, 1e-3 * constants.mean())
    elif sampling == "optimal":
        weights = constants + n * mu
        np.maximum(weights, 1e-3 * weights.mean(), out=weights)
    else:
        raise InputError(f"sampling is {sampling!r}, expected one of {', '.join(SCHEMES)}.")
    total = weights.sum()
    return np.divide(weights, total, out=weights) if total > 0 else np.full(n, 1.0 / n)


def alias_table(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Walker's alias table of p: one draw costs one uniform number, whatever n.

    Returns
    -------
    threshold : array of float32, shape (n,)
        Keep column i if the uniform number is below.
    alias : array of int32, shape (n,)
        Otherwise take this one.
    """
    threshold = p * p.size
    alias = np.arange(p.size, dtype=np.int32)
    _fill_alias(threshold, alias)
    return threshold.astype(np.float32), alias


def draw_tables(p: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return p and its alias table as kernels take them; uniform draws need one number alone."""
    if p.min() == p.max():
        return p[:1].astype(np.float32), np.empty(0, np.float32), np.empty(0, np.int32)
    threshold, alias = alias_table(p)
    # The rounding of p scales a correction that vanishes at the optimum.
    return p.astype(np.float32), threshold, alias


@kernel
def _fill_alias(threshold, alias):
    """Pair columns below 1 with columns above 1 (Vose)."""
    n = threshold.size
    below = np.empty(n, np.int32)
    above = np.empty(n, np.int32)
    n_below, n_above = 0, 0
    for i in range(n):
        if threshold[i] < 1.0:
            below[n_below] = i
            n_below += 1
        else:
            above[n_above] = i
            n_above += 1
    while n_below and n_above:
        n_below -= 1
        small, large = below[n_below], above[n_above - 1]
        alias[small] = large
        threshold[large] -= 1.0 - threshold[small]
        if threshold[large] < 1.0:
            n_above -= 1
            below[n_below] = large
            n_below += 1
    for k in range(n_below):
        threshold[below[k]] = 1.0
    for k in range(n_above):
        threshold[above[k]] = 1.0


def random_state(seed: int | np.random.Generator | None) -> np.ndarray:
    """Return the one-number state that `uniform` advances, so that a kernel is a pure function."""
    try:
        generator = np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise InputError(f"seed is {seed!r}, expected an integer >= 0 or None.") from None
    return generator.integers(0, 2**63, size=1, dtype=np.uint64)


@kernel
def uniform(state):
    """Uniform number in [0, 1): splitmix64."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def draw(state, n, threshold, alias):
    """Index below n drawn from an alias table; uniformly if the table is empty."""
    u = uniform(state) * n
    i = int(u)
    if alias.size == 0 or u - i < threshold[i]:
        return i
    return int(alias[i])
