import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

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
from telic.auc.estimators.base import dense_blocks
from telic.auc.estimators.by_name import SOLVERS
from telic.auc.methods import exact as exact_methods
from telic.auc.methods.exact_by_rows import exact_by_rows
from telic.auc.objective import Solution, moments
from telic.auc.thresholds import choose_threshold
from telic.errors import InputError

ESTIMATORS = [
    AUCClassifier(),
    ExactAUC(),
    ConjugateGradientAUC(),
    SPAM(),
    VRSPAM(),
    SPDAM(),
    PairwiseAUC(),
    SOLAM(),
    RegSOLAM(),
    OPAUC(),
    OPAUC(rank=2),
    OAM("gra"),
    OAM("seq"),
    UniExp(),
]


# Several checks make the larger label the commoner one; that warning has its own tests.
@pytest.mark.filterwarnings("ignore:the positive class is")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, X[:, 0] + rng.normal(size=n) > 1


def test_every_solver_name_works_and_auto_chooses_by_width():
    X, y = rows()
    exact = AUCClassifier("exact").fit(X, y)
    for name in SOLVERS:
        model = AUCClassifier(name, beta=1e-2, random_state=0).fit(X, y)
        assert model.solver_ == name
        assert model.score(X, y) > exact.score(X, y) - 0.08
    assert AUCClassifier().fit(X, y).solver_ == "exact"
    wide = sparse.random(100, 2500, density=0.01, format="csr", random_state=0)
    assert AUCClassifier(beta=1.0).fit(wide, y[:100]).solver_ == "cg"
    assert AUCClassifier(beta=1.0).fit(wide.toarray(), y[:100]).solver_ == "exact"
    assert AUCClassifier(beta=0.0).fit(wide.toarray(), y[:100]).solver_ == "cg"


def test_exact_takes_few_iterations_on_sparse_rows_and_the_moments_where_few_do_not_end():
    rng = np.random.default_rng(0)
    X = sparse.random(2000, 400, 0.02, "csr", random_state=rng)
    y = X @ rng.normal(size=400) > 0.5
    model = ExactAUC(beta=1e-3).fit(X, y)
    assert model.converged_
    assert 1 < model.n_iter_ < 50
    exact = ExactAUC(beta=1e-3).fit(X.toarray(), y)
    assert exact.n_iter_ == 1
    assert model.coef_ == pytest.approx(exact.coef_, rel=1e-3, abs=1e-4)
    # Sums of columns before: many a direction hardly bends.
    steep = sparse.csr_matrix(np.cumsum(X.toarray()[:, :60], axis=1) * np.logspace(0, 3, 60))
    model = AUCClassifier(beta=1e-12).fit(steep, y)
    assert model.n_iter_ == 1
    stopped = AUCClassifier(beta=1e-3).fit(X, y, callback=lambda passes, w: passes > 2)
    assert (stopped.solver_, stopped.n_iter_) == ("exact", 3)


@pytest.mark.parametrize("beta", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("form", ["dense", "far", "sparse", "weighted"])
def test_fewer_rows_than_columns_give_the_optimum_of_the_moments(beta, form):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 90)) * np.logspace(0, 2, 90) + 1e4 * (form == "far")
    X = sparse.csr_matrix(X * (rng.random(X.shape) < 0.2)) if form == "sparse" else X
    positive = rng.random(40) < 0.3
    weight = rng.integers(1, 4, 40) * 1.0 if form == "weighted" else None
    found = exact_by_rows(X, positive, beta=beta, tol=1e-8, weight=weight)
    assert found.converged
    expected = exact_methods.exact(moments(X, positive, weight), beta=beta).coef
    assert found.coef == pytest.approx(expected, rel=1e-4, abs=1e-8 * np.abs(expected).max())
    assert ExactAUC(beta=beta).fit(X, positive, sample_weight=weight).converged_


