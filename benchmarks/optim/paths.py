"""Paths of 100 penalties: log-link elastic nets beside glum, group elastic nets beside adelie."""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.datasets import generated
from benchmarks.form import Run, geometric_mean, grid, in_turn
from telic.optim import ElasticNet, make_problem, solve_path
from telic.optim.penalties import group_penalty
from telic.optim.problem import Problem

FILE = "optim-paths.md"
GAP = 1e-6
"""How far from its optimum each objective may be, relative to that without coefficients."""
TOLERANCES = [10.0**-k for k in range(1, 14)]
RATIO = 0.5
ALPHAS = 100
GROUP = 5
"""Features of each group."""
LOG_LINK = [
    *("iid 1,000 × 20", "correlated 20,000 × 60", "iid 50,000 × 30", "sparse 40,000 × 300"),
    *("one-hot 10,000 × 250", "iid 500 × 100", "correlated 3,000 × 200", "iid 300 × 1,000"),
]
GROUPS = [
    *("iid 1,000 × 50", "correlated 20,000 × 60", "correlated 2,000 × 300", "iid 300 × 1,000"),
    *("iid 500 × 400", "correlated 800 × 100", "correlated 600 × 900", "iid 6,000 × 200"),
]
"""Sets that were looked at while `auto` for groups, how far descent goes between two looks, and
which groups go to their minimum at once were chosen; the first two on the first four."""
HELD_BACK = ["heavy 2,000 × 150", "counts 3,000 × 120", "correlated 400 × 500", "iid 900 × 700"]
"""Sets that were named before anything was timed on them; the target for groups is judged here."""

HEAD = ("work", "set", "rival", "telic, ms", "its, ms", "ratio")
TEXT = """# Speed of paths of penalties

Each solver fits a path of 100 penalties, from the strongest that leaves a coefficient down to a
thousandth of it (groups: a hundredth), half ℓ₁ and half ℓ₂, with an intercept, on generated sets.
The sets where telic loses come first. Nothing was tuned on the sets of losses with a log link. For
groups, the sets marked * were looked at while three things were chosen: `auto`'s method, how far
descent goes before it reads the data again, and which groups go to their minimum at once. Four
other sets were held back.
Times are processor milliseconds of one thread for the whole path. They include checks of the input,
and leave out compilation and the rivals' conversion of matrices. They are medians of {repeat} runs
that take turns. Each solver runs with the largest tolerance (in powers of ten) at which every
objective of the path is within 1e-6 of its optimum, relative to the objective without coefficients.

telic takes {glum:.2f} times glum's time in the geometric mean (Poisson {poisson:.2f}, Gamma
{gamma:.2f}, Tweedie with power 1.5 {tweedie:.2f}), at worst {worst_glum:.2f} times. The target is
0.5, which is {met_glum}. scikit-learn's regressors for these losses know no ℓ₁. telic takes
{groups:.2f} times adelie's time on the sets that were held back, at worst {worst_groups:.2f} times,
and {tuned:.2f} times on the others, at worst {worst_tuned:.2f} times. The target is 1, which is
{met_groups} on the sets held back. Every solution on telic's paths has a certified gap; the rivals
give none.

adelie is the better choice for group elastic nets in two cases: on small sets, where telic spends
its time on certifying each penalty, and on wide sets where the solution comes to use more features
than there are rows. On the wide sets the matrix with which telic descends is larger than the data;
adelie descends with the data.

"""


@dataclass
class Path:
    """A path of penalties on one set, with what it costs each solver."""

    problem: Problem
    penalties: list[Any]
    solvers: dict[str, Callable[[float], tuple[np.ndarray, np.ndarray]]]
    """From a tolerance to coefficients and intercepts."""

    def objectives(self, coefs: np.ndarray, intercepts: np.ndarray) -> np.ndarray:
        """P of each penalty."""
        values = []
        for penalty, w, b in zip(self.penalties, coefs, intercepts, strict=True):
            risk = self.problem.risk(self.problem.predict(np.ascontiguousarray(w), float(b)))
            values.append(risk + penalty.value(w))
        return np.array(values)


def features(name: str) -> tuple[Any, np.ndarray]:
    """Return X, and a score of its rows with a deviation of 1, from a sparse linear model."""
    X, rng = generated(name)
    d = X.shape[1]
    score = X @ (rng.standard_normal(d) * (rng.random(d) < 0.3))
    return X, (score - score.mean()) / score.std()


def _ours(X: Any, y: np.ndarray, loss: str, penalties: list[Any]) -> Callable[[float], Any]:
    def run(tol: float) -> tuple[np.ndarray, np.ndarray]:
        problem = make_problem(X, y, loss=loss, fit_intercept=True)
        results = list(solve_path(problem, penalties, tol=tol))
        return np.array([r.coef for r in results]), np.array([r.intercept for r in results])

    return run


def targets(loss: str, score: np.ndarray) -> np.ndarray:
    """Targets whose expectation is exp(0.7 score); a Tweedie's are sums of Poisson many gammas."""
    rng, mean = np.random.default_rng(0), np.exp(0.7 * score)
    if loss == "gamma":
        return rng.gamma(2.0, mean / 2.0)
    counts = rng.poisson(mean).astype(float)
    return rng.gamma(2.0 * counts, 0.5) if loss == "tweedie" else counts


