"""What outlives the process: submissions, and what each user taught the model."""

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    DateTime,
    MetaData,
    Table,
    Text,
    create_engine,
    delete,
    event,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from telic.completion import Completer, UserState
from telic.errors import InputError

_TABLES = MetaData()
SUBMISSIONS = Table(
    "submissions",
    _TABLES,
    Column("user", Text, primary_key=True),
    Column("composition", Text, primary_key=True),
    Column("query", Text, nullable=False),
    Column("learned", Boolean, nullable=False),
    Column("at", DateTime, nullable=False, comment="UTC"),
)
USER_STATES = Table(
    "user_states",
    _TABLES,
    # Weights mean something to one fitted model only: after a new fit, users begin from that.
    Column("model", Text, primary_key=True),
    Column("user", Text, primary_key=True),
    Column("state", JSON, nullable=False),
)


class Events:
    """The service's database.

    Parameters
    ----------
    url : str
        SQLAlchemy URL; SQLite runs in WAL mode and its file is readable by its owner alone.
    completer : Completer
        Its user states are kept apart from those of other models.

    Raises
    ------
    InputError
        If the database cannot be opened.
    """

    def __init__(self, url: str, completer: Completer) -> None:
        self.model = fingerprint(completer)
        try:
            parsed = make_url(url)
            is_sqlite = parsed.get_backend_name() == "sqlite"
            if is_sqlite and parsed.database in (None, "", ":memory:"):
                raise InputError("the database is in memory and would be forgotten. Name a file.")
            # Drivers take a password among the options too.
            shown = parsed.set(query={}).render_as_string(hide_password=True)
            # Parameters hold queries, which must not reach a log through an error.
            self._engine = create_engine(parsed, hide_parameters=True)
            if is_sqlite:
                event.listen(self._engine, "connect", _prepare_sqlite)
                if not parsed.query:
                    Path(str(parsed.database)).touch(mode=0o600)
            try:
                _TABLES.create_all(self._engine)
            finally:
                # An application that is never started, or cannot be, holds no connection.
                self._engine.dispose()
        except InputError:
            raise
        except (ArgumentError, NoSuchModuleError, ValueError):
            raise InputError(
                "the database is no SQLAlchemy URL. Write sqlite:///FILE.sqlite or "
                "postgresql+psycopg://USER@HOST/NAME."
            ) from None
        except ImportError as error:
            raise InputError(f"{shown}: needs the package {error.name}. Install it.") from None
        except (SQLAlchemyError, OSError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"{shown}: cannot be opened ({reason}).") from None

    def state(self, user: str) -> UserState | None:
        """Return what is stored of a user, or None."""
        own = (USER_STATES.c.model == self.model) & (USER_STATES.c.user == user)
        with self._engine.connect() as connection:
            stored = connection.execute(select(USER_STATES.c.state).where(own)).scalar()
        return None if stored is None else UserState.from_json(stored)

    def has(self, user: str, composition: str) -> bool:
        """Whether the composition was submitted already."""
        key = (SUBMISSIONS.c.user == user) & (SUBMISSIONS.c.composition == composition)
        with self._engine.connect() as connection:
            return connection.execute(select(SUBMISSIONS.c.learned).where(key)).first() is not None

    def record(
        self, user: str, composition: str, query: str, *, learned: bool, state: dict[str, Any]
    ) -> None:
        """Write a submission and the state of the user after it, both or neither."""
        own = (USER_STATES.c.model == self.model) & (USER_STATES.c.user == user)
        with self._engine.begin() as connection:
            connection.execute(
                insert(SUBMISSIONS).values(
                    user=user, composition=composition, query=query, learned=learned,
                    at=datetime.now(UTC).replace(tzinfo=None),
                )
            )  # fmt: skip
            if not connection.execute(update(USER_STATES).where(own).values(state=state)).rowcount:
                connection.execute(
                    insert(USER_STATES).values(model=self.model, user=user, state=state)
                )

    def forget(self, user: str) -> int:
        """Delete all that is stored of a user, of every model; return the number of rows."""
        with self._engine.begin() as connection:
            return sum(
                connection.execute(delete(table).where(table.c.user == user)).rowcount
                for table in (SUBMISSIONS, USER_STATES)
            )

    def check(self) -> None:
        """Raise SQLAlchemyError unless the database answers."""
        with self._engine.connect() as connection:
            connection.execute(text("SELECT 1"))

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()


def fingerprint(completer: Completer) -> str:
    """Name a fitted model by what gives its users' weights their meaning."""
    named = [completer.model, completer.relevance.name, completer.protocol]
    digest = hashlib.sha256(json.dumps(named).encode())
    for array in (completer.everyone, completer.design.deviations, completer.relevance.factors):
        digest.update(array.tobytes())
    return digest.hexdigest()


def _prepare_sqlite(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.close()
