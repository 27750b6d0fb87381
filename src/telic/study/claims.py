"""What a document says, what is found here, and the verdict: a rule decides it from numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isnan
from pathlib import Path
from typing import Any, Protocol

from telic.report import Table
from telic.report.table import shown

SIMULATED, REAL = "simulated", "real data"
"""What a claim is tried on."""


TOO_WIDE = "too few data: our interval holds no effect and the published size alike"


class Verdict(StrEnum):
    """What becomes of a claim."""

    HOLDS = "holds"
    DIRECTION = "holds in direction"
    NOT = "does not hold"
    UNTESTED = "cannot be tested"


class NotInRun(LookupError):
    """A run does not hold the rows that a claim is about: a quick run has fewer."""


@dataclass(frozen=True)
class Found:
    """A number and its interval; without one, the number stands for both ends.

    Parameters
    ----------
    value : float
    low, high : float, optional
        A 95 % interval.
    of : int, optional
        The number of cases, where `value` counts those in which a sentence is true.
    """

    value: float
    low: float | None = None
    high: float | None = None
    of: int | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """Both ends."""
        return (
            self.value if self.low is None else self.low,
            self.value if self.high is None else self.high,
        )


def cases(true: Sequence[bool]) -> Found:
    """Count the cases in which a sentence is true.

    Raises
    ------
    NotInRun
        If there is no case.
    """
    if not len(true):
        raise NotInRun("this run has no such case")
    return Found(sum(map(bool, true)), of=len(true))


class Rule(Protocol):
    """Gives the verdict; holds what is published."""

    def verdict(self, found: Found) -> Verdict:
        """Return what becomes of the claim."""

    def published_words(self) -> str:
        """Return what is published, as a table shows it."""

    def found_words(self, found: Found) -> str:
        """Return what is found, as a table shows it."""


class _Number:
    """A rule about one number."""

    form: str

    def found_words(self, found: Found) -> str:
        """Return what is found, as a table shows it, with its interval."""
        words = shown(found.value, self.form)
        if found.low is None and found.high is None:
            return words
        return f"{words} [{', '.join(shown(end, self.form) for end in found.interval)}]"


@dataclass(frozen=True)
class Effect(_Number):
    """A difference or a ratio: its side of "no effect" is the direction, its distance the size.

    It holds where our whole interval is on the published side and reaches the published size; in
    direction where it is on that side and falls short of the size. It does not hold where the
    interval reaches "no effect" and not the size, and cannot be tested where it reaches both.

    Examples
    --------
    >>> Effect(0.10, "100 +.1f").verdict(Found(0.04, 0.01, 0.07)).value
    'holds in direction'
    """

    published: float
    form: str = ""
    none: float = 0.0

    def verdict(self, found: Found) -> Verdict:
        """Return what becomes of the claim."""
        sign = 1 if self.published > self.none else -1
        near, far = sorted(sign * (end - self.none) for end in found.interval)
        reached = far >= sign * (self.published - self.none)
        if near <= 0:
            return Verdict.UNTESTED if reached else Verdict.NOT
        return Verdict.HOLDS if reached else Verdict.DIRECTION

    def published_words(self) -> str:
        """Return what is published, as a table shows it."""
        return shown(self.published, self.form)


@dataclass(frozen=True)
class Value(_Number):
    """A number: it holds where our interval meets the published number give or take `near`."""

    published: float
    near: float
    form: str = ""

    def verdict(self, found: Found) -> Verdict:
        """Return what becomes of the claim."""
        low, high = found.interval
        meets = low <= self.published + self.near and high >= self.published - self.near
        return Verdict.HOLDS if meets else Verdict.NOT

    def published_words(self) -> str:
        """Return what is published, as a table shows it."""
        unsigned = self.form.replace("+", "")
        return f"{shown(self.published, self.form)} ± {shown(self.near, unsigned)}"


@dataclass(frozen=True)
class Cases:
    """A sentence about several cases: the published number of those in which it is true.

    It holds where it is true here in at least the published share of the cases; in direction where
    it is true in more than half of them; else it does not hold.
    """

    published: int
    of: int

    def verdict(self, found: Found) -> Verdict:
        """Return what becomes of the claim."""
        if found.of is None:
            raise ValueError("Cases are counted by `cases`.")
        if found.value * self.of >= self.published * found.of:
            return Verdict.HOLDS
        return Verdict.DIRECTION if 2 * found.value > found.of else Verdict.NOT

    def published_words(self) -> str:
        """Return what is published, as a table shows it."""
        return f"{self.published} of {self.of}"

    def found_words(self, found: Found) -> str:
        """Return what is found, as a table shows it."""
        return f"{found.value:g} of {found.of}"


@dataclass(frozen=True)
class NotTestable:
    """What is published, and why nothing here can test it."""

    published: str
    why: str

    def published_words(self) -> str:
        """Return what is published."""
        return self.published


class Tables:
    """The numeric tables of a study's report, to look numbers up in.

    Parameters
    ----------
    tables : sequence of Table
    """

    def __init__(self, tables: Sequence[Table]) -> None:
        self._tables = tables

    def has(self, title: str) -> bool:
        """Say whether a table's title begins so."""
        return any(table.title.startswith(title) for table in self._tables)

    def rows(self, title: str, **equal: Any) -> list[dict[str, Any]]:
        """Return rows of the one table whose title begins so.

        Parameters
        ----------
        title : str
        **equal
            Values of columns; an underscore stands for a blank.

        Raises
        ------
        LookupError
            If there is no such table, more than one, or no such column.
        NotInRun
            If no row has these values.
        """
        named = [table for table in self._tables if table.title.startswith(title)]
        if len(named) != 1:
            raise LookupError(f"{len(named)} tables begin with {title!r}, expected one.")
        (table,) = named
        wanted = {column.replace("_", " "): value for column, value in equal.items()}
        for column in wanted:
            if column not in table.columns:
                raise LookupError(f"{title!r} has no column {column!r}, but {[*table.columns]}.")
        found = [
            row
            for row in table.records()
            if all(row[column] == value for column, value in wanted.items())
        ]
        if not found:
            said = ", ".join(f"{column} {value}" for column, value in wanted.items())
            raise NotInRun(f"this run has no row of {said or title}")
        return found

    def row(self, title: str, **equal: Any) -> dict[str, Any]:
        """Return the only such row; see `rows`."""
        found = self.rows(title, **equal)
        if len(found) != 1:
            raise LookupError(f"{title!r} has {len(found)} rows of {equal}, expected one.")
        return found[0]


