"""Latent Dirichlet allocation by collapsed Gibbs sampling, the same at any number of threads."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from telic.data.object_storage import Place
from telic.errors import InputError, expect_whole
from telic.kernels import kernel
from telic.scale import Executor
from telic.specialty.discovery.gibbs_rounds import TopicModel, averaged_counts, cut

MAX_TOPICS = 2**15 - 1
"""A token's topic is stored in two bytes."""
PRIORS = 1e-6, 1e6
"""Least and greatest `alpha` and `beta`. A word that occurs once is drawn about 1 / beta times
before it leaves its topic, and sums with far greater priors overflow."""


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
        K, at most `MAX_TOPICS`; the dissertation uses 30.
    alpha : float
        Dirichlet prior of a document's topic shares, within `PRIORS`.
    beta : float
        Dirichlet prior of a topic's words, within `PRIORS`.
    max_iter : int
        Passes over all tokens.
    shards : int
        Parts into which the documents are cut, for an engine to work on side by side. Each samples
        its documents given the topics that the others had at the end of the last pass, so it is a
        little behind: the number of shards is part of the result. Neither one shard nor several
        are exact Gibbs sampling (see Notes).
    random_state : int
    n_jobs : int
        Does not change the result.

    Attributes
    ----------
    components_ : ndarray of shape (n_topics, n_words)
        P(word | topic), from counts averaged over the last sweeps.

    Notes
    -----
    Several shards are approximate distributed LDA (AD-LDA; Newman, Asuncion, Smyth and Welling,
    2009). Their chain has a stationary distribution of its own, which is not the posterior, but
    finds topics as well. Within a shard, too, the counts of words stand still for a thirty-second
    of its documents.

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
        shards: int = 1,
        random_state: int = 0,
        n_jobs: int = 1,
    ) -> None:
        self.n_topics = n_topics
        self.alpha = alpha
        self.beta = beta
        self.max_iter = max_iter
        self.shards = shards
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: None = None,
        *,
        executor: Executor | None = None,
        work: str | Place | None = None,
    ) -> "GibbsLDA":
        """Sample the topics of documents.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_documents, n_words)
            Whole counts, not negative.
        y : ignored
        executor : telic.scale.Executor, optional
            Works on the shards side by side; the topics are the same.
        work : path, optional
            Needed with an executor: a folder for these documents, which every worker reaches. The
            same call goes on there if it was interrupted.
        """
        self._check()
        X = _counts(X)
        start, words = _tokens(X)
        if not len(words):
            raise InputError("no document has a word, so there are no topics to find.")
        model = TopicModel.of(
            X.shape[1], self.n_topics, self.alpha, self.beta, self.max_iter, self.random_state
        )
        shards = cut(start, words, self.shards)
        counts = averaged_counts(model, shards, threads=self.n_jobs, executor=executor, work=work)
        smoothed = counts + self.beta
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
        documents = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data
        model = weight, prior, max_iter

        def fold(t: int) -> None:
            new = np.empty(self.n_topics)
            _fold_in(parts[t], parts[t + 1], *documents, *model, shares, new)

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

    def _check(self) -> None:
        counts = ("n_topics", "max_iter", "shards", "n_jobs")
        expect_whole(1, **{name: getattr(self, name) for name in counts})
        if self.n_topics > MAX_TOPICS:
            raise InputError(f"n_topics is {self.n_topics}, expected at most {MAX_TOPICS}.")
        least, most = PRIORS
        for name in ("alpha", "beta"):
            if not least <= getattr(self, name) <= most:
                raise InputError(
                    f"{name} is {getattr(self, name)}, expected a number from {least} to {most:g}."
                )


def choose_n_topics(
    X: Any,
    candidates: list[int],
    *,
    held_out: float = 0.1,
    seed: int = 0,
    executor: Executor | None = None,
    work: str | Place | None = None,
    **options: object,
) -> tuple[int, dict[int, float]]:
    """Choose the number of topics by held-out document-completion perplexity.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_documents, n_words)
    candidates : list of int
    held_out : float
        Share of documents kept out of fitting.
    seed : int
    executor, work
        As in `GibbsLDA.fit`.
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
    found = {}
    for k in candidates:
        model = GibbsLDA(n_topics=k, random_state=seed, **options)  # type: ignore[arg-type]
        found[k] = model.fit(X[~out], executor=executor, work=work).perplexity(X[out])
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
