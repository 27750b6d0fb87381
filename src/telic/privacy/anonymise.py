"""Change a network before it is published: relabel, complete, replace links."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from telic.data.contracts import SIMULATED
from telic.errors import InputError
from telic.hin import Network, induced
from telic.hin.links import build_links
from telic.privacy.fake_links import add_plausible_links
from telic.privacy.random_links import add_random_links, kept_links
from telic.privacy.target import own_links, target_type

MAX_COMPLETE = 50_000_000
"""Links that a complete graph may have, all types together."""


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
    if node_type not in network.schema.nodes:
        known = list(network.schema.nodes)
        raise InputError(f"node type {node_type!r} does not exist. Node types are {known}.")
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
    """Leave out columns that the schema does not name: nobody has judged what they tell."""
    nodes = {}
    for name, attributes in network.schema.nodes.items():
        table = network.nodes[name].select(["id", *attributes])
        simulated = (table.schema.metadata or {}).get(SIMULATED)
        kept = None if simulated is None else {SIMULATED: simulated}
        nodes[name] = table.replace_schema_metadata(kept)
    return Network(network.schema, nodes, network.links)


def complete_graph(
    network: Network,
    *,
    varying: bool = False,
    strengths: Mapping[str, int] | None = None,
    seed: int = 0,
    node_type: str | None = None,
) -> Network:
    """Add fake links until every link type is complete (CGA, Section 7.6.2).

    Links between users only: those to and between nodes of other types stay as they are.

    Parameters
    ----------
    network : Network
    varying : bool
        Varying-weight CGA (7.6.3): every fake link gets the strength of a random real one of its
        type. Default: all fake links of a type share one strength.
    strengths : mapping, optional
        Link type → the shared strength; default that of a random real link, drawn by `seed`.
    seed : int
    node_type : str, optional
    """
    node_type = target_type(network, node_type)
    names = own_links(network.schema, node_type)
    n = network.size(node_type)
    if len(names) * n * n > MAX_COMPLETE:
        raise InputError(
            f"complete graph: {len(names)} link types of {n} users are {len(names) * n * n} "
            f"links, more than {MAX_COMPLETE}. Publish a smaller sample."
        )
    rng = np.random.default_rng(seed)
    built = dict(network.links)
    for name in names:
        old = network.links[name]
        matrix = np.zeros((n, n), np.int32)
        if old.strength is None:
            matrix[:] = 1
        else:
            pool = old.strength if len(old) else np.ones(1, np.int32)
            shared = (strengths or {}).get(name, int(rng.choice(pool)))
            matrix[:] = rng.choice(pool, (n, n)) if varying else shared
            matrix[old.sources, old.indices] = old.strength
        if not network.schema.link(name).self_links:
            np.fill_diagonal(matrix, 0)
        source, target = np.nonzero(matrix)
        strength = None if old.strength is None else matrix[source, target]
        built[name] = build_links(source.astype(np.int32), target.astype(np.int32), strength, n, n)
    return Network(network.schema, network.nodes, built)


def without_majority_strength(
    network: Network, *, node_type: str | None = None
) -> tuple[Network, dict[str, int]]:
    """Remove, per link type, all links that carry its most frequent strength (7.6.2).

    This is what the re-configured attack does to a release before it starts. A link type without
    strengths has one value only, so all its links go.

    Returns
    -------
    network : Network
    removed : dict
        Link type → number of links removed.
    """
    node_type = target_type(network, node_type)
    built, removed = dict(network.links), {}
    for name in own_links(network.schema, node_type):
        old = network.links[name]
        keep = np.zeros(len(old), bool)
        if old.strength is not None and len(old):
            values, counts = np.unique(old.strength, return_counts=True)
            keep = old.strength != values[counts.argmax()]
        removed[name] = int((~keep).sum())
        built[name] = kept_links(old, keep, network.size(node_type))
    return Network(network.schema, network.nodes, built), removed


def perturb_links(
    network: Network,
    *,
    share: float,
    plausible: bool = True,
    seed: int = 0,
    node_type: str | None = None,
) -> Network:
    """Remove a share of the links of every type, at random, and add as many fake ones.

    Parameters
    ----------
    network : Network
    share : float in [0, 1]
    plausible : bool
        Links between users that are added look like real ones (`add_plausible_links`); otherwise,
        and to other nodes, they are random.
    seed : int
    node_type : str, optional
    """
    if not 0 <= share <= 1:
        raise InputError(f"share is {share}, expected 0 to 1.")
    rng = np.random.default_rng(seed)
    built, lost = dict(network.links), {}
    for link in network.schema.links:
        old, columns = network.links[link.name], network.size(link.target)
        keep = rng.random(len(old)) >= share
        lost[link.name] = np.bincount(old.sources[~keep], minlength=network.size(link.source))
        built[link.name] = kept_links(old, keep, columns)
    thinner = Network(network.schema, network.nodes, built)
    grown = thinner
    if plausible:
        node_type = target_type(network, node_type)
        own = {name: lost[name] for name in own_links(network.schema, node_type)}
        grown = add_plausible_links(thinner, own, rng, node_type, by_source=False)
    for name, wanted in lost.items():
        added = len(grown.links[name]) - len(thinner.links[name])
        left = rng.permutation(np.repeat(np.arange(len(wanted)), wanted))[added:]
        missing = np.bincount(left, minlength=len(wanted))
        built[name] = add_random_links(grown, name, missing, rng)
    return Network(network.schema, network.nodes, built)
