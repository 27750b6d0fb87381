"""Chapter 6's tables, the published figures beside ours."""

from collections.abc import Sequence
from math import isnan, nan
from typing import Any

from telic.report import Table
from telic.simulate.hospital_practices import HIDDEN_SIZES
from telic.specialty.alarms.before_and_after import Caught, together
from telic.specialty.recognition.classifiers import CHOSEN, PRINTED
from telic.specialty.recognition.recognise import MIN_CLASS
from telic.specialty.recognition.shuffled_control import DE_FACTO
from telic.specialty.report.tables import BY_CHANCE, CAUGHT, caught_rows
from telic.study.chapter6.published import (
    PUBLISHED_CONTRAST,
    PUBLISHED_COUNTS,
    PUBLISHED_RECORDS,
    recognition_scores,
)

Found = dict[str, Any]
PERCENT = "100 .1f"
SAID = {CHOSEN: "chosen in training halves", PRINTED: "as printed"}
ENOUGH = 0.8
"""F1 from which a hidden specialty counts as found."""
MEASURES = ("precision", "recall", "F1")
MEAN = "mean of core classes"


def counts_table(counts: dict[str, int]) -> Table:
    """Return Table 6.1 and the number of CCS codes."""
    return Table(
        "Table 6.1 and the CCS codes of Section 6.3 (calibration)",
        {"": "", "simulated": ",", "published": ","},
        [[name, count, PUBLISHED_COUNTS[name]] for name, count in counts.items()],
    )


def records_table(diagnoses: dict[str, int]) -> Table:
    """Return Table 6.2."""
    rows: list[list[str | int | None]] = []
    for what, published in PUBLISHED_RECORDS.items():
        ours = diagnoses if what == "diagnoses" else {}
        rows.append([what])
        for view in diagnoses:
            rows[-1] += [ours.get(view), published[view]]
    columns = [f"{view}, {whose}" for view in diagnoses for whose in ("simulated", "published")]
    return Table(
        "Table 6.2: the patient records",
        {"": ""} | dict.fromkeys(columns, ","),
        rows,
        "The simulated hospital has no job titles, locations, services or procedures, and its "
        "diagnoses are groups from the start, those that users opened; the published ones are "
        "counted before they were grouped.",
    )


def contrast_table(found: Found) -> Table:
    """Return the F1 of Section 6.2."""
    rows = [
        [
            method if method == "Naive" else f"{method}, {SAID.get(pipeline, pipeline)}",
            name,
            f1,
            PUBLISHED_CONTRAST[method][name] / 100,
        ]
        for method, pipeline, name, f1 in found["f1"]
    ]
    return Table(
        f"Section 6.2 (calibration); {found['dropped']} classes under {MIN_CLASS} users dropped",
        {"classifier": "", "class": "", "F1 simulated": "100 .2f", "F1 published": "100 .2f"},
        rows,
    )


def urologists_table(topics: dict[str, list[str]]) -> Table:
    """Return Table 6.3."""
    return Table(
        "Table 6.3: the topic nearest to the urologists",
        dict.fromkeys(topics, ""),
        [list(row) for row in zip(*topics.values(), strict=True)],
    )


def unlisted_table(title: str, clusters: list[Found]) -> Table:
    """Return one of Tables 6.4 to 6.6."""
    return Table.of(
        f"{title}: clusters without a listed code",
        [one | {"top": "; ".join(one["top"])} for one in clusters],
        {
            "users": ("users", ","),
            "top 10": ("top", ""),
            "stability": ("stability", ".2f"),
            "other sizes": ("stability_sizes", ".2f"),
            "by month": ("stability_months", ".2f"),
        },
    )


def hidden_table(found: dict[str, list[Found]]) -> Table:
    """Return the F1 of each discovery's nearest cluster to each hidden specialty."""
    columns = {
        "discovery": "",
        "hidden specialty": "",
        "F1": ".3f",
        "listed code of the cluster": "",
    }
    return Table(
        "Hidden specialties against the simulator's truth (fine-grained: users in that view)",
        columns,
        [
            [name, row["hidden"], row["f1"], row["listed"]]
            for name, rows in found.items()
            for row in rows
        ],
    )


