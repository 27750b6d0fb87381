"""The review queue: alarms that people work through, in SQLite or PostgreSQL.

An alarm is open, explained, confirmed or closed. `ReviewQueue.add` brings a log's alarms in as open
or explained, and may move them between these two when a later run knows more, until a person has
decided about them: what a person decided, only a person changes. Every change is kept, with who
made it, when and why.

The database holds pseudonyms from a key of its own, and the row of the accesses file to look an
access up by. Whoever has the database has the key: keep it as safe as the log.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Float,
    Integer,
    MetaData,
    Table,
    Text,
    func,
    insert,
    inspect,
    select,
    update,
)
from sqlalchemy.exc import SQLAlchemyError

from telic.data.databases import open_engine, shown
from telic.errors import InputError, expect_one_of
from telic.specialty.alarms.explained_alarms import Alerts, lines
from telic.specialty.discovery.result import Discovery
from telic.specialty.log.access_log import AccessLog
from telic.specialty.pseudonyms import Pseudonyms

STATES = {
    "open": "nothing explains the access yet",
    "explained": "a specialty, colleagues or a person explain it, or it is no alarm any longer",
    "confirmed": "a person found that there was no reason for it",
    "closed": "dealt with",
}
MOVES = {
    "open": ("explained", "confirmed", "closed"),
    "explained": ("open", "confirmed", "closed"),
    "confirmed": ("open", "closed"),
    "closed": ("open",),
}
"""States that a person may move an alarm to."""
SHORTEST = 4
"""Characters of an id that a person must give."""
MACHINE = "telic"
PLACE = ("alarm", "log", "row")
"""Where an alarm's access stands."""

