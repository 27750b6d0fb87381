"""Replay a composition log: at any keystroke, what could be suggested and what was fed back."""

from copy import copy
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple, Self

import numpy as np

from telic.completion.engine.array_kernels import joined_texts, longer, longer_table
from telic.completion.engine.folding import fold
from telic.completion.engine.prefix_index import PrefixIndex
from telic.completion.learning.feedback import WIDTH, observe_list, read_rows
from telic.completion.learning.relevance import WINDOW, Relevance, Submissions, gather_candidates
from telic.data.composition_rows import RANGES, take_ranges
from telic.data.compositions import CompositionLog
from telic.data.growing_arrays import GrowingFile, let_go
from telic.data.queries import QueryLog, joined_group, only_tenant
from telic.errors import InputError, expect_one_of
from telic.kernels import kernel

TRAIN, VALID, TEST, DROPPED = 0, 1, 2, 3
Lists = Literal["own", "shown"]
"""Whose list is ranked: a completer's own, as it would be served, or the one that was shown."""


@dataclass(frozen=True)
class RankedKeystrokes:
    """Some keystrokes of a log with their candidates: what every model ranks.

    Rows are keystrokes in order of user, then time; columns are candidates, best relevance first.
    """

    keystroke: np.ndarray
    """int64 (T,): keystrokes of the log."""
    composition: np.ndarray
    """int64 (T,): the composition of each."""
    candidates: np.ndarray
    """int32 (T, N): phrases, -1 where there are fewer than N."""
    relevance: np.ndarray
    """float64 (T, N): static relevance; ``-inf`` where there is no candidate."""
    counts: np.ndarray
    """float64 (T, N, 3): transformed popular, personal and recent counts."""
    position: np.ndarray
    """int64 (T,): column of the query that was submitted; -1 if it is not a candidate."""
    known: np.ndarray
    """bool (T, N): whether the candidate is in the catalogue by then; of a user's own query that
    is not, a completer knows only how often this user submitted it."""

    def __len__(self) -> int:
        return len(self.keystroke)

    def where(self, rows: np.ndarray | slice) -> "RankedKeystrokes":
        """Return some of the rows (a mask, positions or a slice)."""
        return RankedKeystrokes(*(getattr(self, part.name)[rows] for part in fields(self)))


class Typed(NamedTuple):
    """Keystrokes and the lists that were shown at them."""

    start: np.ndarray
    """int64 (n,): where the keystrokes of each composition begin."""
    at: np.ndarray
    prefix: np.ndarray
    list_start: np.ndarray
    shown: np.ndarray


class Run(NamedTuple):
    """Keystrokes of the users from `first` up to, not including, `last`."""

    first: int
    last: int
    keystrokes: np.ndarray


