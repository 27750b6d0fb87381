"""What outlives the process: submissions, and what each user taught the model.

A user's state is the fold of the user's submissions, one after another. It is taught where it is
stored, within the transaction that stores the submission, so several processes and machines that
write for one user come to the state that one would have come to.
"""

import hashlib
import json
import logging
import math
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    DateTime,
    Engine,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    bindparam,
    delete,
    func,
    insert,
    inspect,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.exc import DatabaseError, IntegrityError, OperationalError, SQLAlchemyError

from telic.completion import Completer, Lesson, UserState
from telic.data.databases import Gone, Lines, check_file, open_engine, shown
from telic.errors import InputError
from telic.serve.operation.metrics import Seen
from telic.serve.state.dashboard_figures import figures
from telic.serve.state.row_bounds import PART, Bounds, oldest_kept, remove_part

_T = TypeVar("_T")
_log = logging.getLogger("telic.serve")
_TABLES = MetaData()
_LONG_AGO = "1970-01-01 00:00:00.000000"
"""When states were written that have no time, as older versions wrote them."""
SUBMISSIONS = Table(
    "submissions",
    _TABLES,
    Column("user", Text, primary_key=True),
    Column("composition", Text, primary_key=True),
    Column("query", Text, nullable=False),
    Column("learned", Boolean, nullable=False),
    Column("updates", Integer, nullable=False, comment="of the user's weights, after this one"),
    Column("number", Integer, nullable=False, comment="of the user's, in the order of the fold"),
    Column("at", DateTime, nullable=False, comment="UTC"),
    Column("tenant", Text, nullable=False),
    Column("typed", Integer, comment="characters that stood in the box; null: nothing was"),
    Column("rank", Integer, comment="of the query in the last list; 0: not in it"),
    Column("listed", Integer, comment="suggestions in the last list"),
    Column("accepted", Boolean, comment="taken from the list"),
)
USER_STATES = Table(
    "user_states",
    _TABLES,
    # Weights mean something to one fitted model only: after a new fit, users begin from that.
    Column("model", Text, primary_key=True),
    Column("user", Text, primary_key=True),
    Column("version", Integer, nullable=False, comment="submissions folded into it"),
    Column("state", JSON, nullable=False),
    Column("at", DateTime, nullable=False, server_default=text(f"'{_LONG_AGO}'"), comment="UTC"),
)
_OF_USERS = USER_STATES, SUBMISSIONS
"""In the order in which they are deleted: who writes a user's rows holds the state meanwhile."""
_BY_AGE = Index("submissions_at", SUBMISSIONS.c.at), Index("user_states_at", USER_STATES.c.at)
CHANGES = Table(
    "changes",
    _TABLES,
    # One after another without a gap, so nobody who has seen one has missed another before it.
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False, unique=True, comment="the client's, so that it counts once"),
    Column("changes", JSON, nullable=False),
    Column("at", DateTime, nullable=False, comment="UTC"),
)
FORGOTTEN = Table(
    "forgotten",
    _TABLES,
    # Number 0 is the key that makes digests of the users' ids.
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("who", Text, nullable=False, unique=True, comment="a keyed digest of the user's id"),
    Column("at", DateTime, nullable=False, comment="UTC"),
)
PROBE = Table("probe", _TABLES, Column("at", DateTime, nullable=False, comment="UTC"))
_MODEL, _USER = bindparam("of_model", type_=Text), bindparam("of_user", type_=Text)
_OWN = (USER_STATES.c.model == _MODEL) & (USER_STATES.c.user == _USER)
# Statements are made once: that takes longer than to run them.
_READ = select(USER_STATES.c.state, USER_STATES.c.version).where(
    _OWN, USER_STATES.c.version != bindparam("known")
)
_LOCK = (  # in one order, so that no two writers wait for each other
    select(USER_STATES)
    .where(
        USER_STATES.c.model == _MODEL, USER_STATES.c.user.in_(bindparam("users", expanding=True))
    )
    .order_by(USER_STATES.c.user)
    .with_for_update()
)
_REPEATED = select(SUBMISSIONS).where(
    tuple_(SUBMISSIONS.c.user, SUBMISSIONS.c.composition).in_(bindparam("keys", expanding=True))
)
# Whoever writes of users without a state shares this row; whoever forgets one has it alone.
_DIGEST_KEY = select(FORGOTTEN.c.who).where(FORGOTTEN.c.number == 0)
_FIRST_STATE = insert(USER_STATES).values(model=_MODEL, user=_USER)
_NEXT_STATE = update(USER_STATES).where(_OWN)
BATCHES = 100
"""Batches of changes that are read at once."""
STUCK = 15.0
"""Seconds after which a transaction waits for nobody: servers end a statement after ten."""
SAYS_NOTHING_OF_ROWS = ("25006", "42501")
"""PostgreSQL's codes of a database that is read-only, and of what its user may not do."""
COLLISIONS = ("40001", "40P01")
"""PostgreSQL's codes of serialization failures and deadlocks."""
MADE_BY_OTHERS = ("42P07", "42701", "42710")
"""PostgreSQL's codes of tables, columns and types that another process made meanwhile."""
ATTEMPTS = 5
"""How often a transaction is tried that another process's write made impossible."""


