"""Weights for pairs of queries: what they add to the counts of what follows what in a session.

`telic.completion.signals` counts such pairs, and beside the counts it learns a weight for each of
them. This study says what these are worth: on a real log, and on simulated ones of three sizes.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from telic.completion.signals import (
    Searches,
    SignalWeights,
    choosing_moments,
    measured,
    models_of,
)
from telic.completion.signals.evaluation import ALL, compared
from telic.completion.signals.gates import learn_pairs
from telic.completion.signals.groups import PAIRS
from telic.completion.signals.pair_weights import MOST_PAIRED, PAIR_PENALTIES
from telic.completion.signals.weights import MOST_CHOSEN
from telic.errors import InputError
from telic.report import Report, Table
from telic.report.table import shown
from telic.simulate.searchers import Causes, searchers
from telic.study.signals import FIRST_SEED
from telic.study.signals.experiments import WITHOUT
from telic.study.signals.real_logs import UNIMOBILE, UNIMOBILE_GROUPS, real_file, unimobile
from telic.study.steps import SPREAD, Steps, each_log

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
        "are two signals of the group session. A pair that enough users submitted also has a "
        "weight of its own, the group pairs, as AppAware has one for each query and app. It is "
        "learned by the same dual ascent, beside a model that stays as it is. Each of "
        f"{len(PAIR_PENALTIES)} penalties is tried on at most {MOST_CHOSEN:,} later submissions of "
        "the same users. The best one is tested on other users. The gate lets a gain pass if it is "
        "certain on those submissions; so few may not show a gain that the larger test shows. "
        "Beside popularity alone the weights replace the group session: what they gain there says "
        "that they can be learned. Where sessions cause nothing, nothing can be gained. Each "
        f"simulated user has {sessions} sessions (telic.simulate.searchers)."
    )
    report.table(_table(found))
    return report


def _sentence(found: dict[str, _Found]) -> str:
    gains: dict[str, list[tuple[float, float]]] = {}
    for log, rows in found.items():
        (row,) = (row for row in rows if row["model"] == ALL)
        passed = row["difference"] if row["gate"] == "on" else 0.0
        gains.setdefault(log.partition(", log ")[0], []).append((row["difference"], passed))
    (pairs,) = {row["choices"] for row in found[REAL]}
    said = "; ".join(
        "{} and {} ({})".format(*(shown(mean, "100 +.2f") for mean in np.mean(own, axis=0)), log)
        for log, own in gains.items()
        if log != REAL
    )
    return (
        "What a learned weight for each pair of queries in a session adds to all other signals "
        "that help, in points of mean reciprocal rank, first without a gate and then as it is "
        f"served, where its gate opens: {said}. These are means over logs. UniMobile, the one real "
        "log with sessions at hand, says nothing: its submissions to learn from with such a pair "
        f"number {pairs}."
    )


def _table(found: dict[str, _Found]) -> Table:
    columns: dict[str, tuple[str | tuple[str, ...], str]] = {
        "log": ("log", ""),
        "model": ("model", ""),
        "learned from": ("choices", ",d"),
        "weights": ("weights", ",d"),
        "penalty": ("penalty", "g"),
        "MRR without": ("mrr", "100 .2f"),
        "with weights of pairs": (("difference", "low", "high"), SPREAD),
        "gate": ("gate", ""),
    }
    records = [{"log": log} | one for log, rows in found.items() for one in rows]
    return Table.of(
        "Mean reciprocal rank over all prefixes, in points",
        records,
        columns,
        "Differences are means over users, with 95 % intervals. “Learned from” are the submissions "
        f"with such a pair among their candidates, of {MOST_PAIRED:,} at most; "
        "“weights” are those that are not 0.",
    )


def real(*, file: Path, seed: int) -> _Found:
    """Return what the weights add on UniMobile."""
    searches = Searches(unimobile(file, seed=seed), min_users=2, seed=seed)
    return with_pairs(searches, UNIMOBILE_GROUPS)


def simulated(*, world: str, users: int, sessions: int, seed: int) -> _Found:
    """Return what they add on a simulated log."""
    log = searchers(Causes(**WITHOUT[world]), users=users, sessions=sessions, seed=seed)
    searches = Searches(log, seed=seed)
    return with_pairs(searches, searches.groups)


def with_pairs(searches: Searches, groups: Sequence[str]) -> _Found:
    """Return, for each of the models `BASES`, how well it ranks without and with the weights."""
    groups = [group for group in groups if group != PAIRS]
    models, chosen_by = models_of(searches, groups), choosing_moments(searches)
    compare: dict[str, SignalWeights] = {}
    out: _Found = []
    for base in BASES:
        fitted, worth = learn_pairs(searches, models[base], chosen_by)
        compare |= {base: models[base], f"{base}, with pairs": fitted}
        out.append(
            {
                "model": base,
                "choices": fitted.pair_choices,
                "weights": len(fitted.pairs.pair),
                "penalty": fitted.penalties[PAIRS],
                "gate": "on" if worth.certain else "off",
            }
        )
    found = measured(searches, compare)
    for row in out:
        own, without = found.ranks[f"{row['model']}, with pairs"], found.ranks[row["model"]]
        row |= {"mrr": float(without.mean())} | compared(own, without, found.unit)
    return out
