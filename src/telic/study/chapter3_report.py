"""Tables and figures of chapter 3, and the report that holds them all."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from telic.completion.adaqac import CAREFUL
from telic.completion.evaluation import PREFIXES, row_name
from telic.completion.relevance import NAMES
from telic.data.pairs import QueryAppPairs
from telic.report import Report
from telic.simulate import Catalogue
from telic.study import chapter3
from telic.study.chapter2_report import WHAT_IS_RANKED, percent
from telic.study.chapter3 import Progress
from telic.study.chapter3_unimobile import Group, Unit, pairs_study

MEASURES = ("mrr", "sr@1", "sr@2", "sr@3")
PUBLISHED = {
    "mpc": (35.13, 41.55), "personal": (39.06, 43.57), "personal-s": (40.48, 44.62),
    "timesense": (39.91, 43.94), "timesense-s": (40.88, 44.93),
}  # fmt: skip
"""MRR of Standard and AppAware in Table 3.5, on data that are not public."""


def variants_table(rows: list[dict], prefixes: str = "all") -> tuple[list[str], list[list]]:
    """Table 3.5 with Figure 3.5: relevance scores × variants, MRR and SR@1…3."""
    columns = ["Relevance", "Protocol", "N", "Model", "MRR", "Change", "p", "SR@1", "SR@2", "SR@3"]
    table = []
    for row in rows:
        if row["prefixes"] != prefixes or not row["n"]:
            continue
        change = p = ""
        if row["p_value"] is not None:
            star = "*" if row["p_value"] < 0.05 else ""
            base = next(
                r
                for r in rows
                if r["model"] == row_name("standard", row["lists"])
                and all(
                    r[key] == row[key]
                    for key in ("relevance", "protocol", "candidates", "prefixes")
                )
            )
            change = f"{100 * (row['mrr'] / base['mrr'] - 1):+.2f}{star}"
            p = f"{row['p_value']:.2g}"
        table.append([
            row["relevance"], row["protocol"], row["candidates"], row["model"],
            percent(row["mrr"]), change, p, *(percent(row[f"sr@{k}"]) for k in (1, 2, 3)),
        ])  # fmt: skip
    return columns, table


def evaluation_report(rows: list[dict], *, simulated: bool) -> Report:
    """Report of `telic completion evaluate --model appaware`."""
    report = Report("What a phone's apps are worth")
    if simulated:
        report.note("SIMULATED people and phones: see docs/data-card-phones.md.")
    _evaluation(report, rows)
    return report


def _evaluation(report: Report, rows: list[dict]) -> None:
    report.section("Variants against Standard")
    report.text(WHAT_IS_RANKED)
    if any(row["protocol"] == CAREFUL.name for row in rows):
        report.text(
            "Careful protocol: Standard ranks by the relevance score and, where validation shows "
            "that it helps, a weight for each query that is learned on the training part; so do "
            "the variants, before their apps. The weights of the -S scores are tuned at last "
            "keystrokes, so that they may be worse at every keystroke."
        )
    for prefixes, words in (("all", "every keystroke"), ("last", "the last keystroke")):
        report.table(
            *variants_table(rows, prefixes),
            caption=f"Test part, {words}, %; change in MRR against Standard in %; * p < 0.05 "
            "(paired t-test over users)",
        )
    report.figure(
        lengths_figure(rows), "MRR by prefix length (as Figure 3.4), the first relevance score."
    )


def lengths_figure(rows: list[dict]) -> Figure:
    """Figure 3.4: MRR by length of the prefix."""
    figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
    first = [all(row[key] == rows[0][key] for key in ("relevance", "lists")) for row in rows]
    chosen = [row for row, is_first in zip(rows, first, strict=True) if is_first]
    for model in dict.fromkeys(row["model"] for row in chosen):
        own = {r["prefixes"]: r["mrr"] for r in chosen if r["model"] == model and r["n"]}
        axes.plot(PREFIXES[2:], [own.get(p, np.nan) for p in PREFIXES[2:]], marker="o", label=model)
    axes.set(xlabel="characters typed", ylabel="MRR")
    figure.legend(fontsize=8, loc="outside right upper")
    return figure


def lines_figure(
    rows: list[dict], x: str, ys: Sequence[str], *, by: str | None = None, log: str = "",
    label: str | None = None,
) -> Figure:  # fmt: skip
    """Lines of some columns against another, one panel, perhaps one line for each `by`."""
    figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
    for group in dict.fromkeys(row.get(by) for row in rows):
        own = [row for row in rows if row.get(by) == group]
        for y in ys:
            name = y if group is None else group if len(ys) == 1 else f"{group}: {y}"
            axes.plot([r[x] for r in own], [r[y] for r in own], marker=".", label=name)
    if "x" in log:
        axes.set_xscale("symlog", linthresh=1e-6)
    if "y" in log:
        axes.set_yscale("log")
    axes.set(xlabel=label or x, ylabel=ys[0] if len(ys) == 1 else "")
    if len(ys) > 1 or by:
        figure.legend(fontsize=8, loc="outside right upper")
    return figure


def chapter3_study(
    catalogue: Catalogue,
    *,
    pairs: QueryAppPairs | None = None,
    users: int = 150,
    compositions: int = 120,
    seeds: int = 4,
    progress: Progress | None = None,
) -> tuple[Report, dict]:
    """Run every table and figure of chapter 3 and the controls.

    Parameters
    ----------
    catalogue : Catalogue
    pairs : QueryAppPairs, optional
        Real query–app pairs, such as UniMobile's, for the study on people held out.
    users, compositions : int
        Size of the simulated log; the sweeps run on the same one.
    seeds : int
        Simulated logs for each control.
    progress : callable, optional

    Returns
    -------
    report : Report
    numbers : dict
        Everything the report shows, as plain JSON.
    """
    from telic.completion.appaware_evaluation import evaluate_phones

    tell = progress or (lambda step: None)
    tell("simulating phones")
    replay = chapter3.phone_replay(catalogue, users=users, compositions=compositions)
    results = evaluate_phones(replay, lists=("own",), progress=progress)
    results += evaluate_phones(replay, relevances=("mpc",), lists=("shown",), progress=progress)
    rows = [row for result in results for row in result.rows()]
    report = Report("Chapter 3 on simulated phones")
    report.note("SIMULATED people and phones: see docs/data-card-phones.md.")
    report.text(f"{users} people with {compositions} compositions each.")
    _evaluation(report, rows)
    report.table(
        ["Relevance", "Standard", "AppAware", "Change, %"],
        [[name, *PUBLISHED[name], f"{100 * (PUBLISHED[name][1] / PUBLISHED[name][0] - 1):+.2f}"]
         for name in NAMES],
        caption="Table 3.5 as published, MRR in %: other people, other queries, not to be compared "
        "but in kind",
    )  # fmt: skip

    tell("controls")
    control = chapter3.controls(
        catalogue, seeds=seeds, progress=progress, users=users, compositions=compositions
    )
    report.section("Controls")
    report.text(
        "Strength is the share of queries that apps cause. At 0 devices cause nothing but still "
        "tell people apart: that gain is their owners' habits. Independent: the apps of another "
        "composition, which may gain nothing. “counts” is Standard without the weight that it "
        "learns for each query. The printed protocol compares with counts alone; there apps that "
        "cannot help gain too, since an app that most phones have counts popularity anew. Older "
        "catalogue: the lists in the log know more than the completer, which was told of other "
        "popularity and of seven tenths of the phrases; “re-ranked lists” is what a Standard gains "
        "that borrows this from the list that was shown. Apps that cannot help gain nothing of it."
    )
    report.table(
        ["Setting", "Relevance", "Model", "Gain over Standard"],
        [[r["setting"], r["relevance"], r["model"],
          f"{100 * r['gain']:+.2f} ({100 * r['low']:+.2f} … {100 * r['high']:+.2f})"]
         for r in control],
        caption=f"MRR in points with 95 % intervals over {seeds} logs; every keystroke, no gate",
    )  # fmt: skip

    tell("convergence")
    convergence = chapter3.convergence()
    report.section("Convergence")
    positive = [row for row in convergence if 0 < row["gap"] < 10]
    report.figure(
        lines_figure(positive, "pass", ["gap"], by="method", log="y", label="passes"),
        "Gap of the objective (as Figure 3.3), 500 choices and 80 weights. The printed step grows "
        "with the batch: it holds for 100 choices and one coordinate at a time, and fails for 400, "
        "or for all coordinates at once. The corrected one is safe, and slow for large batches.",
    )

    tell("abundance")
    signals = chapter3.abundance(replay)
    report.section("Signals")
    report.figure(
        lines_figure(signals, "minutes", ["share"], label="minutes before the query"),
        "Queries with an app opened before (as Figure 3.2a; published at 30 minutes: 84.9 %).",
    )
    report.figure(
        lines_figure(signals, "minutes", ["distinct"], label="minutes before the query"),
        "Distinct apps opened, where any (as Figure 3.2b; published at 30 minutes: 4.0).",
    )
    tops = [chapter3.top_queries(replay, opened=opened) for opened in (False, True)]
    for table in tops:
        if table["app"] is not None:
            word = "opened within 30 minutes" if table["opened"] else "installed"
            show = [f"{q} ({100 * s:.0f} %)" for q, s in table["with"]]
            other = [f"{q} ({100 * s:.0f} %)" for q, s in table["without"]]
            size = max(len(show), len(other))
            report.table(
                [f"{table['app']} {word}", "not"],
                [[(show + [""] * size)[i], (other + [""] * size)[i]] for i in range(size)],
                caption=f"Top queries beginning with “{table['prefix']}” (as Tables 3.1 and 3.2)",
            )
    pairs_found = chapter3.strongest_pairs(replay, results[0].models)
    report.table(
        ["Query", "App", "Weight"],
        [[r["query"], r["app"], f"{r['weight']:+.2f}"] for r in pairs_found],
        caption="The strongest query–app pairs: to be read by people",
    )

    report.section("Parameters")
    sweeps = {}
    for name, values, label, log in (
        ("l1", (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2), "λ₁", "x"),
        ("l2", (1e-6, 1e-5, 1e-4, 1e-3, 1e-2), "λ₂", "x"),
        ("n", (2, 5, 10, 15, 20), "pre-indexed queries", ""),
        ("minutes", (5, 10, 20, 30, 45, 60), "minutes", ""),
    ):
        sweeps[name] = chapter3.sweep(replay, name, values, progress=progress)
        own = [row for row in sweeps[name] if row["model"] == "appaware"]
        report.figure(
            lines_figure(own, name, MEASURES, log=log, label=label),
            f"AppAware (MPC) against {label} (as Figures 3.6 and 3.7).",
        )

    tell("together with implicit feedback")
    both = chapter3.together(replay)
    report.section("Together with implicit feedback")
    report.table(
        ["Prefixes", "Model", "MRR", "over feedback", "p", "over AppAware", "p"],
        [[r["prefixes"], r["model"], percent(r["mrr"]),
          f"{100 * r['over feedback']:+.2f}", f"{r['p over feedback']:.2g}",
          f"{100 * r['over appaware']:+.2f}", f"{r['p over appaware']:.2g}"] for r in both],
        caption="One fit with both kinds of signals, MPC, no gate",
    )  # fmt: skip
    numbers: dict = {
        "simulated": True, "rows": rows, "controls": control, "convergence": convergence,
        "abundance": signals, "top_queries": tops, "pairs": pairs_found, "sweeps": sweeps,
        "together": both,
    }  # fmt: skip
    if pairs:
        numbers["real_pairs"] = real_pairs(report, pairs, tell)
    return report, numbers


def real_pairs(report: Report, pairs: QueryAppPairs, tell: Progress) -> list[dict]:
    """Add the study on real query–app pairs to a report."""
    rows = []
    units: tuple[Unit, ...] = ("query", "word")
    groups: tuple[Group, ...] = ("worker", "task")
    for unit in units:
        for held_out in groups:
            for shuffled in (False, True):
                tell(f"real pairs: {unit}, {held_out}s held out{', shuffled' * shuffled}")
                rows += pairs_study(
                    pairs, unit=unit, held_out=held_out, shuffled=shuffled
                )  # fmt: skip
    report.section("Real query–app pairs, people held out")
    report.text(
        "Not simulated. Ranking what people of the held-out group typed, by popularity among the "
        "others and with the apps that they meant it for. Whole queries are hardly ever typed "
        "twice, so their words are ranked too. Workers of one task were told the same situation; "
        "holding out tasks removes what they share."
    )
    report.table(
        ["Ranked", "Held out", "Apps", "Characters", "Coverage", "Popularity", "AppAware",
         "Change (95 %)", "p"],
        [[r["unit"], r["held_out"], "another's" if r["shuffled"] else "own", r["prefix_length"],
          percent(r["coverage"]), percent(r["standard"]), percent(r["appaware"]),
          f"{100 * r['difference']:+.2f} ({100 * r['low']:+.2f} … {100 * r['high']:+.2f})",
          f"{r['p_value']:.2g}"] for r in rows],
        caption="MRR in %, each row of the data alike; 0 where the query is not among the ten "
        "candidates. Change: each person alike. Popularity has learned a weight for each text "
        "where a training fold shows that it helps",
    )  # fmt: skip
    return rows
