from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln
from sklearn.decomposition import LatentDirichletAllocation

from telic.errors import InputError
from telic.specialty.discovery.gibbs_lda import GibbsLDA, _sample_documents, choose_n_topics


@pytest.fixture(scope="module")
def planted():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(40, 0.05), size=4)
    shares = rng.dirichlet(np.full(4, 0.2), size=600)
    counts = np.stack([rng.multinomial(20, share @ topics) for share in shares])
    return topics, counts


def test_samples_the_exact_posterior():
    """One token per document: the sampler is then exact, and 2^6 states can be enumerated."""
    words = np.array([0, 0, 0, 1, 1, 0], dtype=np.int32)
    beta, states = 0.3, np.array(list(product([0, 1], repeat=6)))
    count = np.stack(
        [[((s == k) & (words == w)).sum(axis=1) for w in (0, 1)] for k in (0, 1) for s in [states]]
    )
    log_p = (gammaln(count + beta).sum(axis=1) - gammaln(count.sum(axis=1) + 2 * beta)).sum(axis=0)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    together = [p @ (states[:, 0] == states[:, 1]), p @ (states[:, 0] == states[:, 3])]

    model = GibbsLDA(n_topics=2, alpha=0.5, beta=beta)
    topics, start = np.zeros(6, np.int16), np.arange(7)
    number, active = np.zeros(2, np.int32), np.empty(2, np.int16)
    seen, sweeps = np.zeros(2), 3000
    for sweep in range(sweeps):
        for d in range(6):
            count = np.zeros((2, 2), np.int64)
            np.add.at(count, (words, topics), 1)
            change = np.zeros((2, 2), np.int32)
            tables = model._tables(count)
            _sample_documents(
                d, d + 1, start, words, topics, *tables, change, number, active, 7 * sweep
            )
        seen += [topics[0] == topics[1], topics[0] == topics[3]]
    np.testing.assert_allclose(seen / sweeps, together, atol=0.04)


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
    tables = GibbsLDA(n_topics=n_topics, alpha=alpha, beta=beta)._tables(count)
    topics = np.tile(np.array(old, np.int16), copies)
    start = np.arange(0, copies * len(words) + 1, len(words))
    change = np.zeros((3, n_topics), np.int32)
    _sample_documents(
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


def averaged_counts(model, times):
    """The word counts behind `components_`, from their definition and how often a word occurs."""
    c, beta = model.components_, model.beta
    total = np.linalg.lstsq(c.T, times + len(c) * beta, rcond=None)[0]
    return c * total[:, None] - beta


def test_topics_are_averaged_over_the_last_ten_sweeps():
    rng = np.random.default_rng(0)
    documents = rng.integers(0, 3, (12, 5))
    options = {"n_topics": 3, "alpha": 0.5, "beta": 0.5}
    for sweeps, number in ((1, 1), (4, 4), (25, 10)):
        model = GibbsLDA(max_iter=sweeps, **options).fit(documents)
        found = averaged_counts(model, documents.sum(axis=0))
        np.testing.assert_allclose(found.sum(axis=0), documents.sum(axis=0))
        # Sums of whole numbers, of that many and no fewer.
        for n in range(1, number + 1):
            whole = np.abs(n * found - np.round(n * found)).max() < 1e-6
            assert whole == (n == number)


def test_the_same_at_any_number_of_threads(planted):
    counts = planted[1]
    one, three = (GibbsLDA(n_topics=4, max_iter=8, n_jobs=t).fit(counts) for t in (1, 3))
    np.testing.assert_array_equal(one.components_, three.components_)
    np.testing.assert_array_equal(one.transform(counts), three.transform(counts))
    other = GibbsLDA(n_topics=4, max_iter=8, random_state=1).fit(counts)
    assert not np.array_equal(one.components_, other.components_)


def test_finds_planted_topics_as_well_as_an_independent_method(planted):
    topics, counts = planted
    model = GibbsLDA(n_topics=4, alpha=0.2, max_iter=80).fit(counts[:500])
    overlap = np.sqrt(model.components_) @ np.sqrt(topics).T
    assert (overlap.max(axis=1) > 0.97).all()
    assert len(set(overlap.argmax(axis=1))) == 4
    found = model.perplexity(counts[500:])
    theirs = LatentDirichletAllocation(
        4, doc_topic_prior=0.2, topic_word_prior=0.01, max_iter=30, random_state=0
    ).fit(counts[:500])
    model.components_ = theirs.components_ / theirs.components_.sum(axis=1, keepdims=True)
    assert found < 1.005 * model.perplexity(counts[500:])
    model.components_ = topics
    assert found < 1.03 * model.perplexity(counts[500:])


def test_folding_in_is_the_fixed_point(planted):
    topics, counts = planted
    model = GibbsLDA(n_topics=4, max_iter=1).fit(counts)
    model.components_ = topics + 1e-9
    share = model.transform(counts[:3], max_iter=2000)
    for d in range(3):
        posterior = share[d, :, None] * model.components_
        posterior /= posterior.sum(axis=0)
        expected = model.alpha + posterior @ counts[d]
        np.testing.assert_allclose(share[d], expected / expected.sum(), atol=1e-6)


def test_chooses_the_planted_number_of_topics(planted):
    best, found = choose_n_topics(planted[1], [2, 4], held_out=0.2, max_iter=40)
    assert best == 4
    assert found[4] < found[2]


@pytest.mark.parametrize(
    ("counts", "options", "message"),
    [
        ([[0.5, 1]], {}, "whole counts"),
        ([[-1, 1]], {}, "whole counts"),
        ([[0, 0]], {}, "no document has a word"),
        ([[1, 1]], {"n_topics": 0}, "n_topics is 0"),
        ([[1, 1]], {"alpha": 0}, "alpha is 0"),
    ],
)
def test_bad_input_is_named(counts, options, message):
    with pytest.raises(InputError, match=message):
        GibbsLDA(**options).fit(counts)


def test_perplexity_is_that_of_the_half_that_was_not_given(planted):
    topics, counts = planted
    model = GibbsLDA(n_topics=4, max_iter=1).fit(counts)
    model.components_ = topics + 1e-9
    some = counts[:40]
    given = np.zeros_like(some)
    given[some > 0] = np.random.default_rng(3).binomial(some[some > 0], 0.5)
    scored, likely = some - given, model.transform(given) @ model.components_
    expected = np.exp(-(scored * np.log(likely)).sum() / scored.sum())
    assert model.perplexity(some, random_state=3) == pytest.approx(expected)


def test_perplexity_needs_words_to_score():
    model = GibbsLDA(n_topics=2, max_iter=1).fit([[3, 1], [2, 2]])
    with pytest.raises(InputError, match="too few words"):
        model.perplexity(np.zeros((2, 2)))


def test_documents_of_other_words_are_refused():
    counts = np.eye(4, dtype=int)
    model = GibbsLDA(n_topics=2, max_iter=7).fit(counts)
    with pytest.raises(InputError, match="documents have 3 words, the topics 4"):
        model.transform(counts[:, :3])
