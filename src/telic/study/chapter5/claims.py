"""What chapter 5 says, and how it is tried on its own three sets."""

from collections.abc import Callable, Sequence
from functools import partial
from math import inf

from telic.study.chapter5.experiments import LINEARISED, SETS
from telic.study.chapter5.published import PUBLISHED_SIZES
from telic.study.claims import REAL, Cases, Claim, Found, Printed, Tables, cases

NEEDS = tuple(f"ml/{file}.npz" for file, _ in SETS.values())
SECONDS, PASSES = 0, 1
"""Places in a cell of the table."""
LEVEL = "0.001"
RIVALS = ("STOC", "SA", "SDCA")
"""The published comparison, beside SVR-ADMM-D."""


def _cells(tables: Tables, name: str, place: int) -> dict[str, float | None]:
    """Return when each of the dissertation's methods reaches the gap; None where it never does."""
    dissertation = {method.name for method in LINEARISED}
    return {
        row["method"]: row[LEVEL] and row[LEVEL][place]
        for row in tables.rows(f"{name}: seconds (and passes)")
        if row["method"] in dissertation
    }


def _before(one: float | None, other: float | None) -> bool:
    return one is not None and (other is None or one <= other)


def _ahead(tables: Tables, place: int, sooner: str, later: Sequence[str]) -> Found:
    """Count the sets on which one is ahead of all others; where none gets there nobody is."""
    found = [_cells(tables, name, place) for name in SETS]
    reached = [one for one in found if any(one[name] is not None for name in (sooner, *later))]
    return cases([all(_before(one[sooner], one[rival]) for rival in later) for one in reached])


def _agree(tables: Tables) -> Found:
    """Say on which sets the gap and Q put the methods in the same order."""
    compared = {"STOC", "SA", "SVR-D"}

    def order(name: str, measure: str) -> list[str]:
        rows = [row for row in tables.rows(f"{name}: passes after") if row["method"] in compared]
        rows.sort(key=lambda row: inf if row[measure] is None else row[measure])
        return [row["method"] for row in rows]

    return cases([order(name, "gap") == order(name, "Q") for name in SETS])


def _sizes(tables: Tables) -> Found:
    rows = [tables.row("Table 5.1", set=name) for name in SETS]
    true = [(row["rows"], row["features"]) == PUBLISHED_SIZES[row["set"]] for row in rows]
    return cases(true)


def _claim(source: str, says: str, ours: Callable[[Tables], Found], note: str = "") -> Claim:
    return Claim(source, says, Cases(3, 3), ours, on=REAL, needs=NEEDS, note=note)


_PASSES = "a pass is n component gradients, so each row that SVR-ADMM-D takes counts twice"
_SINGLE = "SDCA-ADMM takes single rows, and each pays for a sweep over the graph"
CLAIMS = (
    _claim("Table 5.1", "rows and features of the three sets", _sizes),
    _claim(
        "Figure 5.1",
        "SVR-ADMM-D is first to a relative gap of 1e-3, by passes",
        partial(_ahead, place=PASSES, sooner="SVR-D", later=RIVALS),
        _PASSES,
    ),
    _claim(
        "Figure 5.1",
        "SVR-ADMM-D is first to a relative gap of 1e-3, by time",
        partial(_ahead, place=SECONDS, sooner="SVR-D", later=RIVALS),
    ),
    _claim(
        "Figure 5.1",
        "SDCA-ADMM is ahead of SA-ADMM by passes",
        partial(_ahead, place=PASSES, sooner="SDCA", later=("SA",)),
        _SINGLE,
    ),
    _claim(
        "Figure 5.1",
        "SDCA-ADMM is behind SA-ADMM by time",
        partial(_ahead, place=SECONDS, sooner="SA", later=("SDCA",)),
        _SINGLE,
    ),
    _claim(
        "Figure 5.1",
        "SVR-ADMM-D is ahead of STOC-ADMM by passes",
        partial(_ahead, place=PASSES, sooner="SVR-D", later=("STOC",)),
    ),
    _claim(
        "Figure 5.1",
        "the gap and Q put STOC-, SA- and SVR-ADMM-D in the same order, by passes",
        _agree,
        "by the passes after which each stays within 1e-3",
    ),
)


def _size(tables: Tables, name: str, column: str) -> float | None:
    return tables.row("Table 5.1", set=name)[column]


PRINTED = (
    Printed(
        ("Table 5.1",),
        "Table 5.1: sizes",
        "set",
        ",",
        {
            (name, column): size
            for name, sizes in PUBLISHED_SIZES.items()
            for column, size in zip(("rows", "features"), sizes, strict=True)
        },
        _size,
    ),
)
