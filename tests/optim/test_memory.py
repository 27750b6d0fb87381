"""Beyond the data each method holds a few vectors."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from telic.optim import minimize
from telic.optim.design import as_design

N, D = 40_000, 30


@pytest.mark.parametrize(
    ("method", "vectors"),
    [
        *(("sgd", 2.1), ("mrbcd", 3.1), ("svrg", 2.2), ("saga", 3.1), ("asbcd", 4.6)),
        *(("sdca", 3.2), ("gram", 3.1), ("prox_newton", 4.6)),
    ],
)
def test_the_peak_is_so_many_vectors_of_length_n(method, vectors):
    """The sample weights are one of them."""
    X = sparse.random(N, D, density=0.2, format="csr", random_state=0)
    y = np.where(np.arange(N) % 3, 1.0, -1.0)
    design = as_design(X)
    design.rows, design.columns  # noqa: B018
    options = {"l1": 1e-3, "l2": 1e-3, "method": method, "tol": 0.5}
    minimize(design, y, **options)  # compiles
    tracemalloc.start()
    minimize(design, y, **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 8 * vectors * N + 2**17
