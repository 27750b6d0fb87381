"""Whom to protect, the links among them, and attributes as codes."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.errors import InputError
from telic.hin import Network, Schema
from telic.hin.schema import check_node_type


def target_type(network: Network, node_type: str | None = None) -> str:
    """Return the node type to protect: the only one, or the one named."""
    types = list(network.schema.nodes)
    if node_type is None and len(types) > 1:
        raise InputError(
            f"the network has node types {types}. Say which one is to be protected (--node-type)."
        )
    name = types[0] if node_type is None else node_type
    check_node_type(network.schema, name)
    return name


def own_links(schema: Schema, node_type: str) -> list[str]:
    """Return the link types that lead from nodes of a type to nodes of the same type."""
    return [x.name for x in schema.links if x.source == x.target == node_type]


def degrees_of(network: Network, node_type: str) -> dict[tuple[str, str], np.ndarray]:
    """Return how many links each node of a type has, by link type and side, "out" or "in"."""
    degrees = {}
    for link in network.schema.links:
        links = network.links[link.name]
        if link.source == node_type:
            degrees[link.name, "out"] = links.out_degree
        if link.target == node_type:
            size = network.size(node_type)
            degrees[link.name, "in"] = np.bincount(links.indices, minlength=size)
    return degrees


def link_types(schema: Schema, names: Sequence[str] | None = None) -> list[str]:
    """Return all link types, or check those named; each once."""
    for name in names or []:
        schema.link(name)
    every = [link.name for link in schema.links]
    return every if names is None else list(dict.fromkeys(names))


def one_zero(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column in which −0.0 is 0.0, as it is to whoever compares values."""
    floating = pa.types.is_floating(column.type)
    return pc.add(column, pa.scalar(0.0, column.type)) if floating else column


def attribute_codes(column: pa.ChunkedArray) -> np.ndarray:
    """Give equal values equal int64 codes; null is a value of its own."""
    encoded = one_zero(column).combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
    return encoded.indices.to_numpy().astype(np.int64)
