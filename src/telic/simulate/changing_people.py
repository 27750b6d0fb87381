"""Simulated people who change: what is learned of them before must not be trusted after."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.simulate.catalogue import Catalogue
from telic.simulate.intents import Intents
from telic.simulate.typist_parameters import TypistParameters
from telic.simulate.typists import BEGIN, simulate_typists


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
    first = simulate_typists(
        catalogue, setting=before, users=users, compositions=compositions[0], seed=2 * seed
    )
    end = pc.max(first["submitted_at"].cast(pa.int64())).as_py()
    then = simulate_typists(
        catalogue,
        setting=after,
        users=users,
        compositions=compositions[1],
        seed=2 * seed + 1,
        causes=causes,
        begin=max(np.datetime64(end, "us"), BEGIN) + np.timedelta64(1, "D"),
    )
    place = then.schema.get_field_index("composition")
    ids = pc.binary_join_element_wise(then["composition"], "after", "-")
    then = then.set_column(place, then.schema.field(place), ids)
    return pa.concat_tables([first, then.replace_schema_metadata(first.schema.metadata)])


def other_tastes(catalogue: Catalogue, *, seed: int) -> Callable[[Intents], Intents]:
    """Return causes by which what was wanted often is wanted seldom: the phrases change places."""
    n = len(catalogue.phrases)
    place = np.random.default_rng(seed).permutation(n)

    def causes(intents: Intents) -> Intents:
        refinement, phrase = np.divmod(intents.wanted, n)
        return intents._replace(wanted=place[phrase] + n * refinement)

    return causes
