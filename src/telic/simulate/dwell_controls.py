"""The dwell control: what a model gains on simulated logs, and on the dwell twin of each."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from itertools import product

import numpy as np

from telic.completion.fit.models import fit_models, fit_relevance
from telic.completion.learning.adaqac import CAREFUL
from telic.completion.learning.replayed_log import TEST, Replay
from telic.evaluate import paired_t_test
from telic.report import Table
from telic.simulate.catalogue import Catalogue
from telic.simulate.replays import simulated_replay
from telic.simulate.shuffled_dwell_times import dwell_twin
from telic.simulate.typists import simulate_typists

UNGATED = replace(CAREFUL, do_no_harm=False)
"""Judges the effect itself: with the gate, a model that is useless would show an exact zero."""


def dwell_effect(
    catalogue: Catalogue,
    *,
    setting: str,
    seed: int,
    attention: float | None = None,
    users: int = 200,
    compositions: int = 150,
) -> dict[str, float]:
    """Compare one simulated log with its dwell twin: what do dwell times add, and feedback at all?

    Returns
    -------
    dict
        ``static``: MRR at the last keystroke; ``gain``: what adaQAC-UnP (MPC, careful protocol,
        without the gate) adds to it; ``dwell``: its MRR minus that of the same model fitted and
        tested on the twin, where dwell times are permuted within each user.
    """
    log = simulate_typists(
        catalogue,
        setting=setting,
        attention=attention,
        seed=seed,
        users=users,
        compositions=compositions,
    )
    twin = dwell_twin(log, seed=seed)
    return against_twin(*(tried(simulated_replay(catalogue, table)) for table in (log, twin)))


def tried(replay: Replay) -> dict[str, float]:
    """Return each model's MRR at the last keystroke, and the share of what was shown.

    See `telic.completion.Replay.shown_share`.
    """
    models = fit_models(replay, fit_relevance(replay, "mpc", UNGATED), UNGATED)
    moments = replay.moments(models.relevance, replay.last_keystrokes(TEST))
    found = models.reciprocal_ranks(replay, moments)
    mrr = {model: float(ranks.mean()) for model, ranks in found.items()}
    return mrr | {"shown": replay.shown_share(moments)}


def against_twin(own: Mapping[str, float], twin: Mapping[str, float]) -> dict[str, float]:
    """Return what `dwell_effect` does, from what was `tried` on a log and on its twin."""
    return {
        "static": own["static"],
        "gain": own["adaqac-unp"] - own["static"],
        "dwell": own["adaqac-unp"] - twin["adaqac-unp"],
    }


def dwell_control(
    catalogue: Catalogue,
    *,
    settings: Sequence[str] = ("inattentive", "calibrated", "readers"),
    seeds: int = 10,
    users: int = 200,
    compositions: int = 150,
    progress: Callable[[str], None] = lambda step: None,
    executor: Executor | None = None,
) -> dict[str, list[dict[str, float]]]:
    """Repeat `dwell_effect` over seeds: in which settings do dwell times help beyond chance?

    Parameters
    ----------
    catalogue : Catalogue
    settings : sequence of str
        Some of `SETTINGS`.
    seeds, users, compositions : int
        Logs of each setting, and their size.
    progress : callable, optional
        Called with a short text before each log.
    executor : concurrent.futures.Executor, optional
        Tries the logs side by side.

    Returns
    -------
    dict of str to list of dict
        From each setting to the effects of its seeds; `controls_table` shows them.
    """

    def one(piece: tuple[str, int]) -> dict[str, float]:
        setting, seed = piece
        progress(f"{setting} typists, seed {seed}")
        return dwell_effect(
            catalogue, setting=setting, seed=seed, users=users, compositions=compositions
        )

    pieces = list(product(settings, range(seeds)))
    found = list(executor.map(one, pieces) if executor else map(one, pieces))
    return {setting: found[i * seeds : (i + 1) * seeds] for i, setting in enumerate(settings)}


def over_seeds(effects: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of every number, and the ends of the 95 % interval of ``dwell``."""
    means = {key: float(np.mean([one[key] for one in effects])) for key in effects[0]}
    dwell = np.array([one["dwell"] for one in effects])
    test = paired_t_test(dwell, np.zeros(len(dwell)), np.arange(len(dwell)))
    return means | {"low": test.low, "high": test.high}


def controls_table(effects: Mapping[str, Sequence[Mapping[str, float]]]) -> Table:
    """Return what `dwell_control` found: do dwell times help beyond chance?"""
    means = {setting: over_seeds(own) for setting, own in effects.items()}
    return Table.of(
        "SIMULATED people: do dwell times help? MRR in percent, changes in points",
        [
            {"typists": name, "seeds": len(effects[name]), **mean, "helps": mean["low"] > 0}
            for name, mean in means.items()
        ],
        {
            "typists": ("typists", ""),
            "seeds": ("seeds", ""),
            "static MRR": ("static", "100 .2f"),
            "feedback − static": ("gain", "100 +.2f"),
            "log − dwell twin": ("dwell", "100 +.2f"),
            "95 % interval": (("low", "high"), "100 {:+.2f} … {:+.2f}"),
            "dwell helps": ("helps", ""),
        },
    )
