"""What a release has lost: profiles, degrees, strengths, clustering, prediction, communities."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import networkx
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import stats
from scipy.sparse import csr_array
from sklearn.metrics import adjusted_rand_score, roc_auc_score

from telic.errors import InputError
from telic.hin import Network
from telic.hin.sample import by_ids, neighbours, sample
from telic.privacy.target import own_links, target_type

STRUCTURE_USERS = 1000
"""Clustering, prediction and communities are measured on at most so many users."""


@dataclass(frozen=True, slots=True)
class UtilityLoss:
    """Losses in [0, 1]; 0 is the network as it was.

    The last three would take hours on large networks, so they compare at most `STRUCTURE_USERS`
    users and the links among them: a snowball sample of the network as it was.

    Parameters
    ----------
    attributes : float
        Mean over attributes of the share of the values' entropy that is gone.
    links : float
        Mean over link types of the Jaccard distance between published and real links.
    degree : float
        Mean over link types of the Kolmogorov–Smirnov distance of out-degrees.
    strength : float
        Mean over link types with strengths of the same distance of strengths.
    clustering : float
        Kolmogorov–Smirnov distance of the users' local clustering coefficients.
    prediction : float
        Share of the link predictor's advantage over chance (AUC − ½) that is gone: common
        neighbours in the release, asked for the real links.
    communities : float
        1 − adjusted Rand index of the Louvain communities.
    """

    attributes: float
    links: float
    degree: float
    strength: float
    clustering: float
    prediction: float
    communities: float

    def total(self, weights: Mapping[str, float] | None = None) -> float:
        """Return the weighted mean (default: all alike)."""
        names = [part.name for part in fields(self)]
        for name in weights or {}:
            if name not in names:
                raise InputError(f"utility: {name!r} is no loss. Losses are {names}.")
        shares = [(weights or {}).get(name, 1.0) for name in names]
        return float(np.average([getattr(self, name) for name in names], weights=shares))


def utility_loss(
    network: Network, release: Network, *, seed: int = 0, node_type: str | None = None
) -> UtilityLoss:
    """Compare a release with the network it was made from.

    Parameters
    ----------
    network, release : Network
        With the same users in the same order: measure before ids are randomised.
    seed : int
        For Louvain and the sampled pairs.
    node_type : str, optional
    """
    node_type = target_type(network, node_type)
    if network.size(node_type) != release.size(node_type):
        raise InputError("utility: the release has other users than the network.")
    names = own_links(network.schema, node_type)
    published = set(release.links)
    n = network.size(node_type)
    real, shown = _structure(network, release, seed, node_type)
    links, degree, strength = [], [], []
    for name in names:
        old = network.links[name]
        if name not in published:
            links.append(1.0)
            degree.append(1.0)
            strength += [1.0] * (old.strength is not None)
            continue
        new = release.links[name]
        links.append(_jaccard_distance(old.matrix(n), new.matrix(n)))
        degree.append(_distance(old.out_degree, new.out_degree))
        if old.strength is not None:
            strength.append(1.0 if new.strength is None else _distance(old.strength, new.strength))
    before, after = _prediction(real, real, seed), _prediction(shown, real, seed)
    return UtilityLoss(
        attributes=_attribute_loss(network, release, node_type),
        links=float(np.mean(links)) if links else 0.0,
        degree=float(np.mean(degree)) if degree else 0.0,
        strength=float(np.mean(strength)) if strength else 0.0,
        clustering=_distance(_clustering(real), _clustering(shown)),
        # Where the predictor is no better than chance there is nothing to lose.
        prediction=float(np.clip(1 - (after - 0.5) / (before - 0.5), 0, 1))
        if before > 0.5
        else 0.0,
        communities=float(
            1 - max(0.0, adjusted_rand_score(_louvain(real, seed), _louvain(shown, seed)))
        ),
    )


def _structure(
    network: Network, release: Network, seed: int, node_type: str
) -> tuple[csr_array, csr_array]:
    """Return who is linked with whom in both, among a sample of users if there are many."""
    if network.size(node_type) > STRUCTURE_USERS:
        own = own_links(network.schema, node_type)
        mode = "snowball" if any(len(network.links[name]) for name in own) else "uniform"
        part = sample(network, STRUCTURE_USERS, mode=mode, node_type=node_type, seed=seed)
        network, release = part, by_ids(release, part.ids(node_type), node_type=node_type)
    return neighbours(network, node_type), neighbours(release, node_type)


def entropy(column: pa.ChunkedArray) -> float:
    """Shannon entropy of a column's values, in bits."""
    counts = pc.value_counts(column.combine_chunks()).field("counts").to_numpy()
    return float(stats.entropy(counts, base=2))


def _attribute_loss(network: Network, release: Network, node_type: str) -> float:
    losses = []
    for name in network.schema.nodes[node_type]:
        whole = entropy(network.nodes[node_type].column(name))
        table = release.nodes[node_type]
        left = entropy(table.column(name)) if name in table.column_names else 0.0
        losses.append(max(0.0, 1 - left / whole) if whole else 0.0)
    return float(np.mean(losses)) if losses else 0.0


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    if not len(a) or not len(b):
        return float(len(a) != len(b))
    points = np.unique(np.concatenate([a, b]))
    below = [np.searchsorted(np.sort(x), points, side="right") / len(x) for x in (a, b)]
    return float(np.abs(below[0] - below[1]).max())


def _jaccard_distance(a: csr_array, b: csr_array) -> float:
    both = a.multiply(b).nnz
    either = a.nnz + b.nnz - both
    return 1 - both / either if either else 0.0


def _simple(around: csr_array) -> csr_array:
    """Return the undirected graph: ones, no self-links."""
    graph = csr_array(around > 0).astype(np.float64)
    graph.setdiag(0)
    graph.eliminate_zeros()
    return graph


def _clustering(around: csr_array) -> np.ndarray:
    graph = _simple(around)
    degree = graph.sum(axis=1)
    triangles = np.asarray((graph @ graph).multiply(graph).sum(axis=1)).ravel()
    return np.divide(triangles, degree * (degree - 1), where=degree > 1, out=np.zeros(len(degree)))


def _prediction(shown: csr_array, real: csr_array, seed: int, pairs: int = 2000) -> float:
    """AUC of common neighbours in `shown` at telling real links from pairs without one."""
    graph, truth = _simple(shown), _simple(real).tocoo()
    n = graph.shape[0]
    if not truth.nnz or truth.nnz >= n * (n - 1):
        return 0.5
    rng = np.random.default_rng(seed)
    pick = rng.integers(truth.nnz, size=pairs)
    a, b = rng.integers(n, size=(2, pairs))
    linked = np.asarray(csr_array(truth)[a, b]).ravel() > 0
    none = ~linked & (a != b)
    left = np.concatenate([truth.row[pick], a[none]])
    right = np.concatenate([truth.col[pick], b[none]])
    score = np.asarray(graph[left].multiply(graph[right]).sum(axis=1)).ravel()
    label = np.repeat([1, 0], [pairs, int(none.sum())])
    return float(roc_auc_score(label, score)) if none.any() else 0.5


def _louvain(around: csr_array, seed: int) -> np.ndarray:
    graph = networkx.from_scipy_sparse_array(csr_array(around))
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    label = np.empty(around.shape[0], np.int64)
    for number, group in enumerate(networkx.community.louvain_communities(graph, seed=seed)):
        label[list(group)] = number
    return label
