"""Typed networks: schema, nodes and links, meta-paths, samples, files."""

from typing import TYPE_CHECKING

from telic.lazy_names import lazy_names

if TYPE_CHECKING:
    from telic.hin.csv_tables import read_tables
    from telic.hin.edge_lists import read_edge_list, read_kdd_cup_2012, write_edge_list
    from telic.hin.graph_libraries import (
        from_igraph,
        from_networkx,
        from_pyg,
        read_graphml,
        to_igraph,
        to_networkx,
        to_pyg,
        write_graphml,
    )
    from telic.hin.links import Links
    from telic.hin.metapath import MetaPath, PathMatrix, project
    from telic.hin.network import Network, density, induced, network_from_arrays
    from telic.hin.network_files import read_network, write_network
    from telic.hin.samples import by_ids, sample
    from telic.hin.schema import LinkType, Rule, Schema
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "LinkType",
    "Links",
    "MetaPath",
    "Network",
    "PathMatrix",
    "Rule",
    "Schema",
    "by_ids",
    "density",
    "from_igraph",
    "from_networkx",
    "from_pyg",
    "induced",
    "network_from_arrays",
    "project",
    "read_edge_list",
    "read_graphml",
    "read_kdd_cup_2012",
    "read_network",
    "read_tables",
    "sample",
    "to_igraph",
    "to_networkx",
    "to_pyg",
    "write_edge_list",
    "write_graphml",
    "write_network",
]
