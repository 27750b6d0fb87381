import numpy as np
import pytest
from river import checks, datasets, evaluate, metrics, preprocessing
from scipy.special import logit
from sklearn.exceptions import NotFittedError

from telic.auc import OAM, OPAUC, SOLAM, RegSOLAM, UniExp
from telic.auc.for_river import RiverAUC
from telic.errors import InputError
from telic.evaluate.classification import roc_auc


@pytest.mark.parametrize(
    "check", list(checks.yield_checks(RiverAUC())), ids=lambda check: check.__name__
)
def test_rivers_own_checks(check):
    check(RiverAUC())


@pytest.mark.parametrize("learner", [SOLAM(), RegSOLAM(), OPAUC(), OAM(random_state=0), UniExp()])
def test_rivers_evaluation_takes_every_method(learner):
    model = preprocessing.StandardScaler() | RiverAUC(learner)
    measures = metrics.ROCAUC(n_thresholds=100) + metrics.Accuracy()
    found = evaluate.progressive_val_score(datasets.Phishing(), model, measures)
    area, accuracy = found.get()
    assert area > 0.9
    assert accuracy > 0.8
    assert not hasattr(learner, "_state")  # the model that was given stays as it is


def stream(labels=("ok", "fraud")):
    rng = np.random.default_rng(0)
    for _ in range(600):
        positive = rng.random() < 0.2
        yield {"a": rng.normal() + 2 * positive, 7: rng.normal()}, labels[int(positive)]


@pytest.mark.parametrize(
    ("labels", "options", "positive"),
    [
        (("ok", "fraud"), {}, "fraud"),  # the second that is seen
        (("ok", "fraud"), {"pos_label": "ok"}, "ok"),
        ((0, 1), {}, 1),
        ((False, True), {"pos_label": False}, False),
    ],
)
def test_any_two_labels(labels, options, positive):
    model, rows = RiverAUC(OPAUC(), **options), list(stream(labels))
    for x, y in rows:
        model.learn_one(x, y)
    chances = [model.predict_proba_one(x) for x, _ in rows]
    assert all(set(one) == set(labels) for one in chances)
    truth = [y == positive for _, y in rows]
    area = roc_auc(truth, [one[positive] for one in chances])
    assert area == pytest.approx(roc_auc(truth, [model.score_one(x) for x, _ in rows]))
    assert area > 0.85
    # The mean probability is the share, and the likelier half of the rows has most positives.
    assert np.mean([one[positive] for one in chances]) == pytest.approx(np.mean(truth), abs=0.03)
    surer = [truth[i] for i in np.argsort([one[positive] for one in chances])[-60:]]
    assert np.mean(surer) == pytest.approx(
        np.mean(sorted(one[positive] for one in chances)[-60:]), abs=0.15
    )


def test_probabilities_are_those_of_two_normal_distributions_that_run_with_the_stream():
    model, learner, rows, variance = RiverAUC(OPAUC()), OPAUC(), [], 0.0
    rng = np.random.default_rng(0)
    for _ in range(60):
        positive = bool(rng.random() < 0.3)
        x = {"a": rng.normal() + 2 * positive, "b": rng.normal()}
        score = learner.score_one(x)
        learner.learn_one(x, positive)
        model.learn_one(x, positive)
        rows.append((*x.values(), positive))
        X, y = np.array(rows)[:, :2], np.array(rows)[:, 2] == 1
        w = learner._weights(learner._state)[:2]
        distance = 0.0 if y.all() or not y.any() else (X[y].mean(0) - X[~y].mean(0)) @ w
        variance += ((score - (distance / 2 if positive else -distance / 2)) ** 2 - variance) / len(
            y
        )
        if 0 < y.sum() < len(y):
            odds = np.log((y.sum() + 0.5) / ((~y).sum() + 0.5))
            odds += distance * learner.score_one(x) / variance if variance else 0.0
            found = model.predict_proba_one(x)
            assert logit(found[True]) == pytest.approx(odds)
            assert found[False] == pytest.approx(1 - found[True])


def test_before_the_first_row_nothing_is_known():
    assert RiverAUC().predict_proba_one({"x": 1.0}) == {False: 0.5, True: 0.5}


def test_a_third_label_is_named():
    model = RiverAUC()
    for label in ("a", "b"):
        model.learn_one({"x": 1.0}, label)
    with pytest.raises(InputError, match="label 'c', but the stream has 'a' and 'b' already"):
        model.learn_one({"x": 1.0}, "c")


@pytest.mark.parametrize("label", ["fraud", "unknown"])
def test_of_a_row_that_is_refused_no_label_is_kept(label):
    model, other = RiverAUC(), RiverAUC()
    with pytest.raises(InputError, match="nan"):
        model.learn_one({"a": float("nan")}, label)
    for x, y in ((1.0, "ok"), (5.0, "fraud"), (0.0, "ok"), (6.0, "fraud")):
        model.learn_one({"a": x}, y)
        other.learn_one({"a": x}, y)
    assert model.score_one({"a": 6.0}) == other.score_one({"a": 6.0}) > 0
    assert model.predict_proba_one({"a": 6.0}) == other.predict_proba_one({"a": 6.0})


def test_rows_as_dictionaries_fit_nothing_for_arrays():
    model = SOLAM()
    model.learn_one({"x": 1.0}, True)
    with pytest.raises(NotFittedError):
        model.decision_function(np.ones((1, 1)))


def test_one_label_is_certain_until_the_other_comes():
    model = RiverAUC()
    model.learn_one({"x": 1.0}, "a")
    assert model.predict_proba_one({"x": 0.0}) == {"a": 1.0}


def test_probabilities_follow_when_rows_become_harder_to_tell_apart():
    def rows(spread, count, rng):
        for i in range(count):
            yield {"a": 2.0 * (i % 2) - 1 + spread * rng.normal()}, bool(i % 2)

    turned, always = RiverAUC(OPAUC()), RiverAUC(OPAUC())
    for x, y in rows(0.3, 5000, np.random.default_rng(0)):
        turned.learn_one(x, y)
    for x, y in rows(2.0, 4000, np.random.default_rng(1)):
        turned.learn_one(x, y)
        always.learn_one(x, y)
    odds = [logit(one.predict_proba_one({"a": 3.0})[True]) for one in (turned, always)]
    assert odds[0] == pytest.approx(odds[1], rel=0.15)
