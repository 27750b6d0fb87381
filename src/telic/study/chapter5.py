"""Chapter 5: convergence of the ADMM methods on graph-guided fused logistic regression."""

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from telic.errors import InputError
from telic.optim.admm import AdmmProblem, Optimum, graphs, make_admm_problem, separable, solve_admm
from telic.report import Report

SETS = {"20news_comp_talk": None, "a9a": None, "ijcnn1": 49_990}
"""Table 5.1: file and number of leading rows (None: all)."""
RUNS: dict[str, dict[str, Any]] = {
    "batch-admm": {"method": "batch-admm"},
    "stoc-admm": {"method": "stoc-admm"},
    "sa-admm": {"method": "sa-admm", "batch": 1},
    "sdca-admm": {"method": "sdca-admm", "perturbation": 1e-6},
    "svr-admm-s": {"method": "svr-admm-s"},
    "svr-admm-d": {"method": "svr-admm-d"},
    "svr-admm-d, single rows": {"method": "svr-admm-d", "batch": 1},
    "sa-admm, batches": {"method": "sa-admm"},
}
LEVELS = (1e-1, 1e-2, 1e-3, 1e-5)


def load(name: str, folder: Path | None = None) -> AdmmProblem:
    """Return a set as problem (5.7.3): γ = 1e-3, no intercept, the graph from the data."""
    folder = Path(os.environ.get("TELIC_DATA", "../shared/data")) if folder is None else folder
    path = folder / "ml" / f"{name}.npz"
    if not path.exists():
        raise InputError(f"{path} not found. Set TELIC_DATA to the folder that holds ml/.")
    with np.load(path, allow_pickle=False) as q:
        X = sparse.csr_matrix((q["data"].astype(float), q["indices"], q["indptr"]), q["shape"])
        y = q["y"].astype(float)
    X, y = X[: SETS[name]], y[: SETS[name]]
    graph = graphs.inverse_covariance(X)
    g = separable(len(graph.edges), l1=1e-3)
    return make_admm_problem(X, y, A=graph.incidence, g=g)


def chapter5_study(
    *,
    folder: Path | None = None,
    replications: int = 30,
    seconds: float = 3.0,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[Report, dict]:
    """Run every method on every set, as in Figure 5.1, and return the report and its numbers.

    The optimum is our own run of ten times `seconds`; gaps are relative to P(0) − P*. The batch
    method has no randomness and runs once.
    """
    report = Report(
        "Chapter 5: stochastic ADMM on graph-guided fused logistic regression",
        lead=f"Medians of {replications} replications; each run ends after {seconds:g} s.",
    )
    report.note(
        "The graph (sparse inverse covariance, alpha 0.1), step sizes and ρ are the defaults of "
        "this library, one rule for all sets: the thesis gives them for ijcnn1 alone. SA, STOC, "
        "SDCA and batch ADMM run as published; the batched SA shows what batches alone are worth."
    )
    numbers: dict = {}
    for name in SETS:
        problem = load(name, folder)
        progress(f"{name}: optimum")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            long = [
                solve_admm(problem, method=m, tol=1e-13, max_passes=1e9, max_seconds=5 * seconds)
                for m in ("svr-admm-d", "sa-admm")
            ]
            best = min(long, key=lambda result: result.objective)
            optimum = Optimum(problem, best.coef, best.dual)
            runs = {}
            for label, settings in RUNS.items():
                progress(f"{name}: {label}")
                count = 1 if label == "batch-admm" else replications
                runs[label] = [_run(problem, optimum, settings, seconds, s) for s in range(count)]
        numbers[name] = {"reference_gap": best.gap} | {
            label: _times(found) for label, found in runs.items()
        }
        report.section(name)
        report.table(
            ["Method", *(f"{level:g}" for level in LEVELS), "last gap"],
            [
                [label, *(_shown(row["seconds"][k], row["passes"][k]) for k in range(len(LEVELS))),
                 f"{row['last']:.1e}"]
                for label, row in numbers[name].items() if label != "reference_gap"
            ],
            caption="Seconds (and passes) to a relative gap, median; – where most runs did not",
        )  # fmt: skip
        report.text(f"Bound on the error of the reference optimum: {best.gap:.2g}.")
        report.figure(_figure(runs), "True gap and Q (5.5.1), each relative to P(0) − P*.")
    return report, numbers


def _run(
    problem: AdmmProblem, optimum: Optimum, settings: dict, seconds: float, seed: int
) -> np.ndarray:
    """One run: rows of passes, seconds, relative gap, relative Q."""
    scale = problem.objective(np.zeros(problem.size)) - optimum.objective
    rows = []

    def keep(record, point):
        rows.append(
            (record.passes, record.seconds, (record.objective - optimum.objective) / scale,
             optimum.q(point.x, point.y) / scale)
        )  # fmt: skip

    solve_admm(
        problem, tol=0.0, max_passes=1e9, max_seconds=seconds, random_state=seed, callback=keep,
        **settings,
    )  # fmt: skip
    return np.array(rows)


def _times(found: list[np.ndarray]) -> dict:
    seconds, passes = [], []
    for level in LEVELS:
        hits = [
            run[np.argmax(run[:, 2] <= level)] if (run[:, 2] <= level).any() else np.full(4, np.inf)
            for run in found
        ]
        seconds.append(float(np.median([hit[1] for hit in hits])))
        passes.append(float(np.median([hit[0] for hit in hits])))
    return {
        "seconds": seconds,
        "passes": passes,
        "last": float(np.median([run[-1, 2] for run in found])),
    }


def _shown(seconds: float, passes: float) -> str:
    return f"{seconds:.3f} ({passes:.0f})" if np.isfinite(seconds) else "–"


def _figure(runs: dict[str, list[np.ndarray]]) -> Any:
    figure, panels = pyplot.subplots(1, 3, figsize=(11, 3.6))
    for color, (label, found) in enumerate(runs.items()):
        run = found[0]
        for panel, (x, y) in zip(panels, ((0, 2), (1, 2), (1, 3)), strict=True):
            panel.plot(
                run[:, x], np.maximum(run[:, y], 1e-9), color=f"C{color}", lw=1.2, label=label
            )
    axes = (("passes", "gap"), ("s", "gap"), ("s", "Q"))
    for panel, (xlabel, ylabel) in zip(panels, axes, strict=True):
        panel.set(xlabel=xlabel, ylabel=ylabel, yscale="log", xscale="symlog", ylim=(1e-8, 10))
    panels[1].legend(fontsize=6)
    figure.tight_layout()
    return figure
