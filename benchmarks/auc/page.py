"""Rankers of telic.auc beside other libraries: what each takes in the same run, and the ratio."""

import time
import warnings
from collections.abc import Callable

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


def line(work: str, ours: float, yardstick: str, theirs: float, target: str) -> list[str]:
    """A line of the table, the ratio and whether it is missed among its cells."""
    ratio = f"{ours / theirs:.2g}"
    missed = target != "–" and float(ratio) > float(target)
    shown = f"{target}: missed" if missed else target
    return [work, _time(ours), yardstick, _time(theirs), ratio, shown]


def _time(seconds):
    return f"{seconds * 1e6:.2f} µs" if seconds < 1e-4 else f"{seconds:.4f} s"


def _in_turn(repeat: int, *calls: Callable[[], object]) -> list[float]:
    """Median seconds of each, after a first call that may compile."""
    for call in calls:
        call()
    return list(in_turn(repeat, dict(enumerate(calls))).values())


def to_gap(X, positive, beta, gap):
    """What times a solver to a relative gap: median seconds, without those of looking."""
    optimum = conjugate_gradient(X, positive, beta=beta, tol=1e-13)
    best = objective(X, positive, optimum.coef, beta=beta)

    def seconds(repeat, solver, **options):
        taken = []
        for seed in range(repeat + 1):
            looked = 0.0

            def look(passes, w):
                nonlocal looked
                start = time.process_time()
                reached = objective(X, positive, w, beta=beta) / best - 1 <= gap
                looked += time.process_time() - start
                return reached

            start = time.process_time()
            rng = np.random.default_rng(seed)
            solver(X, positive, beta=beta, rng=rng, callback=look, **options)
            taken.append(time.process_time() - start - looked)
        return float(np.median(taken[1:]))

    return seconds


def dense_lines(repeat):
    X, positive, real = covtype_unit_rows()
    name = "covtype" if real else "covtype's shape, generated"
    ours, theirs, gram = _in_turn(
        repeat,
        lambda: exact(moments(X, positive), beta=BETA),
        lambda: balanced_ridge(X, positive, BETA, solver="cholesky"),
        lambda: X.T @ X,
    )
    yield line(f"exact, {name}", ours, "RidgeClassifier(cholesky)", theirs, "0.3")
    yield line(f"exact, {name}", ours, "X.T @ X", gram, "2")
    v, rng = np.ones(X.shape[1]), np.random.default_rng(0)
    ours, product = _in_turn(
        repeat, lambda: spam(X, positive, beta=BETA, passes=1, rng=rng), lambda: X @ v
    )
    yield line(f"SPAM-L2, n steps, {name}", ours, "X @ v", product, "8")
    (gradient,) = _in_turn(
        repeat, lambda: loss_gradient(X, positive, X @ v, class_means(X, positive))
    )
    for beta in (1e-4, 1e-6):
        seconds = to_gap(X, positive, beta, 1e-3)
        fast = seconds(repeat, vrspam)
        slow = seconds(1, spam, passes=SPAM_PASSES)
        printed = seconds(1, spam, passes=SPAM_PASSES, center=False)
        work = f"VRSPAM to a gap of 1e-3, {name}, beta {beta:g}"
        yield line(work, fast, f"SPAM, centred (at most {SPAM_PASSES} passes)", slow, "0.15")
        yield line(work, fast, f"SPAM, not centred (at most {SPAM_PASSES} passes)", printed, "0.15")
        bound = f"bound on the ratio above: class means and one gradient, beta {beta:g}"
        yield line(bound, gradient, f"SPAM, centred (at most {SPAM_PASSES} passes)", slow, "–")


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


def beside_ridge(repeat, ours, X, positive, beta, best, **options):
    """Seconds of a fit of ours, and of the ridge classifier by the largest tolerance to 1e-6."""

    def ridge(tol):
        return balanced_ridge(X, positive, beta, tol=tol, **options)

    tolerances = 10.0 ** -np.arange(1, 9, 0.5)
    enough = next(t for t in tolerances if ridge_gap(X, positive, beta, ridge(t), best) <= 1e-6)
    return _in_turn(repeat, ours, lambda: ridge(enough))


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
            yield wide_line(repeat, f"{name}, beta {beta:g}", X, positive, beta)


def wide_line(repeat, name, X, positive, beta):
    """ExactAUC beside the ridge classifier, both to a gap of 1e-6."""
    found = ExactAUC(beta, tol=1e-12).fit(X, positive)
    best = objective(X, positive, found.coef_.ravel(), beta=beta)
    fit = ExactAUC(beta, tol=1e-6).fit
    ours, theirs = beside_ridge(repeat, lambda: fit(X, positive), X, positive, beta, best)
    work = f"ExactAUC, gap 1e-6, {name}"
    return line(work, ours, "RidgeClassifier(), gap 1e-6", theirs, "0.4")


def sparse_lines(repeat):
    X, positive = rcv1_shape()

    def descend(tol):
        return conjugate_gradient(X, positive, beta=BETA, tol=tol)

    best = objective(X, positive, descend(1e-14).coef, beta=BETA)
    ours, theirs = beside_ridge(
        *(repeat, lambda: descend(1e-6), X, positive, BETA, best), solver="sparse_cg"
    )
    assert objective(X, positive, descend(1e-6).coef, beta=BETA) / best - 1 <= 1e-6
    yield line("cg, rcv1's shape, gap 1e-6", ours, "RidgeClassifier(sparse_cg)", theirs, "1")
    fast = to_gap(X, positive, BETA, 1e-6)(repeat, vrspam)
    yield line("VRSPAM-L2, rcv1's shape, gap 1e-6", fast, "cg above", ours, "3")


def stream_lines(repeat):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 100))
    positive = X[:, 0] + rng.normal(size=20_000) > 1
    for model, target in ((OPAUC(), 10), (OAM("seq"), 10), (OAM("gra"), 10), (SOLAM(), 1)):
        model.partial_fit(X, positive, classes=[False, True])
        (seconds,) = _in_turn(repeat, lambda m=model: m.partial_fit(X, positive))
        yield line(f"{model!r}, one row of d = 100", seconds / len(X), "1 µs", 1e-6, str(target))


def auc_lines(repeat):
    rng = np.random.default_rng(0)
    y = (rng.random(10_000_000) < 0.1).astype(int)
    scores = rng.normal(size=y.size) + y
    ours, theirs = _in_turn(
        min(repeat, 3), lambda: roc_auc(y, scores), lambda: roc_auc_score(y, scores)
    )
    yield line("AUC of 10,000,000 scores", ours, "roc_auc_score", theirs, "0.3")


def rival_lines(repeat):
    """Time to the best linear AUC of each rival that is installed."""
    for work, ours, rival, theirs in rival_runs(repeat):
        yield line(work, ours, rival, theirs, "–")


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
    rows = run.rows({lines.__name__: lines for lines in parts}, run.options.repeat)
    return f"{TITLE}\n\n{grid(heads, rows)}\n{NOTES}"
