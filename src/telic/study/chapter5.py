"""Chapter 5: convergence of the ADMM methods on graph-guided fused logistic regression."""

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from telic.errors import InputError
from telic.optim.admm import (
    AdmmProblem,
    Optimum,
    graphs,
    make_admm_problem,
    safe_step,
    separable,
    solve_admm,
)
from telic.optim.penalties import ElasticNet

SETS = {"20news": ("20news_comp_talk", None), "a9a": ("a9a", None), "ijcnn1": ("ijcnn1", 49_990)}
"""Table 5.1: file and number of leading rows (None: all)."""
LEVELS = (1e-1, 1e-2, 1e-3, 1e-5, 1e-6)
MULTIPLES = (0.25, 1.0, 4.0, 16.0)
"""Of each method's safe step: the grid, one for all methods and sets."""
BIAS = (1e-2, 1e-3, 1e-4)
"""λ₂ of SDCA-ADMM whose limits are compared."""
SLOW_RUNS = 5
"""Replications of SDCA-ADMM at most."""
DONE = 1e-7
"""Relative gap at which a run ends."""


@dataclass(frozen=True)
class Method:
    """A line of the figure."""

    name: str
    options: dict[str, Any]

    @property
    def slow(self) -> bool:
        """Whether a step takes long: all rows, or one row and the whole graph."""
        return self.options["method"] in ("batch-admm", "sdca-admm")

    def runs(self, replications: int, seconds: float) -> tuple[int, float]:
        """Return how many runs and how long ones; batch ADMM draws nothing."""
        if self.options["method"] == "batch-admm":
            return 1, 20 * seconds
        return (min(replications, SLOW_RUNS), seconds) if self.slow else (replications, seconds)


def _line(name: str, method: str, x_step: str = "linearised", **options: Any) -> Method:
    return Method(name, {"method": method, "x_step": x_step, **options})


LINEARISED = [
    _line("batch", "batch-admm"),
    _line("STOC", "stoc-admm"),
    _line("SA", "sa-admm"),
    _line("SDCA", "sdca-admm", perturbation=1e-4),
    _line("SVR-s", "svr-admm-s"),
    _line("SVR-D", "svr-admm-d"),
]
"""The text's comparison: the x-step of 5.7.1, the same batches for all that sample."""
CURVATURE = [
    _line("batch, curvature", "batch-admm", "curvature"),
    _line("SA, curvature", "sa-admm", "curvature"),
    _line("SVR-s, curvature", "svr-admm-s", "curvature"),
    _line("SVR-D, curvature", "svr-admm-d", "curvature"),
]
"""The same methods with P a bound on the Hessian, this library's default."""
BATCH = {"linearised": 64, "curvature": 256}
"""Rows of one step."""


@dataclass(frozen=True)
class Curves:
    """The runs of one method on one set."""

    method: Method
    multiple: float
    """Of the safe step, the best of the grid."""
    runs: list[np.ndarray]
    """Each with rows of passes, seconds, relative gap with Ax, relative gap with y, relative Q."""

    def reach(self, level: float) -> tuple[float, float]:
        """Median passes and seconds to a relative gap; infinite where most runs do not get there.

        A run that ends for good below the level counts from its first point there.
        """
        hits = [run[np.argmax(run[:, 2] <= level), :2] if (run[:, 2] <= level).any()
                else np.full(2, np.inf) for run in self.runs]  # fmt: skip
        passes, seconds = np.median(hits, axis=0)
        return float(passes), float(seconds)

    @property
    def last(self) -> float:
        """Median relative gap at the end."""
        return float(np.median([run[-1, 2] for run in self.runs]))

    @property
    def fall(self) -> float:
        """Median ratio of the gap at half of the passes to the gap at the end."""
        halves = [run[np.searchsorted(run[:, 0], run[-1, 0] / 2), 2] / run[-1, 2]
                  for run in self.runs]  # fmt: skip
        return float(np.median(halves))