class Replay:
    """A composition log made ready: vocabulary, counts in time, previous queries, the split.

    What is ranked at a keystroke are the candidates that a completer would pre-index for its prefix
    if it were fitted at the moment the composition began. The lists that were shown, which
    another system made, serve for the feedback alone. `over` gives the replay in which they are
    ranked too.

    Parameters
    ----------
    log : CompositionLog
    queries : QueryLog, optional
        Submissions from before the log, or a catalogue: they count towards popularity.
    min_compositions : int
        Users with fewer are left out of training and testing (their submissions still count
        towards popularity). [Zhang2017] asks for 100; 4 is the least that can be split.
    min_users : int
        A query may be suggested once this many users have submitted it (see `Submissions`).

    Raises
    ------
    InputError
        If no user has enough compositions, or there are several tenants.

    Attributes
    ----------
    part : int8 array of shape (n,)
        0, 1, 2 for the first half, third and last quarter of each user's compositions in time
        order (training, validation, testing); 3 for users left out.
    users : list of str
        Those of the log, and then others of the queries.
    lists : {"own", "shown"}
        Whose list is ranked: see `over`.
    """

    def __init__(
        self,
        log: CompositionLog,
        *,
        queries: QueryLog | None = None,
        min_compositions: int = 8,
        min_users: int = 3,
    ) -> None:
        if min_compositions < 4:
            raise InputError(
                f"min_compositions is {min_compositions}, expected at least 4: fewer cannot be "
                "split into training, validation and testing."
            )
        only_tenant([log, *([queries] if queries else [])])
        self.log, self.min_users = log, min_users
        self.lists: Lists = "own"
        known = list(dict.fromkeys([*log.phrases, *(queries.queries if queries else [])]))
        self.index = PrefixIndex.build(known, np.zeros(len(known)))
        number = {text: i for i, text in enumerate(self.index.phrases(range(len(self.index))))}
        of_log = np.array([number[text] for text in log.phrases], np.int32)
        self.query, self._numbers = of_log[log.query], of_log
        parts = [
            (log.submitted_at, self.query, log.user, np.ones(len(log)), np.zeros(len(log), bool)),
        ]
        names: dict[str | None, int] = {None: -1}
        names |= {name: i for i, name in enumerate(log.users)}
        if queries:
            for name in queries.users:
                names.setdefault(name, len(names) - 1)
            parts.append(
                (
                    queries.at,
                    np.array([number[text] for text in queries.queries], np.int32)[queries.query],
                    np.array([names[name] for name in queries.users], np.int32)[queries.user],
                    queries.count,
                    queries.vouched,
                )
            )
        self.users = [name for name in names if name is not None]
        networks, network = joined_group([log, *([queries] if queries else [])], "network")
        self.submissions = Submissions.gathered(
            parts, min_users=min_users, network=network if networks else None
        )
        self.start_at = log.at[log.keystroke_start[:-1]]
        self.by_user = np.lexsort((np.arange(len(log)), log.submitted_at, log.user))
        self.part = self._split(min_compositions)
        self._lengths = np.array([len(text) for text in log.prefixes])
        log.let_go()

    def _split(self, min_compositions: int) -> np.ndarray:
        part = np.full(len(self.log), DROPPED, np.int8)
        sizes = np.bincount(self.log.user, minlength=len(self.log.users))
        for own in np.split(self.by_user, np.cumsum(sizes)[:-1]):
            if len(own) >= min_compositions:
                half, quarter = len(own) // 2, len(own) // 4
                part[own[:half]] = TRAIN
                part[own[half : half + quarter]] = VALID
                part[own[half + quarter :]] = TEST
        if (part == DROPPED).all():
            raise InputError(
                f"{self.log.source}: no user has {min_compositions} compositions or more (the most "
                f"is {sizes.max()}), so there is nothing to split. Lower "
                "--min-compositions or bring a longer log."
            )
        return part

    def prefix_length(self, keystrokes: np.ndarray) -> np.ndarray:
        """Return how many characters stood in the box at some keystrokes."""
        return self._lengths[self.log.prefix[keystrokes]]

    def over(self, lists: Lists) -> Self:
        """Return this replay with candidates of a completer's own or of the list that was shown.

        Parameters
        ----------
        lists : {"own", "shown"}
            "own": what begins with the prefix (folded) and is in the catalogue, or is an own
            earlier query of the user, where the relevance counts these; ties in relevance go to the
            order of the catalogue. This is the list that a completer serves. "shown": the
            suggestions that were shown join these candidates, and ties go to their order. Whatever
            is fitted on it re-ranks the list of the system that was logged, with what that system
            knew.
        """
        expect_one_of(("own", "shown"), lists=lists)
        if lists == self.lists:
            return self
        other = copy(self)
        other.lists = lists
        return other

    def apps_of_many(self, composition: np.ndarray, app: np.ndarray) -> np.ndarray:
        """Say of each app of the log whether `min_users` users had it in training: bool (apps,).

        An app that fewer had would tell somebody who names it what these searched for.

        Parameters
        ----------
        composition, app : int arrays of shape (m,)
            Which composition had which app.
        """
        training = self.part[composition] == TRAIN
        composition, app = composition[training], app[training]
        times = np.ones(len(app)), np.zeros(len(app), bool)
        networks, network = joined_group([self.log], "network")
        had = Submissions.gathered(
            [(self.log.submitted_at[composition], app, self.log.user[composition], *times)],
            min_users=self.min_users,
            network=network[composition] if networks else None,
        )
        known = np.zeros(len(self.log.apps), bool)
        known[had.query[had.opens]] = True
        return known

    @property
    def dropped_users(self) -> int:
        """Number of users with too few compositions."""
        return len(np.unique(self.log.user[self.part == DROPPED]))

    @cached_property
    def previous(self) -> np.ndarray:
        """int32 (n,): the query that the same user had submitted last; -1 if none."""
        previous = np.full(len(self.log), -1, np.int32)
        sizes = np.bincount(self.log.user, minlength=len(self.log.users))
        for own in np.split(self.by_user, np.cumsum(sizes)[:-1]):
            # Compositions may overlap: what counts is what was submitted before this one began.
            done = np.searchsorted(self.log.submitted_at[own], self.start_at[own])
            later = done > 0
            previous[own[later]] = self.query[own[done[later] - 1]]
        return previous

    @cached_property
    def shown(self) -> np.ndarray:
        """int32: what was shown, as `telic.data.compositions.CompositionLog` has it, by number."""
        return self._numbers[self.log.shown]

    @property
    def _typed(self) -> Typed:
        log = self.log
        if log.folder is not None:
            return self._typed_by_user
        return Typed(log.keystroke_start[:-1], log.at, log.prefix, log.list_start, self.shown)

    @cached_property
    def _typed_by_user(self) -> Typed:
        """What some users typed, side by side in files: a run of users maps a part of these."""
        log, order = self.log, self.by_user
        assert log.folder is not None
        typed = np.diff(log.keystroke_start)[order]
        start = np.empty(len(log), np.int64)
        start[order] = np.cumsum(typed) - typed
        lists = log.list_start[log.keystroke_start]
        at, list_start = GrowingFile(log.folder, np.int64), GrowingFile(log.folder, np.int64)
        prefix, shown = GrowingFile(log.folder, np.int32), GrowingFile(log.folder, np.int32)
        list_start.add(np.zeros(1))
        total = 0
        for first in range(0, len(log), RANGES):
            some = order[first : first + RANGES]
            keys = take_ranges(log.keystroke_start, some)
            at.add(log.at[keys])
            prefix.add(log.prefix[keys])
            log.let_go()
            lengths = log.list_start[keys + 1] - log.list_start[keys]
            list_start.add(total + np.cumsum(lengths))
            total += int(lengths.sum())
            log.let_go()
            shown.add(self._numbers[log.shown[take_ranges(lists, some)]])
            log.let_go()
        return Typed(start, at.values(), prefix.values(), list_start.values(), shown.values())

    @cached_property
    def _prefix_texts(self) -> tuple[np.ndarray, np.ndarray]:
        return joined_texts([fold(prefix).encode() for prefix in self.log.prefixes])

    @cached_property
    def _phrase_texts(self) -> tuple[np.ndarray, np.ndarray]:
        return self.index.all_folded()

    @cached_property
    def _prefix_ranges(self) -> tuple[np.ndarray, np.ndarray]:
        return self.index.ranges(self.log.prefixes)

    @cached_property
    def _by_submitter(self) -> tuple[np.ndarray, np.ndarray]:
        """Submissions in order of user and time, and where each user's begin."""
        at, user = self.submissions.at, self.submissions.user
        named = np.flatnonzero(user >= 0)
        by_user = named[np.lexsort((at[named], user[named]))]
        people = max(len(self.log.users), int(user.max(initial=0)) + 1)
        return by_user, np.searchsorted(user[by_user], np.arange(people + 1))

    @property
    def off_prefix(self) -> int:
        """Number of suggestions shown that do not begin with their prefix (spelling corrected)."""
        low, high = (np.asarray(a)[self.log.prefix] for a in self._prefix_ranges)
        lengths = np.diff(self.log.list_start)
        inside = (self.shown >= np.repeat(low, lengths)) & (self.shown < np.repeat(high, lengths))
        return int((~inside).sum())

    def shown_share(self, moments: RankedKeystrokes) -> float:
        """Return the share of the suggestions shown at some moments that are candidates there.

        Where it is low, feedback is mostly on what another system suggested, and its features also
        tell what that system knew. NaN where nothing was shown.
        """
        start, length = self.log.list_start[:-1], np.diff(self.log.list_start)
        found = total = 0
        for position in range(int(length[moments.keystroke].max(initial=0))):
            there = length[moments.keystroke] > position
            listed = self.shown[start[moments.keystroke[there]] + position]
            found += int((moments.candidates[there] == listed[:, None]).any(axis=1).sum())
            total += len(listed)
        return found / total if total else float("nan")

    def last_keystrokes(self, *parts: int) -> np.ndarray:
        """Return the last keystroke of every composition in the given parts."""
        chosen = np.isin(self.part, parts)
        return (self.log.keystroke_start[1:] - 1)[chosen]

    def every_keystroke(self, *parts: int) -> np.ndarray:
        """Return every keystroke of the compositions in the given parts."""
        lengths = np.diff(self.log.keystroke_start)
        return np.flatnonzero(np.repeat(np.isin(self.part, parts), lengths))

    def runs(self, keystrokes: np.ndarray, size: int) -> list[Run]:
        """Cut keystrokes into runs of whole users, which follow one another, of some `size` each.

        A user's keystrokes are not parted, so that a run may be longer. `moments` of one run after
        the other are those of all keystrokes.
        """
        owner = np.searchsorted(self.log.keystroke_start, keystrokes, side="right") - 1
        user = self.log.user[owner]
        by_user = keystrokes[np.argsort(user, kind="stable")]
        start = np.zeros(len(self.log.users) + 1, np.int64)
        np.cumsum(np.bincount(user, minlength=len(self.log.users)), out=start[1:])
        # Before each user who is the first to begin in another block of that size.
        cuts = np.flatnonzero(np.diff(start[:-1] // size)) + 1
        cuts = cuts[start[cuts] < len(keystrokes)]  # no run without a keystroke
        bounds = [0, *cuts.tolist(), len(self.log.users)]
        return [Run(u, v, by_user[start[u] : start[v]]) for u, v in pairwise(bounds)]

    def moments(
        self, relevance: Relevance, keystrokes: np.ndarray, *, n: int = 10
    ) -> RankedKeystrokes:
        """Gather the n most relevant candidates at each keystroke, as of its composition's start.

        See `over` for what may be a candidate and for ties.
        """
        log, submissions = self.log, self.submissions
        owner = np.searchsorted(log.keystroke_start, keystrokes, side="right") - 1
        in_time = np.lexsort((keystrokes, owner, self.start_at[owner]))
        target, composition = keystrokes[in_time], owner[in_time]
        by_user = np.lexsort((target, self.start_at[composition], log.user[composition]))
        row = np.empty_like(by_user)
        row[by_user] = np.arange(len(row))
        low, high = self._prefix_ranges
        shown = self.shown if self.lists == "shown" else np.empty(0, np.int32)
        shape = (len(target), n)
        candidates, known = np.full(shape, -1, np.int32), np.zeros(shape, bool)
        score, counts = np.full(shape, -np.inf), np.empty((*shape, 3))
        learned = np.zeros(len(self.index)) + relevance.learned_of(np.arange(len(self.index)))
        gather_candidates(
            len(self.index),
            (submissions.at, submissions.query, submissions.count, submissions.opens),
            self._by_submitter,
            (self.start_at, log.user),
            (target, composition, low[log.prefix[target]], high[log.prefix[target]], row),
            (log.list_start, shown, len(shown) > 0),
            (relevance.factors, learned, relevance.unlearned or 0.0, relevance.scale == "log"),
            (candidates, known, score, counts),
        )
        log.let_go()
        target, composition = target[by_user], composition[by_user]
        hit = (candidates == self.query[composition][:, None]) & (candidates >= 0)
        position = np.where(hit.any(axis=1), hit.argmax(axis=1), -1)
        return RankedKeystrokes(target, composition, candidates, score, counts, position, known)

    def relevance_of(
        self, relevance: Relevance, query: np.ndarray, composition: np.ndarray
    ) -> np.ndarray:
        """Return the relevance of one query in each composition, by looking its events up.

        Of a query that is not in the catalogue by then, only the user's own count is known. Slow
        and obvious, for single queries; `moments` sweeps through time instead.
        """
        events = self.submissions
        by_query = np.argsort(events.query, kind="stable")
        start = np.searchsorted(events.query[by_query], np.arange(len(self.index) + 1))
        counts, learned = np.empty((len(query), 3)), np.zeros(len(query))
        learned += relevance.learned_of(query)
        for i, (q, c) in enumerate(zip(query, composition, strict=True)):
            own = by_query[start[q] : start[q + 1]]
            now = self.start_at[c]
            own = own[events.at[own] < now]
            weight = events.count[own]
            counts[i] = (
                weight.sum(),
                weight[events.user[own] == self.log.user[c]].sum(),
                weight[events.at[own] >= now - WINDOW].sum(),
            )
            if not events.opens[own].any():
                counts[i, [0, 2]], learned[i] = 0.0, relevance.unlearned or 0.0
        counts = np.log1p(counts) if relevance.scale == "log" else counts
        return counts @ relevance.factors + learned

    def with_submitted(self, moments: RankedKeystrokes, relevance: Relevance) -> RankedKeystrokes:
        """Add the submitted query as a last candidate where it is none: the union in (3.3.2)."""
        added = moments.position < 0
        t, n = moments.candidates.shape
        query = self.query[moments.composition]
        own = np.where(added, query, -1).astype(np.int32)[:, None]
        score = np.full((t, 1), -np.inf)
        score[added, 0] = self.relevance_of(relevance, query[added], moments.composition[added])
        return RankedKeystrokes(
            moments.keystroke,
            moments.composition,
            np.hstack([moments.candidates, own]),
            np.hstack([moments.relevance, score]),
            np.concatenate([moments.counts, np.zeros((t, 1, 3))], axis=1),
            np.where(added, n, moments.position),
            np.hstack([moments.known, added[:, None]]),
        )

    def features(self, moments: RankedKeystrokes, extra: np.ndarray | None = None) -> np.ndarray:
        """Return the feedback on every candidate, shape (T, N, 26): see `feedback.WIDTH`.

        Parameters
        ----------
        moments : RankedKeystrokes
        extra : int32 array of shape (T, M), optional
            Further phrases to read the feedback of, as further columns.
        """
        wanted = moments.candidates
        if extra is not None:
            wanted = np.concatenate([wanted, extra], axis=1)
        typed, owner = self._typed, moments.composition
        keystroke = typed.start[owner] + moments.keystroke - self.log.keystroke_start[owner]
        order = np.argsort(keystroke, kind="stable")
        out = np.empty((*wanted.shape, WIDTH))
        replay_feedback(
            (typed.start, typed.at, typed.prefix, self.previous),
            (typed.list_start, typed.shown),
            self._prefix_texts,
            self._phrase_texts,
            (keystroke[order], owner[order], order),
            np.ascontiguousarray(wanted[order]),
            out,
        )
        let_go(*typed)
        return out


@kernel
def replay_feedback(typed, lists, prefixes, phrases, targets, wanted, out):
    """Fill out[row[t]] with the feedback on wanted[t] before keystroke target[t] (ascending)."""
    keystroke_start, at, prefix, previous = typed
    list_start, shown = lists
    prefix_bytes, prefix_offsets = prefixes
    blob, offsets = phrases
    target, owner, row = targets
    ids, table = np.empty(64, np.int32), np.empty((64, WIDTH))
    t = 0
    while t < len(target):
        c = owner[t]
        used = 0
        k = keystroke_start[c]
        while t < len(target) and owner[t] == c:
            while k < target[t]:
                length = list_start[k + 1] - list_start[k]
                ids, table = longer(ids, used + length), longer_table(table, used + length)
                listed = shown[list_start[k] : list_start[k + 1]]
                dwell, p = (at[k + 1] - at[k]) / 1e6, prefix[k]
                text = prefix_bytes[prefix_offsets[p] : prefix_offsets[p + 1]]
                used = observe_list(ids, table, used, listed, listed, dwell, text, blob, offsets)
                k += 1
            read_rows(ids, table, used, previous[c], wanted[t], out[row[t]])
            t += 1
