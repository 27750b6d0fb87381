"""Open compositions: who is typing what, on whose clock, and what it teaches in the end.

Everything here belongs to one event loop: nothing is locked, and only what waits for the database
is awaited.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from secrets import SystemRandom
from weakref import WeakValueDictionary

import numpy as np

from telic.completion import Completer, Composition, Phone, UserState
from telic.completion.box.suggestion import Listed
from telic.completion.engine.folding import encoded_prefix, fold_alike, place_among
from telic.data.ubi import Arm, Teams
from telic.serve.callers.user_ids import tenant_of
from telic.serve.operation.metrics import Metrics, Seen
from telic.serve.operation.settings import Settings
from telic.serve.state.composition_recorder import Recorder, Recording
from telic.serve.state.group_commit import Journal
from telic.serve.state.store import Outcome, Stored, StoreError, Submission

SHOWN = 10
"""Suggestions in a list."""
CONTROL, TREATED = "static", "model"
"""The arms that compositions are drawn into."""
_SYSTEM = SystemRandom()
Boosts = Mapping[str, Mapping[str, float]]
"""Context → value → factor by which its phrases count as more popular."""


@dataclass(slots=True, weakref_slot=True)
class _User:
    """A user's state, which all open compositions of the user share."""

    state: UserState
    version: int = 0
    """Submissions that the state holds."""
    read_at: float = 0.0
    """When the store was asked last."""

    def take(self, stored: Stored | None) -> None:
        """Take over what is stored, if anything was read."""
        if stored is not None:
            self.state.become(stored.state)
            self.version = stored.version


@dataclass(slots=True)
class OpenComposition:
    """One open composition, and the clock that its keystrokes are stamped with."""

    user: _User
    composition: Composition
    touched: float
    """Server clock at the last request."""
    opened: float
    phone: Phone | None = None
    where: Mapping[str, str] | None = None
    boost: Boosts | None = None
    keep_static: bool = False
    """Whether it is one of a trial's control."""
    interleave: np.random.Generator | None = None
    """What draws its lists from the static order and the model's, if they are."""
    client_zero: float | None = None
    """The client's clock when the composition was opened."""
    at: float = 0.0
    """Seconds from opening to the last keystroke."""
    keystrokes: int = 0
    query: str | None = None
    shown: Listed | None = None
    shown_of: tuple[Completer, int] | None = None
    """The list of phrases that it is of, and how often that had changed."""
    recording: Recording | None = None

    def seconds(self, client: float | None, now: float, *, ahead: float) -> float:
        """Return seconds since opening, by the client's clock if it gives one.

        A clock that jumps ahead of the server's is believed up to so many seconds: what is
        submitted centuries later would leave nobody anything recent in a log.
        """
        elapsed = now - self.opened
        if client is None:
            return elapsed
        if self.client_zero is None:
            self.client_zero = client - elapsed
        return min(client - self.client_zero, elapsed + ahead)


