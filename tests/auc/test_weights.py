"""Sample weights by what they mean: repeated rows, absent rows."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from telic.auc import (
    OAM,
    OPAUC,
    SOLAM,
    SPAM,
    SPDAM,
    VRSPAM,
    AUCClassifier,
    ConjugateGradientAUC,
    ExactAUC,
    PairwiseAUC,
    RegSOLAM,
    UniExp,
)
from telic.auc.drawn_rows import Draws
from telic.auc.objective import moments, objective
from telic.auc.thresholds import choose_threshold
from telic.errors import InputError

RNG = np.random.default_rng(1)
N = 300
X = RNG.normal(size=(N, 4)) * [1, 2, 0.5, 1] + 1
Y = X[:, 0] - X[:, 3] + RNG.normal(size=N) > 1.2
COUNTS = RNG.integers(0, 4, size=N)
BETA = 1e-2
OPTIMAL = [
    ExactAUC(BETA),
    ExactAUC(BETA, beta1=0.02),
    ConjugateGradientAUC(BETA),
    VRSPAM(BETA),
    VRSPAM(BETA, beta1=0.02),
    SPDAM(BETA),
    PairwiseAUC(BETA),
    PairwiseAUC(BETA, loss="logistic"),
    PairwiseAUC(BETA, loss="squared_hinge"),
    AUCClassifier(beta=BETA),
]
ROW_BY_ROW = [
    SPAM(BETA),
    SPAM(BETA, beta1=0.02),
    SOLAM(),
    RegSOLAM(BETA),
    OPAUC(BETA),
    OPAUC(BETA, rank=3),
    OAM("gra"),
    OAM("seq"),
    UniExp(BETA),
]


def seeded(model):
    model = clone(model)
    return model.set_params(random_state=0) if hasattr(model, "random_state") else model


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("model", OPTIMAL + ROW_BY_ROW, ids=str)
def test_whole_weights_are_repeated_rows_and_zero_is_absence(model, kind):
    order = RNG.permutation(N)
    weighted = seeded(model).fit(kind(X[order]), Y[order], COUNTS[order])
    repeated = seeded(model).fit(kind(np.repeat(X, COUNTS, axis=0)), np.repeat(Y, COUNTS))
    size = np.abs(repeated.coef_).max()
    assert weighted.coef_ == pytest.approx(repeated.coef_, abs=1e-5 * size)
    assert (weighted.predict(X) == repeated.predict(X)).mean() > 0.99
    plain = seeded(model).fit(kind(X), Y)
    assert np.abs(plain.coef_ - repeated.coef_).max() > 1e-3 * size  # they do something


@pytest.mark.parametrize("model", OPTIMAL + ROW_BY_ROW, ids=str)
def test_weights_that_are_all_one_are_no_weights(model):
    assert (seeded(model).fit(X, Y, np.ones(N)).coef_ == seeded(model).fit(X, Y).coef_).all()


@pytest.mark.parametrize("model", OPTIMAL, ids=str)
def test_only_the_proportions_of_weights_count(model):
    weight = RNG.random(N) + 0.1
    one, other = (seeded(model).fit(X, Y, scale * weight).coef_ for scale in (1, 1e-3))
    assert one == pytest.approx(other, abs=1e-4 * np.abs(one).max())


def test_the_weighted_objective_is_a_mean_over_weighted_pairs():
    w, weight, share = RNG.normal(size=4), RNG.random(N), 0.0
    share = weight[Y].sum() / weight.sum()
    margins = (X[Y] @ w)[:, None] - X[~Y] @ w
    mean = np.average((1 - margins) ** 2, weights=np.outer(weight[Y], weight[~Y]))
    expected = share * (1 - share) * mean + BETA / 2 * w @ w
    assert objective(X, Y, w, beta=BETA, weight=weight) == pytest.approx(expected)
    for rows in (X, sparse.csr_matrix(X)):
        assert moments(rows, Y, weight).objective(w, beta=BETA) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("fpr", "min_tpr"), [((0, 0.3), 0), ((0.1, 0.6), 0), ((0, 1), 0), ((0, 1), 0.7)]
)
def test_a_partial_range_counts_weighted_rows_by_their_rank(fpr, min_tpr):
    # Weights that put every weight on rows in thirds make the range's end fall within a row.
    weight = RNG.integers(1, 4, size=N).astype(float)
    options = {"loss": "squared_hinge", "fpr": fpr, "min_tpr": min_tpr}
    one = PairwiseAUC(0.1, **options).fit(X, Y, weight).coef_
    two = PairwiseAUC(0.1, **options).fit(
        np.repeat(X, weight.astype(int), axis=0), np.repeat(Y, weight.astype(int))
    )
    assert one == pytest.approx(two.coef_, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize(
    "rule", ["prior", "youden", "cost", ("cost", 3.0), ("top_k", 9), ("top_k", 0.2)]
)
def test_a_threshold_of_weighted_rows_is_that_of_repeated_rows(rule):
    rng = np.random.default_rng(5)
    for _ in range(40):
        scores, counts = rng.normal(size=30).round(1), rng.integers(1, 4, size=30)
        positive = rng.random(30) < 0.3
        positive[:2] = True, False
        weighted = choose_threshold(scores, positive, rule, counts.astype(float))
        repeated = choose_threshold(np.repeat(scores, counts), np.repeat(positive, counts), rule)
        assert ((scores > weighted) == (scores > repeated)).all()


def test_of_cuts_that_are_as_good_the_first_is_taken_whatever_rounding_says():
    """Youden's index is 0 where no row is called and where all are."""
    positive, repeats = np.array([False, True, True, False, True]), [2, 2, 2, 3, 1]
    scores = np.where(positive, 0.0, 3.0)
    assert choose_threshold(scores, positive, "youden", np.array(repeats, float)) > 3
    assert choose_threshold(np.repeat(scores, repeats), np.repeat(positive, repeats), "youden") > 3


