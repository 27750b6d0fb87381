"""Keystrokes, and AppAware at the printed size and beside rivals, on made-up data.

AppAware's are 411,000 choices among neighbours in a list of 10,000 queries, and 2,000 apps of which
a phone has 95 on average, partly caused by a sparse table of weights.
"""

import resource
import tempfile
import time
import warnings
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.completion.keystrokes import keystrokes, with_signals
from benchmarks.form import Run, grid
from telic.choice import Elastic, FactoredChoices, fit_saga, fit_sdca
from telic.completion import Phone, PhoneRanker
from telic.completion.learning.appaware import AppTable
from telic.data import save_model

PENALTY = Elastic(1e-4, 1e-4)
GAP = 1e-4
SIZES = ((5_000, 300, 150, 30), (100_000, 2_000, 300, 30))
"""Choices, queries, apps and apps of a phone that the rivals are compared on."""


def made_up(n, queries, apps, installed=95, candidates=10, seed=0):
    """Choices among neighbours in a list of queries, partly caused by a sparse table of weights."""
    rng = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, apps + 1) ** 0.8
    popularity *= installed / popularity.sum()
    for _ in range(20):
        popularity = np.minimum(popularity * installed / popularity.sum(), 0.95)
    parts, lengths = [], []
    for begin in range(0, n, 20_000):
        mask = rng.random((min(20_000, n - begin), apps), np.float32) < popularity
        parts.append(np.nonzero(mask)[1].astype(np.int32))
        lengths.append(mask.sum(axis=1))
    has, lengths = np.concatenate(parts), np.concatenate(lengths)
    value = np.log1p(rng.lognormal(-0.9, 1.3, len(has)))
    value /= value.std()
    groups = queries // candidates
    group = np.minimum((rng.pareto(0.9, n) * 3).astype(int), groups - 1)
    outcome = (group[:, None] * candidates + np.arange(candidates)).astype(np.int32).ravel()
    offset = np.tile(-0.8 * np.log1p(np.arange(candidates)), n)
    truth = np.where(rng.random((queries, apps), np.float32) < 0.01, 1.0, 0.0).ravel()
    truth *= rng.standard_normal(len(truth), np.float32)
    start = np.arange(n + 1) * candidates
    context = np.concatenate([[0], np.cumsum(lengths)]), has, value
    choices = FactoredChoices(queries, apps, 0, outcome, offset, start, start[:-1], *context)
    score = choices.scores(truth) + rng.gumbel(size=len(offset))
    chosen = start[:-1] + score.reshape(n, candidates).argmax(axis=1)
    return replace(choices, chosen=chosen)


class Trace:
    """Seconds and objective after each pass of a fit, from its `progress`."""

    def __init__(self):
        self.began, self.seconds = time.perf_counter(), []

    def __call__(self, step):
        self.seconds.append(time.perf_counter() - self.began)

    def until(self, fit, best, start):
        """Seconds and pass at which the gap, relative to the start's, is at most GAP."""
        for done, (_, value) in enumerate(fit.history[-len(self.seconds) :], 1):
            if value - best <= GAP * (start - best):
                return self.seconds[done - 1], done
        return np.inf, -1


def full_size(scale):
    """Fit at the printed size."""
    choices = made_up(int(411_000 * scale), 10_000, 2_000)
    trace = Trace()
    fit = fit_sdca(choices, PENALTY, tol=1e-7, progress=trace)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    best, start = fit.objective - fit.gap, fit.history[0][1]
    seconds, done = trace.until(fit, best, start)
    disk, micro, kept = served(fit.weights, choices)
    size = f"{len(choices):,} choices, {choices.size:,} weights"
    return [
        (f"passes to gap 1e-4, {size}", "≤ 15", f"{done}, certified by the dual"),
        ("seconds to gap 1e-4, one thread", "≤ 600", f"{seconds:.0f}"),
        ("most memory", "≤ 4 GiB", f"{peak:.2f} GiB, data included"),
        (f"weights on disk, {kept:,} not 0", "≤ 50 MB", f"{disk:.1f} MB"),
        ("ranking 10 candidates, 95 apps", "≤ 20 µs", f"{micro:.1f} µs"),
    ]


