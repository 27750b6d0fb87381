"""From a table (CSV, Parquet, libsvm) to numbers: columns checked, categories one-hot encoded."""

import re
import warnings
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from telic.auc.drawn_rows import Matrix
from telic.data.csv_files import (
    PARTED,
    UNPARTED,
    csv_table,
    ending_of,
    opened,
    parted_by_points,
    quoted_cells,
    separator_of,
    unreadable,
    written_cells,
)
from telic.data.tables import is_number, refuse_repeated
from telic.errors import InputError

MOST_CATEGORIES = 1000
LAST_COLUMN = 2**31 - 1
"""Of libsvm, as its reader holds them."""
DENSE_COLUMNS = 500
"""Up to here one-hot columns are kept dense, where the exact solver is fastest."""
ODD_SHARE = 0.1
"""A text column with no more than this share of its values unreadable as numbers is a mistake."""
OWN_VALUES = 20
"""From so many rows on, a text column with another value in nearly each is of names or ids."""
_MISSING = {"?", "-", "--", "–", "—", ".", "*"}
"""What people write where a number is missing, beside an empty cell and NA."""
_MARKED = re.compile(r"\s*[-+]?[$€£]?\s?\d+(,\d+)*(\.\d+)?\s?[%$€£]?\s*")
"""A number as people write it, such as 1,234 or 5 %."""
_MONTH, _DAY = r"(?:0?[1-9]|1[0-2])", r"(?:0?[1-9]|[12]\d|3[01])"
_DATE = re.compile(
    rf"\s*(\d{{4}}([-/.]){_MONTH}\2{_DAY}|{_DAY}([-/]){_DAY}\3(\d\d|\d{{4}})|{_DAY}\.{_DAY}\.\d{{4}})"
    r"([T\s]\d.*)?"
)
"""A date as people write it, such as 31/12/25 or 31.12.2025 10:00."""