class OpenCompositions:
    """Open compositions by user and composition: bounded and expiring.

    Parameters
    ----------
    completer : Completer
    journal : Journal
    settings : Settings
    metrics : Metrics, optional
    recorder : Recorder, optional
        Records the compositions that are opened with consent.
    clock : callable
        Seconds, never running backwards.
    draw : callable
        Numbers from 0 to 1, uniform, that nobody can tell beforehand.
    """

    def __init__(
        self,
        completer: Completer,
        journal: Journal,
        settings: Settings,
        metrics: Metrics | None = None,
        recorder: Recorder | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] = _SYSTEM.random,
    ) -> None:
        self._draw, self._mixer = draw, np.random.default_rng()
        self.completer = completer
        self._before: Completer | None = None
        self._journal = journal
        self._settings = settings
        self._metrics = metrics or Metrics()
        self._recorder = recorder
        self._clock = clock
        self._open: OrderedDict[tuple[str, str], OpenComposition] = OrderedDict()
        # A user's state lives here as long as one of the user's compositions is open, and as long
        # as the user is among the latest.
        self._users: WeakValueDictionary[str, _User] = WeakValueDictionary()
        self._latest: OrderedDict[str, _User] = OrderedDict()
        self._reading: dict[str, asyncio.Task[_User]] = {}
        self._barred: set[str] = set()
        # What was submitted last: a key that comes late begins no other record of it.
        self._ended: OrderedDict[tuple[str, str], None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def serve(self, following: Completer) -> None:
        """Begin compositions with another list of the model; those that are open keep theirs."""
        self._before, self.completer = self.completer, following

    def bar(self, user: str) -> None:
        """Show a user what nobody in particular is shown, and take no submission, until `admit`."""
        self._barred.add(user)

    def admit(self, user: str) -> None:
        """Take a user for somebody new."""
        self._barred.discard(user)

    async def drop(self, user: str) -> None:
        """Forget all that is known here of a user who is barred."""
        if reading := self._reading.get(user):
            await asyncio.wait([reading])
        for kept in (self._open, self._ended):
            for key in [key for key in kept if key[0] == user]:
                del kept[key]
        self._metrics.compositions(len(self._open))
        self._users.pop(user, None)
        self._latest.pop(user, None)
        self.completer.users.pop(user, None)  # which all lists of a model share

    def known(self) -> set[str]:
        """Return the users of whom anything is known here, or was when the model was fitted."""
        return {user for user, _ in self._open} | {*self._users, *self.completer.users}

    @property
    def plain(self) -> bool:
        """Whether lists are the index's alone: nothing changed or denied, nothing to carry."""
        completer = self.completer
        more = completer.words or completer.signals or completer.records
        return more is None and not completer.live.version and not completer.live.gone

    def static(self, query: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the list in the static order, as `PrefixIndex.spelled` does."""
        shown = min(self.completer.n, SHOWN)
        return self.completer.index.top_spelled(encoded_prefix(query), shown)

    def nobody(
        self,
        query: str,
        phone: Phone | None = None,
        where: Mapping[str, str] | None = None,
        boost: Boosts | None = None,
    ) -> Listed:
        """Return what anybody with such a phone would be shown who has typed nothing before."""
        typing = self.completer.compose(self.completer.user(), phone, where=where, boost=boost)
        return typing.listed(query, at=0.0, show=SHOWN)

    def find(self, user: str, composition: str) -> OpenComposition | None:
        """Drop what has been idle for too long, then look a composition up and touch it."""
        now = self._clock()
        while self._open:
            oldest = next(iter(self._open.values()))
            if now - oldest.touched <= self._settings.idle_seconds:
                break
            self._open.popitem(last=False)
        found = self._open.get((user, composition))
        if found is not None:
            found.touched = now
            self._open.move_to_end((user, composition))
        return found

    async def open(
        self,
        user: str,
        composition: str,
        phone: Phone | None = None,
        where: Mapping[str, str] | None = None,
        boost: Boosts | None = None,
        *,
        consent: bool = False,
        address: str = "",
    ) -> OpenComposition:
        """Return the composition, begun now on what is stored of the user if it is not open.

        Where the store does not answer it begins on what is known of the user here.
        """
        if found := self.find(user, composition):
            return found
        owner = self._users.get(user)
        stale = owner is None or self._clock() - owner.read_at > self._settings.fresh_seconds
        if stale and user not in self._barred:
            if user not in self._reading:
                self._reading[user] = asyncio.create_task(self._read(user))
            if owner is None:  # a user who is known need not wait for what others may have written
                owner = await asyncio.shield(self._reading[user])
        if found := self.find(user, composition):  # opened by another request in the meantime
            return found
        now, recording = self._clock(), None
        barred = user in self._barred
        if barred or owner is None:
            owner = _User(self.completer.user())
        ended = (user, composition) in self._ended
        if self._recorder and consent and not (barred or ended):
            tenant = tenant_of(user) if self._settings.keys else None
            recording = self._recorder.begin(
                user, arm=self._drawn(), tenant=tenant, address=address
            )
        control = bool(recording and recording.arm and recording.arm.name == CONTROL)
        share = self._settings.interleave if recording else 0.0
        mixes = self._mixer if share and self._draw() < share else None
        typing = self.completer.compose(
            owner.state, phone, where=where, boost=boost, keep_static=control, interleave=mixes
        )
        opened = OpenComposition(owner, typing, now, now, phone, where, boost, control, mixes)
        opened.recording = recording
        if barred:
            return opened
        self._open[user, composition] = opened
        while len(self._open) > self._settings.max_open:
            self._open.popitem(last=False)
        self._metrics.compositions(len(self._open))
        return opened

    def suggest(
        self, typing: OpenComposition, query: str, *, client: float | None = None
    ) -> Listed:
        """Return what to show.

        Parameters
        ----------
        typing : OpenComposition
        query : str
            What stands in the box now.
        client : float, optional
            Seconds on the client's clock at the keystroke. Dwell is then free of network jitter,
            and a request that was overtaken by a later keystroke is known: it is answered, but
            is not counted as a keystroke. Neither is a request that repeats the one before.
        """
        of = self.completer, self.completer.live.version
        if query == typing.query and typing.shown:
            if typing.shown_of and typing.shown_of[0] is of[0] and typing.shown_of[1] == of[1]:
                return typing.shown
            return self._begun_again(typing).listed(query, at=0.0, show=SHOWN)
        if not any(typing.composition.completer is each for each in (self.completer, self._before)):
            typing.composition = self._begun_again(typing)  # its list is changed no more
        at = typing.seconds(client, self._clock(), ahead=self._settings.idle_seconds)
        if typing.keystrokes and at < typing.at:
            return self._begun_again(typing).listed(query, at=0.0, show=SHOWN)
        if typing.keystrokes == self._settings.max_keystrokes:
            typing.composition = self._begun_again(typing)
            typing.keystrokes = 0
            if self._recorder and typing.recording:
                typing.recording = self._recorder.again(typing.recording, at)
        typing.at = max(at, typing.at)
        typing.keystrokes += 1
        typing.query = query
        typing.shown_of = of
        typing.shown = typing.composition.listed(query, at=typing.at, show=SHOWN)
        if self._recorder and typing.recording:
            texts, drawn = typing.shown.texts(), typing.shown.drawn
            teams = drawn and Teams("".join(map(str, drawn.teams)), drawn.propensity)
            self._recorder.keystroke(typing.recording, query, typing.at, texts, teams)
        return typing.shown

    async def submit(self, query: str, user: str, composition: str) -> Outcome:
        """End a composition and keep what it taught: once it is stored, and once.

        Raises
        ------
        StoreError
            If it is not stored; then nothing was learned, and it may be submitted again.
        """
        if user in self._barred:
            raise StoreError("the user is being forgotten")
        typing = self.find(user, composition)
        tenant = tenant_of(user) if self._settings.keys else ""
        lesson = (typing.composition if typing else self._untyped(tenant)).lesson(query)
        seen = _seen(typing, query)
        recording = typing and typing.recording and replace(typing.recording)  # as it is by now
        outcome = await self._journal.write(Submission(user, composition, lesson, tenant, seen))
        if outcome.stored is not None:
            held = not outcome.stored.state.check.open
            self._metrics.submission(tenant, query, seen, held=held)
        self._open.pop((user, composition), None)
        self._ended[user, composition] = None
        while len(self._ended) > self._settings.max_open:
            self._ended.popitem(last=False)
        self._metrics.compositions(len(self._open))
        if self._recorder and typing and typing.recording and recording:
            self._recorder.submission(recording, query)
            typing.recording = None  # the same may have been sent twice at once
        if owner := self._users.get(user):
            owner.take(outcome.stored)
        return outcome

    def _untyped(self, tenant: str) -> Composition:
        """Begin what nobody typed here: a query is spelled as its tenant's phrases are."""
        contexts = self.completer.contexts
        limited = tenant and contexts is not None and "tenant" in contexts.names
        where = {"tenant": tenant} if limited else None
        return self.completer.compose(self.completer.user(), where=where)

    def _begun_again(self, typing: OpenComposition) -> Composition:
        return self.completer.compose(
            typing.user.state,
            typing.phone,
            where=typing.where,
            boost=typing.boost,
            keep_static=typing.keep_static,
            interleave=typing.interleave,
        )

    def _drawn(self) -> Arm | None:
        """Draw the arm of a new composition, where each has one of its own."""
        share = self._settings.control
        if not share:
            return None
        return Arm(CONTROL, share) if self._draw() < share else Arm(TREATED, 1 - share)

    async def _read(self, user: str) -> _User:
        """Return the user as the store knows him now, or else as he is known here."""
        try:
            owner = self._users.get(user) or _User(self.completer.user(user))
            known = owner.version
            try:
                stored = await self._journal.read(user, known)
            except StoreError:
                stored = None
            owner.read_at = self._clock()
            if owner.version == known:  # else a submission brought what is newer
                owner.take(stored)
            self._users[user] = self._latest[user] = owner
            self._latest.move_to_end(user)
            while len(self._latest) > self._settings.max_users:
                self._latest.popitem(last=False)
            return owner
        finally:
            del self._reading[user]


def _seen(typing: OpenComposition | None, query: str) -> Seen | None:
    if typing is None or typing.query is None or typing.shown is None:
        return None
    texts = typing.shown.texts()
    rank = place_among(query, texts) + 1
    accepted = rank > 0 and not fold_alike(query, typing.query)
    return Seen(len(typing.query), rank, len(texts), accepted)


def warm(completer: Completer) -> None:
    """Compile or load every kernel of a keystroke and of a lesson, on a user of no name."""
    user = completer.user()
    for _ in range(2):
        composition = completer.compose(user)
        for at, prefix in enumerate(("", "a", "an", "and", "an")):
            found = composition.suggest(prefix, at=float(at), show=SHOWN)
        composition.submit(found[0].text if found else "and")
    completer.index.top_phrases("a", SHOWN)  # what is asked where nobody is known
