"""Each line: what telic takes, what the yardstick takes in the same run, and their ratio."""

import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import roc_auc_score

from benchmarks.auc.datasets import covtype, rcv1_shape
from benchmarks.auc.rivals import rival_runs
from telic.auc import OAM, OPAUC, SOLAM
from telic.auc.methods.exact import conjugate_gradient, exact
from telic.auc.methods.spam import spam
from telic.auc.methods.vrspam import vrspam
from telic.auc.objective import class_means, loss_gradient, moments, objective
from telic.evaluate.classification import roc_auc

BETA = 1e-4
SPAM_PASSES = 60


class Line(NamedTuple):
    work: str
    ours: float
    yardstick: str
    theirs: float
    target: str

    def cells(self):
        ratio = f"{self.ours / self.theirs:.2g}"
        missed = self.target != "–" and float(ratio) > float(self.target)
        target = f"{self.target}: missed" if missed else self.target
        return [self.work, _time(self.ours), self.yardstick, _time(self.theirs), ratio, target]


def _time(seconds):
    return f"{seconds * 1e6:.2f} µs" if seconds < 1e-4 else f"{seconds:.4f} s"


def together(repeat: int, *calls: Callable[[], object]) -> list[float]:
    """Median seconds of each, taking turns so that a noisy minute falls on all alike."""
    for call in calls:
        call()
    times = [[] for _ in calls]
    for _ in range(repeat):
        for call, taken in zip(calls, times, strict=True):
            start = time.process_time()
            call()
            taken.append(time.process_time() - start)
    return [float(np.median(taken)) for taken in times]


def until(X, positive, beta, gap):
    """A callback that ends a solver at a relative gap, and how long its looking took."""
    best = objective(
        X, positive, conjugate_gradient(X, positive, beta=beta, tol=1e-13).coef, beta=beta
    )
    looked = [0.0]

    def look(passes, w):
        start = time.process_time()
        reached = objective(X, positive, w, beta=beta) / best - 1 <= gap
        looked[0] += time.process_time() - start
        return reached

    return look, looked


def solver_seconds(repeat, run, look, looked):
    taken = []
    for seed in range(repeat + 1):
        looked[0] = 0.0
        start = time.process_time()
        run(look, np.random.default_rng(seed))
        taken.append(time.process_time() - start - looked[0])
    return float(np.median(taken[1:]))


def dense_lines(repeat):
    X, positive, real = covtype()
    name = "covtype" if real else "covtype's shape, generated"
    p = positive.mean()
    ridge = RidgeClassifier(
        class_weight="balanced", alpha=len(X) * BETA / (4 * p * (1 - p)), solver="cholesky"
    )
    ours, theirs, gram = together(
        repeat,
        lambda: exact(moments(X, positive), beta=BETA),
        lambda: ridge.fit(X, positive),
        lambda: X.T @ X,
    )
    yield Line(f"exact, {name}", ours, "RidgeClassifier(cholesky)", theirs, "0.3")
    yield Line(f"exact, {name}", ours, "X.T @ X", gram, "2")
    v, rng = np.ones(X.shape[1]), np.random.default_rng(0)
    ours, product = together(
        repeat, lambda: spam(X, positive, beta=BETA, passes=1, rng=rng), lambda: X @ v
    )
    yield Line(f"SPAM-L2, n steps, {name}", ours, "X @ v", product, "8")
    (gradient,) = together(
        repeat, lambda: loss_gradient(X, positive, X @ v, class_means(X, positive))
    )
    for beta in (1e-4, 1e-6):
        look, looked = until(X, positive, beta, 1e-3)
        fast = solver_seconds(
            repeat,
            lambda look, rng, b=beta: vrspam(X, positive, beta=b, rng=rng, callback=look),
            look,
            looked,
        )
        slow = solver_seconds(
            1,
            lambda look, rng, b=beta: spam(
                X, positive, beta=b, passes=SPAM_PASSES, rng=rng, callback=look
            ),
            look,
            looked,
        )
        printed = solver_seconds(
            1,
            lambda look, rng, b=beta: spam(
                X, positive, beta=b, passes=SPAM_PASSES, center=False, rng=rng, callback=look
            ),
            look,
            looked,
        )
        work = f"VRSPAM to a gap of 1e-3, {name}, beta {beta:g}"
        yield Line(work, fast, f"SPAM, centred (at most {SPAM_PASSES} passes)", slow, "0.15")
        yield Line(work, fast, f"SPAM, not centred (at most {SPAM_PASSES} passes)", printed, "0.15")
        bound = f"bound on the ratio above: class means and one gradient, beta {beta:g}"
        yield Line(bound, gradient, f"SPAM, centred (at most {SPAM_PASSES} passes)", slow, "–")


