"""`telic specialty`: simulate, discover, recognise, explain and report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from telic.cli import review
from telic.cli.console import Overwrite, print_json, show
from telic.cli.progress import steps

if TYPE_CHECKING:
    from telic.specialty.access import AccessLog
    from telic.specialty.discovery import Discovery
    from telic.specialty.findings import Carried, Findings

app = typer.Typer(
    help="Specialties that exist in practice but have no code, and the alarms they explain.",
    no_args_is_help=True,
)
app.add_typer(review.app, name="review")

Log = Annotated[Path, typer.Argument(help="Folder of an access log (docs/data-contracts.md, 3).")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON to stdout.")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
Threads = Annotated[int, typer.Option(min=1, help="Does not change the result.")]
SkipBad = Annotated[bool, typer.Option(help="Skip and count rows that break the contract.")]
CodeTable = Annotated[
    Path | None, typer.Option(help="CSV or Parquet with columns code, category, label.")
]
Found = Annotated[
    Path | None,
    typer.Option(
        help="What `discover --json` wrote, for the same log, or the folder of `discover --out`, "
        "for later ones too; else it is found anew."
    ),
]
ShowIds = Annotated[bool, typer.Option(help="Show the log's user ids instead of pseudonyms.")]
Pipeline = Annotated[
    str,
    typer.Option(
        help="How recognition scales weights and sets the classifier: chosen (in each training "
        "half, by cross-validation within it), printed (nearest to the dissertation), or one by "
        "name."
    ),
]
Method = Annotated[str, typer.Option(help="residuals, lda or pathselclus.")]
Naming = Annotated[
    str,
    typer.Option(
        help="When a listed code names a cluster: tested (declared more often than by chance) or "
        "overlap (half of the code's users, as the study of chapter 6)."
    ),
]


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
    method: Method = "residuals",
    naming: Naming = "tested",
    topics: Annotated[
        str | None,
        typer.Option(help="LDA's K, or measured (as residuals does); else by perplexity."),
    ] = None,
    document: Annotated[
        str, typer.Option(help="LDA's documents: patient, encounter or user.")
    ] = "patient",
    view: Annotated[str | None, typer.Option(help="PathSelClus: fine or general.")] = None,
    free: Annotated[int, typer.Option(help="PathSelClus: clusters without seeds.")] = 3,
    paths: Annotated[
        str,
        typer.Option(
            help="PathSelClus: some of U-P-D,U-P,U-P-U,U-P-D-P-U. The dissertation also uses U-P; "
            "it is left out because on simulated logs it says nothing and swamps U-P-D: its α is "
            "that of a permuted copy."
        ),
    ] = "U-P-D",
    restarts: Annotated[int, typer.Option(help="Runs, for the stability.")] = 3,
    seed: Seed = 0,
    threads: Threads = 1,
    skip_bad_rows: SkipBad = False,
    code_table: CodeTable = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for findings that later logs can be judged by.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Find specialties: users, diagnoses by lift, the code that names them or none."""
    from telic.data import check_output
    from telic.specialty.discover import discover as find
    from telic.specialty.findings import findings_of
    from telic.specialty.report_tables import specialties_table

    if out is not None:
        check_output(out, reads=[log, code_table], overwrite=overwrite)
    records = read(log, skip_bad_rows, code_table)
    with steps("discover") as begin:
        found = find(
            records,
            method=method,
            naming=naming,
            n_topics=int(topics) if topics and topics.isdecimal() else topics,
            document=document,
            view=view,
            free=free,
            paths=paths.split(","),
            restarts=restarts,
            seed=seed,
            threads=threads,
            on_step=lambda step: begin(f"{step}: done"),
        )
    if out is not None:
        findings_of(records, found).save(out)
        typer.echo(f"{out}: written", err=True)
    if as_json:
        print_json(found.as_json(records))
        return
    if not found.specialties:
        typer.echo("no group of users with a practice of its own was found", err=True)
    show(specialties_table(records, found))


def read(folder: Path, skip_bad_rows: bool, code_table: Path | None) -> "AccessLog":
    """Read a log and say what was dropped."""
    from telic.specialty.access import read_log

    log = read_log(folder, on_bad_row="skip" if skip_bad_rows else "raise", code_table=code_table)
    _tell(log.notes)
    return log


