"""Controls of chapter 2: simulated logs against their dwell twins, and the gain over attention."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from itertools import product
from typing import Literal

import numpy as np
import pyarrow as pa

from telic.completion.adaqac import CAREFUL
from telic.completion.models import fit_models, fit_relevance
from telic.completion.replay import TEST, Replay
from telic.data.compositions import read_compositions
from telic.data.queries import read_queries
from telic.evaluate import paired_t_test
from telic.simulate import Catalogue, dwell_twin, simulate_typists

Progress = Callable[[str], None]
UNGATED = replace(CAREFUL, do_no_harm=False)
"""Judges the effect itself: with the gate, a model that is useless would show an exact zero."""


Told = Literal["all", "older", "nothing"]
TOLD: tuple[Told, ...] = ("all", "older", "nothing")
"""What a completer is told beforehand of what the lists know: the catalogue that they are made
from, an older one (`Catalogue.outdated`), or nothing, so that it counts the log alone."""


def simulated_replay(catalogue: Catalogue, log: pa.Table, *, told: Told = "all") -> Replay:
    """Make a simulated log ready; `told`: what is known beforehand of the lists' catalogue."""
    if told == "nothing":
        return Replay(read_compositions(log))
    known = catalogue if told == "all" else catalogue.outdated()
    return Replay(read_compositions(log), queries=read_queries(known.as_queries(log)))


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
        catalogue, setting=setting, attention=attention, seed=seed, users=users,
        compositions=compositions,
    )  # fmt: skip
    twin = dwell_twin(log, seed=seed)
    return _effect(*(_tried(simulated_replay(catalogue, table)) for table in (log, twin)))


def _tried(replay: Replay) -> dict[str, float]:
    """MRR of every model at the last keystroke, and the share of what was shown (see `Replay`)."""
    models = fit_models(replay, fit_relevance(replay, "mpc", UNGATED), UNGATED)
    moments = replay.moments(models.relevance, replay.last_keystrokes(TEST))
    found = models.reciprocal_ranks(replay, moments)
    mrr = {model: float(ranks.mean()) for model, ranks in found.items()}
    return mrr | {"shown": replay.shown_share(moments)}


def _effect(real: dict[str, float], twin: dict[str, float]) -> dict[str, float]:
    return {
        "static": real["static"],
        "gain": real["adaqac-unp"] - real["static"],
        "dwell": real["adaqac-unp"] - twin["adaqac-unp"],
    }


def knowledge(
    catalogue: Catalogue,
    *,
    settings: Sequence[str] = ("inattentive", "calibrated", "readers"),
    told: Sequence[Told] = TOLD,
    seeds: int = 3,
    users: int = 200,
    compositions: int = 150,
    progress: Progress | None = None,
) -> list[dict]:
    """Measure what reaches a completer of what the system that made the lists knew.

    Returns
    -------
    list of dict
        ``setting``, ``told``, ``seeds``, and over seeds the means of ``static`` and ``gain`` (see
        `dwell_effect`), ``reranked`` and ``reranked gain``: the same where the shown list is
        re-ranked, ``shown``: the share of the suggestions shown that the completer would suggest
        itself, and ``dwell`` with the ends ``low`` and ``high`` of its 95 % interval.
    """
    found: dict[tuple[str, Told], list[dict[str, float]]] = {}
    for setting, seed in product(settings, range(seeds)):
        log = simulate_typists(
            catalogue, setting=setting, seed=seed, users=users, compositions=compositions
        )
        twin = dwell_twin(log, seed=seed)
        for what in told:
            if progress:
                progress(f"{setting} typists, completer told {what}, seed {seed}")
            replay = simulated_replay(catalogue, log, told=what)
            own = _tried(replay)
            effect = _effect(own, _tried(simulated_replay(catalogue, twin, told=what)))
            shown = _tried(replay.over("shown"))
            gain = shown["adaqac-unp"] - shown["static"]
            effect |= {"reranked": shown["static"], "reranked gain": gain, "shown": own["shown"]}
            found.setdefault((setting, what), []).append(effect)
    rows = []
    for (setting, what), effects in found.items():
        means = {key: float(np.mean([one[key] for one in effects])) for key in effects[0]}
        rows.append({"setting": setting, "told": what, "seeds": seeds} | means | _interval(effects))
    return rows


def _interval(found: Sequence[dict[str, float]]) -> dict[str, float]:
    """Mean of what dwell times add, with its 95 % interval over seeds."""
    dwell = np.array([one["dwell"] for one in found])
    test = paired_t_test(dwell, np.zeros(len(dwell)), np.arange(len(dwell)))
    return {"dwell": test.difference, "low": test.low, "high": test.high}


def controls(
    catalogue: Catalogue,
    *,
    settings: Sequence[str] = ("inattentive", "calibrated", "readers"),
    seeds: int = 10,
    users: int = 200,
    compositions: int = 150,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> list[dict]:
    """Repeat `dwell_effect` over seeds: in which settings do dwell times help beyond chance?

    Returns
    -------
    list of dict
        ``setting``, ``seeds``, ``dwell`` with the ends ``low`` and ``high`` of its 95 % interval
        over seeds, ``gain``, ``static``: MRR, as fractions.
    """

    def one(piece: tuple[str, int]) -> dict[str, float]:
        setting, seed = piece
        if progress:
            progress(f"{setting} typists, seed {seed}")
        return dwell_effect(
            catalogue, setting=setting, seed=seed, users=users, compositions=compositions
        )

    pieces = list(product(settings, range(seeds)))
    found = list(executor.map(one, pieces) if executor else map(one, pieces))
    rows = []
    for i, setting in enumerate(settings):
        own = found[i * seeds : (i + 1) * seeds]
        rows.append(
            {
                "setting": setting,
                "seeds": seeds,
                **_interval(own),
                "gain": float(np.mean([result["gain"] for result in own])),
                "static": float(np.mean([result["static"] for result in own])),
            }
        )
    return rows


def attention_curve(
    catalogue: Catalogue,
    *,
    levels: Sequence[float] = (0.0, 0.25, 0.5, 0.75, 1.0),
    seeds: int = 3,
    users: int = 200,
    compositions: int = 150,
    progress: Progress | None = None,
) -> list[dict[str, float]]:
    """Follow the gain of feedback as calibrated typists look at more or fewer lists.

    Returns
    -------
    list of dict
        ``attention``, and over seeds the means of ``gain`` and ``dwell`` (see `dwell_effect`) with
        their standard errors ``gain_se`` and ``dwell_se``.
    """
    rows = []
    for attention in levels:
        found = []
        for seed in range(seeds):
            if progress:
                progress(f"attention {attention:g}, seed {seed}")
            found.append(
                dwell_effect(
                    catalogue,
                    setting="calibrated",
                    attention=attention,
                    seed=seed,
                    users=users,
                    compositions=compositions,
                )
            )
        row = {"attention": attention}
        for key in ("gain", "dwell"):
            values = np.array([one[key] for one in found])
            row[key] = float(values.mean())
            row[f"{key}_se"] = float(values.std(ddof=1) / np.sqrt(seeds)) if seeds > 1 else np.nan
        rows.append(row)
    return rows
