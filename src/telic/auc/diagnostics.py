"""How the methods get there: gap and AUC by passes and seconds, noise of a step, batch sizes."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib import pyplot
from matplotlib.figure import Figure
from sklearn.base import clone

from telic.auc.drawn_rows import Matrix
from telic.auc.estimators.base import LinearAUC
from telic.auc.estimators.online import OPAUC, RegSOLAM
from telic.auc.estimators.stochastic import SPAM, SPDAM, VRSPAM
from telic.auc.methods.exact import conjugate_gradient
from telic.auc.methods.spam import row_squares
from telic.auc.objective import class_means, objective
from telic.evaluate.classification import roc_auc


class TracePoint(NamedTuple):
    """Where a method stood after some passes over the data."""

    passes: float
    seconds: float
    """Of the method alone: looking is not counted, nor is compilation."""
    gap: float
    """F(w)/F* − 1."""
    auc: float
    """On the training rows."""
    weights: np.ndarray


def optimum(X: Matrix, positive: np.ndarray, beta: float) -> float:
    """F at the optimum of the square-loss objective."""
    w = conjugate_gradient(X, positive, beta=beta, tol=1e-13, max_iter=5000).coef
    return objective(X, positive, w, beta=beta)


def trace(
    model: LinearAUC, X: Matrix, positive: np.ndarray, *, beta: float, until: float = 1e-8
) -> list[TracePoint]:
    """Follow one estimator that minimises the square-loss objective.

    Parameters
    ----------
    model : estimator with a callback: SPAM, VRSPAM, SPDAM, RegSOLAM, OPAUC, …
    X : array or sparse matrix of shape (n, d)
    positive : bool array of shape (n,)
    beta : float
        The model's.
    until : float, default 1e-8
        Stop at this relative gap.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 5))
    >>> points = trace(VRSPAM(0.01, random_state=0), X, X[:, 0] > 1, beta=0.01, until=1e-6)
    >>> points[-1].gap <= 1e-6
    True
    """
    best = optimum(X, positive, beta)
    model = clone(model).set_params(pos_label=True)  # as `positive` says, however many there are
    few = np.r_[np.flatnonzero(positive)[:20], np.flatnonzero(~positive)[:20]]
    model.fit(X[few], positive[few], callback=lambda passes, w: True)  # compile
    points: list[TracePoint] = []
    started, looking = time.perf_counter(), 0.0

    def look(passes: float, w: np.ndarray) -> bool:
        nonlocal looking
        now = time.perf_counter()
        gap = objective(X, positive, w, beta=beta) / best - 1
        auc = roc_auc(positive, X @ w)
        points.append(TracePoint(passes, now - started - looking, gap, auc, w.copy()))
        looking += time.perf_counter() - now
        return gap <= until

    model.fit(X, positive, callback=look)
    return points


def step_noise(
    X: Matrix, positive: np.ndarray, w: np.ndarray, snapshot: np.ndarray | None = None
) -> float:
    """Variance of one stochastic step at w: E‖v − ∇f(w)‖² over the row drawn.

    Without `snapshot` v is SPAM's G(w, i); with it VRSPAM's G(w, i) − G(w̃, i) + ∇f(w̃)
    (Figure 1 of [DanSahoo], computed exactly in place of sampled).
    """
    means = class_means(X, positive)
    p, moved = means.share, w if snapshot is None else w - snapshot
    scores = X @ moved
    target = 1.0 if snapshot is None else 0.0
    slopes = np.where(
        positive,
        2 * (1 - p) * (scores - means.neg @ moved - target),
        2 * p * (scores - means.pos @ moved + target),
    )
    gradient = X.T @ (slopes / slopes.size)
    return float(np.mean(slopes**2 * row_squares(X)) - gradient @ gradient)


def rivals(beta: float, seed: int = 0) -> dict[str, LinearAUC]:
    """The methods that minimise the same objective step by step."""
    return {
        "SPAM": SPAM(beta, max_iter=60, random_state=seed),
        "VRSPAM": VRSPAM(beta, tol=0.0, max_iter=60, random_state=seed),
        "SPDAM": SPDAM(beta, batch_size=0.01, tol=0.0, max_iter=60, random_state=seed),
        "regSOLAM": RegSOLAM(beta, max_iter=60, random_state=seed),
        "OPAUC": OPAUC(beta, max_iter=60, random_state=seed),
    }


def convergence(
    X: Matrix, positive: np.ndarray, *, beta: float, seed: int = 0
) -> tuple[dict[str, list[TracePoint]], list[Figure]]:
    """Trace every rival; figures of gap and AUC by passes and seconds, and noise of a step."""
    found = {
        name: trace(model, X, positive, beta=beta) for name, model in rivals(beta, seed).items()
    }

    def gap(point: TracePoint) -> float:
        return max(point.gap, 1e-16)

    def by(value: Callable[[TracePoint], float]) -> dict[str, list[float]]:
        return {name: [value(p) for p in points] for name, points in found.items()}

    passes, seconds = by(lambda p: p.passes), by(lambda p: p.seconds)
    figures = [
        _lines(passes, by(gap), "Passes over the data", "Relative gap", log=True),
        _lines(seconds, by(gap), "Seconds", "Relative gap", log=True),
        _lines(passes, by(lambda p: p.auc), "Passes over the data", "AUC (training rows)"),
    ]
    noise = {
        "SPAM": [step_noise(X, positive, p.weights) for p in found["SPAM"]],
        "VRSPAM": [
            step_noise(X, positive, after.weights, before.weights)
            for before, after in zip(found["VRSPAM"], found["VRSPAM"][1:], strict=False)
        ],
    }
    at = {"SPAM": passes["SPAM"], "VRSPAM": passes["VRSPAM"][1:]}
    figures.append(_lines(at, noise, "Passes over the data", "Variance of a step", log=True))
    return found, figures


def batch_sizes(
    X: Matrix,
    positive: np.ndarray,
    *,
    beta: float,
    shares: Sequence[float] = (0.001, 0.01, 0.1, 0.5),
    until: float = 1e-6,
    seed: int = 0,
) -> list[tuple[float, float | None, float | None]]:
    """Passes and seconds SPDAM needs to a relative gap, by batch size (a share of the rows).

    Returns
    -------
    list of (share, passes, seconds)
        None where 300 passes were not enough.
    """
    rows = []
    for share in shares:
        size = max(1, round(share * positive.size))
        model = SPDAM(beta, batch_size=size, tol=0.0, max_iter=300, random_state=seed)
        last = trace(model, X, positive, beta=beta, until=until)[-1]
        reached = last.gap <= until
        rows.append((share, last.passes if reached else None, last.seconds if reached else None))
    return rows


def _lines(
    x: dict[str, list[float]],
    y: dict[str, list[float]],
    x_label: str,
    y_label: str,
    log: bool = False,
) -> Figure:
    figure, axes = pyplot.subplots(figsize=(6, 3.8))
    for name in x:
        axes.plot(x[name], y[name], marker=".", label=name)
    axes.set(xlabel=x_label, ylabel=y_label)
    if log:
        axes.set_yscale("log")
    axes.legend()
    return figure