@app.command()
def recognise(
    log: Log,
    found: Found = None,
    method: Method = "residuals",
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
    from telic.specialty.control import recognise_found, recognition_facts
    from telic.specialty.pipelines import CLASSIFIERS, pipeline_names
    from telic.specialty.report_tables import pipelines_table, recognition_table

    names = CLASSIFIERS if classifier == "all" else (classifier,)
    for name in names:
        pipeline_names(name, pipeline)  # a wrong name is said before the log is read
    records = read(log, skip_bad_rows, code_table)
    discovery = _discovery(records, found, method, seed, threads)
    results, notes = recognise_found(
        records, discovery, methods=names, pipeline=pipeline, seed=seed, threads=threads
    )
    _tell(notes)
    facts = recognition_facts(discovery, results)
    if as_json:
        print_json({"recognition": facts})
        return
    if not facts:
        typer.echo("no specialty without a code is large enough to be recognised", err=True)
        return
    show(recognition_table(facts))
    for one in facts:
        show(pipelines_table(f"{one['classifier']}: {one['specialty']}", one["pipelines"]))


@app.command()
def explain(
    log: Log,
    found: Found = None,
    method: Method = "residuals",
    limit: Annotated[int, typer.Option(min=0, help="Lines of the queue.")] = 20,
    status: Annotated[
        str, typer.Option(help="Alarms to list: open, explained, or all (open ones first).")
    ] = "all",
    show_ids: ShowIds = False,
    seed: Seed = 0,
    threads: Threads = 1,
    skip_bad_rows: SkipBad = False,
    code_table: CodeTable = None,
    keep: Annotated[
        Path | None, typer.Option(help="Folder for the findings of --found with this log's rows.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Say which alarms the de facto specialties and colleagues explain, and list the queue.

    With findings of an earlier log, this one is judged by them, and what has drifted is said.
    A line's "row" counts the rows of the accesses table from 1; in a CSV file neither the header
    nor blank lines are rows.
    """
    from telic.data import check_output
    from telic.errors import InputError
    from telic.specialty.care import care_of
    from telic.specialty.effect import effect, known_snooping
    from telic.specialty.explain import Pseudonyms, check_status, judge, lines
    from telic.specialty.report_tables import alarms_table, drift_table, queue_table, snooping_table

    check_status(status)  # said before the log is read
    if keep is not None:
        if found is None or not found.is_dir():
            raise InputError("--keep needs --found with a folder that `discover --out` wrote.")
        check_output(keep, reads=[log, found, code_table], overwrite=overwrite)
    records = read(log, skip_bad_rows, code_table)
    discovery, before, carried = known(records, found, method, seed, threads)
    alerts = judge(records, discovery, before=before, care=care_of(records))
    counted = effect(records, discovery, alerts, known_snooping(log))
    names = None if show_ids else Pseudonyms()
    queue = list(lines(records, discovery, alerts, alerts.queue(status)[:limit], pseudonyms=names))
    if keep is not None and carried is not None:
        carried.findings.save(keep)
        typer.echo(f"{keep}: written", err=True)
    if as_json:
        content = {"simulated": records.simulated, **counted.as_json(), "queue": queue}
        print_json(content | ({"carried": carried.as_json()} if carried else {}))
        return
    if carried is not None:
        show(drift_table(carried))
    show(alarms_table(counted, len(records.access_user)))
    if counted.snooping:
        show(snooping_table(counted.snooping))
    if queue:
        show(queue_table(f"The queue ({status}), least covered first", queue))


@app.command()
def report(
    log: Log,
    out: Annotated[Path, typer.Option(help="HTML file to write.")] = Path("specialties.html"),
    found: Found = None,
    method: Method = "residuals",
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
    from telic.specialty.effect import known_snooping
    from telic.specialty.explain import Pseudonyms
    from telic.specialty.pipelines import pipeline_names
    from telic.specialty.report import full_report

    check_output(out, reads=[log, found, code_table], overwrite=overwrite)
    pipeline_names("SVM", pipeline)
    records = read(log, skip_bad_rows, code_table)
    discovery = _discovery(records, found, method, seed, threads)
    page, notes = full_report(
        records,
        discovery,
        snooping=known_snooping(log),
        pipeline=pipeline,
        pseudonyms=None if show_ids else Pseudonyms(),
        seed=seed,
        threads=threads,
    )
    _tell(notes)
    page.write(out)
    typer.echo(f"{out}: written", err=True)


def _discovery(
    log: "AccessLog", found: Path | None, method: str, seed: int, threads: int
) -> "Discovery":
    return known(log, found, method, seed, threads)[0]


def known(
    log: "AccessLog", found: Path | None, method: str, seed: int, threads: int
) -> "tuple[Discovery, Findings | None, Carried | None]":
    """Return what was found, and findings of an earlier log carried to this one."""
    from telic.specialty.discover import discover as find
    from telic.specialty.discovery import read_discovery
    from telic.specialty.findings import carry, read_findings

    if found is not None and found.is_dir():
        before = read_findings(found)
        carried = carry(before, log, seed=seed)
        _tell(carried.notes)
        return carried.discovery, before, carried
    if found is not None:
        return read_discovery(found, log), None, None
    with steps("discover") as begin:
        discovery = find(
            log,
            method=method,
            seed=seed,
            threads=threads,
            on_step=lambda step: begin(f"{step}: done"),
        )
    return discovery, None, None


def _tell(notes: list[str]) -> None:
    for note in notes:
        typer.echo(f"note: {note}", err=True)


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
    _tell(import_log(source, folder, kind=kind))
    typer.echo(f"{folder}: written", err=True)