def test_what_rounding_leaves_of_fewer_rows_is_solved_for_or_left_to_the_moments():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 90)) * np.logspace(0, 4, 90), np.arange(40) % 3 == 0
    assert exact_by_rows(X, y, beta=1e-2, tol=1e-8).converged
    far = sparse.csr_matrix(rng.normal(size=(40, 90)) + 1e4)
    for beta in (1e-2, 1e-9):
        assert not exact_by_rows(far, y, beta=beta, tol=1e-8).converged
    expected = ExactAUC(beta=1e-2).fit(far.toarray(), y).coef_
    with pytest.warns(ConvergenceWarning):  # so far from 0 that rounding hides the end
        found = ExactAUC(beta=1e-2).fit(far, y).coef_
    assert found == pytest.approx(expected, rel=1e-3, abs=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize("seed", range(4))
def test_a_ridge_below_rounding_still_gives_the_weights_that_separate(seed):
    """In units of millions the optimum is the shortest w with (A, delta)w = (0, 1)."""
    rng = np.random.default_rng(seed)
    X, positive = 1e6 * rng.normal(size=(25, 80)), np.arange(25) % 3 == 0
    with pytest.warns((ConvergenceWarning, UserWarning)):  # rounding is more than a bound allows
        found = ExactAUC(1e-5).fit(X, positive)
    high, low = X[positive], X[~positive]
    delta = high.mean(axis=0) - low.mean(axis=0)
    A = np.vstack([high - high.mean(axis=0), low - low.mean(axis=0), delta])
    shortest = np.linalg.lstsq(A, np.eye(len(A))[-1], rcond=1e-12)[0]
    assert found.coef_[0] == pytest.approx(shortest, rel=1e-8, abs=1e-10 * np.abs(shortest).max())


def test_more_columns_than_moments_hold_need_few_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 20_001)), np.arange(20) % 3 == 0
    assert ExactAUC(beta=1e-3).fit(X, y).converged_
    for other in ({"beta1": 1e-3}, {"beta": 0.0}):
        with pytest.raises(InputError, match="20,001 columns need moments of"):
            ExactAUC(**other).fit(X, y)


def test_the_exact_optimum_is_certified_by_the_rows_curvature_where_beta_is_too_weak(monkeypatch):
    """And only there: the least eigenvalue of a wide matrix takes longest of all."""
    X, y = rows()
    asked = []
    known = exact_methods.curvature
    monkeypatch.setattr(
        exact_methods, "curvature", lambda *given: asked.append(given) or known(*given)
    )
    assert ExactAUC(beta=1e-2).fit(X, y).converged_
    assert not asked
    assert ExactAUC(beta=0.0).fit(X, y).converged_
    assert len(asked) == 1


@pytest.mark.parametrize("estimator", [*ESTIMATORS, ExactAUC(beta1=1e-3)], ids=str)
def test_n_iter_counts_passes_over_the_data(estimator):
    X, y = rows()
    told = []

    def look(passes, w):
        told.append(passes)
        return len(told) == 3

    model = clone(estimator).fit(X, y, callback=look)
    if isinstance(estimator, (AUCClassifier, ExactAUC)):  # one pass gives the moments, and then w
        assert told == []
        assert model.n_iter_ == 1
        return
    # SPAM's first pass and three stages, each a full gradient and ‖x‖²/beta steps, 20n at most;
    # the residual at 0 and three more gradients; or three passes, whatever the method.
    expected = {VRSPAM: 1 + 3 * (1 + 20), ConjugateGradientAUC: 1 + 3}
    if isinstance(estimator, PairwiseAUC):
        assert 4 <= model.n_iter_ <= 8  # at 0, and one or two on each line
    else:
        assert model.n_iter_ == expected.get(type(estimator), min(estimator.max_iter, 3))
    assert model.n_iter_ == told[-1]


