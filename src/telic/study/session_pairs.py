"""Weights for pairs of queries: what they add to the counts of what follows what in a session.

`telic.completion.signals.features.follow` counts such pairs and shrinks the counts. Here each pair
that was counted also has a weight of its own, learned as AppAware learns those of queries and apps:
by stochastic dual coordinate ascent on (3.3.5) of [Zhang2017]. Pairs that were never counted have
none, so that what is held grows with the log, not with the square of its queries.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from telic.choice import Elastic, FactoredChoices, fit_sdca
from telic.completion.signals import Searches, models_of
from telic.completion.signals.counts import CONTEXT
from telic.completion.signals.evaluation import ALL, MOST_TESTED, compared
from telic.completion.signals.log_split import CHOSEN, LEARNED, TESTED
from telic.completion.signals.sweep import RankedPrefixes, every_prefix, one_prefix, walk
from telic.completion.signals.weights import (
    MOST_CHOSEN,
    SHOWN,
    SignalWeights,
    some_of,
)
from telic.errors import InputError
from telic.evaluate import reciprocal_ranks
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
    gains = [
        [row[end] for row in rows if row["model"] == ALL for end in ("difference", "low", "high")]
        for log, rows in found.items()
        if log != REAL
    ]
    difference, low, high = np.transpose(gains)
    ends = (difference.min(), difference.max(), low.min(), high.max())
    least, most, lowest, highest = (shown(float(end), "100 +.2f") for end in ends)
    (pairs,) = {row["choices"] for row in found[REAL] if row["model"] == ALL}
    return (
        "What a learned weight for each pair of queries in a session adds to the signals. Beside "
        f"all signals that help, it adds between {least} and {most} points of mean reciprocal rank "
        f"on {len(gains)} simulated logs; their intervals lie within {lowest} and {highest}. "
        "UniMobile, the one real log with sessions at hand, says nothing: it has too few "
        f"submissions with such a pair ({pairs}). telic counts such pairs, and has no weights for "
        "them."
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
    models = models_of(searches, groups)
    learned = list(_moments(searches, LEARNED, LESSONS))
    chosen = list(_moments(searches, CHOSEN, MOST_CHOSEN))
    tested = list(_moments(searches, TESTED, MOST_TESTED))
    unit = searches.unit[np.concatenate([piece.event for piece in tested])]
    out = []
    for base in BASES:
        model = models[base]
        choices, pairs = _choices(searches, model, learned)
        fits = [fit_sdca(choices, penalty).weights for penalty in PENALTIES]
        gains = [_ranks(searches, model, chosen, pairs, weights).mean() for weights in fits]
        best = int(np.argmax(gains))
        before, after = (_ranks(searches, model, tested, pairs, w) for w in (None, fits[best]))
        out.append(
            {
                "model": base,
                "choices": len(choices),
                "weights": int(np.count_nonzero(fits[best])),
                "l1": PENALTIES[best].l1,
                "l2": PENALTIES[best].l2,
                "mrr": float(before.mean()),
            }
            | compared(after, before, unit)
        )
    return out


def _moments(searches: Searches, part: int, most: int) -> Iterator[RankedPrefixes]:
    """Walk through submissions of a part of the log, at most so many; one prefix to learn from."""
    rng = np.random.default_rng([searches.seed, 6, part])
    events = some_of(np.flatnonzero(searches.part == part), most, rng)
    if part == LEARNED:
        return walk(searches, *one_prefix(searches, events, rng))
    return walk(searches, *every_prefix(searches, events))


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


def _pairs_of(searches: Searches, piece: RankedPrefixes) -> np.ndarray:
    """Return a number for each earlier query with each candidate; -1 where there is none."""
    before = earlier_queries(searches, piece.event)[:, None, :]
    candidates = piece.candidates[:, :, None].astype(np.int64)
    there = (before >= 0) & (candidates >= 0)
    return np.where(there, before * len(searches.index) + candidates, -1)


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


def _places(pairs: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return where each wanted pair stands among the pairs; -1 where it is none of them."""
    place = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
    return np.where(pairs[place] == wanted, place, -1)


def _choices(
    searches: Searches, model: SignalWeights, learned: Sequence[RankedPrefixes]
) -> tuple[FactoredChoices, np.ndarray]:
    """Return the conditional logit of the pairs' weights beside a model's scores, and the pairs.

    A choice in which no candidate has a pair says nothing of their weights, and is left out.
    """
    pairs = _counted(searches)
    offset, size, picked, where = [], [], [], []
    for piece in learned:
        scores, row = model.scores(piece), np.arange(len(piece))
        there, place = scores > -np.inf, _places(pairs, _pairs_of(searches, piece))
        use = (piece.position >= 0) & there[row, piece.position]
        use &= ((place >= 0) & there[..., None]).any(axis=(1, 2))
        offset.append(scores[use][there[use]])
        size.append(there[use].sum(axis=1))
        picked.append((np.cumsum(there, axis=1) - 1)[row, piece.position][use])
        where.append(place[use][there[use]])
    start = np.concatenate([[0], np.cumsum(np.concatenate(size))])
    places = np.concatenate(where)
    own = (places >= 0).sum(axis=1)
    # All weights are of pairs, so an outcome has no meaning of its own: the place in the list.
    outcome = np.arange(start[-1]) - np.repeat(start[:-1], np.diff(start))
    choices = FactoredChoices(
        outcomes=int(np.diff(start).max(initial=1)),
        entries=0,
        shared=len(pairs),
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
    return choices, pairs


def _ranks(
    searches: Searches,
    model: SignalWeights,
    pieces: Sequence[RankedPrefixes],
    pairs: np.ndarray,
    weights: np.ndarray | None,
) -> np.ndarray:
    """Return the reciprocal rank at each moment, 0 beyond the list shown."""
    found = []
    for piece in pieces:
        scores = model.scores(piece)
        if weights is not None:
            place = _places(pairs, _pairs_of(searches, piece))
            scores = scores + np.where(place >= 0, weights[place], 0.0).sum(axis=2)
        own = reciprocal_ranks(scores, piece.position)
        found.append(np.where(own > 1 / (SHOWN + 0.5), own, 0.0))
    return np.concatenate(found)
