"""The search box that no feedback moves: popularity, recency and each user's own history."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from telic.completion.box.completer import Completer
from telic.completion.box.user_state import UserState
from telic.completion.engine.filters import Contexts
from telic.completion.engine.payloads import Records
from telic.completion.engine.prefix_index import PrefixIndex
from telic.completion.fit.from_pieces import CountedLog, count_logs
from telic.completion.fit.lists_in_pieces import catalogue_in_pieces
from telic.completion.fit.lost_below_k_users import KEPT_BACK
from telic.completion.fit.merged_phrases import Duplicates, Entries, Gathered, unshown_said
from telic.completion.fit.sources import Sources, source_said
from telic.completion.fit.tenants import GatheredByTenant
from telic.completion.learning.adaqac import D, FeedbackDesign
from telic.completion.learning.do_no_harm import PREFIX_BINS, Gate
from telic.completion.learning.relevance import WINDOW, Relevance, shared_parts
from telic.data.bad_rows import OnBadRow
from telic.data.object_storage import Place, refuse_remote
from telic.scale import Executor
from telic.scale.memory import granted

MIXES = tuple(
    (popular, personal, recent)
    for popular, recent in ((1.0, 0.0), (0.7, 0.3), (0.4, 0.6))
    for personal in (0.0, 0.3, 1.0, 3.0)
)
"""Weights of popular, personal and recent that a query log chooses from."""
HELD_OUT = 1000
"""Most submissions, the latest of a query log, that the weights are chosen by."""
PREFIXES = (1, 2, 3, 5, 8)
"""Lengths of the prefixes of these that are completed."""
NO_SEARCHES = {"trained on": "a list of phrases, no searches"}
"""What is said of a search box of lists alone."""
DEFAULT = (1.0, 1.0, 0.0)
"""The weights where there is no log to choose by."""


def in_pieces(
    sources: Sources,
    executor: Executor,
    folder: Place,
    *,
    n: int,
    min_users: int,
    duplicates: Duplicates,
    on_bad_row: OnBadRow,
    skip_bad: bool,
) -> Completer:
    """Return the box of lists that are merged, or of query logs that are counted, in pieces."""
    if sources.unread_lists:
        refuse_remote(folder, "work", "lists are sorted on this machine's disk")
        folder.mkdir(parents=True, exist_ok=True)
        with granted(executor.own_memory):
            return _of_lists(
                sources, Path(str(folder)), n=n, duplicates=duplicates, on_bad_row=on_bad_row
            )
    counts = count_logs(
        sources.unread,
        executor,
        folder,
        listed=sources.listed,
        min_users=min_users,
        latest=HELD_OUT,
        on_bad_row=on_bad_row,
        skip_bad=skip_bad,
    )
    counted = CountedLog(sources.listed, counts, memory=executor.own_memory, duplicates=duplicates)
    said = (
        source_said(name, shape, *log)
        for (name, shape), log in zip(sources.unread, counts.logs, strict=True)
    )
    spans = counts.first, counts.moments.end - 1, counted.named
    found = sources.said(min_users, spans)
    found["files"] = [file or next(said) for file in sources.files]
    found |= counted.facts()
    skipped = {name: why for report in executor.reports for name, why in report.skipped.items()}
    if skipped:
        found["partitions skipped"] = skipped
    return from_gathered(counted, found, n=n)


def _of_lists(
    sources: Sources, folder: Path, *, n: int, duplicates: Duplicates, on_bad_row: OnBadRow
) -> Completer:
    """Merge lists in pieces to the search box that `_cold` makes of them in memory."""
    relevance = _relevance(DEFAULT, named=False)
    found = catalogue_in_pieces(
        sources.unread_lists,
        folder,
        weights_of=partial(_weights, relevance),
        duplicates=duplicates,
        on_bad_row=on_bad_row,
    )
    facts = {"files": found.files, "possible": sources.possible(), **NO_SEARCHES}
    facts |= _merging(found.spellings - len(found.index))
    facts |= unshown_said(found.unshown, [name for name, _ in sources.unread_lists])
    return _box(found.index, relevance, found.records, found.contexts, n=n, found=facts)


def _relevance(mix: tuple[float, float, float], *, named: bool) -> Relevance:
    name = "personal" if mix[1] and named else ("timesense" if mix[2] else "mpc")
    return Relevance(name, popular=mix[0], personal=mix[1], recent=mix[2])


def _weights(relevance: Relevance, entries: Entries) -> np.ndarray:
    """Return what entries weigh in the index."""
    return shared_parts(entries.popular, entries.recent, relevance.factors, True)


def from_gathered(
    gathered: Gathered | GatheredByTenant,
    found: dict[str, Any],
    *,
    n: int,
    simulated: bool = False,
) -> Completer:
    """Choose the weights of what was gathered, and put it behind a search box."""
    mix = _learned_mix(gathered, n=n)
    if gathered.named:
        found[KEPT_BACK] = gathered.kept_back()
    return _cold(gathered, mix, n=n, simulated=simulated, found=found)


def _cold(
    gathered: Gathered | GatheredByTenant,
    mix: tuple[float, float, float],
    *,
    n: int,
    until: int | None = None,
    simulated: bool = False,
    found: dict[str, Any] | None = None,
) -> Completer:
    """Put what is known at a moment behind a search box that no feedback moves."""
    entries = gathered.entries(until=until)
    relevance = _relevance(mix, named=gathered.named)
    index, given = PrefixIndex.build_ordered(
        entries.phrases, _weights(relevance, entries), apart=np.arange(len(entries))
    )
    users = {
        name: UserState(np.zeros(D), history=history, previous=next(reversed(history), None))
        for name, history in gathered.histories(entries, until=until).items()
        if history
    }
    return _box(
        index,
        relevance,
        _records(entries, given),
        _contexts(entries, given),
        users=users,
        n=n,
        simulated=simulated,
        found=(found or {})
        | _merging(entries.spellings - len(entries), entries.shy, entries.unnamed)
        | unshown_said(entries.unshown, gathered.listed.sources if gathered.listed else ()),
    )


def _box(
    index: PrefixIndex,
    relevance: Relevance,
    records: Records | None,
    contexts: Contexts | None,
    *,
    n: int,
    found: dict[str, Any],
    users: dict[str, UserState] | None = None,
    simulated: bool = False,
) -> Completer:
    """Return a search box that no feedback moves."""
    users = users or {}
    gate = Gate(False, np.zeros(len(PREFIX_BINS), bool), np.zeros(len(users), bool))
    return Completer(
        index,
        relevance,
        FeedbackDesign(np.ones(D), False),
        np.zeros(D),
        users,
        gate,
        "static",
        n,
        0.0,
        "careful",
        simulated,
        records=records,
        merged=True,
        contexts=contexts,
        found=found,
    )


def _learned_mix(gathered: Gathered | GatheredByTenant, *, n: int) -> tuple[float, float, float]:
    """Choose the weights by the latest submissions, completed with what was known before them."""
    held = gathered.held_out(HELD_OUT)
    if held is None or not held.opened:
        return DEFAULT

    def accuracy(mix: tuple[float, float, float]) -> float:
        completer = _cold(gathered, mix, n=n, until=held.split)
        total = 0.0
        for user, text, tenant in held.rows:
            where = {"tenant": tenant} if tenant is not None else None
            typing = completer.compose(completer.user(user), where=where)
            wanted = typing.known_as(text)
            for length in PREFIXES:
                if length <= len(wanted):
                    texts = [s.text for s in typing.suggest(wanted[:length], at=0.0)]
                    total += 1 / (1 + texts.index(wanted)) if wanted in texts else 0.0
        return total

    mixes = [mix for mix in MIXES if held.named or not mix[1]]
    if held.span < 2 * WINDOW:
        mixes = [mix for mix in mixes if not mix[2]]  # all of the log is recent
    return max(mixes, key=accuracy)


def _records(entries: Entries, given: np.ndarray) -> Records | None:
    if not any(entries.ids) and not any(entries.payloads):
        return None
    return Records.of([entries.ids[i] for i in given], [entries.payloads[i] for i in given])


def _contexts(entries: Entries, given: np.ndarray) -> Contexts | None:
    columns = {name: [values[i] for i in given] for name, values in entries.contexts.items()}
    return Contexts.of(columns) if columns else None


def _merging(spellings: int, shy: int = 0, unnamed: int = 0) -> dict[str, Any]:
    said = {"spellings merged into others": spellings, "queries kept back, too few users": shy}
    if unnamed:
        said["queries kept back that rows without a user hold, too"] = unnamed
    return said
