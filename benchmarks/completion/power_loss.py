"""Power loss simulated: of what the service wrote, only what it waited for is on the disk.

The system calls of a service are recorded (strace). The files are then rebuilt as a disk would hold
them at any moment: writes that a later `fdatasync` or `fsync` waited for are there, others are
dropped, or kept by chance.
"""

import ast
import random
import re
import sqlite3
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

TRACE = [
    "strace", "-D", "-ff", "-qq", "-ttt", "-T", "-y", "-xx", "-s", "1000000",
    "-e", "trace=pwrite64,ftruncate,fsync,fdatasync",
]  # fmt: skip
"""Records the calls of each thread in a file of its own, whose name follows `-o`, from beside."""
_CALL = re.compile(
    r"(?P<began>[\d.]+) (?P<name>\w+)\(\d+<(?P<path>[^>]*)>(?:, (?P<rest>.*))?\)\s+= "
    r"(?P<returned>-?\d+)[^<]*<(?P<took>[\d.]+)>"
)


class Call(NamedTuple):
    """A system call on a file: when it began and ended, and what was written where."""

    began: float
    ended: float
    name: str
    path: str
    content: bytes
    offset: int


def calls(recorded: Path) -> list[Call]:
    """Read what strace recorded, in the order in which the calls ended."""
    found = []
    for file in recorded.parent.glob(f"{recorded.name}.*"):
        for line in file.read_text(errors="replace").splitlines():
            call = _CALL.match(line)
            if call is None or int(call["returned"]) < 0:
                continue
            content, offset = b"", 0
            if call["name"] == "pwrite64":
                text, _, offset = call["rest"].rsplit(", ", 2)
                content = ast.literal_eval(f"b{text}")
            elif call["name"] == "ftruncate":
                offset = call["rest"]
            path = ast.literal_eval(f'"{call["path"]}"')  # each character is a hexadecimal number
            began = float(call["began"])
            ended = began + float(call["took"])
            found.append(Call(began, ended, call["name"], path, content, int(offset)))
    return sorted(found, key=lambda call: call.ended)


def on_disk(all_calls: list[Call], now: float, chance: float, rng: random.Random) -> dict:
    """Return the files as a disk holds them that loses its power.

    A write is there if a call that waited for its file began after the write and ended before
    `now`; else with a chance.
    """
    synced = defaultdict(float)
    for call in all_calls:
        if call.name in ("fsync", "fdatasync") and call.ended <= now:
            synced[call.path] = max(synced[call.path], call.began)
    files = defaultdict(bytearray)
    for call in all_calls:
        if call.name in ("fsync", "fdatasync") or call.began > now:
            continue
        if call.ended > synced[call.path] and rng.random() >= chance:
            continue
        content = files[call.path]
        if call.name == "ftruncate":
            del content[call.offset :]
        content.extend(bytes(max(0, call.offset - len(content))))
        content[call.offset : call.offset + len(call.content)] = call.content
    return files


def survivors(files: dict, database: Path) -> set[tuple[str, str]]:
    """Open the database in such files; return users and compositions whose submission is there."""
    with tempfile.TemporaryDirectory() as folder:
        for ending in ("", "-wal"):
            Path(folder, f"db{ending}").write_bytes(files.get(f"{database}{ending}", b""))
        connection = sqlite3.connect(Path(folder, "db"))
        try:
            (whole,) = connection.execute("PRAGMA integrity_check").fetchone()
            if whole != "ok":
                raise RuntimeError(f"the database is damaged: {whole}")
            return set(connection.execute('SELECT "user", composition FROM submissions'))
        finally:
            connection.close()
