"""Algorithm 1 of chapter 4 as it is printed (with min for max): whole vectors, no tricks."""

import numpy as np


def asbcd_dense(gradient, ridge, prox, w, p, blocks, step, draws):
    """Run the drawn steps and return the final w.

    gradient(i, w) is the gradient of the loss of row i and ridge(w) that of the l2 term, which is
    added exactly; prox(z, step) is the penalty's, blocks a list of coordinate arrays and draws a
    list of (i, j).
    """
    n = p.size
    w = w.copy()
    table = np.array([gradient(i, w) for i in range(n)])
    for i, j in draws:
        now = gradient(i, w)
        estimate = (now - table[i]) / (n * p[i]) + table.mean(axis=0) + ridge(w)
        moved = prox(w - step * estimate, step)
        table[i] = now
        w[blocks[j]] = moved[blocks[j]]
    return w
