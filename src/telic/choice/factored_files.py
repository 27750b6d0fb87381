"""Fits of one conditional logit with several penalties on an engine; its data lie in files."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path

import numpy as np

from telic.choice.elastic_net import Elastic, Fit
from telic.choice.factored_choices import FactoredChoices
from telic.choice.group_buckets import answers, stored
from telic.scale.arrays import Arrays, load_arrays, map_array
from telic.scale.executor import Executor

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
    folder = stored(choices, ARRAYS, work)
    sizes = choices.outcomes, choices.entries, choices.shared
    found = answers(partial(_fit, solve, folder, sizes), penalties, executor, folder)
    # A warning that a worker gave is not heard here.
    return [_read(load_arrays(file)).checked() for file in found]


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
