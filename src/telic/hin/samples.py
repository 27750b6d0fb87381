"""Choose part of a network: at random, around a person, from a dense part, or by list."""

from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array

from telic.errors import InputError
from telic.hin.link_kernels import dense_growth
from telic.hin.links import Positions
from telic.hin.network import Network, induced
from telic.hin.schema import check_node_type

MODES = ("uniform", "snowball", "community")


def sample(
    network: Network, size: int, *, mode: str = "uniform", node_type: str, seed: int = 0
) -> Network:
    """Sample nodes of one type and keep all links among them.

    Parameters
    ----------
    network : Network
    size : int
        How many nodes; a snowball that dies out, or a community that is smaller, gives fewer.
    mode : {"uniform", "snowball", "community"}
        ``uniform``: every node alike; in a large sparse network hardly any link survives.
        ``snowball``: breadth first from a random node, over links of every type either way.
        ``community``: from a random node, always add the node with most links to those chosen.
    node_type : str
    seed : int

    Returns
    -------
    Network
        With the nodes in their original order.
    """
    check_node_type(network.schema, node_type)
    total = network.size(node_type)
    if not 0 < size <= total:
        raise InputError(f"sample size {size} is not between 1 and {total} ({node_type!r} nodes).")
    if mode not in MODES:
        raise InputError(f"sampling mode {mode!r} is unknown. Modes are {', '.join(MODES)}.")
    rng = np.random.default_rng(seed)
    if mode == "uniform":
        chosen = rng.choice(total, size, replace=False)
    else:
        around = neighbours(network, node_type)
        linked = np.flatnonzero(np.diff(around.indptr))
        if not len(linked):
            raise InputError(f"no two {node_type!r} nodes are linked: use mode='uniform'.")
        start = int(rng.choice(linked))
        if mode == "snowball":
            chosen = _snowball(around, start, size, rng)
        else:
            rows = around.indptr.astype(np.int64), around.indices.astype(np.int32)
            chosen = dense_growth(*rows, start, size)
    return induced(network, {node_type: np.sort(chosen)})


def by_ids(network: Network, ids: Any, *, node_type: str) -> Network:
    """Keep the nodes with these ids (an array or a list), in this order, and links among them."""
    if not isinstance(ids, pa.Array | pa.ChunkedArray):
        ids = pa.array(ids)
    return induced(network, {node_type: Positions(network.ids(node_type)).find(ids, "sample")})


def neighbours(network: Network, node_type: str) -> csr_array:
    """Return who is linked with whom, in either direction, by any link type of `node_type`."""
    n = network.size(node_type)
    around = csr_array((n, n), dtype=np.int64)
    for link in network.schema.links:
        if (link.source, link.target) == (node_type, node_type):
            links = network.links[link.name]
            ones = np.ones(len(links), np.int64)
            matrix = csr_array((ones, links.indices, links.indptr), shape=(n, n))
            around = around + matrix + matrix.T
    return csr_array(around)


def _snowball(around: csr_array, start: int, size: int, rng: np.random.Generator) -> np.ndarray:
    taken = np.zeros(around.shape[0], bool)
    taken[start] = True
    chosen = [start]
    for node in chosen:
        row = around.indices[around.indptr[node] : around.indptr[node + 1]]
        new = rng.permutation(row[~taken[row]])[: size - len(chosen)]
        taken[new] = True
        chosen.extend(new.tolist())
        if len(chosen) >= size:
            break
    return np.array(chosen)
