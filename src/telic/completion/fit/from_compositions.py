"""From a composition log to a search box."""

import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from telic.completion.box.completer import OF_COMPOSITIONS, Completer
from telic.completion.box.user_state import UserState
from telic.completion.engine.prefix_index import PrefixIndex
from telic.completion.fit.log_parts import RUN
from telic.completion.fit.models import Models, fit_models, fit_relevance
from telic.completion.fit.phone_models import PhoneModels, fit_phone_models
from telic.completion.learning.adaqac import CAREFUL, D, FeedbackDesign, Protocol
from telic.completion.learning.app_features import MINUTES
from telic.completion.learning.do_no_harm import Gate, run_checks
from telic.completion.learning.phone_ranker import PhoneRanker
from telic.completion.learning.relevance import WINDOW, Relevance, shared_parts
from telic.completion.learning.replayed_log import TEST, Replay
from telic.data.object_storage import Place, refuse_remote
from telic.errors import InputError, expect_one_of
from telic.scale import Executor


def fit_completer(
    replay: Replay,
    *,
    relevance: str = "personal-s",
    model: str = "adaqac-online",
    protocol: Protocol = CAREFUL,
    n: int = 10,
    minutes: float = MINUTES,
    executor: Executor | None = None,
    work: str | Place | None = None,
) -> Completer:
    """Fit a completer that carries on where the log ends.

    Weights, penalties and the gate are those of `fit_models`, learned on the first three quarters
    of each user's compositions; the running checks have seen the last quarter; the counts behind
    the relevance are taken over the whole log and the queries that came with it. Users of the log
    have the weights that the evaluation tries on them; with "adaqac-unp" these are learned from
    everybody else.

    Parameters
    ----------
    replay : Replay
    relevance : str
        One of `telic.completion.learning.relevance.NAMES`.
    model : {"static", "adaqac-unp", "adaqac-batch", "adaqac-online", "appaware", "appaware-adaqac"}
        The last learns apps and implicit feedback in one fit, the same weights for everybody.
    protocol : Protocol
    n : int
        Candidates that are re-ranked.
    minutes : float
        With "appaware": how long an opened app is recent.
    executor : telic.scale.Executor, optional
        Learns users' weights in buckets of users, or AppAware's with each penalty; the completer
        is the same to the bit.
    work : path, optional
        With an executor: a folder that every worker reaches, where a job that was interrupted goes
        on. By default a temporary folder of this machine, which is removed.

    Raises
    ------
    InputError
        If the folder holds another job's files, or a model of apps is asked for of a log without
        apps, or without one that enough users had.
    """
    if work is not None:
        refuse_remote(work, "work", "what is learned from is mapped")
    expect_one_of(OF_COMPOSITIONS, model=model)
    if model.startswith("appaware") and not replay.log.apps:
        raise InputError(
            f"{replay.log.source}: names no apps, so {model} has nothing to learn. Bring a column, "
            "installed or opened, or choose another model."
        )
    replay = replay.over("own")
    score = fit_relevance(replay, relevance, protocol, n=n)
    models: Models | PhoneModels
    with ExitStack() as until_fitted:
        if executor is not None and work is None:
            work = until_fitted.enter_context(tempfile.TemporaryDirectory(prefix="telic-job-"))
        engine: dict[str, Any] = {"n": n, "executor": executor}
        engine["work"] = None if work is None else Path(str(work))
        if model.startswith("appaware"):
            models = fit_phone_models(
                replay,
                score,
                protocol,
                variants=("appaware",),
                minutes=minutes,
                together=model == "appaware-adaqac",
                **engine,
            )
            if not models.signals["appaware"].known.any():
                raise InputError(
                    f"{replay.log.source}: no app that {replay.min_users} users of the training "
                    f"part had, so {model} has nothing to learn. Lower --min-users, or choose "
                    "another model."
                )
        else:
            models = fit_models(replay, score, protocol, **engine)
    return completer_of(replay, models, model)


