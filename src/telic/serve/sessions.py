"""Open compositions: who is typing what, on whose clock, and what it teaches in the end."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from telic.completion import Completer, Composition, Phone, Suggestion, UserState
from telic.serve.events import Events
from telic.serve.settings import Settings

SHOWN = 10
"""Suggestions in a list."""


@dataclass
class _User:
    """A user with open compositions. They share one state, so the lock is the user's."""

    state: UserState
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass
class _Open:
    """One open composition, and the clock that its keystrokes are stamped with."""

    user: _User
    composition: Composition
    touched: float
    """Server clock at the last request."""
    opened: float
    phone: Phone | None = None
    where: Mapping[str, str] | None = None
    client_zero: float | None = None
    """The client's clock when the composition was opened."""
    at: float = 0.0
    """Seconds from opening to the last keystroke."""
    keystrokes: int = 0
    query: str | None = None
    shown: list[Suggestion] = field(default_factory=list)

    def seconds(self, client: float | None, now: float) -> float:
        """Return seconds since opening, by the client's clock if it gives one."""
        elapsed = now - self.opened
        if client is None:
            return elapsed
        if self.client_zero is None:
            self.client_zero = client - elapsed
        return client - self.client_zero


class Sessions:
    """Open compositions by user and composition: bounded, expiring, safe to use from threads.

    Parameters
    ----------
    completer : Completer
    events : Events
    settings : Settings
    clock : callable
        Seconds, never running backwards.
    """

    def __init__(
        self,
        completer: Completer,
        events: Events,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.completer = completer
        self._events = events
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()  # of the two tables below; never held while waiting
        self._open: OrderedDict[tuple[str, str], _Open] = OrderedDict()
        # A user's state lives here as long as one of the user's compositions is open.
        self._users: WeakValueDictionary[str, _User] = WeakValueDictionary()
        # Between reading a state and writing it back nobody else may do the same.
        self._storing = threading.RLock()

    def __len__(self) -> int:
        return len(self._open)

    def static(
        self, query: str, phone: Phone | None = None, where: Mapping[str, str] | None = None
    ) -> list[Suggestion]:
        """Return what anybody with such a phone would be shown who has typed nothing before."""
        nobody = self.completer.compose(self.completer.user(), phone, where=where)
        return nobody.suggest(query, at=0.0, show=SHOWN)

    def is_open(self, user: str, composition: str) -> bool:
        """Whether `suggest` can answer without reading the database."""
        with self._lock:
            return self._find((user, composition)) is not None

    def suggest(
        self,
        query: str,
        user: str,
        composition: str,
        *,
        client: float | None = None,
        phone: Phone | None = None,
        where: Mapping[str, str] | None = None,
    ) -> list[Suggestion]:
        """Return what to show; the first call opens the composition.

        Parameters
        ----------
        query : str
            What stands in the box now.
        user, composition : str
        client : float, optional
            Seconds on the client's clock at the keystroke. Dwell is then free of network jitter,
            and a request that was overtaken by a later keystroke is known: it is answered, but
            is not counted as a keystroke. Neither is a request that repeats the one before.
        phone : Phone, optional
            Signals at the first keystroke; later ones of the composition change nothing.
        where : mapping of str to str, optional
            Context → value, as for `Completer.compose`; likewise that of the first keystroke.
        """
        entry = self._entry(user, composition, phone, where)
        with entry.user.lock:
            if query == entry.query:
                return entry.shown
            at = entry.seconds(client, self._clock())
            if entry.keystrokes and at < entry.at:
                again = self.completer.compose(entry.user.state, entry.phone, where=entry.where)
                return again.suggest(query, at=0.0, show=SHOWN)
            if entry.keystrokes == self._settings.max_keystrokes:
                entry.composition = self.completer.compose(
                    entry.user.state, entry.phone, where=entry.where
                )
                entry.keystrokes = 0
            entry.at = max(at, entry.at)
            entry.keystrokes += 1
            entry.query = query
            entry.shown = entry.composition.suggest(query, at=entry.at, show=SHOWN)
            return entry.shown

    def submit(self, query: str, user: str, composition: str) -> tuple[bool, int]:
        """End a composition and keep what it taught.

        Returns
        -------
        learned : bool
            False also if this composition was submitted before: it counts once.
        updates : int
            Submissions that the user's weights have learned from online.
        """
        with self._storing:
            entry = self._entry(user, composition)
            with self._lock:
                self._open.pop((user, composition), None)
            state = entry.user.state
            if self._events.has(user, composition):
                return False, state.updates
            with entry.user.lock:
                learned = entry.composition.submit(query)
                _forget_oldest(state, query, self._settings.max_history)
                stored = state.as_json()
            self._events.record(user, composition, query, learned=learned, state=stored)
            return learned, state.updates

    def _entry(
        self,
        user: str,
        composition: str,
        phone: Phone | None = None,
        where: Mapping[str, str] | None = None,
    ) -> _Open:
        key = (user, composition)
        with self._lock:
            entry = self._find(key)
        if entry is not None:
            return entry
        with self._storing:
            with self._lock:
                known = self._find(key)
                owner = self._users.get(user)
            if known is not None:  # opened by another thread in the meantime
                return known
            if owner is None:
                owner = _User(self._events.state(user) or self.completer.user(user))
            now = self._clock()
            typing = self.completer.compose(owner.state, phone, where=where)
            entry = _Open(owner, typing, touched=now, opened=now, phone=phone, where=where)
            with self._lock:
                self._users[user] = owner
                self._open[key] = entry
                while len(self._open) > self._settings.max_open:
                    self._open.popitem(last=False)
            return entry

    def _find(self, key: tuple[str, str]) -> _Open | None:
        """Drop what has been idle for too long, then look a composition up and touch it."""
        now = self._clock()
        while self._open:
            oldest = next(iter(self._open.values()))
            if now - oldest.touched <= self._settings.idle_seconds:
                break
            self._open.popitem(last=False)
        entry = self._open.get(key)
        if entry is not None:
            entry.touched = now
            self._open.move_to_end(key)
        return entry


def _forget_oldest(state: UserState, query: str, limit: int) -> None:
    history = state.history
    history[query] = history.pop(query)  # to the end: submitted last
    while len(history) > limit:
        del history[next(iter(history))]
