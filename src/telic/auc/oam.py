"""OAM: online AUC maximisation with the pairwise hinge and reservoirs (Zhao et al., 2011)."""

from numba import njit

from telic.auc.rows import FAST
from telic.auc.statistics import SCARCE, observe


@njit(cache=True, nogil=True, fastmath=FAST, inline="always")
def _keep(X, i, c, buffer, sizes, seen, draw):
    """Reservoir sampling: every row of a class is in its buffer with the same probability."""
    seen[c] += 1
    place = sizes[c]
    if place == buffer.shape[1]:
        place = int(draw * seen[c])
        if place >= buffer.shape[1]:
            return
    else:
        sizes[c] += 1
    for j in range(X.shape[1]):
        buffer[c, place, j] = X[i, j]


@njit(cache=True, nogil=True, fastmath=FAST)
def oam_sequential_steps(X, positive, counts, means, w, buffer, sizes, seen, draws, C, forgetting):
    """One passive-aggressive step for each row of the other class's buffer, in turn."""
    d = w.size
    for i in range(X.shape[0]):
        c = 1 if positive[i] else 0
        sign = 1.0 if positive[i] else -1.0
        observe(X, i, positive[i], counts, means, forgetting)
        _keep(X, i, c, buffer, sizes, seen, draws[i])
        size = sizes[1 - c]
        if size == 0:
            continue
        # The buffer stands for all rows of its class seen so far.
        most = C * max(1.0, seen[1 - c] / size)
        for b in range(size):
            margin, square = 0.0, 0.0
            for j in range(d):
                gap = X[i, j] - buffer[1 - c, b, j]
                margin += gap * w[j]
                square += gap * gap
            loss = 1 - sign * margin
            if loss > 0 and square > 0:
                push = sign * min(most, loss / square)
                for j in range(d):
                    w[j] += push * (X[i, j] - buffer[1 - c, b, j])


@njit(cache=True, nogil=True, fastmath=FAST)
def oam_gradient_steps(
    X, positive, counts, means, w, buffer, sizes, seen, draws, scale, forgetting, beta, step_size
):
    """One subgradient step on the mean hinge against the other class's buffer."""
    d = w.size
    push = w.copy()
    for i in range(X.shape[0]):
        c = 1 if positive[i] else 0
        sign = 1.0 if positive[i] else -1.0
        observe(X, i, positive[i], counts, means, forgetting)
        _keep(X, i, c, buffer, sizes, seen, draws[i])
        size = sizes[1 - c]
        if size == 0 or counts[1 - c] < SCARCE:
            continue
        own = 0.0
        for j in range(d):
            own += X[i, j] * w[j]
            push[j] = 0.0
        violated = 0
        for b in range(size):
            other = 0.0
            for j in range(d):
                other += buffer[1 - c, b, j] * w[j]
            if sign * (own - other) < 1:
                violated += 1
                for j in range(d):
                    push[j] -= buffer[1 - c, b, j]
        square = 0.0
        for j in range(d):
            push[j] = sign * (push[j] + violated * X[i, j]) / size
            square += push[j] * push[j]
        scale[0] = max(scale[0], square)
        time = counts[0] + counts[1]
        ridge = beta * time * time / (counts[0] * counts[1])
        eta = step_size / (scale[0] + ridge * time + 1e-300)
        for j in range(d):
            w[j] += eta * (push[j] - ridge * w[j])
