"""How a database is opened, and what its kind needs so that a commit means: it is on disk."""

import os
import socket
import sqlite3
from collections.abc import Collection
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from telic.errors import InputError

LOCKED_SECONDS = 2.0
"""How long a transaction waits for a lock that somebody else holds."""
POSTGRESQL = {
    "connect_timeout": 3,
    # A server that is gone without a word: the system finds out.
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,  # ms
    "options": f"-c lock_timeout={LOCKED_SECONDS:.0f}s -c statement_timeout=10s",
}
"""What a connection asks for, unless the URL says otherwise."""


class Gone(SQLAlchemyError):
    """A database's file is not the one that was opened: what is written there is lost."""


_NO_URL = (
    "the database is no SQLAlchemy URL. Write sqlite:///FILE.sqlite or "
    "postgresql+psycopg://USER@HOST/NAME."
)


def _parsed(url: str) -> URL:
    """Return a URL's parts; raise InputError if it is none."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise InputError(_NO_URL) from None
    rest = [parsed.host or ""]
    if parsed.get_backend_name() != "sqlite":
        rest.append(parsed.database or "")
    if any("@" in part for part in rest):  # the rest of a password, which must not be shown
        raise InputError(
            "the database's URL has more than one @. In a name or password write it as %40."
        )
    return parsed


def open_engine(url: str, tables: Collection[str]) -> Engine:
    """Return an engine for a store of these tables; it holds no connection yet.

    Transactions of ``engine.execution_options(writes=True)`` lock SQLite's file from their
    beginning, so that what they read stays true until they write.

    Raises
    ------
    InputError
        If the URL is none, its driver is missing, or it names no place that outlives the process;
        if it names somebody else's SQLite file: one with tables, of which none is of these.
    """
    try:
        parsed = _parsed(url)
        if parsed.get_backend_name() == "sqlite":
            return _sqlite(parsed, tables)
        ours = parsed.get_backend_name() == "postgresql" and parsed.get_driver_name() == "psycopg"
        # Parameters hold queries, which must not reach a log through an error.
        engine = create_engine(
            parsed,
            hide_parameters=True,
            pool_pre_ping=True,
            connect_args=_asked_of_postgresql(parsed) if ours else {},
        )
        if ours:
            event.listen(engine, "connect", partial(_expect_utf8, shown(url)), insert=True)
        return _closing(engine)
    except InputError:
        raise
    except (ArgumentError, NoSuchModuleError, ValueError):
        raise InputError(_NO_URL) from None
    except ImportError as error:
        said = f"{shown(url)}: needs the package {error.name}"
        if error.name == "psycopg":
            raise InputError(f"{said}. Install it: pip install telic[postgresql]") from None
        raise InputError(f"{said}. For PostgreSQL write postgresql+psycopg://.") from None


def _asked_of_postgresql(url: URL) -> dict[str, Any]:
    """Return what a connection asks for beside what its URL says, which goes first."""
    asked: dict[str, Any] = {k: v for k, v in POSTGRESQL.items() if k not in url.query}
    if "options" in url.query:
        said = url.normalized_query["options"]
        asked["options"] = " ".join([str(POSTGRESQL["options"]), *said])  # of two the later counts
    return asked


def _expect_utf8(url: str, connection: Any, _: Any) -> None:
    """Refuse a database that could not hold what people type."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding not in (None, "UTF8"):  # what stands before a server may not say it
        raise InputError(
            f"{url}: the database's encoding is {encoding}. Make one with: "
            "createdb --template=template0 --encoding=UTF8 NAME"
        )


def refuse_absent(url: str, hint: str = "Check --database.") -> None:
    """Raise InputError if a URL names an SQLite file that is not there, which would be made."""
    parsed = _parsed(url)
    if parsed.get_backend_name() == "sqlite" and parsed.database:
        file = Path(parsed.database)
        if not file.is_file():
            raise InputError(f"{file.absolute()}: no such database. {hint}")


