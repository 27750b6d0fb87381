"""Two fitted completers on one log: what each would have suggested, side by side."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from telic.completion.box.completer import Completer
from telic.completion.box.composition import Composition
from telic.completion.box.user_state import UserState
from telic.completion.engine.folding import place_among
from telic.completion.fit.tenants import name_in
from telic.completion.learning.phone_ranker import Phone
from telic.data.compositions import CompositionLog
from telic.errors import expect_whole
from telic.evaluate import PairedTest, paired_t_test
from telic.report.table import Table, finite

PLACES = (1, 2, 3, 5, 10)
"""The k of success at k, as far as so many are shown."""


@dataclass(frozen=True)
class Walk:
    """What a completer would have suggested at every keystroke of a log."""

    rank: np.ndarray
    """int32 (K,): place of what was submitted in the list at each keystroke, in its spelling or one
    that folds alike, as a service counts it whether or not it merges spellings; 0: not in it."""
    keystrokes: np.ndarray
    """int32 (n,): keys by composition until the list had what was submitted, and one to take it. At
    most those that were typed and the characters that were left to type then."""


def walk(
    completer: Completer,
    log: CompositionLog,
    *,
    show: int = 10,
    progress: Callable[[str], None] = lambda step: None,
) -> Walk:
    """Type a log again, key by key in time order, with a completer.

    What a user submits meanwhile in another composition, as in another window, teaches from then
    on, as in a service; a habit it is from the next composition on.

    Feedback is on the lists that the log says were shown. Each submission teaches the completer's
    copy of its user, as in a service; what all users share stays as it was fitted, so a log from
    after the fit is what measures it.

    Parameters
    ----------
    completer : Completer
    log : CompositionLog
    show : int
        Suggestions in a list, at most `Completer.n`.
    progress : callable
        Told each composition when it is submitted.
    """
    users: dict[str, UserState] = {}
    rank = np.zeros(len(log.at), np.int32)
    keystrokes = np.empty(len(log), np.int32)
    owner = np.repeat(np.arange(len(log)), np.diff(log.keystroke_start))
    typings: dict[int, Composition] = {}
    # Keys and submissions as they came; of one moment, the keys first.
    for event in np.argsort(np.concatenate([log.at, log.submitted_at]), kind="stable").tolist():
        if event < len(owner):
            k, c = event, int(owner[event])
            begun, query = int(log.at[log.keystroke_start[c]]), log.phrases[log.query[c]]
            if c not in typings:
                phone, where = _phone(completer, log, c), _where(completer, log, c)
                name = name_in(where["tenant"] if where else None, log.users[log.user[c]])
                if name not in users:
                    users[name] = completer.user(name)
                typings[c] = completer.compose(users[name], phone, where=where, at=begun)
            typed, at = log.prefixes[log.prefix[k]], (int(log.at[k]) - begun) / 1e6
            rank[k] = place_among(query, typings[c].listed(typed, at=at, show=show).texts()) + 1
            shown = log.shown[log.list_start[k] : log.list_start[k + 1]]
            typings[c].shown([log.phrases[q] for q in shown])
            continue
        c = event - len(owner)
        progress(f"composition {c + 1} of {len(log)}")
        first, end = int(log.keystroke_start[c]), int(log.keystroke_start[c + 1])
        query = log.phrases[log.query[c]]
        typings.pop(c).submit(query)
        left = max(len(query) - len(log.prefixes[log.prefix[end - 1]]), 0)
        listed = np.flatnonzero(rank[first:end])
        taken = int(listed[0]) + 2 if len(listed) else end - first + left
        keystrokes[c] = min(taken, end - first + left)
    return Walk(rank, keystrokes)


def _where(completer: Completer, log: CompositionLog, c: int) -> dict[str, str] | None:
    """Return the tenant of a composition, where both the log and the phrases tell tenants apart."""
    if "tenant" not in log.groups or not completer.contexts:
        return None
    names, place = log.groups["tenant"]
    tenant = names[place[c]]
    return {"tenant": tenant} if tenant and "tenant" in completer.contexts.names else None


def _phone(completer: Completer, log: CompositionLog, c: int) -> Phone | None:
    own = slice(log.installed_start[c], log.installed_start[c + 1])
    installed = {
        log.apps[app]: float(opens)
        for app, opens in zip(log.installed_app[own], log.daily_opens[own], strict=True)
    }
    own, begin = slice(log.opened_start[c], log.opened_start[c + 1]), log.at[log.keystroke_start[c]]
    opened = [
        (log.apps[app], int(begin - at) / 60e6)
        for app, at in zip(log.opened_app[own], log.opened_at[own], strict=True)
    ]
    return completer.phone(installed, opened)


@dataclass(frozen=True)
class Measure:
    """One measure of two completers; users are the unit of all its means and intervals."""

    name: str
    a: PairedTest
    b: PairedTest
    difference: PairedTest
    """Of b less a."""

    @classmethod
    def of(
        cls, name: str, a: np.ndarray, b: np.ndarray, user: np.ndarray, *, shares: bool = True
    ) -> "Measure":
        """Measure what was found of the same items, each of a user; `shares` are from 0 to 1."""
        nothing, alone, apart = np.zeros(len(user)), (0.0, 1.0), (-1.0, 1.0)
        return cls(
            name,
            paired_t_test(a, nothing, user, within=alone if shares else None),
            paired_t_test(b, nothing, user, within=alone if shares else None),
            paired_t_test(b, a, user, within=apart if shares else None),
        )


@dataclass(frozen=True)
class Comparison:
    """Two completers on one log."""

    compositions: int
    users: int
    shown: int
    """Suggestions in a list."""
    simulated: bool
    measures: list[Measure]
    """MRR and success at k over keystrokes, then keystrokes by composition."""

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each measure, as ``telic completion replay --json`` shows it."""
        return [
            {
                "measure": each.name,
                "a": each.a.difference,
                "a_low": finite(each.a.low),
                "a_high": finite(each.a.high),
                "b": each.b.difference,
                "b_low": finite(each.b.low),
                "b_high": finite(each.b.high),
            }
            | {name: finite(value) for name, value in each.difference._asdict().items()}
            for each in self.measures
        ]

    def table(self, a: str, b: str) -> Table:
        """Return the table for people, in which the completers have these names."""
        spread = "{:.4f} [{:.4f}, {:.4f}]"

        def values(test: PairedTest) -> list[float | None]:
            return [*map(finite, (test.difference, test.low, test.high))]

        people = "simulated users" if self.simulated else "users"
        return Table(
            f"{b} against {a}, on {self.compositions:,} compositions of {self.users:,} {people}, "
            f"{self.shown} suggestions in a list",
            {"": "", a: spread, b: spread, "difference": "{:+.4f} [{:+.4f}, {:+.4f}]", "p": "p"},
            [
                [
                    each.name,
                    *(values(test) for test in (each.a, each.b, each.difference)),
                    finite(each.difference.p_value),
                ]
                for each in self.measures
            ],
            "Means of users' means with 95 % intervals. The lists are what each model would have "
            "shown for what was typed; with them people might have typed otherwise.",
        )


