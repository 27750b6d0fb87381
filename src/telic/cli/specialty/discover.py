"""`telic specialty`: simulate, discover, recognise, explain and report."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from telic.cli.console import Overwrite, print_json, show
from telic.cli.progress import steps
from telic.cli.specialty import review
from telic.cli.specialty.options import (
    CodeTable,
    Found,
    Json,
    Log,
    Seed,
    SkipBad,
    Threads,
    known,
    read,
    tell,
)

if TYPE_CHECKING:
    from telic.specialty.discovery.result import Discovery
    from telic.specialty.log.access_log import AccessLog

app = typer.Typer(
    help="Specialties that exist in practice but have no code, and the alarms they explain.",
    no_args_is_help=True,
)
app.add_typer(review.app, name="review")

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
        typer.Option(
            help="LDA: number of topics, or measured (as many as residuals looks for). "
            "Default: chosen by perplexity."
        ),
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
            "telic does not, because on simulated logs U-P says no more than a permuted copy of "
            "it, and swamps U-P-D."
        ),
    ] = "U-P-D",
    seeds: Annotated[
        str, typer.Option(help="PathSelClus: representative (half of a code's users) or all.")
    ] = "representative",
    assign: Annotated[
        str,
        typer.Option(
            help="LDA, PathSelClus: concentrated (only users whose share stands out) or "
            "argmax (all users)."
        ),
    ] = "concentrated",
    restarts: Annotated[int, typer.Option(help="Runs to measure stability.")] = 3,
    seed: Seed = 0,
    threads: Threads = 1,
    skip_bad_rows: SkipBad = False,
    code_table: CodeTable = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for findings, to judge later logs by.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Find specialties: users, diagnoses by lift, the code that names them or none."""
    from telic.data import check_output
    from telic.specialty.discovery.discover import discover as find
    from telic.specialty.later_logs.findings import findings_of
    from telic.specialty.report.tables import specialties_table

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
            seeds=seeds,
            assign=assign,
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


