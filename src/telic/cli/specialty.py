"""`telic specialty`: simulate, discover, recognise, explain and report."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from telic.cli.console import Overwrite

if TYPE_CHECKING:
    from telic.specialty.access import AccessLog
    from telic.specialty.discovery import Discovery
    from telic.specialty.recognise import Recognition

app = typer.Typer(
    help="Specialties that exist in practice but have no code, and the alarms they explain.",
    no_args_is_help=True,
)

Log = Annotated[Path, typer.Argument(help="Folder of an access log (docs/data-contracts.md, 3).")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON to stdout.")]
Seed = Annotated[int, typer.Option(min=0, help="Fixes all chance.")]
Threads = Annotated[int, typer.Option(min=1, help="Does not change the result.")]
SkipBad = Annotated[bool, typer.Option(help="Skip and count rows that break the contract.")]
CodeTable = Annotated[
    Path | None, typer.Option(help="CSV or Parquet with columns code, category, label.")
]
Found = Annotated[
    Path | None, typer.Option(help="What `discover --json` wrote; else it is found anew.")
]
ShowIds = Annotated[bool, typer.Option(help="Show the log's user ids instead of pseudonyms.")]
Pipeline = Annotated[
    str,
    typer.Option(
        help="How recognition scales weights and sets the classifier: chosen (in each training "
        "half, by cross-validation within it), printed (nearest to the text), or one by name."
    ),
]
Method = Annotated[str, typer.Option(help="lda or pathselclus.")]


@app.command()
def simulate(
    folder: Annotated[Path, typer.Argument(help="Folder to write; must not exist.")],
    scale: Annotated[float, typer.Option(help="Share of patients and accesses, (0, 1].")] = 0.05,
    seed: Seed = 0,
) -> None:
    """Write a simulated hospital's access log, with its truth."""
    from telic.data import check_output
    from telic.simulate.hospital import simulate_hospital

    check_output(folder)
    simulate_hospital(folder, scale=scale, seed=seed)
    typer.echo(f"{folder}: a simulated access log", err=True)


@app.command()
def discover(
    log: Log,
    method: Method = "lda",
    topics: Annotated[int | None, typer.Option(help="LDA's K; else by perplexity.")] = None,
    document: Annotated[str, typer.Option(help="LDA's documents: patient or user.")] = "patient",
    view: Annotated[str | None, typer.Option(help="PathSelClus: fine or general.")] = None,
    free: Annotated[int, typer.Option(help="PathSelClus: clusters without seeds.")] = 3,
    paths: Annotated[
        str,
        typer.Option(
            help="PathSelClus: some of U-P-D,U-P,U-P-U,U-P-D-P-U. The text also uses U-P; it is "
            "left out because on simulated logs it says nothing and swamps U-P-D: its α is that "
            "of a permuted copy."
        ),
    ] = "U-P-D",
    restarts: Annotated[int, typer.Option(help="Runs; the best is used.")] = 3,
    seed: Seed = 0,
    threads: Threads = 1,
    skip_bad_rows: SkipBad = False,
    code_table: CodeTable = None,
    as_json: Json = False,
) -> None:
    """Find specialties: users, diagnoses by lift, the code that names them or none."""
    from telic.specialty.discover import discover as find
    from telic.specialty.discovery import as_share
    from telic.specialty.small_cells import shown

    records = _read(log, skip_bad_rows, code_table)
    with _progress() as on_step:
        found = find(
            records,
            method=method,
            n_topics=topics,
            document=document,
            view=view,
            free=free,
            paths=paths.split(","),
            restarts=restarts,
            seed=seed,
            threads=threads,
            on_step=on_step,
        )
    if as_json:
        typer.echo(json.dumps(found.as_json(records), ensure_ascii=False, indent=1))
        return
    if not found.specialties:
        typer.echo("no group of users with a practice of its own was found", err=True)
    for one in found.specialties:
        code = one.listed_code or f"no code (nearest: {one.nearest_code or 'none'})"
        size, stable = shown(len(one.users)), as_share(one.stability)
        typer.echo(f"{size:>5s} users  stability {stable}  {code}  |  {one.name}")