def test_an_elastic_net_drops_columns():
    X, y = rows()
    model = AUCClassifier(penalty="elasticnet", beta1=0.06).fit(X, y)
    assert model.coef_[0, 0] > 0
    assert not model.coef_[0, 1:].any()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"solver": "sgd"}, "solver is 'sgd', expected one of auto, exact"),
        ({"penalty": "l1"}, "penalty is 'l1', expected one of l2, elasticnet"),
        ({"solver": "cg", "penalty": "elasticnet"}, "no elastic net"),
        ({"solver": "spam", "solver_options": {"speed": 9}}, "speed"),
        ({"beta": -1}, "beta is -1"),
        ({"beta": np.nan}, "beta is nan"),
        ({"beta": None}, "beta is None, expected a finite number >= 0"),
        ({"solver": pd.NA}, "solver is <NA>, expected one of auto, exact"),
        ({"solver_options": [1]}, r"solver_options is \[1\], expected a dict"),
        (
            {"solver_options": {"threshold": "youden"}},
            "'threshold' is a parameter of AUCClassifier",
        ),
        ({"solver_options": {"pos_label": 1}}, "'pos_label' is a parameter of AUCClassifier"),
        ({"solver": "spam", "solver_options": {"max_iter": 0}}, "for 'spam': max_iter is 0"),
        ({"solver": "cg", "solver_options": {"tol": -1.0}}, "for 'cg': tol is -1"),
        ({"solver": "exact", "solver_options": {"tol": "a"}}, "for 'exact': tol is 'a'"),
        ({"pos_label": pd.NA}, "pos_label: <NA> is none of the labels"),
        ({"pos_label": np.array([0, 1])}, "is none of the labels"),
        ({"threshold": pd.NA}, "threshold: <NA>, expected 'prior'"),
        ({"threshold": "half"}, "threshold: 'half'"),
        ({"solver": "spam", "random_state": "a"}, "random_state is 'a', expected a whole number"),
        ({"solver": "spam", "random_state": -1}, "random_state is -1, expected a whole number"),
        ({"threshold": ("cost", 0)}, "the cost of a missed positive must be a finite number > 0"),
        ({"threshold": ("top_k", 0)}, "the number of rows to call must be a finite number > 0"),
        ({"threshold": ("top_k", np.inf)}, "must be a finite number > 0"),
        ({"threshold": ("youden", 3)}, r"threshold: \('youden', 3\), expected 'prior'"),
        ({"threshold": ("cost",)}, r"threshold: \('cost',\), expected 'prior'"),
        ({"threshold": ("cost", "5")}, "the cost of a missed positive must be a finite number > 0"),
    ],
)
def test_parameters_out_of_range_are_named(parameters, message):
    X, y = rows()
    with pytest.raises(InputError, match=message):
        AUCClassifier(**parameters).fit(X, y)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SPDAM("a"), "beta is 'a', expected a finite number >= 0"),
        (SPDAM(np.inf), "beta is inf, expected a finite number >= 0"),
        (SPDAM(batch_size="a"), "batch_size: 'a', expected a count >= 1 or a share"),
        (SPDAM(batch_size=np.nan), "batch_size: nan, expected a count >= 1 or a share"),
        (VRSPAM(beta1=0.1, batch_size=0), "batch_size is 0, expected"),
        (VRSPAM(batch_size=2.5), "batch_size is 2.5, expected"),
        (SPDAM(batch_size=2.5), "batch_size: 2.5, expected a count >= 1 or a share"),
        (VRSPAM(None), "beta is None, expected a finite number >= 0"),
        (PairwiseAUC("a"), "beta is 'a', expected a finite number >= 0"),
        (SOLAM(forgetting="a"), r"forgetting: 'a', expected a factor in \(0, 1\]"),
    ],
    ids=str,
)
def test_text_and_other_things_for_numbers_are_named(model, message):
    with pytest.raises(InputError, match=message):
        model.fit(*rows())


def test_labels_to_score_that_cannot_be_compared_are_named():
    X, y = rows()
    with pytest.raises(InputError, match="y: labels of several kinds, or none"):
        AUCClassifier().fit(X, y).score(X, [None] * len(y))


def test_one_class_and_three_classes():
    X, _ = rows()
    with pytest.raises(InputError, match="one class only"):
        AUCClassifier().fit(X, np.ones(len(X)))
    three = np.arange(len(X)) % 3
    with pytest.raises(InputError, match="OneVsRestClassifier"):
        AUCClassifier().fit(X, three)
    assert OneVsRestClassifier(AUCClassifier()).fit(X, three).predict(X).shape == (len(X),)


