"""Some links taken out of a network, and as many fake ones put in."""

import numpy as np

from telic.errors import InputError
from telic.hin import Network
from telic.privacy.anonymisers.fake_links import MOST_WANTED, add_plausible_links
from telic.privacy.anonymisers.random_links import add_random_links, kept_links
from telic.privacy.protected import target_type


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
        Links between users that are added look like real ones (`add_plausible_links`), and those
        from or to other nodes if there are at most `MOST_WANTED` of a type; others are random.
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
        users = {
            link.name: lost[link.name]
            for link in network.schema.links
            if link.source == link.target == node_type
            or (node_type in (link.source, link.target) and lost[link.name].sum() <= MOST_WANTED)
        }
        grown = add_plausible_links(
            thinner, users, rng, node_type, by_source=False, original=network
        )
    for name, wanted in lost.items():
        added = len(grown.links[name]) - len(thinner.links[name])
        left = rng.permutation(np.repeat(np.arange(len(wanted)), wanted))[added:]
        missing = np.bincount(left, minlength=len(wanted))
        built[name] = add_random_links(grown, name, missing, rng)
    return Network(network.schema, network.nodes, built)
