"""The signals: what is known of a candidate when, for whom and after what it is suggested.

The kernel here is the only place that computes them, in training, testing and at a keystroke; of
feedback that is `telic.completion.learning.feedback`. `telic.completion.signals.groups` names them.
"""

import numpy as np

from telic.completion.engine.array_kernels import place_in
from telic.completion.learning.feedback import ends_word
from telic.completion.signals.counts import CONTEXT, DAY, HOURS, moment_of_week
from telic.completion.signals.opened_apps import write_app_features
from telic.completion.signals.overlap import begins_with, common
from telic.completion.signals.query_pairs import pair_number, pair_weight
from telic.kernels import kernel

CLOCK_SHRINKAGE = 20.0
"""Submissions by everybody that a phrase's own hours and days are mixed with."""
FOLLOWS_SHRINKAGE = 100.0
"""Submissions by everybody that what followed a query is mixed with. Both numbers were chosen among
0.3 to 1000 on two simulated logs, of `telic.study.signals` with the seeds 0 and 1; they hardly
matter, because the weights are learned."""


@kernel
def lift(part, whole, share, shrinkage):
    """Logarithm of how many times more often than `share` a part comes, drawn towards 0."""
    if share <= 0.0:
        return 0.0
    return np.log((part + shrinkage * share) / ((whole + shrinkage) * share))


@kernel
def in_catalogue(state, q):
    """Whether a number is that of a phrase which may be suggested to everybody by now."""
    return 0 <= q < len(state.known) and state.known[q]


@kernel
def text_of(state, beyond, q):
    """The folded text of a number."""
    texts, i = (state.texts, q) if q < len(state.known) else (beyond.texts, q - len(state.known))
    return texts.text[texts.text_start[i] : texts.text_start[i + 1]]


@kernel
def times_followed(state, p, q):
    """How often q was submitted after p in a session.

    Of queries that are not known to everybody it tells nothing: few people submitted them, and what
    they did next is theirs.
    """
    if not in_catalogue(state, p) or not in_catalogue(state, q):
        return 0.0
    last = state.pair_start[p + 1]
    i = place_in(state.pair_next, state.pair_start[p], last, q)
    return state.pair_count[i] if i < last and state.pair_next[i] == q else 0.0


@kernel
def write_features(
    state, pairs, beyond, shrinkage, now, own, session, opened, prefix, candidates, out
):
    """Write the row of every candidate.

    How often it followed an earlier query is ``log(1 + times / (shrinkage * its share))``: up to a
    term that all candidates share, the logarithm of the shrunk conditional probability over its
    share of all submissions. The weights of such pairs, `pairs`, come as they are.

    Of a phrase that is not known to everybody only the user's own counts, the texts and the session
    tell something: it must not reveal what others submitted.
    """
    clock_shrinkage, follows_shrinkage, app_shrinkage = shrinkage
    hour, day = moment_of_week(now)
    n = len(state.known)
    everybody = state.clock[n]
    before = session.texts
    for j in range(len(candidates)):
        q = candidates[j]
        row = out[j]
        row[:] = 0.0
        known = in_catalogue(state, q)
        if known:
            row[0] = np.log1p(state.popular[q])
            row[1] = np.log1p(state.people[q])
            for w in range(3):
                row[2 + w] = np.log1p(max(state.recent[q, w], 0.0))
            for k, slot in ((5, hour), (6, HOURS + day)):
                share = everybody[slot] / max(state.total[0], 1.0)
                row[k] = lift(state.clock[q, slot], state.logged[q], share, clock_shrinkage)
        elif q >= n:
            row[0] = np.log1p(beyond.popular[q - n])
        i = place_in(own.query, 0, len(own.query), q)
        if i < len(own.query) and own.query[i] == q and own.times[i] > 0.0:
            row[7] = np.log1p(own.times[i])
            row[8] = 1.0 / (1.0 + max(now - own.last[i], 0) / DAY)
        texts, t = (state.texts, q) if q < n else (beyond.texts, q - n)
        text = texts.text[texts.text_start[t] : texts.text_start[t + 1]]
        words = texts.word[texts.word_start[t] : texts.word_start[t + 1]]
        grams = texts.gram[texts.gram_start[t] : texts.gram_start[t + 1]]
        for s in range(len(session.ids)):
            p = session.ids[s]
            said = before.word[before.word_start[s] : before.word_start[s + 1]]
            kept = common(said, words) / len(said) if len(said) else 0.0
            times, follows = times_followed(state, p, q), 0.0
            if times > 0.0:
                follows = np.log1p(times * state.total[0] / (follows_shrinkage * state.logged[q]))
                row[20] += pair_weight(pairs, pair_number(p, q, n))
            row[9] = max(row[9], 1.0 if p == q else 0.0)
            if s == 0:
                start = before.text[before.text_start[s] : before.text_start[s + 1]]
                row[10] = p == q
                row[11] = len(text) > len(start) and begins_with(text, start)
                row[12] = kept
                typed = before.gram[before.gram_start[s] : before.gram_start[s + 1]]
                both = len(typed) + len(grams)
                row[14] = 2.0 * common(typed, grams) / both if both else 0.0
                row[15] = follows
            else:
                row[13] = max(row[13], kept)
                row[16] += follows / (CONTEXT - 1)
        row[17] = len(prefix) / len(text)
        row[18] = ends_word(prefix, text)
        row[19] = len(prefix) == len(text)
        if known:
            share = state.logged[q] / max(state.total[0], 1.0)
            write_app_features(state.apps, share, app_shrinkage, opened, q, row[21:])
