"""Time keystrokes, and AppAware at the printed size and against rivals.

`python -m benchmarks completion`. All on made-up data; AppAware's are 411,000 choices among
neighbours in a list of 10,000 queries, and 2,000 apps of which a phone has 95 on average, partly
caused by a sparse table of weights.
"""

import argparse
import resource
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks.completion import service
from benchmarks.completion.engine import engine_rows
from telic.choice import Elastic, FactoredChoices, fit_saga, fit_sdca
from telic.completion import Completer, Phone, PhoneRanker, PrefixIndex, Relevance, UserState
from telic.completion.adaqac import Design
from telic.completion.appaware import AppTable
from telic.completion.harm import Gate
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
    has = np.empty((0,), np.int32)
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
    choices = FactoredChoices(
        queries,
        apps,
        0,
        outcome,
        offset,
        start,
        start[:-1],
        np.concatenate([[0], np.cumsum(lengths)]),
        has,
        value,
    )
    score = choices.scores(truth) + rng.gumbel(size=len(offset))
    chosen = start[:-1] + score.reshape(n, candidates).argmax(axis=1)
    return FactoredChoices(
        queries, apps, 0, outcome, offset, start, chosen, choices.context_start, has, value
    )


class Trace:
    """Seconds and objective after each pass of a fit, from its `progress`."""

    def __init__(self):
        self.began, self.seconds = time.perf_counter(), []

    def __call__(self, done, total):
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
    phone = Phone(value, np.full(choices.entries, -1))
    lists = rng.integers(0, choices.outcomes // 10, 3000)[:, None] * 10 + np.arange(10)
    times = []
    for queries in lists:
        began = time.perf_counter()
        np.argsort(-ranker.added(queries, phone))
        times.append(time.perf_counter() - began)
    return disk, 1e6 * float(np.median(times)), len(pair)


def against_rivals(repeat):
    """Seconds to gap 1e-4 from zero: ours, SciPy's L-BFGS-B, proximal gradient in PyTorch."""
    rows = []
    for n, queries, apps, installed in SIZES:
        choices = made_up(n, queries, apps, installed=installed)
        long = fit_sdca(choices, PENALTY, max_passes=1000, tol=1e-6)
        best = long.objective - long.gap
        start = PENALTY.objective(choices, np.zeros(choices.size))
        found: dict[str, list[float]] = {}
        for _ in range(repeat):
            for name, run in METHODS.items():
                found.setdefault(name, []).append(run(choices, best, start))
        seconds = {name: float(np.median(times)) for name, times in found.items()}
        ours = min(seconds[name] for name in seconds if name.startswith("telic"))
        rival = min(seconds[name] for name in seconds if not name.startswith("telic"))
        shown = ", ".join(f"{name} {s:.2f} s" for name, s in seconds.items())
        rows.append(
            (
                f"{n:,} choices, {choices.size:,} weights: to gap 1e-4",
                "≤ 0.2× the better rival",
                f"{ours / rival:.2f}× ({shown})",
            )
        )
    return rows


def telic_sdca(choices, best, start):
    trace = Trace()
    fit = fit_sdca(choices, PENALTY, max_passes=1000, tol=GAP / 2, progress=trace)
    return trace.until(fit, best, start)[0]


def telic_saga(choices, best, start):
    trace = Trace()
    fit = fit_saga(choices, PENALTY, max_passes=40, tol=0.0, progress=trace)
    return trace.until(fit, best, start)[0]


def made_up_completer(size=33_000):
    """Return a completer over made-up phrases, one of whose users has a history; the phrases."""
    rng = np.random.default_rng(0)
    syllables = [a + b for a in "bcdfghklmnprstvw" for b in "aeiou"]
    drawn = size + size // 5
    phrases = [
        " ".join("".join(rng.choice(syllables, rng.integers(1, 4))) for _ in range(words))
        for words in rng.integers(1, 4, drawn)
    ]
    phrases = list(dict.fromkeys(phrases))[:size]
    index = PrefixIndex.build(phrases, np.log1p(rng.zipf(1.3, len(phrases)).clip(0, 1e6)))
    weights = rng.normal(scale=0.1, size=17)
    relevance = Relevance("personal-s", popular=0.5, personal=0.5)
    history = dict.fromkeys([*phrases[:85], *(f"b own {i}" for i in range(10))], 1.0)
    completer = Completer(
        index,
        relevance,
        Design(np.ones(16), True),
        weights,
        {"ada": UserState(weights.copy(), history=history)},
        Gate.always(1),
        "adaqac-online",
        10,
        0.1,
        "careful",
        False,
    )
    return completer, phrases


def keystrokes():
    """Processor time of a keystroke, by a user with a history in a large catalogue."""
    completer, phrases = made_up_completer()
    micro = []
    for target in phrases[::100]:
        began = time.process_time()
        composition = completer.compose(completer.user("ada"))
        for typed in range(8):
            composition.suggest(target[: typed + 1], at=0.3 * typed)
        micro.append(1e6 * (time.process_time() - began) / 8)
    return [
        (
            f"keystroke in process, {len(phrases):,} phrases, 95 past queries",
            "≤ 150 µs",
            f"{np.median(micro):.0f} µs of processor time",
        )
    ]


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
    "telic sdca": telic_sdca,
    "telic saga": telic_saga,
    "SciPy L-BFGS-B": scipy_lbfgsb,
    "PyTorch proximal gradient": torch_proximal,
}