class StoreError(Exception):
    """The store cannot do what was asked now; the text says why and nothing of the request."""


class DamagedStateError(StoreError):
    """What is stored of one user cannot be read; the others' can."""


class _CollidedError(StoreError):
    """Other transactions were in the way, and nothing was written: the same may be tried again."""


class IdTakenError(Exception):
    """A batch of changes was stored under this id that has others."""


class FullError(Exception):
    """There are as many batches of changes as there may be."""


class Stored(NamedTuple):
    """A user's state, and how many submissions it holds."""

    state: UserState
    version: int


@dataclass(frozen=True, slots=True)
class Submission:
    """A composition that ended, by its user's and its own id; it counts once."""

    user: str
    composition: str
    lesson: Lesson
    tenant: str = ""
    seen: Seen | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a submission, now or when it first came."""

    learned: bool
    updates: int
    stored: Stored | None = None
    """The user's state after it; None if it had come before."""


class Store:
    """The service's database, used from any thread.

    Parameters
    ----------
    url : str
        SQLAlchemy URL; SQLite runs in WAL mode and its file is readable by its owner alone.
    completer : Completer
        Its user states are kept apart from those of other models.
    max_history : int
        Distinct queries remembered of a user.
    bounds : Bounds, optional
        The most rows that it keeps.

    Raises
    ------
    InputError
        If the database cannot be opened.
    """

    def __init__(
        self,
        url: str,
        completer: Completer,
        *,
        max_history: int = 1_000,
        bounds: Bounds | None = None,
    ) -> None:
        self.model, self._bounds = fingerprint(completer), bounds or Bounds()
        self._completer = completer
        self._max_history = max_history
        self._closed = False
        self._engine = open_engine(url, _TABLES.tables)
        self._lines = Lines(self._engine)
        self._begun: dict[int, float] = {}  # when each thread's transaction was
        self._writes = self._engine.execution_options(writes=True)
        self._told = ""  # the last that the log was told of the server
        try:
            self._make_tables(url)
            with suppress(StoreError):  # one that can only be read begins as well
                self._written(_make_digest_key)
        finally:
            # An application that is never started, or cannot be, holds no connection.
            self._engine.dispose()

    def _make_tables(self, url: str) -> None:
        """Make what is missing; another process may make it at the same time."""
        for left in reversed(range(ATTEMPTS)):
            try:
                with self._writes.begin() as connection:
                    found = _make_tables(connection)
                break
            except SQLAlchemyError as error:
                again = isinstance(error, IntegrityError)
                if not left or not (again or _code(error) in COLLISIONS + MADE_BY_OTHERS):
                    said = f"{shown(url)}: cannot be opened ({_reason(error)})."
                    raise InputError(said) from None
        if missing := set(SUBMISSIONS.columns.keys()) - found:
            raise InputError(
                f"{shown(url)}: lacks {', '.join(sorted(missing))} of the submissions, as older "
                "versions wrote it. Name another file, or move this one away."
            )

    def read(self, user: str, version: int = 0) -> Stored | None:
        """Return what is stored of a user, or None if that is nothing or of this version."""
        asked = {"of_model": self.model, "of_user": user, "known": version}
        with self._transaction(self._engine) as connection:
            row = connection.execute(_READ, asked).first()
        return _decoded(row) if row else None

    def record(self, submissions: Sequence[Submission]) -> list[Outcome]:
        """Write submissions and what they teach, all or none; those that came before stay.

        Raises
        ------
        StoreError
            If nothing was written, or it cannot be known: they may be sent again.
        """
        return self._written(lambda connection: self._record(connection, submissions))

    def change(self, id: str, changes: list[list[Any]]) -> int:
        """Write a batch of changes; return its number, or that which it was written under before.

        Raises
        ------
        StoreError
            If nothing was written, or it cannot be known: it may be sent again.
        IdTakenError
            If other changes were written under this id.
        FullError
            If there are as many batches as there may be.
        """

        def write(connection: Connection) -> int:
            same = select(CHANGES.c.number, CHANGES.c.changes).where(CHANGES.c.id == id)
            if before := connection.execute(same).first():
                if before.changes != changes:
                    raise IdTakenError
                return int(before.number)
            number = 1 + (connection.execute(select(func.max(CHANGES.c.number))).scalar() or 0)
            if number > self._bounds.changes > 0:
                raise FullError
            row = {"number": number, "id": id, "changes": changes, "at": _now()}
            connection.execute(insert(CHANGES), [row])
            return number

        return self._written(write)

    def changes(self, after: int) -> list[tuple[int, list[list[Any]]]]:
        """Return the first batches of changes after a number, in order; none where that is last."""
        asked = select(CHANGES.c.number, CHANGES.c.changes).where(CHANGES.c.number > after)
        with self._transaction(self._engine) as connection:
            rows = connection.execute(asked.order_by(CHANGES.c.number).limit(BATCHES))
            return [(row.number, row.changes) for row in rows]

    def batch(self, number: int) -> str | None:
        """Return what tells a batch of changes from any other, of any store; None without it."""
        asked = select(CHANGES.c.id, CHANGES.c.at).where(CHANGES.c.number == number)
        with self._transaction(self._engine) as connection:
            row = connection.execute(asked).first()
        return row and hashlib.sha256(f"{row.at} {row.id}".encode()).hexdigest()[:16]

    def forget(self, user: str) -> tuple[int, int]:
        """Delete all that is stored of a user, of every model, and note it for other processes.

        Returns
        -------
        rows : int
            That were deleted.
        number : int
            Of the note: see `forgotten`.
        """

        def write(connection: Connection) -> tuple[int, int]:
            rows = _delete(connection, user)  # waits for who writes of the user
            number = _note(connection, user)  # waits for who writes of somebody new
            return rows + _delete(connection, user), number

        found = self._written(write)
        self._wipe()
        return found

    def kept_of(self, user: str) -> dict[str, list[dict[str, Any]]]:
        """Return all rows of a user as JSON has them, by table: what `forget` deletes."""
        with self._transaction(self._engine) as connection:
            return {
                table.name: [
                    dict(row._mapping) | {"at": f"{row.at.isoformat()}Z"}
                    for row in connection.execute(select(table).where(table.c.user == user))
                ]
                for table in _OF_USERS
            }

    def forgotten(self, after: int) -> dict[int, str]:
        """Return notes of forgotten users after a number: see `digest_of`; 0 has its key."""
        noted = select(FORGOTTEN.c.number, FORGOTTEN.c.who)
        asked = noted.where((FORGOTTEN.c.number > after) | (FORGOTTEN.c.number == 0))
        with self._transaction(self._engine) as connection:
            return {row.number: row.who for row in connection.execute(asked)}

    def check(self) -> None:
        """Raise StoreError unless the store takes a write."""
        with self._transaction(self._writes) as connection:
            connection.execute(delete(PROBE))
            connection.execute(insert(PROBE).values(at=_now()))

    def trim(self) -> dict[str, int]:
        """Remove the oldest rows that are over the bounds; return how many, by table."""
        removed = {}
        bounds = (SUBMISSIONS, self._bounds.submissions), (USER_STATES, self._bounds.user_states)
        for table, most in bounds:
            removed[table.name], part = 0, PART
            with self._transaction(self._engine) as connection:
                before = most and connection.execute(oldest_kept(table, most)).scalar()
            while before and part == PART and not self._closed:
                with self._transaction(self._writes) as connection:
                    part = remove_part(connection, table, before)
                removed[table.name] += part
        return removed

    def figures(self, tenant: str | None, days: int) -> dict[str, Any]:
        """Return what the submissions of the last days say, of a tenant or of all."""
        deny, now = self._completer.deny, _now()
        denied = deny.denies if deny else None
        with self._transaction(self._engine) as connection:
            return figures(
                connection, SUBMISSIONS, tenant=tenant, now=now, days=days, denied=denied
            )

    def cut(self, seconds: float = STUCK) -> None:
        """Close all connections to a server if a transaction has waited for it for so long."""
        if time.monotonic() - min([*self._begun.values()], default=math.inf) > seconds:
            _log.warning("the store's connections are closed: one did not answer")
            self._lines.cut()

    def release(self) -> None:
        """Close every connection that nobody uses; the next call opens one anew."""
        self._engine.dispose()

    def close(self) -> None:
        """Close every connection; a call that is still on its way in a thread keeps none either."""
        self._closed = True
        self.release()

    def _written(self, write: Callable[[Connection], _T]) -> _T:
        """Return what was written, after another try where another process wrote the same."""
        for _ in range(ATTEMPTS):
            with (
                suppress(IntegrityError, _CollidedError),
                self._transaction(self._writes) as connection,
            ):
                return write(connection)
        raise StoreError("others write the same again and again")

    def _record(self, connection: Connection, submissions: Sequence[Submission]) -> list[Outcome]:
        keys = list({(each.user, each.composition) for each in submissions})
        states = self._locked(connection, sorted({user for user, _ in keys}))
        versions = {user: stored.version for user, stored in states.items()}
        forgotten = _forgotten_among(connection, {user for user, _ in keys} - states.keys())
        # After the locks: what others wrote of these users is seen.
        known = {
            (row.user, row.composition): Outcome(row.learned, row.updates)
            for row in connection.execute(_REPEATED, {"keys": keys})
        }
        repeated = set(known)
        added: list[dict[str, Any]] = []
        for each in submissions:
            key = user, _ = each.user, each.composition
            if key in known:
                continue
            # Of whom others forgot, the model may know something here for a moment longer.
            fitted = user if user not in forgotten else None
            state, version = states.get(user) or Stored(self._completer.user(fitted), 0)
            learned = self._completer.teach(state, each.lesson)
            if not each.lesson.denied:
                _forget_oldest(state, each.lesson.query, self._max_history)
            states[user] = Stored(state, version + 1)
            known[key] = Outcome(learned, state.updates)
            row: dict[str, Any] = {
                "user": user,
                "composition": each.composition,
                "query": each.lesson.query,
            }
            row |= {"learned": learned, "updates": state.updates, "number": version + 1}
            added.append(row | {"at": _now(), "tenant": each.tenant} | _seen(each.seen))
        if added:
            # In one order, so that no two machines wait for each other.
            added.sort(key=lambda row: (row["user"], row["composition"]))
            connection.execute(insert(SUBMISSIONS), added)
            self._write_states(connection, {row["user"] for row in added}, states, versions)
        return [
            known[key] if key in repeated else replace(known[key], stored=states[key[0]])
            for key in ((each.user, each.composition) for each in submissions)
        ]

    def _locked(self, connection: Connection, users: list[str]) -> dict[str, Stored]:
        """Return the stored states of users, which nobody else may change until the end."""
        rows = connection.execute(_LOCK, {"of_model": self.model, "users": users})
        return {row.user: _decoded(row) for row in rows}

    def _write_states(
        self,
        connection: Connection,
        users: set[str],
        states: dict[str, Stored],
        versions: dict[str, int],
    ) -> None:
        rows = [
            {
                "of_model": self.model, "of_user": user, "version": states[user].version,
                "state": states[user].state.as_json(), "at": _now(),
            }
            for user in sorted(users)
        ]  # fmt: skip
        if new := [row for row in rows if row["of_user"] not in versions]:
            connection.execute(_FIRST_STATE, new)
        if old := [row for row in rows if row["of_user"] in versions]:
            connection.execute(_NEXT_STATE, old)

    def _wipe(self) -> None:
        """Leave nothing of what was deleted in SQLite's log."""
        if self._engine.dialect.name == "sqlite":
            with self._transaction(self._engine) as connection:
                busy, *_ = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
            if busy:
                raise StoreError("its log is in use by others")

    @contextmanager
    def _transaction(self, engine: Engine) -> Iterator[Connection]:
        self._begun[threading.get_ident()] = time.monotonic()
        try:
            with engine.connect() as connection:
                with connection.begin():
                    yield connection
                check_file(connection)  # a commit to a file that was deleted is none
            self._told = ""
        except IntegrityError:
            raise
        except SQLAlchemyError as error:
            if isinstance(error, Gone):
                self._engine.dispose()
            failed = _CollidedError if _code(error) in COLLISIONS else StoreError
            raise failed(self._public(error)) from None
        finally:
            del self._begun[threading.get_ident()]
            if self._closed:  # since this began: what it opened would stay open
                self.release()

    def _public(self, error: SQLAlchemyError) -> str:
        """Return a reason as anybody may read it; only the log says which server it is.

        Without a code the driver speaks, of address, role and database, and no server.
        """
        reason = _reason(error)
        of_server = self._engine.dialect.name != "sqlite" and isinstance(error, DatabaseError)
        if not of_server or _code(error):
            return reason
        if reason != self._told:
            self._told = reason
            _log.error("the database: %s", reason)
        return "its server cannot be reached, or refuses the service"


