"""What `telic completion evaluate` shows: accuracy, where the static order is kept, who gains."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from telic.completion.evaluation.adaqac_evaluation import PREFIXES, Result
from telic.completion.evaluation.appaware_evaluation import PhoneResult
from telic.completion.evaluation.figures import (
    dwell_figure,
    lengths_figure,
    threshold_figure,
    users_figure,
)
from telic.completion.evaluation.json_facts import findings, log_facts
from telic.completion.fit.models import MODELS
from telic.completion.learning.adaqac import CAREFUL
from telic.completion.learning.replayed_log import Replay
from telic.report import Report, Table

Rows = Sequence[Mapping[str, Any]]
"""What `Result.rows` and `PhoneResult.rows` return."""
WORDS = {"last": "the last keystroke", "all": "every keystroke"}
LISTS = {"own": "own", "shown": "the shown list, re-ranked"}
"""What a row ranks, in words."""
PERCENT, POINTS, CHANGE = "100 .2f", "100 +.2f", "{:100 +.2f} (p {:p})"
INTERVAL = "100 {:+.2f} … {:+.2f}"
COLUMNS: dict[str, tuple[tuple[str, ...], str]] = {
    "relevance": (("relevance",), ""),
    "protocol": (("protocol",), ""),
    "N": (("candidates",), ""),
    "list": (("lists",), ""),
    "model": (("model",), ""),
    "learned popularity": (("learned_popularity",), ""),
    "prefixes": (("prefixes",), ""),
    "keystrokes": (("n",), ","),
    "MRR": (("mrr",), PERCENT),
    "relative change": (("relative",), POINTS),
    "change": (("difference",), POINTS),
    "95 % interval": (("low", "high"), INTERVAL),
    "p": (("p_value",), "p"),
    **{f"SR@{k}": ((f"sr@{k}",), PERCENT) for k in (1, 2, 3)},
    "gap": (("gap",), ".1g"),
}
"""Of `accuracy_table`: from each column's name to what it shows of a row and its format."""
FOR_PROGRAMS = ("list", "learned popularity", "prefixes", "keystrokes")
"""Columns that a table of one kind of prefixes leaves out."""
SIMULATED = (
    "The people behind these numbers are simulated. They show what the method does when people "
    "behave as the data card says, not what it does for yours: bring your own log."
)
WHAT_IS_RANKED = (
    "The candidates are those that `fit` would serve at that moment (the completer's own list), "
    "and ties go by its order. Where the shown list is re-ranked, the suggestions that were shown "
    "join the candidates, and ties go by the order in which they were shown. Such a row includes "
    "what the logged system knew. Each kind of list is compared with a static order of its own."
)
IN_USERS = (
    "Measures are in percent, and each keystroke that is measured counts once. Changes are in "
    "points against the static order of the same relevance. They take users as the unit: a change "
    "is the mean of the users' mean differences, with the interval and p-value of a paired t-test "
    "over users, and each user counts once whatever the number of keystrokes."
)


@dataclass(frozen=True)
class Summary:
    """What an evaluation shows: tables for people, numbers for programs, a page."""

    tables: list[Table]
    facts: dict[str, Any]
    """What ``--json`` prints: ``simulated``, ``rows`` of `accuracy_table`, and more."""
    page: Callable[[], Report]
    """Makes the report; its figures take a second."""


def feedback_summary(replay: Replay, results: Sequence[Result]) -> Summary:
    """Return what each model adds to the static order of a log, and where that order is kept.

    Parameters
    ----------
    replay : Replay
    results : sequence of Result
        What `telic.completion.evaluate` returned for it.
    """
    found, simulated = findings(results), bool(replay.log.simulated)
    online = [gate for gate in found["gates"] if gate["model"].endswith("adaqac-online")]
    tables = [overview_table(found["rows"], part, simulated=simulated) for part in WORDS]

    def page() -> Report:
        report = Report("Does implicit feedback help?")
        add_evaluation(report, log_facts(replay), found)
        return report

    return Summary(
        [*tables, *([gates_table(online)] if online else [])],
        {
            "simulated": simulated,
            "rows": accuracy_table(found["rows"]).records(),
            "gates": gates_table(found["gates"]).records(),
        },
        page,
    )


