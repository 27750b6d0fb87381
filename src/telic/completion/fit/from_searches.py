"""From a query log to a search box that ranks by signals."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from telic.completion.box.completer import SIGNALS, Completer
from telic.completion.box.user_state import UserState
from telic.completion.engine.prefix_index import PrefixIndex
from telic.completion.learning.adaqac import D, FeedbackDesign
from telic.completion.learning.do_no_harm import Gate
from telic.completion.learning.relevance import Relevance
from telic.completion.signals.compositions import Compositions
from telic.completion.signals.counts import CONTEXT, CountArrays, of_catalogue
from telic.completion.signals.gates import learn
from telic.completion.signals.groups import FEEDBACK, WIDTH
from telic.completion.signals.log_split import Searches
from telic.completion.signals.pool import POOL
from telic.completion.signals.ranker import SignalRanker
from telic.completion.signals.sweep import SHRINKAGE, Shrinkage, state_before
from telic.completion.signals.weights import SignalWeights, choosing_moments, lessons_of


def fit_signals(
    searches: Searches,
    groups: Sequence[str] | None = None,
    *,
    progress: Callable[[str], None] = lambda step: None,
) -> Completer:
    """Fit a completer that ranks by signals and carries on where the log ends.

    Parameters
    ----------
    searches : Searches
    groups : sequence of str, optional
        Those that may be on, of `Searches.groups`; by default all. Each has a penalty and a gate of
        its own: see `telic.completion.signals.learn`.
    progress : callable, optional
        Called with a short text before each piece of work.
    """
    progress("gathering what to learn from")
    lessons, chosen_by = lessons_of(searches), choosing_moments(searches)
    return completer_of_searches(
        searches, learn(searches, lessons, chosen_by, groups, progress=progress)
    )


def completer_of_searches(
    searches: Searches,
    weights: SignalWeights,
    *,
    shrinkage: Shrinkage = SHRINKAGE,
    at: int | None = None,
) -> Completer:
    """Put fitted signals behind a search box, as of a moment of the log.

    At each submission, this is what the evaluation measures (tests replay one against the other).
    The catalogue holds what may be suggested to everybody by then; users have their own queries,
    with times, and the session that was their last.

    Parameters
    ----------
    searches : Searches
    weights : SignalWeights
    shrinkage : Shrinkage
        That of the fit.
    at : int, optional
        Microseconds since 1970; by default the end of the log.
    """
    now = int(searches.at[-1]) + 1 if at is None else at
    state = state_before(searches, now)
    known = np.flatnonzero(state.known)
    index, given = PrefixIndex.build_ordered(
        searches.index.phrases(known), np.log1p(state.popular[known])
    )
    ids = known[given]
    ranker = SignalRanker(
        of_catalogue(state, ids),
        replace(weights, pairs=weights.pairs.renumbered(ids, len(state.known))),
        shrinkage,
        searches.session_minutes,
        apps=[searches.apps[a] for a in np.flatnonzero(state.apps.known)],
        app_minutes=searches.minutes,
    )
    design, feedback = FeedbackDesign(np.ones(D), False), np.zeros(D)
    if FEEDBACK in weights.penalties:
        deviations = weights.deviations[WIDTH:]
        design = FeedbackDesign(deviations, False, weights.caps, weights.bound)
        feedback = weights.weights[WIDTH:] * deviations
    users = _users(searches, state, now, feedback)
    return Completer(
        index,
        Relevance("mpc"),
        design,
        feedback,
        users,
        Gate.always(len(users)),
        SIGNALS,
        POOL,
        0.0,
        "careful",
        isinstance(searches, Compositions) and searches.log.simulated,
        do_no_harm=False,
        merged=True,
        signals=ranker,
    )


def _users(
    searches: Searches, state: CountArrays, now: int, feedback: np.ndarray
) -> dict[str, UserState]:
    """Return what is known of each user who has submitted anything by now."""
    phrases = searches.index.phrases(range(len(searches.index)))
    users = {}
    for u, name in enumerate(searches.names):
        own = np.arange(state.own_start[u], state.own_start[u + 1])
        own = own[state.own_count[own] > 0]
        own = own[np.argsort(state.own_last[own], kind="stable")]
        texts = [phrases[q] for q in state.own_query[own]]
        if texts:
            users[name] = UserState(
                feedback.copy(),
                history=dict(zip(texts, state.own_count[own].tolist(), strict=True)),
                previous=texts[-1],
                last=dict(zip(texts, state.own_last[own].tolist(), strict=True)),
            )
    past = searches.at < now
    for e in np.flatnonzero(past & (searches.user >= 0))[::-1].tolist():
        user = users.get(searches.names[searches.user[e]])
        if user is not None and not user.session:
            b = e
            while b >= 0 and len(user.session) < CONTEXT:
                user.session.append(phrases[searches.query[b]])
                b = searches.before[b]
    return users