def log_link(name: str, loss: str) -> Path:
    """A path of elastic nets with a log link; glum chooses the same penalties."""
    from glum import GeneralizedLinearRegressor, TweedieDistribution

    X, score = features(name)
    y = targets(loss, score)
    problem = make_problem(X, y, loss=loss, fit_intercept=True)
    z = np.full(y.size, problem.null()[0])
    strongest = np.abs(X.T @ problem.slopes(z)).max() / RATIO
    family = TweedieDistribution(1.5) if loss == "tweedie" else loss
    alphas = np.geomspace(strongest, 1e-3 * strongest, ALPHAS)
    held = sparse.csc_matrix(X) if sparse.issparse(X) else np.asfortranarray(X)

    def glum(tol: float) -> tuple[np.ndarray, np.ndarray]:
        model = GeneralizedLinearRegressor(
            family=family,
            link="log",
            alpha_search=True,
            n_alphas=ALPHAS,
            min_alpha_ratio=1e-3,
            l1_ratio=RATIO,
            gradient_tol=tol,
            max_iter=1000,
        ).fit(held, y)
        return model.coef_path_, model.intercept_path_

    penalties = [ElasticNet(a * RATIO, a * (1.0 - RATIO)) for a in alphas]
    return Path(problem, penalties, {"telic": _ours(X, y, loss, penalties), "glum": glum})


def grouped(name: str, loss: str) -> Path:
    """A path of group elastic nets. adelie weighs a group's ℓ₂ part as its norm, by √|g|."""
    import adelie

    X, score = features(name)
    rng = np.random.default_rng(0)
    y = score + 0.5 * rng.standard_normal(score.size)
    if loss == "logistic":
        y = np.where(score + rng.logistic(size=score.size) > 0.5, 1.0, -1.0)
    labels = np.arange(X.shape[1]) // GROUP
    problem = make_problem(X, y, loss=loss, groups=labels, fit_intercept=True)
    z = np.full(y.size, problem.null()[0])
    strongest = problem.penalty.dual_norm(problem.back(problem.slopes(z))) / RATIO
    alphas = np.geomspace(strongest, 1e-2 * strongest, ALPHAS)
    held = np.asfortranarray(X)

    def rival(tol: float) -> tuple[np.ndarray, np.ndarray]:
        glm = adelie.glm.gaussian(y) if loss == "squared" else adelie.glm.binomial((y + 1) / 2)
        state = adelie.grpnet(
            *(held, glm),
            groups=np.arange(0, X.shape[1], GROUP),
            alpha=RATIO,
            lmda_path=alphas,
            tol=tol,
            irls_tol=tol,
            early_exit=False,
            progress_bar=False,
        )
        return state.betas.toarray(), np.asarray(state.intercepts)

    weak = np.sqrt(GROUP) * (1.0 - RATIO)
    penalties = [group_penalty(labels, l1=a * RATIO, l2=a * weak) for a in alphas]
    return Path(problem, penalties, {"telic": _ours(X, y, loss, penalties), "adelie": rival})


def compare(work: str, name: str, make: Callable[[], Path], run: Run) -> tuple[str, ...]:
    """A line of the table."""
    path = make()
    least = path.objectives(*path.solvers["telic"](1e-10))
    calls = {}
    for solver, solve in path.solvers.items():
        for tol in TOLERANCES:
            began = time.process_time()
            excess = path.objectives(*solve(tol)) - least
            if excess.max() <= GAP * least[0]:
                calls[solver] = partial(solve, tol)
                break
            if time.process_time() - began > run.options.limit:
                break
    (rival,) = path.solvers.keys() - {"telic"}
    times = in_turn(run.options.repeat, calls)
    if rival not in times:
        raise RuntimeError(f"{rival} reaches no objective of {work}, {name}: raise --limit.")
    ratio = times["telic"] / times[rival]
    cells = (f"{1e3 * times['telic']:.1f}", f"{1e3 * times[rival]:.1f}", f"{ratio:.2f}")
    return work, name, rival, *cells


def worst(rows: Sequence[Sequence[str]]) -> float:
    """The largest ratio."""
    return max(float(row[-1]) for row in rows)


def page(run: Run) -> str:
    """Return the page in Markdown."""
    makers: dict[tuple[str, str], Callable[[], Path]] = {}
    for name in LOG_LINK:
        for loss in ("poisson", "gamma", "tweedie"):
            key = f"{loss.capitalize()} elastic net", name
            makers[key] = partial(log_link, name, loss)
    for name in GROUPS + HELD_BACK:
        for loss in ("squared", "logistic"):
            key = f"group elastic net, {loss} loss", f"{name} *" if name in GROUPS else name
            makers[key] = partial(grouped, name, loss)
    with warnings.catch_warnings(action="ignore"):
        rows = [
            run.kept(", ".join(key), compare, *key, make, run)
            for key, make in makers.items()
            if run.asks_for(", ".join(key))
        ]
    rows.sort(key=lambda row: -float(row[-1]))
    none = [("1",)]  # where only some of the sets were asked for
    glum = [row for row in rows if row[2] == "glum"] or none

    def of(loss: str) -> list[Sequence[str]]:
        return [row for row in glum if row[0].startswith(loss.capitalize())] or none

    tuned = [row for row in rows if row[1].endswith("*")] or none
    held = [row for row in rows if row[2] == "adelie" and row not in tuned] or none
    text = TEXT.format(
        repeat=run.options.repeat,
        **{loss: geometric_mean(of(loss)) for loss in ("poisson", "gamma", "tweedie")},
        glum=geometric_mean(glum),
        worst_glum=worst(glum),
        met_glum="met" if geometric_mean(glum) <= 0.5 else "missed",
        groups=geometric_mean(held),
        worst_groups=worst(held),
        met_groups="met" if geometric_mean(held) <= 1.0 else "missed",
        tuned=geometric_mean(tuned),
        worst_tuned=worst(tuned),
    )
    return text + grid(HEAD, rows)
