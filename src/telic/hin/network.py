"""A typed network in memory: Arrow tables of nodes, one CSR matrix per link type."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.errors import InputError
from telic.hin.link_kernels import first_unordered, induced_rows
from telic.hin.links import (
    Links,
    Positions,
    build_links,
    check_self_links,
    check_strength,
    first_odd,
    is_text,
)
from telic.hin.schema import LinkType, Schema, check_node_type

_NO_STRENGTH = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True)
class Network:
    """A heterogeneous information network (Definitions 7.3.1 and 7.3.2).

    Parameters
    ----------
    schema : Schema
    nodes : mapping of str to pyarrow.Table
        Per node type: column ``id`` (integers or strings, distinct), then the attributes.
    links : mapping of str to Links
        Per link type.

    Examples
    --------
    >>> from telic.hin import LinkType, Schema, network_from_arrays
    >>> schema = Schema({"user": {}}, (LinkType("follow", "user", "user"),))
    >>> network = network_from_arrays(schema, {"user": {"id": ["a", "b", "c"]}},
    ...                               {"follow": (["a", "a"], ["b", "c"])})
    >>> network.links["follow"].out_degree.tolist()
    [2, 0, 0]
    """

    schema: Schema
    nodes: Mapping[str, pa.Table]
    links: Mapping[str, Links]

    def size(self, node_type: str) -> int:
        """Return the number of nodes of a type."""
        return int(self.nodes[node_type].num_rows)

    def ids(self, node_type: str) -> pa.Array:
        """Return the ids of a type's nodes, in order."""
        column = self.nodes[node_type].column("id").combine_chunks()
        return column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)

    def validate(self) -> None:
        """Raise InputError, saying what is wrong where, if tables and links break the schema."""
        _check_tables(self.schema, self.nodes)
        for link in self.schema.links:
            if link.name not in self.links:
                raise InputError(f"link type {link.name!r}: its links are missing.")
            self._validate_links(link)

    def _validate_links(self, link: LinkType) -> None:
        links, where = self.links[link.name], f"link type {link.name!r}"
        rows, columns = self.size(link.source), self.size(link.target)
        if len(links.indptr) != rows + 1 or links.indptr[0] != 0:
            raise InputError(
                f"{where}: {len(links.indptr) - 1} rows for {rows} nodes of {link.source!r}."
            )
        if links.indptr[-1] != len(links) or (np.diff(links.indptr) < 0).any():
            raise InputError(f"{where}: its row pointers do not end at its {len(links)} links.")
        if len(links) and not (links.indices.min() >= 0 and links.indices.max() < columns):
            raise InputError(f"{where}: a link leads outside the {columns} nodes of its target.")
        unordered = first_unordered(links.sources, links.indices)
        if unordered >= 0:
            raise InputError(f"{where}: link {unordered} is repeated or out of order in its row.")
        if (links.strength is None) != (link.strength is None):
            has = "has" if links.strength is not None else "has no"
            raise InputError(f"{where}: {has} strengths, against its schema.")
        if links.strength is not None and (
            len(links.strength) != len(links) or (len(links) and links.strength.min() < 1)
        ):
            raise InputError(f"{where}: needs one positive strength per link.")
        if not link.self_links and link.source == link.target:
            loops = np.flatnonzero(links.sources == links.indices)
            if len(loops):
                raise InputError(f"{where}: link {loops[0]} is a self-link, which its schema bars.")


def _check_tables(schema: Schema, tables: Mapping[str, pa.Table]) -> None:
    for name in tables:
        check_node_type(schema, name)
    for name, attributes in schema.nodes.items():
        if name not in tables:
            raise InputError(f"node type {name!r}: its table is missing.")
        check_nodes(tables[name], attributes, f"node type {name!r}")


def check_nodes(
    table: pa.Table, attributes: Iterable[str], where: str, *, column: str = "id"
) -> None:
    """Raise InputError unless a table of nodes has distinct ids and the attributes named.

    `where` names the table, and `column` the ids' column, as whoever wrote them knows them.
    """
    if "id" not in table.column_names:
        raise InputError(f"{where}: column 'id' is missing. Columns are {table.column_names}.")
    ids, where_ids = table.column("id"), f"{where}: column {column!r}"
    if not (pa.types.is_integer(ids.type) or is_text(ids.type)):
        found = first_odd(ids) or f"ids are {ids.type}"
        raise InputError(f"{where_ids}: {found}, expected integers or strings.")
    if ids.null_count:
        row = pc.index(pc.is_null(ids), True).as_py() + 1
        raise InputError(f"{where_ids}: row {row}: no id. Give it one, or drop the row.")
    if pc.count_distinct(ids).as_py() != len(ids):
        counts = pc.value_counts(ids.combine_chunks())
        values, times = counts.field("values"), counts.field("counts").to_numpy()
        twice = values[int((times > 1).argmax())]
        first, again = np.flatnonzero(pc.equal(ids, twice).to_numpy())[:2] + 1
        raise InputError(
            f"{where_ids}: row {again}: id {twice.as_py()!r} occurs twice, first in row {first}. "
            "Ids must be distinct."
        )
    for attribute in attributes:
        if attribute not in table.column_names:
            raise InputError(
                f"{where}: attribute {attribute!r} of the schema is no column. Columns are "
                f"{table.column_names}."
            )
        kind = table.column(attribute).type
        if pa.types.is_float16(kind):
            raise InputError(
                f"{where}: attribute {attribute!r} is float16. Write it as float32 or float64."
            )
        numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        flat = numeric or pa.types.is_boolean(kind) or is_text(kind) or pa.types.is_null(kind)
        if not flat:
            raise InputError(
                f"{where}: attribute {attribute!r} is {kind}, expected numbers, strings or "
                "booleans."
            )


