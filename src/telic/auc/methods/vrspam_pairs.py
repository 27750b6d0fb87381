"""VRSPAM on sampled pairs: sparse steps with an elastic net.

The gradient of one pair's loss, 2p(1 − p)(⟨w, D⟩ − 1)·D with D = x⁺ − x⁻, needs no class mean. It
is unbiased, a true gradient (that of a row is not), and zero wherever both rows are: there ∇f(w̃),
the ridge and the threshold act alone, and `telic.optim.prox_kernels.advance` makes up for any
number of such steps at once.
"""

import numpy as np

from telic.auc.objective import ClassMeans
from telic.kernels import kernel
from telic.optim.prox_kernels import advance, decay_tables, soft
from telic.optim.rows import Rows, row_add, row_dot


def pair_stage(
    rows: Rows,
    drawn: tuple[np.ndarray, np.ndarray],
    scores: np.ndarray,
    snapshot: np.ndarray,
    gradient: np.ndarray,
    means: ClassMeans,
    beta: float,
    beta1: float,
    eta: float,
) -> np.ndarray:
    """Return the weights after one variance-reduced step for each pair drawn.

    Parameters
    ----------
    rows : SparseRows
    drawn : (int array, int array)
        Positive and negative row of each step.
    scores : float array of shape (n,)
        X @ snapshot.
    snapshot, gradient : float arrays of shape (d,)
        w̃ and the gradient of the loss there, without the penalty.
    means : ClassMeans
    beta, beta1, eta : float
        Ridge, ℓ₁ and step.
    """
    length = min(drawn[0].size, 4 * snapshot.size) + 1
    powers, sums = np.empty(length), np.empty(length)
    decay_tables(eta * beta, powers, sums)
    w = snapshot.copy()
    curvature = 2 * means.pair_weight
    _pair_steps(rows, *drawn, scores, w, gradient, curvature, beta, beta1, eta, powers, sums)
    return w


@kernel
def _pair_steps(rows, high, low, scores, w, gradient, curvature, beta, beta1, eta, powers, sums):
    """Steps w ← soft((1 − eta·beta)·w − eta·(slope·D + gradient), eta·beta1), in place."""
    done = np.zeros(w.size, np.int64)
    for t in range(high.size):
        for i in (high[t], low[t]):
            for q in range(rows.indptr[i], rows.indptr[i + 1]):
                k = rows.indices[q]
                if done[k] < t:
                    w[k] = advance(
                        w[k], gradient[k], t - done[k], eta, beta1, beta1, beta, powers, sums
                    )
                    done[k] = t
        margin = row_dot(rows, high[t], w) - row_dot(rows, low[t], w)
        slope = curvature * (margin - (scores[high[t]] - scores[low[t]]))
        # The ridge takes its share of w before the pair moves it, the threshold last.
        for i in (high[t], low[t]):
            for q in range(rows.indptr[i], rows.indptr[i + 1]):
                k = rows.indices[q]
                if done[k] == t:
                    w[k] = (1 - eta * beta) * w[k] - eta * gradient[k]
                    done[k] = t + 1
        row_add(rows, high[t], -eta * slope, w)
        row_add(rows, low[t], eta * slope, w)
        for i in (high[t], low[t]):
            for q in range(rows.indptr[i], rows.indptr[i + 1]):
                k = rows.indices[q]
                if done[k] == t + 1:
                    w[k] = soft(w[k], eta * beta1, eta * beta1)
                    done[k] = -(t + 1)  # a column that both rows have is cut once
        for i in (high[t], low[t]):
            for q in range(rows.indptr[i], rows.indptr[i + 1]):
                done[rows.indices[q]] = t + 1
    for k in range(w.size):
        if done[k] < high.size:
            w[k] = advance(
                w[k], gradient[k], high.size - done[k], eta, beta1, beta1, beta, powers, sums
            )
