"""What people type and are shown, recorded in files for learning again; off unless asked for."""

import hashlib
import json
import logging
import os
import queue
import re
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from telic.completion.engine.folding import fold_alike, place_among
from telic.data import atomic_path
from telic.data.ubi import (
    EVENTS_GLOB,
    MAX_ID,
    QUERIES_GLOB,
    Arm,
    Teams,
    keystroke_record,
    submission_record,
)
from telic.errors import InputError
from telic.serve.callers.rates import network_of

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

MAX_WAITING = 10_000
"""Records that wait for the disk; one more is lost, and its composition with it."""
CALM = 10.0
"""Seconds without a failure until it is said that recording works again: full disks come and go."""
WRITTEN = "written"
"""Stands in the queue for no record, but for who waits until those before it are written."""
UNREADABLE = object()
"""In place of the user of a line that is no record."""
_OWN = re.compile(r"(queries|events)-\d{8}T\d{12}-\d+\.jsonl")
"""Names that a recorder gives; records under other names are somebody else's to delete."""
_log = logging.getLogger("telic.serve")


@dataclass(slots=True)
class Recording:
    """The recorded part of an open composition."""

    user: str
    began: datetime
    arm: Arm | None = None
    tenant: str | None = None
    network: str | None = None
    composition: str = field(default_factory=lambda: str(uuid4()))
    number: int = 0
    at: float = 0.0
    """Seconds from its beginning to its last keystroke."""
    shown: list[str] = field(default_factory=list)
    prefix: str = ""

    def time(self, at: float) -> datetime:
        """Return the time of day so many seconds after its beginning."""
        return self.began + timedelta(seconds=at)


class Recorder:
    """Appends records to a folder's files, in a thread of its own: nobody waits for it.

    Parameters
    ----------
    folder : path
        Made, for its owner's eyes alone, if it is not there.
    days : float
        Files of a recorder that were last written to so long ago are deleted.
    megabytes : float
        Beyond so much, a recorder's oldest files are deleted.
    arm : Arm, optional
        Of a trial, which every keystroke is recorded with.
    networks : bool
        Whether to record where compositions come from: see `network_digest`.

    Raises
    ------
    InputError
        If the folder cannot be written to.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        days: float = 90,
        megabytes: float = 10_000,
        arm: Arm | None = None,
        networks: bool = False,
    ) -> None:
        self.folder = Path(folder)
        self._arm = arm
        self.lost = 0
        """Records that could not be written."""
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot be recorded to ({error.strerror}).") from None
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise InputError(f"{folder}: cannot be recorded to. Name a folder of your own.")
        self._network_key = _secret(self.folder / "network.key") if networks else None
        self._limits = timedelta(days=days).total_seconds(), megabytes * 1e6
        self._part = min(megabytes * 1e6 / 20, 64e6)  # bytes of one file
        self._queue: queue.Queue[tuple[str, dict[str, Any]] | None] = queue.Queue(MAX_WAITING)
        self._files: dict[str, Path] = {}
        self._works, self._failed_at = True, 0.0
        self._writer = threading.Thread(target=self._write_all, name="telic-recorder", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._writer.start()

    def begin(
        self,
        user: str,
        *,
        arm: Arm | None = None,
        tenant: str | None = None,
        address: str = "",
    ) -> Recording | None:
        """Return a composition that begins now; None if UBI has no such id.

        `arm`: of this composition, where it is not the service's; `address`: the client's.
        """
        if len(user) > MAX_ID:
            return None
        network = None
        if self._network_key and address:
            network = network_digest(address, self._network_key)
        return Recording(user, datetime.now(UTC), arm or self._arm, tenant, network)

    def again(self, typing: Recording, at: float) -> Recording:
        """Return a composition that goes on after another, begun `at` seconds ago."""
        began = datetime.now(UTC) - timedelta(seconds=at)
        return Recording(typing.user, began, typing.arm, typing.tenant, typing.network)

    def keystroke(
        self,
        typing: Recording,
        prefix: str,
        at: float,
        shown: list[str],
        teams: Teams | None = None,
    ) -> None:
        """Record the list that a keystroke was answered with, `at` seconds from the first."""
        typing.number += 1
        prefix = prefix.encode(errors="replace").decode()  # half a character is no text
        typing.prefix, typing.at, typing.shown = prefix, at, shown
        record = keystroke_record(
            composition=typing.composition,
            number=typing.number,
            user=typing.user,
            prefix=prefix,
            at=typing.time(at),
            shown=shown,
            arm=typing.arm,
            tenant=typing.tenant,
            network=typing.network,
            teams=teams,
        )
        self._put("queries", record)

    def submission(self, typing: Recording, query: str) -> None:
        """Record what was submitted in the end: selected if the last list has it, else typed."""
        if not typing.number:
            return
        selected, place = None, place_among(query, typing.shown)
        if place >= 0 and not fold_alike(query, typing.prefix):
            selected = place + 1
        record = submission_record(
            composition=typing.composition,
            number=typing.number,
            user=typing.user,
            query=query,
            at=max(datetime.now(UTC), typing.time(typing.at)),
            selected=selected,
        )
        self._put("events", record)

    def flush(self, seconds: float) -> bool:
        """Wait until what was to be recorded by now is in its files; False if not for so long."""
        written = threading.Event()
        with suppress(queue.Full):
            self._queue.put((WRITTEN, {"written": written}), timeout=seconds)
        return written.wait(seconds)

    def close(self) -> None:
        """Write what waits."""
        self._queue.put(None)
        self._writer.join()

    def _put(self, kind: str, record: dict[str, Any]) -> None:
        try:
            self._queue.put_nowait((kind, record))
        except queue.Full:
            self.lost += 1

    def _write_all(self) -> None:
        while (first := self._queue.get()) is not None:
            batch = [first]
            with suppress(queue.Empty):
                while len(batch) < MAX_WAITING and (more := self._queue.get_nowait()) is not None:
                    batch.append(more)
                if len(batch) < MAX_WAITING:
                    self._queue.put(None)
            # A submission is never there before its keystrokes.
            for kind in ("queries", "events"):
                self._write(kind, [record for of, record in batch if of == kind])
            for of, record in batch:
                if of == WRITTEN:
                    record["written"].set()

    def _write(self, kind: str, records: list[dict[str, Any]]) -> None:
        if not records:
            return
        lines = "".join(json.dumps(record) + "\n" for record in records)
        try:
            file, now = self._files.get(kind), datetime.now(UTC)
            # A file of each day, so that no record outlives its days in a file that still grows.
            has_room = False
            if file and file.name.startswith(f"{kind}-{now:%Y%m%d}T"):
                with suppress(FileNotFoundError):
                    has_room = file.stat().st_size <= self._part
            if not file or not has_room:
                self._tidy()
                name = f"{kind}-{now:%Y%m%dT%H%M%S%f}-{os.getpid()}.jsonl"
                file = self._files[kind] = self.folder / name
            with _alone(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND) as out:
                _append(out, lines.encode())
        except OSError as error:
            self.lost += len(records)
            self._failed_at = time.monotonic()
            if self._works:
                _log.error("nothing is recorded: %s", error.strerror)
            self._works = False
            return
        if not self._works and time.monotonic() - self._failed_at >= CALM:
            _log.warning("it is recorded again; %d records were lost", self.lost)
            self._works = True

    def _tidy(self) -> None:
        """Delete what is too old, then the oldest of what is too much; others do so, too."""
        seconds, most = self._limits
        found = []
        for file in recorded(self.folder):
            if _OWN.fullmatch(file.name):
                with suppress(FileNotFoundError):
                    found.append((file.stat(), file))
        total, now = 0, time.time()
        try:
            for at, file in sorted(found, key=lambda each: each[0].st_mtime, reverse=True):
                total += at.st_size
                if total > most or now - at.st_mtime > seconds:
                    file.unlink(missing_ok=True)
        except OSError as error:
            if self._works:
                _log.error("old records are not deleted: %s", error.strerror)


def _append(out: BinaryIO, lines: bytes) -> None:
    """Write all to a file without a buffer, or nothing: half a line would spoil the file."""
    size, rest = os.fstat(out.fileno()).st_size, memoryview(lines)
    try:
        while rest:
            rest = rest[out.write(rest) :]
    except OSError:
        os.ftruncate(out.fileno(), size)
        raise


def network_digest(address: str, key: bytes) -> str:
    """Return what stands for the network of an address: the same for all of its addresses.

    Who has the key can find out which network it is, by trying all; nobody else can.
    """
    return hashlib.blake2b(network_of(address).encode(), key=key, digest_size=12).hexdigest()


def _secret(file: Path) -> bytes:
    """Return the key in a file, which the first of several processes makes."""
    if not file.exists():
        own = file.with_name(f"{file.name}.{os.getpid()}")
        own.touch(mode=0o600)
        own.write_bytes(secrets.token_bytes(32))
        with suppress(FileExistsError):
            os.link(own, file)  # at once, and never over another's
        own.unlink()
    return file.read_bytes()


def recorded(folder: Path) -> list[Path]:
    """Return the files of a folder that hold records."""
    return [file for names in (QUERIES_GLOB, EVENTS_GLOB) for file in folder.glob(names)]


def kept_of(folder: str | Path, user: str) -> list[dict[str, Any]]:
    """Return a user's records in a folder, file by file: what `erase` deletes."""
    found = []
    for file in sorted(recorded(Path(folder))):
        with suppress(FileNotFoundError), _alone(file, os.O_RDONLY) as records:  # too old by now
            found += [json.loads(line) for line, client in _lines(records) if client == user]
    return found


