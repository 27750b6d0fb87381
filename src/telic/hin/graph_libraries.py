"""Networks from and to graph libraries: networkx, GraphML, igraph, PyTorch Geometric."""

import importlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pyarrow as pa

from telic.data import atomic_path
from telic.data.tables import no_such_file
from telic.errors import InputError
from telic.hin.links import is_text
from telic.hin.network import Network, network_from_arrays
from telic.hin.schema import LinkType, Rule, Schema

_GROWING = Rule("at_least")
_NO_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_networkx(network: Network) -> networkx.MultiDiGraph:
    """Return a MultiDiGraph: nodes (type, id) with attributes, edges keyed by link type."""
    graph = networkx.MultiDiGraph()
    for node_type, table in network.nodes.items():
        if "node_type" in table.column_names:
            raise InputError(
                f"node type {node_type!r}: its attribute 'node_type' has the name by which graph "
                "libraries are told a node's type. Rename it."
            )
        for row in table.to_pylist():
            values = {name: value for name, value in row.items() if value is not None}
            # Attributes may be called as parameters of `add_node` are.
            graph.add_nodes_from([((node_type, row["id"]), {"node_type": node_type, **values})])
    for link in network.schema.links:
        links = network.links[link.name]
        starts = [(link.source, x) for x in network.ids(link.source).to_pylist()]
        ends = [(link.target, x) for x in network.ids(link.target).to_pylist()]
        strengths = np.ones(len(links), int) if links.strength is None else links.strength
        for s, t, weight in zip(links.sources, links.indices, strengths.tolist(), strict=True):
            data = {} if links.strength is None else {"strength": weight}
            graph.add_edge(starts[s], ends[t], key=link.name, **data)
    return graph


def from_networkx(
    graph: Any,
    *,
    schema: Schema | None = None,
    link: str = "link",
    duplicates: str = "raise",
) -> Network:
    """Build a network from a networkx graph.

    Parameters
    ----------
    graph : networkx graph
        A node's type is its ``node_type`` (default ``user``), its id its ``id`` (default the node
        itself). An edge's type is its ``link``, else its key if that is a text, else `link`;
        ``strength`` (or ``weight``) is its strength. Undirected edges become links both ways, or
        between two node types one link each, all in the schema's or the first one's direction.
    schema : Schema, optional
        Default: read off the graph, with exact attributes and growing strengths; a link type may
        lead from a node to itself where one of the graph's links does. What the schema has and
        the graph lacks is empty: a node type, a link type, an attribute. A node type with
        attributes that the schema lacks must have all those that it has.
    link : str
    duplicates : {"raise", "sum"}
        "sum" adds the strengths of repeated links up, or counts the links where there are none.
    """
    nodes: dict[str, list[dict[str, Any]]] = {}
    where = {}
    for node, data in graph.nodes(data=True):
        kind = data.get("node_type", "user")
        row = {k: v for k, v in data.items() if k != "node_type"}
        row.setdefault("id", node)
        where[node] = (kind, row["id"])
        nodes.setdefault(kind, []).append(row)
    found: dict[str, tuple[tuple[str, str], list[tuple[Any, Any, Any]]]] = {}
    joins = {x.name: (x.source, x.target) for x in schema.links} if schema else {}
    edges = (
        graph.edges(keys=True, data=True)
        if graph.is_multigraph()
        else ((s, t, None, data) for s, t, data in graph.edges(data=True))
    )
    for start, end, key, data in edges:
        name = data.get("link", key if isinstance(key, str) else link)
        ways = [(start, end)]
        if not graph.is_directed() and start != end:
            kinds = where[start][0], where[end][0]
            wanted = joins.get(name) or (found[name][0] if name in found else kinds)
            if kinds[0] == kinds[1]:
                ways.append((end, start))
            elif wanted == kinds[::-1]:
                ways = [(end, start)]
        weight = data.get("strength", data.get("weight"))
        for s, t in ways:
            (first, source), (last, target) = where[s], where[t]
            joined, rows = found.setdefault(name, ((first, last), []))
            if joined != (first, last):
                raise InputError(
                    f"link type {name!r} joins {joined} and {(first, last)}. "
                    "Give links between different node types different names."
                )
            rows.append((source, target, weight))
    tables: dict[str, Any] = {kind: _columns(rows) for kind, rows in nodes.items()}
    links: dict[str, Any] = {}
    types = []
    for name, ((start, end), rows) in found.items():
        source, target, strength = zip(*rows, strict=True)
        rule = None if all(value is None for value in strength) else _GROWING
        pairs = list(zip(source, target, strict=True))
        if rule is None and duplicates == "sum" and len(set(pairs)) < len(pairs):
            rule, strength = _GROWING, (1,) * len(pairs)  # how often each link occurs
        itself = start == end and any(s == t for s, t in pairs)
        types.append(LinkType(name, start, end, rule, itself))
        links[name] = (source, target) if rule is None else (source, target, strength)
    schema = schema or _read_off(tables, types)
    for missing in schema.links:
        links.setdefault(missing.name, ([], [], []))
    for kind, attributes in schema.nodes.items():
        table = tables.setdefault(kind, {"id": pa.array([], pa.string())})
        if table.keys() <= {"id", *attributes}:  # else one may be misspelled
            for name in attributes:
                table.setdefault(name, pa.nulls(len(table["id"]), pa.int64()))
    return network_from_arrays(schema, tables, links, duplicates=duplicates)


