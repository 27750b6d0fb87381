"""How fast the ADMM methods converge on graph-guided fused logistic regression."""

import warnings
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from telic.data.data_sets import labelled_set
from telic.errors import InputError
from telic.optim.admm import (
    PRINTED,
    AdmmProblem,
    Optimum,
    feature_graphs,
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
PRINTED_FOR, PRINTED_PASSES = "ijcnn1", 60
"""The set for which the dissertation prints parameters, and how long they are followed."""
MEASURES = {"gap": 2, "gap with y": 3, "Q": 4}
"""Places in a row of `measured` of f(x) + g(Ax) − P*, of f(x) + g(y) − P*, and of Q (5.5.1)."""


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
"""The dissertation's comparison: the x-step of 5.7.1, the same batches for all that sample."""
CURVATURE = [
    _line("batch, curvature", "batch-admm", "curvature"),
    _line("SA, curvature", "sa-admm", "curvature"),
    _line("SVR-s, curvature", "svr-admm-s", "curvature"),
    _line("SVR-D, curvature", "svr-admm-d", "curvature"),
]
"""The same methods with P a bound on the Hessian, this library's default."""
BATCH = {"linearised": 64, "curvature": 256}
"""Rows of one step."""


def reach(runs: list[Any], level: float) -> tuple[float, float]:
    """Return median passes and seconds to a relative gap, infinite if most runs do not get there.

    A run that ends for good below the level counts from its first point there. `runs` are as in
    `measured`.
    """
    hits = [
        run[np.argmax(run[:, 2] <= level), :2] if (run[:, 2] <= level).any() else np.full(2, np.inf)
        for run in map(np.asarray, runs)
    ]
    passes, seconds = np.median(hits, axis=0)
    return float(passes), float(seconds)


def settle(runs: list[Any], level: float, measure: int) -> float:
    """Return the median passes after which a measure stays within a level, infinite if it leaves.

    The gap with y may be negative: what counts is its size.
    """
    passes = []
    for run in map(np.asarray, runs):
        outside = np.flatnonzero(abs(run[:, measure]) > level)
        first = outside[-1] + 1 if outside.size else 0
        passes.append(run[first, 0] if first < len(run) else np.inf)
    return float(np.median(passes))


def last(runs: list[Any]) -> float:
    """Return the median relative gap at the end."""
    return float(np.median([run[-1][2] for run in runs]))


def fall(runs: list[Any]) -> float:
    """Return the median ratio of the gap at half of the passes to the gap at the end."""
    halves = [
        run[np.searchsorted(run[:, 0], run[-1, 0] / 2), 2] / run[-1, 2]
        for run in map(np.asarray, runs)
    ]
    return float(np.median(halves))


def load(name: str, data: str | Path | None = None) -> AdmmProblem:
    """Return a set as problem (5.7.3): γ = 1e-3, no intercept, the graph from the data.

    The dissertation does not define the graph. Here an edge stands where the graphical lasso on the
    correlations (alpha 0.1) has one; a feature left alone is joined to the most correlated one,
    without which a minimum does not exist on 20news and a9a.
    """
    file, rows = SETS[name]
    X, y, _ = labelled_set(file, data)
    X, y = X[:rows], y[:rows]
    graph = feature_graphs.inverse_covariance(X)
    g = separable(len(graph.edges), l1=1e-3)
    return make_admm_problem(X, y, A=graph.incidence, g=g)


def optimum(problem: AdmmProblem) -> tuple[Optimum, float]:
    """Return the optimum and a bound on its relative error.

    Batch ADMM with the curvature's x-step, run until its gap certifies twelve digits; no other
    run decides what counts as the optimum.
    """
    result = solve_admm(
        problem, method="batch-admm", x_step="curvature", tol=1e-13, max_passes=100_000
    )
    best = Optimum(problem, result.coef, result.dual)
    return best, result.gap / _scale(best)


@lru_cache(maxsize=1)
def _best(case: str, data: str | None) -> tuple[Optimum, float]:
    return optimum(load(case, data))


def problem_and_optimum(*, case: str, data: str | None) -> dict[str, Any]:
    """Return the size of a problem, its optimum, and the bound on its relative error."""
    best, certified = _best(case, data)
    design, edges = best.problem.data.design, best.problem.A.shape[0]
    return {
        "n": design.n,
        "d": design.d,
        "edges": edges,
        "objective": best.objective,
        "certified": certified,
    }


def _scale(best: Optimum) -> float:
    return best.problem.objective(np.zeros(best.problem.size)) - best.objective


def run(
    best: Optimum, method: Method, *, multiple: float, seconds: float, seed: int
) -> np.ndarray | None:
    """Run a method once: rows as in `measured`; None if it diverges with this step."""
    options = method.options | {"batch_size": BATCH[method.options["x_step"]]}
    where = {key: options[key] for key in ("method", "x_step", "batch_size")}
    options["step_size"] = multiple * safe_step(best.problem, **where)
    try:
        return _followed(best, options, seconds=seconds, seed=seed)
    except InputError:
        return None


def _followed(
    best: Optimum,
    options: dict[str, Any],
    *,
    seconds: float = np.inf,
    passes: float = 1e9,
    seed: int,
) -> np.ndarray:
    """Return rows as in `measured` of a run that ends in time or at the gap `DONE`."""
    scale, rows = _scale(best), []

    def keep(record: Any, point: Any) -> bool:
        gap = (record.objective - best.objective) / scale
        lagging = (record.objective_y - best.objective) / scale
        q = best.q(point.x, point.y) / scale
        rows.append((record.passes, record.seconds, gap, lagging, q))
        return gap <= DONE or record.seconds >= seconds

    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        solve_admm(best.problem, tol=0.0, max_passes=passes, seed=seed, callback=keep, **options)
    return np.array(rows)


def as_printed(
    *, case: str, data: str | None, replications: int, seed: int
) -> dict[str, list[list[list[float]]]]:
    """Run SVR-ADMM as the dissertation prints it for ijcnn1, and beside it what this library does.

    Returns
    -------
    dict
        For each of `printed_settings` its runs, with rows as in `measured`.
    """
    best, _ = _best(case, data)
    return {
        name: [
            _followed(best, options, passes=PRINTED_PASSES, seed=seed + replication).tolist()
            for replication in range(replications)
        ]
        for name, options in printed_settings(best.problem).items()
    }


def printed_settings(problem: AdmmProblem) -> dict[str, dict[str, Any]]:
    """Return the options of `solve_admm` by what a table calls them."""
    without_first = {key: value for key, value in PRINTED.items() if key != "first"}
    theory = safe_step(problem, x_step="linearised") / 6  # 1/(12 L_M), from 1/(2 L_M)
    return {
        "SVR-D as printed, x-step (5.7.1)": {"method": "svr-admm-d", **PRINTED},
        "SVR-D as printed, P = I": {"method": "svr-admm-d", **PRINTED, "x_step": "exact"},
        "SVR-s as printed, x-step (5.7.1)": {"method": "svr-admm-s", **without_first},
        "SVR-D, single rows, η = 1/(12 L_M), our ρ": {
            "method": "svr-admm-d",
            "x_step": "linearised",
            "step_size": theory,
            "batch_size": 1,
        },
        "SVR-D, this library's default": {"method": "svr-admm-d"},
    }


def measured(
    *, case: str, data: str | None, method: str, replications: int, seconds: float, seed: int
) -> dict[str, Any]:
    """Run a method on one of `SETS`.

    Parameters
    ----------
    case : str
    data : str or None
        Folder of data sets.
    method : str
        The name of one of `LINEARISED` or `CURVATURE`.
    replications, seconds, seed
        As in the study.

    Returns
    -------
    dict
        "multiple" of the safe step, the best of the grid; "runs", each with rows of passes,
        seconds, relative gap with Ax, relative gap with y, relative Q.
    """
    best, _ = _best(case, data)
    (line,) = (each for each in (*LINEARISED, *CURVATURE) if each.name == method)
    tuning = 3 * seconds if line.slow else seconds / 2
    multiple = _best_multiple(best, line, seconds=tuning, seed=seed)
    count, longest = line.runs(replications, seconds)
    found = [
        run(best, line, multiple=multiple, seconds=longest, seed=seed + replication)
        for replication in range(count)
    ]
    return {"multiple": multiple, "runs": [each for each in found if each is not None]}


def bias(
    *, case: str, data: str | None, multiple: float, seconds: float, seed: int
) -> list[list[float]]:
    """Say what SDCA-ADMM's λ₂ costs.

    Returns
    -------
    list of [λ₂, limit, gap, passes]
        The relative gap of the perturbed problem's minimiser, and where a run twenty times as long
        ends.
    """
    best, _ = _best(case, data)
    rows = []
    for perturbation in BIAS:
        penalty = ElasticNet(0.0, perturbation)
        limit = replace(best.problem, data=replace(best.problem.data, penalty=penalty))
        method = _line("SDCA", "sdca-admm", perturbation=perturbation)
        found = run(best, method, multiple=multiple, seconds=20 * seconds, seed=seed)
        passes, _, gap = found[-1, :3] if found is not None else (0.0, 0.0, np.nan)
        rows.append([perturbation, best.gap(optimum(limit)[0].x) / _scale(best), gap, passes])
    return rows


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
