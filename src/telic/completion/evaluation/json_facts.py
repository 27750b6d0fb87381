"""What is said of an evaluation, of its log and of a fitted model, as JSON takes it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from telic.completion.box.completer import Completer
from telic.completion.evaluation.adaqac_evaluation import Result, row_name
from telic.completion.fit.sources import DATES, MIN_USERS
from telic.completion.learning.do_no_harm import gate_facts
from telic.completion.learning.dwell_times import dwell_histograms, not_submitted
from telic.completion.learning.feedback import FEATURES
from telic.completion.learning.replayed_log import Replay
from telic.completion.learning.saturation import limits
from telic.completion.signals.groups import EVERY_GROUP, GROUPS
from telic.completion.signals.ranker import SignalRanker


def findings(results: Sequence[Result]) -> dict[str, list[Any]]:
    """Return what a report shows of results, as JSON takes it; lists of several can be joined.

    Returns
    -------
    dict
        ``rows``: see `Result.rows`. ``gates``: where each model's gate is open, in words.
        ``shown``: the share of the suggestions shown that are a completer's own candidates.
        ``users``: each user's MRR at the last keystroke.
    """
    found: dict[str, list[Any]] = {"rows": [], "gates": [], "shown": [], "users": []}
    for result in results:
        models = result.models
        about = {
            "relevance": models.relevance.name,
            "protocol": models.protocol.name,
            "candidates": models.n,
            "lists": result.lists,
        }
        found["rows"] += result.rows()
        found["gates"] += [
            about | {"model": row_name(model, result.lists), "decision": gate.summary()}
            for model, gate in models.gates.items()
        ]
        found["shown"] += [result.shown_share] if result.lists == "own" else []
        last = result.slices["last"]
        user = np.unique(result.user[last], return_inverse=True)[1]
        means = {
            model: (np.bincount(user, result.ranks[model][last]) / np.bincount(user)).tolist()
            for model in ("static", "adaqac-batch", "adaqac-online")
        }
        found["users"].append(about | {"mrr": means})
    return found


def log_facts(replay: Replay) -> dict[str, Any]:
    """Return what a report says of a log itself, as JSON takes it."""
    log = replay.log
    return {
        "compositions": len(log),
        "users": len(log.users),
        "simulated": bool(log.simulated),
        "skipped": dict(log.skipped),
        "dropped_users": replay.dropped_users,
        "off_prefix": replay.off_prefix,
        "dwell": dwell_histograms(log),
        "not_submitted": not_submitted(replay),
    }


def most_feedback(completer: Completer) -> list[float | str]:
    """Return how much feedback may move a suggestion, with the weights of users never seen."""
    design = completer.design
    most = limits(completer.everyone, design.deviations, design.caps, design.bound)
    return [number if np.isfinite(number) else "no bound" for number in most]


def model_card(completer: Completer) -> dict[str, Any]:
    """Return what whoever serves a fitted completer must know, without anybody's data."""
    dates, least = completer.found.get(DATES), completer.found.get(MIN_USERS)
    return {
        "for": "suggesting queries while people type",
        "fitted on": completer.trained_on + (f", {dates}" if dates else ""),
        "holds": f"{len(completer.index):,} phrases, and what {len(completer.users):,} users "
        "submitted, under the ids of their log",
        "shown to everybody": f"what {least} users submitted, and what a list or a log without "
        "users has"
        if least
        else "every phrase",
        "measured when fitted": completer.order_summary(),
        "limits": "simulated people: what the model is worth to real ones is not known"
        if completer.simulated
        else "people and phrases change: telic completion replay measures the model on a later log",
        "licence": "that of the files that it was fitted on, whose phrases it holds",
    }


def model_facts(completer: Completer) -> dict[str, Any]:
    """Return what a fitted completer holds, in the words of `telic completion inspect`."""
    relevance = completer.relevance
    facts: dict[str, Any] = completer.found | {
        "model": completer.model,
        "protocol": completer.protocol,
        "relevance": relevance.name,
        "weights of popular, personal, recent": [
            relevance.popular,
            relevance.personal,
            relevance.recent,
        ],
        "learned popularity of each query": relevance.unlearned is not None,
        "candidates": completer.n,
        "feedback at most, by one list and by a composition": most_feedback(completer),
        "phrases": len(completer.index),
        "users": len(completer.users),
        "trained on simulated people": completer.simulated,
        "order": completer.order_summary(),
    }
    if completer.signals:
        facts |= signal_facts(completer.signals)
    elif completer.model != "static":
        names = (*FEATURES, "Relevance")
        facts |= {
            "running check": completer.check_summary(),
            "gate": gate_facts(completer.gate),
            "feature weights (everyone)": {
                name: round(float(weight), 4)
                for name, weight in zip(names, completer.everyone, strict=False)
            },
        }
    if completer.phones:
        facts |= {
            "apps": len(completer.phones.apps),
            "query-app weights": len(completer.phones.weights.value),
            "minutes for which an opened app is recent": completer.phones.minutes,
            "fit (objective is at most gap above its optimum)": completer.phones.fit,
        }
    return facts


def signal_facts(ranker: SignalRanker) -> dict[str, Any]:
    """Return what a fit of signals found: of each group its gate, its penalty and its weights."""
    fit = ranker.weights
    groups = {
        group: {
            "gate": fit.gates.get(group, "on" if group in fit.penalties else "not asked for"),
            "penalty": fit.penalties.get(group, "none"),
            "weights": (fit.of_group(group, 4) if group in fit.penalties else "") or "none",
        }
        for group in EVERY_GROUP
        if group in GROUPS or group in fit.gates or group in fit.penalties
    }
    certified = {
        "compositions": fit.choices or np.nan,
        "objective": fit.objective,
        "at most above its optimum": fit.gap,
        "prefixes of pairs": fit.pair_choices or np.nan,
        "objective of pairs at most above its optimum": fit.pair_gap,
    }
    known = {name: value for name, value in certified.items() if np.isfinite(value)}
    minutes = {"minutes without a search that end a session": ranker.session_minutes}
    return {"signals": groups, "fit": known} | minutes
