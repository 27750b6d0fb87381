"""Query logs of several tenants: what the users of one submit, the others never see."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from telic.completion.engine.filters import TENANT
from telic.completion.engine.folding import fold
from telic.completion.fit.lost_below_k_users import KS, Kept, said_by_k
from telic.completion.fit.merged_phrases import (
    Duplicates,
    Entries,
    Gathered,
    HeldOut,
    distinct_rows,
    held_out_of,
)
from telic.data.compositions import CompositionLog
from telic.data.phrases import PhraseList
from telic.data.queries import QueryLog, joined_group
from telic.errors import InputError

DEFAULT = "default"
"""The tenant whose users have no prefix, as without keys."""
MOST = 50
"""Tenants of which it is said what k loses, those with most submissions."""


def name_in(tenant: str | None, user: str) -> str:
    """Return the id by which a tenant's user is kept apart from other tenants'.

    InputError if the tenant's name has a colon: user b:c of tenant a would be user c of a:b.

    Examples
    --------
    >>> name_in("shop", "ada"), name_in("shop", "shop:ada"), name_in("default", "ada")
    ('shop:ada', 'shop:ada', 'ada')
    """
    if tenant is not None and ":" in tenant:
        raise InputError(
            f"tenant {tenant!r}: has a colon, which comes between the tenant and the user in a "
            "user's id. Call the tenant otherwise, as its key does."
        )
    if tenant is None or user.startswith(f"{tenant}:") or (tenant == DEFAULT and ":" not in user):
        return user
    return f"{tenant}:{user}"


def in_tenant(log: CompositionLog, tenant: str) -> CompositionLog:
    """Return the log of one tenant alone, with its users under the names that `name_in` gives."""
    names = [name_in(tenant, user) for user in log.users]
    users, number = np.unique(names, return_inverse=True)
    groups = {name: of for name, of in log.groups.items() if name != TENANT}
    user = number.astype(np.int32)[log.user]
    return replace(log, users=users.tolist(), user=user, groups=groups)


class GatheredByTenant:
    """Lists and query logs of several tenants; does what `Gathered` does, for each apart.

    What a tenant's users submit is that tenant's own: phrase, spelling, popularity and history. Of
    a list a tenant has the rows that are its own and those that are nobody's.

    Parameters
    ----------
    listed, logs, min_users, duplicates
        As of `Gathered`.
    """

    def __init__(
        self,
        listed: PhraseList | None,
        logs: Sequence[QueryLog],
        *,
        min_users: int = 3,
        duplicates: Duplicates = "raise",
    ) -> None:
        if listed is not None:
            distinct_rows(listed, duplicates)  # says what is wrong, and in which file
        self.listed = listed
        tenants, place = joined_group(logs, TENANT)
        begins = np.cumsum([0, *(len(log.query) for log in logs)])
        order = np.argsort(place, kind="stable")
        bounds = np.searchsorted(place[order], np.arange(-1, len(tenants) + 1))
        rows_of_list = _ListRows(listed, set(tenants))
        self.parts: dict[str | None, Gathered] = {}
        for t, name in enumerate([None, *tenants]):
            rows = order[bounds[t] : bounds[t + 1]]
            own = [
                _rows_of(log, rows[(rows >= begin) & (rows < begin + len(log.query))] - begin, name)
                for log, begin in zip(logs, begins, strict=False)
            ]
            own = [log for log in own if len(log.query)]
            self.parts[name] = Gathered(
                rows_of_list.of(name, own), own, min_users=min_users, duplicates=duplicates
            )
        self._unsearched = Gathered(
            rows_of_list.unsearched(), [], min_users=min_users, duplicates=duplicates
        )
        counted = [part.submissions for part in self.parts.values()]
        self._end = max(each.end for each in counted if len(each.at))

    @property
    def named(self) -> bool:
        """Whether any submission names a user."""
        return any(part.named for part in self.parts.values())

    def entries(self, *, until: int | None = None) -> Entries:
        """Make the entries as of a moment; by default of the end."""
        found = []
        for name, part in self.parts.items():
            each = part.entries(until=self._end if until is None else until)
            if name is not None:
                each = replace(each, contexts=each.contexts | {TENANT: [name] * len(each)})
            found.append(each)
        found.append(self._unsearched.entries())
        names = list(dict.fromkeys([TENANT, *(c for each in found for c in each.contexts)]))
        return Entries(
            [phrase for each in found for phrase in each.phrases],
            np.concatenate([each.popular for each in found]),
            np.concatenate([each.recent for each in found]),
            [id for each in found for id in each.ids],
            [payload for each in found for payload in each.payloads],
            {
                name: [
                    value for each in found for value in each.contexts.get(name, [None] * len(each))
                ]
                for name in names
            },
            sum(each.spellings for each in found),
            sum(each.shy for each in found),
            sum(each.unnamed for each in found),
            np.unique(np.concatenate([each.unshown for each in found])),
        )

    def histories(self, entries: Entries, *, until: int | None = None) -> dict[str, dict]:
        """Return what each user submitted before a moment, under the user's name in the tenant."""
        phrases: dict[str | None, list[str]] = {name: [] for name in self.parts}
        for phrase, tenant in zip(entries.phrases, entries.contexts[TENANT], strict=True):
            phrases.setdefault(tenant, []).append(phrase)
        shared = {fold(phrase): phrase for phrase in reversed(phrases[None])}
        found: dict[str, dict] = {}
        for name, part in self.parts.items():
            # The tenant's own spelling comes before the list's.
            known = [*phrases[name], *(shared[form] for form in part.forms if form in shared)]
            own = part.histories(replace(entries, phrases=known), until=until)
            for user, history in own.items():
                counts = found.setdefault(user, {})  # of the default tenant and of none: one user
                for phrase, count in history.items():
                    counts[phrase] = counts.get(phrase, 0.0) + count
        return found

    def held_out(self, most: int) -> HeldOut | None:
        """Return the latest submissions, `most` of them or a quarter; None if few."""
        return held_out_of(self.parts, most)

    def kept_back(self) -> dict[str, Any]:
        """Say what would be suggested, and lost, of all users' phrases and of each tenant's."""
        found = {name: part.kept() for name, part in self.parts.items()}
        # A phrase counts once for each tenant whose own it is; of a list, once in all.
        listed = {name: part.listed_forms() for name, part in self.parts.items()}
        everywhere = self._unsearched.listed_forms().union(*listed.values())
        total = {
            k: Kept(
                len(everywhere)
                + sum(each[k].phrases - len(listed[name]) for name, each in found.items()),
                sum(each[k].submitted for each in found.values()),
                sum(each[k].everything for each in found.values()),
            )
            for k in KS
        }
        largest = sorted(
            (name for name in self.parts if name is not None),
            key=lambda name: -len(self.parts[name].submissions.at),
        )[:MOST]
        by_tenant = {name: said_by_k(found[name]) for name in largest}
        return said_by_k(total) | {"by tenant": by_tenant}


