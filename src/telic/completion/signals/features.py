"""The signals: what is known of a candidate when, for whom and after what it is suggested.

The kernel here is the only place that computes them, in training, testing and at a keystroke.
"""

import numpy as np

from telic.completion.learning.feedback import ends_word
from telic.completion.signals.counts import CONTEXT, DAY, HOURS, moment_of_week, place_in
from telic.completion.signals.overlap import begins_with, common
from telic.kernels import kernel

GROUPS: dict[str, tuple[str, ...]] = {
    "popularity": ("submissions", "different users"),
    "time": ("last 28 days", "last 7 days", "last day", "hour of the day", "day of the week"),
    "personal": ("own submissions", "how lately"),
    "session": (
        "submitted before",
        "submitted just before",
        "continues",
        "words kept",
        "words kept of earlier ones",
        "characters shared",
        "follows",
        "follows earlier ones",
    ),
    "match": ("share typed", "ends a word", "is what was typed"),
}
"""Names of the features of each group, in the order of the columns."""
FEATURES = tuple(name for names in GROUPS.values() for name in names)
GROUP_OF = tuple(group for group, names in GROUPS.items() for _ in names)
"""The group of each feature."""
WIDTH = len(FEATURES)

CLOCK_SHRINKAGE = 20.0
"""Submissions by everybody that a phrase's own hours and days are mixed with."""
PAIR_SHRINKAGE = 100.0
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
def follow(state, p, q, shrinkage):
    """How much more often q came after p in a session than by its popularity; 0 if never.

    ``log(1 + pairs / (shrinkage * share of q))``: up to a term that all candidates share, the
    logarithm of the shrunk conditional probability over q's share of all submissions.
    """
    last = state.pair_start[p + 1]
    i = place_in(state.pair_next, state.pair_start[p], last, q)
    if i == last or state.pair_next[i] != q or state.pair_count[i] == 0.0:
        return 0.0
    return np.log1p(state.pair_count[i] * state.total[0] / (shrinkage * state.popular[q]))


@kernel
def write_features(state, shrinkage, now, own, session, prefix, candidates, out):
    """Write the row of every candidate.

    `own` is where the user's own queries begin and end; `session` the earlier queries of the
    session, latest first: their numbers (-1 if unknown), texts, words and grams, each with starts.
    Of a phrase that is not known to everybody only the user's own counts, the texts and the session
    tell something: it must not reveal what others submitted.
    """
    ids, texts, text_start, words, word_start, grams, gram_start = session
    clock_shrinkage, pair_shrinkage = shrinkage
    hour, day = moment_of_week(now)
    everybody = state.clock[len(state.known)]
    for j in range(len(candidates)):
        q = candidates[j]
        row = out[j]
        row[:] = 0.0
        text = state.text[state.text_start[q] : state.text_start[q + 1]]
        if state.known[q]:
            row[0] = np.log1p(state.popular[q])
            row[1] = np.log1p(state.people[q])
            for w in range(3):
                row[2 + w] = np.log1p(max(state.recent[q, w], 0.0))
            for k, slot in ((5, hour), (6, HOURS + day)):
                share = everybody[slot] / max(state.total[0], 1.0)
                row[k] = lift(state.clock[q, slot], state.popular[q], share, clock_shrinkage)
        i = place_in(state.own_query, own[0], own[1], q)
        if i < own[1] and state.own_query[i] == q and state.own_count[i] > 0.0:
            row[7] = np.log1p(state.own_count[i])
            row[8] = 1.0 / (1.0 + (now - state.own_last[i]) / DAY)
        own_words = state.word[state.word_start[q] : state.word_start[q + 1]]
        own_grams = state.gram[state.gram_start[q] : state.gram_start[q + 1]]
        for s in range(len(ids)):
            said = words[word_start[s] : word_start[s + 1]]
            kept = common(said, own_words) / len(said) if len(said) else 0.0
            follows = 0.0
            if ids[s] >= 0 and state.known[q]:
                follows = follow(state, ids[s], q, pair_shrinkage)
            row[9] = max(row[9], 1.0 if ids[s] == q else 0.0)
            if s == 0:
                row[10] = ids[s] == q
                row[11] = begins_with(text, texts[text_start[s] : text_start[s + 1]])
                row[12] = kept
                typed = grams[gram_start[s] : gram_start[s + 1]]
                both = len(typed) + len(own_grams)
                row[14] = 2.0 * common(typed, own_grams) / both if both else 0.0
                row[15] = follows
            else:
                row[13] = max(row[13], kept)
                row[16] += follows / (CONTEXT - 1)
        row[17] = len(prefix) / len(text)
        row[18] = ends_word(prefix, text)
        row[19] = len(prefix) == len(text)
