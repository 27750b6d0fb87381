"""Typed networks: schema, nodes and links, meta-paths, samples, files."""

from telic.hin.io import read_network, write_network
from telic.hin.links import Links
from telic.hin.metapath import MetaPath, PathMatrix, project
from telic.hin.network import Network, density, induced, network_from_arrays
from telic.hin.sample import by_ids, sample
from telic.hin.schema import LinkType, Rule, Schema

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
    "induced",
    "network_from_arrays",
    "project",
    "read_network",
    "sample",
    "write_network",
]
