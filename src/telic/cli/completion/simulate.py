"""`telic completion simulate`: a log of made-up typists."""

from pathlib import Path
from typing import Annotated, Any

import typer

from telic.cli.completion.options import (
    CatalogueFile,
    MinUsers,
    Seed,
    app,
    check_log,
)
from telic.cli.console import Overwrite
from telic.cli.options import finite
from telic.cli.progress import console
from telic.errors import InputError


@app.command()
def simulate(
    out: Annotated[Path, typer.Argument(help="Parquet file to write.")],
    setting: Annotated[
        str,
        typer.Option(help="calibrated, inattentive or readers, as the data card of typists says."),
    ] = "calibrated",
    attention: Annotated[
        float | None,
        typer.Option(
            help="Probability that a typical user looks at a list in mid-word; "
            "default: the setting's own.",
            callback=finite,
        ),
    ] = None,
    users: Annotated[int, typer.Option(help="People who type.", min=1)] = 200,
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
            "--outdated",
            help="With --queries: write an older catalogue, without some of the phrases in the "
            "log's lists.",
        ),
    ] = False,
    phones: Annotated[
        bool, typer.Option("--phones", help="Give the typists phones with apps.")
    ] = False,
    strength: Annotated[
        float,
        typer.Option(
            help="With --phones: share of queries caused by an app.", min=0, max=1, callback=finite
        ),
    ] = 0.5,
    independent: Annotated[
        bool,
        typer.Option(
            "--independent",
            help="With --phones, a control: give each composition the apps of another.",
        ),
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
    for path, kind in ((out, "composition log"), (queries, "query log")):
        if path is not None:
            check_output(path, kind=kind, reads=[catalogue, pairs], overwrite=overwrite)
            check_log(path)
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
