"""Everyday problems: whole fits of estimators, on sets that were and that were not tuned on."""

import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge

from benchmarks.datasets import generated
from benchmarks.form import Run, geometric_mean, grid
from telic.data.data_sets import labelled_set
from telic.optim import ElasticNetClassifier, ElasticNetRegressor, minimize

GAP = 1e-6
"""The relative gap (P − P*)/(P(0) − P*) that each solver must reach."""
LIMIT = 4.0
"""Seconds after which no smaller tolerance is tried."""
SMALLEST = 0.02
"""Seconds that one timing takes at least, by repeating the fit."""

HALVES: dict[str, list[str]] = {
    "tuned": [
        *("iid 100 × 10", "correlated 2,000 × 50", "heavy 10,000 × 30", "iid 30,000 × 100"),
        *("sparse 5,000 × 300", "diabetes", "german", "australian", "spambase", "a9a"),
        "20news_w100",
    ],
    "held out": [
        *("correlated 150 × 12", "iid 1,000 × 20", "heavy 3,000 × 200", "counts 20,000 × 60"),
        *("correlated 65,000 × 300", "sparse 40,000 × 300", "one-hot 10,000 × 250", "ionosphere"),
        *("breastw", "mammography", "ijcnn1", "20news_comp_talk", "covtype"),
    ],
}


