"""Slow and obvious: feedback and candidates by looping over the log's own words."""

import itertools

import numpy as np

from telic.completion.engine.folding import fold


def is_word(character):
    return not character.isascii() or character.isalnum()


def feedback(strokes, query, previous):
    """The 16 features of a query before the last of `strokes`: (seconds, prefix, shown) tuples."""
    x = np.zeros(16)
    for (at, prefix, shown), (then, _, _) in itertools.pairwise(strokes):
        if query not in shown:
            continue
        prefix, text = fold(prefix), fold(query)
        dwell = min(then - at, 3.0)
        x[0] = max(x[0], dwell)
        x[1] += dwell
        if prefix and text.startswith(prefix) and is_word(prefix[-1]):
            x[2] += len(text) == len(prefix) or not is_word(text[len(prefix)])
        x[3] += prefix.endswith(" ")
        x[4] += bool(prefix) and prefix[-1] != " " and not is_word(prefix[-1])
        x[5] = query == previous
        if shown.index(query) < 10:
            x[6 + shown.index(query)] += 1
    return x


def candidates(events, now, user, prefix, shown, min_users, window, weigh, n, *, own):
    """The n most relevant candidates: events are (at, query, user) with user None for a catalogue.

    `weigh(popular, personal, recent)` gives the relevance; `own`: whether it counts own queries.
    `shown` is the list that joins the candidates; None where none does.
    """
    past = [(at, q, u) for at, q, u in events if at < now]
    known = {
        q
        for q in {q for _, q, _ in past}
        if len({u for _, p, u in past if p == q}) >= min_users
        or any(u is None for _, p, u in past if p == q)
    }
    mine = {q for _, q, u in past if u == user} if own else set()
    able = {q for q in known | mine if fold(q).startswith(fold(prefix))} | set(shown or ())
    known |= set(shown or ())

    def relevance(q):
        personal = sum(p == q and u == user for _, p, u in past)
        if q not in known:  # nobody but this user is to learn anything of it
            return weigh(0, personal, 0)
        popular = sum(p == q for _, p, _ in past)
        recent = sum(p == q and at >= now - window for at, p, _ in past)
        return weigh(popular, personal, recent)

    def key(q):
        place = shown.index(q) if shown and q in shown else 10**9
        return (-round(relevance(q), 9), place, fold(q).encode(), q)

    best = sorted(able, key=key)[:n]
    return best, [relevance(q) for q in best]


def online(compositions, weights, *, step_size, l2, updates=0):
    """adaQAC-Online as printed (2.7.2): eta times 0.9 after every update, the whole lambda * phi.

    `compositions` are (x, relevance, chosen): features and relevance of the candidates, with the
    submitted query joined to them, and its row.
    """
    phi = np.array(weights, float)
    eta = step_size
    for _ in range(updates):
        eta = eta * 0.9
    for x, relevance, chosen in compositions:
        e = [np.exp(r + phi @ row) for r, row in zip(relevance, x, strict=True)]
        s1 = sum(weight * row for weight, row in zip(e, x, strict=True))
        s2 = sum(e)
        phi = phi - eta * (s1 / s2 - x[chosen] + l2 * phi)
        eta = eta * 0.9
    return phi


def running_check(gains, served, *, forgetting, allowance):
    """(recent, drawdown) by definition: a discounted sum; the worst stretch that ends now."""
    n = len(gains)
    recent = sum(forgetting ** (n - 1 - t) * gains[t] for t in range(n))
    stretches = [sum(-s - allowance for s in served[begin:]) for begin in range(n)]
    return recent, max([0.0, *stretches])
