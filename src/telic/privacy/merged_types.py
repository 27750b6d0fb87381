"""Several node types as one: all nodes in a row, the protected ones first."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from telic.errors import InputError
from telic.hin import Links, Network, Rule
from telic.privacy.adversary import Adversary, label_of


class Column(NamedTuple):
    """One attribute of all nodes; null where a node type does not have it."""

    name: str
    rule: Rule
    values: pa.ChunkedArray


class Flat(NamedTuple):
    """What an adversary sees of a network, as one node type with attributes and link types.

    Nodes of the protected type keep their positions. Which type a node has is an exact attribute,
    and so is its id where that is known.
    """

    size: int
    protected: int
    columns: list[Column]
    links: list[tuple[Links, Rule | None]]


def in_a_row(adversary: Adversary) -> list[str]:
    """Return the node types that the adversary sees, the protected one first."""
    return [adversary.node_type, *(k for k in adversary.attributes if k != adversary.node_type)]


def flatten(network: Network, adversary: Adversary, what: str = "target") -> Flat:
    """Lay a network's nodes in a row, as far as the adversary sees them.

    Raises
    ------
    InputError
        If `what` (the network's name in the message) lacks something the adversary sees.
    """
    kinds = in_a_row(adversary)
    for kind in kinds:
        if kind not in network.nodes:
            raise InputError(f"node type {kind!r} is missing in the {what} network.")
    starts = np.cumsum([0, *(network.size(kind) for kind in kinds)])
    size, begin = int(starts[-1]), dict(zip(kinds, starts.tolist(), strict=False))
    columns = []
    if len(kinds) > 1:
        kind_of = [pa.repeat(kind, network.size(kind)) for kind in kinds]
        columns.append(Column("node type", Rule("exact"), pa.chunked_array(kind_of)))
    for kind in kinds:
        seen = dict(adversary.attributes[kind])
        if kind in adversary.known_ids:
            seen["id"] = Rule("exact")
        for name, rule in seen.items():
            label = label_of(adversary.node_type, kind, name)
            if name not in network.nodes[kind].column_names:
                raise InputError(
                    f"attribute {label!r} is missing in the {what} network. If a step of the "
                    "publisher made it, repeat the steps (--steps); else give it the rule 'ignore'."
                )
            values = network.nodes[kind].column(name)
            before = pa.nulls(begin[kind], values.type)
            after = pa.nulls(size - begin[kind] - len(values), values.type)
            columns.append(
                Column(label, rule, pa.chunked_array([before, *values.chunks, after], values.type))
            )
    links: list[tuple[Links, Rule | None]] = []
    for name, way in adversary.links.items():
        if name not in network.links:
            raise InputError(
                f"link type {name!r} is missing in the {what} network, which has "
                f"{list(network.links)}. Name those to compare (--links)."
            )
        link = network.schema.link(name)
        for kind in (link.source, link.target):
            if kind not in begin:
                raise InputError(
                    f"link type {name!r} of the {what} network joins {link.source!r} to "
                    f"{link.target!r}: no {kind!r} is compared."
                )
        old = network.links[name]
        compared = way is not None and way.kind != "ignore"
        if compared and old.strength is None:
            raise InputError(
                f"link type {name!r} has no strengths in the {what} network. Give it the rule "
                "'ignore'."
            )
        rows = np.full(size + 1, len(old), np.int64)
        start = begin[link.source]
        rows[: start + 1] = 0
        rows[start : start + len(old.indptr)] = old.indptr
        indices = old.indices
        if begin[link.target]:
            indices = (indices + begin[link.target]).astype(np.int32)
        links.append((Links(rows, indices, old.strength if compared else None), way))
    return Flat(size, network.size(adversary.node_type), columns, links)