PARTS = ("rivals", "full", "keystrokes", "engine", "service")


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks completion", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="part of the 411,000 choices")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each rival; the median")
    parser.add_argument("--only", choices=PARTS, help="one part; else the first three")
    parser.add_argument("--names", type=int, default=1_100_000, help="names that are looked up")
    parser.add_argument("--queries", type=int, default=1000, help="look-ups of each kind")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="for quality")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each run of the service")
    parser.add_argument("--phrases", type=int, default=33_000, help="that the service serves")
    parser.add_argument("--postgresql", help="URL of a store to time beside SQLite")
    parser.add_argument("--output", type=Path, help="write the table here, in Markdown")
    args = parser.parse_args()
    if args.only == "engine":
        lines = engine_rows(args.data, names=args.names, queries=args.queries)
        table = "\n".join(f"| {work} | {seen} |" for work, seen in lines)
        text = f"| work | measured |\n|---|---|\n{table}"
        print(text)
        if args.output:
            args.output.write_text(f"{ENGINE_HEAD}\n\n{text}\n", encoding="utf-8")
        return
    tiny = made_up(50, 20, 100)  # compile outside the clock
    fit_saga(tiny, PENALTY, max_passes=2, tol=0.0)
    served(fit_sdca(tiny, PENALTY).weights, tiny)
    parts = {
        "rivals": lambda: against_rivals(args.repeat),
        "full": lambda: full_size(args.scale),
        "keystrokes": keystrokes,
        "service": lambda: service.rows(
            *made_up_completer(args.phrases), seconds=args.seconds, postgresql=args.postgresql
        ),
    }
    # The engine's and the service's tables are pages of their own.
    asked = [args.only] if args.only else PARTS[:3]
    rows = [row for part in asked for row in parts[part]()]
    text = "\n".join(
        ["| work | target | measured |", "|---|---|---|"]
        + [f"| {work} | {target} | {seen} |" for work, target, seen in rows]
    )
    print(text)
    if args.output:
        head = service.HEAD if args.only == "service" else HEAD
        args.output.write_text(f"{head}\n\n{text}\n", encoding="utf-8")


HEAD = """# Speed of completion

Written by `python -m benchmarks completion --output docs/completion-speed.md`, on made-up data, one
thread. Gap: (P(w) − P*) / (P(0) − P*) with λ₁ = λ₂ = 1e-4."""

ENGINE_HEAD = """# Look-up beside other engines

`python -m benchmarks completion --only engine --output docs/completion-engine.md` wrote this
page.

The phrases are the world's places in all their spellings, with made-up popularity. Times are
processor time of one thread, from a call in Python to the texts; telic's include opening the
composition that feedback and history need. "Found" is the share of look-ups whose ten suggestions
hold the name that was meant, where case and accents do not count. More than ten names may hold a
word that is looked up alone. FTS5 does not look for typos. Quality is measured on a real query
log that shows no users (Bing Coronavirus Query Set, January 2020, English-speaking countries),
weighted by its popularity scores."""


if __name__ == "__main__":
    main()
