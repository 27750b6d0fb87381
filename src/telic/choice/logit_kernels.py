"""Numba pieces that the solvers share: softmax, moments."""

import numpy as np

from telic.kernels import kernel


@kernel
def softmax(p, size, top):
    """Turn the first scores, whose largest is `top`, into probabilities; return their sum.

    Not that of `telic.optim.softmax`, which takes all rows at once, of as many classes each, with
    an exponential that the processor computes for several numbers together.
    """
    total = 0.0
    for i in range(size):
        p[i] = np.exp(p[i] - top)
        total += p[i]
    for i in range(size):
        p[i] /= total
    return total


@kernel
def softmax_rows(x, offset, first, last, w, p):
    """Write the probabilities of rows first:last into p[:last - first]; return log of their sum."""
    top = -np.inf
    for r in range(first, last):
        score = offset[r]
        for j in range(x.shape[1]):
            score += x[r, j] * w[j]
        p[r - first] = score
        top = max(top, score)
    return top + np.log(softmax(p, last - first, top))


@kernel
def add_moments(x, offset, start, chosen, first, last, w, p, mean, gradient, hessian):
    """Add gradient and Hessian over the choices first:last; return their loss, without penalty."""
    d = x.shape[1]
    value = 0.0
    for c in range(first, last):
        a, b = start[c], start[c + 1]
        value += softmax_rows(x, offset, a, b, w, p)
        value -= offset[chosen[c]]
        for j in range(d):
            value -= x[chosen[c], j] * w[j]
            mean[j] = 0.0
        for r in range(a, b):
            for j in range(d):
                mean[j] += p[r - a] * x[r, j]
        for j in range(d):
            gradient[j] += mean[j] - x[chosen[c], j]
        for r in range(a, b):
            for j in range(d):
                weighted = p[r - a] * (x[r, j] - mean[j])
                if weighted != 0.0:
                    for k in range(j + 1):
                        hessian[j, k] += weighted * (x[r, k] - mean[k])
    return value