@pytest.mark.parametrize(
    "pair", [("no", "yes"), (-1, 1), (0.0, 1.0), (3, 8), (False, True)], ids=str
)
@pytest.mark.parametrize("solver", ["exact", "spam", "solam"])
def test_labels_of_any_type_come_back(solver, pair):
    X, y = rows()
    labels = np.array(pair)[y.astype(int)]
    if isinstance(pair[0], str):
        labels = labels.astype(object)
    model = AUCClassifier(solver, random_state=0).fit(X, labels)
    assert set(model.predict(X)) == set(pair)
    assert model.score(X, labels) == AUCClassifier(solver, random_state=0).fit(X, y).score(X, y)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_and_located(solver, bad):
    X, y = rows(n=50)
    holed = X.copy()
    holed[7, 2] = bad
    for made in (np.asarray, sparse.csr_matrix, sparse.coo_array):
        with pytest.raises(InputError, match="X contains NaN or infinity at row 7, column 2"):
            AUCClassifier(solver).fit(made(holed), y)
    with pytest.raises(InputError, match="y contains NaN or infinity at row 3"):
        AUCClassifier(solver).fit(X, np.where(np.arange(50) == 3, bad, y))


@pytest.mark.parametrize("fpr", [0.1, (0, 0.1, 0.2), "01", None])
def test_what_is_no_range_of_rates_is_refused(fpr):
    X, y = rows(n=50)
    with pytest.raises(InputError, match=r"fpr: .* expected two rates with 0 <= low < high"):
        PairwiseAUC(fpr=fpr).fit(X, y)


def test_what_is_not_finite_is_located_by_streams_and_scores_too():
    X, y = rows(n=50)
    holed = X.copy()
    holed[7, 2] = np.nan
    model = SOLAM().partial_fit(X, y, classes=[False, True])
    for call in (model.decision_function, lambda rows: model.partial_fit(rows, y)):
        with pytest.raises(InputError, match="row 7, column 2"):
            call(holed)


def test_what_lies_under_a_mask_is_refused():
    X, y = rows(n=50)
    masked, labels = np.ma.masked_greater(X, 1.0), np.ma.masked_array(y, X[:, 0] > 1.0)
    model = SOLAM().partial_fit(X, y, classes=[False, True])
    for call in (AUCClassifier().fit, model.partial_fit, model.score):
        with pytest.raises(InputError, match="X is a masked array"):
            call(masked, y)
        with pytest.raises(InputError, match="y is a masked array"):
            call(X, labels)


@pytest.mark.parametrize("nothing", [None, np.nan, pd.NA])
def test_a_missing_label_among_texts_is_located(nothing):
    X, y = rows(n=50)
    labels = np.where(y, "yes", "no").astype(object)
    labels[11] = nothing
    with pytest.raises(InputError, match="y contains NaN or infinity at row 11"):
        AUCClassifier().fit(X, labels)


def test_no_ridge_and_a_singular_covariance_warn():
    X, y = rows()
    with pytest.warns(UserWarning, match="singular and beta=0"):
        model = AUCClassifier("exact", beta=0).fit(np.hstack([X, X[:, :1]]), y)
    assert model.score(np.hstack([X, X[:, :1]]), y) == pytest.approx(
        AUCClassifier("exact", beta=0).fit(X, y).score(X, y)
    )
    for solver in ("spam", "vrspam", "spdam", "ranksvm"):
        with pytest.raises(InputError, match="beta > 0"):
            AUCClassifier(solver, beta=0).fit(X, y)


def test_what_needs_too_much_memory_and_weights_that_blew_up_are_refused(monkeypatch):
    X, y = rows()
    wide = sparse.csr_matrix((4, 20_001))
    with pytest.raises(InputError, match=r"20,001 columns need moments of .* same optimum"):
        AUCClassifier("exact", beta=0.0).fit(wide, [0, 0, 1, 1])
    with pytest.raises(InputError, match=r"OPAUC: 20001 columns need .* set rank=50"):
        OPAUC().fit(wide, [0, 0, 1, 1])
    blown = Solution(np.full(X.shape[1], np.inf), 1)
    monkeypatch.setattr(ExactAUC, "_solve", lambda *given: blown)
    with pytest.raises(InputError, match="ExactAUC: the weights are not finite; scale the columns"):
        ExactAUC().fit(X, y)


def test_a_generator_as_random_state_is_drawn_from():
    X, y = rows()

    def fitted(state):
        return SPAM(max_iter=1, random_state=state).fit(X, y).coef_

    for kind in (np.random.RandomState, np.random.default_rng):
        state = kind(7)
        first, second = fitted(state), fitted(state)
        np.testing.assert_array_equal(first, fitted(kind(7)))
        assert not np.array_equal(first, second)


