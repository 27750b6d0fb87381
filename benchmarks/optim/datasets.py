"""The data of the speed table: generated shapes of rcv1 and E2006, and covtype where it lies."""

import os
from functools import cache
from pathlib import Path

import numpy as np
from scipy import sparse

from telic.optim.text_like_data import e2006_like, rcv1_like

DATA = Path(os.environ.get("TELIC_DATA", Path(__file__).parents[2] / "../shared/data"))


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
    file = DATA / "ml" / "covtype.npz"
    if not file.is_file():
        return None
    q = np.load(file)
    X = sparse.csr_matrix((q["data"].astype(float), q["indices"], q["indptr"]), shape=q["shape"])
    largest = np.maximum(abs(X).max(axis=0).toarray().ravel(), 1e-12)
    return (X @ sparse.diags(1.0 / largest)).tocsr(), q["y"].astype(float)
