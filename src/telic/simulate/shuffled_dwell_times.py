"""The dwell twin of a log: the null against which any use of dwell times is judged."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.data.contracts import KEYSTROKE, TIMESTAMP
from telic.data.tables import one_chunk


def dwell_twin(table: pa.Table, *, seed: int) -> pa.Table:
    """Permute the dwell times within each user and leave everything else.

    Users, queries, lists, positions and prefixes stay; each composition still begins when it began.
    What a model gains on a log beyond what it gains on the log's twin, it owes to dwell times.

    Parameters
    ----------
    table : pyarrow.Table
        A composition log (contract 1). The last list's dwell, which ends with the submission, is
        permuted with the others.
    seed : int
        Equal seeds give equal twins.

    Returns
    -------
    pyarrow.Table
        The same log with other times. Compositions of logs by `simulate_typists` are far enough
        apart to keep their order; in a real log, two that follow each other within seconds may
        come to overlap.

    Examples
    --------
    >>> from telic.simulate import Catalogue, simulate_typists
    >>> log = simulate_typists(Catalogue(["tea"], np.ones(1)), users=1, compositions=2)
    >>> twin = dwell_twin(log, seed=0)
    >>> twin["query"] == log["query"], twin["submitted_at"] == log["submitted_at"]
    (True, False)
    """
    lists = one_chunk(table["keystrokes"])
    keystrokes = lists.flatten()
    count = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    at = pc.struct_field(keystrokes, "at").cast(pa.int64()).to_numpy()
    submitted = table["submitted_at"].cast(pa.int64()).to_numpy().copy()
    ends, some = np.cumsum(count), count > 0
    first, last = (ends - count)[some], ends[some] - 1

    dwell = np.diff(at, append=0)
    dwell[last] = submitted[some] - at[last]
    user = one_chunk(table["user"]).dictionary_encode().indices.to_numpy()
    user = np.repeat(user, count)
    by_user = np.argsort(user, kind="stable")
    shuffled = np.lexsort((np.random.default_rng(seed).random(len(user)), user))
    dwell[by_user] = dwell[shuffled]

    clock = np.cumsum(dwell) - dwell
    new_at = clock + np.repeat(at[first] - clock[first], count[some])
    submitted[some] = new_at[last] + dwell[last]
    new = pa.StructArray.from_arrays(
        [pa.array(new_at, TIMESTAMP), *keystrokes.flatten()[1:]], fields=list(KEYSTROKE)
    )
    offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
    for name, column in (
        ("keystrokes", pa.ListArray.from_arrays(offsets, new)),
        ("submitted_at", pa.array(submitted, TIMESTAMP)),
    ):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(name), column)
    return table
