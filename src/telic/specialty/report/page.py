"""The compliance officer's report: two pages for a meeting, then the evidence and the queue."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from telic.report import Report, Table
from telic.report.table import shown as written
from telic.specialty.alarms.before_and_after import Effect, effect
from telic.specialty.alarms.colleagues import care_of
from telic.specialty.alarms.explained_alarms import Alerts, judge, lines
from telic.specialty.discovery.declared_codes import NONE_DECLARED, declaration, declared_codes
from telic.specialty.discovery.result import Discovery, Specialty
from telic.specialty.later_logs.kept_findings import Findings
from telic.specialty.log.access_log import AccessLog
from telic.specialty.pseudonyms import Pseudonyms
from telic.specialty.recognition.classifiers import CHOSEN
from telic.specialty.recognition.recognise import WITHIN, Recognition, users_needed
from telic.specialty.recognition.shuffled_control import DE_FACTO, recognise_found
from telic.specialty.report.figures import (
    declared_figure,
    lifts_figure,
    map_figure,
    months_figure,
)
from telic.specialty.report.tables import (
    alarms_table,
    deviations_shown,
    pipelines_table,
    queue_table,
    snooping_table,
    specialties_table,
)
from telic.specialty.small_cells import SMALL_CELL, cell, shown

ROW = (
    "“row” counts the rows of the accesses table from 1; in a CSV file neither the header nor "
    "blank lines are rows."
)


def full_report(
    log: AccessLog,
    discovery: Discovery,
    *,
    snooping: Mapping[str, np.ndarray] | None = None,
    pipeline: str = CHOSEN,
    before: Findings | None = None,
    pseudonyms: Pseudonyms | None,
    seed: int = 0,
    threads: int = 1,
) -> tuple[Report, list[str]]:
    """Judge the alarms, recognise what was found by an SVM, and build the report.

    Parameters
    ----------
    log, discovery
    snooping : mapping of str to ndarray of int, optional
        As in `effect`.
    pipeline : str
        As in `recognise`.
    before : Findings, optional
        As in `judge`.
    pseudonyms : Pseudonyms or None
        None shows the log's own user ids.
    seed, threads : int

    Returns
    -------
    report : Report
    notes : list of str
        As in `recognise_found`.
    """
    care = care_of(log, discovery, before=before, seed=seed)
    alerts = judge(log, discovery, before=before, care=care)
    found, notes = recognise_found(log, discovery, pipeline=pipeline, seed=seed, threads=threads)
    report = specialty_report(
        log,
        discovery,
        alerts,
        effect(log, discovery, alerts, snooping),
        recognitions={k: one for (k, _), one in found.items()},
        pseudonyms=pseudonyms,
    )
    return report, notes


def specialty_report(
    log: AccessLog,
    discovery: Discovery,
    alerts: Alerts,
    counted: Effect,
    *,
    recognitions: Mapping[int, Recognition],
    pseudonyms: Pseudonyms | None,
    queue_lines: int = 100,
    explained_lines: int = 5,
) -> Report:
    """Build the report.

    Parameters
    ----------
    log, discovery, alerts, counted
        What `read_log`, `discover`, `judge` and `effect` gave.
    recognitions : mapping of int to Recognition
        For specialties without a listed code, by their place in the discovery: recognition of
        class "de facto" beside the core classes.
    pseudonyms : Pseudonyms or None
        None shows the log's own user ids.
    queue_lines : int
        Open alarms listed at the end, and explained ones after them.
    explained_lines : int
        Explained alarms listed with each specialty.
    """
    report = Report(
        "De facto specialties",
        lead="Specialties found in the access log, the evidence for each, and the alarms they "
        "explain. Nothing is closed automatically: this report orders work for a person.",
        contents=True,
        contents_after=2,
    )
    if log.simulated:
        report.note("Simulated: the hospital, its users and its accesses are invented.")
    _in_short(report, log, discovery, alerts, counted)
    report.section("What was found", new_page=True)
    report.table(specialties_table(log, discovery))
    if log.notes:
        dropped = [[note] for note in log.notes]
        report.table(Table("What was dropped or assumed", {"note": ""}, dropped))
    # One alarm for each user and explaining diagnosis: its repetitions would fill the tables.
    explained = alerts.queue("explained")
    cause = alerts.reason[explained] * np.int64(len(log.users)) + log.access_user[explained]
    explained = explained[np.sort(np.unique(cause, return_index=True)[1])]

    def table(accesses: np.ndarray, caption: str) -> None:
        described = list(lines(log, discovery, alerts, accesses, pseudonyms=pseudonyms))
        if described:
            report.table(queue_table(caption, described))

    for k, one in enumerate(discovery.specialties):
        _specialty(report, log, one, recognitions.get(k), pseudonyms)
        if pseudonyms and len(one.users) < SMALL_CELL:
            continue  # its users are not listed
        best = explained[alerts.specialty[explained] == k][::-1][:explained_lines]
        table(best, "Alarms it explains: the best covered, one for each user and diagnosis.")
    _mismatches(report, log, discovery)
    _alarms(report, log, counted)
    report.section("Open alarms", new_page=True)
    report.text(ROW)
    table(alerts.queue("open")[:queue_lines], f"The first {queue_lines}: least covered first.")
    report.section("Explained alarms", new_page=True)
    report.text(f"They stand behind every open one; nothing is closed. {ROW}")
    caption = f"The first {queue_lines}: least covered first, one for each user and diagnosis."
    table(explained[:queue_lines], caption)
    return report


def _specialty(
    report: Report,
    log: AccessLog,
    one: Specialty,
    recognition: Recognition | None,
    pseudonyms: Pseudonyms | None,
) -> None:
    code = one.listed_code
    report.section(f"Listed: {code}" if code else f"No listed code: {one.name}", new_page=True)
    named = (
        f"The listed code {code} names the group."
        if code
        else f"The listed code whose users overlap most is {one.nearest_code or 'none'}; it does "
        "not name the group."
    )
    named += f" {declaration(log, one)}."
    if one.evidence:
        named += (
            f" The practice explains {one.evidence.share:.0%} of what its median member sees, on "
            f"patients that did not form it; where patients are dealt at random "
            f"{one.evidence.by_chance:.0%}, {deviations_shown(one.evidence.deviations)} standard "
            "deviations less."
        )
    member = np.zeros(len(log.users), dtype=bool)
    member[one.users] = True
    patients = log.n_patients(member[log.access_user])
    report.text(
        f"{shown(len(one.users))} users opened records of {shown(patients)} "
        f"patients. {named} Stability: "
        f"{written(one.stability, '.2f')} over other runs, "
        f"{written(one.stability_sizes, '.2f')} with other sizes, "
        f"{written(one.stability_months, '.2f')} month by month."
    )
    if figure := lifts_figure(log, one):
        report.figure(
            figure,
            "Diagnoses these users access more often than everybody, with 95 % intervals: "
            "how far it hangs on single users.",
        )
    title = "Evidence: diagnoses these users access more often than everybody (lift)."
    rows = [[log.label(code), lift] for code, lift in one.diagnoses]
    report.table(Table(title, {"diagnosis": "", "lift": ".1f"}, rows))
    rows = [[name, count] for name, count in declared_codes(log, one).items() if count != 0]
    report.table(Table("What these users declare.", {"declared code": "", "users": ","}, rows))
    ids = [str(log.users[u]) for u in one.users]
    if pseudonyms and len(ids) < SMALL_CELL:
        report.text(f"Its users are not listed: there are fewer than {SMALL_CELL}.")
    else:
        names = sorted(pseudonyms(i) for i in ids) if pseudonyms else sorted(ids)
        report.table(Table("", {"users": ""}, [[", ".join(names)]]))
    if recognition is not None:
        _recognition(report, recognition)


def _added(counts: Sequence[int | str]) -> int | str:
    """Add up counts from what is shown of them, so that the sum tells no more than they do."""
    counts = [count for count in counts if count != 0] or [0]
    if len(counts) == 1:
        return counts[0]
    numbers = [count for count in counts if not isinstance(count, str)]
    return sum(numbers) if len(numbers) == len(counts) else "withheld"


def _recognition(report: Report, recognition: Recognition) -> None:
    core = [name for name in recognition.classes if name != DE_FACTO]
    percent = dict.fromkeys(("precision", "recall", "F1", "F1 in shuffled data"), ".3f")
    report.table(
        Table(
            "How well an SVM recognises the group beside declared codes",
            {"class": "", **percent},
            [
                [DE_FACTO, *recognition.shown(DE_FACTO), recognition.shuffled_f1],
                ["mean of declared codes", *recognition.mean_of(core), None],
                *([name, *recognition.shown(name), None] for name in core),
            ],
            note="5×2 cross-validation. In shuffled data: as many users, found where every access "
            "was moved to a random encounter and recognised alike.",
        )
    )
    report.text(how_sure(recognition))
    scores = recognition.pipeline_scores(DE_FACTO, core)
    note = (
        "Each training half (round and half) chooses one by cross-validation within itself, so "
        "that its test half has no say; the F1 above is that of the chosen ones."
    )
    table = pipelines_table("The same by pipeline", [one._asdict() for one in scores], note)
    report.table(table)
    tests = recognition.compare(DE_FACTO, core)
    title = "Difference in F1 from the mean of the declared codes"
    p_values = [[name, test.p_value] for name, test in tests.items()]
    report.table(Table(title, {"test": "", "p": "p"}, p_values))
    report.text(
        "The group was found in the same diagnoses it is recognised by, so its F1 counts only as "
        "far as it exceeds the one in shuffled data, and shows that the group is coherent, not "
        "that it is a specialty."
    )


def how_sure(recognition: Recognition) -> str:
    """Say how closely the group's F1 is known, and how many users that would take."""
    f1 = float(recognition.shown(DE_FACTO)[2])
    low, high = recognition.interval(DE_FACTO)
    needed, users = users_needed(f1), recognition.support[recognition.classes.index(DE_FACTO)]
    more = f" {needed} users would be needed to know it within ±{WITHIN}." if users < needed else ""
    return (
        f"By the number of its users, the group's F1 lies in [{low:.2f}, {high:.2f}] (a cautious "
        f"95 % interval).{more}"
    )


