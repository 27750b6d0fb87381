"""A simulated log made ready for completion; the completer knows the catalogue, or less."""

from typing import Literal, get_args

import pyarrow as pa

from telic.completion.learning.replayed_log import Replay
from telic.data.compositions import read_compositions
from telic.data.queries import read_queries
from telic.simulate.catalogue import Catalogue

Told = Literal["all", "older", "nothing"]
TOLD: tuple[Told, ...] = get_args(Told)
"""What a completer may be told beforehand of what the lists know; see `simulated_replay`."""


def simulated_replay(catalogue: Catalogue, log: pa.Table, *, told: Told = "all") -> Replay:
    """Make a simulated log ready for `telic.completion`.

    Parameters
    ----------
    catalogue : Catalogue
        The phrases that the log was simulated with.
    log : pyarrow.Table
        What `simulate_typists` or `simulate_phones` returned.
    told : {"all", "older", "nothing"}
        What a completer is told beforehand of the catalogue: all of it, an older one
        (`Catalogue.outdated`), or nothing, so that it counts the log alone.

    Returns
    -------
    Replay
    """
    if told == "nothing":
        return Replay(read_compositions(log))
    known = catalogue if told == "all" else catalogue.outdated()
    return Replay(read_compositions(log), queries=read_queries(known.as_queries(log)))
