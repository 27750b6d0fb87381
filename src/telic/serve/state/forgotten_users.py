"""Users who are forgotten while the service runs: in this process, in the store, and in files.

A process that forgets a user bars the user, waits until all that waits is written, and drops what
it knows; then the rows are deleted, and the user may begin again as somebody new. Processes that
were not asked, such as those of other machines, find a note in the store and drop what they know
too; until they do, the store itself takes the user for somebody new. A note keeps no id but a keyed
digest, and lets every process that starts later leave out the user of the model that it reads.
"""

import asyncio
import logging
from contextlib import suppress

from telic.completion import Completer
from telic.completion.box.completer import erase_user
from telic.errors import InputError
from telic.serve.operation.settings import Settings
from telic.serve.state.composition_recorder import Recorder, erase
from telic.serve.state.group_commit import Journal
from telic.serve.state.open_compositions import OpenCompositions
from telic.serve.state.phrase_changes import EVERY
from telic.serve.state.store import Store, StoreError, digest_of

_log = logging.getLogger("telic.serve")


class ForgottenUsers:
    """Forgets users in this process.

    Parameters
    ----------
    completer : Completer
        As it was loaded; the users who were forgotten before are dropped from it at once.
    compositions : OpenCompositions
    store : Store
    journal : Journal
    recorder : Recorder, optional
    settings : Settings

    Raises
    ------
    InputError
        If the store fails.
    """

    def __init__(
        self,
        completer: Completer,
        compositions: OpenCompositions,
        store: Store,
        journal: Journal,
        recorder: Recorder | None,
        settings: Settings,
    ) -> None:
        self._compositions, self._store, self._journal = compositions, store, journal
        self._recorder, self._settings, self._stored = recorder, settings, completer.stored
        self._seen = 0
        self._done: set[int] = set()
        self._left: list[str] = []  # of whom there were notes: barred until they are forgotten here
        self._works = True
        self._following: asyncio.Task[None] | None = None
        try:
            for user in self._noted(store.forgotten(0)):
                completer.users.pop(user, None)  # which all lists of the model share
        except StoreError as error:
            raise InputError(f"the database: {error}.") from None
        finally:
            store.release()

    def start(self) -> None:
        """Begin to look for whom others forget."""
        self._following = asyncio.get_running_loop().create_task(self._follow())

    async def close(self) -> None:
        """Look no more."""
        if self._following:
            self._following.cancel()
            with suppress(asyncio.CancelledError):
                await self._following

    async def begin(self, user: str) -> None:
        """Bar a user, until `end` or for some time, and let this process know nothing of him.

        Raises
        ------
        StoreError
            If what waits is not written in time.
        """
        self._compositions.bar(user)
        seconds = self._settings.write_seconds
        asyncio.get_running_loop().call_later(4 * seconds, self._compositions.admit, user)
        await self._drop(user)

    async def _drop(self, user: str) -> None:
        await self._journal.settled()
        await self._compositions.drop(user)
        seconds = self._settings.write_seconds
        if self._recorder and not await asyncio.to_thread(self._recorder.flush, seconds):
            raise StoreError("records wait for the disk")

    def end(self, user: str, number: int = 0) -> None:
        """Let the user begin again; the note of this number is done with."""
        self._done.add(number)
        self._compositions.admit(user)

    async def delete(self, user: str) -> tuple[int, int]:
        """Delete a barred user's rows; return how many, and the number of the note."""
        return await self._journal.run(self._store.forget, user)

    async def erase(self, user: str) -> tuple[int, bool]:
        """Erase a user from the files; return how many records, and if the model had the user."""
        return await asyncio.to_thread(self._erase, user)

    def _erase(self, user: str) -> tuple[int, bool]:
        records = erase(self._settings.record, user) if self._settings.record else 0
        return records, self._stored is not None and erase_user(self._stored[0], user)

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            try:
                await self._forget_noted()
            except StoreError as error:
                if self._works:
                    _log.error("whom others forget is not forgotten here yet: %s", error)
                self._works = False
            else:
                if not self._works:
                    _log.warning("whom others forget is forgotten here again")
                self._works = True

    async def _forget_noted(self) -> None:
        noted = self._noted(await self._journal.run(self._store.forgotten, self._seen))
        self._left += [user for user in noted if user not in self._left]
        for user in self._left:
            self._compositions.bar(user)
        for user in noted:  # at once: this needs no store
            await self._compositions.drop(user)
        # Their rows are gone: what this process wrote since, it wrote as of somebody new.
        while self._left:
            user = self._left[0]
            await self._drop(user)
            self._left.remove(user)
            self.end(user)

    def _noted(self, notes: dict[int, str]) -> list[str]:
        """Return the users known here of whom there are new notes that nobody asked us about."""
        key = notes.pop(0, "")
        new = {who for number, who in notes.items() if number not in self._done}
        self._seen = max(notes, default=self._seen)
        known = self._compositions.known() if new else ()
        return [user for user in known if digest_of(user, key) in new]
