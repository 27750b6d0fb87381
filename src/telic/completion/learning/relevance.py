"""Static relevance, [Zhang2017] (2.4.2), and the candidates that it gives at any moment of a log.

Everything is counted from *before* the composition that it scores.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from telic.errors import expect_one_of
from telic.kernels import kernel

Scale = Literal["log", "count"]
NAMES = ("mpc", "personal", "personal-s", "timesense", "timesense-s")
"""The five relevance scores of Table 2.3."""

WINDOW = 28 * 24 * 3600 * 1_000_000
"""Microseconds that TimeSense looks back."""


@dataclass(frozen=True)
class Relevance:
    """A relevance score: a weighted sum of three counts, each on its own scale.

    ``r(q) = popular * g(all submissions of q) / s1 + personal * g(submissions by this user) / s2
    + recent * g(submissions by anyone in the last 28 days) / s3 + learned[q]``

    where g is ``log(1 + .)`` or the identity, and the s are standard deviations over the
    candidates of the training part. Centring would add the same to every candidate of a list and
    cancel in (2.3.2), so it is left out.

    Parameters
    ----------
    name : str
        One of `NAMES`. MPC weighs `popular` alone; Personal and TimeSense weigh it and one other
        equally; their -S variants have tuned weights (see `mixed`).
    scale : {"log", "count"}
        g. [Zhang2017] prints the count itself; it is heavy-tailed and makes a softmax with a fixed
        weight overconfident, the logarithm does not.
    deviations : (float, float, float)
        s1, s2, s3.
    learned : float64 array, optional
        By phrase of the replay's index, what a fit adds: see
        `telic.completion.fit.models.recounted`.
    unlearned : float, optional
        What that fit adds to a phrase that it knows nothing of, such that no phrase has less than
        0; None without such a fit.
    """

    name: str
    scale: Scale = "log"
    popular: float = 1.0
    personal: float = 0.0
    recent: float = 0.0
    deviations: tuple[float, float, float] = (1.0, 1.0, 1.0)
    learned: np.ndarray | None = field(default=None, compare=False, repr=False)
    unlearned: float | None = None

    @classmethod
    def named(cls, name: str, *, scale: Scale = "log") -> "Relevance":
        """Return the score of that name; the -S variants start at equal weights."""
        expect_one_of(NAMES, relevance=name)
        first = cls(name, scale)
        return first if name == "mpc" else first.mixed(0.5)

    def mixed(self, alpha: float) -> "Relevance":
        """Return the score with the weight `alpha` on MPC and ``1 - alpha`` on the other count."""
        if self.name.startswith("personal"):
            return replace(self, popular=alpha, personal=1 - alpha)
        return replace(self, popular=alpha, recent=1 - alpha)

    @property
    def tuned(self) -> bool:
        """Whether its weight is to be tuned on validation."""
        return self.name.endswith("-s")

    @cached_property
    def factors(self) -> np.ndarray:
        """Weights over deviations, in the order popular, personal, recent."""
        return np.array([self.popular, self.personal, self.recent]) / np.array(self.deviations)

    def learned_of(self, queries: np.ndarray) -> np.ndarray | float:
        """Return the learned part of some phrases."""
        return 0.0 if self.learned is None else self.learned[queries]


@dataclass(frozen=True)
class Submissions:
    """Submissions of queries in time order: the log's own and those of an earlier query log."""

    at: np.ndarray
    """int64 (m,), ascending, microseconds since 1970."""
    query: np.ndarray
    """int32 (m,)."""
    user: np.ndarray
    """int32 (m,); -1 where nobody is named."""
    count: np.ndarray
    """float64 (m,)."""
    vouched: np.ndarray
    """bool (m,): whether it counts for as many users as it takes."""
    opens: np.ndarray
    """bool (m,): from this submission on, the query may be suggested."""
    network: np.ndarray | None = None
    """int64 (m,): where its user was; one that is not known is a network of the user's own."""

    @property
    def end(self) -> int:
        """The moment after the last; 0 if there is none."""
        return int(self.at[-1]) + 1 if len(self.at) else 0

    @classmethod
    def gathered(
        cls,
        parts: Sequence[tuple[np.ndarray, ...]],
        *,
        min_users: int,
        network: np.ndarray | None = None,
    ) -> "Submissions":
        """Merge (at, query, user, count, vouched) parts and decide what opens each query.

        A query may be suggested once `min_users` different users have submitted it, so that no box
        reveals one user's queries to another, or once a submission of a catalogue or of an
        aggregated log vouches for it. All others that name nobody are perhaps of one person, who
        is perhaps one of those that are named. With `network`, of all parts, -1 where it is not
        known, users must have been in as many networks: many ids in one are perhaps one person.
        What counts 0 opens nothing.
        """
        columns = [
            arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
            for arrays in zip(*parts, strict=True)
        ]
        order = np.argsort(columns[0], kind="stable")
        at, query, user, count, vouched = (column[order] for column in columns)
        if network is not None:
            network = network[order].astype(np.int64)
            network = np.where(network < 0, int(network.max(initial=0)) + 2 + user, network)
        del columns, order  # each is as long as the log
        named = np.flatnonzero((user >= 0) & (count > 0))
        first = first_of_network = _first(query, user, named)
        if network is not None:
            first_of_network = _first(query, network, named)
        seen = np.zeros((2, int(query.max(initial=-1)) + 1), np.int32)
        enough = (vouched | (min_users <= 1)) & (count > 0)  # whoever submitted it is one
        opens = _opening(query, enough, first, first_of_network, min_users, seen)
        return cls(at, query, user, count, vouched, opens, network)