def _in_short(
    report: Report, log: AccessLog, discovery: Discovery, alerts: Alerts, counted: Effect
) -> None:
    """Two pages for a meeting."""
    report.section("In short")
    unlisted = [one for one in discovery.specialties if one.listed_code is None]
    cells = {name: written(value, ",") for name, value in counted.cells().items()}
    report.text(
        f"{len(discovery.specialties)} groups of users have a practice of their own; "
        f"{len(unlisted)} of them {'has' if len(unlisted) == 1 else 'have'} no code that names it"
        + (f": {'; '.join(one.name for one in unlisted)}." if unlisted else ".")
    )
    report.text(
        f"Of {len(log.access_user):,} accesses {cells['alerts']} raised an alarm, because the "
        "specialty that the user declares does not cover them, or because the user declares none. "
        f"What users practise explains {cells['explained_by_practice']} of them, and people they "
        f"work with {cells['explained_by_colleagues']} more; {cells['open']} stay open."
    )
    if discovery.specialties:
        figure, left_out = map_figure(log, discovery)
        more = f" {left_out} more stand behind." if left_out else ""
        report.figure(
            figure,
            "Who sees what: groups by the diagnoses that set them apart; the darker, the more "
            f"often than everybody. Grey: fewer than {SMALL_CELL} patients.{more}",
        )
    report.section("What changes", new_page=True)
    _months(report, log, alerts)
    _declared(report, _declared_rows(log, discovery))
    report.text(
        "To decide: which groups without a code should get one; whether users who practise one "
        "thing and declare another should be asked to correct it; who works through the open "
        "alarms, from the first of the queue on (telic specialty review). Nothing here proves "
        "that an access was right or wrong. The evidence follows."
    )


