"""Rankers of telic.auc beside other libraries: what each takes in the same run, and the ratio."""

import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import roc_auc_score

from benchmarks.auc.rivals import LIBAUC_PASSES, rival_runs
from benchmarks.datasets import covtype_unit_rows, rcv1_shape
from benchmarks.form import Run, grid, in_turn
from telic.auc import OAM, OPAUC, SOLAM, ExactAUC
from telic.auc.methods.exact import conjugate_gradient, exact
from telic.auc.methods.spam import spam
from telic.auc.methods.vrspam import vrspam
from telic.auc.objective import class_means, loss_gradient, moments, objective
from telic.data.data_sets import labelled_set, set_file
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


def _in_turn(repeat: int, *calls: Callable[[], object]) -> list[float]:
    """Median seconds of each, after a first call that may compile."""
    for call in calls:
        call()
    return list(in_turn(repeat, dict(enumerate(calls))).values())


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
    X, positive, real = covtype_unit_rows()
    name = "covtype" if real else "covtype's shape, generated"
    p = positive.mean()
    ridge = RidgeClassifier(
        class_weight="balanced", alpha=len(X) * BETA / (4 * p * (1 - p)), solver="cholesky"
    )
    ours, theirs, gram = _in_turn(
        repeat,
        lambda: exact(moments(X, positive), beta=BETA),
        lambda: ridge.fit(X, positive),
        lambda: X.T @ X,
    )
    yield Line(f"exact, {name}", ours, "RidgeClassifier(cholesky)", theirs, "0.3")
    yield Line(f"exact, {name}", ours, "X.T @ X", gram, "2")
    v, rng = np.ones(X.shape[1]), np.random.default_rng(0)
    ours, product = _in_turn(
        repeat, lambda: spam(X, positive, beta=BETA, passes=1, rng=rng), lambda: X @ v
    )
    yield Line(f"SPAM-L2, n steps, {name}", ours, "X @ v", product, "8")
    (gradient,) = _in_turn(
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


def balanced_ridge(X, positive, beta, **options):
    """The ridge classifier whose direction is that of the exact optimum."""
    p = positive.mean()
    alpha = positive.size * beta / (4 * p * (1 - p))
    return RidgeClassifier(class_weight="balanced", alpha=alpha, **options).fit(X, positive)


def ridge_gap(X, positive, beta, ridge, best):
    """Relative gap of a ridge classifier's direction, in its best length."""
    direction, p = ridge.coef_.ravel(), positive.mean()
    scores = X @ direction
    delta = scores[positive].mean() - scores[~positive].mean()
    spread = scores[positive].var() + scores[~positive].var() + delta**2
    w = direction * delta / (spread + beta / (2 * p * (1 - p)) * direction @ direction)
    return objective(X, positive, w, beta=beta) / best - 1


def loosest(gap_of):
    """The largest tolerance at which a relative gap is at most 1e-6."""
    return next(tol for tol in 10.0 ** -np.arange(1, 9, 0.5) if gap_of(tol) <= 1e-6)


def wide_lines(repeat):
    rng = np.random.default_rng(0)
    sets = {}
    for n, d in ((100, 2_000), (500, 5_000), (1_000, 10_000)):
        X = rng.normal(size=(n, d))
        sets[f"{n:,} × {d:,} dense, generated"] = X, X[:, :5].sum(axis=1) + rng.normal(size=n) > 0
    for name in ("sector", "clothing_reviews_tfidf", "news20"):
        if set_file(name).is_file():
            X, y = labelled_set(name)[:2]
            sets[f"{name}, {X.shape[0]:,} × {X.shape[1]:,} sparse"] = X, y > 0
    for name, (X, positive) in sets.items():
        for beta in (1e-2, 1e-4):
            found = ExactAUC(beta, tol=1e-12).fit(X, positive)
            best = objective(X, positive, found.coef_.ravel(), beta=beta)

            def ridge(tol, X=X, positive=positive, beta=beta):
                return balanced_ridge(X, positive, beta, tol=tol)

            tol = loosest(
                lambda tol, ridge=ridge, X=X, positive=positive, beta=beta, best=best: ridge_gap(
                    X, positive, beta, ridge(tol), best
                )
            )
            ours, theirs = _in_turn(
                repeat,
                lambda X=X, positive=positive, beta=beta: ExactAUC(beta, tol=1e-6).fit(X, positive),
                lambda ridge=ridge, tol=tol: ridge(tol),
            )
            work = f"ExactAUC, gap 1e-6, {name}, beta {beta:g}"
            yield Line(work, ours, "RidgeClassifier(), gap 1e-6", theirs, "0.4")


def sparse_lines(repeat):
    X, positive = rcv1_shape()
    best = objective(
        X, positive, conjugate_gradient(X, positive, beta=BETA, tol=1e-14).coef, beta=BETA
    )

    def balanced(tol):
        return balanced_ridge(X, positive, BETA, solver="sparse_cg", tol=tol)

    tolerance = loosest(lambda tol: ridge_gap(X, positive, BETA, balanced(tol), best))
    ours, theirs = _in_turn(
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
        (seconds,) = _in_turn(repeat, lambda m=model: m.partial_fit(X, positive))
        yield Line(f"{model!r}, one row of d = 100", seconds / len(X), "1 µs", 1e-6, str(target))


def auc_lines(repeat):
    rng = np.random.default_rng(0)
    y = (rng.random(10_000_000) < 0.1).astype(int)
    scores = rng.normal(size=y.size) + y
    ours, theirs = _in_turn(
        min(repeat, 3), lambda: roc_auc(y, scores), lambda: roc_auc_score(y, scores)
    )
    yield Line("AUC of 10,000,000 scores", ours, "roc_auc_score", theirs, "0.3")


def rival_lines(repeat):
    """Time to the best linear AUC of each rival that is installed."""
    for work, ours, rival, theirs in rival_runs(repeat):
        yield Line(work, ours, rival, theirs, "–")


FILE = "auc-speed.md"
TITLE = """# Speed of telic.auc

The table gives times of one run, with `benchmarks/requirements-auc-rivals.txt` installed. They are
medians of processor seconds of one thread."""
NOTES = f"""## Near or past the target, and what was tried

- **VRSPAM against SPAM at the larger beta.** The line "bound" is the time of the class means and
  one full gradient, without which no stage can start. If this time alone is above the target, no
  variance reduction can meet the target. At the smaller beta, where SPAM's noise dominates, VRSPAM
  meets it. VRSPAM takes one pass of SPAM, that gradient, and a stage of n steps. We tried to start
  without a pass of SPAM (slower), a quarter of a pass (faster here, far from enough), stages of
  n/4, n/2 and 2n steps, and steps of 1.4, 2 and 4 times the default (the shortest stages save time
  here and cost as much again on sparse rows).
- **VRSPAM against cg.** cg reads rows in order, VRSPAM at random, with one more product with X a
  stage. The same stages and steps were tried: all are slower than the default.
- **exact.** The covariance alone takes one X.T @ X. One compiled loop that centres and weights
  rows replaced two NumPy calls. We also tried class indicators as two more
  columns of the product, and blocks of a quarter or twice the size; all were slower.

- **ExactAUC on wide sets.** Dense, both take the products of rows, n²·d operations of the same
  BLAS, and one factor: that is the bound. Conjugate gradients were tried instead: at 2,000 ×
  20,000 they take a half of that at a beta of .1 and nearly all at .001, elsewhere more. Sparse,
  both take conjugate gradients. Reading each row once an iteration, for its score and for its part
  of the gradient, saved a sixth to a third of the time; what is left is fetching weights at random.

LibAUC's own requirements are not installed: its loss and optimizer do not import them. It runs
in float32 on shuffled slices of a tensor, which flatters it, for {LIBAUC_PASSES} passes; its
default learning rate of 0.1 needs many more.
"""


def page(run: Run) -> str:
    """Return the page in Markdown."""
    warnings.simplefilter("ignore")
    heads = ["work", "telic", "yardstick", "takes", "ratio", "target, at most"]
    parts = (dense_lines, wide_lines, sparse_lines, stream_lines, auc_lines, rival_lines)
    rows = [
        row
        for lines in parts
        if run.asks_for(lines.__name__)
        for row in run.kept(
            lines.__name__,
            lambda lines=lines: [line.cells() for line in lines(run.options.repeat)],
        )
    ]
    return f"{TITLE}\n\n{grid(heads, rows)}\n{NOTES}"