@dataclass(frozen=True)
class SetResult:
    """Everything on one set."""

    name: str
    shape: tuple[int, int]
    edges: int
    optimum: Optimum
    certified: float
    """Bound on the optimum's relative error."""
    curves: list[Curves]
    bias: dict[float, tuple[float, ...]]
    """By λ₂: relative gap of the perturbed problem's minimiser, SDCA-ADMM's last relative gap, and
    its passes."""

    def numbers(self) -> dict[str, Any]:
        """Everything as plain numbers; None where a gap is not reached."""
        methods = {
            each.method.name: {
                "multiple": each.multiple,
                "last": each.last,
                "reach": {
                    f"{level:g}": [v if np.isfinite(v) else None for v in each.reach(level)]
                    for level in LEVELS
                },
            }
            for each in self.curves
        }
        return {
            "set": self.name, "rows": self.shape[0], "features": self.shape[1],
            "edges": self.edges, "objective": self.optimum.objective,
            "certified": self.certified, "methods": methods,
            "sdca_bias": {f"{key:g}": list(value) for key, value in self.bias.items()},
        }  # fmt: skip


def load(name: str, folder: Path | None = None) -> AdmmProblem:
    """Return a set as problem (5.7.3): γ = 1e-3, no intercept, the graph from the data.

    The thesis does not define the graph. Here an edge stands where the graphical lasso on the
    correlations (alpha 0.1) has one; a feature left alone is joined to the most correlated one,
    without which a minimum does not exist on 20news and a9a.
    """
    file, rows = SETS[name]
    folder = Path(os.environ.get("TELIC_DATA", "../shared/data")) if folder is None else folder
    path = folder / "ml" / f"{file}.npz"
    if not path.exists():
        raise InputError(f"{path} not found. Set TELIC_DATA to the folder that holds ml/.")
    with np.load(path, allow_pickle=False) as q:
        X = sparse.csr_matrix((q["data"].astype(float), q["indices"], q["indptr"]), q["shape"])
        y = q["y"].astype(float)
    X, y = X[:rows], y[:rows]
    graph = graphs.inverse_covariance(X)
    g = separable(len(graph.edges), l1=1e-3)
    return make_admm_problem(X, y, A=graph.incidence, g=g)


def optimum(problem: AdmmProblem) -> tuple[Optimum, float]:
    """Return the optimum and a bound on its relative error.

    Batch ADMM with the curvature's x-step, run until its gap certifies twelve digits; no other
    run decides what counts as the optimum.
    """
    result = solve_admm(problem, method="batch-admm", x_step="curvature", tol=1e-13,
                        max_passes=100_000)  # fmt: skip
    best = Optimum(problem, result.coef, result.dual)
    return best, result.gap / _scale(best)


def _scale(best: Optimum) -> float:
    return best.problem.objective(np.zeros(best.problem.size)) - best.objective


def run(
    best: Optimum, method: Method, *, multiple: float, seconds: float, seed: int
) -> np.ndarray | None:
    """Run a method once: rows as in `Curves.runs`; None if it diverges with this step."""
    scale, rows = _scale(best), []

    def keep(record: Any, point: Any) -> bool:
        gap = (record.objective - best.objective) / scale
        lagging = (record.objective_y - best.objective) / scale
        q = best.q(point.x, point.y) / scale
        rows.append((record.passes, record.seconds, gap, lagging, q))
        return gap <= DONE or record.seconds >= seconds

    options = method.options | {"batch": BATCH[method.options["x_step"]]}
    where = {key: options[key] for key in ("method", "x_step", "batch")}
    options["step_size"] = multiple * safe_step(best.problem, **where)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            solve_admm(
                best.problem, tol=0.0, max_passes=1e9, random_state=seed, callback=keep, **options,
            )  # fmt: skip
        except InputError:
            return None
    return np.array(rows)


