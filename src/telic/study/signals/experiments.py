"""The steps of the study: one log each, evaluated."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from telic.completion.signals import Searches, controls, measured, models_of
from telic.completion.signals.compositions import Compositions, joined_submissions
from telic.completion.signals.report import SignalFindings
from telic.data.compositions import read_compositions
from telic.data.queries import QueryLog
from telic.simulate import read_catalogue, simulate_phones
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


PHONES: dict[str, dict[str, Any]] = {
    "apps cause half of the queries": {},
    "apps cause nothing": {"strength": 0.0},
    "everybody has the apps of another composition": {"independent": True},
}
"""Worlds in which the apps on a phone are a cause, or not."""
PHONE_GROUPS = ("popularity", "personal", "apps")


def evaluated(
    log: QueryLog, groups: Sequence[str] | None = None, *, min_users: int = 3, seed: int = 0
) -> dict[str, Any]:
    """Evaluate a log, by default all that it tells of; return what was found, as JSON takes it."""
    return _findings(Searches(log, min_users=min_users, seed=seed), groups).as_json()


def evaluated_compositions(table: pa.Table, groups: Sequence[str], *, seed: int) -> SignalFindings:
    """Evaluate the submissions of a composition log."""
    log = read_compositions(table)
    return _findings(Compositions(log, joined_submissions(log), seed=seed), groups)


def _findings(searches: Searches, groups: Sequence[str] | None) -> SignalFindings:
    models = models_of(searches, groups)
    found = measured(searches, models)
    return SignalFindings.of(searches, models, found, controls(searches, groups))


def real(*, name: str, file: Path, seed: int) -> dict[str, Any]:
    """Evaluate a real log. Bing's rows are counts over many people: any may be suggested."""
    if name == BING:
        return evaluated(bing_by_country(file), BING_GROUPS, min_users=1, seed=seed)
    return evaluated(unimobile(file, seed=seed), UNIMOBILE_GROUPS, min_users=2, seed=seed)


def simulated(*, world: str, users: int, sessions: int, seed: int) -> dict[str, Any]:
    """Evaluate a simulated log of one of the worlds `WITHOUT`."""
    causes = replace(Causes(), **WITHOUT[world])
    return evaluated(searchers(causes, users=users, sessions=sessions, seed=seed), seed=seed)


def phones(*, world: str, users: int, compositions: int, seed: int) -> dict[str, Any]:
    """Evaluate a log of simulated phones of one of the worlds `PHONES`."""
    table = simulate_phones(
        read_catalogue(), users=users, compositions=compositions, seed=seed, **PHONES[world]
    )
    return evaluated_compositions(table, PHONE_GROUPS, seed=seed).as_json()
