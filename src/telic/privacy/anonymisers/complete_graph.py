"""Complete graph anonymity: fake links until all are linked, and the attack's answer to it."""

from collections.abc import Mapping

import numpy as np

from telic.errors import InputError
from telic.hin import Network
from telic.hin.links import build_links
from telic.privacy.anonymisers.random_links import kept_links
from telic.privacy.protected import own_links, target_type

MAX_COMPLETE = 50_000_000
"""Links that a complete graph may have, all types together."""


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
        Varying-weight CGA, [Zhang2017] (7.6.3): every fake link gets the strength of a random real
        one of its type. Default: all fake links of a type share one strength.
    strengths : mapping, optional
        Link type → the shared strength; default that of a random real link, drawn by `seed`.
    seed : int
    node_type : str, optional

    Raises
    ------
    InputError
        If `strengths` are given for links without any, for none that is there, or with `varying`.
    """
    node_type = target_type(network, node_type)
    names = own_links(network.schema, node_type)
    n = network.size(node_type)
    if len(names) * n * n > MAX_COMPLETE:
        raise InputError(
            f"complete graph: {len(names)} link types of {n} users are {len(names) * n * n} "
            f"links, more than {MAX_COMPLETE}. Publish a smaller sample."
        )
    for name in strengths or {}:
        if name not in names:
            raise InputError(f"strengths: no link type of users is called {name!r}, of {names}.")
        if varying:
            raise InputError("strengths: with varying, each link has one of its own. Leave it out.")
        if network.links[name].strength is None:
            raise InputError(f"strengths: links of type {name!r} have none. Leave it out.")
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
