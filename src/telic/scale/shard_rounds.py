"""Shards that work in rounds: their states lie in files by (round, shard), never on a worker."""

import functools
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from telic.data.object_storage import Place
from telic.scale.arrays import Arrays, load_arrays, write
from telic.scale.job_folder import placed


class Numbered(NamedTuple):
    """A shard and its number."""

    number: int
    shard: Any

    def __str__(self) -> str:
        return f"shard {self.number}"


def in_rounds(
    run: Callable[[Callable[..., Any], Place], dict[int, Place]],
    step: Callable[..., tuple[Arrays, Arrays]],
    combine: Callable[[Arrays, list[Arrays]], tuple[Arrays, bool]],
    shared: Arrays,
    folder: Place,
    max_rounds: int,
) -> tuple[Arrays, int]:
    """Go from the last whole round in `folder` to the end; `run` maps a function over the shards.

    See `telic.scale.Executor.rounds`.
    """
    over = False
    done = {int(path.stem[6:]): path for path in folder.glob("round-*.npz")}
    if last := max((number for number in done if number <= max_rounds), default=0):
        shared, over = load_arrays(done[last], "shared/"), bool(load_arrays(done[last])["over"])
    while last < max_rounds and not over:
        before, here = folder / f"round-{last:05d}", folder / f"round-{last + 1:05d}"
        here.mkdir(exist_ok=True)
        # What is shared lies in a file by then, and need not travel with every task.
        known = before if last else shared
        paths = run(functools.partial(_shard_step, step, known, last + 1), here)
        messages = [load_arrays(paths[s], "message/") for s in sorted(paths)]
        shared, over = combine(shared, messages)
        with placed(here.with_suffix(".npz")) as temporary:
            kept = {f"shared/{name}": array for name, array in shared.items()}
            write(temporary, kept | {"over": np.array(over)})
        _forget(before)
        last += 1
    return shared, last


def _shard_step(
    step: Callable[..., tuple[Arrays, Arrays]],
    known: Arrays | Place,
    number: int,
    numbered: Numbered,
    path: Path,
) -> None:
    """Let a shard take a step, from what is shared at first or from the files of a round."""
    s, shard = numbered
    if isinstance(known, dict):
        held, shared = None, known
    else:
        held = load_arrays(known / f"part-{s:05d}.npz", "state/")
        shared = load_arrays(known.with_suffix(".npz"), "shared/")
    state, message = step(shard, held, shared, number)
    kept = {f"state/{name}": array for name, array in state.items()}
    write(path, kept | {f"message/{name}": array for name, array in message.items()})


def _forget(old: Place) -> None:
    """Remove the states of a round that nobody will read again."""
    for file in old.glob("*"):
        file.unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        old.rmdir()
    old.with_suffix(".npz").unlink(missing_ok=True)
