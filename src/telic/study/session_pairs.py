"""Weights for pairs of queries: what they add to the counts of what follows what in a session.

`telic.completion.signals.features.follow` counts such pairs and shrinks the counts. Here each pair
that was counted also has a weight of its own, learned as AppAware learns those of queries and apps:
by stochastic dual coordinate ascent on (3.3.5) of [Zhang2017]. Pairs that were never counted have
none, so that what is held grows with the log, not with the square of its queries.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from telic.choice import Elastic, FactoredChoices, fit_sdca
from telic.completion.signals import Searches, models_of
from telic.completion.signals.counts import CONTEXT
from telic.completion.signals.evaluation import ALL, MOST_TESTED, compared
from telic.completion.signals.log_split import CHOSEN, LEARNED, TESTED
from telic.completion.signals.sweep import RankedPrefixes, every_prefix, one_prefix, walk
from telic.completion.signals.weights import (
    MOST_CHOSEN,
    SignalWeights,
    shown_ranks,
    some_of,
)
from telic.errors import InputError
from telic.report import Report, Table
from telic.report.table import shown
from telic.simulate.searchers import Causes, searchers
from telic.study.signals import FIRST_SEED
from telic.study.signals.experiments import WITHOUT
from telic.study.signals.real_logs import UNIMOBILE, UNIMOBILE_GROUPS, real_file, unimobile
from telic.study.steps import SPREAD, Steps, each_log

PENALTIES = [Elastic(l1, l2) for l1 in (1e-6, 1e-5, 1e-4) for l2 in (1e-5, 1e-4, 1e-3, 1e-2)]
LESSONS = 1_000_000
"""Submissions to learn from at most: weights of pairs are many, unlike those of signals."""
BASES = "popularity", "+ session", ALL
"""Models that the weights of pairs are added to."""
REAL = "UniMobile (real)"
WORLDS = {"no sessions": (1_500,), "all causes": (400, 1_500, 8_000)}
"""Simulated users of each log: where sessions cause nothing, and where they do."""
_Found = list[dict[str, Any]]


def study(
    steps: Steps, *, sessions: int = 40, seeds: int = 3, data: Path | None = None, seed: int = 0
) -> Report:
    """Add the weights to models of a real query log and of simulated ones, with a control.

    Parameters
    ----------
    steps : Steps
    sessions : int
        Of each simulated user.
    seeds : int
        Simulated logs of each world and size, at least 1.
    data : path, optional
        Folder of real data; see `telic.data.data_sets.data_folder`.
    seed : int
        Of the real log's split.
    """
    if seeds < 1:
        raise InputError(f"seeds is {seeds}, expected at least 1.")
    file = real_file(UNIMOBILE, data)
    found = {REAL: steps(REAL, real, file=file, seed=seed)}
    for world, sizes in WORLDS.items():
        for users in sizes:
            logs = f"simulated, {world}, {users:,} users"
            size = {"users": users, "sessions": sessions}
            made = each_log(steps, logs, simulated, seeds, first=FIRST_SEED, world=world, **size)
            found |= {f"{logs}, log {n + 1}": rows for n, rows in enumerate(made)}
    report = Report("Weights for pairs of queries", lead=_sentence(found))
    report.text(
        "In a session, queries that often follow one another are counted, and the shrunk counts "
        "are two signals of the group session. Here each pair that was counted also gets a weight "
        "of its own, as AppAware has one for each query and app, learned by the same dual ascent. "
        f"It is added to a model that stays as it is. Each of {len(PENALTIES)} penalties is tried "
        "on later submissions of the same users; the best one is tested on other users. Beside "
        "popularity alone the weights replace the group session: what they gain there says that "
        "they can be learned. Where sessions cause nothing, nothing can be gained. Each simulated "
        f"user has {sessions} sessions (telic.simulate.searchers)."
    )
    report.table(_table(found))
    return report


def _sentence(found: dict[str, _Found]) -> str:
    gains: dict[str, list[float]] = {}
    for log, rows in found.items():
        (gain,) = (row["difference"] for row in rows if row["model"] == ALL)
        gains.setdefault(log.partition(", log ")[0], []).append(gain)
    (pairs,) = {row["choices"] for row in found[REAL]}
    said = "; ".join(
        f"{shown(float(np.mean(own)), '100 +.2f')} ({log})"
        for log, own in gains.items()
        if log != REAL
    )
    return (
        "What a learned weight for each pair of queries in a session adds to all signals that "
        f"help, in points of mean reciprocal rank: {said}. These are means over logs. UniMobile, "
        "the one real log with sessions at hand, says nothing: it has too few submissions with "
        f"such a pair ({pairs}). telic counts such pairs, and has no weights for them."
    )


def _table(found: dict[str, _Found]) -> Table:
    columns: dict[str, tuple[str | tuple[str, ...], str]] = {
        "log": ("log", ""),
        "model": ("model", ""),
        "learned from": ("choices", ",d"),
        "weights": ("weights", ",d"),
        "l1": ("l1", "g"),
        "l2": ("l2", "g"),
        "MRR": ("mrr", "100 .2f"),
        "with weights of pairs": (("difference", "low", "high"), SPREAD),
    }
    records = [{"log": log} | one for log, rows in found.items() for one in rows]
    return Table.of(
        "Mean reciprocal rank over all prefixes, in points",
        records,
        columns,
        "Differences are means over users, with 95 % intervals. “Learned from” are the submissions "
        f"with such a pair among their candidates, of {LESSONS:,} at most; "
        "“weights” are those that are not 0.",
    )


def real(*, file: Path, seed: int) -> _Found:
    """Return what the weights add on UniMobile."""
    searches = Searches(unimobile(file, seed=seed), min_users=2, seed=seed)
    return with_pairs(searches, UNIMOBILE_GROUPS)


def simulated(*, world: str, users: int, sessions: int, seed: int) -> _Found:
    """Return what they add on a simulated log."""
    log = searchers(Causes(**WITHOUT[world]), users=users, sessions=sessions, seed=seed)
    return with_pairs(Searches(log, seed=seed))


def with_pairs(searches: Searches, groups: Sequence[str] | None = None) -> _Found:
    """Return, for each of the models `BASES`, how well it ranks without and with the weights."""
    models, pairs = models_of(searches, groups), _counted(searches)
    learned, chosen, tested = (
        _moments(searches, pairs, part, most)
        for part, most in ((LEARNED, LESSONS), (CHOSEN, MOST_CHOSEN), (TESTED, MOST_TESTED))
    )
    unit = searches.unit[np.concatenate([each.moments.event for each in tested])]
    out = []
    for base in BASES:
        model = models[base]
        choices = _choices(model, learned, len(pairs))
        fits = [fit_sdca(choices, penalty).weights for penalty in PENALTIES]
        best = int(np.argmax([_ranks(model, chosen, weights).mean() for weights in fits]))
        before = _ranks(model, tested, np.zeros(len(pairs)))
        out.append(
            {
                "model": base,
                "choices": len(choices),
                "weights": int(np.count_nonzero(fits[best])),
                "l1": PENALTIES[best].l1,
                "l2": PENALTIES[best].l2,
                "mrr": float(before.mean()),
            }
            | compared(_ranks(model, tested, fits[best]), before, unit)
        )
    return out


class _Placed(NamedTuple):
    """Moments, and where the pair of each candidate with each earlier query stands, -1 for none."""

    moments: RankedPrefixes
    place: np.ndarray
    """int32 (T, candidates, CONTEXT)."""


def _moments(searches: Searches, pairs: np.ndarray, part: int, most: int) -> list[_Placed]:
    """Walk through submissions of a part of the log, at most so many; one prefix to learn from."""
    rng = np.random.default_rng([searches.seed, 6, part])
    events = some_of(np.flatnonzero(searches.part == part), most, rng)
    if part == LEARNED:
        prefixes = one_prefix(searches, events, rng)
    else:
        prefixes = every_prefix(searches, events)
    return [_Placed(each, _places(searches, pairs, each)) for each in walk(searches, *prefixes)]


def earlier_queries(searches: Searches, events: np.ndarray) -> np.ndarray:
    """Return the different queries before each submission in its session; -1 for none."""
    found = np.full((len(events), CONTEXT), -1, np.int64)
    at = searches.before[events]
    for k in range(CONTEXT):
        query = np.where(at >= 0, searches.query[at], -1)
        again = (found[:, :k] == query[:, None]).any(axis=1)
        found[:, k] = np.where(again, -1, query)
        at = np.where(at >= 0, searches.before[at], -1)
    return found


def _counted(searches: Searches) -> np.ndarray:
    """Return the pairs that followed one another before there is anything to learn, ascending.

    Were those that are learned from among them, the query that was submitted would always have a
    weight, and another candidate perhaps none.
    """
    events = np.flatnonzero(searches.at < searches.at[searches.part == LEARNED].min())
    before = earlier_queries(searches, events)
    pairs = np.unique((before * len(searches.index) + searches.query[events][:, None])[before >= 0])
    if not len(pairs):
        raise InputError("no query of the log follows another in a session, so no pair is counted.")
    return pairs


def _places(searches: Searches, pairs: np.ndarray, moments: RankedPrefixes) -> np.ndarray:
    """Return where the pair of each earlier query and each candidate stands; -1 for none."""
    before = earlier_queries(searches, moments.event)[:, None, :]
    candidates = moments.candidates[:, :, None].astype(np.int64)
    wanted = before * len(searches.index) + candidates
    place = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
    # Without an earlier query the number wanted is below zero, as that of no pair.
    return np.where((candidates >= 0) & (pairs[place] == wanted), place, -1).astype(np.int32)


def _choices(model: SignalWeights, learned: Sequence[_Placed], pairs: int) -> FactoredChoices:
    """Return the conditional logit of the pairs' weights beside a model's scores.

    A choice in which no candidate has a pair says nothing of their weights, and is left out.
    """
    offset, size, picked, where = [], [], [], []
    for moments, place in learned:
        scores, row = model.scores(moments), np.arange(len(moments))
        there = scores > -np.inf
        use = (moments.position >= 0) & there[row, moments.position]
        use &= ((place >= 0) & there[..., None]).any(axis=(1, 2))
        offset.append(scores[use][there[use]])
        size.append(there[use].sum(axis=1))
        picked.append((np.cumsum(there, axis=1) - 1)[row, moments.position][use])
        where.append(place[use][there[use]])
    start = np.concatenate([[0], np.cumsum(np.concatenate(size))])
    places = np.concatenate(where)
    own = (places >= 0).sum(axis=1)
    # All weights are of pairs, so an outcome has no meaning of its own: the place in the list.
    outcome = np.arange(start[-1]) - np.repeat(start[:-1], np.diff(start))
    return FactoredChoices(
        outcomes=int(np.diff(start).max(initial=1)),
        entries=0,
        shared=pairs,
        outcome=outcome,
        offset=np.concatenate(offset),
        start=start,
        chosen=start[:-1] + np.concatenate(picked),
        context_start=np.zeros(len(start), np.int64),
        context_entry=np.zeros(0, np.int32),
        context_value=np.zeros(0),
        shared_start=np.concatenate([[0], np.cumsum(own)]),
        shared_feature=places[places >= 0],
        shared_value=np.ones(own.sum()),
    )


def _ranks(model: SignalWeights, placed: Sequence[_Placed], weights: np.ndarray) -> np.ndarray:
    """Return the reciprocal rank at each moment, 0 beyond the list shown."""
    return np.concatenate(
        [
            shown_ranks(
                model.scores(moments) + np.where(place >= 0, weights[place], 0.0).sum(axis=2),
                moments.position,
            )
            for moments, place in placed
        ]
    )
