"""What is found in the hospital against its truth: specialties, alarms explained, snooping kept."""

from typing import Any

import numpy as np

from telic.simulate.hospital_practices import HIDDEN_SIZES
from telic.specialty.alarms.before_and_after import effect
from telic.specialty.alarms.explained_alarms import judge
from telic.specialty.discovery.discover import discover
from telic.specialty.discovery.result import Discovery, discovery_from
from telic.specialty.log.access_log import AccessLog
from telic.study.chapter6.hospital import NAMING, Truth, hidden_index, hospital, in_view, nearest


def hidden_found(*, scale: float, seed: int, found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return each hidden specialty's F1 with the nearest of the specialties that were found."""
    log, truth = hospital(scale, seed)
    return nearest_found(log, truth, discovery_from(found, log))


def nearest_found(log: AccessLog, truth: Truth, discovery: Discovery) -> list[dict[str, Any]]:
    """Do what `hidden_found` does, on a log at hand."""
    rows = []
    for hidden in HIDDEN_SIZES:
        one, score = nearest(discovery, truth, hidden, in_view(log, discovery))
        listed = (one.listed_code or "none") if one else "not found"
        rows.append({"hidden": hidden, "f1": score, "listed": listed})
    return rows


def alarms(*, scale: float, seed: int, found: dict[str, Any]) -> dict[str, Any]:
    """Count the alarms that a discovery explains, and the planted snooping that stays caught."""
    log, truth = hospital(scale, seed)
    return counted_alarms(log, discovery_from(found, log), truth)


def counted_alarms(log: AccessLog, found: Discovery, truth: Truth) -> dict[str, Any]:
    """Do what `alarms` does, on a log at hand.

    Returns
    -------
    dict
        Counts of alarms as in `Effect`; "planted", the alarms of the true users of a hidden
        specialty, found or missed, on its encounters, and "planted_explained" of them; and by kind
        of "snooping" the counts of `Caught`.
    """
    alerts = judge(log, found)
    practised = hidden_index(truth.practice)[log.access_user]
    own = (practised >= 0) & (practised == truth.hidden_encounter[log.access_encounter])
    own &= ~np.isin(log.access_row, np.concatenate([[], *truth.snooping.values()]))
    counted = effect(log, found, alerts, truth.snooping)
    return {
        "alerts": counted.alerts,
        "explained": counted.explained,
        "unlisted_alerts": counted.unlisted_alerts,
        "unlisted_explained": counted.unlisted_explained,
        "planted": int((alerts.raised & own).sum()),
        "planted_explained": int((alerts.explained & own).sum()),
        "snooping": {kind: list(one) for kind, one in counted.snooping.items()},
    }


def recovery(*, scale: float, seed: int, method: str, threads: int = 1) -> dict[str, Any]:
    """Return, on one hospital, each hidden specialty's F1 and `counted_alarms`."""
    log, truth = hospital(scale, seed)
    found = discover(log, method=method, naming=NAMING, restarts=1, seed=seed, threads=threads)
    scores = {row["hidden"]: row["f1"] for row in nearest_found(log, truth, found)}
    return {"seed": seed, "f1": scores, **counted_alarms(log, found, truth)}
