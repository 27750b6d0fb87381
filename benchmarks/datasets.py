"""The data sets of all benchmarks: generated shapes, and real sets where they lie."""

from functools import cache
from typing import Any

import numpy as np
from scipy import sparse

from telic.auc.feature_scaling import Scaling
from telic.data.data_sets import labelled_set, set_file
from telic.simulate.text_corpora import e2006_like, rcv1_like


def generated(name: str) -> tuple[Any, np.random.Generator]:
    """Rows of a family and size, such as "iid 1,000 × 20", and what draws their targets."""
    family, rows, _, columns = name.replace(",", "").split()
    n, d = int(rows), int(columns)
    rng = np.random.default_rng(n + d)
    X: Any = rng.standard_normal((n, d))
    if family == "correlated":
        for j in range(1, d):
            X[:, j] = 0.9 * X[:, j - 1] + 0.436 * X[:, j]
    elif family == "heavy":
        X = rng.standard_t(3, (n, d))
    elif family == "counts":
        X = rng.poisson(rng.gamma(1.0, 3.0, d), (n, d)).astype(float)
    elif family == "sparse":
        X = sparse.random(n, d, 0.05, "csr", random_state=rng)
    elif family == "one-hot":
        X = sparse.csr_matrix(np.eye(10)[rng.integers(0, 10, (n, d // 10))].reshape(n, d))
    return X, rng


@cache
def rcv1():
    """20,242 × 47,236 with 74 non-zeros a row, from a topic model."""
    return rcv1_like()


@cache
def e2006():
    """16,087 × 150,360 with 1,240 non-zeros a row, from a topic model."""
    return e2006_like()


@cache
def covtype():
    """581,012 × 54, columns scaled to a largest absolute value of 1; None where it is missing."""
    if (found := _covtype()) is None:
        return None
    X, y = found
    largest = np.maximum(abs(X).max(axis=0).toarray().ravel(), 1e-12)
    return (X @ sparse.diags(1.0 / largest)).tocsr(), y


def covtype_unit_rows():
    """Covtype, columns in [−1, 1], unit rows, or rows like it; and whether it is the real set."""
    if (found := _covtype()) is not None:
        X, positive = found[0].toarray(), found[1] > 0
    else:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(581_012, 54)) * np.geomspace(1, 0.01, 54) + 1
        z = X @ rng.normal(size=54)
        positive = z + z.std() * rng.normal(size=len(X)) > np.median(z)
    return Scaling.fit(X, "minmax+unit").apply(X), positive, found is not None


@cache
def _covtype():
    return labelled_set("covtype")[:2] if set_file("covtype").is_file() else None


def rcv1_shape(n=20_242, d=47_236, length=74, seed=0):
    """Unit rows of rcv1's size without topics: words by a power law, a noisy linear label.

    The AUC pages keep to these rows, so that their figures can be compared with older ones.
    """
    rng = np.random.default_rng(seed)
    share = np.arange(1, d + 1) ** -0.9
    words = rng.choice(d, size=n * length, p=share / share.sum())
    rows = np.repeat(np.arange(n), length)
    X = sparse.csr_matrix((np.ones(n * length), (rows, words)), shape=(n, d))
    X.sum_duplicates()
    idf = np.log(n / np.maximum(1, np.bincount(X.indices, minlength=d)))
    X.data = (1 + np.log(X.data)) * idf[X.indices]
    X = Scaling.fit(X, "unit").apply(X)
    z = X @ rng.normal(size=d)
    return X, z + rng.normal(size=n) * z.std() / 2 > 0
