import numpy as np
import pytest
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.exceptions import NotFittedError

from telic.errors import InputError
from telic.specialty.discovery.gibbs_lda import GibbsLDA, choose_n_topics


@pytest.fixture(scope="module")
def planted():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(40, 0.05), size=4)
    shares = rng.dirichlet(np.full(4, 0.2), size=600)
    counts = np.stack([rng.multinomial(20, share @ topics) for share in shares])
    return topics, counts


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


def test_several_shards_find_planted_topics_as_well_as_one(planted):
    topics, counts = planted
    found = {}
    for shards in (1, 8):
        model = GibbsLDA(n_topics=4, alpha=0.2, max_iter=80, shards=shards).fit(counts[:500])
        overlap = np.sqrt(model.components_) @ np.sqrt(topics).T
        assert (overlap.max(axis=1) > 0.97).all()
        assert len(set(overlap.argmax(axis=1))) == 4
        found[shards] = model.perplexity(counts[500:])
    assert found[8] != found[1]
    assert found[8] < 1.005 * found[1]


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
        ([[1, 1]], {"shards": 0}, "shards is 0"),
        ([[1, 1]], {"shards": 2}, "shards is 2, expected at most 1"),
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


def test_topics_must_be_fitted_before_documents_are_read():
    with pytest.raises(NotFittedError):
        GibbsLDA(n_topics=2).transform(np.eye(4, dtype=int))
