"""What sessions, time and people are worth, on real query logs and on simulated ones."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from telic.completion.signals.evaluation import ALL
from telic.completion.signals.report import EXPLAINED, SYNTHETIC, SignalFindings
from telic.errors import InputError
from telic.report import Report, Table
from telic.study.signals.experiments import PHONES, WITHOUT, phones, real, simulated
from telic.study.signals.real_logs import BING, UNIMOBILE, real_file
from telic.study.steps import SPREAD, Steps, each_log, spread

TITLES = {BING: "Bing, by country (real)", UNIMOBILE: "UniMobile (real)"}
PEOPLE = {BING: "countries, which stand for users", UNIMOBILE: "users"}
ABOUT = {
    BING: "Queries about the coronavirus in January 2020, by day and country, with a popularity "
    "score. Countries stand for users: personal is what the country itself searched for. The log "
    "gives days but no times of day, and no sessions. Every row counts once in the tests, and as "
    "often as its score in the counts.",
    UNIMOBILE: "Queries that 625 crowd workers would type on a phone for given tasks. There are "
    "no times: workers come in random order and are tested on what those before them typed; "
    "personal and session are the worker's own earlier queries in the order of the file. Few "
    "queries are ever typed twice, so the ceiling is low.",
}
OTHERS = (
    "TREC's completions hold each query once and no popularity, so no completer can be tested on "
    "them; the keystrokes of Aalto's four people are times of copied sentences, without queries. "
    "No real log at hand has people, times of the day and sessions together, as AOL's log or "
    "AmazonQAC would. `telic completion signals` measures a log of your own, and `telic study "
    "amazonqac` measures AmazonQAC. What follows is simulated."
)
FIRST_SEED = 2
"""The seeds 0 and 1 chose how strongly rates are shrunk."""
GROWING = (25, 50, 100, 200, 400)
"""Numbers of users of the learning curve."""


def study(
    steps: Steps,
    *,
    users: int = 400,
    sessions: int = 40,
    compositions: int = 100,
    seeds: int = 3,
    data: Path | None = None,
    seed: int = 0,
) -> Report:
    """Evaluate the real query logs at hand, then simulated searchers with each cause absent.

    Parameters
    ----------
    steps : Steps
    users, sessions : int
        Of each simulated log.
    compositions : int
        Of each user of a simulated phone; there are half as many of these as other users.
    seeds : int
        Simulated logs of each world, at least 2.
    data : path, optional
        Folder of real data; see `telic.data.data_sets.data_folder`.
    seed : int
        Of the splits of real logs.
    """
    if seeds < 2:
        raise InputError(f"seeds is {seeds}, expected at least 2: a range is over seeds.")
    logs = {name: real_file(name, data) for name in TITLES}

    def do(step: str, make: Callable[..., Any], /, **settings: Any) -> SignalFindings:
        return SignalFindings.from_json(steps(step, make, **settings))

    def each(world: str, make: Callable[..., Any], **size: int) -> list[SignalFindings]:
        return each_log(do, world, make, seeds, first=FIRST_SEED, world=world, **size)

    found = {
        name: do(TITLES[name], real, name=name, file=file, seed=seed) for name, file in logs.items()
    }
    worlds = {world: each(world, simulated, users=users, sessions=sessions) for world in WITHOUT}
    growing = {
        size: do(
            *(f"{size} users", simulated),
            world="all causes",
            users=size,
            sessions=sessions,
            seed=FIRST_SEED,
        )
        for size in GROWING
    }
    with_apps = {
        world: each(world, phones, users=users // 2, compositions=compositions) for world in PHONES
    }
    report = Report("Sessions, time and people on query logs")
    for name, one in found.items():
        report.text(f"{TITLES[name]}: {one.sentence(PEOPLE[name])}")
    report.text(EXPLAINED + SYNTHETIC)
    for name, one in found.items():
        report.section(TITLES[name])
        report.text(ABOUT[name])
        for table in one.tables():
            report.table(table)
    report.section("Other public logs")
    report.text(OTHERS)
    whole = worlds["all causes"][0]
    report.section("Simulated searchers")
    report.text(
        f"Simulated: {users} searchers with {sessions} sessions each in 90 days, who have habits, "
        "refine, vary, repeat, and follow the hour and fashions (telic.simulate.searchers); "
        f"the shares of each cause were fixed before any gain was looked at. {whole.sentence()}"
    )
    for table in whole.tables():
        report.table(table)
    report.section("With one cause left out (simulated)")
    report.table(_worlds_table(worlds))
    report.section("Apps that were opened before (simulated)")
    report.text(
        f"Simulated: {users // 2} phones with {compositions} compositions each "
        "(a data card describes them), of which half are caused by an app: one that was "
        "opened in the half hour before, or one that is installed. Apps are a group of signals; "
        "what is installed is not."
    )
    report.table(_apps_table(with_apps))
    report.section("From few users to many (simulated)")
    report.table(_growing_table(growing))
    return report


def _gain(found: SignalFindings, model: str, part: str = "all") -> float:
    return float(found.row(model, part)["difference"])


def _worlds_table(worlds: dict[str, list[SignalFindings]]) -> Table:
    models = ("+ time", "+ personal", "+ session", "+ match", ALL)
    return Table(
        "MRR − static by group, in worlds without a cause",
        {"world": ""} | dict.fromkeys(models, SPREAD),
        [
            [world, *(spread([_gain(one, model) for one in logs]) for model in models)]
            for world, logs in worlds.items()
        ],
        "Means over logs and, in brackets, the least and the most. Each column but the last is one "
        "group beside popularity, without a gate.",
    )


def _apps_table(worlds: dict[str, list[SignalFindings]]) -> Table:
    models = ("+ personal", "+ apps", ALL)
    rows: list[list[Any]] = []
    for world, logs in worlds.items():
        gains = [[_gain(one, model) for one in logs] for model in models]
        gains.insert(2, [_gain(one, "+ apps", "1–3 characters") for one in logs])
        gains.append([_exchanged(one, "apps") for one in logs])
        rows.append([world, *map(spread, gains)])
    names = ("+ personal", "+ apps", "+ apps, 1–3 characters", ALL, "control: apps exchanged")
    return Table(
        "MRR − static where apps are a cause, and where they are not",
        {"world": ""} | dict.fromkeys(names, SPREAD),
        rows,
        "Means over logs and, in brackets, the least and the most. The last column is what the "
        "apps of somebody else seem to be worth beside learned popularity, without a gate.",
    )


def _exchanged(found: SignalFindings, group: str) -> float:
    return next(
        float(row["difference"])
        for row in found.controls
        if (row["group"], row["exchanged"]) == (group, True)
    )


def _growing_table(growing: dict[int, SignalFindings]) -> Table:
    models = ("+ time", "+ personal", "+ session", ALL)
    columns: dict[str, str] = {"users": ",", "submissions": ",", "MRR static": "100 .2f"}
    rows = [
        [
            size,
            one.facts["submissions"],
            one.row("static")["mrr"],
            *([one.row(model)[end] for end in ("difference", "low", "high")] for model in models),
        ]
        for size, one in growing.items()
    ]
    return Table(
        "How much log makes a signal worth having",
        columns | dict.fromkeys(models, SPREAD),
        rows,
        "MRR − static over all prefixes, with 95 % intervals over users. Each row has "
        "the same kind of searchers, and more of them.",
    )
