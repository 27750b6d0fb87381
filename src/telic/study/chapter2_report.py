"""Chapter 2 as a report: tables 2.3 to 2.5 and figures 2.2, 2.4, 2.5 of any composition log."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import pyplot

from telic.completion.evaluation import PREFIXES, Result, row_name
from telic.completion.filtering import DWELL_THRESHOLDS, POSITION_THRESHOLDS
from telic.completion.models import MODELS
from telic.completion.replay import Replay
from telic.report import Report
from telic.study import chapter2

PUBLISHED = {
    "mpc": (50.62, 51.83, 61.33, 60.60, 60.92),
    "personal": (61.85, 62.68, 70.97, 69.80, 70.22),
    "personal-s": (66.02, 66.52, 74.43, 73.16, 73.59),
    "timesense": (64.32, 65.14, 73.70, 72.69, 73.05),
    "timesense-s": (65.56, 66.19, 74.69, 73.57, 73.96),
}
"""MRR of Tables 2.3 and 2.4 in percent, in the order of `MODELS`: other people, another log."""

SIMULATED = (
    "The people behind these numbers are simulated. They show what the method does when people "
    "behave as the data card says, not what it does for yours: bring your own log."
)


def percent(value: float | None, digits: int = 2) -> str:
    """Show a share in percent; nothing for None."""
    return "" if value is None else f"{100 * value:.{digits}f}"


def change(value: float | None, p_value: float | None) -> str:
    """Show a difference in points, with a star where p < 0.05."""
    if value is None:
        return ""
    star = "*" if p_value is not None and p_value < 0.05 else ""
    return f"{100 * value:+.2f}{star}".replace("-", "−")


def accuracy_table(results: Sequence[Result], prefixes: str = "last") -> tuple[list, list]:
    """Return (columns, rows): one row per relevance and model, as in Tables 2.3 and 2.4."""
    columns = ["Relevance", "Protocol", "N", "Model", "MRR", "Δ MRR", "95 % interval", "p"]
    columns += ["SR@1", "SR@2", "SR@3"]
    rows = []
    for result in results:
        for row in result.rows():
            if row["prefixes"] != prefixes:
                continue
            interval = (
                f"{100 * row['low']:+.2f} … {100 * row['high']:+.2f}".replace("-", "−")
                if row["low"] is not None
                else ""
            )
            rows.append(
                [
                    row["relevance"], row["protocol"], row["candidates"], row["model"],
                    percent(row["mrr"]), change(row["difference"], row["p_value"]), interval,
                    "" if row["p_value"] is None else f"{row['p_value']:.3g}",
                    *(percent(row[f"sr@{k}"], 1) for k in (1, 2, 3)),
                ]
            )  # fmt: skip
    return columns, rows


LISTS = {"own": "own", "shown": "the shown list, re-ranked"}
"""What a row ranks, in words."""
WHAT_IS_RANKED = (
    "A completer's own list is what `fit` would serve at that moment: its own candidates, ties in "
    "its own order. Where the shown list is re-ranked, the suggestions that were shown join the "
    "candidates and ties go to their order, so that the row holds what the logged system knew. "
    "Either has its own static order, to which its changes are."
)


def overview_table(results: Sequence[Result], prefixes: str) -> tuple[list, list]:
    """Return (columns, rows): one row per relevance, what each model adds to the static order."""
    columns = ["Relevance", "Protocol", "N", "List", "static", *MODELS[1:]]
    rows = []
    for result in results:
        found = {row["model"]: row for row in result.rows() if row["prefixes"] == prefixes}
        cells = [percent(found[row_name("static", result.lists)]["mrr"])]
        for model in MODELS[1:]:
            row = found[row_name(model, result.lists)]
            shown = change(row["difference"], row["p_value"])
            cells.append(shown if row["p_value"] is None else f"{shown} (p {_p(row['p_value'])})")
        models = result.models
        rows.append(
            [models.relevance.name, models.protocol.name, models.n, LISTS[result.lists], *cells]
        )
    return columns, rows


def _p(value: float) -> str:
    return "< .001" if value < 0.001 else f"{value:.3f}".lstrip("0")


def prefix_table(results: Sequence[Result]) -> tuple[list, list]:
    """Return (columns, rows): MRR by prefix length, as in Table 2.5."""
    columns = ["Relevance", "Protocol", "Model", *PREFIXES[1:]]
    rows = []
    for result in results:
        found = {(row["model"], row["prefixes"]): row for row in result.rows()}
        for model in (row_name(model, result.lists) for model in MODELS):
            cells = []
            for prefixes in PREFIXES[1:]:
                row = found[model, prefixes]
                shift = change(row["difference"], row["p_value"])
                cells.append(percent(row["mrr"]) + (f" ({shift})" if shift else ""))
            models = result.models
            rows.append([models.relevance.name, models.protocol.name, model, *cells])
    return columns, rows


def evaluation_report(
    replay: Replay, results: Sequence[Result], *, title: str = "Does implicit feedback help?"
) -> Report:
    """Return the report of `telic completion evaluate`: accuracy, the gate, who gains."""
    log = replay.log
    report = Report(
        title,
        lead=f"{len(log):,} query compositions of {len(log.users):,} users. Each model re-ranks "
        "the same candidates; counts come from before each composition; the last quarter of each "
        "user's compositions is tested.",
    )
    report.text(WHAT_IS_RANKED)
    own = [result.shown_share for result in results if result.lists == "own"]
    if own and np.isfinite(own).all():
        low, high = (f"{100 * value:.0f} %" for value in (min(own), max(own)))
        report.text(
            f"Feedback is on the lists that were shown. Of their suggestions "
            f"{low if low == high else f'{low} to {high}'} are among a completer's own candidates; "
            "where this is low, feedback also tells what the system that made the lists knew, and "
            "a gain by that will not come again once the completer shows lists of its own."
        )
    if log.simulated:
        report.note(SIMULATED)
    for reason, count in log.skipped.items():
        report.note(f"{count:,} rows were skipped: {reason}.")
    if replay.dropped_users:
        report.text(f"{replay.dropped_users:,} users with too few compositions were left out.")
    if replay.off_prefix:
        report.text(
            f"{replay.off_prefix:,} suggestions shown do not begin with the prefix (spelling "
            "corrected, say); they are candidates only where the shown list is re-ranked."
        )
    report.section("Accuracy at the last keystroke")
    report.text(
        "In percent, over all keystrokes. Changes against the static order of the same relevance "
        "are in points and take users as the unit, each counting once whatever the number of "
        "keystrokes: the mean of the users' mean differences, with the interval and p-value of a "
        "paired t-test over users; a star marks p < 0.05."
    )
    report.table(*overview_table(results, "last"))
    report.table(*accuracy_table(results), caption="Every measure and interval", folded=True)
    if log.simulated:
        report.table(
            ["Relevance", *MODELS],
            [[name, *(f"{value:.2f}" for value in values)] for name, values in PUBLISHED.items()],
            caption="Published MRR in percent, on a search engine's private log: not this data",
        )
    report.section("Accuracy by prefix length, at every keystroke")
    report.table(*overview_table(results, "all"))
    report.table(*prefix_table(results), caption="By prefix length, in characters", folded=True)
    gated = [result for result in results if result.models.gates]
    if gated:
        report.section("Where the static order is kept")
        report.text(
            "Feedback re-ranks only where validation shows a gain: by range of prefix length and "
            "by user."
        )
        report.table(
            ["Relevance", "N", "List", "Model", "Decision"],
            [
                [
                    result.models.relevance.name,
                    result.models.n,
                    LISTS[result.lists],
                    model,
                    gate.summary(),
                ]
                for result in gated
                for model, gate in result.models.gates.items()
            ],
        )
    report.section("Users")
    report.figure(
        user_boxes(results), "MRR of individual users at the last keystroke (as Figure 2.5)."
    )
    report.section("Dwell time and position")
    report.figure(
        dwell_figure(chapter2.dwell_histograms(log)),
        "Left: dwell times of ten users in bins of 0.1 s; right: each user's most frequent bin "
        "(as Figures 2.2a and 2.2b).",
    )
    report.figure(
        threshold_figure(chapter2.threshold_study(replay)),
        "How often a suggestion that was shown for at least T_DT at a position of at most T_P is "
        "not the query submitted in the end (as Figure 2.2c).",
    )
    return report


def user_boxes(results: Sequence[Result]) -> Any:
    """Draw box plots of the users' MRR, one group per relevance."""
    first = results[0]
    chosen = [
        r for r in results if r.models.protocol is first.models.protocol and r.lists == first.lists
    ]
    shown = ("static", "adaqac-batch", "adaqac-online")
    figure, axes = pyplot.subplots(figsize=(9, 3.6))
    for place, result in enumerate(chosen):
        last = result.slices["last"]
        user = np.unique(result.user[last], return_inverse=True)[1]
        for i, model in enumerate(shown):
            mean = np.bincount(user, result.ranks[model][last]) / np.bincount(user)
            box = axes.boxplot(
                mean, positions=[place + (i - 1) * 0.25], widths=0.2, patch_artist=True,
                flierprops={"markersize": 2}, medianprops={"color": "black"},
            )  # fmt: skip
            box["boxes"][0].set_facecolor(f"C{i}")
    axes.set_xticks(range(len(chosen)), [_label(result) for result in chosen])
    axes.set_ylabel("MRR of a user")
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=f"C{i}") for i in range(len(shown))]
    axes.legend(handles, shown, loc="lower right", fontsize=8)
    return figure


