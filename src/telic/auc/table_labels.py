"""The column of labels: which of its two values is the positive one."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from telic.auc.table_columns import no_nulls, reads_as_number
from telic.data.tables import refuse_repeated
from telic.errors import InputError

MOST_SHOWN = 5
"""So many labels of a column that has more than two are shown."""


def read_labels(table: pa.Table, label: str, positive: str | None, path: str | Path) -> Any:
    """Return which rows are positive, and the positive label as text, see `choose_positive`."""
    if label not in table.column_names:
        raise InputError(
            f"{path}: no column {label!r} for the label; there are "
            f"{', '.join(table.column_names[:20])}."
        )
    refuse_repeated(path, table.column_names, [label])
    column = table[label]
    no_nulls(column, label, path)
    refuse_nested(column.type, f"{path}: column {label!r}")
    labels = np.array(column.to_pylist(), dtype=object)
    return choose_positive(labels, positive, f"{path}: column {label!r}")


def refuse_nested(kind: pa.DataType, where: str) -> None:
    """Raise InputError if a column holds lists or records, which are no labels."""
    if pa.types.is_nested(kind):
        raise InputError(f"{where} is of type {kind}, expected labels.")


def choose_positive(labels: np.ndarray, positive: str | None, where: str) -> Any:
    """Return which rows are positive, and the positive label as text.

    Without `positive` the rarer of the two labels is the positive one, for what is looked for is
    rare as a rule; of two equally frequent ones it is the larger. A number may be written in any
    way ("1" is "1.0").
    """
    chosen = positive_of(Counter(labels.tolist()), positive, where)
    return np.array([value == chosen for value in labels.tolist()]), label_text(chosen)


def positive_of(counts: Mapping[Any, int], positive: str | None, where: str) -> Any:
    """Return the positive one of two labels, given how often each occurs; see `choose_positive`."""
    if any(value != value for value in counts):
        raise InputError(f"{where} holds NaN, expected two labels. Fill or drop the rows.")
    values = sorted(counts)
    if len(values) == 1:
        raise InputError(
            f"{where} holds {label_text(values[0])!r} alone, expected two labels. Add rows of the "
            "other one."
        )
    if len(values) != 2:
        shown = ", ".join(repr(label_text(value)) for value in values[:MOST_SHOWN])
        raise InputError(
            f"{where} holds {len(values)} different labels ({shown}"
            f"{', …' if len(values) > MOST_SHOWN else ''}), expected two. Mend or drop other rows."
        )
    if positive is None:
        chosen = min(reversed(values), key=lambda value: counts[value])
    else:
        same = [value for value in values if _same_label(value, positive)]
        if len(same) != 1:
            names = [label_text(value) for value in values]
            raise InputError(f"{where} holds {names}, not {positive!r}.")
        chosen = same[0]
    return chosen


def label_text(value: Any) -> str:
    """Write a label: whole numbers without a decimal point, bytes as text."""
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else str(value)


def _same_label(value: Any, text: str) -> bool:
    if isinstance(value, bool):
        return str(value).lower() == text.lower()
    if isinstance(value, int | float):
        return reads_as_number(text) and float(text) == value
    return label_text(value) == text
