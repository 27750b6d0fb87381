"""Which label is positive: never the other one without a word."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import RocCurveDisplay, average_precision_score, make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score

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
from telic.errors import InputError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
FRAUD = 2 * X[:, 0] + 0.4 * RNG.normal(size=600) > 2
LABELS = np.where(FRAUD, "fraud", "sound")  # "sound" is the larger label, and the commoner one
ALL = [
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
    OAM("gra"),
    OAM("seq"),
    UniExp(),
]
STREAMS = [SPAM(), SOLAM(), RegSOLAM(), OPAUC(), OAM("gra"), OAM("seq"), UniExp()]


def frauds_first(scores):
    return FRAUD[np.argsort(-scores)[:50]].mean()


@pytest.mark.parametrize("model", ALL, ids=str)
def test_pos_label_ranks_its_class_first_and_is_what_the_threshold_calls(model):
    model = (
        clone(model).set_params(pos_label="fraud", threshold=("top_k", 40), random_state=0)
        if "random_state" in model.get_params()
        else clone(model).set_params(pos_label="fraud", threshold=("top_k", 40))
    )
    model.fit(X, LABELS)
    assert model.classes_.tolist() == ["sound", "fraud"]
    scores = model.decision_function(X)
    assert frauds_first(scores) > 0.8
    called = model.predict(X) == "fraud"
    assert called.sum() == 40
    assert (called == (scores > 0)).all()
    assert model.score(X, LABELS) > 0.9
    # The same model as for labels that name themselves.
    named = clone(model).set_params(pos_label=True).fit(X, FRAUD)
    assert (named.coef_ == model.coef_).all()
    assert clone(model).fit(X, LABELS).decision_function(X) == pytest.approx(scores)


def test_the_larger_label_is_positive_by_default_and_a_majority_is_named():
    with pytest.warns(UserWarning, match="positive class is 'sound', which holds 8.*pos_label='f"):
        model = AUCClassifier().fit(X, LABELS)
    assert model.classes_.tolist() == ["fraud", "sound"]
    assert frauds_first(model.decision_function(X)) < 0.2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert AUCClassifier(pos_label="sound").fit(X, LABELS).coef_ == pytest.approx(model.coef_)
        AUCClassifier().fit(X, np.where(FRAUD, 1, 0))
        AUCClassifier().fit(X[:2], np.array([0, 1]))  # half is no majority
    with pytest.warns(UserWarning, match="positive class is 1"):
        AUCClassifier().fit(X, np.where(FRAUD, -1, 1))
    with pytest.warns(UserWarning, match="positive class is 'sound', which holds 9"):
        AUCClassifier().fit(X, LABELS, np.where(FRAUD, 0.5, 1))
    AUCClassifier().fit(X, LABELS, np.where(FRAUD, 100, 1))  # in weight "sound" is the rarer


def test_a_label_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="pos_label: 'fraudd' is none of the labels"):
        AUCClassifier(pos_label="fraudd").fit(X, LABELS)
    with pytest.raises(InputError, match="pos_label: 'fraudd' is none of the labels"):
        SOLAM(pos_label="fraudd").partial_fit(X, LABELS, classes=["sound", "fraud"])
    with pytest.raises(InputError, match="y: label 'sound' is none of the classes"):
        SOLAM().partial_fit(X, LABELS, classes=["fine", "fraud"])
    with pytest.raises(InputError, match="y: label 'fine' was not seen in fit"):
        AUCClassifier(pos_label="fraud").fit(X, LABELS).score(X, np.full(len(X), "fine"))


@pytest.mark.parametrize("model", STREAMS, ids=str)
def test_a_stream_takes_the_order_in_which_its_classes_are_given(model):
    order = RNG.permutation(600)
    for classes, sign in ((["sound", "fraud"], 1), (["fraud", "sound"], -1)):
        stream = clone(model).set_params(random_state=0)
        stream.partial_fit(X[order], LABELS[order], classes=classes)
        stream.partial_fit(X[order], LABELS[order])
        assert stream.classes_.tolist() == classes
        assert frauds_first(sign * stream.decision_function(X)) > 0.7
        assert stream.score(X, LABELS) > 0.9
        other = classes[::-1]
        with pytest.raises(InputError, match=r"\(negative, positive\). Leave classes out"):
            stream.partial_fit(X, LABELS, classes=other)
    # A label that was named counts, whatever the order.
    stream = clone(model).set_params(random_state=0, pos_label="fraud")
    for _ in range(2):
        stream.partial_fit(X[order], LABELS[order], classes=np.unique(LABELS))
    assert stream.classes_.tolist() == ["sound", "fraud"]
    assert frauds_first(stream.decision_function(X)) > 0.7


def test_what_scikit_learns_scorers_make_of_it():
    model = AUCClassifier(pos_label="fraud")
    own = cross_val_score(model, X, LABELS)
    assert own.min() > 0.9  # the estimator's own score is the AUC whatever is positive
    named = make_scorer(
        average_precision_score, response_method="decision_function", pos_label="fraud"
    )
    assert cross_val_score(model, X, LABELS, scoring=named).min() > 0.6
    assert RocCurveDisplay.from_estimator(
        model.fit(X, LABELS), X, LABELS, pos_label="fraud"
    ).roc_auc == pytest.approx(model.score(X, LABELS))
    # "roc_auc" takes the larger label as positive and cannot be told otherwise: as documented,
    # it sees 1 − AUC, and labels that name themselves put it right.
    assert cross_val_score(model, X, LABELS, scoring="roc_auc") == pytest.approx(1 - own)
    bools = AUCClassifier()
    assert cross_val_score(bools, X, FRAUD, scoring="roc_auc") == pytest.approx(own)
    search = GridSearchCV(model, {"beta": [1e-4, 1e4]}).fit(X, LABELS)
    assert search.best_score_ > 0.9
    chances = CalibratedClassifierCV(bools).fit(X, FRAUD).predict_proba(X)[:, 1]
    assert chances[FRAUD].mean() > 2 * chances[~FRAUD].mean()
