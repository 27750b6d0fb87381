"""Changes built into the list in the background: a list is found, made, and opened.

All that changes is in the store, whose batches stay there. A kept list saves the work of folding
them: its name says which model it is of and which batch is the last that it has, so every process
on the store finds the newest, and one that is damaged or gone costs time and nothing else.
"""

import asyncio
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from telic.completion import Completer
from telic.completion.box.compaction import NAME, with_kept
from telic.completion.box.live_changes import compactable
from telic.errors import TelicError
from telic.serve.operation.settings import Settings
from telic.serve.state.open_compositions import warm
from telic.serve.state.store import Store

AGAIN = 60.0
"""Seconds after which a list is built again that could not be built."""
_log = logging.getLogger("telic.serve")


class KeptList(NamedTuple):
    """A completer with a kept list."""

    completer: Completer
    number: int
    """Of the last batch that the list has built in."""
    folder: Path


class KeptLists:
    """The folder of kept lists, as one process sees it.

    Parameters
    ----------
    completer : Completer
        As it was fitted or loaded.
    store : Store
        Where its changes are.
    settings : Settings

    Attributes
    ----------
    after : int
        Changed phrases after which a list is built; 0 where none ever is.
    """

    def __init__(self, completer: Completer, store: Store, settings: Settings) -> None:
        self._fitted, self._store = completer, store
        self._stored = completer.stored
        able = os.name == "posix" and settings.compacted and compactable(completer)
        self.after = settings.compact_after if able else 0
        self._folder = Path(settings.compacted).absolute()
        self._open: tuple[int, Path | None] = 0, None
        self._bad: set[Path] = set()
        self._own: str | None = None  # folder of the model, where it was loaded from none
        self._building: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._next = 0.0

    def newer(self) -> KeptList | None:
        """Open the newest list that has more batches than the one that was taken, if any has."""
        if not self.after:
            return None
        for folder, number, hash in sorted(self._there(), key=lambda each: -each[1]):
            if number <= self._open[0] or folder in self._bad or self._store.batch(number) != hash:
                continue
            try:
                kept = with_kept(self._fitted, folder)
            except (TelicError, OSError, ValueError) as error:
                if folder.is_dir():  # else a newer one has taken its place
                    self._bad.add(folder)
                    _log.warning("a list with its changes is left out: %s", error)
                continue
            warm(kept)
            return KeptList(kept, number, folder)
        return None

    def take(self, kept: KeptList) -> None:
        """Note which list serves: further changes are made to that."""
        self._open = kept.number, kept.folder

    async def build_if_due(self, completer: Completer, number: int) -> None:
        """Build the changes of a completer into its list, once they are many.

        `number` is that of the last batch that the completer has.
        """
        many = len(completer.live) >= self.after > 0 and number > self._open[0]
        if not many or time.monotonic() < self._next:
            return
        before = self._open[1]
        given = {"live": completer.live.as_json(), "before": before and str(before)}
        try:
            await asyncio.to_thread(self._build, given, number)
        except (TelicError, OSError, subprocess.SubprocessError) as error:
            self._next = time.monotonic() + AGAIN
            _log.error("the changes are not built into the list: %s", error)

    def close(self) -> None:
        """End what is being built, and delete what only this process needed."""
        self._closed = True
        if self._building:
            self._building.terminate()
        if self._own:
            shutil.rmtree(self._own, ignore_errors=True)

    def _build(self, given: dict[str, Any], number: int) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        model, digest = self._model()
        out = self._folder / f"{digest[:16]}-{number:012}-{self._store.batch(number)}"
        given |= {"model": str(model), "digest": digest, "out": str(out)}
        with (self._folder / "lock").open("a") as lock:
            free = not self._closed and _locked(lock.fileno())
            built = out.is_dir() and out not in self._bad
            if not free or built or (given["before"] and not Path(given["before"]).is_dir()):
                return  # another process builds, or has
            self._bad.discard(out)
            self._building = subprocess.Popen(
                [sys.executable, "-P", "-m", "telic.completion.box.compaction"],
                stdin=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[lock.fileno()],
            )
        _, said = self._building.communicate(json.dumps(given).encode())
        if self._building.returncode:
            lines = said.decode(errors="replace").splitlines() or ["its process was ended"]
            raise subprocess.SubprocessError(lines[-1])

    def _there(self) -> list[tuple[Path, int, str]]:
        """Return the lists of the model: folder, number and hash of the last batch."""
        if not self._folder.is_dir():
            return []
        there = [(folder, NAME.fullmatch(folder.name)) for folder in self._folder.iterdir()]
        named = [(folder, name) for folder, name in there if name]
        of_model = self._model()[1][:16] if named else ""
        return [(each, int(name[2]), name[3]) for each, name in named if name[1] == of_model]

    def _model(self) -> tuple[Path, str]:
        """Return the folder of the model and what tells it from others; write one if need be."""
        if self._stored is None:
            self._own = tempfile.mkdtemp(prefix="telic-")
            replace(self._fitted, users={}).save(Path(self._own, "model"))
            self._stored = Completer.load(Path(self._own, "model")).stored
        assert self._stored is not None
        return self._stored


def _locked(descriptor: int) -> bool:
    """Take the lock of an open file, which goes with it to a process that is started."""
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
