"""Write docs/results-do-no-harm.md: users who change, the running check, the gate's level.

Run it with `.venv/bin/python scripts/results_do_no_harm.py`; it takes some minutes.
"""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from telic.simulate import geonames_catalogue
from telic.study import do_no_harm as study

OUT = Path(__file__).parent.parent / "docs" / "results-do-no-harm.md"
CHOICE, REPORT = (0, 1), (2, 3)
"""Seeds of the half on which the rule is chosen and of the half that is reported."""
PLACES = 2
"""Seed of the logs over the world's places, of which the choice saw none."""


def markdown(columns: Sequence[str], rows: Sequence[Sequence]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def points(value: float) -> str:
    return f"{100 * value:+.2f}".replace("-", "−")


def interval(row: dict, name: str) -> str:
    return f"{points(row[name])} ({points(row[name + '_low'])} … {points(row[name + '_high'])})"


def table(cases: list[study.Case]) -> str:
    columns = (
        "Before", "After", "Model", "Without the check", "With it", "Held",
        "Worst stretch without", "With it",
    )  # fmt: skip
    return markdown(
        columns,
        [
            [
                row["before"], row["after"], row["model"], interval(row, "gain"),
                interval(row, "checked"), f"{100 * row['held']:.0f} %", f"{row['worst']:.2f}",
                f"{row['worst_checked']:.2f}",
            ]
            for row in study.rows(cases)
            if row["gain"] or row["worst"]
        ],
    )  # fmt: skip


def verdicts(cases: list[study.Case]) -> list[list[str]]:
    return [
        [
            name,
            f"{100 * verdict.kept:.1f} %",
            f"{100 * verdict.lost:.2f}",
            f"{100 * verdict.most_lost:.2f}",
        ]
        for name, verdict in (
            ("no check", study.judge(cases, None)),
            ("running check", study.judge(cases, study.RULE)),
        )
    ]


def main():
    tell = Console(stderr=True).print
    chosen = study.choose(study.family(study.letters_catalogue, CHOICE, progress=tell))
    if chosen != study.RULE:
        raise SystemExit(f"the choice is {chosen}, telic.completion.harm has {study.RULE}")
    letters = study.family(study.letters_catalogue, REPORT, progress=tell)
    catalogue = geonames_catalogue()
    places = study.family(lambda seed: catalogue, [PLACES], users=40, progress=tell)
    train, valid, same, changed = study.COMPOSITIONS
    openings = study.openings(study.letters_catalogue, progress=tell)
    parts = [
        "# Do no harm, after fitting too",
        "Written by `scripts/results_do_no_harm.py`; do not edit. **The people are simulated** "
        f"(`telic.simulate.simulate_change`). Each user has {train} compositions for training and "
        f"{valid} for validation, is served {same} more, and then changes for {changed}: stops "
        "looking at lists, looks as calibrated typists do, reads but types on (so that what was "
        "looked at for long is what is wanted, the opposite of what was learned), or comes to want "
        "other phrases. Gains are points of mean reciprocal rank over the static order, the mean "
        "over a composition's keystrokes, after the change, where the fitted gate is open. "
        "adaqac-unp and adaqac-batch keep their weights, adaqac-online goes on learning.",
        "## The rule, chosen on one half of the family",
        f"Of {len(study.GRID)} rules, the one that loses least among those that keep "
        f"{100 * study.KEPT:.0f} % of the gains, on {len(CHOICE)} seeds of made-up phrases: "
        f"forgetting {chosen.forgetting}, margin {chosen.margin}, budget {chosen.budget}, "
        f"allowance {chosen.allowance} (`telic.completion.harm`). Whatever a user does, n "
        f"submissions in a row lose at most {chosen.budget} + 1 + {chosen.allowance} n in total.",
        "## The other half: other seeds of made-up phrases",
        "*Kept*: of the gains of cases that gain; *lost*: points, mean of the cases that lose, and "
        "of the worst of them.",
        markdown(("", "Kept", "Lost", "Worst case"), verdicts(letters)),
        "Intervals are 95 % over users. *Held*: submissions whose gain or loss the check kept away."
        " *Worst stretch*: the largest sum that any user lost over any stretch of submissions, in "
        "reciprocal rank. Where the fitted gate is closed for everybody there is no row.",
        table(letters),
        "## The other half: the world's places, a catalogue that the choice never saw",
        markdown(("", "Kept", "Lost", "Worst case"), verdicts(places)),
        table(places),
        "## How often the gate opens",
        f"{study.FITS} logs of a setting, each user with {study.LOG} compositions; share of fits "
        "(adaqac-unp, adaqac-batch, adaqac-online) in which any range of prefix length opens, and "
        "mean number of ranges, with one test at .025 for each range (as it was) and with Holm's "
        f"procedure at the family-wise level {study.harm.LEVEL}. Gains drawn at random have mean "
        "zero in every range.",
        markdown(
            ("", "Any, each range alone", "Any, Holm", "Ranges, each alone", "Ranges, Holm"),
            [
                [
                    row["setting"],
                    *(f"{row[name]:.3f}" for name in ("any_single", "any_holm")),
                    *(f"{row[name]:.2f}" for name in ("ranges_single", "ranges_holm")),
                ]
                for row in openings
            ],
        ),
    ]
    OUT.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
