"""The tables of 2.4: every model, relevance score and prefix length, with paired tests."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import product

import numpy as np

from telic.completion.fit.models import MODELS, Models, fit_models, fit_relevance
from telic.completion.learning.adaqac import CAREFUL, Protocol
from telic.completion.learning.do_no_harm import bin_of
from telic.completion.learning.relevance import NAMES
from telic.completion.learning.replayed_log import TEST, Lists, RankedKeystrokes, Replay
from telic.evaluate import mean_reciprocal_rank, paired_t_test, success_rate

BOTH: tuple[Lists, ...] = ("own", "shown")
PREFIXES = ("last", "all", "1-3", "4-6", "7-9", "10-12", "13+")


@dataclass(frozen=True)
class Result:
    """Models of one relevance score and protocol, with their ranks at every test keystroke."""

    models: Models
    moments: RankedKeystrokes
    ranks: dict[str, np.ndarray]
    """Reciprocal ranks, model → float64 (T,)."""
    user: np.ndarray
    """int (T,): user behind each moment."""
    slices: dict[str, np.ndarray]
    """Which moments belong to each of `PREFIXES`: bool (T,)."""
    lists: Lists
    """Whose lists are ranked: see `telic.completion.Replay.over`."""
    shown_share: float
    """Share of the suggestions shown that are among the candidates, at test keystrokes."""

    def rows(self) -> list[dict]:
        """Return one row per model and slice, as `telic completion evaluate --json` shows it.

        ``mrr`` and ``sr@k`` are means over keystrokes. ``difference`` from the static order, its
        interval ``low``–``high`` and ``p_value`` take users as the unit: means of users' means.
        Rows whose candidates and ties come from the list that was shown have names of their own
        (see `row_name`), and are compared with the static order of the same candidates.
        """
        rows = []
        for model in MODELS:
            for prefixes, inside in self.slices.items():
                row = {
                    "relevance": self.models.relevance.name,
                    "protocol": self.models.protocol.name,
                    "candidates": self.models.n,
                    "lists": self.lists,
                    "model": row_name(model, self.lists),
                    "prefixes": prefixes,
                }
                other = None if model == "static" else self.ranks["static"][inside]
                rows.append(row | measures(self.ranks[model][inside], other, self.user[inside]))
        return rows


def row_name(model: str, lists: Lists) -> str:
    """Return what a row of results is called: what ranks, and that it re-ranks another's list.

    Examples
    --------
    >>> row_name("static", "own"), row_name("static", "shown")
    ('static', 're-rank the shown list: static')
    """
    return model if lists == "own" else f"re-rank the shown list: {model}"


def measures(own: np.ndarray, other: np.ndarray | None, user: np.ndarray) -> dict:
    """Return MRR and SR@k, and the paired test of reciprocal ranks against another model's."""
    found: dict[str, float | int | None] = {"n": len(own)}
    tested = ("p_value", "difference", "low", "high")
    if not len(own):
        return found | dict.fromkeys(("mrr", "sr@1", "sr@2", "sr@3", *tested))
    found |= {"mrr": mean_reciprocal_rank(own)}
    found |= {f"sr@{k}": success_rate(own, k) for k in (1, 2, 3)} | dict.fromkeys(tested)
    if other is None:
        return found
    test = paired_t_test(own, other, user)
    if not np.isfinite(test.p_value):
        return found | {"difference": test.difference}
    return found | {name: getattr(test, name) for name in tested}


def evaluate_models(replay: Replay, models: Models) -> Result:
    """Rank the candidates at every keystroke of the test part.

    Feedback is that on the lists that were shown: a candidate that was in none has zeros.
    """
    moments = replay.moments(models.relevance, replay.every_keystroke(TEST), n=models.n)
    return Result(
        models,
        moments,
        models.reciprocal_ranks(replay, moments),
        replay.log.user[moments.composition],
        slices_of(replay, moments),
        replay.lists,
        replay.shown_share(moments),
    )


def slices_of(replay: Replay, moments: RankedKeystrokes) -> dict[str, np.ndarray]:
    """Mark the moments that belong to each of `PREFIXES`."""
    length = replay.prefix_length(moments.keystroke)
    last = moments.keystroke == replay.log.keystroke_start[moments.composition + 1] - 1
    typed = length > 0
    slices = {"last": last, "all": typed}
    for b, name in enumerate(PREFIXES[2:]):
        slices[name] = typed & (bin_of(length) == b)
    return slices


def evaluate(
    replay: Replay,
    *,
    relevances: Sequence[str] = NAMES,
    protocols: Sequence[Protocol] = (CAREFUL,),
    candidates: Sequence[int] = (10,),
    lists: Sequence[Lists] = BOTH,
    progress: Callable[[str], None] | None = None,
    executor: Executor | None = None,
) -> list[Result]:
    """Fit and test every model for every relevance score, protocol and number of candidates.

    Parameters
    ----------
    replay : Replay
    relevances : sequence of str
        Some of `telic.completion.learning.relevance.NAMES`.
    protocols : sequence of Protocol
    candidates : sequence of int
        Numbers N of candidates that are re-ranked ([Zhang2017]: 10).
    lists : sequence of {"own", "shown"}
        "own" measures what `fit_completer` serves: its own candidates and ties. "shown" re-ranks
        the list of the system that was logged; fitted, gated and compared on its own.
    progress : callable, optional
        Called with a short text before each piece of work.
    executor : concurrent.futures.Executor, optional
        Runs the pieces side by side; threads do, as the kernels release the interpreter's lock.

    Returns
    -------
    list of Result
        In the order of lists, then protocols, candidates and relevances.
    """
    replays = {of: replay.over(of) for of in lists}

    def one(piece: tuple[Lists, Protocol, int, str]) -> Result:
        of, protocol, n, name = piece
        if progress:
            progress(f"{name}, {protocol.name} protocol, {n} candidates, {of} lists")
        over = replays[of]
        relevance = fit_relevance(over, name, protocol, n=n)
        return evaluate_models(over, fit_models(over, relevance, protocol, n=n))

    pieces = product(lists, protocols, candidates, relevances)
    return list(executor.map(one, pieces) if executor else map(one, pieces))
