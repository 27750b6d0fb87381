"""From a composition log to a search box."""

from dataclasses import replace

import numpy as np

from telic.completion.adaqac import CAREFUL, D, Design, Protocol
from telic.completion.appaware_evaluation import fit_phone_models
from telic.completion.appaware_signals import MINUTES
from telic.completion.completer import Completer, UserState, served
from telic.completion.harm import Gate, run_checks
from telic.completion.index import PrefixIndex
from telic.completion.models import Models, fit_models, fit_relevance
from telic.completion.phones import PhoneRanker
from telic.completion.relevance import WINDOW, Relevance
from telic.completion.replay import TEST, Replay


def fit_completer(
    replay: Replay,
    *,
    relevance: str = "personal-s",
    model: str = "adaqac-online",
    protocol: Protocol = CAREFUL,
    n: int = 10,
    minutes: float = MINUTES,
) -> Completer:
    """Fit a completer that carries on where the log ends.

    Weights, penalties and the gate are those of `fit_models`, learned on the first three quarters
    of each user's compositions; the running checks have seen the last quarter; the counts behind
    the relevance are taken over the whole log and the queries that came with it.

    Parameters
    ----------
    replay : Replay
    relevance : str
        One of `telic.completion.relevance.NAMES`.
    model : {"static", "adaqac-unp", "adaqac-batch", "adaqac-online", "appaware", "appaware-adaqac"}
        The last learns apps and implicit feedback in one fit, the same weights for everybody.
    protocol : Protocol
    n : int
        Candidates that are re-ranked.
    minutes : float
        With "appaware": how long an opened app is recent.
    """
    served(model)
    score = fit_relevance(replay, relevance, protocol, n=n)
    if model.startswith("appaware"):
        return _with_phones(replay, score, model, protocol, n=n, minutes=minutes)
    models = fit_models(replay, score, protocol, n=n)
    users = len(replay.log.users)
    gate = models.gates.get(model, Gate.always(users))
    weights = {
        "static": np.zeros_like(models.without),
        "adaqac-unp": np.broadcast_to(models.everyone, models.without.shape),
        "adaqac-batch": models.personal,
        "adaqac-online": models.latest,
    }[model]
    states = _users(replay, weights, models.updates, gate)
    if protocol.do_no_harm and model != "static":
        _walk_checks(replay, models, model, states)
    return Completer(
        _catalogue(replay, score), score, models.design,
        models.everyone if model != "static" else np.zeros_like(models.everyone),
        states, gate, model, n, models.step_size,
        protocol.name, replay.log.simulated, schedule=protocol.schedule,
        l2=protocol.online_l2(models.l2.get("adaqac-unp", protocol.l2[0])),
        keep_unlisted=protocol.keep_unlisted, do_no_harm=protocol.do_no_harm,
    )  # fmt: skip


def _walk_checks(replay: Replay, models: Models, model: str, states: dict[str, UserState]) -> None:
    """Let every user's running check see the last quarter of the log, as it would have served."""
    moments = replay.moments(models.relevance, replay.every_keystroke(TEST), n=models.n)
    found = models.reciprocal_ranks(replay, moments, gated=False)
    user = replay.log.user[moments.composition]
    is_open = models.gates[model].open(user, replay.prefix_length[moments.keystroke])
    gain = np.where(is_open, found[model] - found["static"], 0.0)
    for u, check in run_checks(gain, moments.composition, user)[1].items():
        states[replay.log.users[u]].check = check


def _with_phones(
    replay: Replay, relevance: Relevance, model: str, protocol: Protocol, *, n: int, minutes: float
) -> Completer:
    """Fit AppAware, alone or with implicit feedback."""
    together = model == "appaware-adaqac"
    models = fit_phone_models(
        replay, relevance, protocol, variants=("appaware",), minutes=minutes, together=together, n=n
    )
    apps = models.models["appaware"]
    users = len(replay.log.users)
    gate = models.gates.get("appaware", Gate.always(users))
    design = models.design or Design(np.ones(D), protocol.learn_relevance)
    everyone = apps.feedback / apps.relevance_weight
    if protocol.learn_relevance:
        everyone = np.append(everyone, 0.0)  # all else is over the relevance's weight instead
    relevance = models.relevance
    index = _catalogue(replay, relevance)
    phrases = replay.index.phrases(range(len(replay.index)))
    ranker = PhoneRanker.of(apps, replay.log.apps, phrases, index, minutes=minutes)
    return Completer(
        index, replace(relevance, learned=None), design, everyone,
        _users(replay, np.tile(everyone, (users, 1)), np.zeros(users, int), gate),
        gate, model, n, 0.0, protocol.name, replay.log.simulated, ranker,
        do_no_harm=protocol.do_no_harm,
    )  # fmt: skip


def _catalogue(replay: Replay, relevance: Relevance) -> PrefixIndex:
    """Index what may be suggested, weighted by its shared relevance at the end."""
    events, size = replay.submissions, len(replay.index)
    counts = np.zeros((size, 3))
    recent = events.at >= events.at.max() - WINDOW
    counts[:, 0] = np.bincount(events.query, events.count, size)
    counts[:, 2] = np.bincount(events.query[recent], events.count[recent], size)
    if relevance.scale == "log":
        counts = np.log1p(counts)
    shared = counts @ relevance.factors + relevance.learned_of(np.arange(size))
    known = np.flatnonzero(np.bincount(events.query, events.opens, size))
    return PrefixIndex.build(replay.index.phrases(known), shared[known])


def _users(
    replay: Replay, weights: np.ndarray, updates: np.ndarray, gate: Gate
) -> dict[str, UserState]:
    log = replay.log
    names = replay.index.phrases(range(len(replay.index)))
    states = [
        UserState(weights[u].copy(), int(updates[u]), reranks=bool(gate.users[u]))
        for u in range(len(log.users))
    ]
    for c in replay.by_user:
        state, query = states[log.user[c]], names[replay.query[c]]
        state.history[query] = state.history.get(query, 0.0) + 1.0
        state.previous = query
    return dict(zip(log.users, states, strict=True))
