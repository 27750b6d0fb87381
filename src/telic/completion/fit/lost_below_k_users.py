"""What is suggested, and what is lost, if k users must have submitted a phrase."""

from typing import NamedTuple

import numpy as np

from telic.completion.learning.relevance import Submissions

KS = (1, 3, 5, 10, 20, 50, 100)
"""Numbers of users for which it is said."""
KEPT_BACK = "if k users must have submitted a phrase"
"""What a model's facts call it."""


class Kept(NamedTuple):
    """What is suggested at some k."""

    phrases: int
    submitted: float
    """Submissions, in logs that name users, that are of these phrases."""
    everything: float
    """All submissions in logs that name users."""


def kept(events: Submissions, vouched: np.ndarray) -> dict[int, Kept]:
    """Count what is suggested, and of how many submissions, at each k.

    Parameters
    ----------
    events : Submissions
    vouched : bool array of shape (queries,)
        What a list has, which is suggested at every k; as is what a submission vouches for.
    """
    counts, size = events.count > 0, len(vouched)
    named, vouched = (events.user >= 0) & counts, vouched.copy()
    vouched[events.query[events.vouched & counts]] = True
    query = events.query[named]
    people = _distinct(query, events.user[named], size)
    if events.network is not None:
        people = np.minimum(people, _distinct(query, events.network[named], size))
    people[events.query[counts]] = np.maximum(people[events.query[counts]], 1)  # whoever it is
    of_users = ~events.vouched
    count = np.bincount(events.query[of_users], events.count[of_users], size)
    found = {k: vouched | (people >= k) for k in KS}
    return {
        k: Kept(int(of.sum()), float(count[of].sum()), float(count.sum()))
        for k, of in found.items()
    }


def _distinct(query: np.ndarray, who: np.ndarray, size: int) -> np.ndarray:
    """Count who submitted each query."""
    most = int(who.max(initial=0)) + 1
    pairs = np.unique(query.astype(np.int64) * most + who)
    return np.bincount(pairs // most, minlength=size)


def said_by_k(found: dict[int, Kept]) -> dict[str, str]:
    """Say what is left, and lost, at each k."""
    of = found[KS[0]].phrases
    return {str(k): _said(each, of) for k, each in found.items()}


def _said(kept: Kept, of: int) -> str:
    share = kept.submitted / max(kept.everything, 1e-12)
    said = f"{kept.phrases} phrases, {share:.1%} of the submissions in logs that name users"
    return f"{said}; lost: {of - kept.phrases}, {1 - share:.1%}" if of > kept.phrases else said
