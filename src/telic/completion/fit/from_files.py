"""A search box from the files that people have: lists, query logs, composition logs."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from telic.completion.box.completer import OF_COMPOSITIONS, Completer
from telic.completion.engine.filters import Contexts
from telic.completion.engine.payloads import Records
from telic.completion.engine.prefix_index import PrefixIndex
from telic.completion.engine.word_index import WordIndex
from telic.completion.fit.from_compositions import fit_completer
from telic.completion.fit.from_pieces import work_folder
from telic.completion.fit.from_searches import fit_signals
from telic.completion.fit.lost_below_k_users import KEPT_BACK, kept, said_by_k
from telic.completion.fit.merged_phrases import Duplicates, Gathered, unshown_said
from telic.completion.fit.sources import (
    Sources,
    as_catalogue,
    joined_logs,
    read_sources,
    submissions_of,
)
from telic.completion.fit.static_box import NO_SEARCHES, from_gathered, in_pieces
from telic.completion.fit.tenants import GatheredByTenant, in_tenant, name_in
from telic.completion.learning.adaqac import CAREFUL, Protocol
from telic.completion.learning.app_features import MINUTES
from telic.completion.learning.replayed_log import Replay
from telic.completion.signals.compositions import Compositions, joined_submissions
from telic.completion.signals.log_split import SESSION_GAP, Searches
from telic.data.bad_rows import OnBadRow
from telic.data.compositions import CompositionLog
from telic.data.object_storage import Place, is_remote
from telic.data.phrases import PhraseList
from telic.data.queries import joined_group, only_tenant
from telic.errors import InputError, expect_one_of, expect_whole
from telic.scale import Executor


def fit_files(
    *paths: str | Path,
    columns: Mapping[str, str] | None = None,
    min_users: int = 3,
    duplicates: Duplicates = "raise",
    on_bad_row: OnBadRow = "raise",
    relevance: str = "personal-s",
    model: str | None = None,
    protocol: Protocol = CAREFUL,
    n: int = 10,
    min_compositions: int = 8,
    minutes: float = MINUTES,
    words: bool = True,
    executor: Executor | None = None,
    work: str | Place | None = None,
    skip_bad: bool = False,
    signals: Sequence[str] | Literal["all"] | None = None,
    session_gap: float = SESSION_GAP,
    seed: int = 0,
) -> Completer:
    r"""Fit a search box on files: lists of phrases, query logs, composition logs, or several.

    With a composition log in which some user has `min_compositions`, this is `fit_completer` with
    the other files as what was known before. Without one nothing is invented. All users share
    popularity and recency, as far as the files tell them, and users of a query log bring their own
    history. The weights of the three are those that complete the latest submissions of the query
    log best (mean reciprocal rank over prefixes of `PREFIXES` characters). Feedback moves nothing
    until there is a log of it.

    Parameters
    ----------
    *paths : path
        CSV, TSV, JSON lines, Parquet, or text with a phrase a line.
    columns : mapping of str to str, optional
        Role → column, such as ``{"phrase": "product", "brand": "brand_name"}``: see
        `telic.data.recognised_columns.shape_of`.
    min_users : int
        Of a query log, only what so many users submitted is suggested to others.
    duplicates : {"raise", "add", "max"}
        What becomes of a phrase that a list gives twice with different weights.
    on_bad_row : {"raise", "skip"}
    relevance, model, protocol, n, min_compositions, minutes
        With a composition log: see `fit_completer`. `n` also applies without one, `minutes` also to
        signals.
    words : bool
        Fill lists that the prefix leaves room in by the words typed, see `WordIndex`; never under a
        protocol whose relevance is no logarithm.
    executor : telic.scale.Executor, optional
        Count query logs in pieces there, which gives the same search box however large they are.
        The weights of a composition log's users are learned there; what is long of the log lies in
        temporary files, and its users are ranked in runs.
        Lists alone are merged in pieces by this process, within the engine's memory; beside logs,
        they are read whole. Users' own queries are left out, and a fact says so, where they do not
        fit into memory.
    work : path, optional
        Folder of the pieces, on storage that all workers reach; a job that was interrupted goes on
        there. It may be an address on object storage, but for lists. By default a temporary folder
        of this machine, which is removed.
    skip_bad : bool
        Leave out partitions of a log that cannot be worked on; a fact names them.
    signals : sequence of str or "all", optional
        Rank by these groups of signals, of query logs or a composition log: see `fit_signals`.
    session_gap : float
        With signals: minutes without a search that end a session.
    seed : int
        With signals: draws who is learned from.

    Raises
    ------
    InputError
        If a file, column or row cannot be used, or there is nothing to suggest.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "titles.csv"
    >>> _ = file.write_text("title,views\nTea,3\nTeapot,9\n")
    >>> [suggestion.text for suggestion in fit_files(file).suggest("te")]
    ['Teapot', 'Tea']
    """
    if isinstance(signals, str) and signals != "all":
        signals = (signals,)
    if signals is not None and (executor is not None or model is not None):
        raise InputError(
            "signals are a model of their own, fitted on query logs that are read whole. Leave "
            "out the other model, and --memory and --cluster."
        )
    expect_whole(1, min_users=min_users)
    if model is not None:
        expect_one_of(OF_COMPOSITIONS, model=model)
    sources = read_sources(
        paths,
        columns=columns,
        on_bad_row=on_bad_row,
        in_pieces=executor is not None,
        folder=None if executor is None else _disk_of(work),
    )
    log = sources.compositions
    if signals is not None:
        searches = searches_of(
            sources,
            paths,
            session_gap=session_gap,
            min_users=min_users,
            seed=seed,
            minutes=minutes,
        )
        found = searches_found(sources, searches)
        fitted = replace(fit_signals(searches, None if signals == "all" else signals), found=found)
    elif executor is not None and log is None:
        _refuse_to_learn(model, ", not from query logs")
        with work_folder(work) as folder:
            fitted = in_pieces(
                sources,
                executor,
                folder,
                n=n,
                min_users=min_users,
                duplicates=duplicates,
                on_bad_row=on_bad_row,
                skip_bad=skip_bad,
            )
    elif skip_bad and executor is not None:
        raise InputError(
            "a fit on a composition log needs every partition. Leave out --skip-bad-partitions."
        )
    elif log is not None and int(np.bincount(log.user).max()) >= min_compositions:
        fitted = _with_feedback(
            sources,
            log,
            min_compositions=min_compositions,
            min_users=min_users,
            duplicates=duplicates,
            relevance=relevance,
            model=model or "adaqac-online",
            protocol=protocol,
            n=n,
            minutes=minutes,
            executor=executor,
            work=work,
        )
        words = words and protocol.scale == "log"
    else:
        fitted = _without_feedback(
            sources,
            model=model,
            min_compositions=min_compositions,
            n=n,
            min_users=min_users,
            duplicates=duplicates,
        )
    return with_words(fitted) if words else fitted


def _disk_of(work: str | Place | None) -> Path:
    """Return a folder on the disk of a job, or of what is temporary."""
    if work is None or is_remote(work):
        return Path(tempfile.gettempdir())
    here = Path(str(work)).absolute()
    return next(folder for folder in (here, *here.parents) if folder.is_dir())


def _refuse_to_learn(model: str | None, why: str) -> None:
    if model not in (None, "static"):
        raise InputError(f"model is {model!r}, which learns from feedback{why}.")


def _with_feedback(
    sources: Sources,
    log: CompositionLog,
    *,
    min_compositions: int,
    min_users: int,
    duplicates: Duplicates,
    **given: Any,
) -> Completer:
    """Learn from the skips of a composition log; the other files are what was known before.

    `given` is what `fit_completer` takes beside the replay.
    """
    tenant = only_tenant([log, *sources.logs])
    others = sources.logs
    if tenant is not None:
        # Less the one tenant, which the phrases are limited to, and the users are named after.
        log = in_tenant(log, tenant)
        others = [
            replace(
                one,
                users=[None if u is None else name_in(tenant, u) for u in one.users],
                groups={name: of for name, of in one.groups.items() if name != "tenant"},
            )
            for one in others
        ]
    others = others + ([as_catalogue(sources.listed, duplicates)] if sources.listed else [])
    queries = joined_logs(others) if others else None
    replay = Replay(log, queries=queries, min_compositions=min_compositions, min_users=min_users)
    vouched = np.zeros(len(replay.index), bool)
    found = sources.said(min_users)
    found[KEPT_BACK] = said_by_k(kept(replay.submissions, vouched))
    fitted = fit_completer(replay, **given)
    records, unshown = _records_by_text(sources.listed, fitted.index)
    return replace(
        fitted,
        found=found | unshown,
        records=records,
        contexts=_contexts_by_text(sources, fitted.index, tenant),
    )


def _without_feedback(
    sources: Sources,
    *,
    model: str | None,
    min_compositions: int,
    n: int,
    min_users: int,
    duplicates: Duplicates,
) -> Completer:
    """Put popularity, recency and own history behind a search box that no feedback moves."""
    found = sources.said(min_users)
    log = sources.compositions
    if log is not None:
        longest = int(np.bincount(log.user).max())
        found["possible"]["feedback"] = (
            f"not yet: no user has {min_compositions} compositions (the most is {longest})"
        )
        sources.logs.append(submissions_of(log))
    elif not sources.logs:
        found |= NO_SEARCHES
    _refuse_to_learn(model, f"; {found['possible']['feedback']}")
    several = joined_group(sources.logs, "tenant")[0]
    gathered = (GatheredByTenant if several else Gathered)(
        sources.listed, sources.logs, min_users=min_users, duplicates=duplicates
    )
    simulated = log is not None and log.simulated
    return from_gathered(gathered, found, n=n, simulated=simulated)


def searches_of(
    sources: Sources,
    paths: Sequence[str | Path],
    *,
    session_gap: float = SESSION_GAP,
    min_users: int = 3,
    seed: int = 0,
    minutes: float = MINUTES,
) -> Searches:
    """Return query logs, or a composition log with query logs from before, ready for signals.

    Raises
    ------
    InputError
        If there are lists among the sources, or there is no log.
    """
    log = sources.compositions
    if sources.listed or not (sources.logs or log):
        raise InputError(
            f"{', '.join(map(str, paths))}: expected query logs, with a time in each row, or a "
            "composition log; a list has no times. Name the column of times with --column at=NAME."
        )
    given: dict[str, Any] = {"session_gap": session_gap, "min_users": min_users, "seed": seed}
    if log is None:
        return Searches(joined_logs(sources.logs), **given)
    joined = joined_logs([joined_submissions(log), *sources.logs])
    return Compositions(log, joined, minutes=minutes, **given)


def searches_found(sources: Sources, searches: Searches) -> dict[str, Any]:
    """Return what is said of the files that signals were fitted on."""
    nobody = np.zeros(len(searches.index), bool)
    said = {KEPT_BACK: said_by_k(kept(searches.submissions, nobody))}
    return sources.said(searches.min_users) | said


def with_words(completer: Completer) -> Completer:
    """Return a completer that also finds phrases by the words in them, and by mistyped ones."""
    return replace(completer, words=WordIndex.build(completer.index))


def _contexts_by_text(sources: Sources, index: PrefixIndex, tenant: str | None) -> Contexts | None:
    """Give the phrases of a fitted index the contexts that a list has for their spelling.

    Where the log is a tenant's, what no list has is that tenant's own.
    """
    listed = sources.listed
    columns: dict[str, list[str | None]] = {}
    if tenant is not None:
        vouched = set() if listed is None else {*map(index.find, listed.phrases.to_pylist())}
        columns["tenant"] = [None if i in vouched else tenant for i in range(len(index))]
    if listed is None or not listed.contexts:
        return Contexts.of(columns) if columns else None
    for name, values in listed.contexts.items():
        column = columns.setdefault(name, [None] * len(index))
        seen: dict[int, str | None] = {}
        for row, value in enumerate(values.to_pylist()):
            number = index.find(listed.phrases[row].as_py())
            if number < 0:  # it is not suggested
                continue
            if seen.setdefault(number, value) != value:
                raise InputError(
                    f"{listed.where(row)}: phrase {listed.phrases[row].as_py()!r} has the {name} "
                    f"{value!r} and {seen[number]!r}; beside a composition log a phrase can be "
                    "limited to one. Keep one."
                )
            column[number] = value
    return Contexts.of(columns)


def _records_by_text(
    listed: PhraseList | None, index: PrefixIndex
) -> tuple[Records | None, dict[str, str]]:
    """Give the phrases of an index the ids and payloads that a list has for their spelling.

    Say whose are not shown.
    """
    if listed is None or (listed.ids is None and listed.payloads is None):
        return None, {}
    ids: list[str | None] = [None] * len(index)
    payloads: list[str | None] = [None] * len(index)
    nothing = [None] * len(listed)
    columns = [nothing if c is None else c.to_pylist() for c in (listed.ids, listed.payloads)]
    unshown = []
    every = list(zip(listed.phrases.to_pylist(), *columns, strict=True))
    heaviest_first = np.arange(len(every))
    if listed.weights is not None:
        heaviest_first = np.argsort(-listed.weights, kind="stable")
    for row in heaviest_first.tolist():
        phrase, *given = every[row]
        number = index.find(phrase)
        if number < 0 or given == [None, None]:
            continue
        if ids[number] is None and payloads[number] is None:
            ids[number], payloads[number] = given
        elif given != [ids[number], payloads[number]]:
            unshown.append(row)
    unshown.sort()
    return Records.of(ids, payloads), unshown_said(listed.places[unshown], listed.sources)
