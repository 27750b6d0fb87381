"""What commands share that run over partitions: `--memory`, `--cluster`, and the job's report."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from telic.cli.progress import console, steps
from telic.errors import InputError

if TYPE_CHECKING:
    from telic.data.object_storage import Place
    from telic.scale import Executor, JobReport

Memory = Annotated[
    str | None,
    typer.Option(
        help="Read the data in pieces that fit into this much memory, such as 2GiB; on a "
        "cluster, the memory of one task."
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(help="Dask scheduler to work on, such as tcp://10.0.0.1:8786."),
]
Work = Annotated[
    Path | None,
    typer.Option(
        help="Folder for the pieces, which every worker must reach. An interrupted job goes on "
        "from it. It must be new, empty, or an earlier command's. Default: OUT.job, or "
        "telic-COMMAND.job without an OUT, which is removed at the end."
    ),
]
Piece = Annotated[
    str | None,
    typer.Option(
        help="Cut the data into pieces that take about this much memory each, where a piece of "
        "--memory's size is too much, such as 50MiB."
    ),
]
SkipBadPartitions = Annotated[
    bool,
    typer.Option(
        "--skip-bad-partitions", help="Finish without the partitions that fail, and name them."
    ),
]


FOR_DATA = 100 * 2**20
"""Bytes of a machine's memory that data have at least: less would bound nothing."""


class Job(NamedTuple):
    """Where a command's work is done, unless in the command itself."""

    executor: "Executor | None" = None
    work: "Place | None" = None

    @property
    def _reports(self) -> "list[JobReport]":
        return [] if self.executor is None else self.executor.reports

    def said(self) -> list[dict[str, Any]]:
        """Say what ran where, bytes and attempts; all runs of one function together."""
        from telic.scale import JobReport

        tasks: dict[str, list[Any]] = {}
        for report in self._reports:
            tasks.setdefault(report.job, []).extend(report.tasks)
        return [JobReport(name, each).facts() for name, each in tasks.items()]

    def left_out(self) -> list[str]:
        """Name the partitions that are missing from the result, and why."""
        skipped = [each for report in self._reports for each in report.skipped.items()]
        return sorted({f"{name}: {why}" for name, why in skipped})


@contextmanager
def job_of(
    memory: str | None,
    cluster: str | None,
    work: Path | None,
    out: Path,
    *,
    reads: Iterable[str | Path | None],
    piece: str | None = None,
    skip_bad: bool = False,
) -> Iterator[Job]:
    """Open the engine that was asked for, with a bar for each job, and tell what was done.

    Raises
    ------
    InputError
        If an option needs another, or the folder for the pieces holds what no such command wrote.
    """
    if memory is None and cluster is None:
        given = {"--work": work, "--piece": piece, "--skip-bad-partitions": skip_bad or None}
        for option, value in given.items():
            if value is not None:
                raise InputError(f"{option} needs --memory or --cluster.")
        yield Job()
        return
    from telic.data.object_storage import is_remote
    from telic.data.own_outputs import refuse_read
    from telic.scale import Dask, Local
    from telic.scale.job_folder import lies_at, working_folder
    from telic.scale.local import OWN
    from telic.scale.memory import parse_memory

    if memory is not None and cluster is None:
        parse_memory(memory, OWN + FOR_DATA, "--memory (Python alone takes 300MiB)")

    columns = (TextColumn("{task.description}", markup=False), BarColumn(20), MofNCompleteColumn())
    bars: dict[str, Any] = {}
    # What one machine works with lies best on its own disk.
    work_beside = Path(out.name) if cluster is None and is_remote(out) else out
    refuse_read(lies_at(work_beside, work), reads)
    if work is not None and f"{_true(work)}/".startswith(f"{_true(out)}/"):
        raise InputError(
            f"{work}: is the output, too, or lies in it. Choose another folder for --work."
        )
    with (
        working_folder(work_beside, work) as folder,
        (
            Dask(cluster, memory=memory, piece=piece)
            if cluster is not None
            else Local(memory=memory, piece=piece)
        ) as executor,
        Progress(
            *columns,
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_interactive,  # off a terminal rich would write an empty line
        ) as progress,
    ):

        def watch(name: str, finished: int, total: int) -> None:
            if name not in bars:
                short = name.rpartition(".")[2].replace("_", " ").strip()
                bars[name] = progress.add_task(short, total=total)
            progress.update(bars[name], completed=finished)

        executor.watch = watch
        job = Job(executor, folder)
        yield job
    tell_job(job)


def _true(path: Path) -> "Place":
    """Return where a path leads, however it is spelled or linked."""
    from telic.data.object_storage import place

    found = place(path)
    return found.resolve() if isinstance(found, Path) else found


def steps_or_job(
    job: Job, title: str, total: int | None = None
) -> AbstractContextManager[Callable[[str], None]]:
    """Show a bar of a command's steps, unless a job shows its own."""
    return nullcontext(lambda _: None) if job.executor else steps(title, total)


def tell_job(job: Job) -> None:
    """Print a job's report on the terminal's error stream."""
    from telic.scale.memory import said

    for facts in job.said():
        places = ", ".join(f"{count} on {where}" for where, count in facts["done where"].items())
        kept = facts["kept from an earlier run"]
        parts = [
            f"{facts['partitions']} partitions",
            f"{facts['attempts']} attempts",
            f"{said(facts['bytes of results'])} of results",
            f"{facts['seconds of work']:.1f} s of work",
            *([f"{kept} kept from an earlier run"] if kept else []),
            places,
        ]
        console.print(f"{facts['job']}: {'; '.join(filter(None, parts))}", soft_wrap=True)
        for name, where in facts["begun again"].items():
            console.print(f"  begun again: {name}, on {', then '.join(where)}", soft_wrap=True)
        for name, why in facts["skipped"].items():
            console.print(f"  left out: {name}: {why}", soft_wrap=True)
