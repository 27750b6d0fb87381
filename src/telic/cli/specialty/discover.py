"""`telic specialty discover | inspect | recognise`: find specialties, recognise their users."""

from pathlib import Path
from typing import Annotated

import typer

from telic.cli.console import Overwrite, print_card, print_json, show
from telic.cli.jobs import Cluster, Memory, Work, job_of, steps_or_job
from telic.cli.options import refuse_given
from telic.cli.specialty.options import (
    CodeTable,
    Found,
    Json,
    Log,
    Method,
    Pipeline,
    Seed,
    SkipBad,
    Threads,
    app,
    known,
    read,
    tell,
)

Naming = Annotated[
    str,
    typer.Option(
        help="When a listed code names a cluster: tested (declared more often than by chance) or "
        "overlap (half of the code's users, as the study of chapter 6)."
    ),
]


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
    shards: Annotated[
        int,
        typer.Option(
            help="LDA: parts of the documents that --memory or --cluster work on side by side. "
            "Their number changes the topics a little, who works on them does not."
        ),
    ] = 1,
    seed: Seed = 0,
    threads: Threads = 1,
    skip_bad_rows: SkipBad = False,
    code_table: CodeTable = None,
    memory: Memory = None,
    cluster: Cluster = None,
    work: Work = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for findings, to judge later logs by.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Find specialties: their users, diagnoses by lift, and the code that names each, if any."""
    from telic.data import check_output
    from telic.specialty.discovery.discover import discover as find
    from telic.specialty.later_logs.kept_findings import KIND, findings_of
    from telic.specialty.report.tables import specialties_table

    if out is not None:
        check_output(out, kind=KIND, reads=[log, code_table], overwrite=overwrite)
    records = read(log, skip_bad_rows, code_table)
    beside = Path("telic-discover") if out is None else out
    with (
        job_of(memory, cluster, work, beside, reads=[log, code_table]) as job,
        steps_or_job(job, "discover") as begin,
    ):
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
            shards=shards,
            executor=job.executor,
            work=job.work,
            progress=lambda step: begin(f"{step}: done"),
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
def inspect(
    found: Annotated[Path, typer.Argument(help="Folder of `discover --out`.")],
    as_json: Json = False,
) -> None:
    """Show the card of kept findings: what they are of, what they hold, until when."""
    from telic.data.saved_models import written_by
    from telic.specialty.later_logs.kept_findings import read_findings

    print_card(read_findings(found).card() | {"written by": written_by(found)}, as_json)


@app.command()
def recognise(
    context: typer.Context,
    log: Log,
    found: Found = None,
    method: Method = "residuals",
    classifier: Annotated[str, typer.Option(help="A classifier, or all.")] = "SVM",
    pipeline: Pipeline = "chosen",
    seed: Seed = 0,
    threads: Threads = 1,
    skip_bad_rows: SkipBad = False,
    code_table: CodeTable = None,
    memory: Memory = None,
    cluster: Cluster = None,
    work: Work = None,
    as_json: Json = False,
) -> None:
    """Measure how well classifiers tell each specialty without a code from declared codes.

    The measure is F1 in a 5×2 cross-validation. The declared codes are the dissertation's 12 core
    classes, or the commonest codes of a log without them. "95 %" is the interval of the F1, and
    "users for ±.1" is how many users would narrow it to ±.1.

    "In shuffled data" is the control: the F1 of a group of equal size, found after every access was
    moved to a random encounter. Below each classifier stand all its pipelines and the training
    halves (round and half) that chose them.

    With --memory the halves are trained on all processors, with --cluster by its workers.
    """
    from telic.specialty.recognition.classifiers import CLASSIFIERS, pipeline_names
    from telic.specialty.recognition.shuffled_control import recognise_found, recognition_facts
    from telic.specialty.report.tables import pipelines_table, recognition_table

    names = CLASSIFIERS if classifier == "all" else (classifier,)
    for name in names:
        pipeline_names(name, pipeline)  # a wrong name is said before the log is read
    if found is not None:
        refuse_given(context, ["method"], "beside --found")
    records = read(log, skip_bad_rows, code_table)
    records, discovery, _, _ = known(records, found, method, seed, threads)
    reads = [log, found, code_table]
    with job_of(memory, cluster, work, Path("telic-recognise"), reads=reads) as job:
        results, notes = recognise_found(
            records,
            discovery,
            methods=names,
            pipeline=pipeline,
            seed=seed,
            threads=threads,
            executor=job.executor,
            work=job.work,
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