def _label(result: Result) -> str:
    models = result.models
    return models.relevance.name + (f"\nN = {models.n}" if models.n != 10 else "")


def dwell_figure(histograms: dict) -> Any:
    """Draw Figures 2.2(a) and 2.2(b)."""
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.2))
    edges = histograms["edges"][:-1]
    for line in histograms["sample"]:
        left.plot(edges, 100 * line, lw=1)
    left.set(xlabel="dwell time, s", ylabel="% of a user's lists", xlim=(0, 3))
    right.bar(edges + 0.05, histograms["peaks"], width=0.09)
    right.set(xlabel="most frequent dwell time, s", ylabel="users", xlim=(0, 1.5))
    figure.tight_layout()
    return figure


def threshold_figure(shares: np.ndarray) -> Any:
    """Draw Figure 2.2(c)."""
    figure, axes = pyplot.subplots(figsize=(7, 3.4))
    image = axes.pcolormesh(DWELL_THRESHOLDS, POSITION_THRESHOLDS, 100 * shares.T, cmap="coolwarm")
    axes.set(xlabel="T_DT, s", ylabel="T_P", yticks=POSITION_THRESHOLDS)
    axes.invert_yaxis()
    figure.colorbar(image, label="% not submitted")
    return figure


def line_figure(
    rows: Sequence[dict[str, float]], x: str, *, log: bool, label: str, ys: Sequence[str]
) -> Any:
    """Draw measures against a parameter (Figure 2.4)."""
    figure, axes = pyplot.subplots(figsize=(6, 3.2))
    for y in ys:
        axes.plot([r[x] for r in rows], [100 * r[y] for r in rows], "o-", ms=3, label=y.upper())
    axes.set(xlabel=label, ylabel="% on validation")
    if log:
        axes.set_xscale("log")
    axes.legend(fontsize=8)
    return figure


