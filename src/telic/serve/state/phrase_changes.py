"""Changes to what is suggested while the service runs: phrases added, counted up, deleted.

A batch of changes is acknowledged once it is stored, and counts once. Every process folds the
batches in the order in which they were stored, so all come to the same lists; a new model takes
them over.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from telic.completion import Completer
from telic.errors import InputError
from telic.serve.http.errors import Problem
from telic.serve.operation.settings import Settings
from telic.serve.state.background_compaction import KeptList, KeptLists
from telic.serve.state.group_commit import Journal
from telic.serve.state.row_trimming import RowTrimming
from telic.serve.state.store import FullError, IdTakenError, Store, StoreError

EVERY = 0.5
"""Seconds after which a process looks for what others have stored."""
KINDS = ("popularity", "by", "delete")
MOST = 500
"""Changes in a batch: while it is made, keystrokes wait."""
_log = logging.getLogger("telic.serve")


class Change(NamedTuple):
    """What becomes of a phrase."""

    phrase: str
    kind: str
    amount: float = 0.0
    """Its popularity, or how much more it has; nothing where it is deleted."""

    def apply(self, completer: Completer) -> None:
        """Change what is suggested; raise InputError if the phrase may not be."""
        if self.kind == "delete":
            completer.live.delete(self.phrase)
        elif self.kind == "by":
            completer.live.increment(self.phrase, self.amount)
        else:
            completer.live.put(self.phrase, self.amount)


class Changes:
    """The changes that a completer has seen, and the way to more.

    Parameters
    ----------
    completer : Completer
        Takes over what is stored at once.
    store : Store
    journal : Journal
    lists : KeptLists
    bounds : RowTrimming
        Is told when no more are taken.

    Raises
    ------
    InputError
        If the store fails.
    """

    def __init__(
        self,
        completer: Completer,
        store: Store,
        journal: Journal,
        lists: KeptLists,
        bounds: RowTrimming,
    ) -> None:
        self._completer, self._journal, self._lists = completer, journal, lists
        self._bounds = bounds
        self._before: Completer | None = None  # compositions that it began go on with it
        self._seen = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._order = asyncio.Lock()
        self.swap: Callable[[Completer], None] = lambda following: None
        try:
            if kept := lists.newer():
                lists.take(kept)
                self._completer, self._seen = kept.completer, kept.number
            while batches := store.changes(self._seen):
                self._fold(batches)
        except StoreError as error:
            raise InputError(f"the database: {error}.") from None
        finally:
            store.release()  # an application that is never started holds no connection

    @property
    def completer(self) -> Completer:
        """The completer with all changes that were seen."""
        return self._completer

    def start(self) -> None:
        """Begin to look for what others store, and to build changes into the list."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._follow())]
        if self._lists.after:
            self._tasks.append(loop.create_task(self._compact()))

    async def close(self) -> None:
        """Look no more."""
        self._lists.close()
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def make(self, id: str, changes: Sequence[Change]) -> int:
        """Store a batch under its id and let it be seen; return its number.

        Raises
        ------
        StoreError
            If it is not stored: send the same again.
        Problem
            If other changes came under this id, or there are too many batches.
        """
        try:
            number = await self._journal.change(id, [list(change) for change in changes])
        except IdTakenError:
            raise Problem(
                409,
                "id_taken",
                "Other changes came under this id.",
                "Take a new id for each batch.",
            ) from None
        except FullError:
            self._bounds.reach("changes")
            raise Problem(
                409,
                "too_many_batches",
                "The database has as many batches of changes as it may have (max_batches).",
                "Raise it, or fit the list with its changes and serve that on a new database.",
            ) from None
        await self._catch_up()
        return number

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            with suppress(StoreError):
                await self._catch_up()

    async def _compact(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            with suppress(StoreError):
                if kept := await asyncio.to_thread(self._lists.newer):
                    await self._take(kept)
                await self._lists.build_if_due(self._completer, self._seen)

    async def _take(self, kept: KeptList) -> None:
        """Go on with a list that has more changes built in, once it has all that were seen."""
        await self._catch_up()  # for what goes on with the list before
        async with self._order:
            number = kept.number
            while number < self._seen:
                for batch, changes in await self._journal.changes(number):
                    number = batch
                    if batch <= self._seen:  # later ones are folded into both
                        _apply(changes, batch, kept.completer)
                    await asyncio.sleep(0)  # keystrokes between
            self._before, self._completer = self._completer, kept.completer
            self._lists.take(kept)
            self.swap(kept.completer)

    async def _catch_up(self) -> None:
        async with self._order:
            while batches := await self._journal.changes(self._seen):
                for batch in batches:
                    self._fold([batch])
                    await asyncio.sleep(0)  # keystrokes between

    def _fold(self, batches: Sequence[tuple[int, list[list[Any]]]]) -> None:
        for number, changes in batches:
            self._seen = number
            _apply(changes, number, self._completer)
            if self._before is not None:
                _apply(changes, number, self._before)


def _apply(changes: list[list[Any]], number: int, completer: Completer) -> None:
    for change in changes:
        try:
            Change(*change).apply(completer)
        except InputError:  # a newer model's deny list has it
            _log.warning("a change of batch %d is left out: this model denies it", number)
        except (TypeError, ValueError):  # written to by another program
            _log.warning("a change of batch %d is left out: it is damaged", number)


def checked_changes(given: Any, completer: Completer, settings: Settings) -> list[Change]:
    """Return the changes that a request names; raise `Problem` if they cannot be made."""
    if not isinstance(given, list) or not given:
        raise Problem(422, "missing", "'changes' is no list, or empty.", "Send one or more.")
    if len(given) > MOST:
        raise Problem(422, "too_long", f"'changes' are {len(given)}, over {MOST}.", "Send batches.")
    changes = [_checked(each, completer, f"changes[{n}]") for n, each in enumerate(given)]
    full = len(completer.live) >= settings.max_changes
    if full and any(change.kind != "delete" for change in changes):
        raise Problem(
            409, "too_many_changes", f"{settings.max_changes} phrases were changed already.",
            "Wait until they are built into the list; if they never are, the log says why. A model "
            "with signals or phones must be fitted again, on a list that has them.",
        )  # fmt: skip
    return changes


def _checked(given: Any, completer: Completer, which: str) -> Change:
    kinds = [kind for kind in KINDS if isinstance(given, Mapping) and kind in given]
    right = len(kinds) == 1 and given.keys() == {"phrase", *kinds}
    if not right or not isinstance(given["phrase"], str):
        raise Problem(
            422,
            "bad_change",
            f"{which} is no object with a phrase, one of popularity, by and delete, and no more.",
            'Send {"phrase": "tea", "popularity": 9}, with "by": 1 or with "delete": true.',
        )
    amount = given[kinds[0]]
    if kinds[0] == "delete":
        right, amount = amount is True, 0.0
    else:
        right = isinstance(amount, int | float) and not isinstance(amount, bool)
    if not right:
        raise Problem(
            422,
            "bad_change",
            f"{which}: '{kinds[0]}' is none that it can be.",
            "Send a number; true to delete.",
        )
    phrase = completer.live.spelled(given["phrase"])
    try:
        completer.live.check(phrase, amount, deleted=kinds[0] == "delete")
    except InputError as error:
        raise Problem(
            422, "bad_change", f"{which}: {error}", "Correct it; nothing was changed."
        ) from None
    return Change(phrase, kinds[0], float(amount))
