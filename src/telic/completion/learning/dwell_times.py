"""How long lists are looked at in a composition log, and what dwell times say of what is wanted."""

import numpy as np

from telic.completion.learning.filtering_qac import DWELL_THRESHOLDS, POSITION_THRESHOLDS
from telic.completion.learning.replayed_log import Replay
from telic.data.compositions import CompositionLog

TENTH = 100_000  # microseconds of a tenth of a second, by which dwell times are told apart


def dwell_histograms(log: CompositionLog, *, users: int = 10, seed: int = 0) -> dict:
    """Count dwell times in bins of 0.1 s (Figure 2.2a) and each user's most frequent bin (2.2b).

    Returns
    -------
    dict
        ``edges`` (32,), ``sample`` (users, 31): shares for users drawn at random, ``peaks`` (31,):
        how many users have their peak in each bin.
    """
    start, end = log.keystroke_start[:-1], log.keystroke_start[1:]
    until = np.append(log.at[1:], 0)
    until[end - 1] = log.submitted_at
    user = np.repeat(log.user, end - start)
    edges = np.round(np.arange(0, 3.2, 0.1), 1)
    bins = np.minimum((until - log.at) // TENTH, len(edges) - 1)
    counts = np.zeros((len(log.users), len(edges)))
    np.add.at(counts, (user, bins), 1)
    counts = counts[:, :-1]  # the last are beyond the edges
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    chosen = np.random.default_rng(seed).permutation(len(log.users))[:users]
    has_one = counts.any(axis=1)  # who looks at every list for longer has no peak
    peaks = np.bincount(counts[has_one].argmax(axis=1), minlength=len(edges) - 1)
    return {"edges": edges, "sample": shares[np.sort(chosen)], "peaks": peaks}


def not_submitted(replay: Replay) -> np.ndarray:
    """Measure Figure 2.2(c): how often is what was shown high and long not submitted?

    Over all lists but the last of each composition.

    Returns
    -------
    float64 array of shape (30, 10)
        For T_DT in `DWELL_THRESHOLDS` and T_P in `POSITION_THRESHOLDS`: share of the suggestions
        shown for at least T_DT at a position of at most T_P that were not submitted in the end.
    """
    log = replay.log
    lengths = np.diff(log.list_start)
    keystroke = np.repeat(np.arange(len(lengths)), lengths)
    position = np.arange(len(keystroke)) - np.repeat(log.list_start[:-1], lengths) + 1
    composition = np.repeat(np.arange(len(log)), np.diff(log.keystroke_start))
    final = np.zeros(len(lengths), bool)
    final[log.keystroke_start[1:] - 1] = True
    dwell = np.append(np.diff(log.at), 0)
    kept = ~final[keystroke] & (position <= POSITION_THRESHOLDS[-1])
    step = np.minimum(dwell[keystroke[kept]] // TENTH, len(DWELL_THRESHOLDS))
    missed = replay.shown[kept] != replay.query[composition[keystroke[kept]]]
    shape = (len(DWELL_THRESHOLDS) + 1, len(POSITION_THRESHOLDS))
    total, wrong = np.zeros(shape), np.zeros(shape)
    np.add.at(total, (step, position[kept] - 1), 1)
    np.add.at(wrong, (step, position[kept] - 1), missed)

    def beyond(counts: np.ndarray) -> np.ndarray:
        """Sum over dwells of at least T_DT and positions of at most T_P."""
        return counts[::-1].cumsum(axis=0)[::-1].cumsum(axis=1)[1:]

    total, wrong = beyond(total), beyond(wrong)
    return np.divide(wrong, total, out=np.full(total.shape, np.nan), where=total > 0)
