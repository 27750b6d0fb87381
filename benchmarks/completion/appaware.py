"""AppAware at the printed size: 411,000 choices, 10,000 queries × 2,000 apps, on made-up data.

Run as ``python benchmarks/completion/appaware.py``; ``--scale 0.1`` for a tenth of the choices,
``--rivals`` to compare with SciPy's L-BFGS-B at a size that it can hold.
"""

import argparse
import json
import resource
import time

import numpy as np

from telic.choice import Elastic, FactoredChoices, fit_accelerated, fit_saga


def made_up(n, queries, apps, installed=95, candidates=10, seed=0):
    """Choices among neighbours in a list of queries, partly caused by a sparse table of weights."""
    rng = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, apps + 1) ** 0.8
    popularity *= installed / popularity.sum()
    for _ in range(20):
        popularity = np.minimum(popularity * installed / popularity.sum(), 0.95)
    has = np.empty((0,), np.int32)
    parts, lengths = [], []
    for begin in range(0, n, 20_000):
        mask = rng.random((min(20_000, n - begin), apps), np.float32) < popularity
        parts.append(np.nonzero(mask)[1].astype(np.int32))
        lengths.append(mask.sum(axis=1))
    has, lengths = np.concatenate(parts), np.concatenate(lengths)
    value = np.log1p(rng.lognormal(-0.9, 1.3, len(has)))
    value /= value.std()
    groups = queries // candidates
    group = np.minimum((rng.pareto(0.9, n) * 3).astype(int), groups - 1)
    outcome = (group[:, None] * candidates + np.arange(candidates)).astype(np.int32).ravel()
    offset = np.tile(-0.8 * np.log1p(np.arange(candidates)), n)
    truth = np.where(rng.random((queries, apps), np.float32) < 0.01, 1.0, 0.0).ravel()
    truth *= rng.standard_normal(len(truth), np.float32)
    start = np.arange(n + 1) * candidates
    choices = FactoredChoices(
        queries, apps, 0, outcome, offset, start, start[:-1],
        np.concatenate([[0], np.cumsum(lengths)]), has, value,
    )  # fmt: skip
    score = choices.scores(truth) + rng.gumbel(size=len(offset))
    chosen = start[:-1] + score.reshape(n, candidates).argmax(axis=1)
    return FactoredChoices(
        queries, apps, 0, outcome, offset, start, chosen, choices.context_start, has, value
    )


def certified_gap(choices, penalty, w):
    """The objective is l2-strongly convex: its gap is at most |least subgradient|^2 / (2 l2)."""
    slope = choices.gradient(w) + penalty.l2 * w
    at_zero = np.maximum(np.abs(slope) - penalty.l1, 0.0)
    least = np.where(w == 0, at_zero, np.abs(slope + penalty.l1 * np.sign(w)))
    return float(least @ least / (2 * penalty.l2))


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--passes", type=int, default=15)
    parser.add_argument("--rivals", action="store_true")
    args = parser.parse_args()
    penalty = Elastic(1e-4, 1e-4)
    fit_saga(made_up(50, 20, 100), penalty, passes=2)  # compile outside the clock
    if args.rivals:
        rivals(penalty)
        return
    choices = made_up(int(411_000 * args.scale), 10_000, 2_000)
    began = time.perf_counter()

    def tell(done, total):
        print(f"pass {done}/{total}: {time.perf_counter() - began:.0f} s", flush=True)

    fit = fit_saga(choices, penalty, batch=args.batch, passes=args.passes, progress=tell)
    seconds = time.perf_counter() - began
    print(json.dumps({
        "choices": len(choices), "weights": choices.size, "batch": args.batch,
        "seconds": round(seconds, 1), "peak_gib": round(peak(), 2),
        "nonzero": int((fit.weights != 0).sum()), "history": fit.history,
        "certified_gap": certified_gap(choices, penalty, fit.weights),
    }), flush=True)  # fmt: skip


def rivals(penalty):
    """Seconds of each method to a relative gap of 1e-4."""
    from scipy import optimize

    choices = made_up(3_000, 200, 150, installed=30)
    best = fit_accelerated(choices, penalty, passes=3_000, tol=1e-6).objective
    d, reached = choices.size, {}

    def note(name, began, w):
        if name not in reached and penalty.objective(choices, w) <= best * (1 + 1e-4):
            reached[name] = time.perf_counter() - began

    for passes in range(1, 200):
        began = time.perf_counter()
        fit = fit_saga(choices, penalty, batch=20, passes=passes)
        note("telic saga", began, fit.weights)
        if "telic saga" in reached:
            break
    matrix = choices.matrix()
    matrix_t = matrix.T.tocsr()
    picked = np.zeros(choices.rows)
    picked[choices.chosen] = 1
    wide = choices.start[1]

    def value(z):
        w = z[:d] - z[d:]
        score = (choices.offset + matrix @ w).reshape(-1, wide)
        score -= score.max(axis=1, keepdims=True)
        odds = np.exp(score)
        p = odds / odds.sum(axis=1, keepdims=True)
        slope = matrix_t @ (p.ravel() - picked) / len(choices) + penalty.l2 * w
        loss = -np.log(p.ravel()[choices.chosen]).mean() + penalty.l2 / 2 * w @ w
        slopes = np.concatenate([slope + penalty.l1, -slope + penalty.l1])
        return loss + penalty.l1 * z.sum(), slopes

    began = time.perf_counter()
    optimize.minimize(
        value, np.zeros(2 * d), jac=True, method="L-BFGS-B", bounds=[(0, None)] * (2 * d),
        callback=lambda z: note("scipy L-BFGS-B", began, z[:d] - z[d:]),
        options={"maxiter": 3000, "maxfun": 5000, "ftol": 1e-14},
    )  # fmt: skip
    print(json.dumps({"choices": len(choices), "weights": d, "seconds to 1e-4": reached}))


if __name__ == "__main__":
    main()
