"""The most rows that the store keeps of each kind, and which of them go first."""

from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, delete, select, tuple_

from telic.serve.operation.settings import Settings

PART = 1_000
"""Rows that are deleted in one transaction: submissions wait for no more."""


class Bounds(NamedTuple):
    """The most rows of each kind; 0 for any number."""

    submissions: int = 0
    user_states: int = 0
    changes: int = 0

    @classmethod
    def of(cls, settings: Settings) -> "Bounds":
        """Return what the settings say."""
        return cls(settings.max_submissions, settings.max_states, settings.max_batches)


def oldest_kept(table: Any, most: int) -> Select[Any]:
    """Return what asks when the oldest row was written that stays; none if there are fewer."""
    return select(table.c.at).order_by(table.c.at.desc()).offset(most - 1).limit(1)


def remove_part(connection: Connection, table: Any, before: Any) -> int:
    """Delete some rows that were written before a moment; return how many."""
    key: ColumnElement[Any] = tuple_(*table.primary_key.columns)
    oldest = select(*table.primary_key.columns).where(table.c.at < before).limit(PART)
    # The moment is asked for again: others may have written one of them in the meantime.
    old = delete(table).where(key.in_(oldest), table.c.at < before)
    return connection.execute(old).rowcount
