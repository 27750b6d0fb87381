"""Rows that cannot be used: the first one is an error, or all are left out and counted."""

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np

from telic.errors import InputError, expect_one_of

OnBadRow = Literal["raise", "skip"]


class BadRows:
    """Collects broken rows: the first one raises, or all are counted by reason."""

    def __init__(self, source: str, n: int, on_bad_row: str, *, before: int = 0) -> None:
        """Begin with the row after the first `before` ones."""
        expect_one_of(("raise", "skip"), on_bad_row=on_bad_row)
        self.source, self.skip, self.before = source, on_bad_row == "skip", before
        self.rows = np.zeros(n, bool)
        self.reasons: dict[str, int] = {}

    def add(
        self,
        rows: np.ndarray,
        column: str,
        reason: str,
        todo: str,
        value: Callable[[int], object] | None = None,
    ) -> None:
        """Mark rows (a mask); `reason` says what is wrong and what was expected.

        `value` gives what the row holds, where the reason does not say it already.
        """
        new = rows & ~self.rows
        if not new.any():
            return
        if not self.skip:
            row = int(np.argmax(new))
            found = f"{value(row)!r} " if value else ""
            raise InputError(
                f"{self.source}: row {self.before + row + 1}: column {column!r}: {found}{reason}. "
                f"{todo} Or skip such rows with on_bad_row='skip' (--skip-bad-rows)."
            )
        self.rows |= new
        self.reasons[f"{column}: {reason}"] = int(new.sum())


def summary(reasons: Mapping[str, int]) -> str:
    """Say what was wrong with how many rows."""
    return "; ".join(f"{reason}: {count} rows" for reason, count in reasons.items())
