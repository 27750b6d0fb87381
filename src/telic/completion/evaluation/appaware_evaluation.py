"""Table 3.5 and Figure 3.5: AppAware and its variants against Standard, with paired tests."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from telic.completion.evaluation.adaqac_evaluation import (
    BOTH,
    PREFIXES,
    measures,
    row_name,
    slices_of,
)
from telic.completion.fit.models import fit_relevance
from telic.completion.fit.phone_models import PhoneModels, fit_phone_models
from telic.completion.learning.adaqac import CAREFUL, Protocol
from telic.completion.learning.app_features import MINUTES
from telic.completion.learning.relevance import NAMES
from telic.completion.learning.replayed_log import TEST, Lists, Replay


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
