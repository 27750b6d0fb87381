"""What may be suggested, gathered from lists and query logs: spellings merged, counts added."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.completion.engine.encoded_phrases import encoded_phrases
from telic.completion.engine.folding import fold
from telic.completion.fit.lost_below_k_users import Kept, kept, said_by_k
from telic.completion.learning.relevance import WINDOW, Submissions
from telic.data.phrases import PhraseList, place_said
from telic.data.queries import QueryLog, joined_group
from telic.errors import InputError, expect_one_of

Duplicates = Literal["raise", "add", "max"]
UNSHOWN = "rows whose id or payload is not shown, their phrase having another's"
"""What a model's facts call them."""
FEWEST = 50
"""Submissions that are too few to choose weights by."""
NO_LIST = PhraseList("", pa.nulls(0, pa.string()), None, None, None, {}, np.empty(0, np.int64))
"""What there is without a list."""


@dataclass(frozen=True)
class Entries:
    """Phrases that may be suggested, one for each folded form and context.

    Near-duplicates (Tokyo, Tōkyō, TOKYO) are one entry, spelled as its heaviest is.
    """

    phrases: list[str]
    popular: np.ndarray
    """float64 (n,): weight in the lists plus submissions."""
    recent: np.ndarray
    """float64 (n,): submissions in the last 28 days of the log."""
    ids: list[str | None]
    payloads: list[str | None]
    """JSON."""
    contexts: dict[str, list[str | None]]
    spellings: int
    """Distinct spellings that were merged into the entries."""
    shy: int
    """Folded forms left out because fewer than `min_users` people submitted them."""
    unnamed: int
    """Of these, those that some row without a user has."""
    unshown: np.ndarray
    """int64: places (`telic.data.phrases.PhraseList.places`) of rows whose id or payload is not
    shown, since their entry has another's."""

    def __len__(self) -> int:
        return len(self.phrases)


class FormCounts(NamedTuple):
    """What the logs tell of each folded form as of a moment; arrays of shape (forms,)."""

    popular: np.ndarray
    recent: np.ndarray
    opened: np.ndarray
    """bool: whether it may be suggested."""
    texts: Sequence[str]
    """Of opened forms: as it was submitted most."""
    spellings: np.ndarray
    """int64: distinct texts."""
    shy: int
    """Forms of no list that too few have submitted."""
    unnamed: int
    """Of these, those that some row without a user has."""


class HeldOut(NamedTuple):
    """The latest submissions, and what was known before the first of them."""

    split: int
    """Their begin, microseconds since 1970."""
    rows: list[tuple[str | None, str, str | None]]
    """User, query and tenant of each, oldest first."""
    opened: bool
    """Whether anything could be suggested before."""
    named: bool
    """Whether any submission before names a user."""
    span: int
    """Microseconds from the first to the last submission before."""


