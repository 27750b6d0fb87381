from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.special import gammaln

from telic.errors import InputError
from telic.specialty.discovery.gibbs_lda import GibbsLDA
from telic.specialty.discovery.gibbs_rounds import (
    AVERAGED,
    BLOCKS,
    TopicModel,
    _added,
    cut,
    one_round,
    sample_documents,
    start_topics,
)

WORDS, BETA = np.array([0, 0, 0, 1, 1, 0], dtype=np.int32), 0.3
"""One token per document, of two words and two topics."""
STATES = np.array(list(product([0, 1], repeat=6)))
"""Whatever topics the six tokens may have."""
TOGETHER = np.stack([STATES[:, 0] == STATES[:, 1], STATES[:, 0] == STATES[:, 3]])
"""Whether tokens of one word, and of two, share a topic."""


def posterior():
    """P(state), by its definition."""
    count = np.array([[((k == STATES) & (w == WORDS)).sum(axis=1) for w in (0, 1)] for k in (0, 1)])
    of_topic = gammaln(count + BETA).sum(axis=1) - gammaln(count.sum(axis=1) + 2 * BETA)
    p = np.exp(of_topic.sum(axis=0))
    return p / p.sum()


def stationary(shards):
    """P(state) of a chain in which a token sees the new topics of its own shard before it alone."""
    ends = np.linspace(0, 6, shards + 1).astype(int).tolist()
    states = [tuple(state) for state in STATES.tolist()]

    @cache
    def chances(d, others):
        """P(topic) of token d beside the topics of the others."""
        seen, word = np.array(others), np.delete(WORDS, d)
        q = [
            (((seen == k) & (word == WORDS[d])).sum() + BETA) / ((seen == k).sum() + 2 * BETA)
            for k in (0, 1)
        ]
        return q / np.sum(q)

    step = np.ones((64, 64))
    for s, old in enumerate(states):
        for first, last in pairwise(ends):
            for d in range(first, last):
                for n, new in enumerate(states):
                    step[s, n] *= chances(d, old[:first] + new[first:d] + old[d + 1 :])[new[d]]
    return np.linalg.matrix_power(step, 1000)[0]


@pytest.mark.parametrize(("shards", "departure"), [(1, 0), (2, 0.073), (6, 0.101)])
def test_one_shard_samples_the_exact_posterior_and_several_their_own_chain(shards, departure):
    expected = TOGETHER @ stationary(shards)
    found = np.abs(expected - TOGETHER @ posterior()).max()
    assert found == pytest.approx(departure, abs=1e-3)
    model = TopicModel.of(2, 2, 0.5, BETA, 3000, 7)
    parts = cut(np.arange(7), WORDS, shards)
    states, seen = [None] * shards, np.zeros(2)
    shared = {"count": np.zeros((2, 2), np.int64), "summed": 0, "rounds": 0}
    for number in range(1, 3002):
        messages = []
        for s, part in enumerate(parts):
            states[s], message = one_round(model, part, states[s], shared, number)
            messages.append(message)
        shared, _ = _added(3000, shared, messages)
        topics = np.concatenate([state["topics"] for state in states])
        seen += [topics[0] == topics[1], topics[0] == topics[3]]
    np.testing.assert_allclose(seen / 3001, expected, atol=0.04)


def by_definition(X, shards, sweeps, seed, *, n_topics=3, alpha=0.4, beta=0.2):
    """AD-LDA with all documents in one array: only counts tell the shards apart."""
    model = TopicModel.of(X.shape[1], n_topics, alpha, beta, sweeps, seed)
    words = np.concatenate([np.repeat(np.arange(X.shape[1]), row) for row in X]).astype(np.int32)
    start = np.concatenate([[0], np.cumsum(X.sum(axis=1))])
    topics = np.empty(len(words), np.int16)
    start_topics(0, len(X), start, topics, n_topics, model.seeds[-1])
    in_document, active = np.zeros(n_topics, np.int32), np.empty(n_topics, np.int16)
    kept = []
    for sweep in range(sweeps):
        before = np.zeros((X.shape[1], n_topics), np.int64)
        np.add.at(before, (words, topics), 1)
        for first, last in pairwise(np.linspace(0, len(X), shards + 1).astype(int)):
            count = before.copy()
            blocks = min(BLOCKS, last - first)
            for a, b in pairwise(np.linspace(0, last - first, blocks + 1).astype(int)):
                change, tables = np.zeros(count.shape, np.int32), model.tables(count)
                own = (change, in_document, active, model.seeds[sweep])
                sample_documents(first + a, first + b, start, words, topics, *tables, *own)
                count += change
        after = np.zeros_like(before)
        np.add.at(after, (words, topics), 1)
        kept.append(after)
    smoothed = np.mean(kept[-AVERAGED:], axis=0) + beta
    return (smoothed / smoothed.sum(axis=0)).T


