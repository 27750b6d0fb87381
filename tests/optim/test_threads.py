"""Threads change the time, never the result."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_info, threadpool_limits

from telic.errors import InputError
from telic.optim import ElasticNetClassifier, make_problem, minimize, solve
from telic.optim.threads import SMALL_MATRIX, SMALLEST, share, small_products
from telic.simulate.text_corpora import rcv1_like


@pytest.mark.parametrize("method", ["gram", "prox_newton"])
@pytest.mark.parametrize("dense", [False, True])
def test_the_result_is_the_same_to_the_last_bit_at_any_number_of_threads(method, dense):
    X, y = rcv1_like(n=9000, d=300, words=12)
    problem = make_problem(X.toarray() if dense else X, y, l1=1e-3, l2=1e-4, fit_intercept=True)
    results = [
        solve(replace(problem, threads=threads), method=method, tol=1e-9) for threads in (1, 2, 3)
    ]
    for other in results[1:]:
        np.testing.assert_array_equal(other.coef, results[0].coef)
        assert other.gap == results[0].gap


def test_small_problems_stay_on_one_thread_and_large_ones_use_those_asked_for():
    X = sparse.random(2000, 300, density=0.5, format="csr", random_state=0)
    y = np.where(np.arange(2000) % 2, 1.0, -1.0)
    assert X.nnz > SMALLEST
    assert make_problem(X, y, threads=2).threads == 2
    assert make_problem(X[:100], y[:100], threads=2).threads == 1
    with pytest.raises(InputError, match="threads is 0"):
        minimize(X, y, l2=1.0, threads=0)
    alone, both = (ElasticNetClassifier(C=1e-3, n_jobs=jobs).fit(X, y) for jobs in (None, 2))
    np.testing.assert_array_equal(alone.coef_, both.coef_)


def test_an_error_in_any_turn_is_raised():
    def kernel(turn, threads):
        if turn == 1:
            raise ZeroDivisionError

    share(kernel, 1)
    with pytest.raises(ZeroDivisionError):
        share(kernel, 2)


def blas_threads():
    libraries = threadpool_info()
    return {each["num_threads"] for each in libraries if each["user_api"] == "blas"}


def test_small_products_keep_blas_to_one_thread_and_give_it_back():
    with threadpool_limits(limits=2, user_api="blas"):
        with small_products(SMALL_MATRIX + 1):
            assert blas_threads() == {2}
        with small_products(SMALL_MATRIX), small_products(3):
            assert blas_threads() == {1}
        assert blas_threads() == {2}


def test_fits_in_threads_leave_blas_as_it_was():
    before, inside = blas_threads(), Barrier(3, timeout=20)

    def fit(_):
        with small_products(10):
            inside.wait()  # all three are in at once
            return blas_threads()

    with ThreadPoolExecutor(3) as pool:
        assert {1} in list(pool.map(fit, range(3)))
    assert blas_threads() == before
