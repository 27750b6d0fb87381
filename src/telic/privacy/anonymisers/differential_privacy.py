"""Links under edge differential privacy: a Top-m Filter, with its noise drawn cell by cell."""

import numpy as np

from telic.errors import expect_above
from telic.hin import Links, Network
from telic.hin.links import build_links
from telic.privacy.anonymisers.coarsen import drop_strengths
from telic.privacy.protected import own_links, target_type

COUNTING = 0.1
"""Share of the budget that is spent on the number of links."""


def noisy_links(
    network: Network, *, epsilon: float, seed: int = 0, node_type: str | None = None
) -> Network:
    """Publish links between users under epsilon-edge-differential privacy.

    Whether any one link is there changes the probability of any release by a factor of at most
    e^epsilon. To every pair of users, linked (1) or not (0), Laplace noise of scale 1/epsilon1 is
    added, and pairs above a threshold are published: Top-m Filter of Nguyen, Imine and Rusinowitch
    (2015). The threshold lets through about as many as a noisy count says that there are, with the
    rest of the budget. Where the source draws the number of false links given the true ones, here
    every pair is drawn by itself, so the guarantee holds exactly. Each link type has the whole
    budget, since a link is of one type. Strengths are left out. Profiles, links to other nodes, and
    who is in the release are *not* protected, and many links of one person are less than one. A
    link both ways, as of an undirected network, is two links: it has twice epsilon. Whether a node
    may be linked to itself is taken from the schema, as public.

    Parameters
    ----------
    network : Network
    epsilon : float > 0
        1 is a usual value, 10 a weak one.
    seed : int
        Whoever knows it can undo the noise.
    node_type : str, optional

    Raises
    ------
    InputError
        If epsilon is not positive and finite.
    """
    expect_above(0, epsilon=epsilon)
    node_type = target_type(network, node_type)
    names = own_links(network.schema, node_type)
    rng = np.random.default_rng(seed)
    release = drop_strengths(network, links=names)
    built = dict(release.links)
    for name in names:
        loops = network.schema.link(name).self_links
        built[name] = _noisy(release.links[name], network.size(node_type), epsilon, loops, rng)
    return Network(release.schema, release.nodes, built)


def keep_chances(cells: int, count: float, epsilon: float) -> tuple[float, float]:
    """Return the chance of a linked and of an unlinked pair to be published.

    Of so many cells (pairs of users) about `count` are to be published, more than none and fewer
    than all. `epsilon` is that of the noise on each pair.

    Examples
    --------
    >>> real, false = keep_chances(9900, 300, 10.0)
    >>> round(real, 2), round(300 * real + 9600 * false)
    (0.98, 300)
    """
    odds = cells / count - 1
    threshold = 0.5 + np.log(odds) / (2 * epsilon)  # between 0 and 1: as many lost as gained
    if threshold > 1:
        threshold = np.log((np.exp(epsilon) + odds) / 2) / epsilon
    elif threshold < 0:
        threshold = np.log(2 * odds / (np.exp(-epsilon) + odds)) / epsilon
    return _above(threshold - 1, epsilon), _above(threshold, epsilon)


def _above(x: float, epsilon: float) -> float:
    """Chance that Laplace noise of scale 1/epsilon is above x."""
    half = 0.5 * np.exp(-epsilon * abs(x))
    return float(half if x > 0 else 1 - half)


def _noisy(
    links: Links, n: int, epsilon: float, self_links: bool, rng: np.random.Generator
) -> Links:
    cells = n * n - (0 if self_links else n)
    if not cells:
        return links
    count = len(links) + rng.laplace(scale=1 / (COUNTING * epsilon))
    chances = keep_chances(cells, float(np.clip(count, 0.5, cells - 0.5)), (1 - COUNTING) * epsilon)
    real = links.sources * np.int64(n) + links.indices
    kept = real[rng.random(len(real)) < chances[0]]
    false = rng.binomial(cells - len(real), chances[1])
    fake = np.empty(0, np.int64)
    while len(fake) < false:  # draws that hit a link, a loop or an earlier draw are repeated
        drawn = rng.integers(n * n, size=2 * (false - len(fake)) + 10)
        if not self_links:
            drawn = drawn[drawn // n != drawn % n]
        drawn = np.concatenate([fake, drawn[~np.isin(drawn, real)]])
        first = np.sort(np.unique(drawn, return_index=True)[1])
        fake = drawn[first][:false]
    place = np.concatenate([kept, fake])
    return build_links((place // n).astype(np.int32), (place % n).astype(np.int32), None, n, n)
