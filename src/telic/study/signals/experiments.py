"""The steps of the study: one log each, evaluated."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from telic.completion.signals import Searches, controls, measured, models_of
from telic.completion.signals.groups import GROUPS
from telic.completion.signals.report import SignalFindings
from telic.data.queries import QueryLog
from telic.simulate.searchers import Causes, searchers
from telic.study.signals.real_logs import (
    BING,
    BING_GROUPS,
    UNIMOBILE_GROUPS,
    bing_by_country,
    unimobile,
)

WITHOUT: dict[str, dict[str, float]] = {
    "all causes": {},
    "no habits": {"habit": 0.0},
    "no sessions": dict.fromkeys(("refine", "sibling", "associated", "repeat"), 0.0),
    "no time": {"season": 0.0, "trend": 0.0},
    "popularity alone": dict.fromkeys(Causes.__dataclass_fields__, 0.0),
}
"""Worlds in which each cause is there or absent."""


def evaluated(
    log: QueryLog, groups: Sequence[str] = tuple(GROUPS), *, min_users: int = 3, seed: int = 0
) -> dict[str, Any]:
    """Evaluate a log and return what was found, as JSON takes it."""
    searches = Searches(log, min_users=min_users, seed=seed)
    models = models_of(searches, groups)
    found = measured(searches, models)
    return SignalFindings.of(searches, models, found, controls(searches, groups)).as_json()


def real(*, name: str, file: Path, seed: int) -> dict[str, Any]:
    """Evaluate a real log. Bing's rows are counts over many people: any may be suggested."""
    if name == BING:
        return evaluated(bing_by_country(file), BING_GROUPS, min_users=1, seed=seed)
    return evaluated(unimobile(file, seed=seed), UNIMOBILE_GROUPS, min_users=2, seed=seed)


def simulated(*, world: str, users: int, sessions: int, seed: int) -> dict[str, Any]:
    """Evaluate a simulated log of one of the worlds `WITHOUT`."""
    causes = replace(Causes(), **WITHOUT[world])
    return evaluated(searchers(causes, users=users, sessions=sessions, seed=seed), seed=seed)