def _read(folder: Path, skip_bad_rows: bool, code_table: Path | None) -> "AccessLog":
    from telic.specialty.access import read_log

    log = read_log(folder, on_bad_row="skip" if skip_bad_rows else "raise", code_table=code_table)
    for note in log.notes:
        typer.echo(f"note: {note}", err=True)
    return log


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """A spinner on stderr that names the last step done."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading")
        yield lambda step: progress.update(task, description=f"{step}: done")


@app.command()
def recognise(
    log: Log,
    found: Found = None,
    method: Method = "lda",
    classifier: Annotated[str, typer.Option(help="Or 'all'.")] = "SVM",
    pipeline: Pipeline = "chosen",
    seed: Seed = 0,
    threads: Threads = 1,
    skip_bad_rows: SkipBad = False,
    code_table: CodeTable = None,
    as_json: Json = False,
) -> None:
    """Recognise each specialty without a code beside the core classes (5×2 cross-validation).

    "In shuffled data" is the F1 of as many users found where every access was moved to a random
    encounter: what a cluster of nothing reaches. Below each classifier stand all its pipelines and
    the training halves (round and half) that chose them.
    """
    from telic.specialty.control import DE_FACTO
    from telic.specialty.pipelines import CLASSIFIERS, pipeline_names

    names = CLASSIFIERS if classifier == "all" else (classifier,)
    for name in names:
        pipeline_names(name, pipeline)  # a wrong name is said before the log is read
    records = _read(log, skip_bad_rows, code_table)
    discovery = _discovery(records, found, method, seed, threads)
    rows, scores = [], []
    for (k, name), one in _recognitions(records, discovery, names, seed, threads, pipeline).items():
        core = [c for c in one.classes if c != DE_FACTO]
        scores.append(one.pipeline_scores(DE_FACTO, core))
        precision, recall, f1 = (float(v) for v in one.of(DE_FACTO))
        rows.append(
            {
                "specialty": discovery.specialties[k].name,
                "users": len(discovery.specialties[k].users),
                "classifier": name,
                "precision": precision,
                "recall": recall,
                "f1": f1,
                "shuffled_f1": one.shuffled_f1,
                "core_f1": float(one.mean_of(core)[2]),
                "core_macro_f1": one.macro_f1(core),
                "p_values": {
                    test: result.p_value for test, result in one.compare(DE_FACTO, core).items()
                },
                "pipelines": [score._asdict() for score in scores[-1]],
            }
        )
    if as_json:
        typer.echo(json.dumps({"recognition": rows}, ensure_ascii=False, indent=1))
        return
    for row, by_pipeline in zip(rows, scores, strict=True):
        typer.echo(
            f"{row['classifier']:15s} F1 {row['f1']:.3f}  in shuffled data "
            f"{row['shuffled_f1']:.3f}  core {row['core_f1']:.3f}  |  {row['specialty']}"
        )
        for score in by_pipeline:
            chosen_in = " ".join(score.chosen_in) or "none"
            typer.echo(
                f"    F1 {score.f1:.3f}  core {score.core_f1:.3f}  {score.pipeline}; "
                f"chosen in {chosen_in}"
            )
    if not rows:
        typer.echo("no specialty without a code is large enough to be recognised", err=True)
    else:
        typer.echo(
            "in shuffled data: as many users found where every access was moved to a random "
            "encounter; what looking for a group alone gives",
            err=True,
        )


@app.command()
def explain(
    log: Log,
    found: Found = None,
    method: Method = "lda",
    limit: Annotated[int, typer.Option(min=0, help="Lines of the queue.")] = 20,
    status: Annotated[
        str, typer.Option(help="Alarms to list: open, explained, or all (open ones first).")
    ] = "all",
    show_ids: ShowIds = False,
    seed: Seed = 0,
    threads: Threads = 1,
    skip_bad_rows: SkipBad = False,
    code_table: CodeTable = None,
    as_json: Json = False,
) -> None:
    """Say which alarms the de facto specialties explain, and list the queue.

    A line's "row" counts the rows of the accesses table from 1; in a CSV file neither the header
    nor blank lines are rows.
    """
    from telic.specialty.effect import effect, known_snooping, together
    from telic.specialty.explain import Pseudonyms, check_status, judge, lines

    check_status(status)  # said before the log is read
    records = _read(log, skip_bad_rows, code_table)
    discovery = _discovery(records, found, method, seed, threads)
    alerts = judge(records, discovery)
    counted = effect(records, discovery, alerts, known_snooping(log))
    names = None if show_ids else Pseudonyms()
    queue = list(lines(records, discovery, alerts, alerts.queue(status)[:limit], pseudonyms=names))
    if as_json:
        content = {"simulated": records.simulated, **counted.as_json(), "queue": queue}
        typer.echo(json.dumps(content, ensure_ascii=False, indent=1))
        return
    for name, text in counted.texts().items():
        typer.echo(f"{name.replace('_', ' '):25s} {text:>12}")
    if counted.snooping:
        typer.echo("known snooping in a queue of the open alarms' length, before and now:")
        kinds = {**counted.snooping, "together": together(counted.snooping)}
        for kind, one in kinds.items():
            typer.echo(
                f"  {kind:16s} {one.without:,} and {one.known:,} of {one.planted:,}, "
                f"points {one.text()}"
            )
    for line in queue:
        by = f" by “{line['practised']}”" if line["status"] == "explained" else ""
        typer.echo(
            f"row {line['row']}: {line['user']} ({line['declared'] or 'no code'}) "
            f"{line['status']}{by}: {line['because']}"
        )


@app.command()
def report(
    log: Log,
    out: Annotated[Path, typer.Option(help="HTML file to write.")] = Path("specialties.html"),
    found: Found = None,
    method: Method = "lda",
    pipeline: Pipeline = "chosen",
    show_ids: ShowIds = False,
    seed: Seed = 0,
    threads: Threads = 1,
    skip_bad_rows: SkipBad = False,
    code_table: CodeTable = None,
    overwrite: Overwrite = False,
) -> None:
    """Write the compliance officer's report: specialties, mismatches, the queue of alarms."""
    from telic.data import check_output
    from telic.specialty.effect import effect, known_snooping
    from telic.specialty.explain import Pseudonyms, judge
    from telic.specialty.pipelines import pipeline_names
    from telic.specialty.report import specialty_report

    check_output(out, reads=[log, found, code_table], overwrite=overwrite)
    pipeline_names("SVM", pipeline)
    records = _read(log, skip_bad_rows, code_table)
    discovery = _discovery(records, found, method, seed, threads)
    alerts = judge(records, discovery)
    specialty_report(
        records,
        discovery,
        alerts,
        effect(records, discovery, alerts, known_snooping(log)),
        recognitions={
            k: one
            for (k, _), one in _recognitions(
                records, discovery, ("SVM",), seed, threads, pipeline
            ).items()
        },
        pseudonyms=None if show_ids else Pseudonyms(),
    ).write(out)
    typer.echo(f"{out}: written", err=True)


