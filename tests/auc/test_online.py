"""Streaming estimators against the optimum of what each of them minimises."""

from functools import partial

import numpy as np
import pytest
from river import preprocessing
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import lambertw
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from telic.auc import OAM, OPAUC, SOLAM, SPAM, VRSPAM, RegSOLAM, UniExp
from telic.auc.estimators.base import _worse_than_none
from telic.auc.methods.exact import elastic_net, exact
from telic.auc.methods.opauc import opauc_sketch_steps
from telic.auc.methods.uniexp import _moved
from telic.auc.objective import Solution, moments, objective
from telic.errors import InputError
from telic.evaluate.classification import roc_auc

ONLINE = [
    SOLAM(),
    RegSOLAM(),
    OPAUC(),
    OPAUC(rank=3),
    OAM("gra"),
    OAM("seq"),
    UniExp(),
    SPAM(),
]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 5)) @ np.diag([1, 0.7, 0.5, 0.3, 0.2])
POSITIVE = X @ np.array([1, -1, 1, 0, 1.0]) + RNG.normal(size=3000) > 1.2
BETA = 1e-2


def test_a_sketch_forgets_every_row_alike():
    rng = np.random.default_rng(0)
    X, draws, positive = rng.normal(size=(30, 4)), rng.normal(size=(30, 3)), rng.random(30) < 0.4
    sketch, sums = np.zeros((2, 4, 3)), np.zeros((2, 3))
    state = np.zeros(2), np.zeros((2, 4)), np.zeros(4), sketch, sums
    opauc_sketch_steps(X, positive, *state, draws, np.zeros(1), 0.9, 1e-3, 0.1)
    age = np.arange(29, -1, -1)  # rows that came later, of either class
    for c in (0, 1):
        kept = (0.9**0.5) ** age[positive == c]
        rows, of = X[positive == c], draws[positive == c]
        np.testing.assert_allclose(sketch[c], (kept[:, None] * rows).T @ of, rtol=1e-9)
        np.testing.assert_allclose(sums[c], kept @ of, rtol=1e-9)


def test_regsolam_and_opauc_reach_the_shared_objective():
    best = objective(X, POSITIVE, exact(moments(X, POSITIVE), beta=BETA).coef, beta=BETA)
    start = objective(X, POSITIVE, np.zeros(5), beta=BETA) / best - 1

    def gap(model):
        w = model.set_params(beta=BETA, random_state=0).fit(X, POSITIVE).coef_[0]
        return objective(X, POSITIVE, w, beta=BETA) / best - 1

    assert gap(RegSOLAM(max_iter=100)) < 0.02 * start
    assert gap(OPAUC(max_iter=20)) < 1e-3 * start
    assert gap(OPAUC(max_iter=20, rank=200)) < 0.05 * start


def test_solam_nears_the_optimum_over_its_ball_at_its_rate():
    radius = 0.5

    def loss(w):
        return objective(X, POSITIVE, w, beta=0.0)

    ball = {"type": "ineq", "fun": lambda w: radius**2 - w @ w}
    best = minimize(loss, np.full(5, 0.1), constraints=[ball], options={"ftol": 1e-14}).fun
    gaps = {}
    for passes in (5, 80):
        w = SOLAM(radius, max_iter=passes, random_state=0).fit(X, POSITIVE).coef_[0]
        assert np.linalg.norm(w) <= radius * (1 + 1e-9)
        gaps[passes] = loss(w) / best - 1
    # The averaged iterate of descent and ascent nears as 1/√t, so 16 times the rows divide the
    # gap by 4, a logarithm apart. An optimum that is not the ball's would stop the decrease.
    assert 0 < gaps[80] < 1.5 * gaps[5] / 4
    assert gaps[5] < 0.1 * (loss(np.zeros(5)) / best - 1)


