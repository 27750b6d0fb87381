"""AmazonQAC's Parquet files, read in pieces: submissions, and prefixes that were really typed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from telic.completion.engine.folding import fold
from telic.data import atomic_path
from telic.data.amazon_qac import texts_in_json
from telic.data.pieces import open_pieces
from telic.data.tables import one_chunk, times_of
from telic.errors import InputError

TRAIN = ("session_id", "prefixes", "final_search_term", "search_time")
TEST = ("session_id", "past_search_terms", "prefix", "prefix_typed_time", "final_search_term")
CODED = pa.dictionary(pa.int32(), pa.string())
"""Text that many rows share: 40 million rows would take gigabytes as it stands."""
SCHEMA = pa.schema(
    [
        ("session", CODED),
        ("term", CODED),
        ("at", pa.int64()),
        ("typed", pa.string()),
        ("tested", pa.bool_()),
    ]
)
"""A submission: its session, term and time, one prefix that was typed towards it, or none, and
whether it is one to test on."""
ONE = 1 << 32
"""Hashes of sessions are below this."""


@dataclass(frozen=True)
class Source:
    """The folder of the data set, and which of its sessions are read.

    Parameters
    ----------
    folder : path
        Holds ``train/*.parquet`` and ``test/*.parquet``.
    share : float in (0, 1]
        Part of the sessions of the training split, drawn by a hash of their ids. A share of 0.1
        are about 40 million submissions.
    seed : int
        Draws which of the typed prefixes is learned from.
    """

    folder: Path
    share: float = 0.02
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise InputError(f"share is {self.share}, expected a number in (0, 1].")
        for split in ("train", "test"):
            self.files(split)

    def files(self, split: str) -> list[Path]:
        """Return the files of a split, in order."""
        found = sorted((Path(self.folder) / split).glob("*.parquet"))
        if not found:
            raise InputError(
                f"{Path(self.folder) / split}: holds no .parquet file. Name the folder of "
                "AmazonQAC that holds train/ and test/ with --data."
            )
        return found

    def read(self, work: Path | None, progress: Callable[[str], None]) -> pa.Table:
        """Return all submissions; files of the training split that `work` keeps are not read again.

        Raises
        ------
        InputError
            If a column is missing, or a time or a list of past searches cannot be read.
        """
        tables = []
        files = self.files("train")
        for number, file in enumerate(files, 1):
            progress(f"train, file {number} of {len(files)}")
            tables.append(self._kept(file, work))
        for file in self.files("test"):
            progress(f"test, {file.name}")
            tables += list(_test_rows(file))
        return pa.concat_tables(tables)

    def _kept(self, file: Path, work: Path | None) -> pa.Table:
        if work is None:
            return pa.concat_tables([SCHEMA.empty_table(), *self._train_rows(file)])
        stat = file.stat()
        name = f"{file.stem}-{self.share}-{self.seed}-{stat.st_size}-{stat.st_mtime_ns}.parquet"
        kept = work / name
        if not kept.exists():
            table = pa.concat_tables([SCHEMA.empty_table(), *self._train_rows(file)])
            with atomic_path(kept) as temporary:
                pq.write_table(table, temporary)
        return pq.read_table(kept).cast(SCHEMA)  # an earlier telic kept text as it stands

    def _train_rows(self, file: Path) -> Iterator[pa.Table]:
        rng = np.random.default_rng([self.seed, *file.name.encode()])
        for piece in _pieces(file, TRAIN):
            session = one_chunk(piece["session_id"]).cast(pa.string())
            term = one_chunk(piece["final_search_term"])
            keep = pc.and_(self._drawn(session), term.is_valid())
            chosen = piece.filter(keep)
            terms = one_chunk(chosen["final_search_term"])
            prefixes = _lists_of_texts(file, chosen["prefixes"])
            typed = [_one_of(p, t, rng) for p, t in zip(prefixes, terms.to_pylist(), strict=True)]
            at = _times(file, chosen["search_time"], "search_time")
            yield _table(session.filter(keep), terms, at, typed, tested=False)

    def _drawn(self, session: pa.Array) -> pa.Array:
        coded = session.dictionary_encode()
        hashes = np.array([_hash(text or "") for text in coded.dictionary.to_pylist()], np.int64)
        drawn = np.append(hashes < self.share * ONE, False)
        return pa.array(drawn[coded.indices.fill_null(len(hashes)).to_numpy(zero_copy_only=False)])


def _test_rows(file: Path) -> Iterator[pa.Table]:
    """Past searches, once each, and what is to be completed."""
    read = 0
    for piece in _pieces(file, TEST):
        _check_test_rows(file, piece, read)
        read += len(piece)
        session = one_chunk(piece["session_id"]).cast(pa.string())
        terms = one_chunk(piece["final_search_term"])
        at = _times(file, piece["prefix_typed_time"], "prefix_typed_time")
        yield _table(session, terms, at, piece["prefix"].to_pylist(), tested=True)
        past = {
            (owner, term, time)
            for owner, found in zip(
                session.to_pylist(), piece["past_search_terms"].to_pylist(), strict=True
            )
            for term, time in found or ()
            if term
        }
        if past:
            owners, texts, times = zip(*sorted(past), strict=True)
            begun = _times(file, pa.chunked_array([pa.array(times)]), "past_search_terms")
            none = [None] * len(past)
            yield _table(pa.array(owners), pa.array(texts), begun, none, tested=False)


def _check_test_rows(file: Path, piece: pa.Table, before: int) -> None:
    """Raise InputError, naming the row, where something is missing or is no past search."""
    for name in ("session_id", "final_search_term", "prefix_typed_time"):
        missing = one_chunk(piece[name]).is_null().to_numpy(zero_copy_only=False)
        if missing.any():
            raise InputError(
                f"{file}: row {before + int(missing.argmax()) + 1}: column {name!r} is empty. "
                "Correct or drop the row."
            )
    for row, found in enumerate(piece["past_search_terms"].to_pylist(), before + 1):
        pairs = [] if found is None else found
        if isinstance(pairs, str) or any(
            isinstance(pair, str) or len(pair or ()) != 2 or (pair[0] and pair[1] is None)
            for pair in pairs
        ):
            raise InputError(
                f"{file}: row {row}: column 'past_search_terms' holds {str(found)[:60]!r}, "
                "expected pairs of a term and its time. Correct or drop the row."
            )


def _lists_of_texts(file: Path, column: pa.ChunkedArray) -> list[list[str | None] | None]:
    lists = column.to_pylist()
    if not any(isinstance(one, str) for one in lists):
        return lists
    return [texts_in_json(one, str(file)) for one in lists]


def _pieces(file: Path, columns: tuple[str, ...]) -> Iterator[pa.Table]:
    pieces = open_pieces(file)
    for name in columns:
        if name not in pieces.columns:
            raise InputError(
                f"{file}: has no column {name!r}, expected AmazonQAC's {', '.join(columns)}."
            )
    with pieces.unchanged():
        yield from pieces.read(columns)


def _times(file: Path, column: pa.ChunkedArray, name: str) -> np.ndarray:
    at = one_chunk(column)
    try:
        if at.null_count:
            row = int(at.is_null().to_numpy(zero_copy_only=False).argmax())
            raise InputError(f"{file}: column {name!r}: the {row + 1}. value read is no time.")
        at = at if pa.types.is_timestamp(at.type) else times_of(at)
        return at.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        said = str(error).splitlines()[0][:100]
        raise InputError(f"{file}: column {name!r}: {said}. Expected times.") from None


def _table(
    session: pa.Array,
    term: pa.Array,
    at: np.ndarray,
    typed: Sequence[str | None],
    *,
    tested: bool,
) -> pa.Table:
    coded = session.cast(CODED), term.cast(pa.string()).cast(CODED)
    columns = [*coded, pa.array(at), pa.array(typed, pa.string())]
    return pa.table([*columns, pa.array(np.full(len(at), tested))], schema=SCHEMA)


def _one_of(prefixes: list[str | None] | None, term: str, rng: np.random.Generator) -> str | None:
    """Draw one of the prefixes that were typed towards a term; it must begin with it."""
    whole = fold(term)
    folded = ((prefix, fold(prefix)) for prefix in prefixes or () if prefix)
    fits = [prefix for prefix, form in folded if form and whole.startswith(form)]
    return fits[rng.integers(len(fits))] if fits else None


def _hash(text: str) -> int:
    code = 2166136261
    for byte in text.encode():  # FNV-1a, 32 bits
        code = (code ^ byte) * 16777619 % ONE
    return code * 2654435761 % ONE  # spread over the whole range
