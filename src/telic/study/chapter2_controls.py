"""Controls of chapter 2: simulated logs against their dwell twins, and the gain over attention."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa

from telic.completion.adaqac import CAREFUL
from telic.completion.evaluation import evaluate_models
from telic.completion.models import fit_models, fit_relevance
from telic.completion.replay import Replay
from telic.data.compositions import read_compositions
from telic.data.queries import read_queries
from telic.evaluate import paired_t_test
from telic.simulate import Catalogue, dwell_twin, simulate_typists

Progress = Callable[[str], None]
UNGATED = replace(CAREFUL, do_no_harm=False)
"""Judges the effect itself: with the gate, a model that is useless would show an exact zero."""


def simulated_replay(catalogue: Catalogue, log: pa.Table) -> Replay:
    """Make a simulated log ready, its catalogue known beforehand."""
    queries = read_queries(catalogue.as_queries(log))
    return Replay(read_compositions(log), queries=queries)


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
    found = []
    for table in (log, dwell_twin(log, seed=seed)):
        replay = simulated_replay(catalogue, table)
        models = fit_models(replay, fit_relevance(replay, "mpc", UNGATED), UNGATED)
        result = evaluate_models(replay, models)
        last = result.slices["last"]
        found.append({model: ranks[last].mean() for model, ranks in result.ranks.items()})
    real, twin = found
    return {
        "static": float(real["static"]),
        "gain": float(real["adaqac-unp"] - real["static"]),
        "dwell": float(real["adaqac-unp"] - twin["adaqac-unp"]),
    }


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
        dwell = np.array([result["dwell"] for result in own])
        test = paired_t_test(dwell, np.zeros(seeds), np.arange(seeds))
        rows.append(
            {
                "setting": setting,
                "seeds": seeds,
                "dwell": test.difference,
                "low": test.low,
                "high": test.high,
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
