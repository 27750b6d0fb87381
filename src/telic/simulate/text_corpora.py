"""Stand-ins for rcv1 and E2006-tfidf: bags of words of the same shape from a topic model."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from telic.kernels import kernel
from telic.optim import sampling


class Corpus(NamedTuple):
    """Documents and what is to be predicted from them."""

    X: sparse.csr_matrix
    """tf-idf weights (1 + log tf) log(n / df), rows of unit norm."""
    y: np.ndarray
    """Labels −1 and +1, or a number near −3.5 as the log volatilities of E2006 are."""


def rcv1_like(*, n: int = 20_242, d: int = 47_236, words: float = 74.0, seed: int = 0) -> Corpus:
    """Documents of rcv1's shape with a binary label.

    Parameters
    ----------
    n, d : int
        Documents and vocabulary; the defaults are those of rcv1's training set.
    words : float
        Mean number of distinct words in a document.
    seed : int

    Examples
    --------
    >>> corpus = rcv1_like(n=50, d=200, words=10.0)
    >>> corpus.X.shape, sorted(set(corpus.y.tolist()))
    ((50, 200), [-1.0, 1.0])
    """
    X, score, rng = _documents(n, d, words, seed)
    return Corpus(X, np.where(score + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0))


def e2006_like(
    *, n: int = 16_087, d: int = 150_360, words: float = 1240.0, seed: int = 0
) -> Corpus:
    """Documents of E2006-tfidf's shape with a numeric target; parameters as in `rcv1_like`."""
    X, score, rng = _documents(n, d, words, seed)
    return Corpus(X, -3.5 + 0.5 * score + 0.3 * rng.normal(size=n))


def _documents(
    n: int, d: int, words: float, seed: int, topics: int = 30
) -> tuple[sparse.csr_matrix, np.ndarray, np.random.Generator]:
    """Draw the tf-idf matrix, and a standardised score of each document's mixture of topics."""
    rng = np.random.default_rng(seed)
    # Zipf-Mandelbrot frequencies, bent by each topic in its own way.
    common = 1.0 / (np.arange(d) + 2.7) ** 1.05
    threshold, alias = np.empty((topics, d), np.float32), np.empty((topics, d), np.int32)
    for topic in range(topics):
        p = common * np.exp(1.5 * rng.normal(size=d))
        threshold[topic], alias[topic] = sampling.alias_table(p / p.sum())
    mixture = rng.dirichlet(np.full(topics, 0.1), size=n)
    sizes = np.clip(rng.lognormal(np.log(words) - 0.125, 0.5, size=n), 1, 0.5 * d)
    indptr = np.concatenate([[0], np.cumsum(sizes.astype(np.int64))])
    indices, counts = np.empty(indptr[-1], np.int32), np.zeros(indptr[-1])
    _draw_words(
        *(threshold, alias, np.cumsum(mixture, axis=1), indptr, indices, counts),
        *(np.full(d, -1, np.int64), sampling.random_state(rng)),
    )
    X = sparse.csr_matrix((counts, indices, indptr), shape=(n, d))
    X.sort_indices()
    seen = np.bincount(X.indices, minlength=d)
    X.data = (1.0 + np.log(X.data)) * np.log(n / np.maximum(seen, 1))[X.indices]
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(np.maximum(norms, 1e-12), np.diff(X.indptr))
    score = mixture @ rng.normal(size=topics)
    return X, (score - score.mean()) / score.std(), rng


@kernel
def _draw_words(threshold, alias, cumulative, indptr, indices, counts, place, state):
    """Draw words until each document has its number of distinct ones."""
    for i in range(indptr.size - 1):
        filled = indptr[i]
        while filled < indptr[i + 1]:
            u = sampling.uniform(state)
            topic = 0
            while topic < cumulative.shape[1] - 1 and cumulative[i, topic] < u:
                topic += 1
            word = sampling.draw(state, place.size, threshold[topic], alias[topic])
            if place[word] < indptr[i]:
                place[word] = filled
                indices[filled] = word
                filled += 1
            counts[place[word]] += 1.0
