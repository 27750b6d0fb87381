"""What chapter 3 measures on simulated phones: what their apps are worth.

Each of `EXPERIMENTS` and `CONTROLS` returns what JSON takes; `run` makes it a step of a study.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
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
from telic.completion.evaluation.appaware_evaluation import (
    PhoneResult,
    evaluate_phones,
    try_phone_models,
)
from telic.completion.fit.models import fit_relevance
from telic.completion.fit.phone_models import PhoneModels, fit_phone_models
from telic.completion.learning.adaqac import CAREFUL, PROTOCOLS, Protocol
from telic.completion.learning.app_features import Signals
from telic.completion.learning.relevance import NAMES
from telic.completion.learning.replayed_log import Lists, Replay
from telic.evaluate import mean_reciprocal_rank, paired_t_test
from telic.simulate import Catalogue, read_catalogue, simulate_phones, simulated_replay
from telic.simulate.dwell_controls import UNGATED
from telic.simulate.replays import Told

PRINTED = Elastic(1e-4, 1e-4)
STRENGTHS = (0.0, 0.5, 1.0)
RERANKED = "re-ranked lists"

phrases = lru_cache(maxsize=1)(read_catalogue)


@lru_cache(maxsize=1)
def main_log(catalogue: Path | None, users: int, compositions: int) -> Replay:
    """Return the log that all but the controls are measured on, made ready."""
    return phone_replay(phrases(catalogue), users=users, compositions=compositions)


def run(
    *, experiment: str, catalogue: Path | None, users: int, compositions: int, **options: Any
) -> Any:
    """Run one of `EXPERIMENTS` on the log, or the control on a log of its own."""
    if experiment in EXPERIMENTS:
        return EXPERIMENTS[experiment](main_log(catalogue, users, compositions), **options)
    return CONTROLS[experiment](
        phrases(catalogue), users=users, compositions=compositions, **options
    )


def phone_replay(catalogue: Catalogue, *, told: Told = "all", **phones: Any) -> Replay:
    """Simulate phones and make their log ready; see `simulated_replay` for `told`."""
    return simulated_replay(catalogue, simulate_phones(catalogue, **phones), told=told)


def accuracy(replay: Replay, *, relevance: str, lists: Lists) -> dict[str, Any]:
    """Fit and test AppAware's variants for one relevance score.

    Returns
    -------
    dict
        ``rows``: see `PhoneResult.rows`; ``pairs``: see `strongest_pairs`.
    """
    (result,) = evaluate_phones(replay, relevances=[relevance], lists=[lists])
    return {"rows": result.rows(), "pairs": strongest_pairs(replay, result.models)}


def convergence(*, replications: int = 5, passes: int = 15, seed: int = 0) -> list[dict]:
    """Figure 3.3 on a problem small enough for the printed algorithm: mean gap after each pass.

    A pass of the printed algorithm is ``|C| d / |B|`` updates of one coordinate; of the others,
    |C| component gradients. The printed step grows with the batch: beyond some batch it diverges.
    """
    choices = _small_problem(seed)
    best = fit_accelerated(choices, PRINTED, max_passes=20_000, tol=1e-10)
    methods: dict[str, Callable[..., Fit]] = {
        f"printed, {rule} step, |B| = {batch_size}": partial(
            fit_printed, batch_size=batch_size, rule=rule
        )
        for rule in ("printed", "corrected")
        for batch_size in (1, 100, 400)
    }
    methods["printed step, |B| = 100, every coordinate"] = partial(
        fit_printed, batch_size=100, rule="printed", every_coordinate=True
    )
    methods["SAGA on touched coordinates, |B| = 10"] = partial(fit_saga, batch_size=10, tol=0.0)
    methods["SDCA"] = partial(fit_sdca, tol=0.0)
    rows = []
    for name, fit in methods.items():
        paths = [
            fit(choices, PRINTED, max_passes=passes, seed=s).history for s in range(replications)
        ]
        for step in range(len(paths[0])):
            gaps = [path[step][1] - best.objective for path in paths]
            rows.append({"method": name, "pass": step, "gap": float(np.mean(gaps))})
    path = fit_accelerated(choices, PRINTED, max_passes=12 + passes, tol=0.0).history
    rows += [
        {
            "method": "accelerated, all choices at once",
            "pass": used - path[0][0],
            "gap": value - best.objective,
        }
        for used, value in path
    ]
    return rows


def _small_problem(seed: int) -> FactoredChoices:
    rng = np.random.default_rng(seed)
    n, queries, apps, wide = 500, 10, 8, 5
    outcome = np.concatenate([rng.choice(queries, wide, replace=False) for _ in range(n)])
    value = np.log1p(rng.lognormal(0, 1, n * apps))
    start = np.arange(n + 1) * wide
    flat = FactoredChoices(
        queries,
        apps,
        0,
        outcome,
        rng.standard_normal(n * wide),
        start,
        start[:-1],
        np.arange(n + 1) * apps,
        np.tile(np.arange(apps), n),
        value / value.std(),
    )
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


def swept(replay: Replay, *, parameter: str, value: float) -> dict[str, Any]:
    """Return the accuracy at every keystroke with one of "l1", "l2", "n", "minutes" changed.

    All else as printed (Figures 3.6 and 3.7).
    """
    settings: dict[str, Any] = {"penalty": PRINTED}
    if parameter in ("l1", "l2"):
        settings["penalty"] = replace(PRINTED, **{parameter: value})
    else:
        settings[parameter] = int(value) if parameter == "n" else value
    (row,) = (
        row
        for row in fitted(replay, **settings).rows()
        if (row["prefixes"], row["model"]) == ("all", "appaware")
    )
    return row | {parameter: value}


def abundance(replay: Replay, minutes: Sequence[float] = (5, 10, 20, 30, 45, 60)) -> list[dict]:
    """Figure 3.2: share of queries with an app opened before, and how many distinct ones then."""
    rows = []
    for window in minutes:
        sizes = np.diff(Signals.of(replay.log, minutes=window).recent_start)
        some = sizes[sizes > 0]
        rows.append(
            {
                "minutes": window,
                "share": float((sizes > 0).mean()),
                "distinct": float(some.mean()) if len(some) else 0.0,
                "most": int(sizes.max(initial=0)),
            }
        )
    return rows


def top_queries(replay: Replay, *, opened: bool, top: int = 5, length: int = 3) -> dict[str, Any]:
    """Tables 3.1 and 3.2: top queries of a prefix with and without an app.

    The prefix and app are those with the largest difference in shares, by a chi-squared statistic,
    among prefixes of `length` characters and apps that at least 20 such queries have.
    """
    log, signals = replay.log, Signals.of(replay.log)
    start, app = (
        (signals.recent_start, signals.recent_app)
        if opened
        else (signals.installed_start, signals.installed_app)
    )
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

    return {
        "app": log.apps[a],
        "prefix": text,
        "opened": opened,
        "with": ranked(rows[has_app]),
        "without": ranked(rows[~has_app]),
    }


def strongest_pairs(replay: Replay, models: PhoneModels, *, top: int = 20) -> list[dict]:
    """Return the query–app pairs with the largest weights, for people to read."""
    weights = models.models["appaware"].weights
    query = np.repeat(np.arange(len(weights.start) - 1), np.diff(weights.start))
    return [
        {
            "query": replay.index.phrases([int(query[e])])[0],
            "app": replay.log.apps[weights.app[e]],
            "weight": float(weights.value[e]),
        }
        for e in np.argsort(-np.abs(weights.value), kind="stable")[:top]
    ]


CANNOT: dict[str, Any] = {"independent": True}
OLDER: dict[str, Any] = {"told": "older"}
SETTINGS: list[tuple[str, str, str, dict[str, Any]]] = [
    *((f"strength {s:g}", "mpc", "careful", {"strength": s}) for s in STRENGTHS),
    *(("independent", relevance, "careful", CANNOT) for relevance in NAMES),
    ("independent, printed protocol", "mpc", "paper", CANNOT),
    ("strength 0.5, older catalogue", "mpc", "careful", {"strength": 0.5} | OLDER),
    ("independent, older catalogue", "mpc", "careful", CANNOT | OLDER),
]
"""Of the control: its name, relevance score, protocol, and how `simulate_phones` simulates."""


def control(
    catalogue: Catalogue, *, relevance: str, protocol: str, seed: int, **phones: Any
) -> dict[str, float]:
    """Return the gains in MRR over Standard (every keystroke, no gate) on one simulated log.

    "counts" is Standard without the weights that it learns for each query, which is the Standard of
    the printed protocol: there apps that cannot help gain what counting popularity anew gains.
    Where the lists know more than the completer (``told="older"``), "re-ranked lists" is a Standard
    of which the shown list is part.
    """
    way = UNGATED if protocol == CAREFUL.name else PROTOCOLS[protocol]
    replay = phone_replay(catalogue, seed=100 + seed, **phones)
    counts = fit_relevance(replay, relevance, way)
    models = fit_phone_models(replay, counts, way)
    mrr = {
        row["model"]: row["mrr"]
        for row in try_phone_models(replay, models).rows()
        if row["prefixes"] == "all"
    }
    standard, gains = mrr.pop("standard"), {}
    if way.learn_relevance:
        gains["counts"] = _standard(replay, replace(models, relevance=counts, models={})) - standard
    if "told" in phones:
        over = replay.over("shown")
        shown = fit_phone_models(over, fit_relevance(over, relevance, way), way, variants=())
        gains[RERANKED] = _standard(over, shown) - standard
    return gains | {model: value - standard for model, value in mrr.items()}


def _standard(replay: Replay, models: PhoneModels) -> float:
    """MRR of Standard at every keystroke."""
    found = try_phone_models(replay, models)
    return mean_reciprocal_rank(found.ranks["standard"][found.slices["all"]])


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


EXPERIMENTS: dict[str, Callable[..., Any]] = {
    "accuracy": accuracy,
    "abundance": abundance,
    "top queries": top_queries,
    "sweep": swept,
    "together": together,
}
"""Measured on a log."""
CONTROLS: dict[str, Callable[..., Any]] = {"control": control}
"""Measured on logs simulated with a catalogue."""