class Gathered:
    """Lists and query logs by folded form, from which the entries of any moment can be made.

    Parameters
    ----------
    listed : PhraseList, optional
    logs : sequence of QueryLog
    min_users : int
        Of a query that no list has, only what so many people submitted is an entry: see
        `Submissions.gathered`.
    duplicates : {"raise", "add", "max"}
        What becomes of a phrase that a list gives twice with different weights.

    Raises
    ------
    InputError
        If there are such phrases and `duplicates` is "raise"; naming phrase and rows.
    """

    def __init__(
        self,
        listed: PhraseList | None,
        logs: Sequence[QueryLog],
        *,
        min_users: int = 3,
        duplicates: Duplicates = "raise",
    ) -> None:
        self.forms: dict[str, int] = {}
        """Folded form → its number."""
        self.listed = listed
        self._list = listed = NO_LIST if listed is None else listed
        self._rows, self._weight, self._distinct = distinct_rows(listed, duplicates)
        folded = encoded_phrases(listed.phrases.take(pa.array(self._rows)))[1]
        coded = folded.cast(pa.large_string()).dictionary_encode()
        self._form_of_row = coded.indices.to_numpy().astype(np.int64)
        self.forms |= {form: f for f, form in enumerate(coded.dictionary.to_pylist())}
        self.texts: list[str] = []
        """Distinct queries of the logs."""
        self.users: list[str] = []
        numbers: dict[str, int] = {}
        names: dict[str, int] = {}
        nothing = np.empty(0, np.int64)
        parts = [(nothing, nothing, nothing, np.empty(0), np.empty(0, bool))]
        for log in logs:
            query = np.array([numbers.setdefault(q, len(numbers)) for q in log.queries], np.int64)
            known = [-1 if u is None else names.setdefault(u, len(names)) for u in log.users]
            user = np.array(known, np.int64)[log.user]
            parts.append((log.at, query[log.query], user, log.count, log.vouched))
        self.texts, self.users = list(numbers), list(names)
        self.form_of = np.array([self._form(text) for text in self.texts], np.int64)
        at, query, user, count, vouched = (
            np.concatenate(columns) for columns in zip(*parts, strict=True)
        )
        order = np.argsort(at, kind="stable")
        self.query = query[order]
        """int64 (m,): text of each submission, in time order."""
        forms = self.form_of[self.query] if len(self.texts) else self.query
        by_form = [(at[order], forms, user[order], count[order], vouched[order])]
        networks, network = joined_group(logs, "network")
        self.submissions = Submissions.gathered(
            by_form, min_users=min_users, network=network[order] if networks else None
        )
        """By folded form."""

    @property
    def in_list(self) -> np.ndarray:
        """Whether the list has each folded form."""
        found = np.zeros(len(self.forms), bool)
        found[self._form_of_row] = True
        return found

    def listed_forms(self) -> set[str]:
        """Return the folded forms that the list has."""
        in_list = self.in_list
        return {form for form, number in self.forms.items() if in_list[number]}

    def _form(self, text: str) -> int:
        return self.forms.setdefault(fold(text), len(self.forms))

    def entries(self, *, until: int | None = None) -> Entries:
        """Make the entries as of a moment (microseconds since 1970); by default of the end."""
        counts, listed = self.counts(until=until), self._list
        contexts = [_ranks(column)[self._rows] for column in listed.contexts.values()]
        group = _numbered([self._form_of_row, *contexts])
        groups = int(group.max(initial=-1)) + 1
        weight = np.bincount(group, self._weight, groups)
        # The heaviest row of a group gives it its spelling; id and payload come from the heaviest
        # that has any.
        order = np.lexsort((np.arange(len(group)), -self._weight, group))
        first = order[np.unique(group[order], return_index=True)[1]]
        phrases = listed.phrases.take(pa.array(self._rows[first])).to_pylist()
        weights = self._weight[self._distinct]
        carrier, unshown = carriers(listed, group[self._distinct], weights)
        more = np.flatnonzero(counts.opened & ~self.in_list)
        phrases += [counts.texts[f] for f in more.tolist()]
        form = np.concatenate([self._form_of_row[first], more])

        def column(values: pa.Array | None, rows: np.ndarray) -> list[str | None]:
            kept: list[str | None] = [None] * groups
            if values is not None:
                kept = values.take(pa.array(rows)).to_pylist()
            return kept + [None] * len(more)

        columns = map(_codes, (listed.phrases, *listed.contexts.values()))
        distinct = int(_numbered(list(columns)).max(initial=-1)) + 1
        return Entries(
            phrases,
            np.concatenate([weight, np.zeros(len(more))]) + counts.popular[form],
            counts.recent[form],
            column(listed.ids, carrier),
            column(listed.payloads, carrier),
            {name: column(of, self._rows[first]) for name, of in listed.contexts.items()},
            distinct + int(counts.spellings[more].sum()),
            counts.shy,
            counts.unnamed,
            unshown,
        )

    def counts(self, *, until: int | None = None) -> FormCounts:
        """Count submissions as of a moment (microseconds since 1970); by default of the end."""
        events, size = self.submissions, len(self.forms)
        now = events.end if until is None else until
        before = events.at < now
        recent = before & (events.at >= now - WINDOW)
        opened = np.bincount(events.query[before], events.opens[before], size) > 0
        seen = np.bincount(events.query[before], minlength=size) > 0
        shy = seen & ~opened & ~self.in_list
        unnamed = np.bincount(events.query[before], events.user[before] < 0, size) > 0
        return FormCounts(
            np.bincount(events.query[before], events.count[before], size),
            np.bincount(events.query[recent], events.count[recent], size),
            opened,
            [self.texts[t] if t >= 0 else "" for t in self._spelled(before)],
            np.bincount(self.form_of, minlength=size),
            int(shy.sum()),
            int((shy & unnamed).sum()),
        )

    @property
    def named(self) -> bool:
        """Whether any submission names a user."""
        return bool(self.users)

    def held_out(self, most: int) -> HeldOut | None:
        """Return the latest submissions, `most` of them or a quarter; None if few."""
        return held_out_of({None: self}, most)

    def histories(self, entries: Entries, *, until: int | None = None) -> dict[str, dict]:
        """Return what each user submitted before a moment: user → query → count, oldest first.

        A query is spelled as its entry is, or where it is none as the user last spelled it.
        """
        if not self.users:
            return {}
        events, forms = self.submissions, list(self.forms)
        chosen = events.user >= 0
        if until is not None:
            chosen &= events.at < until
        of = np.flatnonzero(chosen)
        columns = (events.user[of], events.query[of], self.query[of], events.count[of])
        rows = (
            (self.users[user], forms[form], self.texts[text], count)
            for user, form, text, count in zip(*(c.tolist() for c in columns), strict=True)
        )
        return histories_of(rows, {user: {} for user in self.users}, entries)

    def kept(self) -> dict[int, Kept]:
        """Return what would be suggested if so many users must have submitted a phrase."""
        return kept(self.submissions, self.in_list)

    def kept_back(self) -> dict[str, Any]:
        """Say what would be suggested, and lost, if so many users must have submitted a phrase."""
        return said_by_k(self.kept())

    def _spelled(self, before: np.ndarray) -> np.ndarray:
        """Text by which each form of the logs was submitted most, the first of equals."""
        best = np.full(len(self.forms), -1, np.int64)
        if len(self.texts):
            counts = np.bincount(
                self.query[before], self.submissions.count[before], len(self.texts)
            )
            order = np.lexsort((np.arange(len(self.texts)), -counts))[::-1]
            best[self.form_of[order]] = order
        return best


