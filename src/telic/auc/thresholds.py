"""Where to cut a ranking in two: by prior, Youden's index, costs, or a number to read."""

import numpy as np

from telic.errors import InputError

Rule = str | tuple[str, float]
RULES = ("prior", "youden", "cost", "top_k")


def choose_threshold(scores: np.ndarray, positive: np.ndarray, rule: Rule) -> float:
    """Return the score above which a row is called positive.

    Parameters
    ----------
    scores : array of shape (n,)
    positive : bool array of shape (n,)
    rule : str or (str, float)
        "prior" calls as many rows positive as there are; "youden" maximises true-positive minus
        false-positive rate; ("cost", c) minimises c·(missed positives) + (false alarms), c > 0;
        ("top_k", k) calls the k rows of highest score positive (k < 1 is a share), the rule for
        precision at k. "cost" alone is c = 1, "top_k" alone the prior.

    Returns
    -------
    float
        Halfway between two scores of the given rows, so that no given row lies on it. Rows of
        equal score fall on the same side.

    Examples
    --------
    >>> scores, positive = np.array([1.0, 2.0, 3.0, 4.0]), np.array([False, True, False, True])
    >>> choose_threshold(scores, positive, "prior"), choose_threshold(scores, positive, "cost")
    (2.5, 3.5)
    >>> choose_threshold(scores, positive, ("cost", 5))
    1.5
    """
    name, number = rule if isinstance(rule, tuple) else (rule, None)
    if name not in RULES:
        raise InputError(
            f"threshold: {rule!r}, expected 'prior', 'youden', ('cost', c) or ('top_k', k)."
        )
    n, n_pos = scores.size, int(np.count_nonzero(positive))
    if name in ("prior", "top_k"):
        wanted = n_pos if number is None else number
        if not wanted > 0:
            raise InputError(f"threshold: {rule!r}, the number of rows to call must be > 0.")
        wanted = min(round(wanted * n) if wanted < 1 else int(wanted), n - 1)
        wanted = max(wanted, 1)
        cut = np.partition(scores, (n - wanted - 1, n - wanted))
        return _between(cut[n - wanted - 1], cut[n - wanted])
    if name == "youden":
        gain, loss = 1 / max(n_pos, 1), 1 / max(n - n_pos, 1)
    else:
        gain, loss = (1.0 if number is None else float(number)), 1.0
        if not gain > 0:
            raise InputError(f"threshold: {rule!r}, expected a cost > 0 of a missed positive.")
    order = np.argsort(-scores)
    ranked = scores[order]
    worth = np.concatenate([[0.0], np.cumsum(np.where(positive[order], gain, -loss))])
    # A cut after the first k is possible where the score changes, and at both ends.
    allowed = np.concatenate([[True], ranked[1:] < ranked[:-1], [True]])
    best = int(np.argmax(np.where(allowed, worth, -np.inf)))
    if best == 0:
        return float(np.nextafter(ranked[0], np.inf))
    if best == n:
        return float(np.nextafter(ranked[-1], -np.inf))
    return _between(ranked[best], ranked[best - 1])


def _between(low: float, high: float) -> float:
    """A number with low <= number < high (when they differ)."""
    middle = low + (high - low) / 2
    return float(low if middle >= high else middle)