def apps_summary(replay: Replay, results: Sequence[PhoneResult]) -> Summary:
    """Return what a phone's apps add to Standard on a log.

    Parameters
    ----------
    replay : Replay
    results : sequence of PhoneResult
        What `telic.completion.evaluation.appaware_evaluation.evaluate_phones` returned for it.
    """
    rows = [row for result in results for row in result.rows()]
    simulated = bool(replay.log.simulated)
    return Summary(
        [accuracy_table(rows, "all", simulated=simulated)],
        {"simulated": simulated, "rows": accuracy_table(rows).records()},
        lambda: apps_report(rows, simulated=simulated),
    )


def overview_table(rows: Rows, prefixes: str, *, simulated: bool = False) -> Table:
    """Return what each model adds to the static order, one row per relevance and kind of list."""
    about = ("relevance", "protocol", "candidates", "lists")
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["prefixes"] == prefixes:
            groups.setdefault(tuple(row[key] for key in about), []).append(row)
    return Table(
        f"{_people(simulated)}MRR at {WORDS[prefixes]} in percent, and the changes against the "
        "static order in points",
        {"relevance": "", "protocol": "", "N": "", "list": "", "static": PERCENT}
        | dict.fromkeys(MODELS[1:], CHANGE),
        [
            [
                *key[:3],
                LISTS[key[3]],
                static["mrr"],
                *([row["difference"], row["p_value"]] for row in others),
            ]
            for key, (static, *others) in groups.items()
        ],
    )


