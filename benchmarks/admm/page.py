"""SVR-ADMM-D beside its family, CVXPY and copt on chapter 5's three sets; its memory."""

import platform
import statistics
import tracemalloc
from itertools import product

import numpy as np
from rich.console import Console
from scipy import sparse

from benchmarks.admm.objective import SETS, load, optimum
from benchmarks.admm.solvers import SOLVERS
from benchmarks.form import Run, grid
from telic.optim.admm import make_admm_problem, separable, solve_admm

FILE = "admm-speed.md"
OPTIONS = {"limit": (20.0, "seconds for a rival")}
LEVELS = (1e-3, 1e-5)
OURS = ("SVR-D", "SVR-D, default first stage", "SVR-D, as shipped")
FAMILY = ("STOC, single rows", "SA, single rows", "SDCA, single rows")
BATCHED = ("STOC, batches", "SA, batches")
TARGETS = [
    ("best of STOC, SA, SDCA as published", FAMILY, tuple(SETS), 0.5),
    ("best of STOC, SA with our batches", BATCHED, tuple(SETS), 0.5),
    ("SA with our batches and x-step", ("SA, batches and curvature",), tuple(SETS), None),
    ("batch ADMM", ("batch ADMM",), ("ijcnn1",), 0.3),
    ("batch ADMM with our x-step", ("batch ADMM, curvature",), ("ijcnn1",), None),
    ("batch ADMM with Newton's", ("batch ADMM, Newton",), tuple(SETS), None),
    ("CVXPY (Clarabel)", ("CVXPY",), ("a9a",), 0.1),
    ("copt primal-dual", ("copt primal-dual",), tuple(SETS), 1.0),
]
tell = Console(stderr=True).print

PAGE = """\
# Speed of telic.optim.admm

The problem is (5.7.3) of [chapter \
5](results-chapter-5.md), with γ = 1e-3 and the same graph. The tables give CPU seconds on one \
thread ({processor}), median of {repeat}, set-up included, compilation excluded, until the gap, \
divided by P(0) − P*, is reached. Every method of the family takes its best step from the same \
grid. SVR-D starts with a first stage of m⁽⁰⁾ = 1, as printed. This start was chosen on an \
earlier run, so a column with the default start stands beside it. "As shipped" is SVR-ADMM-D with \
all settings left at their defaults.

## Ratios: our seconds over the rival's

If a rival does not reach the gap within the limit, the limit stands for its time (<).

{ratios}
The rivals take their best step from the grid. As shipped, SVR-ADMM-D takes a safe step, which \
the single row with the highest leverage limits. Where it misses the target, most of the loss \
comes from that step. The seconds below give what the default step, four times that step, other \
batches and another first stage take, with the rest as in the row "SVR-D, default first stage".

## Seconds

{seconds}
## Memory of SVR-ADMM-D

The table gives the peak of the allocations of one fit, in thousand bytes, beyond the data. For \
comparison, the fourth column is one number for each row; computing the gap takes a few of these. \
The linearised x-step keeps O(d + k) numbers more, the curvature's x-step a d × d matrix and what \
its inversion takes.

{memory}"""


def times(name: str, repeat: int, limit: float) -> list[tuple[str, float, float | None]]:
    """Each solver, level and median CPU seconds; None where the limit comes first."""
    best = optimum(load(name))
    tell(f"{name}: P* = {best.objective:.12f}")
    found: dict[tuple[str, float], float | None] = {}
    for level in LEVELS:
        runs = {}
        for solver, rival in SOLVERS.items():
            if solver == "CVXPY" and (name != "a9a" or level == LEVELS[0]):
                continue
            runs[solver] = rival.prepare(best, level, limit)
            tell(f"  {level:g} {solver}: {'prepared' if runs[solver] else 'not within the limit'}")
        spent: dict[str, list[float]] = {solver: [] for solver in runs}
        for _ in range(repeat):
            for solver, timed in runs.items():
                # A rival that takes longer than the limit is run once.
                if timed and (not spent[solver] or spent[solver][0] < limit):
                    spent[solver].append(timed())
        for solver, each in spent.items():
            found[solver, level] = statistics.median(each) if each else None
            tell(f"  {level:g} {solver}: {found[solver, level]}")
    if ("CVXPY", LEVELS[1]) in found:
        # An interior-point method has no use for a looser gap.
        found["CVXPY", LEVELS[0]] = found["CVXPY", LEVELS[1]]
        tell(f"  CVXPY ends at a relative gap of {SOLVERS['CVXPY'].gap:.1e}")
    return [(*key, seconds) for key, seconds in found.items()]


def memory() -> list[list[str]]:
    """Peak of what SVR-ADMM-D allocates beyond the data, as n, d and k grow."""
    rows = []
    rng = np.random.default_rng(0)
    for n, d in ((20_000, 200), (80_000, 200), (20_000, 800)):
        X = sparse.random_array((n, d), density=0.05, format="csr", rng=rng)
        y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
        D = sparse.csr_matrix(np.diff(np.eye(d), axis=0))
        problem = make_admm_problem(X, y, A=D, g=separable(d - 1, l1=1e-3))
        problem.data.design.rows  # noqa: B018
        cells = []
        for x_step in ("linearised", "curvature"):
            solve_admm(problem, x_step=x_step, tol=0.5)
            tracemalloc.start()
            solve_admm(problem, x_step=x_step, tol=0.5, max_passes=50)
            cells.append(f"{tracemalloc.get_traced_memory()[1] / 1e3:,.0f}")
            tracemalloc.stop()
        rows.append([f"{n:,}", f"{d:,}", f"{d - 1:,}", f"{8 * n / 1e3:,.0f}", *cells])
    return rows


def _shown(seconds: float | None, limit: float) -> str:
    return f"{seconds:.4f}" if seconds is not None else f"> {limit:g}"


def page(run: Run) -> str:
    """Return the page in Markdown."""
    repeat, limit = run.options.repeat, run.options.limit
    found = {}
    for name in SETS:
        if run.asks_for(name):
            kept = run.kept(name, times, name, repeat, limit)
            found[name] = {(solver, level): value for solver, level, value in kept}
    seconds, ratios = [], []
    for name, solver in product(found, SOLVERS):
        if (solver, LEVELS[0]) in found[name]:
            cells = [_shown(found[name][solver, level], limit) for level in LEVELS]
            seconds.append([name, solver, *cells])
    for label, rivals, sets, target in TARGETS:
        for name, level in product([name for name in sets if name in found], LEVELS):
            theirs = [found[name][rival, level] for rival in rivals]
            reached = [each for each in theirs if each is not None]
            other, bound = min(reached, default=limit), "" if reached else "< "
            own = [found[name][ours, level] for ours in OURS]
            cells = ["–" if s is None else bound + _verdict(s / other, target) for s in own]
            shown = "" if target is None else f"{target:g}"
            ratios.append([label, name, f"{level:g}", shown, *cells])
    return PAGE.format(
        processor=platform.processor() or platform.machine(),
        repeat=repeat,
        ratios=grid(["rival", "set", "gap", "target", *OURS], ratios),
        seconds=grid(["set", "solver", *(f"to {level:g}" for level in LEVELS)], seconds),
        memory=grid(["n", "d", "k", "8 n", "linearised", "curvature"], memory()),
    )


def _verdict(ratio: float, target: float | None) -> str:
    met = "" if target is None else " met" if ratio <= target else " missed"
    return f"{ratio:.3f}{met}"