def compare_completers(
    log: CompositionLog,
    a: Completer,
    b: Completer,
    *,
    show: int = 10,
    progress: Callable[[str], None] = lambda step: None,
) -> Comparison:
    """Compare two completers on a log: MRR, success at k and keystrokes, with users as the unit.

    Parameters
    ----------
    log : CompositionLog
        Later than what they were fitted on: a completer knows all of what it was fitted on.
    a, b : Completer
    show : int
        Suggestions in a list, at least 1; at most what both re-rank, `Completer.n`.
    progress : callable
        Told each composition when it begins, with each completer.

    Returns
    -------
    Comparison
        MRR and success at k are means over keystrokes, see `walk`; all differences are b less a.
        Keystrokes are better the fewer they are.

    Raises
    ------
    InputError
        If no suggestion is shown.

    Examples
    --------
    Two completers, fitted on what was before the log::

        for row in compare_completers(log, a, b).rows():
            print(row["measure"], row["difference"], row["low"], row["high"])
    """
    expect_whole(1, show=show)
    show = min(show, a.n, b.n)
    first, second = (walk(each, log, show=show, progress=progress) for each in (a, b))
    user = np.repeat(log.user, np.diff(log.keystroke_start))

    def reciprocal(walked: Walk) -> np.ndarray:
        return np.where(walked.rank > 0, 1 / np.maximum(walked.rank, 1), 0.0)

    measures = [Measure.of("MRR", reciprocal(first), reciprocal(second), user)]
    for k in PLACES:
        if k <= show:
            hits = [(walked.rank > 0) & (walked.rank <= k) for walked in (first, second)]
            a_hits, b_hits = (hit.astype(float) for hit in hits)
            measures.append(Measure.of(f"success at {k}", a_hits, b_hits, user))
    keystrokes = first.keystrokes, second.keystrokes
    measures.append(Measure.of("keystrokes", *keystrokes, log.user, shares=False))
    return Comparison(len(log), len(np.unique(log.user)), show, log.simulated, measures)