def served(weights, choices):
    """Megabytes of the stored weights, microseconds of a ranking, number of weights."""
    pair = np.flatnonzero(weights)
    table = AppTable.of(
        pair // choices.entries, pair % choices.entries, weights[pair], choices.outcomes
    )
    names = [f"app {i}" for i in range(choices.entries)]
    none = AppTable.of(np.zeros(0, int), np.zeros(0, int), np.zeros(0), choices.outcomes)
    ranker = PhoneRanker(names, table, none, np.zeros(48))
    with tempfile.TemporaryDirectory() as folder:
        save_model(
            Path(folder) / "model", kind="phones", meta=ranker.meta(), arrays=ranker.arrays()
        )
        disk = sum(f.stat().st_size for f in Path(folder).rglob("*") if f.is_file()) / 1e6
    rng = np.random.default_rng(0)
    value = np.zeros(choices.entries)
    value[rng.choice(choices.entries, 95, replace=False)] = 1.0
    phone = Phone(value, np.full(choices.entries, -1), 0)
    lists = rng.integers(0, choices.outcomes // 10, 3000)[:, None] * 10 + np.arange(10)
    times = []
    for queries in lists:
        began = time.perf_counter()
        np.argsort(-ranker.added(queries, phone))
        times.append(time.perf_counter() - began)
    return disk, 1e6 * float(np.median(times)), len(pair)


def against_rivals(repeat):
    """Seconds to gap 1e-4 from zero: ours, SciPy's L-BFGS-B, proximal gradient in PyTorch."""
    for n, queries, apps, installed in SIZES:
        choices = made_up(n, queries, apps, installed=installed)
        long = fit_sdca(choices, PENALTY, max_passes=1000, tol=1e-6)
        best = long.objective - long.gap
        start = PENALTY.objective(choices, np.zeros(choices.size))
        rounds = [[run(choices, best, start) for run in METHODS.values()] for _ in range(repeat)]
        seconds = dict(zip(METHODS, np.median(rounds, axis=0), strict=True))
        ours = min(seconds[name] for name in seconds if name.startswith("telic"))
        rival = min(seconds[name] for name in seconds if not name.startswith("telic"))
        shown = ", ".join(
            f"{name} {s:.2f} s" if s < np.inf else f"{name} does not get there"
            for name, s in seconds.items()
        )
        work = f"{n:,} choices, {choices.size:,} weights: to gap 1e-4"
        missed = "**missed:** " if ours > 0.2 * rival else ""
        yield work, "≤ 0.2× the better rival", f"{missed}{ours / rival:.2f}× ({shown})"


def telic(method, options, choices, best, start):
    trace = Trace()
    fit = method(choices, PENALTY, progress=trace, **options)
    return trace.until(fit, best, start)[0]


class Reached(Exception):
    """The rival is there."""


def scipy_lbfgsb(choices, best, start):
    """L-BFGS-B on w = w+ - w-, both >= 0; the products are made before the clock starts."""
    from scipy import optimize

    matrix = choices.matrix()
    matrix_t = matrix.T.tocsr()
    d, wide = choices.size, int(choices.start[1])
    picked = np.zeros(choices.rows)
    picked[choices.chosen] = 1
    bar = best + GAP * (start - best)

    def value(z):
        w = z[:d] - z[d:]
        score = (choices.offset + matrix @ w).reshape(-1, wide)
        score -= score.max(axis=1, keepdims=True)
        odds = np.exp(score)
        p = (odds / odds.sum(axis=1, keepdims=True)).ravel()
        smooth = -np.log(p[choices.chosen]).mean() + PENALTY.l2 / 2 * w @ w
        if smooth + PENALTY.l1 * np.abs(w).sum() <= bar:
            raise Reached
        slope = matrix_t @ (p - picked) / len(choices) + PENALTY.l2 * w
        return smooth + PENALTY.l1 * z.sum(), np.concatenate(
            [slope + PENALTY.l1, PENALTY.l1 - slope]
        )

    began = time.perf_counter()
    try:
        optimize.minimize(
            value,
            np.zeros(2 * d),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * (2 * d),
            options={"maxiter": 3000, "maxfun": 5000, "ftol": 1e-15, "gtol": 1e-12},
        )
    except Reached:
        return time.perf_counter() - began
    return np.inf


def torch_proximal(choices, best, start):
    """Accelerated proximal gradient with restart and the step 1 / L, sparse products in PyTorch."""
    import torch

    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="Sparse")
    matrix = choices.matrix()

    def tensor(m):
        return torch.sparse_csr_tensor(
            torch.from_numpy(m.indptr),
            torch.from_numpy(m.indices),
            torch.from_numpy(m.data),
            size=m.shape,
        )

    x, xt = tensor(matrix), tensor(matrix.T.tocsr())
    offset, n, wide = torch.from_numpy(choices.offset), len(choices), int(choices.start[1])
    chosen = torch.from_numpy(choices.chosen)
    bar = best + GAP * (start - best)
    began = time.perf_counter()
    v = torch.ones(choices.size, dtype=torch.float64)
    for _ in range(20):
        v = xt @ (x @ (v / v.norm()))
    step = 1 / (float(v.norm()) / (2 * n) + PENALTY.l2)
    w = ahead = torch.zeros(choices.size, dtype=torch.float64)
    momentum = 1.0
    for _ in range(5000):
        score = (offset + x @ ahead).reshape(-1, wide)
        p = torch.softmax(score, dim=1).ravel()
        p[chosen] -= 1
        u = ahead - step * (xt @ p / n + PENALTY.l2 * ahead)
        new = torch.sign(u) * torch.clamp(u.abs() - step * PENALTY.l1, min=0)
        if (ahead - new) @ (new - w) > 0:
            momentum = 1.0
        following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead, w = new + (momentum - 1) / following * (new - w), new
        momentum = following
        loss = -torch.log_softmax((offset + x @ w).reshape(-1, wide), dim=1).ravel()[chosen].mean()
        if loss + PENALTY.l2 / 2 * w @ w + PENALTY.l1 * w.abs().sum() <= bar:
            return time.perf_counter() - began
    return np.inf