def _make_tables(connection: Connection) -> set[str]:
    """Make the tables that are missing; return the columns of the submissions."""
    _TABLES.create_all(connection)
    found = _columns(connection, SUBMISSIONS)
    if "at" not in _columns(connection, USER_STATES):  # an older version's
        at = f"TIMESTAMP DEFAULT '{_LONG_AGO}' NOT NULL"
        connection.exec_driver_sql(f"ALTER TABLE user_states ADD COLUMN at {at}")
    for index in _BY_AGE if "at" in found else ():
        index.create(connection, checkfirst=True)
    return found


def _make_digest_key(connection: Connection) -> str:
    """Return the key of digests, made if there is none."""
    if (key := connection.execute(_DIGEST_KEY.with_for_update()).scalar()) is None:
        key = secrets.token_hex(32)
        connection.execute(insert(FORGOTTEN), [{"number": 0, "who": key, "at": _now()}])
    return str(key)


def _columns(connection: Connection, table: Table) -> set[str]:
    """Return the columns that a table has in the database."""
    return {column["name"] for column in inspect(connection).get_columns(table.name)}


def fingerprint(completer: Completer) -> str:
    """Name a fitted model by what gives its users' weights their meaning."""
    named = [completer.model, completer.relevance.name, completer.protocol]
    digest = hashlib.sha256(json.dumps(named).encode())
    signals = completer.signals.weights.weights if completer.signals else np.empty(0)
    design, factors = completer.design.deviations, completer.relevance.factors
    for array in (completer.everyone, design, factors, signals):
        digest.update(array.tobytes())
    return digest.hexdigest()