def _declared(report: Report, rows: list[list[Any]]) -> None:
    """Draw what each group's users declare; nothing of groups all of whose numbers are withheld."""
    some = [row for row in rows if any(isinstance(number, int) for number in row[2:])]
    if some:
        left = len(rows) - len(some)
        groups = "group" if left == 1 else "groups"
        more = f" Left out, because their numbers are small: {left} {groups}." if left else ""
        report.figure(declared_figure(some), f"What the users of each group declare.{more}")


def _declared_rows(log: AccessLog, discovery: Discovery) -> list[list[Any]]:
    """What the users of each specialty declare: name, users, it, another, none."""
    rows = []
    for one in discovery.specialties:
        declared = declared_codes(log, one)
        none = declared.pop(NONE_DECLARED)
        it = declared.pop(one.listed_code) if one.listed_code else None
        other = _added(list(declared.values()))
        rows.append([one.listed_code or one.name, cell(len(one.users)), it, other, none])
    return rows


def _mismatches(report: Report, log: AccessLog, discovery: Discovery) -> None:
    report.section("Declared against practised", new_page=True)
    rows = _declared_rows(log, discovery)
    numbers = ["users", "declare it", "declare another code", "declare none"]
    title = "Users by what they practise and what they declare"
    report.table(Table(title, {"practised": "", **dict.fromkeys(numbers, ",")}, rows))
    without = shown(int((discovery.cluster < 0).sum()))
    if any(len(one.users) < SMALL_CELL for one in discovery.specialties):
        without = "The other"  # their number would give a small specialty's away
    report.text(
        f"{without} users have no concentrated practice and are left alone. "
        f"“<{SMALL_CELL}”: a small cell; “withheld”: a count that would give one away."
    )


