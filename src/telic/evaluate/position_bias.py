"""How much more often people look at one rank than at another, from logs of lists and choices.

The position-based model: an item at a rank is chosen if the rank is looked at and the item is
wanted, P(chosen) = θ_rank γ_item. Joachims, Swaminathan and Schnabel (WSDM 2017) weigh choices by
θ; Agarwal et al. (WSDM 2019) take it from items that stood at several ranks, as is done here.
"""

import numpy as np
import scipy  # its parts load when they are used: they take seconds

from telic.errors import InputError

STEPS = 100
"""Newton's steps at most; a few suffice."""


def examination(item: np.ndarray, rank: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Estimate θ: how likely each rank is looked at, relative to the one that is looked at most.

    Of the times when an item was chosen, the share at one rank is ``n θ / Σ n θ`` with ``n`` the
    times when it was shown there: a conditional logit, in which what the items are worth cancels.
    Its one optimum is found by Newton's method. It needs no random draw, only items whose rank
    varied for reasons other than how much they were wanted at that moment.

    Parameters
    ----------
    item : array of shape (n,)
        What was shown, numbers or texts: the same only where it is wanted as much, such as one for
        each suggestion after each prefix.
    rank : int array of shape (n,)
        Where, from 1.
    chosen : bool array of shape (n,)
        Whether it was.

    Returns
    -------
    float64 array of shape (ranks,)
        θ of ranks 1, 2, …, the largest 1. For `ips`, the ``propensity`` of what was shown at rank k
        is θ[k - 1], and the ``target`` of an order that would show it at rank m is θ[m - 1]. Not
        for `snips` and `mean_weight`, which divide by what these weights do not sum to. θ comes
        without an interval: where few choices tell of a rank, it may be far from the truth.

    Raises
    ------
    InputError
        If these are no such columns, nothing was chosen at a rank, or ranks cannot be compared
        because no item was chosen at one of them and shown at another.

    Examples
    --------
    Tea is chosen as often as cocoa where each stands first, and half as often where it is second:

    >>> item = np.repeat(["tea", "tea", "cocoa", "cocoa"], 4)
    >>> rank = np.repeat([1, 2, 2, 1], 4)
    >>> chosen = np.array([1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0], bool)
    >>> examination(item, rank, chosen).round(2).tolist()
    [1.0, 0.5]
    """
    item, rank, chosen = map(np.asarray, (item, rank, chosen))
    if {column.ndim for column in (item, rank, chosen)} != {1}:
        raise InputError("item, rank and chosen must be columns: a value for each that was shown.")
    if len({len(item), len(rank), len(chosen)}) > 1:
        raise InputError("item, rank and chosen differ in length: one for each that was shown.")
    if not len(rank):
        raise InputError("nothing was shown, so nothing is known of ranks.")
    if rank.dtype.kind not in "iu" or rank.min() < 1:
        raise InputError("a rank is no whole number from 1.")
    if not np.isin(chosen, (0, 1)).all():
        raise InputError("chosen is neither True nor False somewhere.")
    ranks = int(rank.max())
    if ranks > len(rank):
        raise InputError(f"there is a rank {ranks}, but only {len(rank)} rows: ranks begin at 1.")
    try:
        _, codes = np.unique(item, return_inverse=True)
    except TypeError:
        raise InputError("items are of several kinds. Give texts or numbers.") from None
    shape = codes.max() + 1, ranks

    def times(counted: np.ndarray) -> "scipy.sparse.csr_array":
        return scipy.sparse.csr_array((counted.astype(float), (codes, rank - 1)), shape)

    shown, choices = times(np.ones(len(rank))), times(chosen)
    _comparable(shown, choices)
    of_item, of_rank = choices.sum(axis=1), choices.sum(axis=0)
    shown, of_item = shown[of_item > 0], of_item[of_item > 0]
    log_theta = np.zeros(ranks)

    def loss(log_theta: np.ndarray) -> float:
        return float(of_item @ np.log(shown @ np.exp(log_theta)) - of_rank @ log_theta)

    for _ in range(STEPS):
        theta = np.exp(log_theta)
        share = shown.multiply(theta).multiply((of_item**0.5 / (shown @ theta))[:, None]).tocsr()
        expected = share.T @ of_item**0.5
        gradient = expected - of_rank
        hessian = np.diag(expected) - (share.T @ share).toarray()
        step = -np.linalg.lstsq(hessian, gradient)[0]  # θ is known up to a factor
        slope, now, length = float(gradient @ step), loss(log_theta), 1.0
        if -slope <= 1e-12 * len(rank):
            break
        while loss(log_theta + length * step) > now + 0.25 * length * slope:
            length /= 2
        log_theta = log_theta + length * step
    return np.exp(log_theta - log_theta.max())


def _comparable(shown: "scipy.sparse.csr_array", choices: "scipy.sparse.csr_array") -> None:
    never = np.flatnonzero(choices.sum(axis=0) == 0)
    if len(never):
        raise InputError(
            f"nothing was chosen at rank {never[0] + 1}, so how often it is looked at cannot be "
            "told. Leave such ranks out, or bring a longer log."
        )
    # One optimum, and finite, if from each rank a way leads to each other by items that were
    # chosen at one and shown at the next.
    links = (choices > 0).astype(float).T @ (shown > 0).astype(float)
    count, part = scipy.sparse.csgraph.connected_components(links, connection="strong")
    if count > 1:
        other = int(np.flatnonzero(part != part[0])[0]) + 1
        raise InputError(
            f"ranks 1 and {other} cannot be compared: it takes items that were shown at several "
            "ranks and chosen. Let the order vary, such as by team_draft or a trial."
        )