def erase(folder: str | Path, user: str) -> int:
    """Delete a user's records from a folder; return how many there were.

    Files are replaced whole, also while a service records to them (not on Windows).
    """
    erased = 0
    for file in recorded(Path(folder)):
        with suppress(FileNotFoundError), _alone(file, os.O_RDONLY) as records:  # too old by now
            lines = list(_lines(records))
            erased += sum(client == user for _, client in lines)
            # A line that was half written may be of anybody, and nothing reads it.
            kept = [line for line, client in lines if client not in (user, UNREADABLE)]
            if len(kept) < len(lines):
                with atomic_path(file) as temporary:
                    temporary.touch(mode=0o600)
                    temporary.write_bytes(b"".join(kept))
    return erased


@contextmanager
def _alone(file: Path, flags: int) -> Iterator[BinaryIO]:
    """Open a file that nobody else writes or replaces in the meantime."""
    while True:
        handle = os.open(file, flags, 0o600)
        opened: BinaryIO
        with (
            os.fdopen(handle, "rb") if flags == os.O_RDONLY else os.fdopen(handle, "wb", 0)
        ) as opened:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX)
                try:
                    replaced = not os.path.samestat(os.fstat(handle), os.stat(file))
                except FileNotFoundError:
                    replaced = True
                if replaced:
                    continue  # or deleted, while we waited
            yield opened
            return


def _lines(lines: BinaryIO) -> Iterator[tuple[bytes, Any]]:
    """Give each line with the user it is of, or `UNREADABLE`."""
    for line in lines:
        try:
            yield line, json.loads(line).get("client_id")
        except (ValueError, AttributeError):
            yield line, UNREADABLE