def _first(query: np.ndarray, who: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Mark, among some rows, the first submission of each query by each."""
    pair = query[rows].astype(np.int64) * (int(who.max(initial=0)) + 1) + who[rows]
    order = np.argsort(pair, kind="stable")
    pair = pair[order]
    new = np.ones(len(pair), bool)
    np.not_equal(pair[1:], pair[:-1], out=new[1:])
    first = np.zeros(len(query), bool)
    first[rows[order[new]]] = True
    return first


@kernel
def _opening(query, vouched, first_of_user, first_of_network, min_users, seen):
    """Mark the submission at which each query has enough users, in enough networks.

    ``seen`` begins as zeros: the users, and the networks, that each query has had.
    """
    opens = np.zeros(len(query), np.bool_)
    users, networks = seen
    for e in range(len(query)):
        q = query[e]
        before = min(users[q], networks[q])
        if before < min_users:
            users[q] = min_users if vouched[e] else users[q] + first_of_user[e]
            networks[q] = min_users if vouched[e] else networks[q] + first_of_network[e]
            opens[e] = min(users[q], networks[q]) >= min_users
    return opens


@kernel
def gather_candidates(size, submissions, own, compositions, targets, lists, score, out):
    """Write the most relevant candidates of every target keystroke, as of its composition's start.

    Targets come in order of start_at. A candidate begins with the prefix (it lies in low:high) and
    is known, that is, in the catalogue by then, or it is an own earlier query and these count; of
    one that is not known the shared part is `unlearned`. With lists, what was shown is a candidate
    too and counts as known, and ties go to the order of the list. Other ties go to the order of the
    catalogue. Slots without a candidate hold -1. counts[o, j] holds the three transformed counts.
    """
    at, query, count, opens = submissions
    by_user, user_start = own  # a user's own: by_user[user_start[u] : user_start[u + 1]], by time
    start_at, owner_user = compositions
    target, owner, low, high, row = targets
    list_start, shown, with_lists = lists
    factors, learned, unlearned, logarithm = score
    candidates, known, relevance, counts = out
    n = candidates.shape[1]
    popular, recent, mine = np.zeros(size), np.zeros(size), np.zeros(size)
    shared, open_now = learned.copy(), np.zeros(size, np.bool_)
    unlisted = np.int64(2**31)
    place = np.full(size, unlisted)
    tie = np.empty(n, np.int64)
    event = expired = 0
    composition = -1
    loaded_from = loaded_to = 0
    for t in range(len(target)):
        c = owner[t]
        if c != composition:
            composition = c
            now = start_at[c]
            while event < len(at) and at[event] < now:
                q = query[event]
                popular[q] += count[event]
                recent[q] += count[event]
                open_now[q] |= opens[event]
                shared[q] = learned[q] + shared_part(popular[q], recent[q], factors, logarithm)
                event += 1
            while expired < event and at[expired] < now - WINDOW:
                q = query[expired]
                recent[q] -= count[expired]
                shared[q] = learned[q] + shared_part(popular[q], recent[q], factors, logarithm)
                expired += 1
            for e in range(loaded_from, loaded_to):
                mine[query[by_user[e]]] = 0.0
            loaded_from = loaded_to = user_start[owner_user[c]]
            while loaded_to < user_start[owner_user[c] + 1] and at[by_user[loaded_to]] < now:
                mine[query[by_user[loaded_to]]] += count[by_user[loaded_to]]
                loaded_to += 1
        k, o = target[t], row[t]
        listed = list_start[k + 1] - list_start[k] if with_lists else 0
        for i in range(listed):
            q = shown[list_start[k] + i]
            place[q] = min(place[q], i)
        found = 0
        best = relevance[o]
        for step in range(high[t] - low[t] + listed):
            if step < high[t] - low[t]:
                q = low[t] + step
                if not (open_now[q] or (factors[1] > 0.0 and mine[q] > 0.0)):
                    continue
            else:
                i = step - (high[t] - low[t])
                q = shown[list_start[k] + i]
                inside = open_now[q] or (factors[1] > 0.0 and mine[q] > 0.0)
                if place[q] != i or (low[t] <= q < high[t] and inside):
                    continue
            rank = place[q]
            r = shared[q] if open_now[q] or rank < unlisted else unlearned
            if mine[q] > 0.0:
                r += factors[1] * _transform(mine[q], logarithm)
            if found == n and not _before(
                r, rank, q, best[n - 1], tie[n - 1], candidates[o, n - 1]
            ):
                continue
            j = found if found < n else n - 1
            while j > 0 and _before(r, rank, q, best[j - 1], tie[j - 1], candidates[o, j - 1]):
                best[j], tie[j] = best[j - 1], tie[j - 1]
                candidates[o, j] = candidates[o, j - 1]
                j -= 1
            best[j], tie[j], candidates[o, j] = r, rank, q
            found = min(found + 1, n)
        for j in range(n):
            counts[o, j, :] = 0.0
            if j >= found:
                candidates[o, j], known[o, j], best[j] = -1, False, -np.inf
                continue
            q = candidates[o, j]
            known[o, j] = open_now[q] or place[q] < unlisted
            counts[o, j, 1] = _transform(mine[q], logarithm)
            if known[o, j]:
                counts[o, j, 0] = _transform(popular[q], logarithm)
                counts[o, j, 2] = _transform(recent[q], logarithm)
        for i in range(listed):
            place[shown[list_start[k] + i]] = unlisted


@kernel
def _before(r, rank, q, other_r, other_rank, other_q):
    """Whether a candidate precedes another: by relevance, place in the list shown, number."""
    if r != other_r:
        return r > other_r
    return rank < other_rank if rank != other_rank else q < other_q


@kernel
def _transform(count, logarithm):
    """The count or its logarithm; sums of floats may end a hair below zero."""
    return np.log1p(max(count, 0.0)) if logarithm else count


@kernel
def shared_part(popular, recent, factors, logarithm):
    """The part of the relevance that does not depend on the user."""
    return factors[0] * _transform(popular, logarithm) + factors[2] * _transform(recent, logarithm)


@kernel
def shared_parts(popular, recent, factors, logarithm):
    """Give `shared_part` of many phrases, to the last bit, so that ties stay ties."""
    out = np.empty(len(popular))
    for q in range(len(popular)):
        out[q] = shared_part(popular[q], recent[q], factors, logarithm)
    return out
