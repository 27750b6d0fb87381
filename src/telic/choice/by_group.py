"""Work on the groups of choices, piece by piece here or bucket by bucket on an engine."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from telic.choice.choices import Choices, pieces_of

if TYPE_CHECKING:
    from telic.scale import Executor


def by_group(
    function: Callable[..., dict[str, np.ndarray]],
    choices: Choices | Sequence[Choices],
    given: Mapping[str, np.ndarray],
    executor: "Executor | None",
    work: str | Path | None,
    **here: Any,
) -> dict[str, np.ndarray]:
    """Call a function of choices and of what is given for their groups; join what it returns.

    Parameters
    ----------
    function : callable
        Its results stand group by group, and none depends on another.
    choices : Choices or sequence of Choices
    given : mapping of str to array of shape (g, ...)
    executor, work
        As in `telic.choice.fit_groups`.
    **here
        What the function is told where there is no engine, or no group for one.
    """
    if executor is not None and any(len(piece.group) > 1 for piece in pieces_of(choices)):
        from telic.choice.group_buckets import by_bucket

        return by_bucket(function, choices, given, executor, work)
    found, first = [], 0
    for piece in pieces_of(choices):
        last = first + len(piece.group) - 1
        of_piece = {name: rows[first:last] for name, rows in given.items()}
        found.append(function(piece, of_piece, **here))
        first = last
    return {name: np.concatenate([one[name] for one in found]) for name in found[0]}
