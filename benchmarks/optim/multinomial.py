"""Multinomial elastic nets beside scikit-learn's saga and adelie, on sets of several classes."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logsumexp
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from benchmarks.form import Run, geometric_mean, grid, in_turn
from telic.data.data_sets import labelled_set, set_file
from telic.optim import ElasticNetClassifier

FILE = "optim-multinomial.md"
OPTIONS = {"limit": (60.0, "seconds in which a rival is to find its tolerance")}
GAP = 1e-6
"""How far from the optimum an objective may be, relative to that without coefficients."""
TOLERANCES = [10.0**-k for k in range(1, 13)]
RATIO = 0.5
STRENGTHS = (0.1, 0.01)
"""Of the weakest penalty that leaves no coefficient."""
MADE_UP = ("1,000 × 50", "5,000 × 200", "20,000 × 40", "500 × 1,000")
CLASSES = 10

HEAD = ("set", "strength", "rival", "telic, ms", "its, ms", "ratio")
TEXT = """# Multinomial elastic nets

{saga}

{adelie}

The problems are softmax over all classes with an intercept, half ℓ₁ and half ℓ₂, at a tenth and a
hundredth of the penalty that leaves no coefficient. Beside saga the ℓ₁ part is that of each weight
alone; beside adelie it is the norm of a feature's weights in all classes, because adelie has no
other. No setting of telic was chosen on these sets. Those called "made up" have {classes} classes.
The sets where telic loses come first.

Times are processor milliseconds of one thread, checks of the input included, compilation left out:
medians of {repeat} runs that take turns. Each solver runs with the largest tolerance (in powers of
ten) at which its objective is within 1e-6 of the optimum, relative to that without coefficients. A
rival that finds no such tolerance within {limit:.0f} s of trying one after the other is out. telic
certifies its gap; the rivals give none.

"""


Solver = Callable[[float], tuple[np.ndarray, np.ndarray]]
"""From a tolerance to coefficients and intercepts."""


@dataclass
class Task:
    """One penalty on one set: for each class alone, or for a feature's weights in all classes."""

    X: Any
    y: np.ndarray
    alpha: float
    grouped: bool

    def objective(self, coef: np.ndarray, intercept: np.ndarray) -> float:
        """Mean loss and penalty, by definition."""
        scores = self.X @ coef.T + intercept
        loss = logsumexp(scores, axis=1) - scores[np.arange(self.y.size), self.y]
        norm = np.abs(coef).sum()
        if self.grouped:
            norm = np.sqrt(len(coef)) * np.linalg.norm(coef, axis=0).sum()
        weak = 0.5 * (1.0 - RATIO) * (coef**2).sum()
        return float(loss.mean() + self.alpha * (RATIO * norm + weak))

    @property
    def null(self) -> float:
        """The objective without coefficients, with the best intercepts."""
        shares = np.bincount(self.y) / self.y.size
        return float(-(shares * np.log(shares)).sum())

    def solvers(self) -> dict[str, Solver]:
        """telic and its rival."""
        C = 1.0 / (self.alpha * self.y.size)

        def telic(tol: float) -> tuple[np.ndarray, np.ndarray]:
            model = ElasticNetClassifier(C=C, l1_ratio=RATIO, grouped=self.grouped, tol=tol)
            model.fit(self.X, self.y)
            return model.coef_, model.intercept_

        def saga(tol: float) -> tuple[np.ndarray, np.ndarray]:
            model = LogisticRegression(
                C=C, penalty="elasticnet", l1_ratio=RATIO, solver="saga", tol=tol, max_iter=100_000
            ).fit(self.X, self.y)
            return model.coef_, model.intercept_

        return {"telic": telic} | ({"adelie": self._adelie()} if self.grouped else {"saga": saga})

    def _adelie(self) -> Solver:
        """adelie's loss is a K-th of ours, and so is its penalty, which has no √K of its own."""
        import adelie

        K = int(self.y.max()) + 1
        X, labels = np.asfortranarray(self.X), np.eye(K)[self.y]
        strong, weak = self.alpha * RATIO * np.sqrt(K), self.alpha * (1.0 - RATIO)

        def run(tol: float) -> tuple[np.ndarray, np.ndarray]:
            state = adelie.grpnet(
                *(X, adelie.glm.multinomial(labels)),
                penalty=np.ones(X.shape[1]),
                alpha=strong / (strong + weak),
                lmda_path=[(strong + weak) / K],
                tol=tol,
                irls_tol=tol,
                early_exit=False,
                progress_bar=False,
            )
            coef = state.betas.toarray().reshape(X.shape[1], K).T
            return coef, np.asarray(state.intercepts).reshape(K)

        return run


