import numpy as np
import pytest
from scipy import sparse

from telic.errors import InputError
from telic.specialty.recognise import (
    CLASSIFIERS,
    CORE_CLASSES,
    classifier,
    large_classes,
    recognise,
    with_specialty,
)
from telic.specialty.tfidf import AccessTfidf


@pytest.fixture(scope="module")
def users():
    rng = np.random.default_rng(0)
    profile = rng.dirichlet(np.full(80, 0.2), size=3)
    labels = np.repeat(["a", "b", "c"], [40, 30, 30])
    kind = np.repeat([0, 1, 2], [40, 30, 30])
    return sparse.csr_array(np.stack([rng.multinomial(40, profile[k]) for k in kind])), labels


def test_tfidf_by_its_formula_and_from_the_training_half_only(users):
    X = users[0].toarray()
    model = AccessTfidf().fit(X[:50])
    v, r = X[70], (X[:50] > 0).sum(axis=0)
    for d in range(X.shape[1]):
        expected = np.log(v[d] / v.sum() + 1) * np.log(51 / r[d]) if r[d] else 0.0
        assert model.transform(X[70:71])[0, d] == pytest.approx(expected)
    assert (AccessTfidf().fit_transform(np.zeros((2, 3))) == 0).all()


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier_recognises_separate_classes(users, name):
    found = recognise(*users, method=name)
    assert found.macro_f1(["a", "b", "c"]) > 0.85
    assert found.scores.shape == (5, 2, 3, 3)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_small_log_has_fewer_components(users, name):
    counts, labels = users[0][30:80, :17], users[1][30:80]  # 50 users, 25 in a training half
    assert recognise(counts, labels, method=name).scores.shape == (5, 2, 3, 3)


def test_shuffled_labels_are_not_recognised(users):
    labels = np.random.default_rng(0).permutation(users[1])
    assert recognise(users[0], labels).macro_f1(["a", "b", "c"]) < 0.45


def test_means_follow_their_definition(users):
    found = recognise(*users, method="Naive")
    fold = found.scores[2, 1]
    weight = np.array([40, 30]) / 70
    p, r = weight @ fold[:2, 0], weight @ fold[:2, 1]
    expected = 2 * p * r / (p + r)
    assert found._weighted(["a", "b"])[2, 1, 2] == pytest.approx(expected)
    same = found.compare("a", ["a"])
    assert all(test.p_value == 1.0 for test in same.values())


def test_labels_of_a_discovered_specialty():
    taxonomy = np.array(["Urology", "Surgery", "Urology", ""])
    labels = with_specialty(taxonomy, np.array([2, 3]), "new")
    assert labels.tolist() == ["Urology", "", "new", "new"]
    assert len(CORE_CLASSES) == 12


def test_small_classes_are_dropped_and_named():
    labels, dropped = large_classes(np.array(["a"] * 20 + ["b"] * 3 + [""]))
    assert dropped == {"b": 3}
    assert (labels == "a").sum() == 20


def test_bad_input_is_named(users):
    with pytest.raises(InputError, match="not a classifier"):
        classifier("magic")
    with pytest.raises(InputError, match="at least two classes"):
        recognise(users[0], np.full(100, "a"))
    with pytest.raises(InputError, match="class 'b' has fewer than 4 users"):
        recognise(users[0], np.array(["a"] * 97 + ["b"] * 3))
