"""Claims on tables of AUC: near, above, reachable."""

from functools import partial

from telic.study.auc_papers.side_by_side import PublishedTable
from telic.study.claims import REAL, Cases, Claim, Found, NotInRun, Printed, Tables, Value, cases

_claim = partial(Claim, on=REAL, needs=("ml",))


def _ours(tables: Tables, table: PublishedTable) -> dict[tuple[str, str], float]:
    rows = tables.rows(f"{table.title}: test AUC")
    return {(row["set"], row["method"]): row["ours"] for row in rows if row["ours"] is not None}


def _wins(found: dict[tuple[str, str], float], better: str, worse: str) -> list[bool]:
    sets = [name for name, method in found if method == better and (name, worse) in found]
    return [found[name, better] > found[name, worse] for name in sets]


def _cells(table: PublishedTable) -> dict[tuple[str, str], float]:
    return {(cell.data, cell.method): cell.mean for cell in table.cells}


def _found_wins(tables: Tables, table: PublishedTable, better: str, worse: str) -> Found:
    return cases(_wins(_ours(tables, table), better, worse))


def above(source: str, table: PublishedTable, better: str, worse: str) -> Claim:
    """Claim that a method is above another one on as many sets as published."""
    published = _wins(_cells(table), better, worse)
    return _claim(
        source,
        f"{better} has a higher AUC than {worse}: sets",
        Cases(sum(published), len(published)),
        partial(_found_wins, table=table, better=better, worse=worse),
    )


def _found_near(tables: Tables, table: PublishedTable) -> Found:
    ours = _ours(tables, table)
    pairs = [(ours.get((cell.data, cell.method)), cell) for cell in table.cells]
    return cases([abs(own - cell.mean) <= 2 * cell.sd for own, cell in pairs if own is not None])


def near(source: str, table: PublishedTable) -> Claim:
    """Claim that the published means come out again within two of their standard deviations."""
    return _claim(
        source,
        "each mean AUC within two published standard deviations: cells",
        Cases(len(table.cells), len(table.cells)),
        partial(_found_near, table=table),
        note="cells whose sets are at hand",
    )


def _found_auc(tables: Tables, table: PublishedTable, data: str, method: str) -> Found:
    ours = _ours(tables, table)
    if (data, method) not in ours:
        raise NotInRun(f"this run has no {method} on {data}")
    return Found(ours[data, method])


def auc(source: str, table: PublishedTable, data: str, method: str) -> Claim:
    """Claim one mean AUC within two of its standard deviations."""
    (cell,) = (one for one in table.cells if (one.data, one.method) == (data, method))
    return Claim(
        source,
        f"AUC of {method} on {data}",
        Value(cell.mean, 2 * cell.sd, ".4f"),
        partial(_found_auc, table=table, data=data, method=method),
        on=REAL,
        needs=(f"ml/{data}.npz",),
        note="above every linear optimum tried: see docs/measured/auc-tables.md",
    )


def _found_optima(tables: Tables, table: PublishedTable) -> Found:
    rows = tables.rows(f"{table.title}: test AUC")
    limits = {row["set"]: row["best linear"] for row in rows if row["best linear"] is not None}
    cells = [cell for cell in table.cells if cell.data in limits]
    return cases([cell.mean <= limits[cell.data] + 2 * cell.sd for cell in cells])


def reachable(source: str, table: PublishedTable) -> Claim:
    """Claim that a linear method can have the published means at all."""
    return _claim(
        source,
        "no mean is above the best linear AUC that we find, by two standard deviations: cells",
        Cases(len(table.cells), len(table.cells)),
        partial(_found_optima, table=table),
        note="the exact optimum, the pairwise hinge and logistic regression, under every label "
        "rule and scaling tried",
    )


def _own(tables: Tables, data: str, method: str, table: PublishedTable) -> float | None:
    return _ours(tables, table).get((data, method))


def printed(source: str, table: PublishedTable) -> Printed:
    """Return a published table beside ours."""
    title = f"{source}: test AUC, means over splits"
    return Printed((source,), title, "set", ".4f", _cells(table), partial(_own, table=table))
