"""`telic specialty explain | patient`: which alarms are explained, and a patient's own log."""

import json
from pathlib import Path
from typing import Annotated

import typer

from telic.cli.console import Overwrite, print_json, show
from telic.cli.options import refuse_given
from telic.cli.specialty.options import (
    CodeTable,
    Found,
    Json,
    Log,
    Method,
    Seed,
    ShowIds,
    SkipBad,
    Threads,
    app,
    known,
    read,
    tell,
)


@app.command()
def explain(
    context: typer.Context,
    log: Log,
    found: Found = None,
    method: Method = "residuals",
    limit: Annotated[int, typer.Option(min=0, help="Lines of the queue.")] = 20,
    status: Annotated[
        str,
        typer.Option(
            help="What to list: open or explained alarms, all of both (open ones first), or "
            "no-reason: every access without a reason, alarms first."
        ),
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
    The queue has open alarms before explained ones; with --status no-reason it has every access
    without a reason, alarms first. Among each, those stand first that the user's
    specialties cover least. Where a user has no specialty, the work of colleagues decides the
    place, not the lift that is shown; users without colleagues come first. A line's "row" counts
    the rows of the accesses table from 1; in a CSV file neither the header nor blank lines are
    rows.
    """
    from telic.data import check_output
    from telic.errors import InputError, expect_one_of
    from telic.specialty.alarms.access_reasons import find_reasons
    from telic.specialty.alarms.before_and_after import effect, known_snooping
    from telic.specialty.alarms.colleagues import care_of
    from telic.specialty.alarms.explained_alarms import STATUS, judge, lines
    from telic.specialty.alarms.fhir_audit_events import write_audit_events
    from telic.specialty.later_logs.kept_findings import KIND
    from telic.specialty.pseudonyms import Pseudonyms
    from telic.specialty.report.tables import alarms_table, drift_table, queue_table, snooping_table

    expect_one_of(STATUS, status=status)  # said before the log is read
    if keep is not None:
        if found is None or not found.is_dir():
            raise InputError("--keep needs --found with a folder that `discover --out` wrote.")
        check_output(keep, kind=KIND, reads=[log, found, code_table], overwrite=overwrite)
    if audit_events is not None:
        check_output(audit_events, kind="JSON", reads=[log, found, code_table], overwrite=overwrite)
    if found is not None:
        refuse_given(context, ["method"], "beside --found")
    records = read(log, skip_bad_rows, code_table)
    records, discovery, before, carried = known(records, found, method, seed, threads)
    care = care_of(records, discovery, before=before, seed=seed)
    alerts = judge(records, discovery, before=before, care=care)
    counted = effect(records, discovery, alerts, known_snooping(log))
    names = None if show_ids else Pseudonyms()
    listed = alerts.queue(status)[:limit]
    because = status != "no-reason"
    queue = list(lines(records, discovery, alerts, listed, pseudonyms=names, because=because))
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
        title = f"The queue ({status}), least covered first"
        if status == "no-reason":
            title = "Accesses without a reason, alarms first, the least covered first"
        show(queue_table(title, queue))


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
    II, 3.2) and names what the log lacks for such a list. Rows without a diagnosis are listed too.
    """
    from telic.data import atomic_path, check_output
    from telic.errors import InputError
    from telic.specialty.alarms.access_reasons import find_reasons
    from telic.specialty.alarms.patient_log import patient_log
    from telic.specialty.pseudonyms import Pseudonyms

    if out is not None:
        kind = {".csv": "CSV", ".json": "JSON", ".html": "page"}.get(out.suffix)
        check_output(out, kind=kind, reads=[log, found, code_table], overwrite=overwrite)
        if kind is None:
            raise InputError(f"{out}: expected a name that ends in .csv, .json or .html.")
    records = read(log, skip_bad_rows, code_table)
    records, discovery, before, _ = known(records, found, "residuals", seed, 1)
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
        show(own.on_a_page())
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