def paths_table(found: dict[str, Found]) -> Table:
    """Return the qualities of PathSelClus's paths in each view."""
    return Table(
        "PathSelClus: path quality α, and α against a copy with permuted rows (θ held fixed)",
        {
            "view": "",
            "users in view": ",",
            "path": "",
            "share of Σα": ".2f",
            "against permuted": ".2f",
        },
        [
            [
                view,
                one["details"]["users_in_view"],
                path,
                share,
                one["details"]["path_contrast"][path],
            ]
            for view, one in found.items()
            for path, share in one["details"]["path_share"].items()
        ],
    )


def recognition_tables(name: str, found: Found) -> list[Table]:
    """Return one of Tables 6.7 to 6.9: scores by class, tests, pipelines."""
    classifiers = found["classifiers"]
    published = recognition_scores(name)
    core = [label for label in next(iter(classifiers.values()))["scores"] if label != DE_FACTO]
    scores = Table(
        f"{name}: recognition of “{found['name']}” ({found['users']} users)",
        {
            "class": "",
            "classifier": "",
            **dict.fromkeys(MEASURES, PERCENT),
            **{f"published {measure}": PERCENT for measure in MEASURES},
            "F1 in shuffled data": PERCENT,
        },
        [
            [
                label,
                classifier,
                *(one["core"] if label == MEAN else one["scores"][label]),
                *(
                    None if isnan(value) else value / 100
                    for value in published.get((label, place), [nan] * 3)
                ),
                one["shuffled_f1"] if label == DE_FACTO else None,
            ]
            for label in (DE_FACTO, MEAN, *core)
            for place, (classifier, one) in enumerate(classifiers.items())
        ],
        note="In shuffled data: as many users of largest share of a topic.",
    )
    tests = next(iter(classifiers.values()))["p_values"]
    differences = Table(
        f"{name}: core macro-F1 and p-values of the difference",
        {"classifier": "", "core macro-F1": "100 .2f", **dict.fromkeys(tests, "p")},
        [[c, one["core_macro_f1"], *one["p_values"].values()] for c, one in classifiers.items()],
    )
    pipelines = Table(
        f"{name}: F1 by pipeline",
        {
            "classifier": "",
            "pipeline": "",
            "F1 de facto": PERCENT,
            "F1 core": PERCENT,
            "core macro-F1": PERCENT,
            "chosen in": "",
        },
        [
            [
                c,
                p["pipeline"],
                p["f1"],
                p["core_f1"],
                p["core_macro_f1"],
                ", ".join(p["chosen_in"]) or None,
            ]
            for c, one in classifiers.items()
            for p in one["pipelines"]
        ],
    )
    return [scores, differences, pipelines]


def shuffled_table(found: Found) -> Table:
    """Return what looking for groups finds where there is none."""
    return Table(
        "Control: clusters found in shuffled data (every access moved to a random encounter)",
        {"users of largest share of a topic": "", "SVM F1": PERCENT},
        [[int(size), f1] for size, f1 in found["f1"].items()],
        note=f"Users in clusters of concentrated practice: {found['found']}.",
    )


def alarms_table(counted: Found) -> Table:
    """Return the alarms with and without de facto specialties."""

    def row(words: str, alarms: str, explained: str) -> list[Any]:
        return [words, *_share(counted[alarms], counted[explained])]

    return Table(
        "Alarms with and without de facto specialties",
        {"alarms": "", "number": ",", "explained": ",", "share explained": ".1%"},
        [
            row("all", "alerts", "explained"),
            row("of users of unlisted specialties", "unlisted_alerts", "unlisted_explained"),
            row(
                "planted: of true hidden users, found or missed, on their encounters",
                "planted",
                "planted_explained",
            ),
        ],
    )


def _share(alarms: int, explained: int) -> list[Any]:
    return [alarms, explained, explained / max(alarms, 1)]


def snooping_table(counted: Found) -> Table:
    """Return the planted snooping in queues of equal length."""
    return Table(
        "Planted snooping in queues of equal length, without and with de facto specialties",
        {"snooping": "", **CAUGHT},
        caught_rows(_kinds(counted)),
        note=f"{BY_CHANCE} Nobody works in a team here, so that little tells care from snooping.",
    )