def completer_of(
    replay: Replay, models: Models | PhoneModels, model: str, *, at: int | None = None
) -> Completer:
    """Put fitted models behind a search box, as of a moment of the log.

    This is what the evaluation measures: at the start of each composition, the completer of that
    moment (tests replay one against the other). Weights, scales and gates are those of the fit;
    counts, catalogue, histories, online steps and running checks are those of before the moment.

    Parameters
    ----------
    replay : Replay
    models : Models or PhoneModels
        Fitted on the replay; the latter for "appaware" and "appaware-adaqac".
    model : str
        One of `telic.completion.box.completer.OF_COMPOSITIONS`.
    at : int, optional
        Microseconds since 1970; by default the end of the log.
    """
    events = replay.submissions
    now = int(events.at.max()) + 1 if at is None else at
    relevance, protocol, users = models.relevance, models.protocol, len(replay.log.users)
    index = _catalogue(replay, relevance, now)
    steps, step_size, l2, ranker = np.zeros(users, int), 0.0, 0.0, None
    if isinstance(models, PhoneModels):
        apps = models.models["appaware"]
        gate = models.gates.get("appaware", Gate.always(users))
        design = models.design or FeedbackDesign(np.ones(D), protocol.learn_relevance)
        everyone = apps.feedback / apps.relevance_weight
        if protocol.learn_relevance:
            everyone = np.append(everyone, 0.0)  # all else is over the relevance's weight instead
        weights = np.tile(everyone, (users, 1))
        phrases = replay.index.phrases(range(len(replay.index)))
        known = models.signals["appaware"].known
        ranker = PhoneRanker.of(
            *(apps, replay.log.apps, known, phrases, index), minutes=models.minutes
        )
    else:
        gate = models.gates.get(model, Gate.always(users))
        design, everyone, step_size = models.design, models.everyone, models.step_size
        l2 = protocol.online_l2(models.l2.get("adaqac-unp", protocol.l2[0]))
        if model == "static":
            everyone = np.zeros_like(everyone)
            weights = np.zeros_like(models.without)
        elif model == "adaqac-online":
            weights, steps = _online_at(replay, models, now)
        else:
            weights = models.personal if model == "adaqac-batch" else models.without
    states = _users(replay, weights, everyone, steps, gate, now)
    if protocol.do_no_harm and model != "static":
        _walk_checks(replay, models, model, states, now)
    return Completer(
        index,
        replace(relevance, learned=None),
        design,
        everyone,
        states,
        gate,
        model,
        models.n,
        step_size,
        protocol.name,
        replay.log.simulated,
        ranker,
        schedule=protocol.schedule,
        l2=l2,
        keep_unlisted=protocol.keep_unlisted,
        do_no_harm=protocol.do_no_harm,
    )


def _walk_checks(
    replay: Replay, models: Models | PhoneModels, model: str, states: dict[str, UserState], now: int
) -> None:
    """Let every user's running check see the last quarter of the log, as it would have served."""
    name, base = ("appaware", "standard") if model.startswith("appaware") else (model, "static")
    for run in replay.runs(replay.every_keystroke(TEST), RUN):
        moments = replay.moments(models.relevance, run.keystrokes, n=models.n)
        moments = moments.where(replay.log.submitted_at[moments.composition] < now)
        found = models.reciprocal_ranks(replay, moments, gated=False)
        user = replay.log.user[moments.composition]
        is_open = models.gates[name].open(user, replay.prefix_length(moments.keystroke))
        gain = np.where(is_open, found[name] - found[base], 0.0)
        times = {"begun": replay.start_at, "submitted": replay.log.submitted_at}
        for u, check in run_checks(gain, moments.composition, user, **times)[1].items():
            states[replay.log.users[u]].check = check


def _catalogue(replay: Replay, relevance: Relevance, now: int) -> PrefixIndex:
    """Index what may be suggested, weighted by its shared relevance at a moment."""
    events, size = replay.submissions, len(replay.index)
    before = events.at < now
    recent = before & (events.at >= now - WINDOW)
    popular = np.bincount(events.query[before], events.count[before], size)
    lately = np.bincount(events.query[recent], events.count[recent], size)
    known = np.flatnonzero(np.bincount(events.query[before], events.opens[before], size))
    shared = relevance.learned_of(np.arange(size)) + shared_parts(
        popular, lately, relevance.factors, relevance.scale == "log"
    )
    return PrefixIndex.build(replay.index.phrases(known), shared[known])


def _online_at(replay: Replay, models: Models, now: int) -> tuple[np.ndarray, np.ndarray]:
    """Return online weights, and steps behind them, where each user next begins to type."""
    weights, steps = models.latest.copy(), models.updates.copy()
    ahead = np.flatnonzero((replay.start_at >= now) & (models.walked >= 0))
    for c in ahead[np.argsort(-replay.start_at[ahead], kind="stable")]:
        weights[replay.log.user[c]] = models.online[models.walked[c]]
        steps[replay.log.user[c]] = models.steps[c]
    return weights, steps


def _users(
    replay: Replay,
    weights: np.ndarray,
    everyone: np.ndarray,
    steps: np.ndarray,
    gate: Gate,
    now: int,
) -> dict[str, UserState]:
    """Return what is known of each user; those of an earlier query log alone begin as new ones."""
    log, events = replay.log, replay.submissions
    names = replay.index.phrases(range(len(replay.index)))
    states = [
        UserState(weights[u].copy(), int(steps[u]), reranks=bool(gate.users[u]))
        for u in range(len(log.users))
    ]
    states += [UserState(everyone.copy()) for _ in replay.users[len(states) :]]
    for e in np.flatnonzero((events.at < now) & (events.user >= 0)):
        state, query = states[events.user[e]], names[events.query[e]]
        state.history[query] = state.history.get(query, 0.0) + float(events.count[e])
        if events.user[e] >= len(log.users):
            state.previous = query  # submissions come in the order of time
    for c in replay.by_user[log.submitted_at[replay.by_user] < now]:
        states[log.user[c]].previous = names[replay.query[c]]
    return dict(zip(replay.users, states, strict=True))