@pytest.mark.parametrize("solver", SOLVERS)
def test_equal_class_means_warn(solver):
    X, _ = rows()
    twice, y = np.vstack([X, X]), np.repeat([0, 1], len(X))
    with pytest.warns(UserWarning, match="the class means are equal"):
        model = AUCClassifier(solver, random_state=0).fit(twice, y)
    assert model.score(twice, y) == pytest.approx(0.5, abs=1e-9)
    with pytest.warns(UserWarning, match="the class means are equal"):
        PairwiseAUC().fit(twice, y)


def test_constant_and_duplicated_columns_and_rows_change_no_ranking():
    X, y = rows()
    plain = AUCClassifier().fit(X, y)
    wide = np.hstack([X, np.full((len(X), 1), 7.0), X[:, :1]])
    other = AUCClassifier().fit(np.vstack([wide, wide]), np.r_[y, y])
    assert other.score(wide, y) == pytest.approx(plain.score(X, y), abs=1e-3)


def test_the_ranking_is_that_of_balanced_ridge():
    X, y = rows()
    p, beta = y.mean(), 1e-3
    alpha = len(y) * beta / (4 * p * (1 - p))
    ridge = RidgeClassifier(class_weight="balanced", alpha=alpha).fit(X, y)
    ours = ExactAUC(beta).fit(X, y).coef_[0]
    ratio = ours / ridge.coef_.ravel()
    assert ratio == pytest.approx(np.full(4, ratio[0]), rel=1e-8)


@pytest.mark.parametrize("rule", ["prior", "youden", ("cost", 2.0), ("top_k", 40)])
@pytest.mark.parametrize("weighted", [False, True])
def test_no_row_lies_on_the_threshold_and_equal_rows_get_the_same_label(rule, weighted):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        kinds = rng.normal(size=(6, 12))
        of = rng.integers(0, 6, size=101)
        X, y = kinds[of], rng.random(101) < rng.random(6)[of]
        weight = rng.integers(1, 4, 101).astype(float) if weighted else None
        model = ExactAUC(threshold=rule, pos_label=True).fit(X, y, sample_weight=weight)
        called = model.predict(X)
        scores = np.abs(model.decision_function(X))
        assert scores.min() > 1e-13 * scores.max()
        for kind in range(6):
            assert len(set(called[of == kind])) <= 1
        alone = np.concatenate([model.predict(X[i : i + 1]) for i in range(101)])
        np.testing.assert_array_equal(called, alone)
        np.testing.assert_array_equal(called, model.predict(sparse.csr_array(X)))


@pytest.mark.parametrize("rule", ["youden", "prior", "cost"])
def test_one_huge_score_makes_no_ties_of_others(rule):
    scores = np.array([1e12, 0, 0, 0, 1, 1, 1])
    threshold = choose_threshold(scores, scores > 0.5, rule)
    assert 0 < threshold < 1


@pytest.mark.filterwarnings("ignore:ExactAUC stopped")  # the rows themselves have lost digits
@pytest.mark.parametrize("beta1", [0.0, 1e-4])
def test_sparse_rows_far_from_0_give_what_dense_ones_do(beta1):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(30, 10)) + 10.0 ** rng.integers(5, 9)
        y = rng.random(30) < 0.4
        dense, far = (
            ExactAUC(beta1=beta1, pos_label=True).fit(rows, y) for rows in (X, sparse.csr_array(X))
        )
        np.testing.assert_allclose(far.coef_, dense.coef_, rtol=1e-3, atol=1e-6)


def test_a_constant_column_does_not_make_sparse_rows_dense(monkeypatch):
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 6), density=0.3, rng=rng).toarray()
    X[:, 0] = 7.0
    y = X[:, 1] + 0.1 * rng.normal(size=300) > 0.1
    expected = ExactAUC(pos_label=True).fit(X, y).coef_
    monkeypatch.setattr("telic.auc.objective._weigh", None)  # what dense rows go through
    found = ExactAUC(pos_label=True).fit(sparse.csr_array(X), y).coef_
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_without_ridge_conjugate_gradients_leave_constant_columns_at_0():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + rng.normal(size=60) > 0.8
    alone = ConjugateGradientAUC(0.0, pos_label=True).fit(X, y).coef_[0]
    for constant in (7.0, 1000.0, 1e-9):
        rows = np.column_stack([X, np.full(60, constant)])
        found = ConjugateGradientAUC(0.0, pos_label=True).fit(rows, y).coef_[0]
        np.testing.assert_allclose(found, [*alone, 0], rtol=1e-6)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_without_ridge_conjugate_gradients_take_a_column_that_separates(kind):
    y = np.random.default_rng(0).random(60) < 0.3
    X = np.column_stack([np.random.default_rng(1).normal(size=(60, 2)), 1e3 * y])
    found = ConjugateGradientAUC(0.0, pos_label=True).fit(kind(X), y).coef_[0]
    np.testing.assert_allclose(found, [0, 0, 1e-3])
    assert ConjugateGradientAUC(0.0, pos_label=1).fit([[0.0], [1.0]], [0, 1]).coef_ == 1