class _ListRows:
    """The rows of a list, by whose they are."""

    def __init__(self, listed: PhraseList | None, tenants: set[str]) -> None:
        self._listed = listed
        self._own: dict[str | None, list[int]] = {}
        self._unsearched: list[int] = []
        self._shared: dict[str, list[int]] = {}
        if listed is None:
            return
        nobodys = pa.nulls(len(listed), pa.string())
        limits = listed.contexts.get(TENANT, nobodys).to_pylist()
        for row, (phrase, limit) in enumerate(zip(listed.phrases.to_pylist(), limits, strict=True)):
            if limit is None or limit in tenants:
                self._own.setdefault(limit, []).append(row)
            else:
                self._unsearched.append(row)
            if limit is None:
                self._shared.setdefault(fold(phrase), []).append(row)

    def of(self, tenant: str | None, logs: Sequence[QueryLog]) -> PhraseList | None:
        """Return a tenant's rows, and nobody's of what its users submitted."""
        rows = list(self._own.get(tenant, []))
        if tenant is not None:
            forms = {fold(query) for log in logs for query in log.queries}
            rows += [row for form in sorted(forms) for row in self._shared.get(form, [])]
        return self._taken(rows)

    def unsearched(self) -> PhraseList | None:
        """Return the rows of all tenants without a log, which keep their limits.

        Nobody's searches are not these tenants': they make a phrase for everybody.
        """
        return self._taken(self._unsearched)

    def _taken(self, rows: list[int]) -> PhraseList | None:
        if self._listed is None or not rows:
            return None
        return _list_rows(self._listed, np.sort(rows))


def _list_rows(listed: PhraseList, rows: np.ndarray) -> PhraseList:
    taken = pa.array(rows)
    return replace(
        listed,
        phrases=listed.phrases.take(taken),
        weights=None if listed.weights is None else listed.weights[rows],
        ids=None if listed.ids is None else listed.ids.take(taken),
        payloads=None if listed.payloads is None else listed.payloads.take(taken),
        contexts={name: values.take(taken) for name, values in listed.contexts.items()},
        rows=listed.rows[rows],
        file=None if listed.file is None else listed.file[rows],
    )


def _rows_of(log: QueryLog, rows: np.ndarray, tenant: str | None) -> QueryLog:
    """Return a tenant's rows of a log, with their queries, and users as `name_in` names them.

    A user who stands there with and without the tenant's prefix is one.
    """
    queries, query = np.unique(log.query[rows], return_inverse=True)
    given, user = np.unique(log.user[rows], return_inverse=True)
    names = [
        None if (name := log.users[u]) is None else name_in(tenant, name) for u in given.tolist()
    ]
    place = {name: number for number, name in enumerate(dict.fromkeys(names))}
    number = np.array([place[name] for name in names], np.int32)
    return replace(
        log,
        queries=[log.queries[q] for q in queries],
        query=query.astype(np.int32),
        at=log.at[rows],
        users=list(place),
        user=number[user],
        count=log.count[rows],
        groups={name: (values, of[rows]) for name, (values, of) in log.groups.items()},
        of_catalogue=log.vouched[rows],
    )
