"""Lists of phrases in the forms that people have, read in pieces."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from telic.data.bad_rows import OnBadRow
from telic.data.phrase_rows import checked_rows, refuse_empty
from telic.data.pieces import Pieces
from telic.data.recognised_columns import Shape
from telic.data.tables import one_chunk

_FILE = 40
"""Bits of a place that are the row's number."""


@dataclass(frozen=True)
class PhraseList:
    """Phrases to suggest, row by row as the file has them."""

    source: str
    phrases: pa.Array
    """string (n,)."""
    weights: np.ndarray | None
    """float64 (n,), finite and at least 0; None where the file says nothing."""
    ids: pa.Array | None
    """string (n,): one's own id of each, null where there is none."""
    payloads: pa.Array | None
    """string (n,): JSON, null where there is none."""
    contexts: dict[str, pa.Array]
    """Context → string (n,): what each phrase is limited to; null fits everywhere."""
    rows: np.ndarray
    """int64 (n,): row of the file that each is, the first being 1."""
    skipped: dict[str, int] = field(default_factory=dict)
    """Rows left out by ``on_bad_row="skip"``: reason → count."""
    files: tuple[str, ...] = ()
    """Of joined lists: the file of each."""
    file: np.ndarray | None = None
    """Of joined lists: int (n,), which of these files each row is of."""

    def __len__(self) -> int:
        return len(self.phrases)

    def where(self, row: int) -> str:
        """Say which file and row of it one of these rows is."""
        return place_said(self.places[row], self.sources)

    @property
    def sources(self) -> Sequence[str]:
        """The files that it was read from."""
        return self.files or (self.source,)

    @property
    def places(self) -> np.ndarray:
        """int64 (n,): file and row of each row in one number, in the order of the files."""
        return self.rows if self.file is None else (self.file.astype(np.int64) << _FILE) + self.rows


def place_said(place: int, files: Sequence[str]) -> str:
    """Say which file and row one of a list's places is."""
    return f"{files[place >> _FILE]}: row {place & ((1 << _FILE) - 1)}"


def read_list(pieces: Pieces, shape: Shape, *, on_bad_row: OnBadRow = "raise") -> PhraseList:
    """Read a list of phrases.

    Parameters
    ----------
    pieces : Pieces
    shape : Shape
        See `telic.data.recognised_columns.shape_of`.
    on_bad_row : {"raise", "skip"}
        A row that cannot be used raises, or is left out and counted.

    Raises
    ------
    InputError
        Naming file, row (the first is 1) and column.
    """
    skipped: dict[str, int] = {}
    numbers, parts = zip(*list_rows(pieces, shape, on_bad_row, skipped), strict=True)
    whole = pa.concat_tables(parts)
    columns = {name: one_chunk(whole[name]) for name in whole.column_names}
    weights = columns.get("weight")
    return PhraseList(
        str(pieces.path),
        columns["phrase"],
        None if weights is None else weights.to_numpy(zero_copy_only=False),
        columns.get("id"),
        columns.get("payload"),
        {name: columns[name] for name in shape.contexts},
        np.concatenate(numbers),
        skipped,
    )


def list_rows(
    pieces: Pieces, shape: Shape, on_bad_row: OnBadRow, skipped: dict[str, int]
) -> Iterator[tuple[np.ndarray, pa.Table]]:
    """Yield what `checked_rows` does; InputError if that is nothing."""
    count = 0
    for rows, part in checked_rows(pieces, shape, on_bad_row, skipped):
        yield rows, part
        count += len(part)
    refuse_empty(pieces.path, count, skipped, "phrase")


def merged(lists: list[PhraseList]) -> PhraseList:
    """Join lists; what one of them has and another has not is null there."""
    if len(lists) == 1:
        return lists[0]
    names = list(dict.fromkeys(name for one in lists for name in one.contexts))

    def joined(columns: list[pa.Array | None]) -> pa.Array | None:
        if all(column is None for column in columns):
            return None
        return pa.concat_arrays(
            [
                pa.nulls(len(one), pa.string()) if column is None else column
                for one, column in zip(lists, columns, strict=True)
            ]
        )

    weights = [np.ones(len(one)) if one.weights is None else one.weights for one in lists]
    return PhraseList(
        source=", ".join(one.source for one in lists),
        phrases=pa.concat_arrays([one.phrases for one in lists]),
        weights=None if all(one.weights is None for one in lists) else np.concatenate(weights),
        ids=joined([one.ids for one in lists]),
        payloads=joined([one.payloads for one in lists]),
        contexts={name: joined([one.contexts.get(name) for one in lists]) for name in names},
        rows=np.concatenate([one.rows for one in lists]),
        skipped=dict(sum((Counter(one.skipped) for one in lists), Counter())),
        files=tuple(one.source for one in lists),
        file=np.repeat(np.arange(len(lists)), [len(one) for one in lists]),
    )
