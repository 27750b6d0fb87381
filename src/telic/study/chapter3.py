"""Chapter 3: what a phone's apps are worth. Each function returns one table or figure's numbers."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from telic.choice import (
    Elastic,
    FactoredChoices,
    Fit,
    fit_accelerated,
    fit_printed,
    fit_saga,
    fit_sdca,
)
from telic.completion.adaqac import CAREFUL, PAPER, Protocol
from telic.completion.appaware_evaluation import (
    VARIANTS,
    PhoneModels,
    PhoneResult,
    fit_phone_models,
    try_phone_models,
)
from telic.completion.appaware_signals import Signals
from telic.completion.models import fit_relevance
from telic.completion.relevance import NAMES
from telic.completion.replay import Replay
from telic.evaluate import mean_reciprocal_rank, paired_t_test
from telic.simulate import Catalogue, simulate_phones
from telic.study.chapter2_controls import Told, simulated_replay

Progress = Callable[[str], None]
UNGATED = replace(CAREFUL, do_no_harm=False)
"""Judges the effect itself: with the gate, apps that say nothing would show an exact zero."""
PRINTED = Elastic(1e-4, 1e-4)
STRENGTHS = (0.0, 0.5, 1.0)
RERANKED = "re-ranked lists"


def phone_replay(catalogue: Catalogue, *, told: Told = "all", **phones: Any) -> Replay:
    """Simulate phones and make their log ready; see `simulated_replay` for `told`."""
    return simulated_replay(catalogue, simulate_phones(catalogue, **phones), told=told)


def convergence(*, replications: int = 5, passes: int = 15, seed: int = 0) -> list[dict]:
    """Figure 3.3 on a problem small enough for the printed algorithm: mean gap after each pass.

    A pass of the printed algorithm is ``|C| d / |B|`` updates of one coordinate; of the others,
    |C| component gradients. The printed step grows with the batch: beyond some batch it diverges.
    """
    choices = _small_problem(seed)
    best = fit_accelerated(choices, PRINTED, passes=20_000, tol=1e-10)
    methods: dict[str, Callable[..., Fit]] = {
        f"printed, {rule} step, |B| = {batch}": partial(fit_printed, batch=batch, rule=rule)
        for rule in ("printed", "corrected")
        for batch in (1, 100, 400)
    }
    methods["printed step, |B| = 100, every coordinate"] = partial(
        fit_printed, batch=100, rule="printed", every_coordinate=True
    )
    methods["SAGA on touched coordinates, |B| = 10"] = partial(fit_saga, batch=10)
    methods["SDCA"] = partial(fit_sdca, tol=0.0)
    rows = []
    for name, run in methods.items():
        paths = [run(choices, PRINTED, passes=passes, seed=s).history for s in range(replications)]
        for step in range(len(paths[0])):
            gaps = [path[step][1] - best.objective for path in paths]
            rows.append({"method": name, "pass": step, "gap": float(np.mean(gaps))})
    path = fit_accelerated(choices, PRINTED, passes=12 + passes).history
    rows += [
        {"method": "accelerated, all choices at once", "pass": used - path[0][0],
         "gap": value - best.objective}
        for used, value in path
    ]  # fmt: skip
    return rows


def _small_problem(seed: int) -> FactoredChoices:
    rng = np.random.default_rng(seed)
    n, queries, apps, wide = 500, 10, 8, 5
    outcome = np.concatenate([rng.choice(queries, wide, replace=False) for _ in range(n)])
    value = np.log1p(rng.lognormal(0, 1, n * apps))
    start = np.arange(n + 1) * wide
    flat = FactoredChoices(
        queries, apps, 0, outcome, rng.standard_normal(n * wide), start, start[:-1],
        np.arange(n + 1) * apps, np.tile(np.arange(apps), n), value / value.std(),
    )  # fmt: skip
    truth = rng.standard_normal(flat.size) * (rng.random(flat.size) < 0.3)
    noisy = flat.scores(truth) + rng.gumbel(size=flat.rows)
    chosen = start[:-1] + noisy.reshape(n, wide).argmax(axis=1)
    return replace(flat, chosen=chosen)


def fitted(
    replay: Replay, *, protocol: Protocol = UNGATED, n: int = 10, **changes: Any
) -> PhoneResult:
    """Fit AppAware (MPC) with some setting changed and test it."""
    relevance = fit_relevance(replay, "mpc", protocol, n=n)
    models = fit_phone_models(
        replay, relevance, protocol, n=n, **({"variants": ("appaware",)} | changes)
    )
    return try_phone_models(replay, models)


def sweep(
    replay: Replay, name: str, values: Sequence[float], *, progress: Progress | None = None
) -> list[dict]:
    """Vary one of "l1", "l2" (Figure 3.6), "n", "minutes" (Figure 3.7), all else as printed."""
    rows = []
    for value in values:
        if progress:
            progress(f"{name} = {value:g}")
        settings: dict = {"penalty": PRINTED}
        if name in ("l1", "l2"):
            settings["penalty"] = replace(PRINTED, **{name: value})
        else:
            settings[name] = int(value) if name == "n" else value
        for row in fitted(replay, **settings).rows():
            if row["prefixes"] == "all":
                rows.append(row | {name: value})
    return rows


def abundance(replay: Replay, minutes: Sequence[float] = (5, 10, 20, 30, 45, 60)) -> list[dict]:
    """Figure 3.2: share of queries with an app opened before, and how many distinct ones then."""
    rows = []
    for window in minutes:
        sizes = np.diff(Signals.of(replay.log, minutes=window).recent_start)
        some = sizes[sizes > 0]
        rows.append({
            "minutes": window, "share": float((sizes > 0).mean()),
            "distinct": float(some.mean()) if len(some) else 0.0,
            "most": int(sizes.max(initial=0)),
        })  # fmt: skip
    return rows


def top_queries(replay: Replay, *, opened: bool, top: int = 5, length: int = 3) -> dict:
    """Tables 3.1 and 3.2: top queries of a prefix with and without an app.

    The prefix and app are those with the largest difference in shares, by a chi-squared statistic,
    among prefixes of `length` characters and apps that at least 20 such queries have.
    """
    log, signals = replay.log, Signals.of(replay.log)
    start, app = (
        (signals.recent_start, signals.recent_app) if opened
        else (signals.installed_start, signals.installed_app)
    )  # fmt: skip
    names = replay.index.phrases(range(len(replay.index)))
    prefix = np.array([names[q][:length].lower() for q in replay.query])
    best: tuple[float, str, int] = (-1.0, "", -1)
    for text, count in Counter(prefix.tolist()).most_common(20):
        rows = np.flatnonzero(prefix == text)
        has = np.zeros((len(rows), signals.apps), bool)
        for i, c in enumerate(rows):
            has[i, app[start[c] : start[c + 1]]] = True
        _, query = np.unique(replay.query[rows], return_inverse=True)
        overall = np.bincount(query) / count
        for a in map(
            int, np.flatnonzero((has.sum(axis=0) >= 20) & (has.sum(axis=0) <= count - 20))
        ):
            seen = np.bincount(query[has[:, a]], minlength=len(overall))
            expected = overall * has[:, a].sum()
            statistic = float(((seen - expected) ** 2 / expected).sum()) / len(overall)
            best = max(best, (statistic, text, a))
    _, text, a = best
    if a < 0:
        return {"app": None, "prefix": None, "with": [], "without": []}
    rows = np.flatnonzero(prefix == text)
    has_app = np.array([a in app[start[c] : start[c + 1]] for c in rows])

    def ranked(some: np.ndarray) -> list[tuple[str, float]]:
        counts = Counter(names[q] for q in replay.query[some])
        return [(query, times / len(some)) for query, times in counts.most_common(top)]

    return {"app": log.apps[a], "prefix": text, "opened": opened,
            "with": ranked(rows[has_app]), "without": ranked(rows[~has_app])}  # fmt: skip


def strongest_pairs(replay: Replay, models: PhoneModels, *, top: int = 20) -> list[dict]:
    """Return the query–app pairs with the largest weights, for people to read."""
    weights = models.models["appaware"].weights
    query = np.repeat(np.arange(len(weights.start) - 1), np.diff(weights.start))
    return [
        {"query": replay.index.phrases([int(query[e])])[0],
         "app": replay.log.apps[weights.app[e]], "weight": float(weights.value[e])}
        for e in np.argsort(-np.abs(weights.value), kind="stable")[:top]
    ]  # fmt: skip


def controls(
    catalogue: Catalogue, *, seeds: int = 3, progress: Progress | None = None, **phones: Any
) -> list[dict]:
    """Gain in MRR (every keystroke, no gate) with apps that cause, do not, and cannot.

    ``strength``: the share of queries that apps cause. At 0 a set of apps still gives its owner's
    habits away. ``independent``: the apps of another composition; nothing may be gained, and
    nothing is where Standard has learned a weight for each query itself. "counts" is Standard
    without these weights, which is the Standard of the printed protocol: there apps that cannot
    help gain what counting popularity anew gains.

    ``older catalogue``: the lists know more than the completer (`telic.study.chapter2_controls`).
    There "re-ranked lists" is a Standard of which the shown list is part, against Standard.
    """
    cannot, older = {"independent": True}, {"told": "older"}
    settings: list[tuple[str, str, Protocol, dict]] = [
        *((f"strength {s:g}", "mpc", UNGATED, {"strength": s}) for s in STRENGTHS),
        *(("independent", relevance, UNGATED, cannot) for relevance in NAMES),
        ("independent, printed protocol", "mpc", PAPER, cannot),
        ("strength 0.5, older catalogue", "mpc", UNGATED, {"strength": 0.5} | older),
        ("independent, older catalogue", "mpc", UNGATED, cannot | older),
    ]
    rows = []
    for setting, relevance, protocol, change in settings:
        gains: dict[str, list[float]] = {}
        for seed in range(seeds):
            if progress:
                progress(f"control: {setting}, {relevance}, log {seed + 1} of {seeds}")
            replay = phone_replay(catalogue, **(phones | change | {"seed": 100 + seed}))
            counts = fit_relevance(replay, relevance, protocol)
            models = fit_phone_models(replay, counts, protocol)
            mrr = {row["model"]: row["mrr"] for row in try_phone_models(replay, models).rows()
                   if row["prefixes"] == "all"}  # fmt: skip
            if protocol.learn_relevance:
                plain = try_phone_models(replay, replace(models, relevance=counts, models={}))
                mrr["counts"] = mean_reciprocal_rank(plain.ranks["standard"][plain.slices["all"]])
            if "told" in change:
                over = replay.over("shown")
                shown = fit_relevance(over, relevance, protocol)
                other = try_phone_models(over, fit_phone_models(over, shown, protocol, variants=()))
                mrr[RERANKED] = mean_reciprocal_rank(other.ranks["standard"][other.slices["all"]])
            for model in mrr.keys() - {"standard"}:
                gains.setdefault(model, []).append(mrr[model] - mrr["standard"])
        for model in ("counts", RERANKED, *VARIANTS):
            if model in gains:
                ones = np.array(gains[model])
                test = paired_t_test(ones, np.zeros(len(ones)), np.arange(len(ones)))
                rows.append({"setting": setting, "relevance": relevance, "model": model,
                             "gain": test.difference,
                             "low": test.low, "high": test.high, "seeds": seeds})  # fmt: skip
    return rows


def together(replay: Replay, *, relevance: str = "mpc") -> list[dict]:
    """Implicit feedback, apps, and both in one fit, on the same test keystrokes, without gates."""
    score = fit_relevance(replay, relevance, UNGATED)
    apps = try_phone_models(
        replay, fit_phone_models(replay, score, UNGATED, variants=("appaware",))
    )
    both = try_phone_models(
        replay,
        fit_phone_models(replay, score, UNGATED, variants=("feedback", "appaware"), together=True),
    )
    ranks = {
        "standard": apps.ranks["standard"],
        "feedback": both.ranks["feedback"],
        "appaware": apps.ranks["appaware"],
        "together": both.ranks["appaware"],
    }
    rows = []
    for prefixes in ("last", "all"):
        inside = apps.slices[prefixes]
        for model, own in ranks.items():
            row = {"model": model, "prefixes": prefixes, "mrr": float(own[inside].mean())}
            for other in ("standard", "appaware", "feedback"):
                test = paired_t_test(own[inside], ranks[other][inside], apps.user[inside])
                row |= {f"over {other}": test.difference, f"p over {other}": test.p_value}
            rows.append(row)
    return rows
