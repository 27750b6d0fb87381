"""Time telic.optim and its rivals on the speed table, all in one run."""

import warnings
from dataclasses import dataclass
from functools import partial

from rich.console import Console

from benchmarks import datasets
from benchmarks.form import Run, clock, in_turn
from benchmarks.optim.objective import Objective
from benchmarks.optim.solvers import EFFORTS, installed
from telic.simulate.text_corpora import e2006_like, rcv1_like

console = Console(stderr=True)


@dataclass
class Work:
    """One line of the speed table: for each gap wanted, the largest ratio to each rival."""

    name: str
    data: str
    loss: str
    l1: float
    l2: float
    ours: str
    targets: dict[float, dict[str, float]]


TABLE = [
    Work(
        *("elastic-net logistic, rcv1 shape, 1e-5", "rcv1", "logistic", 1e-5, 1e-5, "telic"),
        {1e-6: {"skglm": 0.8, "sklearn saga": 0.1}, 1e-9: {"skglm": 0.9, "sklearn saga": 0.1}},
    ),
    Work(
        *("l1 logistic, rcv1 shape, 1e-4", "rcv1", "logistic", 1e-4, 0.0, "telic"),
        {1e-6: {"celer": 0.5, "liblinear": 0.5}, 1e-9: {"celer": 0.5, "liblinear": 0.5}},
    ),
    Work(
        *("l2 logistic, rcv1 shape, 1e-5", "rcv1", "logistic", 0.0, 1e-5, "telic"),
        {1e-6: {"snapml": 1.0, "liblinear dual": 1.0}},
    ),
    Work(
        *("elastic net, E2006 shape, 1e-4", "e2006", "squared", 1e-4, 1e-4, "telic"),
        {1e-3: {"celer": 0.2, "skglm": 0.3}, 1e-6: {"celer": 0.2, "skglm": 0.3}},
    ),
    Work(
        *("elastic-net logistic, covtype, 1e-4", "covtype", "logistic", 1e-4, 1e-4, "telic"),
        {1e-9: {"sklearn saga": 0.2}},
    ),
    Work(
        *("ASBCD itself, rcv1 shape, 1e-5", "rcv1", "logistic", 1e-5, 1e-5, "telic asbcd"),
        {1e-6: {"sklearn saga": 0.5}},
    ),
]


HEAD = (
    *("work", "relative gap", "ours, s", "rival", "rival's, s", "ratio ours/rival", "target"),
    *("met", "runs"),
)


def speed_rows(run: Run) -> list[list[str]]:
    """Return the lines of the speed table; a rival that needs more than the limit counts as it."""
    return run.rows({work.name: partial(_compare, work, run.options) for work in TABLE})


def _compare(work, options):
    data = getattr(datasets, work.data)()
    if data is None:
        yield work.name, "", "", "(data set not found: set TELIC_DATA)", "", "", "", "", ""
        return
    objective = Objective(work.name, *data, work.loss, work.l1, work.l2)
    console.print(
        f"{work.name}: P* = {objective.best:.10f}, certified to {objective.certified:.1e}"
    )
    named = {work.ours}.union(*work.targets.values())
    names = sorted(name for name in named if installed(name))
    # Compile outside the clock, on a small problem of the same kind.
    maker = e2006_like if work.loss == "squared" else rcv1_like
    small = maker(n=300, d=600, words=20)
    small = Objective("warm-up", *small, work.loss, 100 * work.l1, 100 * work.l2)
    for name in names:
        _run(small, name, EFFORTS[name][1][1])
        # Some rivals compile more once the problem is large: one short run on the real one too.
        _run(objective, name, EFFORTS[name][1][0])
    chosen = {name: _calibrate(objective, name, min(work.targets), options.limit) for name in names}
    for gap, rivals in work.targets.items():
        calls = {
            name: partial(_run, objective, name, effort)
            for name in (work.ours, *rivals)
            if name in names and (effort := _smallest(chosen[name], gap)) is not None
        }
        medians = in_turn(options.repeat, calls)
        ours = medians[work.ours]
        for rival, target in rivals.items():
            if rival not in names:
                yield work.name, f"{gap:.0e}", f"{ours:.3f}", rival, "not installed", *[""] * 4
                continue
            theirs = medians.get(rival, chosen[rival][-1][1])
            shown, bound = (f"{theirs:.3f}", "") if rival in medians else (f"> {theirs:.1f}", "< ")
            ratio = ours / theirs
            met = "yes" if ratio <= target else "no"
            cells = (f"{gap:.0e}", f"{ours:.3f}", rival, shown, f"{bound}{ratio:.2f}")
            yield work.name, *cells, f"{target:.1f}", met, str(options.repeat)


def _run(objective, name, effort):
    with warnings.catch_warnings(action="ignore"):
        return EFFORTS[name][0](objective, effort)


def _calibrate(objective, name, gap, limit):
    """(effort, seconds, gap reached) with rising effort until the gap or the limit is reached."""
    tried = []
    for effort in EFFORTS[name][1]:
        seconds, w = clock(partial(_run, objective, name, effort))
        tried.append((effort, seconds, objective.relative_gap(w)))
        if tried[-1][2] <= gap or seconds > limit:
            break
    console.print(f"  {name}: " + ", ".join(f"{s:.2f} s {g:.0e}" for _, s, g in tried[-4:]))
    return tried


def _smallest(tried, gap):
    return next((effort for effort, _, reached in tried if reached <= gap), None)