def study_set(
    name: str, problem: AdmmProblem, *, replications: int, seconds: float, seed: int = 0,
    work: Path | None = None, progress: Callable[[str], None] = lambda _: None,
) -> SetResult:  # fmt: skip
    """Run every method on one set.

    Parameters
    ----------
    name : str
    problem : AdmmProblem
    replications : int
        Runs of each method that draws at random.
    seconds : float
        Processor time of one run, twenty times as much for batch ADMM, which runs once; a run also
        ends at a relative gap of 1e-7.
    seed : int
    work : Path, optional
        Folder that keeps the runs of each method: an interrupted study goes on from there.
    progress : callable
        Called with a line for each method.
    """
    progress(f"{name}: optimum")
    best, certified = optimum(problem)
    curves = []
    for method in (*LINEARISED, *CURVATURE):
        progress(f"{name}: {method.name}")
        kept = work and work / f"{name}-{method.name}-{replications}-{seconds:g}-{seed}.npz"
        if kept and kept.exists():
            with np.load(kept) as found:
                runs = [found[str(i)] for i in range(len(found.files) - 1)]
                curves.append(Curves(method, float(found["multiple"]), runs))
            continue
        tuning = 3 * seconds if method.slow else seconds / 2
        multiple = _best_multiple(best, method, seconds=tuning, seed=seed)
        count, longest = method.runs(replications, seconds)
        found = [
            run(best, method, multiple=multiple, seconds=longest, seed=seed + replication)
            for replication in range(count)
        ]
        runs = [each for each in found if each is not None]
        if kept:
            kept.parent.mkdir(parents=True, exist_ok=True)
            arrays = {str(i): each for i, each in enumerate(runs)}
            np.savez(kept, multiple=multiple, **arrays)
        curves.append(Curves(method, multiple, runs))
    progress(f"{name}: SDCA's bias")
    kept = work and work / f"{name}-bias-{seconds:g}-{seed}.npz"
    if kept and kept.exists():
        with np.load(kept) as rows:
            bias = {key: tuple(row) for key, row in zip(BIAS, rows["bias"].tolist(), strict=True)}
    else:
        (step,) = (each.multiple for each in curves if each.method.name == "SDCA")
        bias = {key: _bias(best, key, step, seconds=20 * seconds, seed=seed) for key in BIAS}
        if kept:
            np.savez(kept, bias=np.array(list(bias.values())))
    design = problem.data.design
    return SetResult(name, (design.n, design.d), problem.A.shape[0], best, certified, curves, bias)


def _bias(
    best: Optimum, perturbation: float, multiple: float, *, seconds: float, seed: int
) -> tuple[float, float, float]:
    """Return an entry of `SetResult.bias`: the limit, and where a longer run of SDCA-ADMM ends."""
    problem = best.problem
    limit = replace(problem, data=replace(problem.data, penalty=ElasticNet(0.0, perturbation)))
    method = _line("SDCA", "sdca-admm", perturbation=perturbation)
    found = run(best, method, multiple=multiple, seconds=seconds, seed=seed)
    passes, _, gap = found[-1, :3] if found is not None else (0.0, 0.0, np.nan)
    return best.gap(optimum(limit)[0].x) / _scale(best), float(gap), float(passes)


def _best_multiple(best: Optimum, method: Method, *, seconds: float, seed: int) -> float:
    """Return the multiple that is first at 1e-6, or lowest after `seconds`, on a seed apart."""
    found = {}
    for multiple in MULTIPLES:
        rows = run(best, method, multiple=multiple, seconds=seconds, seed=seed + 10_000)
        if rows is not None:
            below = rows[:, 2] <= 1e-6
            found[multiple] = (
                (0, rows[np.argmax(below), 1])
                if below.any()
                else (1, rows[-1 - len(rows) // 5 :, 2].max())
            )
    return min(found, key=found.__getitem__)
