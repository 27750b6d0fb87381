"""The compliance officer's report: one page per specialty, then the queue of alarms."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from telic.report import Report
from telic.specialty.access import AccessLog
from telic.specialty.control import DE_FACTO
from telic.specialty.discovery import Discovery, Specialty, as_share
from telic.specialty.effect import Effect, together
from telic.specialty.explain import Alerts, Pseudonyms, lines
from telic.specialty.recognise import Recognition, present_core
from telic.specialty.small_cells import SMALL_CELL, shown, shown_parts

ROW = (
    "“row” counts the rows of the accesses table from 1; in a CSV file neither the header nor "
    "blank lines are rows."
)


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
    )
    if log.simulated:
        report.note("Simulated: the hospital, its users and its accesses are invented.")
    report.section("What was found")
    report.table(
        ["specialty", "users", "listed code", "stability", "other sizes", "by month"],
        [
            [
                one.name,
                shown(len(one.users)),
                one.listed_code or "none",
                as_share(one.stability),
                as_share(one.stability_sizes),
                as_share(one.stability_months),
            ]
            for one in discovery.specialties
        ],
        caption="Stability: overlap (Jaccard) with the nearest cluster of other runs. Other sizes: "
        "the same where fewer or more clusters are looked for. By month: share of users who "
        "practise it more than anything else in a month.",
    )
    if log.notes:
        report.table(["what was dropped or assumed"], [[note] for note in log.notes])
    # One alarm for each user and explaining diagnosis: its repetitions would fill the tables.
    explained = alerts.queue("explained")
    cause = alerts.reason[explained] * np.int64(len(log.users)) + log.access_user[explained]
    explained = explained[np.sort(np.unique(cause, return_index=True)[1])]

    def table(accesses: np.ndarray, caption: str) -> None:
        described = list(lines(log, discovery, alerts, accesses, pseudonyms=pseudonyms))
        if described:
            _alarm_table(report, described, caption)

    for k, one in enumerate(discovery.specialties):
        _specialty(report, log, one, recognitions.get(k), pseudonyms)
        if pseudonyms and len(one.users) < SMALL_CELL:
            continue  # its users are not listed
        best = explained[alerts.specialty[explained] == k][::-1][:explained_lines]
        table(best, "Alarms it explains: the best covered, one for each user and diagnosis.")
    _mismatches(report, log, discovery)
    _alarms(report, log, alerts, counted)
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
    member = np.zeros(len(log.users), dtype=bool)
    member[one.users] = True
    patients = log.n_patients(member[log.access_user])
    report.text(
        f"{shown(len(one.users))} users opened records of {shown(patients)} "
        f"patients. {named} Stability: "
        f"{as_share(one.stability)} over other runs, {as_share(one.stability_sizes)} with other "
        f"sizes, {as_share(one.stability_months)} month by month."
    )
    report.table(
        ["diagnosis", "lift"],
        [[log.label(code), f"{lift:.1f}"] for code, lift in one.diagnoses],
        caption="Evidence: diagnoses these users access more often than everybody (lift).",
    )
    rows = [[name, text] for name, text in declared_codes(log, one).items() if text != "0"]
    report.table(["declared code", "users"], rows, caption="What these users declare.")
    ids = [str(log.users[u]) for u in one.users]
    if pseudonyms and len(ids) < SMALL_CELL:
        report.text(f"Its users are not listed: there are fewer than {SMALL_CELL}.")
    else:
        names = sorted(pseudonyms(i) for i in ids) if pseudonyms else sorted(ids)
        report.table(["users"], [[", ".join(names)]])
    if recognition is not None:
        _recognition(report, recognition)


NONE_DECLARED = "none declared"
SMALL_CODES = f"other codes, fewer than {SMALL_CELL} users each"


def declared_codes(log: AccessLog, one: Specialty) -> dict[str, str]:
    """What a specialty's users declare, and how many, as it may be shown.

    The code that names the specialty comes first, then the frequent ones, the rest and none.
    """
    declared = log.taxonomy[one.users]
    codes, counts = np.unique(declared[declared != ""], return_counts=True)
    size = {str(codes[i]): int(counts[i]) for i in np.argsort(-counts, kind="stable")}
    listed = one.listed_code
    numbers = {listed: size.pop(listed, 0)} if listed else {}
    numbers |= {code: n for code, n in size.items() if n >= SMALL_CELL}
    numbers[SMALL_CODES] = sum(n for n in size.values() if n < SMALL_CELL)
    numbers[NONE_DECLARED] = int((declared == "").sum())
    return dict(zip(numbers, shown_parts(list(numbers.values())), strict=True))


def _added(texts: list[str]) -> str:
    """Write a sum of counts from what is shown of them, so that it tells no more than they do."""
    texts = [text for text in texts if text != "0"] or ["0"]
    if len(texts) == 1:
        return texts[0]
    numbers = [text.replace(",", "") for text in texts]
    return f"{sum(map(int, numbers)):,}" if all(n.isdigit() for n in numbers) else "withheld"


def _recognition(report: Report, recognition: Recognition) -> None:
    core = present_core(np.repeat(recognition.classes, recognition.support))
    rows = [
        [name, *(f"{100 * value:.1f}" for value in recognition.of(name)), "–"]
        for name in [DE_FACTO, *core]
    ]
    if recognition.shuffled_f1 is not None:
        rows[0][-1] = f"{100 * recognition.shuffled_f1:.1f}"
    mean = recognition.mean_of(core)
    rows.insert(1, ["mean of core classes", *(f"{100 * value:.1f}" for value in mean), "–"])
    report.table(
        ["class", "precision", "recall", "F1", "F1 in shuffled data"],
        rows,
        caption="How well an SVM recognises the group beside the core classes (5×2 "
        "cross-validation, percent). In shuffled data: as many users, found where every access "
        "was moved to a random encounter and recognised alike.",
    )
    report.table(
        ["pipeline", "F1", "mean of core classes", "chosen in"],
        [
            [
                one.pipeline,
                f"{100 * one.f1:.1f}",
                f"{100 * one.core_f1:.1f}",
                ", ".join(one.chosen_in) or "–",
            ]
            for one in recognition.pipeline_scores(DE_FACTO, core)
        ],
        caption="The same by pipeline. Each training half (round and half) chooses one by "
        "cross-validation within itself, so that its test half has no say; the F1 above is that of "
        "the chosen ones.",
    )
    tests = recognition.compare(DE_FACTO, core)
    report.text(
        "Difference in F1 from the mean of the core classes, p-values: "
        + "; ".join(f"{name} {test.p_text()}" for name, test in tests.items())
        + ". The group was found in the same diagnoses it is recognised by, so its F1 counts only "
        "as far as it exceeds the one in shuffled data, and shows that the group is coherent, not "
        "that it is a specialty."
    )


def _mismatches(report: Report, log: AccessLog, discovery: Discovery) -> None:
    report.section("Declared against practised", new_page=True)
    rows = []
    for one in discovery.specialties:
        declared = declared_codes(log, one)
        none = declared.pop(NONE_DECLARED)
        it = declared.pop(one.listed_code) if one.listed_code else "–"
        other = _added(list(declared.values()))
        rows.append([one.listed_code or one.name, shown(len(one.users)), it, other, none])
    report.table(["practised", "users", "declare it", "declare another code", "declare none"], rows)
    without = shown(int((discovery.cluster < 0).sum()))
    if any(len(one.users) < SMALL_CELL for one in discovery.specialties):
        without = "The other"  # their number would give a small specialty's away
    report.text(
        f"{without} users have no concentrated practice and are left alone. "
        f"“<{SMALL_CELL}”: a small cell; “withheld”: a count that would give one away."
    )


def _alarms(report: Report, log: AccessLog, alerts: Alerts, counted: Effect) -> None:
    report.section("Alarms", new_page=True)
    report.text(
        "An access raises an alarm when the declared specialty covers none of the encounter's "
        "diagnoses; users without a declared specialty are covered for nothing, and their "
        "alarms are counted apart from those that a declared code does not cover."
    )
    number = counted.texts()
    rows = [
        ["accesses", f"{len(log.access_user):,}"],
        ["alarms", number["alerts"]],
        ["of these the declared code does not cover", number["uncovered_alerts"]],
        ["of these the user declares no code", number["undeclared_alerts"]],
        ["explained by a de facto specialty", number["explained"]],
        ["stay open", number["open"]],
        ["alarms of specialties without a listed code", number["unlisted_alerts"]],
        ["of these explained", number["unlisted_explained"]],
    ]
    report.table(["", "number"], rows, caption="Alarms with and without de facto specialties")
    if counted.snooping:
        kinds = {**counted.snooping, "together": together(counted.snooping)}
        report.table(
            ["known snooping", "accesses", "caught before", "now", "lost", "gained", "points"],
            [[kind, *one, one.text()] for kind, one in kinds.items()],
            caption="Known snooping accesses in a queue of the open alarms' length, before and "
            "now; points of recall with their 95 % interval and the exact paired test.",
        )
    _months(report, log, alerts)


def _alarm_table(report: Report, described: list[dict[str, object]], caption: str) -> None:
    explained = described[0]["status"] == "explained"
    report.table(
        ["row", "user", "declared", "practised", "diagnoses", "because" if explained else "lift"],
        [
            [
                line["row"],
                line["user"],
                line["declared"] or "none",
                line["practised"] or "–",
                "; ".join(line["diagnoses"]),  # type: ignore[arg-type]
                line["because"] if explained else line["lift"],
            ]
            for line in described
        ],
        caption=caption,
    )


def _months(report: Report, log: AccessLog, alerts: Alerts) -> None:
    """Alarms per month, without months in which they concern too few patients."""
    month = log.month()
    counts = {}
    hidden = []
    explained = alerts.explained
    still_open = alerts.raised & ~explained
    for one in np.unique(month):
        masks = [mask & (month == one) for mask in (still_open, explained)]
        counts[int(one)] = [int(mask.sum()) for mask in masks]
        if any(0 < log.n_patients(mask) < SMALL_CELL for mask in masks):
            hidden.append(int(one))
    if len(hidden) == 1 and len(counts) > 1:  # the others' sum would give it away
        hidden.append(min(counts.keys() - hidden, key=lambda m: sum(counts[m])))
    months = [one for one in counts if one not in hidden]
    still, gone = ([counts[one][i] for one in months] for i in (0, 1))
    figure = Figure(figsize=(7, 2.6))
    axes = figure.subplots()
    labels = [str(np.datetime64(one, "M")) for one in months]
    axes.bar(labels, still, color="#2456c5", label="open")
    axes.bar(labels, gone, bottom=still, color="#b9c9ee", label="explained")
    axes.tick_params(axis="x", rotation=60)
    axes.set_ylabel("alarms")
    axes.legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
    left_out = f" Left out: {len(hidden)} months with few patients." if hidden else ""
    report.figure(figure, f"Alarms per month: open, and explained by a specialty.{left_out}")