def test_rows_are_read_as_often_as_their_weights_say():
    many, weight = np.arange(2000.0)[:, None], np.ones(2000)
    weight[:500], weight[500:700] = 2.5, 1e-3
    draws = Draws(many, weight)
    assert draws.total == round(weight.sum())
    read = np.bincount(draws.shuffled(np.random.default_rng(0)), minlength=2000)
    assert read.sum() == draws.total
    assert np.isin(read[:500], (2, 3)).all()
    assert read[500:700].sum() <= 1
    drawn = np.bincount(draws.independent(np.random.default_rng(0), 10**5), minlength=2000)
    assert drawn[:500].sum() / 1e5 == pytest.approx(1250 / weight.sum(), abs=0.01)
    assert Draws(many, 1e9 * weight).total == 100 * 2000  # a pass ends, however large they are


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-np.ones(N), ">= 0"),
        (np.full(N, np.nan), "finite"),
        (np.ones(N - 1), "one per sample"),
        (np.zeros(N), "not all zero"),
        (np.where(Y, 1e-12, 1.0), "one class has less than 1e-09 of all weight"),
        (np.full(N, 1e300), r"the largest is 1e\+300, expected 1e-100 to 1e\+100"),
        (np.full(N, 1e-300), "the largest is 1e-300, expected 1e-100"),
        (np.where(Y, 1, 0), "all weight is on class True"),
        (np.array(["a"] * N), "numbers"),
    ],
)
def test_weights_that_are_none_are_refused(weight, message):
    for model in (AUCClassifier(), SOLAM()):
        with pytest.raises(InputError, match=message):
            model.fit(X, Y, weight)


@pytest.mark.parametrize("model", OPTIMAL + ROW_BY_ROW, ids=str)
def test_the_third_argument_is_the_weights_and_a_callback_has_its_name(model):
    third = seeded(model).fit(X, Y, COUNTS)
    assert (third.coef_ == seeded(model).fit(X, Y, sample_weight=COUNTS).coef_).all()
    with pytest.raises(InputError):
        seeded(model).fit(X, Y, lambda passes, w: True)
    with pytest.raises(TypeError):
        seeded(model).fit(X, Y, None, lambda passes, w: True)


def test_the_order_of_few_rows_does_not_matter_and_follows_nothing_in_them():
    rows, order = RNG.normal(size=(500, 3)).round(2), RNG.permutation(500)
    read = [
        Draws(kind(X)).reading
        for kind in (np.asarray, sparse.csr_matrix)
        for X in (rows, rows[order])
    ]
    assert (read[0] == read[2]).all()
    assert (rows[read[0]] == rows[order][read[1]]).all()
    along = [np.corrcoef(rows[read[0]][:, j], np.arange(500))[0, 1] for j in range(3)]
    assert np.abs(along).max() < 4 / np.sqrt(500)