@app.command()
def recognise(
    log: Log,
    found: Found = None,
    method: Method = "residuals",
    classifier: Annotated[str, typer.Option(help="A classifier, or all.")] = "SVM",
    pipeline: Pipeline = "chosen",
    seed: Seed = 0,
    threads: Threads = 1,
    skip_bad_rows: SkipBad = False,
    code_table: CodeTable = None,
    as_json: Json = False,
) -> None:
    """Recognise each specialty without a code beside declared codes (5×2 cross-validation).

    These are the dissertation's 12 core classes; a log without them is judged by its own commonest
    codes. "95 %" says how closely the F1 is known, and "users for ±.1" how many users that takes.

    "In shuffled data" is the control: the F1 of a group of equal size, found after every access was
    moved to a random encounter. Below each classifier stand all its pipelines and the training
    halves (round and half) that chose them.
    """
    from telic.specialty.recognition.classifiers import CLASSIFIERS, pipeline_names
    from telic.specialty.recognition.shuffled_control import recognise_found, recognition_facts
    from telic.specialty.report.tables import pipelines_table, recognition_table

    names = CLASSIFIERS if classifier == "all" else (classifier,)
    for name in names:
        pipeline_names(name, pipeline)  # a wrong name is said before the log is read
    records = read(log, skip_bad_rows, code_table)
    discovery = _discovery(records, found, method, seed, threads)
    results, notes = recognise_found(
        records, discovery, methods=names, pipeline=pipeline, seed=seed, threads=threads
    )
    tell(notes)
    facts = recognition_facts(discovery, results)
    if as_json:
        print_json({"recognition": facts})
        return
    if not facts:
        if all(one.listed_code is not None for one in discovery.specialties):
            typer.echo("no specialty without a code was found: nothing to recognise", err=True)
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
        Path | None,
        typer.Option(help="Folder for the findings of --found, with this log's rows added."),
    ] = None,
    audit_events: Annotated[
        Path | None,
        typer.Option(help="File (.ndjson) of all accesses as FHIR AuditEvents with reasons."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Say which alarms the de facto specialties and colleagues explain, and list the queue.

    With the findings of an earlier log, telic judges this log by them and says what has drifted.
    A line's "row" counts the rows of the accesses table from 1; in a CSV file neither the header
    nor blank lines are rows.
    """
    from telic.data import check_output
    from telic.errors import InputError
    from telic.specialty.alarms.access_reasons import find_reasons
    from telic.specialty.alarms.before_and_after import effect, known_snooping
    from telic.specialty.alarms.colleagues import care_of
    from telic.specialty.alarms.fhir_audit_events import write_audit_events
    from telic.specialty.alarms.judge import check_status, judge, lines
    from telic.specialty.pseudonyms import Pseudonyms
    from telic.specialty.report.tables import alarms_table, drift_table, queue_table, snooping_table

    check_status(status)  # said before the log is read
    if keep is not None:
        if found is None or not found.is_dir():
            raise InputError("--keep needs --found with a folder that `discover --out` wrote.")
        check_output(keep, reads=[log, found, code_table], overwrite=overwrite)
    if audit_events is not None:
        check_output(audit_events, reads=[log, found, code_table], overwrite=overwrite)
    records = read(log, skip_bad_rows, code_table)
    discovery, before, carried = known(records, found, method, seed, threads)
    care = care_of(records)
    alerts = judge(records, discovery, before=before, care=care)
    counted = effect(records, discovery, alerts, known_snooping(log))
    names = None if show_ids else Pseudonyms()
    queue = list(lines(records, discovery, alerts, alerts.queue(status)[:limit], pseudonyms=names))
    if keep is not None and carried is not None:
        carried.findings.save(keep)
        typer.echo(f"{keep}: written", err=True)
    if audit_events is not None:
        found_reasons = find_reasons(records, discovery, before=before, care=care, seed=seed)
        write_audit_events(audit_events, records, discovery, alerts, found_reasons)
        typer.echo(f"{audit_events}: written", err=True)
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
def patient(
    log: Log,
    patient: Annotated[str, typer.Argument(help="The patient's id in the log.")],
    out: Annotated[
        Path | None, typer.Option(help="File to write: .csv, .json or .html; default: print.")
    ] = None,
    found: Found = None,
    origin: Annotated[
        str | None, typer.Option(help="System that the data come from, if only one.")
    ] = None,
    pseudonyms: Annotated[
        bool, typer.Option("--pseudonyms", help="Show pseudonyms, no user ids (Article 9(3)).")
    ] = False,
    seed: Seed = 0,
    skip_bad_rows: SkipBad = False,
    code_table: CodeTable = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """List who opened a patient's record, when, and why, or "no reason found".

    The list follows Regulation (EU) 2025/327 on the European Health Data Space (Article 9; Annex
    II, 3.2) and names what the log lacks for it. Rows without a diagnosis are listed too.
    """
    from telic.data import atomic_path, check_output
    from telic.errors import InputError
    from telic.specialty.alarms.access_reasons import find_reasons
    from telic.specialty.alarms.patient_log import patient_log
    from telic.specialty.pseudonyms import Pseudonyms

    if out is not None:
        check_output(out, reads=[log, found, code_table], overwrite=overwrite)
        if out.suffix not in (".csv", ".json", ".html"):
            raise InputError(f"{out}: expected a name that ends in .csv, .json or .html.")
    records = read(log, skip_bad_rows, code_table)
    discovery, before, _ = known(records, found, "residuals", seed, 1)
    own = patient_log(
        log,
        records,
        discovery,
        find_reasons(records, discovery, before=before, seed=seed),
        patient,
        origin=origin,
        pseudonyms=Pseudonyms() if pseudonyms else None,
    )
    if out is None and not as_json:
        show(own.table())
    elif out is None:
        print_json(own.as_json())
    elif out.suffix == ".html":
        own.report().write(out)
    else:
        csv = out.suffix == ".csv"
        text = own.table().csv() if csv else json.dumps(own.as_json(), indent=1, ensure_ascii=False)
        with atomic_path(out) as temporary:
            temporary.write_text(text, encoding="utf-8")
    tell([f"the log lacks {name}: {why}" for name, why in own.lacking.items()])


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
    from telic.specialty.alarms.before_and_after import known_snooping
    from telic.specialty.pseudonyms import Pseudonyms
    from telic.specialty.recognition.classifiers import pipeline_names
    from telic.specialty.report.page import full_report

    check_output(out, reads=[log, found, code_table], overwrite=overwrite)
    pipeline_names("SVM", pipeline)
    records = read(log, skip_bad_rows, code_table)
    discovery, before, _ = known(records, found, method, seed, threads)
    page, notes = full_report(
        records,
        discovery,
        before=before,
        snooping=known_snooping(log),
        pipeline=pipeline,
        pseudonyms=None if show_ids else Pseudonyms(),
        seed=seed,
        threads=threads,
    )
    tell(notes)
    page.write(out)
    typer.echo(f"{out}: written", err=True)


def _discovery(
    log: "AccessLog", found: Path | None, method: str, seed: int, threads: int
) -> "Discovery":
    return known(log, found, method, seed, threads)[0]


@app.command("import")
def import_(
    source: Annotated[Path, typer.Argument(help="Folder of the export.")],
    folder: Annotated[Path, typer.Argument(help="Folder to write; must not exist.")],
    kind: Annotated[str, typer.Option(help="omop, fhir, mimic3 or eicu.")],
) -> None:
    """Convert an OMOP, FHIR NDJSON, MIMIC-III or eICU export to an access log."""
    from telic.data import check_output
    from telic.specialty.log.other_systems import import_log
    from telic.specialty.log.source_gaps import lacks_of

    check_output(folder, reads=[source])
    tell(import_log(source, folder, kind=kind))
    tell([f"{kind} lacks {element}: {why}" for element, why in lacks_of(folder).items()])
    typer.echo(f"{folder}: written", err=True)