def attention_figure(rows: Sequence[dict[str, float]]) -> Any:
    """Draw the gain of feedback against attention, with the part that dwell times explain."""
    figure, axes = pyplot.subplots(figsize=(6, 3.4))
    for key, label in (("gain", "feedback against static"), ("dwell", "log against dwell twin")):
        axes.errorbar(
            [row["attention"] for row in rows], [100 * row[key] for row in rows],
            yerr=[196 * row[f"{key}_se"] for row in rows], marker="o", capsize=3, label=label,
        )  # fmt: skip
    axes.axhline(0, color="black", lw=0.8)
    axes.set(xlabel="share of lists looked at (calibrated typists)", ylabel="points of MRR")
    axes.legend(fontsize=8)
    return figure


def controls_table(rows: Sequence[dict]) -> tuple[list, list]:
    """Return (columns, rows) of the controls: does dwell help beyond chance?"""
    columns = ["Typists", "Seeds", "MRR static", "Feedback − static", "Log − dwell twin"]
    columns += ["95 % interval", "Dwell helps"]
    return columns, [
        [
            row["setting"], row["seeds"], percent(row["static"]), change(row["gain"], None),
            change(row["dwell"], None),
            f"{100 * row['low']:+.2f} … {100 * row['high']:+.2f}".replace("-", "−"),
            "yes" if row["low"] > 0 else "no",
        ]
        for row in rows
    ]  # fmt: skip


def knowledge_table(rows: Sequence[dict]) -> tuple[list, list]:
    """Return (columns, rows): what reaches a completer of what the lists know."""
    columns = ["Typists", "Completer is told", "Shown, own %", "Static", "Feedback − static"]
    columns += ["Log − dwell twin", "Re-ranked static", "Re-ranked feedback − static"]
    return columns, [
        [
            row["setting"], row["told"], percent(row["shown"], 1), percent(row["static"]),
            change(row["gain"], None),
            f"{change(row['dwell'], None)} ({100 * row['low']:+.2f} … {100 * row['high']:+.2f})"
            .replace("-", "−"),
            percent(row["reranked"]), change(row["reranked gain"], None),
        ]
        for row in rows
    ]  # fmt: skip


KNOWLEDGE = (
    "The lists are those of a box that ranks by what people really want. A completer is told the "
    "same catalogue (all), an older one, with other popularity and three tenths of the phrases "
    "missing (older), or nothing but the log. MPC, last keystroke, %, adaQAC-UnP without the gate. "
    "“Shown, own”: the share of the suggestions shown that the completer would have suggested "
    "itself. Where it knows less, what people chose from the lists is often no candidate of its "
    "own; re-ranking the shown list borrows the box's knowledge. Feedback borrows some too: the "
    "positions of a list tell what the box knew, so that it gains even with inattentive typists, "
    "who look at no list. Dwell times add nothing there, and no gain of this kind comes again once "
    "the completer shows its own lists."
)


def attention_table(rows: Sequence[dict[str, float]]) -> tuple[list, list]:
    """Return (columns, rows) of the attention curve."""
    columns = ["Share of lists looked at", "Feedback − static", "Log − dwell twin"]
    return columns, [
        [
            f"{row['attention']:g}",
            *(f"{change(row[k], None)} ± {100 * row[f'{k}_se']:.2f}" for k in ("gain", "dwell")),
        ]
        for row in rows
    ]