@pytest.mark.parametrize("estimator", [SPAM, SOLAM, OPAUC, OAM, UniExp])
def test_entries_that_are_stored_twice_count_as_their_sum(estimator):
    X = sparse.csr_matrix(np.random.default_rng(1).normal(size=(40, 3)))
    twice = np.repeat(X.data, 2) / 2, np.repeat(X.indices, 2), 2 * X.indptr
    y = np.arange(40) % 2
    one, other = (
        estimator(random_state=0).fit(rows, y).coef_
        for rows in (X, sparse.csr_matrix(twice, shape=X.shape))
    )
    np.testing.assert_allclose(one, other, atol=1e-12)


def test_scores_that_tie_at_the_top_are_called_together():
    scores = np.array([0.0, 1.0, 2.0, 2.0, 2.0])
    assert choose_threshold(scores, scores > 1, ("top_k", 2)) == 1.5
    assert choose_threshold(scores, scores > 1, ("top_k", 2), np.ones(5)) == 1.5
    assert choose_threshold(np.ones(3), np.array([True, False, False]), "prior") == 1.0


@pytest.mark.parametrize("rule", ["prior", "youden", "cost", ("cost", 3.0), ("top_k", 25)])
def test_thresholds_by_trying_every_cut(rule):
    rng = np.random.default_rng(0)
    for _ in range(30):
        scores = rng.normal(size=40).round(1)
        positive = rng.random(40) < 0.3
        positive[:2] = True, False
        threshold = choose_threshold(scores, positive, rule)

        def worth(cut, scores=scores, positive=positive):
            called = scores > cut
            hit, false = (called & positive).sum(), (called & ~positive).sum()
            if rule == "youden":
                return hit / positive.sum() - false / (~positive).sum()
            if rule in ("prior", ("top_k", 25)):
                wanted = positive.sum() if rule == "prior" else 25
                # Ties may make the wanted number impossible; the cut then calls fewer.
                return -abs(called.sum() - wanted) if called.sum() <= wanted else -99
            return (rule[1] if isinstance(rule, tuple) else 1.0) * hit - false

        cuts = np.r_[scores, scores.min() - 1]
        assert worth(threshold) == pytest.approx(max(worth(cut) for cut in cuts))


def test_a_cut_leaves_a_row_on_either_side_and_lies_halfway():
    scores, positive = np.array([1.0, 2.0, 4.0, 8.0]), np.array([False, True, False, True])
    assert choose_threshold(scores, positive, ("top_k", 1)) == 6.0
    assert choose_threshold(scores, positive, ("top_k", 3)) == 1.5
    for many in (4, 9):
        assert choose_threshold(scores, positive, ("top_k", many)) == 1.5
    assert choose_threshold(scores, positive, ("top_k", 0.01)) == 6.0
    assert choose_threshold(scores, positive, ("top_k", 0.5)) == 3.0
    # All rows are called where a missed positive costs enough, and none where it costs little.
    low, high = scores[0], scores[-1]
    first = np.array([True, False, False, False])
    assert low - 1e-9 < choose_threshold(scores, first, ("cost", 9.0)) < low
    assert high < choose_threshold(scores, first, ("cost", 0.1)) < high + 1e-9


def test_a_weight_that_is_no_whole_number_cuts_where_its_rows_end():
    scores, weight = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.1, 0.2, 0.3, 0.4])
    for called, cut in ((0.4, 3.5), (0.7, 2.5), (0.9, 1.5)):
        positive = np.cumsum(weight[::-1])[::-1] <= called + 1e-9
        assert choose_threshold(scores, positive, "prior", weight) == cut
    assert choose_threshold(scores, scores > 3, "youden", weight) == 3.5


