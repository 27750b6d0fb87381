"""The data sets of all benchmarks: generated shapes, and real sets where they lie."""

from functools import cache

import numpy as np
from scipy import sparse

from telic.data.data_sets import labelled_set, set_file
from telic.simulate.text_corpora import e2006_like, rcv1_like


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
    if not set_file("covtype").is_file():
        return None
    X, y, _ = labelled_set("covtype")
    largest = np.maximum(abs(X).max(axis=0).toarray().ravel(), 1e-12)
    return (X @ sparse.diags(1.0 / largest)).tocsr(), y