def sparse_lines(repeat):
    X, positive = rcv1_shape()
    p, n = positive.mean(), positive.size
    best = objective(
        X, positive, conjugate_gradient(X, positive, beta=BETA, tol=1e-14).coef, beta=BETA
    )

    def balanced(tol):
        return RidgeClassifier(
            class_weight="balanced",
            alpha=n * BETA / (4 * p * (1 - p)),
            solver="sparse_cg",
            tol=tol,
        ).fit(X, positive)

    def ridge_gap(tol):
        direction = balanced(tol).coef_.ravel()
        scores = X @ direction
        delta = scores[positive].mean() - scores[~positive].mean()
        spread = scores[positive].var() + scores[~positive].var() + delta**2
        w = direction * delta / (spread + BETA / (2 * p * (1 - p)) * direction @ direction)
        return objective(X, positive, w, beta=BETA) / best - 1

    tolerance = next(tol for tol in 10.0 ** -np.arange(1, 9, 0.5) if ridge_gap(tol) <= 1e-6)
    ours, theirs = together(
        repeat,
        lambda: conjugate_gradient(X, positive, beta=BETA, tol=1e-6),
        lambda: balanced(tolerance),
    )
    reached = conjugate_gradient(X, positive, beta=BETA, tol=1e-6).coef
    assert objective(X, positive, reached, beta=BETA) / best - 1 <= 1e-6
    yield Line("cg, rcv1's shape, gap 1e-6", ours, "RidgeClassifier(sparse_cg)", theirs, "1")
    look, looked = until(X, positive, BETA, 1e-6)
    fast = solver_seconds(
        repeat,
        lambda look, rng: vrspam(X, positive, beta=BETA, rng=rng, callback=look),
        look,
        looked,
    )
    yield Line("VRSPAM-L2, rcv1's shape, gap 1e-6", fast, "cg above", ours, "3")


def stream_lines(repeat):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 100))
    positive = X[:, 0] + rng.normal(size=20_000) > 1
    for model, target in ((OPAUC(), 10), (OAM("seq"), 10), (OAM("gra"), 10), (SOLAM(), 1)):
        model.partial_fit(X, positive, classes=[False, True])
        (seconds,) = together(repeat, lambda m=model: m.partial_fit(X, positive))
        yield Line(f"{model!r}, one row of d = 100", seconds / len(X), "1 µs", 1e-6, str(target))


def auc_lines(repeat):
    rng = np.random.default_rng(0)
    y = (rng.random(10_000_000) < 0.1).astype(int)
    scores = rng.normal(size=y.size) + y
    ours, theirs = together(
        min(repeat, 3), lambda: roc_auc(y, scores), lambda: roc_auc_score(y, scores)
    )
    yield Line("AUC of 10,000,000 scores", ours, "roc_auc_score", theirs, "0.3")


def rival_lines(repeat):
    """Time to the best linear AUC of each rival that is installed."""
    for work, ours, rival, theirs in rival_runs(repeat):
        yield Line(work, ours, rival, theirs, "–")


def table(*, repeat: int = 5, only: str = "") -> str:
    """Run the lines whose group's name holds `only`; print and return them as Markdown."""
    warnings.simplefilter("ignore")
    heads = ["work", "telic", "yardstick", "takes", "ratio", "target, at most"]
    text = "".join(f"| {' | '.join(cells)} |\n" for cells in (heads, ["---"] * len(heads)))
    print(text, end="", flush=True)
    for lines in (dense_lines, sparse_lines, stream_lines, auc_lines, rival_lines):
        if only in lines.__name__:
            for line in lines(repeat):
                row = f"| {' | '.join(line.cells())} |\n"
                print(row, end="", flush=True)
                text += row
    return text
