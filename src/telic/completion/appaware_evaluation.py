"""Table 3.5 and Figure 3.5: AppAware and its variants against Standard, with paired tests."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from telic.choice import Elastic
from telic.completion.adaqac import CAREFUL, Design, Protocol
from telic.completion.app_features import MINUTES, Signals
from telic.completion.appaware import PRINTED, AppAware, fit_appaware
from telic.completion.evaluation import BOTH, PREFIXES, measures, row_name, slices_of
from telic.completion.harm import Gate, run_checks
from telic.completion.models import fit_relevance, recounted
from telic.completion.relevance import NAMES, Relevance
from telic.completion.replay import TEST, TRAIN, VALID, Lists, Moments, Replay
from telic.evaluate import mean_reciprocal_rank, reciprocal_ranks

VARIANTS = {"appaware-i": "i", "appaware-o": "o", "appaware-c": "c", "appaware": "a"}
"""Installed only, opened only, case by case, both."""
SEEN = VARIANTS | {"feedback": "s"}
"""What each may see; no app for "feedback", which is fitted together with implicit feedback."""
PENALTIES = (Elastic(3e-5, 1e-4), PRINTED, Elastic(3e-4, 1e-4))
"""Of the careful protocol, to choose from by validation MRR."""


@dataclass(frozen=True)
class PhoneModels:
    """AppAware and its variants for one relevance score, fitted."""

    relevance: Relevance
    """What Standard ranks by."""
    protocol: Protocol
    n: int
    signals: dict[str, Signals]
    models: dict[str, AppAware]
    gates: dict[str, Gate]
    design: Design | None
    minutes: float = MINUTES
    """The window for recently opened apps."""

    def reciprocal_ranks(
        self, replay: Replay, moments: Moments, *, gated: bool = True
    ) -> dict[str, np.ndarray]:
        """Return the reciprocal rank of every model, "standard" first, at every moment."""
        found = {"standard": reciprocal_ranks(moments.relevance, moments.position)}
        feedback = replay.features(moments) if self.design else None
        user = replay.log.user[moments.composition]
        length = replay.prefix_length[moments.keystroke]
        for name, model in self.models.items():
            scores = model.scores(moments, self.signals[name], feedback, self.design)
            found[name] = reciprocal_ranks(scores, moments.position)
            if gated and name in self.gates:
                is_open = self.gates[name].open(user, length)
                gain = np.where(is_open, found[name] - found["standard"], 0.0)
                is_open &= run_checks(gain, moments.composition, user)[0]
                found[name] = np.where(is_open, found[name], found["standard"])
        return found


@dataclass(frozen=True)
class PhoneResult:
    """Reciprocal ranks at every test keystroke."""

    models: PhoneModels
    ranks: dict[str, np.ndarray]
    user: np.ndarray
    slices: dict[str, np.ndarray]
    lists: Lists

    def rows(self) -> list[dict]:
        """Return one row per model and slice, as `telic completion evaluate --json` prints it.

        ``relative``: the change of MRR against Standard, over Standard's. ``gap`` bounds how far
        the fit's objective is above its optimum.
        """
        models, rows = self.models, []
        for model, ranks in self.ranks.items():
            gap = None if model == "standard" else models.models[model].fit.gap
            for prefixes in PREFIXES:
                own, standard = (r[self.slices[prefixes]] for r in (ranks, self.ranks["standard"]))
                other = None if model == "standard" else standard
                row = {
                    "relevance": models.relevance.name,
                    "protocol": models.protocol.name,
                    "candidates": models.n,
                    "learned_popularity": models.relevance.learned is not None,
                    "lists": self.lists,
                    "model": row_name(model, self.lists),
                    "prefixes": prefixes,
                    "gap": gap,
                    "relative": None
                    if other is None or not standard.any()
                    else float(own.mean() / standard.mean() - 1),
                }
                rows.append(row | measures(own, other, self.user[self.slices[prefixes]]))
        return rows


def fit_phone_models(
    replay: Replay,
    relevance: Relevance,
    protocol: Protocol,
    *,
    variants: Sequence[str] = tuple(VARIANTS),
    minutes: float = MINUTES,
    penalty: Elastic | None = None,
    together: bool = False,
    n: int = 10,
) -> PhoneModels:
    """Fit AppAware's variants; the penalty is given, printed, or chosen by validation MRR.

    Parameters
    ----------
    replay : Replay
    relevance : Relevance
    protocol : Protocol
        "paper": printed penalties, batches and passes, no gate. "careful": penalty and gate from
        validation, and a Standard that has learned a weight for each query too
        (`telic.completion.models.recounted`): any app that most phones have is as good as such a
        weight, and would show a gain that apps have no part in.
    variants : sequence of str
        Some of `SEEN`.
    minutes : float
        The window for recently opened apps.
    penalty : Elastic, optional
    together : bool
        Learn adaQAC's implicit feedback in the same fit, un-personalised.
    n : int
        Pre-indexed queries.
    """
    if protocol.learn_relevance:
        relevance = recounted(replay, relevance, n=n)
    everything = Signals.of(replay.log, minutes=minutes)
    design = None
    if together:
        training = replay.moments(relevance, replay.last_keystrokes(TRAIN), n=n)
        design = Design.of(protocol, replay.features(training), training)
    validation = replay.moments(relevance, replay.last_keystrokes(VALID), n=n)
    feedback = replay.features(validation) if together else None

    def fit(signals: Signals, penalty: Elastic) -> AppAware:
        # The text's batches and passes, wherever those end, or the solver that gets there.
        printed: dict[str, Any] = {"solver": "saga", "max_passes": 15, "tol": 0.0}
        if protocol.name != "paper":
            printed = {}
        return fit_appaware(
            replay, relevance, signals, protocol, penalty=penalty, design=design, n=n, **printed
        )

    def accuracy(model: AppAware) -> float:
        scores = model.scores(validation, everything, feedback, design)
        return mean_reciprocal_rank(reciprocal_ranks(scores, validation.position))

    models: dict[str, AppAware] = {}
    if penalty is None and protocol.do_no_harm:
        tried = [fit(everything, choice) for choice in PENALTIES]
        models["appaware"] = max(tried, key=accuracy)
        penalty = models["appaware"].penalty
    seen = {name: everything.variant(SEEN[name]) for name in variants}
    for name, signals in seen.items():
        if name not in models:
            models[name] = fit(signals, penalty or PRINTED)
    models = {name: models[name] for name in variants}
    fitted = PhoneModels(relevance, protocol, n, seen, models, {}, design, minutes)
    if protocol.do_no_harm:
        moments = replay.moments(relevance, replay.every_keystroke(VALID), n=n)
        found = fitted.reciprocal_ranks(replay, moments, gated=False)
        user = replay.log.user[moments.composition]
        length = replay.prefix_length[moments.keystroke]
        for name in variants:
            gain = found[name] - found["standard"]
            fitted.gates[name] = Gate.fitted(gain, user, length, len(replay.log.users))
    return fitted


def try_phone_models(replay: Replay, models: PhoneModels) -> PhoneResult:
    """Rank the candidates at every keystroke of the test part."""
    moments = replay.moments(models.relevance, replay.every_keystroke(TEST), n=models.n)
    return PhoneResult(
        models,
        models.reciprocal_ranks(replay, moments),
        replay.log.user[moments.composition],
        slices_of(replay, moments),
        replay.lists,
    )


def evaluate_phones(
    replay: Replay,
    *,
    relevances: Sequence[str] = NAMES,
    protocols: Sequence[Protocol] = (CAREFUL,),
    candidates: Sequence[int] = (10,),
    lists: Sequence[Lists] = BOTH,
    minutes: float = MINUTES,
    progress: Callable[[str], None] | None = None,
) -> list[PhoneResult]:
    """Fit and test AppAware's variants for every relevance score, protocol, N and kind of lists.

    See `telic.completion.evaluate` for the lists.
    """
    results = []
    replays = {of: replay.over(of) for of in lists}
    for of, protocol, n, name in product(lists, protocols, candidates, relevances):
        if progress:
            progress(f"{name}, {protocol.name} protocol, {n} candidates, {of} lists")
        over = replays[of]
        relevance = fit_relevance(over, name, protocol, n=n)
        models = fit_phone_models(over, relevance, protocol, minutes=minutes, n=n)
        results.append(try_phone_models(over, models))
    return results