def _alarms(report: Report, log: AccessLog, counted: Effect) -> None:
    report.section("Alarms", new_page=True)
    report.text(
        "An access raises an alarm when the declared specialty covers none of the encounter's "
        "diagnoses; users without a declared specialty are covered for nothing, and their "
        "alarms are counted apart from those that a declared code does not cover."
    )
    report.table(alarms_table(counted, len(log.access_user)))
    if counted.snooping:
        report.table(snooping_table(counted.snooping))


def _hidden_months(log: AccessLog, still_open: np.ndarray, explained: np.ndarray) -> list[int]:
    """Return the months in which alarms concern too few patients, and those that hide them.

    What is left out can be had by subtraction from the counts of all months. So with these months
    go those of fewest alarms, until there are two and together they concern enough patients.
    """
    month, raised = log.month(), still_open | explained

    def few(mask: np.ndarray) -> bool:
        return 0 < log.n_patients(mask) < SMALL_CELL

    hidden: list[int] = []
    others: list[int] = []
    for one in np.unique(month):
        here = month == one
        is_few = few(still_open & here) or few(explained & here)
        (hidden if is_few else others).append(int(one))
    others.sort(key=lambda one: int((raised & (month == one)).sum()))
    totals = [mask for mask in (raised, still_open, explained) if not few(mask)]  # that are shown
    while others and hidden:
        together = np.isin(month, hidden)
        if len(hidden) > 1 and not any(few(mask & together) for mask in totals):
            break
        hidden.append(others.pop(0))
    return hidden


def _months(report: Report, log: AccessLog, alerts: Alerts) -> None:
    """Alarms per month, without months in which they concern too few patients."""
    month = log.month()
    explained = alerts.explained
    still_open = alerts.raised & ~explained
    counts = {
        int(one): [int((mask & (month == one)).sum()) for mask in (still_open, explained)]
        for one in np.unique(month)
    }
    hidden = _hidden_months(log, still_open, explained)
    months = [one for one in counts if one not in hidden]
    still, gone = ([counts[one][i] for one in months] for i in (0, 1))
    labels = [str(np.datetime64(one, "M")) for one in months]
    left_out = f" Left out: {len(hidden)} months with few patients." if hidden else ""
    before = [a + b for a, b in zip(still, gone, strict=True)]
    report.figure(
        months_figure(labels, before, still),
        f"Alarms per month, before and with what is known now.{left_out}",
    )
