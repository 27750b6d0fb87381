"""Ids and what nobody has judged, taken out of a network before it is published."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from telic.data.contracts import SIMULATED
from telic.errors import InputError
from telic.hin import Network, induced
from telic.hin.schema import check_node_type
from telic.privacy.protected import one_zero, target_type


def randomise_ids(
    network: Network,
    *,
    seed: int | None = None,
    node_type: str | None = None,
    public: Sequence[str] = (),
) -> tuple[Network, pa.Table]:
    """Replace ids by meaningless strings and shuffle the nodes, as KDD Cup 2012 did (KDDA).

    Columns that the schema does not name are left out, as `schema_only` does.

    Parameters
    ----------
    network : Network
    seed : int, optional
        Whoever knows it can repeat the shuffle and undo it, so by default none is kept.
    node_type : str, optional
        Who is to be protected.
    public : sequence of str
        Other node types that keep their ids, such as a public catalogue. Whoever sees the release
        may know them, so they count in the risk.

    Returns
    -------
    network : Network
        Its schema names the node types whose ids were replaced.
    key : pyarrow.Table
        Columns ``target`` (new id) and ``auxiliary`` (old id) of the protected type: keep it
        secret.
    """
    node_type = target_type(network, node_type)
    others = [kind for kind in network.schema.nodes if kind != node_type]
    for kind in public:
        if kind not in others:
            raise InputError(
                f"public: {kind!r} is no other node type than {node_type!r}. Those are {others}."
            )
    drawn = np.random.default_rng(seed).spawn(2)
    release, key = _replace_ids(schema_only(network), node_type, drawn)
    for kind in others:
        if kind not in public or kind in network.schema.pseudonyms:
            release, _ = _replace_ids(release, kind, drawn)
    return release, key


def replace_ids(network: Network, *, node_type: str, seed: int = 0) -> Network:
    """Replace the ids of a node type by meaningless strings; `randomise_ids` shuffles the nodes."""
    check_node_type(network.schema, node_type)
    return _renamed(network, node_type, np.random.default_rng(seed))


def _replace_ids(
    network: Network, node_type: str, drawn: Sequence[np.random.Generator]
) -> tuple[Network, pa.Table]:
    # The published ids must not show the state of the generator that shuffled the nodes.
    order, names = drawn
    shuffled = induced(network, {node_type: order.permutation(network.size(node_type))})
    renamed = _renamed(shuffled, node_type, names)
    ids = {"target": renamed.ids(node_type), "auxiliary": shuffled.ids(node_type)}
    return renamed, pa.table(ids).sort_by("target")


def _renamed(network: Network, node_type: str, rng: np.random.Generator) -> Network:
    table = network.nodes[node_type]
    drawn = rng.choice(2**32, table.num_rows, replace=False)
    new = pa.array([f"{x:08x}" for x in drawn], pa.string())
    renamed = table.set_column(table.column_names.index("id"), "id", new)
    schema = replace(network.schema, pseudonyms=network.schema.pseudonyms | {node_type})
    return Network(schema, {**network.nodes, node_type: renamed}, network.links)


def schema_only(network: Network) -> Network:
    """Leave out columns that the schema does not name: nobody has judged what they tell.

    Nor what notes on a column do, or the sign of a zero.
    """
    nodes = {}
    for name, attributes in network.schema.nodes.items():
        table = network.nodes[name]
        simulated = (table.schema.metadata or {}).get(SIMULATED)
        kept = None if simulated is None else {SIMULATED: simulated}
        columns = {column: one_zero(table.column(column)) for column in ("id", *attributes)}
        nodes[name] = pa.table(columns).replace_schema_metadata(kept)
    return Network(network.schema, nodes, network.links)
