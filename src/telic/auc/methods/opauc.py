"""OPAUC: one-pass AUC optimisation by class covariances (Gao, Jin, Zhu and Zhou, 2013)."""

from telic.auc.methods.running_moments import SCARCE, observe
from telic.kernels import kernel
from telic.optim.rows import FAST


@kernel(fastmath=FAST)
def opauc_steps(X, positive, counts, means, w, covariance, scale, forgetting, beta, step_size):
    """Read rows in order, in place; covariance, (2, d, d), holds the lower triangles only."""
    d = w.size
    away, slope = w.copy(), w.copy()
    for i in range(X.shape[0]):
        c = 1 if positive[i] else 0
        other = 1 - c
        # Covariance first, while the mean is still the old one.
        new_count = counts[c] * forgetting + 1
        share = 1 / new_count
        for j in range(d):
            away[j] = X[i, j] - means[c, j]
        for j in range(d):
            push = share * away[j]
            for k in range(j + 1):
                covariance[c, j, k] = (1 - share) * (covariance[c, j, k] + push * away[k])
        observe(X, i, positive[i], counts, means, forgetting)
        if counts[other] < SCARCE:
            continue
        score, square, trace = 0.0, 0.0, 0.0
        for j in range(d):
            away[j] = X[i, j] - means[other, j]
            score += away[j] * w[j]
            square += away[j] * away[j]
            trace += covariance[other, j, j]
        pull = score - 1 if positive[i] else score + 1
        for j in range(d):
            total = covariance[other, j, j] * w[j] + pull * away[j]
            for k in range(j):
                total += covariance[other, j, k] * w[k]
                slope[k] += covariance[other, j, k] * w[j]
            slope[j] = total
        _step(w, slope, counts, scale, square + trace, beta, step_size)


@kernel(fastmath=FAST)
def opauc_sketch_steps(
    X, positive, counts, means, w, sketch, sums, draws, scale, forgetting, beta, step_size
):
    """As `opauc_steps` with a sketch Z = Σ x·rᵀ of shape (2, d, rank); sums holds Σ r.

    With E[r·rᵀ] = I, (Z − m·Σrᵀ)(Z − m·Σrᵀ)ᵀ over the count estimates the covariance.
    """
    d, rank = w.size, sums.shape[1]
    along, slope = sums[0].copy(), w.copy()
    for i in range(X.shape[0]):
        c = 1 if positive[i] else 0
        other = 1 - c
        keep = forgetting**0.5
        for j in range(d):
            for k in range(rank):
                sketch[c, j, k] = keep * sketch[c, j, k] + X[i, j] * draws[i, k]
        for k in range(rank):
            sums[c, k] = keep * sums[c, k] + draws[i, k]
        # Forgetting counts every row, the sketch of the other class too.
        if keep < 1:
            for k in range(rank):
                sums[other, k] *= keep
                for j in range(d):
                    sketch[other, j, k] *= keep
        observe(X, i, positive[i], counts, means, forgetting)
        if counts[other] < SCARCE:
            continue
        score, square, mean_score, trace = 0.0, 0.0, 0.0, 0.0
        for j in range(d):
            gap = X[i, j] - means[other, j]
            score += gap * w[j]
            square += gap * gap
            mean_score += means[other, j] * w[j]
        for k in range(rank):
            along[k] = -sums[other, k] * mean_score
        for j in range(d):
            for k in range(rank):
                along[k] += sketch[other, j, k] * w[j]
        pull = score - 1 if positive[i] else score + 1
        for j in range(d):
            total = 0.0
            for k in range(rank):
                entry = sketch[other, j, k] - means[other, j] * sums[other, k]
                total += entry * along[k]
                trace += entry * entry
            slope[j] = total / counts[other] + pull * (X[i, j] - means[other, j])
        _step(w, slope, counts, scale, square + trace / counts[other], beta, step_size)


@kernel(fastmath=FAST, inline="always")
def _step(w, slope, counts, scale, curvature, beta, step_size):
    """Step 1/(L + λt) with L the largest curvature so far and λ = beta/(2p(1−p))."""
    seen = counts[0] + counts[1]
    ridge = beta * seen * seen / (2 * counts[0] * counts[1])
    scale[0] = max(scale[0], curvature)
    eta = step_size / (scale[0] + ridge * seen + 1e-300)
    for j in range(w.size):
        w[j] -= eta * (slope[j] + ridge * w[j])