def _read_off(tables: Mapping[str, Iterable[str]], types: Iterable[LinkType]) -> Schema:
    """Return the schema of a graph that has none: attributes are exact."""
    exact = Rule("exact")
    attributes = {
        kind: {name: exact for name in columns if name != "id"} for kind, columns in tables.items()
    }
    return Schema(attributes, tuple(types))


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(["id", *(name for row in rows for name in row)])
    return {name: [row.get(name) for row in rows] for name in names}


def read_graphml(
    path: str | Path, *, schema: Schema | None = None, duplicates: str = "raise"
) -> Network:
    """Read GraphML; node and edge data, `schema` and `duplicates` are as in `from_networkx`."""
    if not Path(path).exists():
        raise no_such_file(Path(path))
    try:
        graph = networkx.read_graphml(path, force_multigraph=True)
    except (OSError, ValueError, SyntaxError, TypeError, networkx.NetworkXError) as error:
        raise InputError(f"{path}: cannot be read as GraphML ({error}).") from None
    return from_networkx(graph, schema=schema, duplicates=duplicates)


def write_graphml(network: Network, path: str | Path) -> None:
    """Write GraphML, which many tools read.

    It has no word for a node type or a link type of which there is none, nor for an attribute that
    no node has: `read_graphml` brings these back where it is given the schema.

    Raises
    ------
    InputError
        If a text holds a character that XML has not, or a column is of a kind that GraphML has not.
    """
    graph = networkx.MultiDiGraph()
    plain = to_networkx(network)
    for node, data in plain.nodes(data=True):
        for name, value in data.items():
            if isinstance(value, str) and _NO_XML.search(value):
                raise InputError(
                    f"node type {node[0]!r}: {name!r} holds a control character, which GraphML "
                    "cannot hold. Remove it, or write a folder."
                )
        graph.add_nodes_from([(_graphml_id(node), data)])
    for number, (start, end, name, data) in enumerate(plain.edges(keys=True, data=True)):
        ends = _graphml_id(start), _graphml_id(end)
        graph.add_edge(*ends, key=str(number), link=name, **data)
    with atomic_path(path) as temporary:
        try:
            networkx.write_graphml(graph, temporary)
        except networkx.NetworkXError as error:
            raise InputError(f"{path}: cannot be written ({error}). Drop such columns.") from None


def _graphml_id(node: tuple[str, Any]) -> str:
    kind, identifier = node
    # The first colon ends the node type, whatever else has one.
    return f"{kind.replace('%', '%25').replace(':', '%3A')}:{identifier}"


def to_igraph(network: Network) -> Any:
    """Return a directed igraph graph with ``node_type``, ``id``, ``link``, ``strength``."""
    igraph = _optional("igraph", "igraph")
    graph = to_networkx(network)
    for _, _, name, data in graph.edges(keys=True, data=True):
        data["link"] = name
    return igraph.Graph.from_networkx(graph)


