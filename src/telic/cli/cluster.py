"""`telic cluster check`: whether a cluster can do telic's jobs."""

from pathlib import Path
from typing import Annotated

import typer

from telic.cli.completion.options import Json
from telic.cli.console import print_json, show
from telic.errors import JobError

app = typer.Typer(help="Dask clusters that jobs run on.", no_args_is_help=True)


@app.callback()
def cluster() -> None:
    """Keep `check` a command of its own."""


@app.command()
def check(
    address: Annotated[str, typer.Argument(help="The scheduler, such as tcp://10.0.0.1:8786.")],
    folder: Annotated[
        Path | None,
        typer.Option(help="Also check that every worker reads and writes this folder."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a cluster's versions, memory, clocks and shared storage; exit code 2 if unusable."""
    from telic.report.table import Table
    from telic.scale.cluster_check import check_cluster
    from telic.scale.memory import said

    found = check_cluster(address, folder)
    if as_json:
        print_json({"workers": [worker._asdict() for worker in found]})
    else:
        rows = [
            [
                worker.address,
                worker.host,
                str(worker.threads),
                said(worker.memory),
                f"{worker.clock:+.2f} s",
                "; ".join(worker.wrong) or "good",
            ]
            for worker in found
        ]
        names = ("worker", "host", "threads", "memory", "clock", "finding")
        columns = dict.fromkeys(names, "")
        show(Table(f"{len(found)} workers of {address}", columns, rows))
    wrong = [f"{worker.address}: {'; '.join(worker.wrong)}" for worker in found if worker.wrong]
    if wrong:
        raise JobError(f"{len(wrong)} of {len(found)} workers will not do. {wrong[0]}.")
