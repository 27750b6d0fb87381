"""Parts of a composition log: what users chose at their ends, and the walk of online weights."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from telic.choice import Choices
from telic.choice.choices import group_starts
from telic.choice.group_buckets import StoredChoices
from telic.completion.learning import adaqac
from telic.completion.learning.adaqac import FeedbackDesign, Protocol
from telic.completion.learning.relevance import Relevance
from telic.completion.learning.replayed_log import Replay
from telic.data.compositions import CompositionLog
from telic.scale import Executor

CHUNK = 1 << 14
"""Keystrokes whose features are held in memory at once, with what is made of them."""
RUN = 1 << 18
"""Keystrokes whose candidates are."""
Users = tuple[int, int]
"""The first of some users, and the one after the last."""


class Parts:
    """The last keystrokes of some parts of a log, with candidates and feedback, run by run.

    What is one chunk is ranked once. A longer log is ranked whenever it is walked through, as all
    of its feedback would not fit into memory.
    """

    def __init__(
        self, replay: Replay, relevance: Relevance, keystrokes: np.ndarray, n: int
    ) -> None:
        self.replay, self._relevance, self._n = replay, relevance, n
        self._runs = replay.runs(keystrokes, RUN)
        self._kept: list[tuple[Users, adaqac.Ranked]] = []
        if len(keystrokes) <= CHUNK:
            self._kept = [*self._chunks()]

    def __iter__(self) -> Iterator[adaqac.Ranked]:
        return (ranked for _, ranked in self._by_users())

    def _by_users(self) -> Iterable[tuple[Users, adaqac.Ranked]]:
        return self._kept or self._chunks()

    def _chunks(self) -> Iterator[tuple[Users, adaqac.Ranked]]:
        for run in self._runs:
            moments = self.replay.moments(self._relevance, run.keystrokes, n=self._n)
            end = 0
            # They stand by user, so that a chunk of users is a slice of them.
            for chunk in self.replay.runs(moments.keystroke, CHUNK):
                start, end = end, end + len(chunk.keystrokes)
                ranked = moments.where(slice(start, end))
                users = max(chunk.first, run.first), min(chunk.last, run.last)
                yield users, (ranked, self.replay.features(ranked))

    def choices(
        self,
        design: FeedbackDesign,
        protocol: Protocol,
        executor: Executor | None,
        work: Path | None,
        *,
        walk: bool = False,
    ) -> tuple[Sequence[Choices], np.ndarray, np.ndarray]:
        """Return what users chose: in memory, or on an engine in files of a folder.

        With `walk`, a user's stand in the order in which they were submitted, else in that in which
        they began. Behind the choices, their rows among all, and the compositions of these.
        """
        pieces: StoredChoices | list[Choices] = [] if executor is None else StoredChoices(work)
        rows, compositions, before = [], [], 0
        for users, (moments, features) in self._by_users():
            if walk:
                owner = self.replay.log.user[moments.composition]
                order = np.lexsort((moments.composition, owner))
                moments, features = moments.where(order), features[order]
            piece, row = adaqac.training_choices(
                self.replay,
                moments,
                features,
                design,
                relevance=self._relevance,
                keep_unlisted=protocol.keep_unlisted,
                users=users,
            )
            pieces.append(piece)
            rows.append(row + before)
            compositions.append(moments.composition)
            before += len(moments)
        return pieces, np.concatenate(rows), np.concatenate(compositions)


@dataclass(frozen=True)
class OnlineWalk:
    """Validation and test as the online weights move through them, user by user."""

    choices: Sequence[Choices]
    """What teaches: a group for each user."""
    row: np.ndarray
    """The place of each choice among the compositions that are walked through."""
    composition: np.ndarray
    """The numbers of these."""
    done: np.ndarray
    """Up to which place the user's have taught when each begins."""
    log: CompositionLog
    online: Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]

    @classmethod
    def of(
        cls,
        parts: "Parts",
        design: FeedbackDesign,
        protocol: Protocol,
        begin: np.ndarray,
        *,
        l2: float,
        on: Mapping[str, Any],
    ) -> "OnlineWalk":
        """Begin with each user's weights as they are after training."""
        choices, row, composition = parts.choices(design, protocol, walk=True, **on)
        log, done = parts.replay.log, _done_before(parts.replay, composition)
        users, learning = log.user[composition], {"l2": l2, "schedule": protocol.schedule, **on}
        online = partial(adaqac.online, choices, row, users, begin, done=done, **learning)
        return cls(choices, row, composition, done, log, online)

    def with_step(self, step: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return weights after each step, which held before each composition, and the last."""
        return self.online(step_size=step)

    def rows(self, before: np.ndarray) -> np.ndarray:
        """Return which weights held before each composition of the log; −1 of those not walked."""
        found = np.full(len(self.log), -1)
        found[self.composition] = before
        return found

    def steps_before(self) -> np.ndarray:
        """Return how many steps the user's weights had made before each composition of the log."""
        learned = np.zeros(len(self.composition) + 1, int)
        learned[self.row + 1] = 1
        steps = np.zeros(len(self.log), int)
        first = group_starts(self.choices)[self.log.user[self.composition]]
        steps[self.composition] = np.cumsum(learned)[self.done] - first
        return steps


def _done_before(replay: Replay, composition: np.ndarray) -> np.ndarray:
    """Return up to which place of compositions that stand by user each user's have taught.

    A composition teaches once it is submitted, and meets what had been learned when it began.
    """
    log, user = replay.log, replay.log.user[composition]
    done = np.empty(len(composition), np.int64)
    for one in np.split(np.arange(len(composition)), np.flatnonzero(np.diff(user)) + 1):
        ends, begins = log.submitted_at[composition[one]], replay.start_at[composition[one]]
        done[one] = one[:1] + np.searchsorted(ends, begins)
    return done
