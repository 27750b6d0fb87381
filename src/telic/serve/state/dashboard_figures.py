"""How the service does, from what it stored: for the dashboard, with a minimum of users."""

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Integer, Select, case, cast, func, select

MIN_USERS = 5
"""A query is shown once so many users have searched for it; one alone would be told on."""
MAX_DAYS = 366
MOST = 20
"""Queries in a list."""
LOOKED_AT = 1000
"""Queries of most users among which a list is sought that names none which is denied."""


def figures(
    connection: Connection,
    table: Any,
    *,
    tenant: str | None,
    now: datetime,
    days: int = 28,
    denied: Callable[[str], bool] | None = None,
) -> dict[str, Any]:
    """Return what submissions of the last days say.

    Parameters
    ----------
    connection : sqlalchemy.Connection
    table : sqlalchemy.Table
        Submissions.
    tenant : str, optional
        Whose; of all tenants, each apart, by default.
    now : datetime
        UTC, without a zone.
    days : int
    denied : callable, optional
        Says of a query that it is shown to nobody, be it stored.

    Returns
    -------
    dict
        ``tenants``: submissions, users, acceptance, mrr and keystrokes_saved (of those submissions
        that a list stood before; None without any); ``popular`` and ``no_hit``: queries, counted.
    """
    c = table.c
    recent = [c.at >= now - timedelta(days=days)]
    if tenant is not None:
        recent.append(c.tenant == tenant)
    listed = c.rank.is_not(None)
    length = func.length(c.query)
    saved = case((c.accepted & (length > c.typed), length - c.typed), else_=0)
    rows = connection.execute(
        select(
            c.tenant,
            func.count().label("submissions"),
            func.count(func.distinct(c.user)).label("users"),
            func.sum(cast(listed, Integer)).label("listed"),
            func.sum(case((c.accepted, 1), else_=0)).label("accepted"),
            func.sum(case((c.rank > 0, 1.0 / func.nullif(c.rank, 0)), else_=0.0)).label("ranks"),
            func.sum(case((listed, saved), else_=0)).label("saved"),
            func.sum(case((listed, length), else_=0)).label("characters"),
        )
        .where(*recent)
        .group_by(c.tenant)
        .order_by(c.tenant)
    )
    tenants = [
        {
            "tenant": row.tenant,
            "submissions": row.submissions,
            "users": row.users,
            "acceptance": _share(row.accepted, row.listed),
            "mrr": _share(row.ranks, row.listed),
            "keystrokes_saved": _share(row.saved, row.characters),
        }
        for row in rows
    ]

    def queries(*conditions: Any) -> list[dict[str, Any]]:
        users = func.count(func.distinct(c.user))
        asked: Select[Any] = (
            select(c.query, func.count().label("submissions"), users.label("users"))
            .where(*recent, *conditions)
            .group_by(c.query)
            .having(users >= MIN_USERS)
            .order_by(users.desc(), c.query)
        )
        rows = connection.execute(asked.limit(LOOKED_AT if denied else MOST)).all()
        kept = (row for row in rows if denied is None or not denied(row.query))
        return [dict(row._mapping) for row in islice(kept, MOST)]

    return {
        "days": days,
        "min_users": MIN_USERS,
        "tenants": tenants,
        "popular": queries(),
        "no_hit": queries(c.listed == 0),
    }


def _share(part: float | None, whole: float | None) -> float | None:
    return float(part or 0) / float(whole) if whole else None
