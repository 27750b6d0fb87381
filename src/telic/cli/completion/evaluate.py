"""`telic completion simulate | evaluate`: made-up typists, and every model on a log."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from telic.cli.completion.options import (
    CatalogueFile,
    Json,
    Log,
    MinCompositions,
    MinUsers,
    Queries,
    Seed,
    SkipBadRows,
    Window,
    app,
    protocols_of,
    relevances_of,
    replay_of,
)
from telic.cli.console import Overwrite, print_json, show
from telic.cli.progress import console, steps
from telic.errors import InputError

if TYPE_CHECKING:
    from telic.completion.evaluation.report import Summary


@app.command()
def simulate(
    out: Annotated[Path, typer.Argument(help="Parquet file to write.")],
    setting: Annotated[
        str, typer.Option(help="calibrated, inattentive or readers (docs/data-card-typists.md).")
    ] = "calibrated",
    attention: Annotated[
        float | None,
        typer.Option(
            help="Probability that a typical user looks at a list in mid-word; "
            "default: the setting's own."
        ),
    ] = None,
    users: Annotated[int, typer.Option(min=1)] = 200,
    compositions: Annotated[int, typer.Option(help="Compositions of each user.", min=1)] = 150,
    catalogue: CatalogueFile = None,
    min_users: MinUsers = 3,
    queries: Annotated[
        Path | None,
        typer.Option(help="Also write the catalogue as a query log, for fit and evaluate."),
    ] = None,
    outdated: Annotated[
        bool,
        typer.Option(
            help="With --queries: write an older catalogue, which knows less than the log's lists."
        ),
    ] = False,
    phones: Annotated[bool, typer.Option(help="Give the typists phones with apps.")] = False,
    strength: Annotated[
        float, typer.Option(help="With --phones: share of queries caused by an app.", min=0, max=1)
    ] = 0.5,
    independent: Annotated[
        bool, typer.Option(help="With --phones, a control: apps of another composition.")
    ] = False,
    pairs: Annotated[
        Path | None,
        typer.Option(help="With --phones: file of real query-app pairs (UniMobile, ISTAS)."),
    ] = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Write a composition log of simulated typists. It is marked as simulated."""
    import pyarrow.parquet as pq

    from telic.data import atomic_path, check_output
    from telic.simulate import (
        affinity_of_pairs,
        read_catalogue,
        simulate_phones,
        simulate_typists,
    )

    if not phones and (pairs or independent or strength != 0.5):
        raise InputError("--pairs, --independent and --strength need --phones.")
    if outdated and not queries:
        raise InputError("--outdated needs --queries: it is the catalogue that is older.")
    if queries and queries.resolve() == out.resolve():
        raise InputError(f"--queries names {out}, where the log goes. Choose another name.")
    for path in filter(None, (out, queries)):
        check_output(path, reads=[catalogue, pairs], overwrite=overwrite)
    phrases, affinity = (
        affinity_of_pairs(pairs)
        if pairs
        else (read_catalogue(catalogue, min_users=min_users), None)
    )
    common: dict[str, Any] = {
        "users": users,
        "compositions": compositions,
        "seed": seed,
        "setting": setting,
        "attention": attention,
    }
    with console.status("simulating typists"):
        if phones:
            log = simulate_phones(
                phrases, affinity=affinity, strength=strength, independent=independent, **common
            )
        else:
            log = simulate_typists(phrases, **common)
    with atomic_path(out) as temporary:
        pq.write_table(log, temporary)
    if queries:
        with atomic_path(queries) as temporary:
            known = phrases.outdated(seed=seed) if outdated else phrases
            pq.write_table(known.as_queries(log), temporary)
    console.print(f"{out}: {len(log)} simulated compositions of {users} users")


@app.command()
def evaluate(
    log: Log,
    queries: Queries = None,
    relevance: Annotated[
        list[str] | None, typer.Option(help="Relevance score; may be repeated. Default: all five.")
    ] = None,
    protocol: Annotated[
        str, typer.Option(help="careful, bounded or paper; both: careful and paper.")
    ] = "careful",
    candidates: Annotated[
        list[int] | None, typer.Option(help="Candidates to re-rank; may be repeated.")
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

    if model not in ("adaqac", "appaware"):
        raise InputError(f"--model is {model!r}, expected adaqac or appaware.")
    names, chosen, sizes = relevances_of(relevance), protocols_of(protocol), candidates or [10]
    for n in sizes:
        if not 1 <= n <= 200:
            raise InputError(f"--candidates is {n}, expected 1 to 200.")
    if report:
        check_output(report, reads=[log, queries], overwrite=overwrite)
    replay = replay_of(
        log, queries, skip=skip_bad_rows, min_compositions=min_compositions, min_users=min_users
    )
    if model == "appaware" and not len(replay.log.apps):
        console.print("The log names no apps: every variant will equal Standard.")
    pieces = 2 * len(names) * len(chosen) * len(sizes)  # own lists, and those shown
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
