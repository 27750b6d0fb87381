"""What users ask of a network, asked of its release: communities, rankings, a trained model.

A release is read as well as it can be: a link that is published in some way counts by how strong
links so published really are on average, which for fake links that can be told is nothing.
"""

import networkx
import numpy as np
from scipy import stats
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from telic.hin import Links, Network
from telic.privacy.protected import own_links

TRAINED_ON = 4000
"""Pairs of users, with and without a link alike, that a model is trained or tested on."""


def readings(
    network: Network, release: Network, node_type: str
) -> tuple[csr_array, csr_array, csr_array]:
    """Return how strongly users are linked: really, as the release is best read, and how surely.

    Parameters
    ----------
    network, release : Network
        With the same nodes in the same order.
    node_type : str

    Returns
    -------
    real, read, sure : sparse matrices, shape (n, n)
        Sums over link types: real strengths; E[real strength | what is published of the pair];
        P(the pair is linked | what is published of it). Pairs of which nothing is published: 0.
    """
    n = network.size(node_type)
    real, read, sure = (csr_array((n, n)) for _ in range(3))
    for name in own_links(network.schema, node_type):
        old = network.links[name]
        real = real + old.matrix(n).astype(float)
        if name not in release.links or not len(release.links[name]):
            continue
        new = release.links[name]
        strength, linked = _best_reading(old, new, n)
        read = read + csr_array((strength, new.indices, new.indptr), shape=(n, n))
        sure = sure + csr_array((linked, new.indices, new.indptr), shape=(n, n))
    return csr_array(real), csr_array(read), csr_array(sure)


def _best_reading(old: Links, new: Links, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Give for each published link the mean real strength, and share of real links, of its like."""
    places = new.sources * np.int64(n) + new.indices
    real = old.sources * np.int64(n) + old.indices
    at = np.searchsorted(real, places)
    there = np.append(real, -1)[at] == places
    strength = np.ones(len(old)) if old.strength is None else old.strength.astype(float)
    was = np.where(there, np.append(strength, 0.0)[at], 0.0)
    shown = np.zeros(len(new), int) if new.strength is None else new.strength
    like = np.unique(shown, return_inverse=True)[1]
    many = np.bincount(like)
    return (np.bincount(like, was) / many)[like], (np.bincount(like, there) / many)[like]


def community_loss(real: csr_array, read: csr_array, seed: int) -> float:
    """1 − adjusted Rand index of the Louvain communities, links weighed by their strengths."""
    return float(1 - max(0.0, adjusted_rand_score(_louvain(real, seed), _louvain(read, seed))))


def _louvain(around: csr_array, seed: int) -> np.ndarray:
    graph = networkx.from_scipy_sparse_array(csr_array(around + around.T))
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    label = np.empty(around.shape[0], np.int64)
    for number, group in enumerate(networkx.community.louvain_communities(graph, seed=seed)):
        label[list(group)] = number
    return label


def ranking_loss(real: csr_array, read: csr_array) -> float:
    """1 − Spearman's correlation of the users' PageRank, links weighed by their strengths."""
    was, now = pagerank(real), pagerank(read)
    if (was == now).all():
        return 0.0
    if np.ptp(was) == 0 or np.ptp(now) == 0:  # nobody is ranked above anybody
        return float(np.ptp(was) > 0)
    return float(np.clip(1 - stats.spearmanr(was, now).statistic, 0, 1))


def pagerank(links: csr_array, damping: float = 0.85, steps: int = 60) -> np.ndarray:
    """Rank nodes by weighted links; rounded, so that equal nodes are equal.

    Examples
    --------
    >>> pagerank(csr_array(np.array([[0, 1], [0, 0]]))).round(2).tolist()
    [0.35, 0.65]
    """
    n = links.shape[0]
    out = links.sum(axis=1)
    share = np.divide(1, out, out=np.zeros(n), where=out > 0)
    rank = np.full(n, 1 / max(n, 1))
    for _ in range(steps):
        lost = rank[out == 0].sum()
        rank = (1 - damping) / n + damping * (links.T @ (rank * share) + lost / n)
    return np.round(rank, 12)


def model_loss(real: csr_array, read: csr_array, sure: csr_array, seed: int) -> float:
    """Share of a link predictor's advantage over chance (AUC − ½) that is gone.

    A logistic regression on paths of length two, the reverse link and both users' links is trained
    on one half of the users and asked for the real links of the other half: once on the network,
    once on the release.
    """
    n = real.shape[0]
    if n < 2:  # nobody is in one of the halves
        return 0.0
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    truth = csr_array(real > 0).astype(float)
    learnt, asked = (_pairs(truth, half, rng) for half in (order[: n // 2], order[n // 2 :]))
    label = _at(truth, asked)
    if min(len(np.unique(x)) for x in (_at(truth, learnt), label)) < 2:
        return 0.0
    before = _auc(real, truth, learnt, asked, label)
    after = _auc(read, sure, learnt, asked, label)
    return float(np.clip(1 - (after - 0.5) / (before - 0.5), 0, 1)) if before > 0.5 else 0.0


def _auc(
    links: csr_array, sure: csr_array, learnt: np.ndarray, asked: np.ndarray, label: np.ndarray
) -> float:
    likely = np.clip(_at(sure, learnt), 0, 1)
    if not 0 < likely.mean() < 1 or np.ptp(likely) == 0:
        return 0.5
    seen = _features(links, learnt)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    # A pair is linked with some probability: it teaches both answers, weighed by it.
    model.fit(
        np.vstack([seen, seen]),
        np.repeat([1, 0], len(seen)),
        logisticregression__sample_weight=np.concatenate([likely, 1 - likely]),
    )
    return float(roc_auc_score(label, model.decision_function(_features(links, asked))))


def _pairs(truth: csr_array, users: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw pairs of users, the first among `users`: as many linked as not, none with itself."""
    rows, columns = truth[users].nonzero()
    linked = np.stack([users[rows], columns])
    pick = rng.permutation(linked.shape[1])[: TRAINED_ON // 2]
    drawn = np.stack(
        [rng.choice(users, TRAINED_ON // 2), rng.integers(truth.shape[0], size=TRAINED_ON // 2)]
    )
    none = drawn[:, _at(truth, drawn) == 0][:, : max(len(pick), 1)]
    both = np.hstack([linked[:, pick], none])
    return both[:, both[0] != both[1]]


def _features(links: csr_array, pairs: np.ndarray) -> np.ndarray:
    either = links + links.T
    left, right = pairs
    paths = either[left].multiply(either[right]).sum(axis=1)
    ends = links.sum(axis=1)[left], links.sum(axis=0)[right]
    return np.log1p(np.stack([paths, _at(links, pairs[::-1]), *ends], axis=1))


def _at(matrix: csr_array, pairs: np.ndarray) -> np.ndarray:
    return np.asarray(matrix[pairs[0], pairs[1]]).ravel()