@dataclass(frozen=True)
class Claim:
    """A sentence of a document, and how it is tried.

    Parameters
    ----------
    source : str
        A key of `telic.study.sources.SOURCES`.
    says : str
        In our own words.
    rule : Rule or NotTestable
        Holds the published number, and gives the verdict or says why there is none.
    ours : callable, optional
        Gets what is found from the `Tables` of the study; raises `NotInRun` where a run is too
        small for that. A claim that cannot be tested has none.
    on : str
        `SIMULATED` or `REAL`.
    needs : tuple of str
        Files in the data folder without which it cannot be tested.
    note : str
        What a reader must know beside the verdict.
    """

    source: str
    says: str
    rule: Rule | NotTestable
    ours: Callable[[Tables], Found] | None = None
    on: str = SIMULATED
    needs: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Judged:
    """A claim, what is found, the verdict, and why it could not be tested."""

    claim: Claim
    found: Found | None
    verdict: Verdict
    why: str = ""
    broken: bool = False
    """Whether it could not be tested though it should have been."""

    def found_words(self) -> str:
        """Return what is found, as a table shows it; nothing where nothing is."""
        if self.found is None or isinstance(self.claim.rule, NotTestable):
            return ""
        return self.claim.rule.found_words(self.found)

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON takes it, numbers in full."""
        rule = self.claim.rule
        return {
            "source": self.claim.source,
            "claim": self.claim.says,
            "on": self.claim.on,
            "rule": type(rule).__name__,
            "published": getattr(rule, "published", None),
            "published of": getattr(rule, "of", None),
            "near": getattr(rule, "near", None),
            "ours": self.found and self.found.value,
            "of": self.found and self.found.of,
            "low": self.found and self.found.low,
            "high": self.found and self.found.high,
            "verdict": self.verdict.value,
            "why": self.why or self.claim.note,
        }


def judge(
    claim: Claim, tables: Tables | None, data: Path, *, why: str = "", failed: bool = False
) -> Judged:
    """Return the verdict on a claim.

    Parameters
    ----------
    claim : Claim
    tables : Tables or None
        Of the study that the claim belongs to; None if it did not run.
    data : path
        The folder of real data.
    why, failed : str, bool
        Why the study gave no tables, and whether it should have.
    """
    if isinstance(claim.rule, NotTestable):
        return Judged(claim, None, Verdict.UNTESTED, claim.rule.why)
    for file in claim.needs:
        if not (data / file).exists():
            return Judged(claim, None, Verdict.UNTESTED, f"no data: {file}")
    if tables is None:
        return Judged(claim, None, Verdict.UNTESTED, why, failed)
    assert claim.ours is not None, claim.says
    try:
        found = claim.ours(tables)
    except NotInRun as error:
        return Judged(claim, None, Verdict.UNTESTED, str(error))
    except (LookupError, TypeError, ValueError) as error:
        return Judged(claim, None, Verdict.UNTESTED, f"failed: {error}", broken=True)
    # NaN is on neither side of anything, and a rule would take it for one of them.
    if any(each is None or isnan(each) for each in (found.value, *found.interval)):
        return Judged(claim, None, Verdict.UNTESTED, "this run has no number here")
    verdict = claim.rule.verdict(found)
    return Judged(claim, found, verdict, TOO_WIDE if verdict == Verdict.UNTESTED else "")


def by_row(
    published: Mapping[str, Sequence[float]], columns: Sequence[str]
) -> dict[tuple[str, str], float]:
    """Return rows of percentages as the cells of `Printed`."""
    return {
        (row, column): value / 100
        for row, values in published.items()
        for column, value in zip(columns, values, strict=True)
    }


@dataclass(frozen=True)
class Printed:
    """A published table, number by number beside ours.

    Parameters
    ----------
    sources : tuple of str
        Keys of `telic.study.sources.SOURCES`.
    title : str
        Says what the numbers are, and what ours are made with.
    first : str
        Name of the column of rows.
    form : str
        Format of the numbers.
    cells : mapping of (str, str) to float
        By row and column.
    ours : callable
        Gets the number of a row and column from the `Tables` of the study; None or `NotInRun` where
        there is none.
    """

    sources: tuple[str, ...]
    title: str
    first: str
    form: str
    cells: Mapping[tuple[str, str], float]
    ours: Callable[[Tables, str, str], float | None]

    def table(self, tables: Tables | None) -> Table:
        """Return the published numbers beside ours; a dash where we have none."""
        rows = list(dict.fromkeys(row for row, _ in self.cells))
        columns = list(dict.fromkeys(column for _, column in self.cells))

        def pair(row: str, column: str) -> list[float | None] | None:
            if (row, column) not in self.cells:
                return None
            return [self.cells[row, column], self._own(tables, row, column)]

        template = f"{{:{self.form}}} / {{:{self.form}}}"
        return Table(
            f"{self.title}; published / ours",
            {self.first: "", **dict.fromkeys(columns, template)},
            [[row, *(pair(row, column) for column in columns)] for row in rows],
        )

    def _own(self, tables: Tables | None, row: str, column: str) -> float | None:
        if tables is None:
            return None
        try:
            return self.ours(tables, row, column)
        except NotInRun:
            return None