@cache
def data(name: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """X, a target and labels of a set; generated targets come from a sparse linear model."""
    if "×" not in name:
        return _real(name)
    X, rng = generated(name)
    n, d = X.shape
    if isinstance(X, np.ndarray):
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    signal = X @ (rng.standard_normal(d) * (rng.random(d) < 0.3))
    signal = 2.0 * (signal - signal.mean()) / signal.std() + rng.logistic(size=n)
    return X, signal, np.where(signal > 0.5, 1.0, -1.0)


def _real(name: str) -> tuple[Any, np.ndarray, np.ndarray]:
    X, y, _ = labelled_set(name)
    X, y = X[:65_000], y[:65_000]
    if X.nnz > 0.3 * X.shape[0] * X.shape[1]:
        X = X.toarray()
        X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    else:
        X = X.multiply(1.0 / np.maximum(abs(X).max(axis=0).toarray(), 1e-12)).tocsr()
    return X, y + np.random.default_rng(0).standard_normal(y.size), y


@dataclass
class Problem:
    """One set and penalty, in the terms of `minimize`, and the estimators that solve it."""

    name: str
    data: str
    loss: str
    l1: float
    l2: float
    intercept: bool
    solvers: dict[str, tuple[Callable[[Any], Any], list[Any]]] = field(default_factory=dict)

    def objective(self, model: Any) -> float:
        """P at a fitted model."""
        X, y = self.arrays()
        w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
        z = X @ w + b
        loss = 0.5 * (z - y) ** 2 if self.loss == "squared" else np.logaddexp(0.0, -y * z)
        return float(loss.mean() + self.l1 * np.abs(w).sum() + 0.5 * self.l2 * (w @ w))

    def arrays(self) -> tuple[Any, np.ndarray]:
        """X and y."""
        X, target, labels = data(self.data)
        return X, target if self.loss == "squared" else labels

    def ends(self) -> tuple[float, float]:
        """P at zero and the best intercept, and the least P that is known."""
        X, y = self.arrays()
        options = {"loss": self.loss, "fit_intercept": self.intercept}
        zero = minimize(X, y, l1=1e9, tol=1e-12, **options).objective
        best = minimize(X, y, l1=self.l1, l2=self.l2, tol=1e-11, **options).objective
        return zero, best


TOLERANCES = [10.0**-k for k in range(0, 12)]
EPOCHS = [4, 8, 16, 32, 64, 128, 256, 512, 1024]


def problems(half: str) -> Iterator[Problem]:
    """Six penalties on each set of a half."""
    for name in HALVES[half]:
        X, target, _ = data(name)
        n, is_sparse = X.shape[0], sparse.issparse(X)
        strongest = np.abs(X.T @ (target - target.mean())).max() / n
        yield _ridge(name, n, is_sparse)
        yield _lasso(name, 0.02 * strongest, 1.0)
        yield _lasso(name, 0.02 * strongest, 0.5)
        # LIBLINEAR penalises the intercept: where it takes part there is none.
        yield _logistic(name, n, 0.0, not is_sparse)
        yield _logistic(name, n, 1.0, False)
        yield _logistic(name, n, 0.5, not is_sparse)


def _ridge(name: str, n: int, is_sparse: bool) -> Problem:
    problem = Problem("ridge", name, "squared", 0.0, 1.0 / n, True)
    problem.solvers["telic"] = (
        lambda tol: ElasticNetRegressor(alpha=1.0 / n, l1_ratio=0.0, tol=tol),
        TOLERANCES,
    )
    for solver in ("sparse_cg", "sag") if is_sparse else ("cholesky", "svd", "lsqr"):
        problem.solvers[f"Ridge {solver}"] = (
            lambda tol, solver=solver: Ridge(alpha=1.0, solver=solver, tol=tol, random_state=0),
            [1e-4] if solver in ("cholesky", "svd") else TOLERANCES,
        )
    return problem


def _lasso(name: str, alpha: float, ratio: float) -> Problem:
    label = "lasso" if ratio == 1.0 else "elastic net"
    problem = Problem(label, name, "squared", alpha * ratio, alpha * (1 - ratio), True)
    problem.solvers["telic"] = (
        lambda tol: ElasticNetRegressor(alpha=alpha, l1_ratio=ratio, tol=tol),
        TOLERANCES,
    )
    kind: Any = Lasso if ratio == 1.0 else ElasticNet
    options = {} if ratio == 1.0 else {"l1_ratio": ratio}
    for precompute in (False, True):
        problem.solvers[f"{kind.__name__}{' Gram' if precompute else ''}"] = (
            lambda tol, precompute=precompute: kind(
                alpha=alpha, tol=tol, precompute=precompute, max_iter=100_000, **options
            ),
            TOLERANCES,
        )
    return problem


def _logistic(name: str, n: int, ratio: float, intercept: bool) -> Problem:
    label = {0.0: "ℓ₂ logistic", 1.0: "ℓ₁ logistic", 0.5: "elastic-net logistic"}[ratio]
    problem = Problem(label, name, "logistic", ratio / n, (1 - ratio) / n, intercept)
    problem.solvers["telic"] = (
        lambda tol: ElasticNetClassifier(l1_ratio=ratio, fit_intercept=intercept, tol=tol),
        TOLERANCES,
    )
    rivals = {0.0: ["lbfgs", "newton-cholesky", "newton-cg"], 1.0: ["saga"], 0.5: ["saga"]}[ratio]
    if not intercept and ratio != 0.5:
        rivals.append("liblinear")
    for solver in rivals:
        problem.solvers[solver] = (
            lambda effort, solver=solver: LogisticRegression(
                l1_ratio=ratio,
                solver=solver,
                fit_intercept=intercept,
                random_state=0,
                max_iter=effort if solver == "saga" else 10_000,
                tol=0.0 if solver == "saga" else effort,
            ),
            EPOCHS if solver == "saga" else TOLERANCES,
        )
    return problem


def compare(problem: Problem, repeat: int) -> tuple[str, ...]:
    """A line of the table: set, work, ours, the fastest rival and its time, the ratio."""
    X, y = problem.arrays()
    zero, best = problem.ends()
    makers: dict[str, Any] = {}
    for name, (make, efforts) in problem.solvers.items():
        for effort in efforts:
            began = time.process_time()
            reached = problem.objective(_fitted(make(effort), X, y)) - best
            if reached <= GAP * (zero - best):
                makers[name] = make(effort)
            if name in makers or time.process_time() - began > LIMIT:
                break
    times: dict[str, list[float]] = {name: [] for name in makers}
    for _ in range(repeat):
        for name, model in makers.items():
            began, fits = time.process_time(), 0
            while fits == 0 or time.process_time() - began < SMALLEST:
                _fitted(model, X, y)
                fits += 1
            times[name].append((time.process_time() - began) / fits)
    medians = {name: statistics.median(each) for name, each in times.items()}
    ours = medians.pop("telic")
    rival = min(medians, key=lambda name: medians[name])
    kind = "sparse" if sparse.issparse(X) else "dense"
    shape = f"{X.shape[0]:,} × {X.shape[1]}, {kind}"
    cells = (f"{1e3 * ours:.2f}", rival, f"{1e3 * medians[rival]:.2f}")
    return problem.name, problem.data, shape, *cells, f"{ours / medians[rival]:.2f}"


def _fitted(model: Any, X: Any, y: np.ndarray) -> Any:
    with warnings.catch_warnings(action="ignore"):
        return model.fit(X, y)


def everyday_rows(half: str, run: Run) -> list[list[str]]:
    """Lines of one half of the sets, those first that we lose."""
    rows = [
        run.kept(f"{problem.name}, {problem.data}", compare, problem, run.options.repeat)
        for problem in problems(half)
    ]
    return sorted(rows, key=lambda line: -float(line[-1]))


HEAD = ("work", "set", "shape", "telic, ms", "fastest rival", "its, ms", "ratio")
TEXT = """# Speed of telic.optim

## Everyday problems

The table gives whole fits of the estimators, validation included, for {count} problems on which
nothing was tuned: six penalties on {sets} sets, generated and real, 150 to 65,000 rows. Those that
telic loses come first. Times are processor
milliseconds of one thread, compilation excluded, medians of {repeat} runs that take turns. Each
solver runs with the largest tolerance (in powers of ten; saga: the fewest epochs, in powers of two)
at which its objective is within 1e-6 of the optimum, relative to what there was to gain over zero
coefficients. The rivals are scikit-learn's: Ridge (cholesky, svd, lsqr; sparse_cg and sag on sparse
sets), Lasso and ElasticNet (with and without a Gram matrix), LogisticRegression (lbfgs,
newton-cholesky, newton-cg; saga for ℓ₁) and LIBLINEAR. Where LIBLINEAR takes part no intercept is
fitted, because LIBLINEAR penalises it.

telic takes {mean:.2f} times as long as the fastest of them in the geometric mean. It is slower on
{lost} of {count} and more than 1.2 times as slow on {badly}. On the sets on which it was tuned the
mean is {tuned:.2f}, and it is more than 1.2 times as slow on {tuned_badly} of {tuned_count}.

{advice}

"""
ADVICE = """Another library is the better choice in two cases. Take scikit-learn's Ridge where a
sparse set has few and well conditioned features, because a few steps of conjugate gradients cost
less than a Gram matrix. (Of dense sets telic forms none where features hardly depend on each
other.) Take LIBLINEAR for ℓ₁ logistic regression of sparse sets of some thousand rows where nobody
needs a certificate: most of telic's last steps do not lower the objective, they prove that it is
low. Where a fit takes a millisecond, the choice does not matter, because the checks of the
input take most of it."""


def everyday_page(run: Run) -> str:
    """Return the section in Markdown."""
    rows, tuned = everyday_rows("held out", run), everyday_rows("tuned", run)
    text = TEXT.format(
        count=len(rows),
        sets=len(HALVES["held out"]),
        repeat=run.options.repeat,
        mean=geometric_mean(rows),
        lost=sum(float(row[-1]) > 1.0 for row in rows),
        badly=sum(float(row[-1]) > 1.2 for row in rows),
        tuned=geometric_mean(tuned),
        tuned_badly=sum(float(row[-1]) > 1.2 for row in tuned),
        tuned_count=len(tuned),
        advice=ADVICE,
    )
    means = [
        (name, [row for row in rows if row[0] == name]) for name in {row[0]: 0 for row in rows}
    ]
    parts = [[n, f"{geometric_mean(r):.2f}", max((x[-1] for x in r), key=float)] for n, r in means]
    return text + grid(("work", "mean ratio", "largest"), parts) + "\n" + grid(HEAD, rows) + "\n"