def from_igraph(graph: Any, *, schema: Schema | None = None, duplicates: str = "raise") -> Network:
    """Build a network from an igraph graph with the attributes that `to_igraph` gives.

    `duplicates` is as of `network_from_arrays`.
    """
    plain = networkx.MultiDiGraph() if graph.is_directed() else networkx.MultiGraph()

    def given(one: Any) -> dict[str, Any]:
        own = {k: v for k, v in one.attributes().items() if not k.startswith("_nx")}
        return {k: v for k, v in own.items() if v is not None}

    for vertex in graph.vs:
        plain.add_nodes_from([(vertex.index, given(vertex))])
    for edge in graph.es:
        plain.add_edge(edge.source, edge.target, **given(edge))
    return from_networkx(plain, schema=schema, duplicates=duplicates)


def to_pyg(network: Network) -> Any:
    """Return a PyTorch Geometric HeteroData: numeric attributes, edge_index, strengths.

    Attributes that are no numbers are given as codes.
    """
    torch = _optional("torch", "torch")
    data = _optional("torch_geometric.data", "torch-geometric").HeteroData()
    for kind, table in network.nodes.items():
        data[kind].num_nodes = table.num_rows
        for name in table.column_names:
            column = table.column(name).combine_chunks()
            if is_text(column.type):
                column = column.dictionary_encode().indices
            data[kind]["node_id" if name == "id" else name] = torch.tensor(column.to_pylist())
    for link in network.schema.links:
        links = network.links[link.name]
        store = data[link.source, link.name, link.target]
        store.edge_index = torch.tensor(np.stack([links.sources, links.indices]).astype(np.int64))
        if links.strength is not None:
            store.strength = torch.tensor(links.strength)
    return data


def from_pyg(data: Any, *, schema: Schema | None = None, duplicates: str = "raise") -> Network:
    """Build a network from a HeteroData: one-dimensional tensors become attributes.

    An edge's strength is its ``strength``, or else its ``edge_weight``. `duplicates` is as of
    `network_from_arrays`.

    Raises
    ------
    InputError
        If it is no HeteroData, an edge leads to a node that is not there, or a relation has one
        name between several pairs of node types.
    """
    if not hasattr(data, "node_types"):
        raise InputError(
            f"{type(data).__name__}: is no HeteroData, whose node and edge types have names. PyG "
            "makes one of it: data.to_heterogeneous()."
        )
    tables: dict[str, Any] = {}
    for kind in data.node_types:
        store = data[kind]
        size = int(store.num_nodes)
        ids = store["node_id"].numpy() if "node_id" in store else np.arange(size)
        tables[kind] = {"id": ids}
        for name, value in store.items():
            if name not in ("node_id", "num_nodes") and getattr(value, "ndim", 0) == 1:
                tables[kind][name] = value.numpy()
    types, links = [], {}
    for source, name, target in data.edge_types:
        store = data[source, name, target]
        where = f"edge type {(source, name, target)}"
        if "edge_index" not in store:
            raise InputError(f"{where}: has no 'edge_index'.")
        index = store.edge_index.numpy()
        for kind, ends in zip((source, target), index, strict=True):
            size = len(tables[kind]["id"])
            outside = ends[(ends < 0) | (ends >= size)]
            if len(outside):
                raise InputError(
                    f"{where}: 'edge_index' names node {outside[0]} of the {size} {kind} nodes, "
                    f"expected 0 to {size - 1}."
                )
        ends = [tables[k]["id"][i] for k, i in zip((source, target), index, strict=True)]
        strength = next((n for n in ("strength", "edge_weight") if n in store), None)
        rule = None if strength is None else _GROWING
        itself = source == target and bool((index[0] == index[1]).any())
        types.append(LinkType(name, source, target, rule, itself))
        if name in links:
            raise InputError(
                f"{where}: another edge type is called {name!r}, too. Give each a name of its own."
            )
        links[name] = ends if strength is None else [*ends, store[strength].numpy()]
    schema = schema or _read_off(tables, types)
    return network_from_arrays(schema, tables, links, duplicates=duplicates)


def _optional(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InputError(f"{package} is not installed: pip install {package}") from None
