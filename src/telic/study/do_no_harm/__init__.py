"""Do no harm: users who change after fitting, the running check, and how often the gate opens."""

from telic.completion.learning.do_no_harm import LEVEL
from telic.errors import InputError
from telic.report import Report
from telic.study.do_no_harm.experiments import (
    COMPOSITIONS,
    FAMILY,
    GRID,
    KEPT,
    LOG,
    RULE,
    Case,
    changed,
    choose,
    openings,
    openings_by_chance,
)
from telic.study.do_no_harm.tables import changes_table, openings_table, verdicts_table
from telic.study.steps import Steps

PLACES = 2
"""Seed of the logs over the world's places, of which the choice saw none."""


def study(
    steps: Steps, *, seeds: int = 2, users: int = 24, place_users: int = 40, fits: int = 16
) -> Report:
    """Choose the running check's rule on one half of a family of logs and report on the other.

    Parameters
    ----------
    steps : Steps
    seeds : int
        Of made-up phrases in each half.
    users, place_users : int
        Of each log over made-up phrases, and over the world's places.
    fits : int
        Logs of each setting on which the gate is fitted.
    """
    if min(seeds, fits) < 1 or min(users, place_users) < 2:
        raise InputError(
            f"seeds {seeds}, fits {fits}, users {users} and {place_users}: expected at least one "
            "seed and fit, and two users."
        )

    def family(catalogue: str, own: range, people: int) -> list[Case]:
        return [
            Case.of(
                steps(
                    f"{before}, then {after}, {catalogue} {seed}",
                    changed,
                    catalogue=catalogue,
                    before=before,
                    after=after,
                    seed=seed,
                    users=people,
                )
            )
            for seed in own
            for before, after in FAMILY
        ]

    chosen = choose(family("letters", range(seeds), users))
    letters = family("letters", range(seeds, 2 * seeds), users)
    places = family("places", range(PLACES, PLACES + 1), place_users)
    train, valid, same, after = COMPOSITIONS
    report = Report(
        "Do no harm, after fitting too",
        lead="The gain of a composition is its mean reciprocal rank over all keystrokes less "
        "that of the static order, in points. It is measured after the users change (see below), "
        "where the fitted gate is open. adaqac-unp and adaqac-batch keep their weights; "
        "adaqac-online goes on learning.",
    )
    report.note(
        f"The people are simulated (telic.simulate.simulate_change). Each user has {train} "
        f"compositions for training and {valid} for validation, and is served {same} more. Then "
        f"the user changes for {after} compositions: stops looking at lists, looks as calibrated "
        "typists do, reads but types on, or comes to want other phrases. Users who read but type "
        "on look for long at what they want, the opposite of what was learned."
    )
    report.section("The rule, chosen on one half of the simulated logs")
    report.text(
        f"The rule was chosen among {len(GRID)} on logs from {seeds} seeds of made-up phrases. "
        f"Among the rules that keep {KEPT:.0%} of the gains it loses least: forgetting "
        f"{chosen.forgetting}, margin {chosen.margin}, budget {chosen.budget}, allowance "
        f"{chosen.allowance}. Whatever a user does, n submissions in a row lose at most "
        f"{chosen.budget} + 1 + {chosen.allowance} n in total."
    )
    if chosen != RULE:
        report.note(f"telic.completion serves another one, which the tables judge: {RULE}.")
    report.section("The other half: other seeds of made-up phrases")
    report.table(verdicts_table(letters))
    report.table(changes_table(letters))
    report.section("The other half: the world's places, a catalogue that the choice never saw")
    report.table(verdicts_table(places))
    report.table(changes_table(places))
    report.section("How often the gate opens")
    report.text(
        "For each setting adaqac-unp, adaqac-batch and adaqac-online are fitted on "
        f"{fits} logs, in which each user has {LOG} compositions. The gate has one test at .025 "
        "for each range (the earlier rule), or Holm's procedure at the family-wise level "
        f"{LEVEL}. Gains drawn at random have mean zero in every range."
    )
    found = {"draws at random": steps("gates by chance", openings_by_chance, users=users)}
    for setting in ("inattentive", "calibrated", "readers"):
        found[setting] = [
            counts
            for seed in range(fits)
            for counts in steps(
                f"gates of {setting}, seed {seed}",
                openings,
                setting=setting,
                seed=seed,
                users=users,
            )
        ]
    report.table(openings_table(found))
    return report