def accuracy_table(rows: Rows, prefixes: str | None = None, *, simulated: bool = False) -> Table:
    """Return every measure of every model at some `PREFIXES`, as in Tables 2.3, 2.4 and 3.5.

    By default at all of them, with what else a program may ask: this is what ``--json`` prints.
    """
    columns = {
        name: (keys, form)
        for name, (keys, form) in COLUMNS.items()
        if not any(keys[0] not in row for row in rows) and not (prefixes and name in FOR_PROGRAMS)
    }

    def value(row: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
        values = [row[key] for key in keys]
        return values[0] if len(keys) == 1 else None if None in values else values

    return Table(
        f"{_people(simulated)}Accuracy in percent" + (f" at {WORDS[prefixes]}" if prefixes else ""),
        {name: form for name, (_, form) in columns.items()},
        [
            [value(row, keys) for keys, _ in columns.values()]
            for row in rows
            if prefixes in (None, row["prefixes"])
        ],
        note="Changes of MRR are against Standard: in percent of Standard's MRR, and in points "
        "with the interval and p of a paired t-test over users. The gap bounds how far the fit's "
        "objective, a mean log loss and its penalty, is above its optimum."
        if "gap" in columns
        else "",
    )


def lengths_table(rows: Rows) -> Table:
    """Return MRR by prefix length, as in Table 2.5."""
    about = ("relevance", "protocol", "candidates", "model")
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        own = found.setdefault(tuple(row[key] for key in about), {})
        own[row["prefixes"]] = [row["mrr"], row["difference"]] if row["n"] else None
    return Table(
        "By prefix length, in characters: MRR in percent, the change in points",
        {"relevance": "", "protocol": "", "N": "", "model": ""}
        | dict.fromkeys(PREFIXES[1:], "100 {:.2f} ({:+.2f})"),
        [[*key, *(own[prefixes] for prefixes in PREFIXES[1:])] for key, own in found.items()],
    )


def gates_table(gates: Rows) -> Table:
    """Return where feedback re-ranks, in words."""
    return Table(
        "Where feedback re-ranks, and where the static order is kept",
        {"relevance": "", "N": "", "model": "", "decision": ""},
        [[gate[key] for key in ("relevance", "candidates", "model", "decision")] for gate in gates],
    )


def add_evaluation(
    report: Report, facts: Mapping[str, Any], found: Mapping[str, list[Any]]
) -> None:
    """Add `findings` on a log with some `log_facts` to a report."""
    simulated = facts["simulated"]
    report.text(
        f"{facts['compositions']:,} query compositions of {facts['users']:,} users. Each model "
        "re-ranks the same candidates; counts come from before each composition; the last quarter "
        "of each user's compositions is tested."
    )
    report.text(WHAT_IS_RANKED)
    if found["shown"] and np.isfinite(found["shown"]).all():
        low, high = (f"{value:.0%}" for value in (min(found["shown"]), max(found["shown"])))
        report.text(
            f"Feedback is on the lists that were shown. Of their suggestions "
            f"{low if low == high else f'{low} to {high}'} are among a completer's own candidates. "
            "Where this share is low, feedback also tells what the system that made the lists "
            "knew. The gain that comes from this knowledge ends once the completer shows lists of "
            "its own."
        )
    if simulated:
        report.note(SIMULATED)
    for reason, count in facts["skipped"].items():
        report.note(f"{count:,} rows were skipped: {reason}.")
    if facts["dropped_users"]:
        report.text(f"{facts['dropped_users']:,} users with too few compositions were left out.")
    if facts["off_prefix"]:
        report.text(
            f"{facts['off_prefix']:,} suggestions shown do not begin with the prefix (spelling "
            "corrected, say); they are candidates only where the shown list is re-ranked."
        )
    report.section("At the last keystroke")
    report.text(IN_USERS)
    report.table(overview_table(found["rows"], "last", simulated=simulated))
    report.table(accuracy_table(found["rows"], "last", simulated=simulated), folded=True)
    report.section("At every keystroke")
    report.table(overview_table(found["rows"], "all", simulated=simulated))
    report.table(lengths_table(found["rows"]), folded=True)
    if found["gates"]:
        report.section("Where the static order is kept")
        report.text(
            "Feedback re-ranks only where validation shows a gain: by range of prefix length and "
            "by user."
        )
        report.table(gates_table(found["gates"]))
    report.section("Users")
    first = found["users"][0]
    alike = [
        one
        for one in found["users"]
        if all(one[key] == first[key] for key in ("protocol", "lists"))
    ]
    report.figure(
        users_figure(alike), "MRR of individual users at the last keystroke (as Figure 2.5)."
    )
    report.section("Dwell time and position")
    report.figure(
        dwell_figure(facts["dwell"]),
        "Left: dwell times of ten users in bins of 0.1 s; right: each user's most frequent bin "
        "(as Figures 2.2a and 2.2b).",
    )
    report.figure(
        threshold_figure(facts["not_submitted"]),
        "How often a suggestion that was shown for at least T_DT at a position of at most T_P is "
        "not the query submitted in the end (as Figure 2.2c).",
    )


def apps_report(rows: Rows, *, simulated: bool) -> Report:
    """Return the report of `telic completion evaluate --model appaware`."""
    report = Report("What a phone's apps are worth")
    add_apps(report, rows, simulated=simulated)
    return report


def add_apps(report: Report, rows: Rows, *, simulated: bool) -> None:
    """Add what apps are worth to a report."""
    if simulated:
        report.note("SIMULATED people and phones: a data card in the documentation describes them.")
    report.section("Variants against Standard")
    report.text(WHAT_IS_RANKED)
    if any(row["protocol"] == CAREFUL.name for row in rows):
        report.text(
            "In the careful protocol Standard ranks by the relevance score and, where validation "
            "shows that this helps, by a weight for each query that is learned on the training "
            "part. The variants add apps to this ranking: appaware-i the installed apps, "
            "appaware-o the opened ones, appaware-c the opened ones or, where none was opened, the "
            "installed ones, and appaware both. The weights of the -S scores are tuned at last "
            "keystrokes, so these scores may be worse at every keystroke."
        )
    for prefixes in ("all", "last"):
        report.table(accuracy_table(rows, prefixes, simulated=simulated))
    report.figure(
        lengths_figure(rows), "MRR by prefix length (as Figure 3.4), the first relevance score."
    )


def _people(simulated: bool) -> str:
    return "SIMULATED people. " if simulated else ""
