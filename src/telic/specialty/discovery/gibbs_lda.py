"""Latent Dirichlet allocation by collapsed Gibbs sampling, the same at any number of threads.

A document's topics are sampled given counts that change only between blocks of documents, so
documents of one block do not wait for each other: threads share them out, their integer changes
are added up afterwards, and every document draws from a random stream of its own. The token's own
count is taken out exactly, by rejection (see `_sample_documents`).
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, repeat
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from telic.errors import InputError
from telic.kernels import kernel

BLOCKS = 32
"""Times per sweep that the topics' word counts are brought up to date."""
AVERAGED = 10
"""Last sweeps whose counts are averaged into the topics."""


@kernel
def _next(state):
    """Advance a splitmix64 stream; returns the new state and a uniform number in [0, 1)."""
    state += np.uint64(0x9E3779B97F4A7C15)
    z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state, float((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 1.1102230246251565e-16


@kernel
def _start_topics(first, last, start, topics, n_topics, seed):
    """Give every token of documents first … last − 1 a random topic."""
    for d in range(first, last):
        state = np.uint64(seed) + np.uint64(d) * np.uint64(0xD1B54A32D192ED03)
        for i in range(start[d], start[d + 1]):
            state, u = _next(state)
            topics[i] = int(u * n_topics)


@kernel
def _sample_documents(
    first, last, start, words, topics, weight, prior_cumulative, keep, change, count, active, seed
):
    """Resample the topics of documents first … last − 1, given weight[w, k] ≈ P(w | k).

    A topic is proposed ∝ (n_dk + α_k) weight[w, k], with the token taken out of the document but
    not of the word counts; a proposal of the token's old topic k is kept with probability
    keep[w, k], the factor by which taking the token out shrinks the weight. This draws exactly
    from the collapsed conditional given the word counts of the block's start.
    """
    n_topics = weight.shape[1]
    for d in range(first, last):
        state = np.uint64(seed) + np.uint64(d) * np.uint64(0xD1B54A32D192ED03)
        n_active = 0
        for i in range(start[d], start[d + 1]):
            k = topics[i]
            if count[k] == 0:
                active[n_active] = k
                n_active += 1
            count[k] += 1
        for i in range(start[d], start[d + 1]):
            w, old = words[i], topics[i]
            count[old] -= 1
            own = 0.0
            for a in range(n_active):
                own += count[active[a]] * weight[w, active[a]]
            total = own + prior_cumulative[w, n_topics - 1]
            while True:
                state, u = _next(state)
                u *= total
                if u < own:
                    new = old
                    for a in range(n_active):
                        if count[active[a]] > 0:
                            new = active[a]
                            u -= count[new] * weight[w, new]
                            if u < 0.0:
                                break
                else:
                    u -= own
                    low, high = 0, n_topics - 1
                    while low < high:
                        middle = (low + high) >> 1
                        if prior_cumulative[w, middle] > u:
                            high = middle
                        else:
                            low = middle + 1
                    new = low
                if new != old:
                    break
                state, u = _next(state)
                if u < keep[w, old]:
                    break
            if new != old:
                change[w, old] -= 1
                change[w, new] += 1
                topics[i] = new
                listed = False
                for a in range(n_active):
                    listed = listed or active[a] == new
                if not listed:
                    active[n_active] = new
                    n_active += 1
            count[new] += 1
        for a in range(n_active):
            count[active[a]] = 0


@kernel
def _fold_in(first, last, start, words, times, weight, prior, rounds, mixture, new):
    """Fixed point of mixture_k ∝ α_k + Σ_w times_w P(k | w, mixture) for each document."""
    n_topics = len(prior)
    for d in range(first, last):
        for k in range(n_topics):
            mixture[d, k] = 1.0 / n_topics
        for _ in range(rounds):
            total = 0.0
            for k in range(n_topics):
                new[k] = prior[k]
                total += prior[k]
            for i in range(start[d], start[d + 1]):
                w = words[i]
                explained = 0.0
                for k in range(n_topics):
                    explained += mixture[d, k] * weight[w, k]
                scale = times[i] / explained
                for k in range(n_topics):
                    new[k] += scale * mixture[d, k] * weight[w, k]
                total += times[i]
            for k in range(n_topics):
                mixture[d, k] = new[k] / total


class GibbsLDA(TransformerMixin, BaseEstimator):
    """Topics of documents given as word counts.

    Parameters
    ----------
    n_topics : int
        K; the dissertation uses 30.
    alpha : float
        Dirichlet prior of a document's topic shares, > 0.
    beta : float
        Dirichlet prior of a topic's words, > 0.
    max_iter : int
        Passes over all tokens.
    random_state : int
    n_jobs : int
        Does not change the result.

    Attributes
    ----------
    components_ : ndarray of shape (n_topics, n_words)
        P(word | topic), from counts averaged over the last sweeps.

    Examples
    --------
    >>> import numpy as np
    >>> counts = np.array([[5, 5, 0, 0], [4, 6, 0, 0], [0, 0, 5, 5], [0, 0, 7, 3]] * 10)
    >>> shares = GibbsLDA(n_topics=2, max_iter=50).fit_transform(counts)
    >>> bool((shares.argmax(axis=1)[0] == shares.argmax(axis=1)[::4]).all())
    True
    """

    def __init__(
        self,
        *,
        n_topics: int = 30,
        alpha: float = 0.1,
        beta: float = 0.01,
        max_iter: int = 100,
        random_state: int = 0,
        n_jobs: int = 1,
    ) -> None:
        self.n_topics = n_topics
        self.alpha = alpha
        self.beta = beta
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: None = None) -> "GibbsLDA":
        """Sample the topics of documents.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_documents, n_words)
            Whole counts, not negative.
        y : ignored
        """
        self._check()
        X = _counts(X)
        n_documents, n_words = X.shape
        start, words = _tokens(X)
        if not len(words):
            raise InputError("no document has a word, so there are no topics to find.")
        topics = np.empty(len(words), dtype=np.int16)
        rng = np.random.default_rng(self.random_state)
        seeds = rng.integers(0, 2**62, self.max_iter + 1)
        blocks = np.linspace(0, n_documents, min(BLOCKS, n_documents) + 1).astype(int)
        share_out = [np.linspace(a, b, self.n_jobs + 1).astype(int) for a, b in pairwise(blocks)]
        scratch = [
            (
                np.zeros((n_words, self.n_topics), np.int32),
                np.zeros(self.n_topics, np.int32),
                np.empty(self.n_topics, np.int16),
            )
            for _ in range(self.n_jobs)
        ]
        _start_topics(0, n_documents, start, topics, self.n_topics, seeds[-1])
        count = np.zeros((n_words, self.n_topics), np.int64)
        np.add.at(count, (words, topics), 1)
        summed = np.zeros_like(count)
        averaged = min(AVERAGED, self.max_iter)

        def sample(t: int, parts: np.ndarray, tables: tuple, seed: int) -> None:
            change, in_document, active = scratch[t]
            change[:] = 0
            own = (start, words, topics, *tables, change, in_document, active, seed)
            _sample_documents(parts[t], parts[t + 1], *own)

        threads = range(self.n_jobs)
        with ThreadPoolExecutor(self.n_jobs) as pool:
            for sweep in range(self.max_iter):
                for parts in share_out:
                    tables = self._tables(count)
                    list(pool.map(sample, threads, *map(repeat, (parts, tables, seeds[sweep]))))
                    for change, _, _ in scratch:
                        count += change
                if sweep >= self.max_iter - averaged:
                    summed += count
        smoothed = summed / averaged + self.beta
        self.components_ = (smoothed / smoothed.sum(axis=0)).T
        return self

    def transform(self, X: Any, *, max_iter: int = 20) -> np.ndarray:
        """Return the topic shares of documents, given the fitted topics.

        The deterministic fixed point of E[shares] under the token-wise posterior, the usual fast
        stand-in for sampling; a document without words gets equal shares.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_documents, n_words)
        max_iter : int
            Iterations of the fixed point.

        Returns
        -------
        ndarray of shape (n_documents, n_topics)
            Rows sum to 1.
        """
        check_is_fitted(self)
        X = _counts(X)
        if X.shape[1] != self.components_.shape[1]:
            raise InputError(
                f"documents have {X.shape[1]} words, the topics {self.components_.shape[1]}."
            )
        shares = np.empty((X.shape[0], self.n_topics))
        weight = np.ascontiguousarray(self.components_.T)
        prior = np.full(self.n_topics, float(self.alpha))
        parts = np.linspace(0, X.shape[0], self.n_jobs + 1).astype(int)
        start, words, times = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data

        def fold(t: int) -> None:
            _fold_in(
                parts[t],
                parts[t + 1],
                start,
                words,
                times,
                weight,
                prior,
                max_iter,
                shares,
                np.empty(self.n_topics),
            )

        with ThreadPoolExecutor(self.n_jobs) as pool:
            list(pool.map(fold, range(self.n_jobs)))
        return shares

    def perplexity(self, X: Any, *, random_state: int = 0) -> float:
        """Document-completion perplexity: half of each document is given, the other half scored.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_documents, n_words)
            Documents held out of `fit`.
        random_state : int
            Fixes the halves.

        Raises
        ------
        InputError
            If no word is left to score.
        """
        X = _counts(X)
        given = X.copy()
        rng = np.random.default_rng(random_state)
        given.data = rng.binomial(X.data.astype(np.int64), 0.5).astype(float)
        scored = (X - given).tocsr()
        scored.eliminate_zeros()
        given.eliminate_zeros()
        if not scored.nnz:
            raise InputError(
                f"{X.shape[0]} documents hold too few words to keep half of them for scoring. "
                "Give more documents."
            )
        shares = self.transform(given)
        document = np.repeat(np.arange(X.shape[0]), np.diff(scored.indptr))
        likelihood = np.zeros(scored.nnz)
        for k in range(self.n_topics):
            likelihood += shares[document, k] * self.components_[k, scored.indices]
        return float(np.exp(-(scored.data @ np.log(likelihood)) / scored.data.sum()))

    def _tables(self, count: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        total = count.sum(axis=0)
        floor = count.shape[0] * self.beta
        weight = (count + self.beta) / (total + floor)
        keep = (np.maximum(count - 1, 0) + self.beta) / (np.maximum(total - 1, 0) + floor) / weight
        return weight, np.cumsum(self.alpha * weight, axis=1), keep

    def _check(self) -> None:
        for name in ("n_topics", "max_iter", "n_jobs"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}, expected at least 1.")
        for name in ("alpha", "beta"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} is {getattr(self, name)}, expected a number above 0.")


def choose_n_topics(
    X: Any, candidates: list[int], *, held_out: float = 0.1, seed: int = 0, **options: object
) -> tuple[int, dict[int, float]]:
    """Choose the number of topics by held-out document-completion perplexity.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_documents, n_words)
    candidates : list of int
    held_out : float
        Share of documents kept out of fitting.
    seed : int
    **options
        For `GibbsLDA`.

    Returns
    -------
    best : int
    perplexity : dict
        Of each candidate.
    """
    X = _counts(X)
    out = np.random.default_rng(seed).random(X.shape[0]) < held_out
    found = {
        k: GibbsLDA(n_topics=k, random_state=seed, **options).fit(X[~out]).perplexity(X[out])  # type: ignore[arg-type]
        for k in candidates
    }
    return min(found, key=lambda k: found[k]), found


def _counts(X: Any) -> sparse.csr_array:
    matrix = sparse.csr_array(X, dtype=np.float64, copy=True)  # sorting works in place
    matrix.sum_duplicates()
    if matrix.nnz and (matrix.data.min() < 0 or (matrix.data % 1).any()):
        raise InputError("LDA needs whole counts that are not negative.")
    return matrix


def _tokens(X: sparse.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Start of each document and the word of each token."""
    times = X.data.astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(times)])
    return ends[X.indptr], np.repeat(X.indices.astype(np.int32), times)