def dblp_table(areas: list[Found]) -> Table:
    """Return what is found of the research areas left without seeds."""
    columns = {
        "area left unseeded": ("area", ""),
        "authors": ("authors", ","),
        "PathSelClus F1": ("seeded", ".3f"),
        "LDA F1": ("lda", ".3f"),
        "share of A–P–T in Σα": ("share", ".2f"),
    }
    return Table.of("Held-out discovery on DBLP four-area (real data)", areas, columns)


def class_sizes_table(sizes: list[int]) -> Table:
    """Return some points of Figure 6.1."""
    shown = [rank for rank in (1, 2, 5, 10, 20, 50, 100) if rank <= len(sizes)]
    columns = {"rank of the taxonomy code": "", "users": ","}
    return Table("Users per taxonomy code", columns, [[rank, sizes[rank - 1]] for rank in shown])


def recovery_tables(name: str, seeds: Sequence[Found]) -> list[Table]:
    """Return what is found seed by seed, and the snooping that stays caught, with sums."""

    def total(key: str) -> int:
        return sum(one[key] for one in seeds)

    rows = [
        [one["seed"], *one["f1"].values(), *_share(one["planted"], one["planted_explained"])]
        for one in seeds
    ]
    reached = [sum(one["f1"][hidden] >= ENOUGH for one in seeds) for hidden in HIDDEN_SIZES]
    said = [f"{n} of {len(seeds)} ≥ .8" for n in reached]
    rows.append(["together", *said, *_share(total("planted"), total("planted_explained"))])
    sums = {
        kind: together({str(one["seed"]): _kinds(one)[kind] for one in seeds})
        for kind in seeds[0]["snooping"]
    }
    by_seed = [(one["seed"], _kinds(one)) for one in seeds] + [("together", sums)]
    return [
        Table(
            f"Recovery by {name}",
            {
                "seed": "",
                **{f"F1 {hidden}": ".3f" for hidden in HIDDEN_SIZES},
                "planted alarms": ",",
                "explained": ",",
                "share": ".1%",
            },
            rows,
        ),
        Table(
            f"Snooping caught at equal queue length, by {name}",
            {"seed": "", "snooping": "", **CAUGHT},
            [[seed, *row] for seed, kinds in by_seed for row in caught_rows(kinds)],
        ),
    ]


def _kinds(counted: Found) -> dict[str, Caught]:
    return {kind: Caught(*one) for kind, one in counted["snooping"].items()}


def diagnosis_table(scale: float, found: dict[str, Found]) -> Table:
    """Return what PathSelClus's results rest on."""
    paths = list(dict.fromkeys(path for one in found.values() for path in one["ratios"]))
    columns = {
        "": "",
        **{f"F1 {hidden}": ".3f" for hidden in HIDDEN_SIZES},
        f"in free clusters, of {len(HIDDEN_SIZES)}": "",
        "J": ",.0f",
        "largest share": ".2f",
        **{f"α ratio of {path}": ".2f" for path in paths},
    }
    return Table(
        f"What PathSelClus rests on (scale {scale:g}, seed 0 unless said; F1 among users in view)",
        columns,
        [
            [
                name,
                *one["f1"].values(),
                one["in_free"],
                one["objective"],
                one["largest_share"],
                *(one["ratios"].get(path) for path in paths),
            ]
            for name, one in found.items()
        ],
    )


def knob_table(found: list[Found]) -> Table:
    """Return Section 6.2 by the simulator's surgical tilt."""
    classes = [f"{c}, {name}" for c in ("Naive", "SVM") for name in ("Urology", "Anesthesiology")]
    columns = {
        "scale": "g",
        "surgical tilt": "g",
        **dict.fromkeys(classes, "100 .2f"),
        "diagnoses a user has opened, of all": ".0%",
    }
    rows = [[one["scale"], one["tilt"], *one["f1"], one["opened"]] for one in found]
    return Table("Section 6.2 by the simulator's surgical tilt (seed 0; F1)", columns, rows)