def test_oam_gradient_with_a_full_buffer_reaches_the_pairwise_hinge():
    part, y = X[:300], POSITIVE[:300]
    share = y.mean()
    pairs = (part[y][:, None] - part[~y][None]).reshape(-1, 5)

    def defined(w):
        return share * (1 - share) * np.maximum(0, 1 - pairs @ w).mean() + BETA / 2 * w @ w

    best = minimize(defined, np.full(5, 0.1), method="Nelder-Mead", options={"maxiter": 4000}).fun
    model = OAM("gra", beta=BETA, buffer_size=300, max_iter=100, random_state=0).fit(part, y)
    assert defined(model.coef_[0]) / best - 1 < 0.02
    assert defined(np.zeros(5)) / best - 1 > 0.2


def test_oam_sequential_step_is_the_nearest_point_that_pays_for_its_loss():
    model = OAM("seq", C=0.3, random_state=0)
    model.partial_fit([[1.0, 2.0]], [1], classes=[0, 1])
    w = np.zeros(2)
    for x, y in (([0.5, 1.0], 0), ([0.2, -1.0], 0)):
        model.partial_fit([x], [y])
        gap = np.array([1.0, 2.0]) - x

        def paid(v, gap=gap, w=w):
            return 0.5 * np.sum((v - w) ** 2) + 0.3 * max(0.0, 1 - gap @ v)

        found = minimize(paid, w, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
        w = model.coef_[0].copy()
        assert w == pytest.approx(found.x, abs=1e-4)


def test_uniexp_reaches_scipys_optimum():
    share = POSITIVE.mean()

    def defined(v):
        scores = X @ v[:5] + v[5]
        pairs = (np.exp(-scores[POSITIVE]).mean() + np.exp(scores[~POSITIVE]).mean()) / 2
        return pairs + BETA / (2 * share * (1 - share)) * v[:5] @ v[:5]

    best = minimize(defined, np.zeros(6)).fun
    model = UniExp(BETA, max_iter=40, random_state=0).fit(X, POSITIVE)
    reached = defined(np.append(model.coef_[0], model._state["bias"]))
    assert reached / best - 1 < 2e-3
    assert defined(np.zeros(6)) / best - 1 > 0.1


def test_a_row_missed_by_far_does_not_throw_uniexps_weights_away():
    """A step along the gradient there would be exp(margin) long: it left a far larger loss."""
    X, y = make_classification(2000, 20, random_state=1)
    positive, X = y == 1, StandardScaler().fit_transform(X)
    model = UniExp(pos_label=True, random_state=0).fit(X, positive)
    scores = X @ model.coef_[0] + model._state["bias"]
    assert (np.exp(-scores[positive]).mean() + np.exp(scores[~positive]).mean()) / 2 < 0.9


@pytest.mark.parametrize("model", [RegSOLAM(), SOLAM(1e9)], ids=str)
def test_a_fit_that_ends_worse_than_no_ranking_says_so(model):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.random(300) < 0.3
    X[rng.random(300) < 0.01] *= 1e6
    X[:, 0] -= 1e-7 * y
    model = clone(model).set_params(max_iter=1, step_size=1e6, random_state=0)
    with pytest.warns(ConvergenceWarning, match="ended worse than with weights of 0"):
        model.fit(X, y)
    model.fit(X, y, callback=lambda passes, w: True)  # whoever stops it knows


@pytest.mark.parametrize("model", [SOLAM(), RegSOLAM()], ids=str)
def test_a_fit_on_heavy_tails_ranks_better_than_chance_from_any_seed(model):
    """By the longest row so far, the first rows had nearly all the weight of the average."""
    rng = np.random.default_rng(1)
    logs = 3 * rng.normal(size=(2000, 10))
    y = logs[:, 0] + logs[:, 1] + 3 * rng.normal(size=2000) > 6
    X = StandardScaler().fit_transform(np.exp(logs))
    for seed in range(6):
        assert clone(model).set_params(random_state=seed).fit(X, y).score(X, y) > 0.6


def test_where_there_is_no_objective_a_ranking_far_below_one_half_is_worse_than_none():
    rng = np.random.default_rng(0)
    positive = np.arange(200) < 50
    worse = partial(_worse_than_none, Solution(np.zeros(1), 1), positive, weight=None)
    assert not any(worse(rng.normal(size=200)) for _ in range(100))  # noise
    assert not worse(np.zeros(200))
    assert worse(rng.normal(size=200) - positive)


@pytest.mark.parametrize("k", [-800.0, -36.1, -35.9, -3.0, 0.99, 1.01, 5.0, 700.0])
def test_uniexps_step_solves_its_equation(k):
    assert _moved(k) == pytest.approx(lambertw(np.exp(k)).real, rel=1e-12)


@pytest.mark.parametrize("model", ONLINE, ids=str)
def test_a_stream_in_blocks_of_any_kind_is_the_same_stream(model):
    y = np.where(POSITIVE, "fraud", "sound")  # sound is the larger label, so it is positive
    one = clone(model).set_params(random_state=0)
    first = one.partial_fit(X[:500], y[:500], classes=["fraud", "sound"]).coef_
    one = clone(one)
    for start in range(0, 500, 100):
        block = sparse.csr_matrix(X[start : start + 100])
        one.partial_fit(block, y[start : start + 100], classes=["fraud", "sound"])
    assert one.coef_ == pytest.approx(first, rel=1e-9, abs=1e-12)
    assert one.score(X, y) > 0.8


@pytest.mark.parametrize("model", ONLINE, ids=str)
def test_a_thousand_equal_labels_first_leave_no_harm(model):
    order = np.argsort(POSITIVE, kind="stable")
    late, mixed = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        stream = clone(model).set_params(random_state=seed)
        stream.partial_fit(X[order[:1000]], POSITIVE[order[:1000]], classes=[False, True])
        assert not stream.decision_function(X).any()  # nothing to rank by yet
        rest = rng.permutation(order[1000:])
        late.append(stream.partial_fit(X[rest], POSITIVE[rest]).score(X, POSITIVE))
        rows = rng.permutation(len(X))
        stream = clone(model).set_params(random_state=seed)
        stream.partial_fit(X[rows], POSITIVE[rows], classes=[False, True])
        mixed.append(stream.score(X, POSITIVE))
    # As good as on the same rows in mixed order, up to the noise of the two means.
    noise = np.sqrt((np.var(late, ddof=1) + np.var(mixed, ddof=1)) / 5)
    assert np.mean(late) > np.mean(mixed) - 3 * noise - 0.005


def test_spam_from_a_stream_reaches_the_shared_objective_and_goes_on_from_a_fit():
    def gap(model, beta1=0.0):
        optimum = elastic_net(moments(X, POSITIVE), beta=BETA, beta1=beta1)[0]
        best = objective(X, POSITIVE, optimum, beta=BETA, beta1=beta1)
        return objective(X, POSITIVE, model.coef_[0], beta=BETA, beta1=beta1) / best - 1

    def stream(model, passes=20, seed=0):
        rng = np.random.default_rng(seed)
        for _ in range(passes):
            rows = rng.permutation(len(X))
            model.partial_fit(X[rows], POSITIVE[rows], classes=[False, True])
        return model

    def mean_gap(passes, **options):
        return np.mean([gap(stream(SPAM(BETA, **options), passes, seed)) for seed in range(10)])

    # The gap follows the step, 1/(beta·t + 4M²): half as much again for what chance does to two
    # means of ten.
    bound = 4 * stream(SPAM(BETA), passes=1)._state["scale"][0]
    steps = [1 / (BETA * passes * len(X) + bound) for passes in (1, 20)]
    assert 0 < mean_gap(20) < 1.5 * mean_gap(1) * steps[1] / steps[0]
    assert mean_gap(20, center=False) < 1e-2
    assert mean_gap(20, step="sqrt") < mean_gap(1, step="sqrt")
    plain = stream(SPAM(BETA))
    net = stream(SPAM(BETA, beta1=0.01))
    assert gap(net, beta1=0.01) < 1e-2 < gap(plain, beta1=0.01)
    fitted = SPAM(BETA, random_state=0).fit(X, POSITIVE)
    state, means = fitted._state, [X[side].mean(axis=0) for side in (~POSITIVE, POSITIVE)]
    farthest = ((X - X.mean(axis=0)) ** 2).sum(axis=1).max()
    assert state["scale"] == pytest.approx([farthest, 20 * len(X)])
    assert state["counts"].tolist() == [(~POSITIVE).sum(), POSITIVE.sum()]
    assert state["means"] == pytest.approx(np.array(means))
    before = fitted.coef_.copy()
    fitted.partial_fit(X[:300], POSITIVE[:300])
    assert 0 < np.linalg.norm(fitted.coef_ - before) < 0.05 * np.linalg.norm(before)
    assert gap(fitted) < 1e-2


def test_forgetting_follows_a_turned_stream():
    turned = np.concatenate([POSITIVE, ~POSITIVE])
    both = np.vstack([X, X])
    scores = {}
    for forgetting in (1.0, 0.99):
        model = SOLAM(forgetting=forgetting).partial_fit(both, turned, classes=[False, True])
        scores[forgetting] = model.score(X, ~POSITIVE)
    assert scores[0.99] > 0.85 > scores[1.0]
    assert model.drift()[0] == pytest.approx((~POSITIVE).mean(), abs=0.15)


@pytest.mark.parametrize("model", ONLINE, ids=str)
def test_learn_one_is_partial_fit_by_name(model):
    if isinstance(model, OPAUC) and model.rank:
        pytest.skip("a sketch draws one number for each column, and dictionaries grow columns")
    arrays, dicts = clone(model).set_params(random_state=0), clone(model).set_params(random_state=0)
    assert dicts.predict_one({"a": 1.0}) is False
    names = "abcde"
    for row, label in zip(X[:300], POSITIVE[:300], strict=True):
        arrays.partial_fit(row[None], [label], classes=[False, True])
        dicts.learn_one(dict(zip(names, row, strict=True)), label)
    for row in X[300:310]:
        expected = arrays.decision_function(row[None])[0]
        assert dicts.score_one(dict(zip(names, row, strict=True))) == pytest.approx(expected)
    assert dicts.score_one({"unheard": 3.0}) == pytest.approx(dicts.score_one({}))


def test_new_names_widen_a_running_stream():
    wide, model = RNG.normal(size=(600, 30)), OPAUC()
    positive = wide[:, 0] + wide[:, 29] > 0.5
    for t in range(600):
        columns = 5 if t < 50 else 30
        model.learn_one({f"x{j}": wide[t, j] for j in range(columns)}, positive[t])
    scores = [model.score_one({f"x{j}": row[j] for j in range(30)}) for row in wide]
    assert roc_auc(positive, scores) > 0.9


def test_inside_a_river_pipeline():
    pipeline = preprocessing.StandardScaler() | OPAUC()
    for row, label in zip(X[:500], POSITIVE[:500], strict=True):
        pipeline.learn_one(dict(enumerate(row)), label)
    predicted = [pipeline.predict_one(dict(enumerate(row))) for row in X[500:700]]
    assert np.mean(predicted == POSITIVE[500:700]) > 0.7


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SOLAM().partial_fit(X, POSITIVE), "classes: required"),
        (lambda: SOLAM().partial_fit(X, POSITIVE, classes=[1, 2, 3]), "OneVsRestClassifier"),
        (lambda: SOLAM().partial_fit(X, POSITIVE, classes=[5, 6]), "none of the classes"),
        (lambda: SOLAM(forgetting=0).fit(X, POSITIVE), "forgetting"),
        (lambda: SPAM(step="theory-power").partial_fit(X, POSITIVE, classes=[0, 1]), "for a str"),
        (
            lambda: SPAM(9.0, step="theory-power").fit(X, POSITIVE).partial_fit(X, POSITIVE),
            "for a str",
        ),
        (lambda: SOLAM(radius=-1).fit(X, POSITIVE), "radius"),
        (lambda: SOLAM(step_size=0).partial_fit(X, POSITIVE, classes=[0, 1]), "step_size is 0"),
        (lambda: UniExp(step_size=-1).fit(X, POSITIVE), "step_size is -1, expected"),
        (lambda: SPAM(step="sqrt", step_size="long").fit(X, POSITIVE), "step_size is 'long', exp"),
        (lambda: VRSPAM(step_size=-1.0).fit(X, POSITIVE), "step_size is -1.0, expected"),
        (lambda: OPAUC().learn_one({"a": "one"}, 1), "learn_one: 'a' is 'one', expected a number"),
        (
            lambda: OPAUC().learn_one([1.0], 1),
            "learn_one: the row is of type list, expected a dict",
        ),
        (
            lambda: OPAUC().learn_one({"a": 10**400}, 1),
            r"learn_one: 'a' is 1000.*\.\.\..*, expected",
        ),
        (lambda: OPAUC().score_one({"a": None}), "score_one: 'a' is None, expected a number"),
        (lambda: OPAUC().score_one("a"), "score_one: the row is of type str, expected a dict"),
        (lambda: OAM("both").fit(X, POSITIVE), "update is 'both', expected one of seq, gra"),
        (lambda: OPAUC().learn_one({"a": 1.0}, 7), "label 7"),
        (lambda: OPAUC().learn_one({"a": np.nan}, 1), "'a' is nan, expected a number of at most"),
        (lambda: OPAUC().learn_one({"a": -1e200}, 1), r"of at most 1e\+100 in size"),
        (lambda: OPAUC().fit(X, POSITIVE).learn_one({"a": 1.0}, 1), "already learns from arrays"),
        (lambda: named().partial_fit(X, POSITIVE), "already learns from dictionaries"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_the_number_of_columns_may_not_change():
    model = SOLAM().partial_fit(X, POSITIVE, classes=[False, True])
    with pytest.raises(ValueError, match="3 features, but SOLAM is expecting 5"):
        model.partial_fit(X[:, :3], POSITIVE)


@pytest.mark.parametrize("model", [OPAUC(), OAM("gra"), UniExp(), SOLAM()], ids=str)
def test_a_class_that_was_wholly_forgotten_does_no_harm(model):
    model = clone(model).set_params(forgetting=0.5)
    model.partial_fit(X, POSITIVE, classes=[False, True])
    model.partial_fit(X[~POSITIVE], POSITIVE[~POSITIVE])
    assert np.isfinite(model.coef_).all()


def test_a_refused_first_call_leaves_no_trace():
    model = SOLAM()
    for classes in ([1, 2, 3], None):
        with pytest.raises(InputError):
            model.partial_fit(X, POSITIVE, classes=classes)
    assert model.partial_fit(X, POSITIVE, classes=[False, True]).score(X, POSITIVE) > 0.8


def named():
    """An estimator that has met a dictionary."""
    model = OPAUC()
    model.learn_one({"a": 1.0}, 1)
    return model


def test_fit_forgets_the_names_of_a_stream_of_dictionaries():
    model = named().fit(X, POSITIVE)
    assert model.score_one({"a": 1.0}) == 0.0
    with pytest.raises(InputError, match="already learns from arrays"):
        model.learn_one({"a": 1.0}, 1)


def test_a_first_block_that_is_refused_leaves_nothing_behind():
    model = OPAUC()
    with pytest.raises(InputError, match="label 7"):
        model.learn_one({"a": 1.0}, 7)
    with pytest.raises(InputError, match="label 7"):
        model.partial_fit(X[:, :3], np.where(POSITIVE, 7, 0), classes=[0, 1])
    model.partial_fit(X, POSITIVE.astype(int), classes=[0, 1])
    assert model.coef_.shape == (1, X.shape[1])