def network_from_arrays(
    schema: Schema,
    nodes: Mapping[str, Any],
    links: Mapping[str, Any],
    *,
    duplicates: str = "raise",
) -> Network:
    """Build a network from node tables and link lists that speak in ids.

    Parameters
    ----------
    schema : Schema
    nodes : mapping
        Node type → a pyarrow table, or a mapping of columns with ``id``.
    links : mapping
        Link type → (source ids, target ids) or (source ids, target ids, strengths).
    duplicates : {"raise", "sum"}
        What to do with a link that occurs twice.

    Raises
    ------
    InputError
        Naming type, row and value of what breaks the contract.
    """
    tables = {
        name: table if isinstance(table, pa.Table) else _table(table, f"node type {name!r}")
        for name, table in nodes.items()
    }
    _check_tables(schema, tables)
    for name in links:
        schema.link(name)  # refuses what is in no schema
    network = Network(schema, tables, {})
    built = {}
    for link in schema.links:
        if link.name not in links:
            raise InputError(f"link type {link.name!r}: its links are missing.")
        columns = [
            _array(column, f"link type {link.name!r}: column {number}")
            for number, column in enumerate(links[link.name], 1)
        ]
        strength = columns[2] if len(columns) > 2 else None
        built[link.name] = links_from_ids(
            network, link, columns[0], columns[1], strength, duplicates=duplicates
        )
    return Network(schema, tables, built)


def _table(columns: Mapping[str, Any], where: str) -> pa.Table:
    arrays = {name: _array(column, f"{where}: {name!r}") for name, column in columns.items()}
    if len(lengths := {len(array) for array in arrays.values()}) > 1:
        raise InputError(f"{where}: its columns have different lengths {sorted(lengths)}.")
    return pa.table(arrays)


def _array(values: Any, where: str) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError) as error:
        raise InputError(f"{where}: expected values of one type ({error}).") from None


def links_from_ids(
    network: Network,
    link: LinkType,
    source: Any,
    target: Any,
    strength: Any = None,
    *,
    duplicates: str = "raise",
    where: str = "",
    columns: Sequence[str] = ("source", "target", "strength"),
) -> Links:
    """Check and sort the links of one type; `network` needs its nodes only.

    `where` names the links in messages, and `columns` theirs.
    """
    where = where or f"link type {link.name!r}"
    at = [f"{where}: column {column!r}" for column in columns]
    from_ids = network.ids(link.source)
    rows = Positions(from_ids).find(source, at[0])
    places = Positions(network.ids(link.target)).find(target, at[1])
    values = None
    if link.strength is not None:
        if strength is None:
            raise InputError(f"{where}: column 'strength' is missing, but the schema has a rule.")
        values = check_strength(strength, at[2])
    lengths = {len(rows), len(places), len(rows if values is None else values)}
    if len(lengths) > 1:
        raise InputError(f"{where}: its columns have different lengths {sorted(lengths)}.")
    check_self_links(link, rows, places, from_ids, where)
    sizes = network.size(link.source), network.size(link.target)
    hint = ", or let them be added up: duplicates='sum'"
    return build_links(rows, places, values, *sizes, duplicates=duplicates, where=where, hint=hint)


def density(network: Network) -> float:
    """Share of the possible links that exist, over all link types (Equation 7.6.1).

    m in the equation is the number of link types that allow self-links.
    """
    possible = 0
    for link in network.schema.links:
        n = network.size(link.source)
        same = link.source == link.target and not link.self_links
        possible += n * (n - 1) if same else n * network.size(link.target)
    return sum(len(network.links[link.name]) for link in network.schema.links) / max(possible, 1)


def induced(network: Network, chosen: Mapping[str, np.ndarray]) -> Network:
    """Keep the chosen nodes (positions, in the order given) and all links among them.

    Node types that `chosen` does not name are kept whole.
    """
    for name in chosen:
        check_node_type(network.schema, name)
    positions = {
        name: np.asarray(chosen.get(name, np.arange(network.size(name))), np.int64)
        for name in network.schema.nodes
    }
    nodes, places = {}, {}
    for name, rows in positions.items():
        outside = rows[(rows < 0) | (rows >= network.size(name))]
        if len(outside):
            raise InputError(
                f"node type {name!r}: position {outside[0]} is outside its {network.size(name)} "
                "nodes."
            )
        if len(np.unique(rows)) != len(rows):
            raise InputError(f"node type {name!r}: a node is chosen twice.")
        nodes[name] = network.nodes[name].take(pa.array(rows))
        places[name] = np.full(network.size(name), -1, np.int32)
        places[name][rows] = np.arange(len(rows), dtype=np.int32)
    links = {}
    for link in network.schema.links:
        old = network.links[link.name]
        strength = _NO_STRENGTH if old.strength is None else old.strength
        args = old.indptr, old.indices, strength, positions[link.source], places[link.target]
        indptr = np.zeros(len(positions[link.source]) + 1, np.int64)
        count = induced_rows(*args, indptr, _NO_STRENGTH, _NO_STRENGTH)
        indices, kept = np.empty(count, np.int32), np.empty(count, np.int32)
        induced_rows(*args, indptr, indices, kept)
        shape = len(indptr) - 1, len(positions[link.target])
        sources = np.repeat(np.arange(shape[0], dtype=np.int32), np.diff(indptr))
        values = None if old.strength is None else kept
        links[link.name] = build_links(sources, indices, values, *shape)
    return Network(network.schema, nodes, links)