@pytest.mark.parametrize(("shards", "sweeps"), [(1, 13), (1, 2), (3, 13), (50, 4)])
def test_shards_differ_from_all_documents_in_one_array_by_their_counts_alone(shards, sweeps):
    X = np.random.default_rng(0).integers(0, 3, (50, 6))
    X[7] = 0
    options = {"n_topics": 3, "alpha": 0.4, "beta": 0.2, "max_iter": sweeps, "random_state": 9}
    expected = by_definition(X, shards, sweeps, 9)
    for threads in (1, 2):
        found = GibbsLDA(shards=shards, n_jobs=threads, **options).fit(X)
        np.testing.assert_array_equal(found.components_, expected)


def test_shards_are_rows_of_documents_and_no_more_than_there_are():
    start, words = np.array([0, 2, 2, 5, 6, 9]), np.arange(9, dtype=np.int32)
    parts = cut(start, words, 3)
    assert [part.first for part in parts] == [0, 1, 3]
    assert [part.start.tolist() for part in parts] == [[0, 2], [0, 0, 3], [0, 1, 4]]
    np.testing.assert_array_equal(np.concatenate([part.words for part in parts]), words)
    with pytest.raises(InputError, match="shards is 6, expected at most 5, the number of docum"):
        cut(start, words, 6)


def conditional(words, old, count, alpha, beta):
    """P(new topics) of a document whose tokens are resampled in turn, by enumeration.

    A token sees its document without itself, and the word counts of the block's start without
    itself (equation 5 of Griffiths and Steyvers, 2004).
    """
    n_words, n_topics = count.shape
    probability = {}
    for new in product(range(n_topics), repeat=len(words)):
        p = 1.0
        for i, w in enumerate(words):
            n = count.astype(float)
            n[w, old[i]] -= 1
            others = np.bincount([*new[:i], *old[i + 1 :]], minlength=n_topics)
            q = (others + alpha) * (n[w] + beta) / (n.sum(axis=0) + n_words * beta)
            p *= q[new[i]] / q.sum()
        probability[new] = p
    return probability


@pytest.mark.parametrize(
    ("words", "old"), [([0], [1]), ([0, 0], [0, 1]), ([1, 0, 1], [2, 0, 2]), ([2, 2, 0], [1, 1, 1])]
)
def test_a_document_is_resampled_from_the_exact_conditional(words, old):
    n_topics, copies, alpha, beta = 3, 200_000, 0.4, 0.2
    count = np.array([[2, 2, 1], [1, 0, 3], [0, 4, 1]], dtype=np.int64)
    tables = TopicModel.of(3, n_topics, alpha, beta, 1, 0).tables(count)
    topics = np.tile(np.array(old, np.int16), copies)
    start = np.arange(0, copies * len(words) + 1, len(words))
    change = np.zeros((3, n_topics), np.int32)
    sample_documents(
        0,
        copies,
        start,
        np.tile(np.array(words, np.int32), copies),
        topics,
        *tables,
        change,
        np.zeros(n_topics, np.int32),
        np.empty(n_topics, np.int16),
        11,
    )
    drawn = topics.reshape(copies, len(words))
    code = drawn @ n_topics ** np.arange(len(words))
    for new, p in conditional(words, old, count, alpha, beta).items():
        seen = (code == np.array(new) @ n_topics ** np.arange(len(words))).mean()
        assert abs(seen - p) < 5 * np.sqrt(p * (1 - p) / copies) + 1e-12, new
    # What moved is what is reported to the word counts.
    expected = np.zeros_like(change)
    for i, w in enumerate(words):
        expected[w] += np.bincount(drawn[:, i], minlength=n_topics)
        expected[w, old[i]] -= copies
    np.testing.assert_array_equal(change, expected)
