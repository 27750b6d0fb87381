"""covtype where it is at hand, else its shape; and rows of the shape of rcv1."""

import numpy as np
from scipy import sparse

from telic.auc.feature_scaling import Scaling
from telic.data.data_sets import labelled_set, set_file


def covtype():
    """581,012 × 54, columns in [−1, 1], unit rows; and whether it is the real set."""
    real = set_file("covtype").is_file()
    if real:
        X, y, _ = labelled_set("covtype")
        X, positive = X.toarray(), y > 0
    else:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(581_012, 54)) * np.geomspace(1, 0.01, 54) + 1
        z = X @ rng.normal(size=54)
        positive = z + z.std() * rng.normal(size=len(X)) > np.median(z)
    return Scaling.fit(X, "minmax+unit").apply(X), positive, real


def rcv1_shape(n=20_242, d=47_236, length=74, seed=0):
    """Generated tf-idf-like unit rows: words by a power law, a sparse noisy linear label."""
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
