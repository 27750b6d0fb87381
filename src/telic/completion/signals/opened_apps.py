"""Apps that were opened before a query: in a log, counted by a moment, and what they tell.

AppAware has a weight for each pair of a query and an app. Here each pair is a count, and what the
counts say of a candidate are a few features, so that apps are a group of signals like the others.
"""

from typing import NamedTuple

import numpy as np

from telic.completion.engine.array_kernels import place_in
from telic.kernels import kernel

MOST_OPENED = 8
"""How many of the apps opened last are looked at, each once."""
APP_SHRINKAGE = 100.0
"""Submissions by everybody that those after an app are mixed with. It was chosen among 1 to 300 on
simulated phones with the seeds 0 and 1."""


class Openings(NamedTuple):
    """The apps of a log's submissions, the one opened last first."""

    first: np.ndarray
    last: np.ndarray
    """int64 (m,): those of submission e are ``app[first[e]:last[e]]``."""
    app: np.ndarray
    """int32."""
    opens: np.ndarray
    """bool: whether enough users have had the app from this submission on."""

    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions in `app`, submission by submission, and the submission of each."""
        size = self.last - self.first
        event = np.repeat(np.arange(len(size)), size)
        begin = np.cumsum(size) - size
        return np.arange(len(event)) + (self.first - begin)[event], event


class AppCounts(NamedTuple):
    """What was submitted after which app, by a moment."""

    known: np.ndarray
    """bool (apps,): whether enough users had the app; what others did with it tells nothing."""
    total: np.ndarray
    """float64 (apps,): submissions after each app."""
    start: np.ndarray
    query: np.ndarray
    times: np.ndarray
    """Those after app a, by phrase, ascending: ``query[start[a]:start[a + 1]]``, how often."""


def no_openings(submissions: int) -> Openings:
    """Return those of a log that does not tell which apps were opened."""
    nothing = np.zeros(submissions, np.int64)
    return Openings(nothing, nothing, np.zeros(0, np.int32), np.zeros(0, bool))


@kernel
def count_opened(apps, opened, e, q, c):
    """Count submission e, of phrase q, for each of its apps."""
    for i in range(opened.first[e], opened.last[e]):
        a = opened.app[i]
        apps.known[a] |= opened.opens[i]
        apps.total[a] += c
        apps.times[place_in(apps.query, apps.start[a], apps.start[a + 1], q)] += c


@kernel
def write_app_features(apps, share, shrinkage, opened, q, row):
    """Write what the apps opened say of phrase q, whose share of all submissions is given.

    An app's say is the logarithm of how many times more often than by its share the phrase was
    submitted after the app, shrunk. The row gets that of the app opened last, the logarithm of the
    mean over all (the k-th counts 1/k), and the largest. An app that is not known, or of which
    nothing is counted, says 0.
    """
    if share <= 0.0 or len(opened) == 0:
        return
    mean, weights, most = 0.0, 0.0, -np.inf
    for k in range(len(opened)):
        a, times = opened[k], 1.0
        if a >= 0 and apps.known[a]:
            last = apps.start[a + 1]
            i = place_in(apps.query, apps.start[a], last, q)
            part = apps.times[i] if i < last and apps.query[i] == q else 0.0
            times = (part / share + shrinkage) / (apps.total[a] + shrinkage)
        mean += times / (k + 1)
        weights += 1.0 / (k + 1)
        most = max(most, times)
        if k == 0:
            row[0] = np.log(times)
    row[1] = np.log(mean / weights)
    row[2] = np.log(most)