class Lines:
    """An engine's connections to a server, which can be cut: who waits at one gets an error."""

    def __init__(self, engine: Engine) -> None:
        self._open: set[Any] = set()
        event.listen(engine, "connect", self._opened)

    def _opened(self, connection: Any, _: Any) -> None:
        if hasattr(connection, "fileno"):  # SQLite has none
            self._open = {each for each in self._open if not each.closed} | {connection}

    def cut(self) -> None:
        """End every connection, whatever waits for an answer there; the pool opens new ones."""
        for connection in self._open:
            with (
                suppress(OSError, connection.Error),
                socket.socket(fileno=os.dup(connection.fileno())) as line,
            ):
                line.shutdown(socket.SHUT_RDWR)


def shown(url: str) -> str:
    """Return a URL without its password; drivers take one among the options too."""
    return _parsed(url).set(query={}).render_as_string(hide_password=True)


def _closing(engine: Engine) -> Engine:
    """Close what was in use, or being opened, while its pool was disposed of: nobody else does."""

    def opening(_: Any, record: Any, *arguments: Any) -> None:
        record.info["pool"] = engine.pool

    def returned(connection: Any, record: Any) -> None:
        if connection and record.info.get("pool") is not engine.pool:
            connection.close()

    event.listen(engine, "do_connect", opening)
    event.listen(engine, "checkin", returned)
    return engine


def _refuse_foreign(file: Path, tables: Collection[str]) -> None:
    """Raise InputError if a SQLite file has tables, and none of these; leave it as it is."""
    if not file.is_file() or not file.stat().st_size:
        return
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
            found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            names = {name for (name,) in found}
    except sqlite3.Error as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
            raise InputError(f"{file}: is no SQLite database. Name another file.") from None
        return  # whoever opens it to write says what is wrong
    if names and names.isdisjoint(tables):
        some = ", ".join(sorted(names)[:3])
        raise InputError(
            f"{file}: is a database of something else (its tables: {some}). Name another file."
        )


def _sqlite(url: URL, tables: Collection[str]) -> Engine:
    if url.database in (None, "", ":memory:"):
        raise InputError("the database is in memory and would be forgotten. Name a file.")
    if url.host or url.username:
        raise InputError("the database's URL names a host, but SQLite has none: sqlite:///FILE.")
    if url.query:
        raise InputError("the database's URL has options, which SQLite's takes none of here.")
    file = Path(str(url.database)).absolute()
    _refuse_foreign(file, tables)
    try:
        file.touch(mode=0o600)
    except OSError as error:
        raise InputError(f"{file}: cannot be opened ({error.strerror}).") from None

    def connect(*_: Any) -> sqlite3.Connection:
        # Only a file that is there: one that was deleted must not come back empty.
        address = f"{file.as_uri()}?mode=rw"
        connection = sqlite3.connect(
            address, uri=True, timeout=LOCKED_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode=WAL").close()
            connection.execute("PRAGMA synchronous=FULL").close()
            connection.execute("PRAGMA secure_delete=ON").close()  # not every build's default
            connection.execute("SELECT 1 FROM sqlite_master").close()  # makes the log's file
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def opened(_: sqlite3.Connection, record: Any) -> None:
        record.info.update(file=file, files=_identity(file))

    def begin(connection: Connection) -> None:
        check_file(connection)
        if connection.get_execution_options().get("writes"):
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    engine = _closing(create_engine(url, hide_parameters=True))
    event.listen(engine, "do_connect", connect)  # the last of these makes the connection
    event.listen(engine, "connect", opened)
    event.listen(engine, "begin", begin)
    return engine


def check_file(connection: Connection) -> None:
    """Raise `Gone` if SQLite's file is not the one that this connection writes."""
    info = connection.info
    if "file" in info and info["files"] != _identity(info["file"]):
        raise Gone("its file was deleted or replaced")


def _identity(file: Path) -> list[tuple[int, int]]:
    """Tell which files a path and its write-ahead log are now, as far as they are there."""
    found = []
    for path in (file, Path(f"{file}-wal")):
        with suppress(OSError):
            at = os.stat(path)
            found.append((at.st_dev, at.st_ino))
    return found