def read_table(
    path: str | Path, *, texts: Collection[str] = ()
) -> pa.Table | tuple[sparse.csr_matrix, np.ndarray]:
    """Read a file by its ending: .csv, .tsv, .parquet, or libsvm (.libsvm, .svm, .txt).

    All but Parquet may be compressed (.gz). Columns of libsvm are counted from 1, as its own tools
    do.

    Parameters
    ----------
    path : path
    texts : collection of str
        Columns of categories: their cells stay as they are written in CSV, "007" or "true", even
        if this file holds nothing else.

    Returns
    -------
    pyarrow.Table, or (csr_matrix, labels) for libsvm
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(
            f"{path}: {'is a folder, expected a file' if path.is_dir() else 'not found'}."
        )
    ending = ending_of(path)
    if ending in (".libsvm", ".svm", ".txt"):
        return _read_libsvm(path)
    if ending not in (".parquet", ".csv", ".tsv"):
        raise InputError(
            f"{path}: ending {ending!r} is not known, expected .csv, .tsv, .parquet or .libsvm."
        )
    if ending == ".parquet":
        try:
            table = parquet.ParquetFile(path).read()  # names may repeat where nobody needs them
        except (pa.ArrowInvalid, ValueError, OSError) as error:
            raise InputError(f"{path}: cannot be read ({str(error).splitlines()[0]}).") from None
        for place, field in enumerate(table.schema):  # texts, as pandas and Polars write them
            if pa.types.is_dictionary(field.type):
                values = table.column(place).cast(field.type.value_type)
                table = table.set_column(place, field.name, values)
            elif pa.types.is_string_view(field.type):
                table = table.set_column(place, field.name, table.column(place).cast(pa.string()))
    else:
        delimiter = separator_of(path)
        table = csv_table(
            path,
            parse_options=quoted_cells(delimiter),
            convert_options=csv.ConvertOptions(column_types=dict.fromkeys(texts, pa.string())),
        )
        table = _with_decimal_points(table, texts) if delimiter == ";" else table
    if not len(table):
        raise InputError(f"{path}: holds no rows, only the columns' names. Is the file whole?")
    return table


def _with_decimal_points(table: pa.Table, texts: Collection[str]) -> pa.Table:
    """Make numbers of the columns of text of which nearly all cells read 1,5, but of `texts`."""
    for place, name in enumerate(table.column_names):
        column = table.column(place)  # a name that is there twice may be left out
        if name in texts or not pa.types.is_string(column.type):
            continue
        pointed = pc.replace_substring_regex(column, r"^ *([+-]?\d+),(\d+) *$", r"\1.\2")
        cells = [cell for cell in pc.unique(pointed).to_pylist() if cell]
        odd = sum(not reads_as_number(cell) for cell in cells)
        if not cells or odd > ODD_SHARE * len(cells):
            continue
        if not odd:
            pointed = pc.ascii_trim_whitespace(pointed)
            pointed = pc.if_else(pc.equal(pointed, ""), None, pointed).cast(pa.float64())
        table = table.set_column(place, name, pointed)
    return table


def refuse_thousands(path: str | Path, names: Sequence[str]) -> None:
    """Raise InputError if a column of numbers holds one such as 1.200, which may be 1200 or 1.2.

    It may in a CSV file that semicolons separate; of other files nothing is said.
    """
    path = Path(path)
    if not names or ending_of(path) != ".csv" or separator_of(path) != ";":
        return
    written = written_cells(path, names)
    for name in names:
        if (odd := parted_by_points(written[name])).any():
            row = int(np.argmax(odd))
            raise InputError(
                f"{path}: row {row + 1}: {name!r} is {str(written[name][row])!r}: {PARTED}. "
                f"{UNPARTED}"
            )


def _read_libsvm(path: Path) -> tuple[sparse.csr_matrix, np.ndarray]:
    try:
        with opened(path) as rows:
            X, y = load_svmlight_file(rows, zero_based=False)
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(path, error) from None
    except (ValueError, OverflowError) as error:
        raise InputError(f"{path}: {_bad_libsvm_line(path) or error}") from None
    if not len(y):
        raise InputError(f"{path}: holds no rows. Is the file whole?")
    if not np.isfinite(y).all():
        row = int(np.argmin(np.isfinite(y)))
        raise InputError(f"{path}: row {row + 1}: the label is {y[row]}. Drop the row.")
    if not np.isfinite(X.data).all():
        place = int(np.argmin(np.isfinite(X.data)))
        row = int(np.searchsorted(X.indptr, place, side="right"))
        raise InputError(
            f"{path}: row {row}, column {X.indices[place] + 1}: {X.data[place]}, expected a "
            "finite number. Fill or drop it."
        )
    return X, y


def _bad_libsvm_line(path: Path) -> str:
    """Say which line the reader could not take; "" if each looks right by itself."""
    with TextIOWrapper(opened(path), encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            label, *entries = line.split("#")[0].split() or [""]
            pairs = [entry.partition(":") for entry in entries]
            try:
                "".join([label, *entries]).encode("ascii")  # other digits are none to the reader
                float(label or 0)
                before = 0
                for column, _, value in pairs:
                    if column != "qid":
                        before, last = int(column), before
                        if before <= last:
                            return (
                                f"line {number}: column {column}, expected columns that count from "
                                f"1 and grow; the one before is {last or 'none'}."
                            )
                        if before > LAST_COLUMN:
                            return (
                                f"line {number}: column {column}, expected at most {LAST_COLUMN}."
                            )
                        float(value)
            except ValueError:
                shown = line.strip()[:60]
                return f"line {number}: expected 'label column:value …' in numbers: {shown!r}."
    return ""


@dataclass(frozen=True)
class Encoder:
    """Which columns become numbers, and how.

    Parameters
    ----------
    columns : tuple of (str, tuple of str or None)
        A numeric column has None, a categorical one its categories, one 0/1 column each.
    """

    columns: tuple[tuple[str, tuple[str, ...] | None], ...]

    @classmethod
    def fit(
        cls, table: pa.Table, *, leave_out: set[str], one_hot: set[str], path: str | Path
    ) -> "Encoder":
        """Look at training columns: text and those named in `one_hot` are categories."""
        missing = (one_hot | leave_out) - set(table.column_names)
        if missing:
            present = ", ".join(table.column_names[:20])
            raise InputError(
                f"{path}: no column {sorted(missing)[0]!r}; there are {present}. "
                "Give one name to each --drop and --one-hot."
            )
        refuse_repeated(path, table.column_names, set(table.column_names) - leave_out)
        columns: list[tuple[str, tuple[str, ...] | None]] = []
        for name in table.column_names:
            if name in leave_out:
                continue
            column = _with_empty_texts(table[name])
            kind = column.type
            no_nulls(column, name, path, f", or leave the column out with --drop {name}")
            if name in one_hot or pa.types.is_string(kind) or pa.types.is_large_string(kind):
                categories = sorted(str(value) for value in pc.unique(column).to_pylist())
                if name not in one_hot:
                    _no_odd_text(column, categories, name, path)
                if len(categories) > MOST_CATEGORIES:
                    raise InputError(
                        f"{path}: column {name!r} has {len(categories)} categories, at most "
                        f"{MOST_CATEGORIES} are encoded. Leave it out with --drop {name}."
                    )
                if name not in one_hot:
                    _refuse_dates_and_ids(column, categories, name, path)
                columns.append((name, tuple(categories)))
            elif is_number(kind):
                columns.append((name, None))
            elif pa.types.is_temporal(kind):
                raise _dates(name, path)
            else:
                raise InputError(
                    f"{path}: column {name!r} is of type {kind}, expected numbers or text. "
                    f"Leave it out with --drop {name}."
                )
        if not columns:
            raise InputError(f"{path}: no column is left to learn from.")
        return cls(tuple(columns))

    @property
    def texts(self) -> list[str]:
        """Names of the categorical columns, as `read_table` takes them."""
        return [name for name, categories in self.columns if categories is not None]

    @property
    def numbers(self) -> list[str]:
        """Names of the columns of numbers."""
        return [name for name, categories in self.columns if categories is None]

    def told(self) -> dict[str, Any]:
        """Name the columns of numbers, and those of categories with how many each has."""
        categories = {name: len(found) for name, found in self.columns if found is not None}
        return {"numbers": self.numbers, "categories": categories}

    @property
    def names(self) -> list[str]:
        """Names of the encoded columns; a category is ``column=value``."""
        names: list[str] = []
        for name, categories in self.columns:
            names += [name] if categories is None else [f"{name}={c}" for c in categories]
        return names

    def apply(self, table: pa.Table, path: str | Path) -> Matrix:
        """Encode rows; a category that training did not hold is all zeros, and a warning says so.

        The warning names rows and not their categories, which may be people's names.
        """
        refuse_repeated(path, table.column_names, [name for name, _ in self.columns])
        blocks: list[Any] = []
        unseen: list[str] = []
        for name, categories in self.columns:
            if name not in table.column_names:
                raise InputError(f"{path}: no column {name!r}, which the model was fitted with.")
            column = _with_empty_texts(table[name])
            no_nulls(column, name, path)
            if categories is None:
                if not is_number(column.type):
                    raise _no_number(column, name, path)
                values = column.cast(pa.float64(), safe=False).to_numpy()  # rounds above 2⁵³
                bad = np.flatnonzero(~np.isfinite(values))
                if bad.size:
                    raise InputError(
                        f"{path}: row {bad[0] + 1}: {name!r} is {values[bad[0]]}, expected a "
                        "finite number. Fill or drop the row."
                    )
                blocks.append(sparse.csr_matrix(values[:, None]))
            else:
                index = {category: place for place, category in enumerate(categories)}
                codes = np.array([index.get(str(value), -1) for value in column.to_pylist()])
                known, new = np.flatnonzero(codes >= 0), np.flatnonzero(codes < 0)
                if new.size:
                    unseen.append(f"{name!r} in {new.size:,} (the first is row {new[0] + 1})")
                entries = np.ones(known.size), (known, codes[known])
                blocks.append(sparse.csr_matrix(entries, shape=(codes.size, len(categories))))
        if unseen:
            warnings.warn(
                f"{path}: of {len(table):,} rows some hold a category that the model was not "
                f"fitted with: {', '.join(unseen)}. It adds nothing to their scores. Fit again on "
                "rows that hold it.",
                stacklevel=2,
            )
        X = sparse.hstack(blocks, format="csr")
        return X.toarray() if X.shape[1] <= DENSE_COLUMNS else X


def _no_odd_text(column: pa.ChunkedArray, values: list[str], name: str, path: str | Path) -> None:
    """Refuse a column of numbers that a few cells of text, or marks, turned into categories."""
    odd = {value for value in values if not reads_as_number(value)}
    marked = all(_MARKED.fullmatch(value) for value in odd)
    missing = {value.strip().lower() for value in odd} <= _MISSING and len(odd) < len(values)
    if odd and (marked or missing or len(odd) <= ODD_SHARE * len(values)):
        cells = column.to_pylist()
        row = next(row for row, value in enumerate(cells) if value in odd)
        wanted = "as in the other rows. Mend or drop the row"
        if marked:
            wanted = "as 1234.5. Write it so, without a comma and a unit"
        raise InputError(
            f"{path}: row {row + 1}: {name!r} is {cells[row]!r}, expected a number {wanted}, or "
            f"take all values as categories with --one-hot {name}."
        )


def _refuse_dates_and_ids(
    column: pa.ChunkedArray, values: list[str], name: str, path: str | Path
) -> None:
    """Refuse a column of text whose values as categories say nothing of other rows."""
    most = (1 - ODD_SHARE) * len(values)
    if sum(_DATE.fullmatch(value) is not None for value in values) > most:
        raise _dates(name, path)
    if len(column) >= OWN_VALUES and len(values) > (1 - ODD_SHARE) * len(column):
        raise InputError(
            f"{path}: column {name!r} has another value in nearly each row, as names and ids do. "
            f"Leave it out with --drop {name}, or keep its categories with --one-hot {name}."
        )


def _dates(name: str, path: str | Path) -> InputError:
    return InputError(
        f"{path}: column {name!r} holds dates. Make numbers of them, leave the column out with "
        f"--drop {name}, or keep its categories with --one-hot {name}."
    )


def _no_number(column: pa.ChunkedArray, name: str, path: str | Path) -> InputError:
    cells = map(str, column.to_pylist())
    row, cell = next(
        ((row, cell) for row, cell in enumerate(cells, 1) if not reads_as_number(cell)), (0, "")
    )
    found = f"row {row}: {name!r} is {cell!r}" if row else f"column {name!r} is {column.type}"
    return InputError(f"{path}: {found}, expected a number as in training. Mend or drop the row.")


def reads_as_number(text: str) -> bool:
    """Say whether a text is a number, also to Arrow: it takes no 1_000 and no other digits."""
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text


def _with_empty_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Take a null among texts for an empty one, as an empty cell of a CSV file is."""
    kind = column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return pc.fill_null(column, "") if is_text else column


def no_nulls(column: pa.ChunkedArray, name: str, path: str | Path, else_: str = "") -> None:
    """Raise InputError at the first empty cell of a column; `else_` says what else to do."""
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        cells = f"{column.null_count} such cell{'s' if column.null_count > 1 else ''}"
        raise InputError(
            f"{path}: row {row + 1}: {name!r} is empty or reads NA ({cells}). "
            f"Fill them in or drop their rows{else_}."
        )
