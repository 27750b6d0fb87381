"""Does `method="auto"` take the fastest method? CPU seconds of each on a grid of problems."""

import time
import warnings
from collections.abc import Iterator

import numpy as np
from rich.console import Console
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from benchmarks.form import Run, grid
from telic.optim import Problem, choose_method, make_problem, solve
from telic.simulate.text_corpora import rcv1_like

METHODS = ("gram", "sdca", "prox_newton", "asbcd")
TITLE = """# What `method="auto"` rests on

The table gives processor seconds of one thread, compilation excluded, until the duality gap is
{tol:g} of the objective at zero. **Bold** is what `auto` takes. A dash means that the method did
not get there in {limit:g} s, or does not apply: SDCA needs λ₂ > 0, Gram descent is tried up to
2,000 features, and ASBCD needs a Lipschitz gradient. The condition number is smoothness · mean ‖x‖²
/ (n λ₂), on which SDCA's rate rests. The numbers of `auto`'s rule (512 features, a condition of 15,
0.07 of the strongest λ₁, a fifth more rows than features; see `telic.optim.choose_method`) were set
on this very grid, so the summary below the table is a fit, not a test.

| problem | λ₁ | λ₂ | condition | {methods} | auto / fastest |
|---|---|---|---|{rule}---|
"""
MISSES = """
Where `auto` is more than a tenth slower than the fastest (problem, λ₁, λ₂):

"""
console = Console(stderr=True)


FILE = "optim-auto.md"
OPTIONS = {
    "tol": (1e-6, "the duality gap, relative to the objective at zero"),
    "limit": (3.0, "seconds after which a method is out"),
}


def page(run: Run) -> str:
    """Return the page: the seconds that each method needs, and what `choose_method` takes."""
    tol, limit = run.options.tol, run.options.limit
    lines, ratios, misses = [], [], []
    for name, problem in _grid():
        chosen = choose_method(problem)
        key = f"{name}, {problem.l1:g}, {problem.l2:g}"
        if not run.asks_for(key):
            continue
        seconds = run.kept(key, _seconds, problem, tol, limit)
        fastest = min(value for value in seconds.values() if value is not None)
        ratio = (seconds[chosen] or limit) / fastest
        ratios.append(ratio)
        if ratio > 1.1:
            best = min(METHODS, key=lambda each: seconds[each] or np.inf)
            misses.append((key, chosen, best, f"{ratio:.2f}"))
        cells = [
            f"**{_shown(value)}**" if method == chosen else _shown(value)
            for method, value in seconds.items()
        ]
        head = f"{name} | {problem.l1:.1g} | {problem.l2:.1g} | {_condition(problem):.2g}"
        lines.append(f"| {head} | {' | '.join(cells)} | {ratio:.2f} |")
        console.print(lines[-1])
    ratios = np.array(ratios)
    summary = (
        f"\n`auto` is the fastest, or within a tenth of it, in {(ratios <= 1.1).sum()} of "
        f"{ratios.size} problems; it takes {np.exp(np.log(ratios).mean()):.2f} times as long as "
        f"the fastest in the geometric mean and {ratios.max():.1f} times at worst.\n"
    )
    header = TITLE.format(
        tol=tol, limit=limit, methods=" | ".join(METHODS), rule="---:|" * len(METHODS)
    )
    text = header + "\n".join(lines) + "\n" + summary
    columns = ["problem", "auto", "fastest", "auto / fastest"]
    return text + MISSES + grid(columns, misses) if misses else text


def _shown(seconds):
    return "—" if seconds is None else f"{seconds:.3f}"


def _condition(problem: Problem) -> float:
    squared = problem.row_constants() - problem.l2
    return float(squared.mean()) / (problem.design.n * problem.l2) if problem.l2 else np.inf


def _grid() -> Iterator[tuple[str, Problem]]:
    pairs = ((1e-4, 0.0), (1e-3, 1e-5), (1e-4, 1e-4), (0.0, 1e-5), (0.0, 1e-3))
    for n, d, words in ((20_000, 100, 20), (10_000, 1_500, 40), (20_000, 40_000, 70)):
        X, y = rcv1_like(n=n, d=d, words=words)
        for loss in ("logistic", "squared", "squared_hinge"):
            for l1, l2 in pairs if loss == "logistic" else pairs[1:4]:
                name = f"{loss}, text {n:,} × {d:,}"
                yield name, make_problem(X, y, loss=loss, l1=l1, l2=l2)
    rng = np.random.default_rng(0)
    for n, d in ((30_000, 30), (3_000, 1_000), (500, 5_000)):
        X = rng.normal(size=(n, d)) / np.sqrt(d)
        score = X @ (rng.normal(size=d) * (rng.random(d) < 0.1)) * 3
        y = np.where(score + rng.normal(size=n) > 0, 1.0, -1.0)
        for l1, l2 in ((1e-3, 0.0), (1e-3, 1e-4), (0.0, 1e-3)):
            for loss in ("logistic", "squared", "huber"):
                name = f"{loss}, dense {n:,} × {d:,}"
                yield name, make_problem(X, y, loss=loss, l1=l1, l2=l2)
    # Ridges that are badly conditioned: by scales that differ, by weak penalties, by counts.
    for n, d in ((1_100, 1_000), (2_500, 1_000), (2_000, 2_000)):
        X = rng.normal(size=(n, d)) * np.exp(rng.normal(size=d))
        y = np.sign(X @ rng.normal(size=d) / d + 0.1 * rng.normal(size=n))
        for loss, smoothness in (("logistic", 0.25), ("squared", 1.0)):
            for condition in (100, 10_000):
                l2 = smoothness * float((X**2).sum()) / (n * n * condition)
                yield f"{loss}, scaled {n:,} × {d:,}", make_problem(X, y, loss=loss, l2=l2)
    X = rng.normal(size=(400, 2_000)) / np.sqrt(2_000)
    y = rng.poisson(np.exp(X @ rng.normal(size=2_000))).astype(float)
    for l2 in (1e-5, 1e-3):
        yield "poisson, dense 400 × 2,000", make_problem(X, y, loss="poisson", l2=l2)
    wide = sparse.random(1_000, 50_000, density=1e-3, format="csr", rng=rng)
    y = np.where(wide @ rng.normal(size=50_000) > 0, 1.0, -1.0)
    for l1, l2 in pairs:
        yield "logistic, sparse 1,000 × 50,000", make_problem(wide, y, l1=l1, l2=l2)


def _seconds(problem, tol, limit):
    return {method: _seconds_of(problem, method, tol, limit) for method in METHODS}


def _seconds_of(problem, method, tol, limit):
    if (method == "sdca" and problem.l2 == 0) or (method == "gram" and problem.design.d > 2000):
        return None
    began = time.process_time()

    def too_long(record, coef, intercept):
        return time.process_time() - began > limit

    times = []
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        for _ in range(3):  # the first run may compile
            began = time.process_time()
            result = solve(problem, method=method, tol=tol, max_passes=1e5, callback=too_long)
            times.append(time.process_time() - began)
            if not result.converged and len(times) > 1:
                return None
            if times[-1] > 1.0 and len(times) > 1:
                break
    return min(times[1:])