def digest_of(user: str, key: str) -> str:
    """Return what stands for a forgotten user, whose id is kept nowhere."""
    return hashlib.blake2b(user.encode(), key=bytes.fromhex(key), digest_size=32).hexdigest()


def _delete(connection: Connection, user: str) -> int:
    """Delete a user's rows; return how many there were."""
    return sum(
        connection.execute(delete(table).where(table.c.user == user)).rowcount
        for table in _OF_USERS
    )


def _note(connection: Connection, user: str) -> int:
    """Note that a user was forgotten; return the note's number."""
    columns = FORGOTTEN.c
    key = _make_digest_key(connection)
    last = connection.execute(select(func.max(columns.number))).scalar() or 0
    who, number = digest_of(user, key), last + 1
    connection.execute(delete(FORGOTTEN).where(columns.who == who))  # an earlier note
    connection.execute(insert(FORGOTTEN).values(number=number, who=who, at=_now()))
    return number


def _forgotten_among(connection: Connection, users: Collection[str]) -> set[str]:
    """Return which of some users were ever forgotten; nobody forgets one until the end."""
    if not users:
        return set()
    key = connection.execute(_DIGEST_KEY.with_for_update(read=True)).scalar()
    if key is None:  # nobody ever was
        return set()
    digests = {digest_of(user, key): user for user in users}
    noted = select(FORGOTTEN.c.who).where(FORGOTTEN.c.who.in_(digests))
    return {digests[who] for who in connection.execute(noted).scalars()}


