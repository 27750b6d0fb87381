"""Networks on disk: folders of Parquet files, as `docs/reference/data-contracts.md`, 4, says."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from telic.data import atomic_path
from telic.errors import InputError
from telic.hin.csv_tables import read_csv
from telic.hin.links import Links, Positions, build_links, check_self_links, check_strength
from telic.hin.network import Network, check_nodes
from telic.hin.schema import LinkType, Schema


def read_network(folder: str | Path) -> Network:
    """Read a network folder; ``.csv`` files stand in where there is no ``.parquet``.

    Raises
    ------
    InputError
        Naming the file, row and value that break the contract.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(
            f"{folder}: is no folder. Give a network folder; telic privacy convert makes one of "
            "other files."
        )
    file = folder / "schema.json"
    try:
        schema = Schema.parse(json.loads(file.read_text(encoding="utf-8")), str(file))
    except FileNotFoundError:
        raise InputError(f"{file}: not found. Is {folder} a network folder?") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{file}: is not JSON ({error}).") from None
    nodes = {}
    for name, attributes in schema.nodes.items():
        file = _file(folder, f"nodes_{name}")
        nodes[name] = _read(file)
        check_nodes(nodes[name], attributes, str(file))
    network = Network(schema, nodes, {})
    positions = {name: Positions(network.ids(name)) for name in schema.nodes}
    links = {link.name: _read_links(folder, network, link, positions) for link in schema.links}
    return Network(schema, nodes, links)


def write_network(network: Network, folder: str | Path, *, metadata: Any = None) -> None:
    """Write a network folder, whole or not at all; only a folder that telic wrote is replaced.

    Parameters
    ----------
    network : Network
    folder : path
    metadata : mapping of bytes to bytes, optional
        Goes into every Parquet file's schema, such as ``{telic.data.contracts.SIMULATED:
        b"true"}``.
    """
    with atomic_path(folder, kind="network") as temporary:
        temporary.mkdir()
        for name, table in network.nodes.items():
            _write(table, temporary / f"nodes_{name}.parquet", metadata)
        for link in network.schema.links:
            table = link_table(network, link)
            _write(table, temporary / f"links_{link.name}.parquet", metadata)
        text = json.dumps(network.schema.dump(), indent=1, ensure_ascii=False)
        (temporary / "schema.json").write_text(text, encoding="utf-8")


def link_table(network: Network, link: LinkType) -> pa.Table:
    """Return the links of one type as `source`, `target` and, where there is one, `strength`."""
    links = network.links[link.name]
    columns = {
        "source": network.ids(link.source).take(pa.array(links.sources)),
        "target": network.ids(link.target).take(pa.array(links.indices)),
    }
    if links.strength is not None:
        columns["strength"] = pa.array(links.strength)
    return pa.table(columns)


def _write(table: pa.Table, path: Path, metadata: Any) -> None:
    if metadata:
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), **metadata})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)


def _file(folder: Path, stem: str) -> Path:
    parquet, csv = folder / f"{stem}.parquet", folder / f"{stem}.csv"
    return parquet if parquet.is_file() or not csv.is_file() else csv


def _read(file: Path, column: str | None = None, types: Any = None) -> pa.Table:
    """Read a table, or one column of it."""
    try:
        if file.suffix == ".csv":
            # A link's strength is a number however it is written.
            as_written = None if types is None else {column or ""} & {"source", "target"}
            table = read_csv(file, types, as_written=as_written)
            if not table.num_rows and "id" in table.column_names:  # no row to tell the type by
                place = table.column_names.index("id")
                table = table.set_column(place, "id", pa.array([], pa.int64()))
            names = table.column_names
        else:
            stored = pq.ParquetFile(file)
            names = stored.schema_arrow.names
            table = stored.read(columns=None if column is None else [column])
    except FileNotFoundError:
        raise InputError(f"{file}: not found, but the schema names it.") from None
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{file}: cannot be read ({error}).") from None
    if column is None:
        return table
    if column not in names:
        raise InputError(f"{file}: column {column!r} is missing. Columns are {names}.")
    return table.select([column])


def _read_links(
    folder: Path, network: Network, link: LinkType, positions: dict[str, Positions]
) -> Links:
    where = _file(folder, f"links_{link.name}")
    id_types = {
        name: network.nodes[kind].column("id").type
        for name, kind in (("source", link.source), ("target", link.target))
        if not pa.types.is_integer(network.nodes[kind].column("id").type)
    }

    def column(name: str) -> pa.ChunkedArray:
        # One column at a time: the largest networks then fit beside what is already built.
        # In CSV, ids are read as the node table's are: "12" may be a text.
        return _read(where, name, id_types).column(name)

    at = f"{where}: column"
    source = positions[link.source].find(column("source"), f"{at} 'source'")
    target = positions[link.target].find(column("target"), f"{at} 'target'")
    strength = None
    if link.strength is not None:
        strength = check_strength(column("strength"), f"{at} 'strength'")
    check_self_links(link, source, target, network.ids(link.source), str(where))
    sizes = network.size(link.source), network.size(link.target)
    return build_links(source, target, strength, *sizes, where=str(where))