METHODS = {
    "telic sdca": partial(telic, fit_sdca, {"max_passes": 1000, "tol": GAP / 2}),
    "telic saga": partial(telic, fit_saga, {"max_passes": 40, "tol": 0.0}),
    "SciPy L-BFGS-B": scipy_lbfgsb,
}
if find_spec("torch"):
    METHODS["PyTorch proximal gradient"] = torch_proximal


FILE = "completion-speed.md"
OPTIONS = {"repeat": (3, "runs of each rival"), "scale": (1.0, "part of the 411,000 choices")}
HEAD = """# Speed of completion

All figures are for made-up data and one thread. The gap is
(P(w) − P*) / (P(0) − P*) with λ₁ = λ₂ = 1e-4.

"""


def page(run: Run) -> str:
    """Return the page in Markdown."""
    tiny = made_up(50, 20, 100)  # compile outside the clock
    fit_saga(tiny, PENALTY, max_passes=2, tol=0.0)
    served(fit_sdca(tiny, PENALTY).weights, tiny)
    parts = {
        "rivals": partial(against_rivals, run.options.repeat),
        "full": partial(full_size, run.options.scale),
        "keystrokes": keystrokes,
        "signals": with_signals,
    }
    return HEAD + grid(["work", "target", "measured"], run.rows(parts))