_TABLES = MetaData()
_KEY = Table("review_key", _TABLES, Column("key", Text, nullable=False))
_ALARMS = Table(
    "review_alarms",
    _TABLES,
    Column("alarm", Text, primary_key=True),
    Column("state", Text, nullable=False, index=True),
    Column("decided", Boolean, nullable=False),  # by a person
    Column("lift", Float, nullable=False),
    Column("log", Text, nullable=False),
    Column("row", Integer, nullable=False),
    Column("user", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("declared", Text),
    Column("practised", Text),
    Column("diagnoses", Text, nullable=False),
    Column("because", Text, nullable=False),
    Column("place", Float),  # in the queue; null in rows of older versions
)
_STEPS = Table(
    "review_steps",
    _TABLES,
    Column("step", Integer, primary_key=True),
    Column("alarm", Text, nullable=False, index=True),
    Column("state", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("note", Text, nullable=False),
)


class Added(NamedTuple):
    """What a run brought."""

    new: int
    changed: int
    """Were there and are explained now, as those that raise no alarm any longer, or open again."""
    kept: int
    """Were there and stay as they are, but for the row in which they stand now."""
    left: int = 0
    """Open ones of the log beyond the limit, which are not there."""


class ReviewQueue:
    """Alarms under review.

    Parameters
    ----------
    url : str
        ``sqlite:///FILE.sqlite`` or ``postgresql+psycopg://USER@HOST/NAME``; made if it is empty.

    Raises
    ------
    InputError
        If the database cannot be opened, or fails.

    Examples
    --------
    >>> import tempfile
    >>> queue = ReviewQueue(f"sqlite:///{tempfile.mkdtemp()}/review.sqlite")
    >>> queue.counts()
    {'open': 0, 'explained': 0, 'confirmed': 0, 'closed': 0}
    >>> queue.close()
    """

    def __init__(self, url: str) -> None:
        self._engine = open_engine(url, _TABLES.tables)
        self._shown = shown(url)
        with self._transaction() as connection:
            self._key = _key_of(connection)
        if self._key:
            return
        with self._transaction(writes=True) as connection:
            if not inspect(connection).has_table(_KEY.name):
                _TABLES.create_all(connection)
            if not _has_place(connection):
                connection.exec_driver_sql("ALTER TABLE review_alarms ADD COLUMN place FLOAT")
            if not _key_of(connection):
                connection.execute(insert(_KEY), {"key": secrets.token_hex(32)})
            self._key = _key_of(connection)

    def add(
        self, log: AccessLog, discovery: Discovery, alerts: Alerts, *, name: str, limit: int
    ) -> Added:
        """Bring a log's first open alarms in, and what it now says of those already there.

        Parameters
        ----------
        log, discovery, alerts
            What `read_log`, `discover` or `carry`, and `judge` gave.
        name : str
            The log's name, by which people find its file.
        limit : int
            Open alarms to bring in, least covered first; those that people have decided do not
            count.
        """
        names = Pseudonyms(self._key)
        asked, left = self._asked(log, alerts, names, limit)
        described = lines(
            log, discovery, alerts, np.array([*asked.values()], int), pseudonyms=names
        )
        new, changed, again = [], [], []
        with self._transaction(writes=True) as connection:
            # Read again, and locked: people may have decided since.
            there = _there(connection, locked=True)
            for (alarm, a), line in zip(asked.items(), described, strict=True):
                state, decided = there.get(alarm, (None, False))
                values = {**_values(alarm, line, name), "place": float(alerts.place[a])}
                if state is None:
                    new.append(values)
                    continue
                # Where the access stands is true of this file alone, also if a person has decided.
                again.append({key: values[key] for key in PLACE} if decided else values)
                if not decided and state != line["status"]:
                    changed.append(values)
            if new:
                connection.execute(insert(_ALARMS), new)
            for values in again:
                same = _ALARMS.c.alarm == values["alarm"]
                connection.execute(update(_ALARMS).where(same).values(**values))
            for values in [*new, *changed]:
                _step(connection, values["alarm"], values["state"], MACHINE, "")
        return Added(len(new), len(changed), len(asked) - len(new) - len(changed), left)

    def _asked(
        self, log: AccessLog, alerts: Alerts, names: Pseudonyms, limit: int
    ) -> tuple[dict[str, int], int]:
        """Return a log's first open alarms and those of it that are in the queue, with accesses.

        Also how many open ones are left beyond the limit.
        """
        with self._transaction() as connection:
            there = _there(connection)
            users = set(connection.scalars(select(_ALARMS.c.user).distinct()))
        settled = {alarm for alarm, (_, decided) in there.items() if decided}
        asked: dict[str, int] = {}
        left = 0
        for a in alerts.queue("open"):
            alarm = self._alarm(log, a)
            if len(asked) == limit:
                left += alarm not in there
            elif alarm not in settled:
                asked[alarm] = int(a)
        if there:
            # What raises no alarm any longer, as of users who declare a code by now, is there
            # too; most accesses are of users who never had one.
            known_user = np.array([names(str(user)) in users for user in log.users])
            accesses = np.flatnonzero(known_user[log.access_user])
            rest = np.setdiff1d(accesses, [*asked.values()])
            ids = ((self._alarm(log, a), int(a)) for a in rest)
            asked |= {alarm: a for alarm, a in ids if alarm in there}
        return asked, left

    def alarms(self, *, state: str | None = None, limit: int = 20) -> list[dict[str, Any]]:
        """Return alarms, least covered first, each with its history.

        Parameters
        ----------
        state : str, optional
            One of `STATES`; all if not given.
        limit : int
        """
        place = func.coalesce(_ALARMS.c.place, _ALARMS.c.lift)
        wanted = select(_ALARMS).order_by(place, _ALARMS.c.lift, _ALARMS.c.alarm).limit(limit)
        if state is not None:
            expect_one_of(STATES, state=state)
            wanted = wanted.where(_ALARMS.c.state == state)
        with self._transaction() as connection:
            found = [dict(one) for one in connection.execute(wanted).mappings()]
            for one in found:
                one["diagnoses"] = json.loads(one["diagnoses"])
                steps = select(_STEPS).where(_STEPS.c.alarm == one["alarm"]).order_by(_STEPS.c.step)
                one["history"] = [
                    {name: step[name] for name in ("state", "by", "at", "note")}
                    for step in connection.execute(steps).mappings()
                ]
        return found

    def move(self, alarm: str, state: str, *, by: str, note: str = "") -> str:
        """Decide about an alarm.

        Parameters
        ----------
        alarm : str
            Its id, or the beginning of that and of no other.
        state : str
            One of `STATES` that `MOVES` allows from where it is.
        by : str
            Who decides.
        note : str
            Why.

        Returns
        -------
        str
            The alarm's id.

        Raises
        ------
        InputError
            If there is no such alarm, nobody decides, or the move is none.
        """
        if not by.strip() or by.strip().casefold() == MACHINE:
            raise InputError("a decision needs the name of the person who makes it (--by).")
        known = alarm.rstrip("….")
        begun = _ALARMS.c.alarm.startswith(known, autoescape=True)
        if len(known) < SHORTEST:
            raise InputError(f"alarm {alarm!r}: give at least {SHORTEST} characters of its id.")
        with self._transaction(writes=True) as connection:
            wanted = select(_ALARMS.c.alarm, _ALARMS.c.state).where(begun)
            # Locked, so that nobody else decides between this and the write.
            found = connection.execute(wanted.with_for_update()).all()
            if len(found) != 1:
                held = f"{len(found)} alarms begin with" if found else "holds no alarm"
                raise InputError(f"{self._shown}: {held} {alarm!r}. `review list` has ids.")
            ((alarm, before),) = found
            same = _ALARMS.c.alarm == alarm
            expect_one_of(STATES, state=state)
            if state not in MOVES[before]:
                raise InputError(
                    f"alarm {alarm} is {before} and cannot become {state}, but "
                    f"{' or '.join(MOVES[before])}."
                )
            connection.execute(update(_ALARMS).where(same).values(state=state, decided=True))
            _step(connection, alarm, state, by, note)
        return alarm

    def counts(self) -> dict[str, int]:
        """Return the number of alarms in each state."""
        count = select(_ALARMS.c.state, func.count()).group_by(_ALARMS.c.state)
        with self._transaction() as connection:
            found = {one.state: one[1] for one in connection.execute(count)}
        return {state: found.get(state, 0) for state in STATES}

    def close(self) -> None:
        """Close the database."""
        self._engine.dispose()

    def _alarm(self, log: AccessLog, access: int) -> str:
        """Return an id that is the same whenever the access comes again, in whatever file."""
        parts = (
            log.users[log.access_user[access]],
            log.encounters[log.access_encounter[access]],
            log.access_at[access],
        )
        text = json.dumps([str(part) for part in parts])
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()[:20]

    @contextmanager
    def _transaction(self, *, writes: bool = False) -> Iterator[Connection]:
        try:
            with self._engine.execution_options(writes=writes).begin() as connection:
                yield connection
        except SQLAlchemyError as error:  # whose message may quote rows
            raise InputError(
                f"{self._shown}: the database failed ({type(error).__name__}); nothing was changed."
            ) from None


def _key_of(connection: Connection) -> bytes:
    """Return the key of the pseudonyms; empty if the tables are not there, or of an older telic."""
    if not inspect(connection).has_table(_KEY.name) or not _has_place(connection):
        return b""
    return bytes.fromhex(connection.scalar(select(_KEY.c.key)) or "")


def _has_place(connection: Connection) -> bool:
    """Whether alarms have a place; an older version's have none."""
    return "place" in {column["name"] for column in inspect(connection).get_columns(_ALARMS.name)}


def _there(connection: Connection, *, locked: bool = False) -> dict[str, tuple[str, bool]]:
    """Return the state of each alarm, and whether a person decided about it."""
    wanted = select(_ALARMS.c.alarm, _ALARMS.c.state, _ALARMS.c.decided).order_by(_ALARMS.c.alarm)
    rows = connection.execute(wanted.with_for_update() if locked else wanted)
    return {row.alarm: (row.state, row.decided) for row in rows}


def _values(alarm: str, line: dict[str, Any], name: str) -> dict[str, Any]:
    as_described = ("row", "user", "at", "declared", "practised", "because", "lift")
    return {
        "alarm": alarm,
        "state": line["status"],
        "decided": False,
        "log": name,
        "diagnoses": json.dumps(line["diagnoses"]),
        **{key: line[key] for key in as_described},
    }


def _step(connection: Connection, alarm: str, state: str, by: str, note: str) -> None:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    step = {"alarm": alarm, "state": state, "by": by, "at": now, "note": note}
    connection.execute(insert(_STEPS), step)