def histories_of(
    rows: Iterable[tuple[str, str, str, float]], own: dict[str, dict], entries: Entries
) -> dict[str, dict]:
    """Add submissions, oldest first, to users' own: see `Gathered.histories`.

    Each is a user, a folded form, the text that was submitted, and a count.
    """
    shown = {fold(phrase): phrase for phrase in reversed(entries.phrases)}
    last: dict[tuple[str, str], str] = {}
    for user, form, text, count in rows:
        history = own.setdefault(user, {})
        spelled = shown.get(form) or text
        before = history.pop(last.get((user, form), spelled), 0.0)
        history[spelled] = before + count
        last[user, form] = spelled
    return own


def held_out_of(parts: Mapping[str | None, Gathered], most: int) -> HeldOut | None:
    """Return the latest submissions of each tenant's logs together, as `Gathered.held_out` does."""
    counted = [part.submissions for part in parts.values()]
    at, user, opens = (
        np.concatenate([getattr(each, name) for each in counted])
        for name in ("at", "user", "opens")
    )
    of = np.repeat(np.arange(len(counted)), [len(each.at) for each in counted])
    number = np.concatenate([np.arange(len(each.at)) for each in counted])
    order = np.argsort(at, kind="stable")
    held = min(most, len(at) // 4)
    if held < FEWEST:
        return None
    split = int(at[order[-held]])
    before = order[: int(np.searchsorted(at[order], split))]
    if not len(before):
        return None
    rows, tenants = [], list(parts.items())
    for e in order[-held:]:
        tenant, part = tenants[of[e]]
        name = part.users[user[e]] if user[e] >= 0 else None
        rows.append((name, part.texts[part.query[number[e]]], tenant))
    return HeldOut(
        split,
        rows,
        bool(opens[before].any()),
        bool((user[before] >= 0).any()),
        int(at[before[-1]]) - int(at[before[0]]),
    )


def _codes(column: pa.Array) -> np.ndarray:
    coded = column.dictionary_encode(null_encoding="encode").indices
    return coded.to_numpy(zero_copy_only=False).astype(np.int64)


def _ranks(column: pa.Array) -> np.ndarray:
    """Number the values of a column in their order; what is null comes last."""
    coded = column.dictionary_encode(null_encoding="encode")
    order = pc.sort_indices(coded.dictionary).to_numpy()
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[coded.indices.to_numpy(zero_copy_only=False)]


def _numbered(columns: list[np.ndarray]) -> np.ndarray:
    """Number the distinct rows of some integer columns."""
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        number = np.unique(number * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[
            1
        ]
    return number


def carriers(
    listed: PhraseList, entry: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the row that gives each entry its id and payload, and the places of those with others.

    Of an entry's rows it is the heaviest that has any, the first of equals.
    """
    given = [column for column in (listed.ids, listed.payloads) if column is not None]
    has = np.zeros(len(listed), bool)
    for column in given:
        has |= column.is_valid().to_numpy(zero_copy_only=False)
    order = np.lexsort((np.arange(len(entry)), -weight, ~has, entry))
    rows = order[np.unique(entry[order], return_index=True)[1]]
    others = np.flatnonzero(has & (rows[entry] != np.arange(len(entry))))
    if not len(others):
        return rows, np.empty(0, np.int64)
    pairs = pa.array(np.concatenate([others, rows[entry[others]]]))
    said = _numbered([_codes(column.take(pairs)) for column in given])
    return rows, listed.places[others[said[: len(others)] != said[len(others) :]]]


def unshown_said(places: np.ndarray, files: Sequence[str]) -> dict[str, str]:
    """Say of how many rows id and payload are not shown; nothing if of none."""
    if not len(places):
        return {}
    first = place_said(int(places.min()), files)
    return {
        UNSHOWN: f"{len(places)}, the first {first}; a phrase has those of one row: word phrases "
        "differently, or give them contexts to filter by"
    }


def distinct_rows(
    listed: PhraseList, duplicates: Duplicates
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of a list that differ in phrase, context or id, the first of each, and its weight.

    The third array says which of these each row of the list is alike. Without weights, a phrase
    weighs as often as it comes.
    """
    expect_one_of(("raise", "add", "max"), duplicates=duplicates)
    columns = [_codes(listed.phrases), *(_codes(c) for c in listed.contexts.values())]
    columns += [] if listed.ids is None else [_codes(listed.ids)]
    group = _numbered(columns)
    _, first = np.unique(group, return_index=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    first, group = first[order], place[group]
    if listed.weights is None:
        return first, np.bincount(group, minlength=len(first)).astype(float), group
    weights = listed.weights
    if duplicates == "raise":
        differs = np.flatnonzero(weights != weights[first][group])
        if len(differs):
            row = int(differs[0])
            there = int(first[group[row]])
            phrase = listed.phrases[row].as_py()
            raise InputError(
                f"{listed.where(row)}: phrase {phrase[:60]!r} has weight {weights[row]:g}, but "
                f"{weights[there]:g} in {listed.where(there)}. Keep one of them, or say what to do "
                "with --duplicates add (or max)."
            )
        return first, weights[first], group
    if duplicates == "add":
        return first, np.bincount(group, weights, len(first)), group
    heaviest = np.zeros(len(first))
    np.maximum.at(heaviest, group, weights)
    return first, heaviest, group
