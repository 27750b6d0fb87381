"""Fits of one conditional logit with several penalties on an engine; its data lie in files."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path

import numpy as np

from telic.choice.elastic_net import Elastic, Fit
from telic.choice.factored_choices import FactoredChoices
from telic.data.object_storage import refuse_remote
from telic.errors import InputError
from telic.scale.arrays import Arrays, load_arrays, map_array, save_arrays, store_arrays
from telic.scale.executor import Executor
from telic.scale.job_folder import identity

ARRAYS = [part.name for part in fields(FactoredChoices)][3:]
"""What `FactoredChoices` takes after its three sizes, in its order."""


def fits_of(
    choices: FactoredChoices,
    solve: Callable[[FactoredChoices, Elastic], Fit],
    penalties: Sequence[Elastic],
    executor: Executor,
    work: str | Path | None,
) -> list[Fit]:
    """Fit with each penalty, one a task.

    Parameters
    ----------
    choices : FactoredChoices
    solve : callable
        A solver such as `telic.choice.fit_sdca`, or a partial one.
    penalties : sequence of Elastic
    executor : telic.scale.Executor
    work : path
        Folder for these choices, which every worker reaches by this name.

    Raises
    ------
    InputError
        If there is no folder, or it holds other choices.
    """
    if work is None:
        raise InputError("work: with an executor, name a folder for the choices.")
    refuse_remote(work, "work", "the choices are mapped")
    folder = Path(work).absolute()  # a worker has a working folder of its own
    store_arrays(folder, {name: getattr(choices, name) for name in ARRAYS})
    sizes = choices.outcomes, choices.entries, choices.shared
    task = partial(save_arrays, partial(_fit, solve, folder, sizes))
    out = folder / f"found-{identity(task, penalties)}"
    paths = executor.map(task, penalties, out=out, ending=".npz").values
    # A warning that a worker gave is not heard here.
    return [_read(load_arrays(path)).checked() for path in paths]


def _fit(
    solve: Callable[[FactoredChoices, Elastic], Fit],
    folder: Path,
    sizes: tuple[int, int, int],
    penalty: Elastic,
) -> Arrays:
    arrays = [map_array(folder, name) for name in ARRAYS]
    fit = solve(FactoredChoices(*sizes, *arrays), penalty)
    numbers = {name: np.array(getattr(fit, name)) for name in ("passes", "gap", "target")}
    history, method = np.array(fit.history), np.array(fit.method)
    return {"weights": fit.weights, "history": history, "method": method, **numbers}


def _read(found: Arrays) -> Fit:
    numbers = {name: float(found[name]) for name in ("passes", "gap", "target")}
    history = [(float(passes), float(value)) for passes, value in found["history"]]
    return Fit(found["weights"], str(found["method"]), history=history, **numbers)
