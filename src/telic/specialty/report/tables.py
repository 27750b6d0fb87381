"""The tables of the compliance officer's report, which the commands show too."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from telic.report import Table
from telic.specialty.alarms.before_and_after import Caught, Effect, together
from telic.specialty.discovery.declared_codes import declaration
from telic.specialty.discovery.result import Discovery, Specialty
from telic.specialty.later_logs.carry import Carried
from telic.specialty.log.access_log import AccessLog
from telic.specialty.small_cells import cell

CAUGHT = {
    "planted": ",",
    "by chance": ",.0f",
    "caught before": ",",
    "caught now": ",",
    "lost": ",",
    "gained": ",",
    "points": "+.1f",
    "95 %": "[{:.1f}, {:.1f}]",
    "p": "p",
}
"""Columns of `caught_rows`, after the kind."""
BY_CHANCE = (
    "“By chance” is what a queue would hold that is as long, and drawn at random from all accesses."
)


def specialties_table(log: AccessLog, discovery: Discovery) -> Table:
    """Return the specialties that were found, with the evidence and how stable they are."""

    def row(one: Specialty) -> list[Any]:
        shown = one.evidence
        return [
            one.name,
            cell(len(one.users)),
            one.listed_code or "none",
            declaration(log, one),
            shown and shown.share,
            shown and shown.by_chance,
            shown and deviations_shown(shown.deviations),
            one.stability,
            one.stability_sizes,
            one.stability_months,
        ]

    return Table(
        "Specialties",
        {
            "specialty": "",
            "users": ",",
            "listed code": "",
            "declared": "",
            "share": ".2f",
            "by chance": ".2f",
            "deviations": "",
            "stability": ".2f",
            "other sizes": ".2f",
            "by month": ".2f",
        },
        [row(one) for one in discovery.specialties],
        note="Share: the practice's share in its median member's work, on patients that did not "
        "form its profile. By chance: that share where patients are dealt to users at random. "
        "Deviations: by how many standard deviations of such deals the share lies above. "
        "Stability: overlap (Jaccard) with the nearest cluster of other runs. Other sizes: the "
        "same where fewer or more clusters are looked for. By month: share of users who practise "
        "it more than anything else in a month.",
    )


def deviations_shown(deviations: float) -> str:
    """Return a number of standard deviations, of which hundreds say no more than one hundred."""
    return "> 100" if deviations > 100 else f"{deviations:.0f}"


def drift_table(carried: Carried) -> Table:
    """Return how the specialties of earlier findings hold on new patients."""
    rows = [
        [x.name, x.found, x.now, x.interval, cell(x.members), cell(x.folded_in), x.verdict]
        for x in carried.drift
    ]
    return Table(
        "The findings on patients that are new since",
        {
            "specialty": "",
            "share then": ".2f",
            "share now": ".2f",
            "95 %": "[{:.2f}, {:.2f}]",
            "members counted": ",",
            "folded in": ",",
            "verdict": "",
        },
        rows,
        note="Share: of the practice in its median member's work. The hospital's diagnoses moved "
        f"by {carried.mix_moved:.1%}; as many new patients would move them by about "
        f"{carried.mix_by_chance:.1%} by chance. Where a specialty is weaker, or many users or "
        "codes are new, discover anew.",
    )


def alarms_table(counted: Effect, accesses: int) -> Table:
    """Return the counts of alarms, before and after, as they may be shown."""
    number = counted.cells()
    return Table(
        "Alarms with and without de facto specialties",
        {"": "", "number": ","},
        [
            ["accesses", accesses],
            ["alarms", number["alerts"]],
            ["of these the declared code does not cover", number["uncovered_alerts"]],
            ["of these the user declares no code", number["undeclared_alerts"]],
            ["explained", number["explained"]],
            ["of these by a de facto specialty", number["explained_by_practice"]],
            ["of these by colleagues at the same record", number["explained_by_colleagues"]],
            ["stay open", number["open"]],
            ["alarms of specialties without a listed code", number["unlisted_alerts"]],
            ["of these explained", number["unlisted_explained"]],
        ],
    )


def snooping_table(kinds: Mapping[str, Caught]) -> Table:
    """Return the known snooping that is caught, before and now."""
    return Table(
        "Known snooping accesses in a queue of the open alarms' length, before and now",
        {"known snooping": "", **CAUGHT},
        caught_rows(kinds),
        note=f"{BY_CHANCE} Points of recall with their 95 % interval and the exact paired test.",
    )


def caught_rows(kinds: Mapping[str, Caught]) -> list[list[Any]]:
    """Return each kind of snooping, and all together, with the columns `CAUGHT`."""
    rows = []
    for kind, one in {**kinds, "together": together(kinds)}.items():
        points = one.points()
        interval = [points.low, points.high]
        rows.append([kind, *one, points.difference, interval, points.p_value])
    return rows


def queue_table(title: str, described: Iterable[Mapping[str, Any]]) -> Table:
    """Return accesses that `lines` described; their status stands there if it is not always one.

    What explains them is shown where `lines` said it.
    """
    described = list(described)
    found = {line["status"] for line in described}
    columns = {"row": "", "user": "", "declared": "", "practised": "", "diagnoses": ""}
    columns |= {"status": ""} if len(found) > 1 else {}
    said = all("because" in line for line in described)
    columns |= {"because": ""} if "explained" in found and said else {}
    columns |= {"lift": ".3f"} if "open" in found or not said else {}

    def cell_of(line: Mapping[str, Any], name: str) -> Any:
        if name == "diagnoses":
            return "; ".join(line[name])
        return (line[name] or "none") if name == "declared" else line[name]

    rows = [[cell_of(line, name) for name in columns] for line in described]
    return Table(title, columns, rows)


def recognition_table(facts: Sequence[Mapping[str, Any]]) -> Table:
    """Return what `recognition_facts` says: a row for each specialty and classifier."""
    keys = [
        "specialty",
        "classifier",
        "f1",
        "f1_interval",
        "users_needed",
        "shuffled_f1",
        "core_f1",
    ]
    return Table(
        "F1 of each specialty without a code",
        {
            "specialty": "",
            "classifier": "",
            "F1": ".3f",
            "95 %": "[{:.2f}, {:.2f}]",
            "users for ±.1": "",
            **dict.fromkeys(("in shuffled data", "mean of declared codes"), ".3f"),
        },
        [[[*one[key]] if key == "f1_interval" else one[key] for key in keys] for one in facts],
        note="95 %: Wilson's interval by the number of users; users for ±.1: how many it would "
        "take to know this F1 within ±.1. In shuffled data: as many users found where every access "
        "was moved to a random encounter; what looking for a group alone gives.",
    )


def pipelines_table(title: str, pipelines: Iterable[Mapping[str, Any]], note: str = "") -> Table:
    """Return a specialty's scores by pipeline, and the training halves that chose each."""
    return Table(
        title,
        {"pipeline": "", "F1": ".3f", "mean of declared codes": ".3f", "chosen in": ""},
        [
            [one["pipeline"], one["f1"], one["core_f1"], ", ".join(one["chosen_in"]) or None]
            for one in pipelines
        ],
        note,
    )
