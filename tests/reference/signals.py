"""The signals by definition: every count made anew by looking through the whole log."""

import math
import re

import numpy as np

from telic.completion.engine.folding import fold
from telic.completion.signals.counts import CONTEXT, WINDOWS
from telic.data.queries import QueryLog

DAY = 24 * 3600 * 1_000_000
MINUTE, HOUR = 60 * 1_000_000, 3600 * 1_000_000


def sessions_of(users, each, *, caused, seed=0):
    """Sessions of two queries; the second is equally often either of two that begin alike."""
    rng = np.random.default_rng(seed)
    first = rng.integers(2, size=(users, each))
    then = 2 + (first if caused else rng.integers(2, size=first.shape))
    at = 2 * HOUR * np.arange(users * each).reshape(each, users).T + rng.integers(MINUTE)
    return QueryLog(
        ["red", "blue", "tea", "tee"],
        np.stack([first, then], axis=2).ravel().astype(np.int32),
        np.stack([at, at + MINUTE], axis=2).ravel(),
        [f"u{user}" for user in range(users)],
        np.repeat(np.arange(users), 2 * each).astype(np.int32),
        np.ones(2 * users * each),
    )


def words(text):
    return set(re.findall(r"[a-z0-9]+", text))


def grams(text):
    coded = text.encode()
    return {coded[i : i + 3] for i in range(len(coded) - 2)}


def session(searches, event):
    found, b = [], searches.before[event]
    while b >= 0 and len(found) < CONTEXT:
        found.append(int(searches.query[b]))
        b = searches.before[b]
    return found


class Oracle:
    """What is known at one submission."""

    def __init__(self, searches, event):
        self.s, self.event = searches, event
        self.now = int(searches.begin[event])
        self.user = int(searches.user[event])
        self.past = [e for e in range(len(searches)) if searches.at[e] < self.now]
        self.session = session(searches, event)
        self.pairs = [
            (p, int(searches.query[e]), searches.count[e])
            for e in self.past
            for p in session(searches, e)
        ]
        self.total = sum(searches.count[e] for e in self.past)

    def text(self, q):
        return fold(self.s.index.phrase(q))

    def of(self, q):
        return [e for e in self.past if self.s.query[e] == q]

    def known(self, q):
        return any(self.s.opens[e] for e in self.of(q))

    def counted(self, events):
        return float(sum(self.s.count[e] for e in events))

    def own(self, q):
        return [e for e in self.of(q) if self.user >= 0 and self.s.user[e] == self.user]

    def recent(self, q, window):
        return self.counted([e for e in self.of(q) if self.s.at[e] >= self.now - window])

    def lift(self, q, slot_of, shrinkage):
        slot = slot_of(self.now)
        share = self.counted([e for e in self.past if slot_of(int(self.s.at[e])) == slot])
        share /= max(self.total, 1.0)
        part = self.counted([e for e in self.of(q) if slot_of(int(self.s.at[e])) == slot])
        if share <= 0:
            return 0.0
        return math.log(
            (part + shrinkage * share) / ((self.counted(self.of(q)) + shrinkage) * share)
        )

    def people(self, q):
        named = {int(self.s.user[e]) for e in self.of(q)} - {-1}
        return len(named) + self.counted([e for e in self.of(q) if self.s.user[e] < 0])

    def follows(self, p, q, shrinkage):
        if not self.known(q) or not self.known(p):
            return 0.0
        together = sum(c for first, later, c in self.pairs if (first, later) == (p, q))
        popular = self.counted(self.of(q))
        return math.log1p(together * self.total / (shrinkage * popular)) if together else 0.0

    def opened(self, event):
        """The apps of a submission, the one opened last first."""
        own = slice(self.s.opened.first[event], self.s.opened.last[event])
        return self.s.opened.app[own].tolist()

    def app_known(self, a):
        """Whether enough users, none of them unnamed, had the app before they searched."""
        return len({int(self.s.user[e]) for e in self.past if a in self.opened(e)}) >= (
            self.s.min_users
        )

    def after_app(self, a, q, shrinkage):
        """How many times more often than by its share q was submitted after an app, shrunk."""
        if not self.app_known(a):
            return 1.0
        after = [e for e in self.past if a in self.opened(e)]
        share = self.counted(self.of(q)) / self.total
        both = self.counted([e for e in after if self.s.query[e] == q])
        return (both + shrinkage * share) / ((self.counted(after) + shrinkage) * share)

    def row(self, q, prefix, clock=20.0, pairs=100.0, apps=100.0):
        text = self.text(q)
        out = np.zeros(24)  # without weights of pairs
        if self.known(q):
            out[0] = math.log1p(self.counted(self.of(q)))
            out[1] = math.log1p(self.people(q))
            out[2:5] = [math.log1p(self.recent(q, window)) for window in WINDOWS]
            out[5] = self.lift(q, lambda at: at // (3600 * 10**6) % 24, clock)
            out[6] = self.lift(q, lambda at: (at // DAY + 3) % 7, clock)
        if own := self.own(q):
            out[7] = math.log1p(self.counted(own))
            out[8] = 1 / (1 + (self.now - max(int(self.s.at[e]) for e in own)) / DAY)
        out[9] = q in self.session
        for place, p in enumerate(self.session):
            said = self.text(p)
            kept = len(words(said) & words(text)) / len(words(said)) if words(said) else 0.0
            if place == 0:
                out[10] = p == q
                out[11] = text.startswith(said) and text != said
                out[12] = kept
                both = len(grams(said)) + len(grams(text))
                out[14] = 2 * len(grams(said) & grams(text)) / both if both else 0.0
                out[15] = self.follows(p, q, pairs)
            else:
                out[13] = max(out[13], kept)
                out[16] += self.follows(p, q, pairs) / (CONTEXT - 1)
        typed = len(prefix.encode())
        out[17] = typed / len(text.encode())
        ends = re.search(r"[a-z0-9]$", prefix) and not re.match(r"[a-z0-9]", text[len(prefix) :])
        out[18] = bool(ends)
        out[19] = prefix == text
        times = [self.after_app(a, q, apps) for a in self.opened(self.event)]
        if self.known(q) and times:
            shares = [1 / (k + 1) for k in range(len(times))]
            out[21] = math.log(times[0])
            out[22] = math.log(np.average(times, weights=shares))
            out[23] = math.log(max(times))
        return out

    def pool(self, prefix, popular, recent, own, following):
        """The candidates, as a set, and the most popular among them in order."""
        fits = [q for q in range(len(self.s.index)) if self.text(q).startswith(prefix)]
        open_ = [q for q in fits if self.known(q)]
        by = {
            "popular": lambda q: self.counted(self.of(q)),
            "recent": lambda q: self.recent(q, WINDOWS[1]),
        }
        best = {
            name: sorted((q for q in open_ if count(q) > 0), key=lambda q: (-count(q), q))
            for name, count in by.items()
        }
        first = best["popular"][:popular]
        found = {*first, *best["recent"][:recent]}
        mine = [q for q in fits if self.counted(self.own(q)) > 0]
        last = lambda q: max(int(self.s.at[e]) for e in self.own(q))  # noqa: E731
        found |= set(sorted(mine, key=lambda q: (-last(q), q))[:own])
        found |= {q for q in self.session if q in open_}
        return found, first
