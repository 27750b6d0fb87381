"""`telic completion evaluate`: every model on a log."""

from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from telic.cli.completion.options import (
    Json,
    Log,
    MinCompositions,
    MinUsers,
    Queries,
    SkipBadRows,
    Window,
    app,
    protocols_of,
    relevances_of,
    replay_of,
)
from telic.cli.console import Overwrite, print_json, show
from telic.cli.options import refuse_given
from telic.cli.progress import console, steps
from telic.errors import InputError

if TYPE_CHECKING:
    from telic.completion.evaluation.report import Summary


@app.command()
def evaluate(
    context: typer.Context,
    log: Log,
    queries: Queries = None,
    relevance: Annotated[
        list[str] | None,
        typer.Option(
            help="Static relevance score, such as mpc or personal-s; "
            "may be repeated. Default: all five."
        ),
    ] = None,
    protocol: Annotated[
        str, typer.Option(help="careful, bounded or paper; both: careful and paper.")
    ] = "careful",
    candidates: Annotated[
        list[int] | None, typer.Option(help="How many candidates are re-ranked; may be repeated.")
    ] = None,
    min_compositions: MinCompositions = 8,
    min_users: MinUsers = 3,
    report: Annotated[Path | None, typer.Option(help="Also write an HTML report.")] = None,
    model: Annotated[
        str, typer.Option(help="adaqac: implicit feedback; appaware: the phone's apps.")
    ] = "adaqac",
    window: Window = 30.0,
    skip_bad_rows: SkipBadRows = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Measure on a log what feedback, or the phone's apps, add to the static order."""
    from telic.completion import evaluate as run
    from telic.completion.evaluation.appaware_evaluation import evaluate_phones
    from telic.completion.evaluation.report import apps_summary, feedback_summary
    from telic.data import check_output

    if model == "adaqac":
        refuse_given(context, ["window"], "without --model appaware")
    if model not in ("adaqac", "appaware"):
        raise InputError(f"--model is {model!r}, expected adaqac or appaware.")
    names, chosen = relevances_of(relevance), protocols_of(protocol)
    sizes = list(dict.fromkeys(candidates or [10]))
    for n in sizes:
        if not 1 <= n <= 200:
            raise InputError(f"--candidates is {n}, expected 1 to 200.")
    if report:
        check_output(report, kind="page", reads=[log, queries], overwrite=overwrite)
    replay = replay_of(
        log, queries, skip=skip_bad_rows, min_compositions=min_compositions, min_users=min_users
    )
    if model == "appaware" and not len(replay.log.apps):
        console.print("The log names no apps: every variant will equal Standard.")
    pieces = 2 * len([*product(names, chosen, sizes)])  # own lists, and those shown
    asked: dict[str, Any] = {"relevances": names, "protocols": chosen, "candidates": sizes}
    with ThreadPoolExecutor(2) as two, steps("evaluating", pieces) as progress:
        if model == "appaware":
            summary = apps_summary(
                replay, evaluate_phones(replay, minutes=window, progress=progress, **asked)
            )
        else:
            summary = feedback_summary(
                replay, run(replay, progress=progress, executor=two, **asked)
            )
    if report:
        summary.page().write(report)
        console.print(f"report: {report}")
    tell(summary, as_json=as_json)


def tell(summary: "Summary", *, as_json: bool) -> None:
    """Print an evaluation's tables, or its JSON."""
    if as_json:
        print_json(summary.facts)
        return
    for table in summary.tables:
        show(table)