def _discovery(
    log: "AccessLog", found: Path | None, method: str, seed: int, threads: int
) -> "Discovery":
    from telic.specialty.discover import discover as find
    from telic.specialty.discovery import read_discovery

    if found is not None:
        return read_discovery(found, log)
    with _progress() as on_step:
        return find(log, method=method, seed=seed, threads=threads, on_step=on_step)


def _recognitions(
    log: "AccessLog",
    discovery: "Discovery",
    methods: tuple[str, ...],
    seed: int,
    threads: int,
    pipeline: str,
) -> "dict[tuple[int, str], Recognition]":
    from telic.specialty.control import recognise_found

    found, notes = recognise_found(
        log, discovery, methods=methods, pipeline=pipeline, seed=seed, threads=threads
    )
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    return found


@app.command("import")
def import_(
    source: Annotated[Path, typer.Argument(help="Folder of the export.")],
    folder: Annotated[Path, typer.Argument(help="Folder to write; must not exist.")],
    kind: Annotated[str, typer.Option(help="omop, fhir, mimic3 or eicu.")],
) -> None:
    """Convert an OMOP, FHIR NDJSON, MIMIC-III or eICU export to an access log."""
    from telic.data import check_output
    from telic.specialty.sources import import_log

    check_output(folder, reads=[source])
    for note in import_log(source, folder, kind=kind):
        typer.echo(f"note: {note}", err=True)
    typer.echo(f"{folder}: written", err=True)
