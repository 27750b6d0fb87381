"""Chapter 3 on simulated phones and real query–app pairs: what a phone's apps are worth."""

from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from telic.completion.evaluation.report import add_apps, lengths_table
from telic.completion.learning.relevance import NAMES
from telic.data.data_sets import data_folder
from telic.data.query_app_pairs import read_pairs
from telic.errors import InputError
from telic.report import Report
from telic.study.chapter3.experiments import SETTINGS, convergence, run
from telic.study.chapter3.real_pairs import held_out_study
from telic.study.chapter3.tables import (
    MEASURES,
    abundance_table,
    controls_table,
    convergence_table,
    pairs_table,
    published_table,
    real_pairs_table,
    sweep_table,
    together_table,
    top_queries_table,
)
from telic.study.line_charts import lines_figure
from telic.study.steps import Steps, each_log

SWEEPS: dict[str, tuple[tuple[float, ...], str, str]] = {
    "l1": ((0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2), "λ₁", "x"),
    "l2": ((1e-6, 1e-5, 1e-4, 1e-3, 1e-2), "λ₂", "x"),
    "n": ((2, 5, 10, 15, 20), "pre-indexed queries", ""),
    "minutes": ((5, 10, 20, 30, 45, 60), "minutes", ""),
}
"""Values, label and logarithmic axes of each parameter of Figures 3.6 and 3.7."""


def study(
    steps: Steps,
    *,
    catalogue: Path | None = None,
    pairs: Path | None = None,
    seeds: int = 4,
    users: int = 150,
    compositions: int = 120,
    real_pairs: bool = True,
) -> Report:
    """Regenerate Tables 3.1, 3.2 and 3.5 and Figures 3.2–3.7 on simulated phones, with controls.

    Parameters
    ----------
    steps : Steps
    catalogue : path, optional
        Query log to take phrases from (see `telic.simulate.read_catalogue`).
    pairs : path, optional
        Real query–app pairs (`telic.data.query_app_pairs`) for the study on people held out.
        Default: UniMobile's, in the folder that TELIC_DATA names; without the file that part is
        left out.
    seeds : int
        Simulated logs for each control, at least 2.
    users, compositions : int
        Size of each simulated log.
    real_pairs : bool
        Whether to study real pairs, which takes minutes however small the rest is.
    """
    if seeds < 2:
        raise InputError(f"seeds is {seeds}, expected at least 2: intervals are over seeds.")
    if real_pairs and pairs is not None:
        read_pairs(pairs)  # a file that cannot be read is refused before the work
    do = partial(steps, catalogue=catalogue, users=users, compositions=compositions)
    report = Report(
        "Chapter 3 on simulated phones",
        lead=f"Each simulated log has {users} people with {compositions} compositions each.",
    )
    found = [
        do(f"{name}, {lists} lists", run, experiment="accuracy", relevance=name, lists=lists)
        for lists, name in [*product(["own"], NAMES), ("shown", "mpc")]
    ]
    rows = [row for part in found for row in part["rows"]]
    add_apps(report, rows, simulated=True)
    report.table(lengths_table(rows))
    report.table(published_table(rows))
    _controls(report, do, seeds)
    _convergence(report, steps("convergence", convergence))
    _signals(report, do, found[0]["pairs"])
    report.section("Parameters")
    for parameter, (values, label, log) in SWEEPS.items():
        swept = [
            do(f"{label} {value:g}", run, experiment="sweep", parameter=parameter, value=value)
            for value in values
        ]
        report.figure(
            lines_figure(swept, parameter, MEASURES, log=log, label=label),
            f"AppAware (MPC) against {label} (as Figures 3.6 and 3.7).",
        )
        report.table(sweep_table(parameter, label, swept))
    report.section("Together with implicit feedback")
    both = do("together with implicit feedback", run, experiment="together")
    report.table(together_table(both))
    if real_pairs:
        _real_pairs(report, steps, pairs)
    return report


def _controls(report: Report, do: Callable[..., Any], seeds: int) -> None:
    found = [
        (
            setting,
            relevance,
            each_log(
                *(do, f"control: {setting}, {relevance}", run, seeds),
                experiment="control",
                relevance=relevance,
                protocol=protocol,
                **phones,
            ),
        )
        for setting, relevance, protocol, phones in SETTINGS
    ]
    report.section("Controls")
    report.text(
        "“Strength” is the share of queries that apps cause. At strength 0 apps cause no query "
        "but still tell people apart, so a gain there comes from the owners' habits. With "
        "“independent” each composition has the apps of another one, which must gain nothing. "
        "“counts” is Standard without the weight that it learns for each query. The printed "
        "protocol compares with counts alone. There even apps that cannot help gain, since an app "
        "that most phones have counts popularity a second time. With the older catalogue the lists "
        "in the log know more than the completer, which was told of other popularity and of seven "
        "tenths of the phrases. “re-ranked lists” is what Standard gains if it borrows this "
        "knowledge from the list that was shown. Apps that cannot help gain nothing from it."
    )
    report.table(controls_table(found))


def _convergence(report: Report, found: list[dict[str, Any]]) -> None:
    report.section("Convergence")
    report.figure(
        lines_figure(
            [row for row in found if 0 < row["gap"] < 10],
            "pass",
            ["gap"],
            by="method",
            log="y",
            label="passes",
            ylabel="gap",
        ),
        "Gap of the objective (as Figure 3.3), 500 choices and 80 weights. The printed step grows "
        "with the batch: it holds for 100 choices and one coordinate at a time, and fails for 400, "
        "or for all coordinates at once. The corrected one is safe, and slow for large batches.",
    )
    report.table(convergence_table(found))


def _signals(report: Report, do: Callable[..., Any], strongest: list[dict[str, Any]]) -> None:
    signals = do("apps opened before", run, experiment="abundance")
    report.section("Apps that were opened before queries")
    for column, caption in (
        ("share", "Queries with an app opened before (as Figure 3.2a)."),
        ("distinct", "Distinct apps opened, where any (as Figure 3.2b)."),
    ):
        report.figure(
            lines_figure(
                signals, "minutes", [column], label="minutes before the query", ylabel=column
            ),
            caption,
        )
    report.table(abundance_table(signals))
    for opened in (False, True):
        top = do(
            f"top queries, apps {'opened' if opened else 'installed'}",
            run,
            experiment="top queries",
            opened=opened,
        )
        if top["app"] is not None:
            report.table(top_queries_table(top))
    report.table(pairs_table(strongest))


def _real_pairs(report: Report, steps: Steps, pairs: Path | None) -> None:
    file = pairs or data_folder() / "qac" / "unimobile_query_app_pairs.parquet"
    if pairs is None and not file.is_file():
        report.note(f"Real query–app pairs are left out: {file} not found. Set TELIC_DATA.")
        return
    found = []
    for unit, held_out, shuffled in product(("query", "word"), ("worker", "task"), (False, True)):
        what = f"real pairs: {unit}, {held_out}s held out{', shuffled' * shuffled}"
        found += steps(
            what, held_out_study, file=file, unit=unit, held_out=held_out, shuffled=shuffled
        )
    report.section("Real query–app pairs, people held out")
    report.text(
        "This part is not simulated. It ranks what people of the held-out group typed, by "
        "popularity among the others and with the apps for which they meant it. Whole queries are "
        "hardly ever typed twice, so their words are ranked too. Workers of one task were told the "
        "same situation; holding out tasks removes what they share."
    )
    report.table(real_pairs_table(found))
