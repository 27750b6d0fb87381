"""What is suggested, and what is lost, if k users must have submitted a phrase."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from telic.completion.learning.relevance import Submissions

KS = (1, 3, 5, 10, 20, 50, 100)
"""Numbers of users for which `kept_back` says what they leave."""
MOST_TENANTS = 50
"""Tenants of which it says so, those with most submissions."""
KEPT_BACK = "if k users must have submitted a phrase"
"""What a model's facts call it."""
BY_TENANT = "by tenant"


def kept_back(
    events: Submissions, vouched: np.ndarray, tenants: Sequence[str], tenant: np.ndarray
) -> dict[str, Any]:
    """Say what is suggested, and of how many submissions, if k users must have submitted it.

    Parameters
    ----------
    events : Submissions
    vouched : bool array of shape (queries,)
        What a list has, which is suggested at every k; as is what a submission vouches for that
        names nobody.
    tenants : sequence of str
    tenant : int array of shape (m,)
        Of each submission, -1 where none is named. A tenant's phrases are those that so many of its
        own users have submitted.

    Returns
    -------
    dict
        By k, in words; and under "by tenant" the same of each of `MOST_TENANTS`.
    """
    nobody = events.user < 0
    vouched = vouched.copy()
    vouched[events.query[nobody]] = True
    found: dict[str, Any] = _said(events, ~nobody, vouched)
    sizes = np.bincount(tenant[tenant >= 0], minlength=len(tenants))
    largest = np.argsort(-sizes, kind="stable")[:MOST_TENANTS]
    if len(largest):
        found[BY_TENANT] = {
            tenants[t]: _said(events, ~nobody & (tenant == t), vouched) for t in largest.tolist()
        }
    return found


def _said(events: Submissions, chosen: np.ndarray, vouched: np.ndarray) -> dict[str, str]:
    query, size = events.query[chosen], len(vouched)
    people = _distinct(query, events.user[chosen], size)
    if events.network is not None:
        people = np.minimum(people, _distinct(query, events.network[chosen], size))
    count = np.bincount(query, events.count[chosen], size)
    kept = {k: vouched | (people >= k) for k in KS}
    phrases = int(kept[KS[0]].sum())
    return {
        str(k): kept_said(int(of.sum()), phrases, float(count[of].sum()), float(count.sum()))
        for k, of in kept.items()
    }


def _distinct(query: np.ndarray, who: np.ndarray, size: int) -> np.ndarray:
    """Count who submitted each query."""
    most = int(who.max(initial=0)) + 1
    pairs = np.unique(query.astype(np.int64) * most + who)
    return np.bincount(pairs // most, minlength=size)


def kept_said(phrases: int, of: int, count: float, everything: float) -> str:
    """Say what is left, and lost, if so many users must have submitted a phrase."""
    share = count / max(everything, 1e-12)
    said = f"{phrases} phrases, {share:.1%} of the submissions of named users"
    return f"{said}; lost: {of - phrases}, {1 - share:.1%}" if of > phrases else said
