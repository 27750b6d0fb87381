"""What a file of phrases or queries is, told by its columns: a list, a query log, compositions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Literal

from telic.data.contracts import COMPOSITIONS
from telic.data.pieces import Pieces
from telic.errors import InputError

Kind = Literal["list", "queries", "compositions"]

USUAL = {
    "phrase": (
        "phrase",
        "query",
        "title",
        "name",
        "text",
        "term",
        "suggestion",
        "keyword",
        "search_term",
        "line",
    ),
    "weight": ("weight", "count", "popularity", "score", "frequency", "freq", "views", "clicks"),
    "at": ("at", "time", "timestamp", "date", "query_time", "search_time"),
    "user": ("user", "user_id", "client_id", "session", "session_id"),
    "id": ("id", "item_id", "product_id", "object_id", "sku"),
    "payload": ("payload",),
    "url": ("url", "link"),
    "language": ("language", "lang", "locale"),
    "tenant": ("tenant", "tenant_id", "site", "shop"),
    "category": ("category", "department"),
    "network": ("network",),
    "past": (),
}
"""What a column may be, and the names by which it is known; case does not count. ``past`` holds
earlier submissions of the same user: AmazonQAC's; ``network`` is where the user was: an address's
first part, or a digest of it."""
CONTEXTS = ("language", "tenant", "category")
"""Roles by which suggestions can be filtered. Any other name in a `Shape` is a context too."""
RESERVED = ("q", "t", "composition", "explain", "consent", "boost", "installed", "opened")
"""Names that requests to the service use for something else."""
LEAST_LETTERS = 5
"""Of a name that may misspell a role: shorter ones are like each other by chance."""
_NOT_OF = {
    "list": {"user", "network", "past"},
    "queries": {"id", "payload", "url", "language", "category"},
}
"""Roles that a kind of file has no use for."""
_KNOWN: tuple[tuple[str, Kind, tuple[str, ...], dict[str, str]], ...] = (
    ("composition log (contract 1)", "compositions", ("composition", "query", "keystrokes"), {}),
    (
        "AmazonQAC",
        "queries",
        ("session_id", "final_search_term", "search_time"),
        {
            "phrase": "final_search_term",
            "at": "search_time",
            "user": "session_id",
            "past": "past_search_terms",
        },
    ),
    (
        "AOL query log",
        "queries",
        ("anonid", "query", "querytime"),
        {"phrase": "query", "at": "querytime", "user": "anonid"},
    ),
    ("ORCAS click log", "list", ("qid", "query", "did", "url"), {"phrase": "query"}),
    (
        "UBI queries",
        "queries",
        ("query_id", "user_query", "timestamp"),
        {"phrase": "user_query", "at": "timestamp", "user": "client_id"},
    ),
    (
        "query log (contract 2)",
        "queries",
        ("query", "at"),
        {
            "phrase": "query",
            "at": "at",
            "user": "user",
            "weight": "count",
            "tenant": "tenant",
            "network": "network",
        },
    ),
)
"""Published forms: what they are called, their kind, the columns that tell, the roles they have.
Where the column of a role is not there, one with a usual name has it."""


@dataclass(frozen=True)
class Shape:
    """What a file is, and which column plays which role."""

    name: str
    kind: Kind
    roles: dict[str, str]
    """Role (a key of `USUAL`, or a context of one's own) → column."""
    unused: tuple[str, ...] = ()
    """The other columns, which are not read."""

    @property
    def contexts(self) -> list[str]:
        """Roles that suggestions can be filtered by."""
        return [role for role in self.roles if role in CONTEXTS or role not in USUAL]


def shape_of(pieces: Pieces, named: Mapping[str, str] | None = None) -> Shape:
    """Tell what a file is.

    Parameters
    ----------
    pieces : Pieces
    named : mapping of str to str, optional
        Role → column, where the usual names do not say it or say it twice. A role that is none of
        `USUAL` is a context to filter by.

    Raises
    ------
    InputError
        If no column can be the phrases, if two could play one role, if a named one is missing, or
        if a context has the name of a role but for a letter.

    Examples
    --------
    >>> from pathlib import Path
    >>> shape_of(Pieces(Path("a.csv"), ["Title", "views"], lambda columns: iter(()))).roles
    {'phrase': 'Title', 'weight': 'views'}
    """
    named = dict(named or {})
    names = pieces.names
    for role, column in named.items():
        if role in RESERVED:
            raise InputError(
                f"--column {role}={column}: {role!r} is what a request says of a keystroke, not a "
                "context. Give the context another name."
            )
        if role not in (*USUAL, column) and (meant := _role_meant(role)):
            raise InputError(
                f"--column {role}={column}: {role!r} would be a context to filter by. Write "
                f"--column {meant}={column}, or give the context another name."
            )
        if column not in names:
            raise InputError(
                f"{pieces.path}: has no column {column!r} for --column {role}={column}; found "
                f"{names}."
            )
    lower: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        lower.setdefault(name.lower(), []).append(name)
    for called, kind, tell, roles in _KNOWN:
        if all(column in lower for column in tell):
            found, taken = {}, _taken(named, kind)
            for role, column in roles.items():
                # A user's column that is called otherwise says who searched all the same.
                known = [column] if column in lower else USUAL[role]
                every = [name for each in known for name in lower.get(each, ())]
                fits = [name for name in every if name not in taken]
                if fits and role not in named:
                    found[role] = _only(pieces, role, fits)
                elif every and role not in named:
                    _refuse_taken(pieces, called, role, every, named)
            return _shape(called, kind, found | named, names)
    return _by_usual_names(pieces, names, named)


def _taken(named: Mapping[str, str], kind: Kind) -> set[str]:
    """Return the columns that play a named role in a file of a kind.

    What a query log has no use for, such as a context, must not take its users' column away.
    """
    if kind != "queries":
        return set(named.values())
    used = USUAL.keys() - _NOT_OF["queries"]
    return {column for role, column in named.items() if role in used}


def _refuse_taken(
    pieces: Pieces, called: str, role: str, columns: Sequence[str], named: Mapping[str, str]
) -> None:
    """Raise InputError if another role that is named takes the column that a log needs.

    Without its users' column, what one person searched for would be shown to everybody.
    """
    if role in ("phrase", "at", "user"):
        other = next(one for one, name in named.items() if name in columns)
        raise InputError(
            f"{pieces.path}: is of the kind {called}, whose {role} is {columns[0]!r}: "
            f"--column {other}={columns[0]} takes it away. Name another column for the "
            f"{other}, or for the {role} too: --column {role}=NAME."
        )


def _role_meant(name: str) -> str | None:
    """Return the role that a name misspells, or whose column is often called so."""
    for role, usual in USUAL.items():
        if role not in CONTEXTS and name.lower() in usual:
            return role
    near = get_close_matches(name.lower(), USUAL, n=1, cutoff=0.8)
    return near[0] if near and len(name) >= LEAST_LETTERS else None


def refuse_late(pieces: Pieces, shape: Shape) -> None:
    """Raise InputError if a name that only later rows have would play a role as a column."""
    for name, row in pieces.late.items():
        grown = replace(pieces, columns=[*pieces.columns, name])
        if name in shape_of(grown, shape.roles).roles.values():
            raise InputError(
                f"{pieces.path}: row {row}: has {name!r}, which none of the first 1,001 rows has, "
                "so that it is not read. Write it into the first row too, if only as null."
            )


def _only(pieces: Pieces, role: str, fits: Sequence[str]) -> str:
    """Return the one column that fits a role."""
    if len(fits) > 1:
        either = ", ".join(repr(name) for name in fits)
        raise InputError(
            f"{pieces.path}: columns {either} could each be the {role}. Say which with "
            f"--column {role}={fits[0]}."
        )
    return fits[0]


def _shape(called: str, kind: Kind, roles: dict[str, str], names: Sequence[str]) -> Shape:
    """Keep the roles that such a file has a use for, and say which columns are left."""
    if kind == "compositions":
        return Shape(called, kind, roles, tuple(n for n in names if n not in COMPOSITIONS.names))
    of_lists = {role for role in roles if role not in USUAL} if kind == "queries" else set()
    roles = {role: roles[role] for role in roles if role not in _NOT_OF[kind] | of_lists}
    return Shape(called, kind, roles, tuple(n for n in names if n not in roles.values()))


def _by_usual_names(pieces: Pieces, names: Sequence[str], named: dict[str, str]) -> Shape:
    roles = dict(named)
    times = [n for n in names if n.lower() in USUAL["at"] and n not in named.values()]
    kind: Kind = "queries" if times or "at" in named else "list"
    taken = _taken(named, kind)
    for role, usual in USUAL.items():
        every = [n for n in dict.fromkeys(names) if n.lower() in usual]
        fits = [n for n in every if n not in taken]
        if role not in roles and fits:
            roles[role] = _only(pieces, role, fits)
        elif role == "user" and role not in roles and every and kind != "list":
            _refuse_taken(pieces, "query log", role, every, named)
    if "phrase" not in roles:
        alone = " A file without a line of column names is read as .txt." if len(names) == 1 else ""
        raise InputError(
            f"{pieces.path}: no column is named as phrases usually are "
            f"({', '.join(USUAL['phrase'][:-1])}); found {list(names)}. Say which one it is "
            f"with --column phrase=NAME.{alone}"
        )
    called = "query log" if kind == "queries" else "list of phrases"
    ordered = {role: roles[role] for role in [*USUAL, *roles] if role in roles}
    return _shape(called, kind, ordered, names)
