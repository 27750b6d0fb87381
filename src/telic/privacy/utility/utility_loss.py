"""What a release has lost: profiles, links one by one, degrees, clustering, prediction."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from scipy import stats
from scipy.sparse import csr_array
from sklearn.metrics import roc_auc_score

from telic.errors import InputError
from telic.hin import Links, LinkType, Network, induced
from telic.hin.links import Positions
from telic.hin.samples import neighbours, sample
from telic.privacy.attacks.score import same_ids
from telic.privacy.protected import attribute_codes, own_links, target_type
from telic.privacy.utility.analyses import community_loss, model_loss, ranking_loss, readings

STRUCTURE_USERS = 1000
"""What takes hours on large networks is measured on at most so many users."""


@dataclass(frozen=True, slots=True)
class UtilityLoss:
    """Losses in [0, 1]; 0 is the network as it was.

    They compare value with value, link with link and user with user: two networks with equal
    distributions may have nothing else in common. The last five would take hours on large
    networks, so they compare at most `STRUCTURE_USERS` users and the links among them: a snowball
    sample of the network as it was. Means are over attributes, or over link types. The last three
    ask of the release what users of a network ask. They read it as well as it can be read: a link
    counts with the mean real strength of all links that are published with the same strength.

    Parameters
    ----------
    attributes : float
        Share of the information in an attribute's values, 1 − I(old; new)/H(old), that is gone.
    links : float
        Share of the information about every pair of nodes, whether they are linked and how
        strongly, that is gone, in the same sense. Fake links that can be told from real ones, as
        those of one strength can, take little of it; fake links that cannot take most.
    existence : float
        The same for whether they are linked, alone.
    false_links : float
        Share of the published links that are not real.
    lost_links : float
        Share of the real links that are not published.
    strength : float
        Share of the real links that are published with another strength or none.
    degree : float
        Mean change of a node's out-degree, as a share of the larger of both.
    clustering : float
        Mean change of the users' local clustering coefficients.
    prediction : float
        Share of the link predictor's advantage over chance (AUC − ½) that is gone: common
        neighbours in the release, asked for the real links.
    communities : float
        1 − adjusted Rand index of the Louvain communities.
    ranking : float
        1 − Spearman's correlation of the users' PageRank.
    model : float
        Share of the advantage over chance that a link predictor trained on the network has, and
        trained on the release does not have, on users it was not trained on.
    """

    attributes: float
    links: float
    existence: float
    false_links: float
    lost_links: float
    strength: float
    degree: float
    clustering: float
    prediction: float
    communities: float
    ranking: float
    model: float

    def total(self, weights: Mapping[str, float] | None = None) -> float:
        """Return the weighted mean (default: all alike)."""
        names = [part.name for part in fields(self)]
        for name in weights or {}:
            if name not in names:
                raise InputError(f"utility: {name!r} is no loss. Losses are {names}.")
        shares = np.array([(weights or {}).get(name, 1.0) for name in names])
        if not ((shares >= 0) & (shares < np.inf)).all() or not shares.any():
            raise InputError(
                f"utility: weights {dict(weights or {})}, expected numbers from 0, not all 0."
            )
        return float(np.average([getattr(self, name) for name in names], weights=shares))


def utility_loss(
    network: Network, release: Network, *, seed: int = 0, node_type: str | None = None
) -> UtilityLoss:
    """Compare a release with the network it was made from.

    Parameters
    ----------
    network, release : Network
        With the same nodes: measure before ids are randomised. Where both have the same ids they
        are compared by id, otherwise row by row.
    seed : int
        For Louvain and the sampled pairs.
    node_type : str, optional
    """
    node_type = target_type(network, node_type)
    for kind in network.schema.nodes:
        if network.size(kind) != release.size(kind):
            raise InputError(f"utility: the release has other {kind} nodes than the network.")
    place = {kind: same_ids(release, network, kind) for kind in network.schema.nodes}
    moved = {
        kind: rows
        for kind, rows in place.items()
        if (rows >= 0).all() and (np.diff(rows) < 0).any()
    }
    if moved:
        release = induced(release, moved)
    part, seen = _structure(network, release, seed, node_type)
    real, shown = (neighbours(one, node_type) for one in (part, seen))
    strong, read, sure = readings(part, seen, node_type)
    n = real.shape[0]
    before, after = _prediction(real, real, seed), _prediction(shown, real, seed)
    return UtilityLoss(
        attributes=_attribute_loss(network, release),
        **link_losses(network, release),
        clustering=float(np.abs(_clustering(real) - _clustering(shown)).mean()) if n else 0.0,
        # Where the predictor is no better than chance there is nothing to lose.
        prediction=float(np.clip(1 - (after - 0.5) / (before - 0.5), 0, 1))
        if before > 0.5
        else 0.0,
        communities=community_loss(strong, read, seed) if n else 0.0,
        ranking=ranking_loss(strong, read) if n else 0.0,
        model=model_loss(strong, read, sure, seed) if n else 0.0,
    )


def _structure(
    network: Network, release: Network, seed: int, node_type: str
) -> tuple[Network, Network]:
    """Return both networks, or a sample of users of both if there are many."""
    if network.size(node_type) > STRUCTURE_USERS:
        own = own_links(network.schema, node_type)
        mode = "snowball" if any(len(network.links[name]) for name in own) else "uniform"
        part = sample(network, STRUCTURE_USERS, mode=mode, node_type=node_type, seed=seed)
        # The release stands in the network's order; it may have other ids.
        place = Positions(network.ids(node_type)).find(part.ids(node_type), "sample")
        network, release = part, induced(release, {node_type: place})
    return network, release


def _attribute_loss(network: Network, release: Network) -> float:
    losses = []
    for kind, attributes in network.schema.nodes.items():
        for name in attributes:
            old = attribute_codes(network.nodes[kind].column(name))
            table = release.nodes[kind]
            new = np.zeros(len(old), np.int64)
            if name in table.column_names:
                new = attribute_codes(table.column(name))
            losses.append(lost_information(old, new, np.ones(len(old))))
    return float(np.mean(losses)) if losses else 0.0


def lost_information(old: np.ndarray, new: np.ndarray, times: np.ndarray) -> float:
    """Share of what `old` tells that `new` does not tell: 1 − I(old; new)/H(old).

    Both are integers that belong together, in pairs that occur so many `times`.

    Examples
    --------
    >>> old = np.array([0, 1, 2, 3])
    >>> lost_information(old, old // 2, np.ones(4)), lost_information(old, 0 * old, np.ones(4))
    (0.5, 1.0)
    """
    olds, news = np.unique(old, return_inverse=True)[1], np.unique(new, return_inverse=True)[1]
    together = np.unique(olds * np.int64(news.max(initial=0) + 1) + news, return_inverse=True)[1]
    whole, kept, both = (
        float(stats.entropy(np.bincount(codes, weights=times), base=2)) if len(codes) else 0.0
        for codes in (olds, news, together)
    )
    return float(np.clip((both - kept) / whole, 0, 1)) if whole > 0 else 0.0


def link_losses(network: Network, release: Network) -> dict[str, float]:
    """Return the measures of `UtilityLoss` that compare link with link, and degrees."""
    by_type = [_link_losses(network, release, link) for link in network.schema.links]
    return {
        name: float(np.mean([part[name] for part in by_type if name in part] or [0.0]))
        for name in ("links", "existence", "false_links", "lost_links", "strength", "degree")
    }


def _link_losses(network: Network, release: Network, link: LinkType) -> dict[str, float]:
    """Compare the links of one type one by one, and what is said of every pair of nodes."""
    old = network.links[link.name]
    n, columns = network.size(link.source), network.size(link.target)
    if link.name in release.links:
        new = release.links[link.name]
    else:
        new = Links(np.zeros(n + 1, np.int64), np.empty(0, np.int32))
    places = [part.sources * np.int64(columns) + part.indices for part in (old, new)]
    every = np.union1d(*places)
    shown = [np.zeros(len(every), np.int64) for _ in places]
    for part, place, values in zip((old, new), places, shown, strict=True):
        values[np.searchsorted(every, place)] = 1 if part.strength is None else part.strength
    was, now = shown
    # Where neither network has a link is one more kind of pair.
    loops = n if link.source == link.target and not link.self_links else 0
    rest = max(n * columns - loops - len(every), 0)
    times = np.append(np.ones(len(every)), rest)
    losses = {"links": lost_information(np.append(was, 0), np.append(now, 0), times)}
    linked = np.append(was > 0, False)
    losses["existence"] = lost_information(linked, np.append(now, 0), times)
    real, published = (was > 0).sum(), (now > 0).sum()
    survived = (was > 0) & (now > 0)
    losses["false_links"] = 1 - survived.sum() / published if published else 0.0
    losses["lost_links"] = 1 - survived.sum() / real if real else 0.0
    if old.strength is not None:
        right = survived & (was == now) & (new.strength is not None)
        losses["strength"] = 1 - right.sum() / survived.sum() if survived.any() else float(real > 0)
    most = np.maximum(old.out_degree, new.out_degree)
    change = np.abs(old.out_degree - new.out_degree)
    losses["degree"] = np.divide(change, most, out=np.zeros(n), where=most > 0).mean() if n else 0.0
    return losses


def _simple(around: csr_array) -> csr_array:
    """Return the undirected graph: ones, no self-links."""
    graph = csr_array(around > 0).astype(np.float64)
    graph.setdiag(0)
    graph.eliminate_zeros()
    return graph


def _clustering(around: csr_array) -> np.ndarray:
    graph = _simple(around)
    degree = graph.sum(axis=1)
    triangles = (graph @ graph).multiply(graph).sum(axis=1)
    return np.divide(triangles, degree * (degree - 1), where=degree > 1, out=np.zeros(len(degree)))


def _prediction(shown: csr_array, real: csr_array, seed: int, pairs: int = 2000) -> float:
    """AUC of common neighbours in `shown` at telling real links from pairs without one."""
    graph, truth = _simple(shown), _simple(real).tocoo()
    n = graph.shape[0]
    if not truth.nnz:
        return 0.5
    rng = np.random.default_rng(seed)
    pick = rng.integers(truth.nnz, size=pairs)
    a, b = rng.integers(n, size=(2, pairs))
    linked = np.asarray(csr_array(truth)[a, b]).ravel() > 0
    none = ~linked & (a != b)
    left = np.concatenate([truth.row[pick], a[none]])
    right = np.concatenate([truth.col[pick], b[none]])
    score = graph[left].multiply(graph[right]).sum(axis=1)
    label = np.repeat([1, 0], [pairs, int(none.sum())])
    return float(roc_auc_score(label, score)) if none.any() else 0.5