def test_youdens_cut_does_not_depend_on_the_unit_of_the_weights():
    """Where no cut beats chance, calling none and calling all are as good but for rounding."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        scores, positive = rng.normal(size=20).round(), np.arange(20) < 10
        scores[positive] = np.sort(scores)[:10]
        weight = rng.random(20)
        cuts = {choose_threshold(scores, positive, "youden", weight * unit) for unit in (1, 3.7)}
        assert len(cuts) == 1


@pytest.mark.parametrize("rule", ["prior", ("top_k", 7), ("top_k", 0.3), ("top_k", 500), "youden"])
def test_rows_that_weigh_one_each_are_cut_as_rows_without_weights(rule):
    rng = np.random.default_rng(2)
    for scores in (rng.normal(size=50), rng.integers(5, size=50).astype(float), np.arange(2.0)):
        positive = np.arange(scores.size) % 4 == 1
        found = choose_threshold(scores, positive, rule)
        assert found == choose_threshold(scores, positive, rule, np.ones(scores.size))


def test_predict_calls_the_wanted_number():
    X, y = rows()
    assert AUCClassifier(threshold=("top_k", 17)).fit(X, y).predict(X).sum() == 17
    assert AUCClassifier().fit(X, y).predict(X).sum() == y.sum()


def test_probabilities_come_from_calibration_only():
    X, y = rows()
    assert not hasattr(AUCClassifier(), "predict_proba")
    calibrated = CalibratedClassifierCV(AUCClassifier()).fit(X, y)
    assert calibrated.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=0.02)


def test_a_kernel_through_a_pipeline():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = (X**2).sum(axis=1) < 0.7
    linear = ExactAUC(1e-6).fit(X, y).score(X, y)
    kernel = make_pipeline(Nystroem(n_components=40, random_state=0), ExactAUC(1e-6)).fit(X, y)
    assert linear < 0.7 < 0.97 < kernel.score(X, y)


def test_score_names_an_unknown_label():
    X, y = rows()
    with pytest.raises(InputError, match="label"):
        AUCClassifier().fit(X, y).score(X, np.where(y, 5, 0))


@pytest.mark.parametrize(("beta1", "instead"), [(0, "ConjugateGradientAUC"), (1e-3, "VRSPAM")])
def test_too_many_columns_for_the_moments_are_refused_before_any_memory_is(beta1, instead):
    X = sparse.eye(4, 100_000, format="csr")
    with pytest.raises(InputError, match=f"100,000 columns need moments of 74.5 GiB.*{instead}"):
        ExactAUC(beta=0.0, beta1=beta1).fit(X, [0, 1, 0, 1])


def test_a_partial_range_that_leaves_nothing_to_rank_says_why():
    X, y = np.ones((8, 2)), np.arange(8) % 2
    with pytest.warns(UserWarning, match="the class means are equal"):
        model = PairwiseAUC(loss="squared_hinge", fpr=(0, 0.5)).fit(X, y)
    assert model.score(X, y) == 0.5


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [((5000, 3), [4096, 904]), ((5, 2**22), [2, 2, 1]), ((2, 2**23 + 1), [1, 1]), ((4, 0), [4])],
)
def test_sparse_rows_become_dense_a_block_of_64_megabytes_at_a_time(shape, sizes):
    X = sparse.csr_array(([1.0, 2.0], ([0, shape[0] - 1], [0, 0])), shape) if shape[1] else None
    X = sparse.csr_array(shape) if X is None else X
    starts, blocks = zip(*dense_blocks(X), strict=True)
    assert [len(block) for block in blocks] == sizes
    assert list(starts) == [0, *np.cumsum(sizes)[:-1]]
    assert all(block.size <= 2**23 or len(block) == 1 for block in blocks)
    if shape[1]:
        assert (blocks[0][0, 0], blocks[-1][-1, 0]) == (1.0, 2.0)


def test_labels_in_one_column_are_scored_as_they_are_fitted():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.where(X[:, 0] > 0.5, 1, 0)
    model = ExactAUC().fit(X, y)
    assert model.score(X, y[:, None]) == model.score(X, pd.DataFrame(y)) == model.score(X, y)