def _decoded(row: Any) -> Stored:
    try:
        return Stored(UserState.from_json(row.state), row.version)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise DamagedStateError("what is stored of this user is damaged") from None


def _forget_oldest(state: UserState, query: str, limit: int) -> None:
    history = state.history
    history[query] = history.pop(query)  # to the end: submitted last
    while len(history) > limit:
        oldest = next(iter(history))
        del history[oldest]
        state.last.pop(oldest, None)


def _seen(seen: Seen | None) -> dict[str, Any]:
    return seen._asdict() if seen else dict.fromkeys(Seen._fields)


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


def _code(error: Exception) -> str | None:
    """Return PostgreSQL's code of an error, if that has one."""
    return getattr(getattr(error, "orig", None), "sqlstate", None)


def _reason(error: Exception) -> str:
    """Say what is wrong with a database; other errors than its own could quote what was sent."""
    if isinstance(error, Gone):
        return str(error)
    if isinstance(error, DatabaseError):
        damaged = type(error) is DatabaseError and isinstance(error.orig, sqlite3.Error)
        said = str(error.orig).strip()
        plain = damaged or _code(error) in SAYS_NOTHING_OF_ROWS
        if said and (plain or isinstance(error, OperationalError)):
            return said.splitlines()[0]
    return type(error).__name__