def sets() -> dict[str, Callable[[], tuple[Any, np.ndarray]]]:
    """Features and classes 0 to K − 1 of each set."""

    def bundled(load: Callable[..., Any]) -> tuple[Any, np.ndarray]:
        X, y = load(return_X_y=True)
        return StandardScaler().fit_transform(X), y

    def made_up(name: str) -> tuple[Any, np.ndarray]:
        n, d = (int(part.replace(",", "")) for part in name.split(" × "))
        rng = np.random.default_rng(n + d)
        X = rng.standard_normal((n, d))
        weights = rng.standard_normal((d, CLASSES)) * (rng.random((d, CLASSES)) < 0.2)
        scores = X @ weights / np.sqrt(0.2 * d)
        return X, (2.0 * scores + rng.gumbel(size=scores.shape)).argmax(axis=1)

    def read(name: str, rows: int) -> tuple[Any, np.ndarray]:
        X, _, labels = labelled_set(name)
        keep = np.random.default_rng(0).permutation(labels.size)[:rows]
        y = np.unique(labels[keep], return_inverse=True)[1]
        X = MaxAbsScaler().fit_transform(X[keep])
        return X if X.shape[1] > 10_000 else X.toarray(), y

    loaders = {"iris": load_iris, "wine": load_wine, "digits": load_digits}
    found = {name: partial(bundled, load) for name, load in loaders.items()}
    found |= {f"made up {name}": partial(made_up, name) for name in MADE_UP}
    for name, rows in (("mnist", 2_000), ("covtype", 10_000), ("news20", 2_000)):
        if set_file(name).is_file():
            found[f"{name}, {rows:,} rows"] = partial(read, name, rows)
    return found


def compare(name: str, strength: float, task: Task, run: Run) -> list[str]:
    """A line of the table."""
    solvers = task.solvers()
    least = task.objective(*solvers["telic"](1e-12))
    calls = {}
    for solver, solve in solvers.items():
        began = time.process_time()
        for tol in TOLERANCES:
            if task.objective(*solve(tol)) - least <= GAP * task.null:
                calls[solver] = partial(solve, tol)
                break
            if time.process_time() - began > run.options.limit:
                break
    times = in_turn(run.options.repeat, calls)
    (rival,) = solvers.keys() - {"telic"}
    cells = ["out", "0"]
    if rival in times:
        cells = [f"{1e3 * times[rival]:.1f}", f"{times['telic'] / times[rival]:.3f}"]
    return [name, f"{strength:g}", rival, f"{1e3 * times['telic']:.1f}", *cells]


def strongest(X: Any, y: np.ndarray, grouped: bool) -> float:
    """The weakest penalty that leaves no coefficient."""
    shares = np.bincount(y) / y.size
    slopes = X.T @ (np.eye(shares.size)[y] - shares) / y.size
    largest = np.abs(slopes).max()
    if grouped:
        largest = np.linalg.norm(slopes, axis=1).max() / np.sqrt(shares.size)
    return float(largest) / RATIO


def verdict(rival: str, target: float, rows: list[list[str]]) -> str:
    """What the lines of one rival say."""
    own = [row for row in rows if row[2] == rival]
    timed = [row for row in own if row[4] != "out"]
    mean, worst = geometric_mean(timed), max(float(row[-1]) for row in timed)
    met = "met" if mean <= target else "missed"
    return (
        f"telic takes {mean:.2f} times {rival}'s time in the geometric mean over the "
        f"{len(timed)} of {len(own)} problems that {rival} solves, at worst {worst:.2f} times. "
        f"The target is {target:g}, which is {met}."
    )


def page(run: Run) -> str:
    """Return the page in Markdown."""
    rows: list[list[str]] = []
    with warnings.catch_warnings(action="ignore"):
        for name, make in sets().items():
            if not run.asks_for(name):
                continue
            X, y = make()
            for grouped, strength in product((False, True), STRENGTHS):
                if grouped and sparse.issparse(X):
                    continue  # adelie takes no sparse matrix of several classes
                task = Task(X, y, strength * strongest(X, y, grouped), grouped)
                key = f"{name}, {strength:g}, {'together' if grouped else 'each'}"
                rows.append(run.kept(key, compare, name, strength, task, run))
    rows.sort(key=lambda row: -float(row[-1]))
    text = TEXT.format(
        repeat=run.options.repeat,
        limit=run.options.limit,
        classes=CLASSES,
        saga=verdict("saga", 0.2, rows),
        adelie=verdict("adelie", 0.7, rows),
    )
    shown = [[*row[:5], "–" if row[4] == "out" else row[5]] for row in rows]
    return text + grid(HEAD, shown)
