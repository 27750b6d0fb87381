"""The real query logs at hand, in the form of contract 2, and what each of them allows."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from telic.data.data_sets import data_folder
from telic.data.queries import QueryLog
from telic.data.tables import one_chunk
from telic.errors import InputError

MINUTE = 60 * 1_000_000
DAY = 24 * 60 * MINUTE
BING, UNIMOBILE = "bing_corona_2020_01_by_country", "unimobile_queries"
BING_GROUPS = ("popularity", "time", "personal", "match")
UNIMOBILE_GROUPS = ("popularity", "personal", "session", "match", "pairs")


def real_file(name: str, data: Path | None = None) -> Path:
    """Return where a real query log lies.

    Raises
    ------
    InputError
        If it is not there.
    """
    path = data_folder(data) / "qac" / f"{name}.parquet"
    if not path.is_file():
        raise InputError(
            f"{path} not found. Set TELIC_DATA to the folder that holds qac/*.parquet."
        )
    return path


def bing_by_country(file: Path) -> QueryLog:
    """Read the Bing Coronavirus Query Set: a row for each query, country and day.

    Countries stand for users, and a row for as many submissions as its popularity score, from 1 to
    100, which is relative to the country and day.
    """
    table = pq.read_table(file)
    at = one_chunk(table["Date"]).cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
    count = one_chunk(table["PopularityScore"]).to_numpy().astype(float)
    return _log(table["Query"], at, table["Country"], count)


def unimobile(file: Path, *, seed: int = 0) -> QueryLog:
    """Read UniMobile, which has no times: its workers come in random order, one after the other.

    A split in time then is one by workers. Of a worker's queries, in the order of the file, each
    comes a minute after the one before, so that they are one session.
    """
    table = pq.read_table(file).sort_by([("WorkerId", "ascending"), ("index", "ascending")])
    worker = one_chunk(table["WorkerId"]).to_numpy()
    first = np.flatnonzero(np.r_[True, np.diff(worker) != 0])
    place = np.random.default_rng(seed).permutation(len(first))
    size = np.diff(np.r_[first, len(worker)])
    at = np.repeat(DAY * place, size) + MINUTE * (np.arange(len(worker)) - np.repeat(first, size))
    return _log(table["Query"], at, table["WorkerId"].cast(pa.string()), np.ones(len(table)))


def _log(
    query: pa.ChunkedArray, at: np.ndarray, user: pa.ChunkedArray, count: np.ndarray
) -> QueryLog:
    queries, users = (one_chunk(column).dictionary_encode() for column in (query, user))
    return QueryLog(
        queries.dictionary.to_pylist(),
        queries.indices.to_numpy().astype(np.int32),
        at,
        users.dictionary.to_pylist(),
        users.indices.to_numpy().astype(np.int32),
        count,
    )
