"""A second family of simulated people, on which nothing of telic was tuned."""

from functools import lru_cache
from typing import Any

import numpy as np

from telic.completion import CAREFUL
from telic.completion.evaluation.adaqac_evaluation import evaluate
from telic.completion.signals.evaluation import ALL
from telic.errors import InputError
from telic.report import Report, Table
from telic.simulate import controls_table, dwell_twin, marginals, simulated_replay
from telic.simulate.dwell_controls import against_twin, tried
from telic.simulate.log_marginals import PUBLISHED, Published
from telic.simulate.replays import Told
from telic.simulate.shoppers import SHOPPERS, goods_catalogue, simulate_shoppers
from telic.study.signals.experiments import evaluated_compositions
from telic.study.steps import SPREAD, Steps, each_log, spread

LOOKING = ("calibrated", "inattentive", "thorough")
WANTING = ("calibrated", "all alike")
KNOWS: dict[Told, str] = {"all": "what people want", "nothing": "the log alone"}
MODELS = ("adaqac-unp", "adaqac-batch", "adaqac-online")
GROUPS = ("popularity", "personal", "session", "time", "match")
SIGNALS = (*(f"+ {name}" for name in GROUPS[1:]), ALL)


def study(steps: Steps, *, users: int = 60, compositions: int = 80, seeds: int = 5) -> Report:
    """Measure feedback and signals on simulated shoppers, with controls.

    Parameters
    ----------
    steps : Steps
    users, compositions : int
        Size of each simulated log.
    seeds : int
        Logs of each setting, at least 2.
    """
    if seeds < 2:
        raise InputError(f"seeds is {seeds}, expected at least 2: intervals are over seeds.")
    size = {"users": users, "compositions": compositions}

    def each(name: str, made: Any, **options: Any) -> list[Any]:
        return each_log(steps, name, made, seeds, **options, **size)

    reached = {name: each(f"{name}, marginals", logged, setting=name) for name in SHOPPERS}
    effects: dict[str, list[dict[str, float]]] = {}
    served: list[list[Any]] = []
    for name in LOOKING:
        for told, words in KNOWS.items():
            label = f"{name}; the completer knows {words}"
            effects[label] = each(f"{label}, feedback", feedback, setting=name, told=told)
            found = each(f"{label}, as served", as_served, setting=name, told=told)
            served.append([label, *(spread([one[model] for one in found]) for model in MODELS)])
    worth = {name: each(f"{name}, signals", signals, setting=name) for name in WANTING}
    report = Report(
        "Other people: shoppers of a second simulator",
        lead=f"Simulated: {users} shoppers with {compositions} compositions each, {seeds} logs of "
        "each setting (telic.simulate.shoppers). They look, type, want and choose by other "
        "mechanics than the typists of the other pages, and search made-up goods in a shop whose "
        "lists come from another idea of popularity. Their parameters were set by the marginals "
        "below before any gain was looked at. No default, threshold or rule of telic was chosen "
        "on them, and everything that was measured is here.",
    )
    report.text(
        "There are four settings. In “calibrated” people look at the list in most pauses. In "
        "“thorough” they look at fewer lists but read them to the end, so that a long dwell says "
        "“read and not wanted”. In “inattentive” nobody looks, and in “all alike” nobody has a "
        "taste, and no search depends on the one before: these two are controls."
    )
    report.table(_marginals_table(reached))
    report.section("Feedback on lists")
    report.table(controls_table(effects))
    report.table(
        Table(
            "What feedback adds as it is served: MRR − static over all keystrokes",
            {"shoppers": "", **dict.fromkeys(MODELS, SPREAD)},
            served,
            "Under the protocol “careful”, with its gate and running check. Means over logs and, "
            "in brackets, the least and the most. Nobody looks at the lists in “inattentive”, so "
            "there is nothing to gain.",
        )
    )
    report.section("Sessions, time and people")
    report.table(
        Table(
            "What signals add: MRR − static over all prefixes",
            {"shoppers": "", **dict.fromkeys(SIGNALS, SPREAD)},
            [
                [name, *(spread([one[model] for one in logs]) for model in SIGNALS)]
                for name, logs in worth.items()
            ],
            "Means over logs and, in brackets, the least and the most. Each column but the last "
            "is one group beside popularity, without a gate. Where all are alike, neither the "
            "people nor their last search say anything of what is wanted.",
        )
    )
    return report


def logged(*, setting: str, users: int, compositions: int, seed: int) -> dict[str, float]:
    """Return the marginals of a log."""
    return marginals(_log(setting, users, compositions, seed))


def feedback(
    *, setting: str, told: Told, users: int, compositions: int, seed: int
) -> dict[str, float]:
    """Return what `telic.simulate.dwell_effect` does, of shoppers."""
    log, goods = _log(setting, users, compositions, seed), goods_catalogue()
    twin = dwell_twin(log, seed=seed)
    return against_twin(*(tried(simulated_replay(goods, one, told=told)) for one in (log, twin)))


def as_served(
    *, setting: str, told: Told, users: int, compositions: int, seed: int
) -> dict[str, float]:
    """Return what each model adds to the static order at all keystrokes."""
    log = _log(setting, users, compositions, seed)
    replay = simulated_replay(goods_catalogue(), log, told=told)
    (result,) = evaluate(replay, relevances=["mpc"], protocols=[CAREFUL], lists=["own"])
    return {
        row["model"]: row["difference"]
        for row in result.rows()
        if row["prefixes"] == "all" and row["model"] in MODELS
    }


def signals(*, setting: str, users: int, compositions: int, seed: int) -> dict[str, float]:
    """Return what each group of signals adds to the static order."""
    found = evaluated_compositions(_log(setting, users, compositions, seed), GROUPS, seed=seed)
    return {model: float(found.row(model)["difference"]) for model in SIGNALS}


@lru_cache(maxsize=32)
def _log(setting: str, users: int, compositions: int, seed: int) -> Any:
    return simulate_shoppers(users=users, compositions=compositions, setting=setting, seed=seed)


def _marginals_table(reached: dict[str, list[dict[str, float]]]) -> Table:
    return Table(
        "Marginals",
        {"marginal": "", "published": "", **dict.fromkeys(reached, ".3f")},
        [
            [name, f"{one.value}; {one.source}{_asked(one)}"]
            + [float(np.mean([log[name] for log in logs])) for logs in reached.values()]
            for name, one in PUBLISHED.items()
        ],
        "Means over logs. `telic.simulate.marginals` defines each. The range after a source is "
        "what “calibrated” was set to reach.",
    )


def _asked(one: Published) -> str:
    return "" if one.reached is None else ": {:g} to {:g}".format(*one.reached)
