"""Simulated people who change: what is learned of them before must not be trusted after."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.errors import InputError
from telic.simulate.catalogue import Catalogue
from telic.simulate.intents import Intents
from telic.simulate.typist_parameters import TypistParameters
from telic.simulate.typists import BEGIN, simulate_typists

DAY = np.timedelta64(1, "D")


class Stage(NamedTuple):
    """A time in which people behave one way."""

    name: str
    """Ends the ids of its compositions, after a hyphen; empty: they stay as they are."""
    setting: str | TypistParameters
    """See `telic.simulate.SETTINGS`."""
    compositions: int
    """Of each user."""
    causes: Callable[[Intents], Intents] | None = None
    """Changes what is wanted (see `simulate_typists`, and `other_tastes`)."""


def simulate_change(
    catalogue: Catalogue,
    *,
    before: str | TypistParameters,
    after: str | TypistParameters,
    users: int = 200,
    compositions: tuple[int, int] = (150, 150),
    causes: Callable[[Intents], Intents] | None = None,
    seed: int = 0,
) -> pa.Table:
    """Make a log whose users behave one way first and another way from one day on.

    Parameters
    ----------
    catalogue : Catalogue
        What people may want.
    before, after : str or TypistParameters
        See `telic.simulate.SETTINGS`. Each user's typing speed and habits are drawn anew, too.
    users : int
    compositions : (int, int)
        Of each user before and after.
    causes : callable, optional
        Changes what is wanted after (see `simulate_typists`, and `other_tastes`).
    seed : int
        Equal seeds give equal logs.

    Returns
    -------
    pyarrow.Table
        As of `simulate_typists`; the ids of the compositions after the change end in "-after".

    Examples
    --------
    >>> catalogue = Catalogue(["tea", "tea kettle", "coffee"], np.array([5.0, 1.0, 3.0]))
    >>> log = simulate_change(
    ...     catalogue, before="readers", after="inattentive", users=2, compositions=(3, 4)
    ... )
    >>> log.num_rows, log["composition"][-1].as_py()
    (14, 'u1-3-after')
    """
    stages = [Stage("", before, compositions[0]), Stage("after", after, compositions[1], causes)]
    return simulate_stages(catalogue, stages, users=users, seed=seed)


def simulate_stages(
    catalogue: Catalogue, stages: Sequence[Stage], *, users: int = 200, seed: int = 0
) -> pa.Table:
    """Make a log whose users behave another way in each stage, one stage a day after the other.

    As `simulate_change`, which has two stages.

    Raises
    ------
    InputError
        If there is no stage, or two have one name.
    """
    names = [stage.name for stage in stages]
    if not stages or len(set(names)) < len(names):
        raise InputError(f"stages are named {names}, expected at least one, each its own name.")
    logs: list[pa.Table] = []
    last = BEGIN - DAY
    for i, stage in enumerate(stages):
        log = simulate_typists(
            catalogue,
            setting=stage.setting,
            users=users,
            compositions=stage.compositions,
            seed=len(stages) * seed + i,
            causes=stage.causes,
            begin=last + DAY,
        )
        end = pc.max(log["submitted_at"].cast(pa.int64())).as_py()
        last = max(np.datetime64(end, "us"), BEGIN)
        if stage.name:
            place = log.schema.get_field_index("composition")
            ids = pc.binary_join_element_wise(log["composition"], stage.name, "-")
            log = log.set_column(place, log.schema.field(place), ids)
        logs.append(log.replace_schema_metadata(logs[0].schema.metadata) if logs else log)
    return pa.concat_tables(logs)


def other_tastes(catalogue: Catalogue, *, seed: int) -> Callable[[Intents], Intents]:
    """Return causes by which what was wanted often is wanted seldom: the phrases change places."""
    n = len(catalogue.phrases)
    place = np.random.default_rng(seed).permutation(n)

    def causes(intents: Intents) -> Intents:
        refinement, phrase = np.divmod(intents.wanted, n)
        return intents._replace(wanted=place[phrase] + n * refinement)

    return causes
