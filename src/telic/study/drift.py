"""A year of change: what is lost between two fits, and what online learning makes up for."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from telic.completion.box.completer import Completer
from telic.completion.box.user_state import UserState
from telic.completion.engine.folding import fold
from telic.completion.fit.from_searches import completer_of_searches, fit_signals
from telic.completion.learning.replayed_log import TEST, TRAIN, VALID
from telic.completion.signals import Searches
from telic.completion.signals.log_split import TESTED
from telic.data.queries import QueryLog
from telic.errors import InputError
from telic.report import Report, Table
from telic.simulate import SETTINGS, simulated_replay
from telic.simulate.changing_people import Stage, simulate_stages
from telic.simulate.searchers import BEGIN, Causes, searchers
from telic.study.do_no_harm.experiments import Tested, checked, letters_catalogue, tested_gains
from telic.study.steps import SPREAD, Steps, each_log, spread

DAY = 86_400 * 1_000_000
NIGHTS = tuple(range(90, 365, 28))
"""Days of the year after which the box is fitted; the day after each is tested."""
OF_HABIT = Causes(habit=0.5, refine=0.05, sibling=0.05, associated=0.05, repeat=0.05)
OF_SESSION = Causes(habit=0.05, refine=0.3, sibling=0.2, associated=0.2, repeat=0.15)
WORLDS: dict[str, dict[str, Any]] = {
    "nothing changes": {},
    "popularity moves": {"moves": 1.5},
    "habits fade, sessions grow": {"causes": OF_HABIT, "at_end": OF_SESSION},
    "both": {"causes": OF_HABIT, "at_end": OF_SESSION, "moves": 1.5},
}
"""What `telic.simulate.searchers.searchers` is told; fixed before any result was looked at."""
ONCE, KEPT, MONTHLY, NIGHTLY = (
    "fitted once",
    "counts of each night, weights kept",
    "fitted four weeks ago",
    "fitted each night",
)

LEARNED = (40, 20)
"""Compositions of each user for training and validation, before anything changes."""
STAGES, IN_STAGE = 12, 20
"""Parts of the year, and compositions of each user in one."""
LOOKS = {
    "stay as they are": ((1.0, 1.0), (1.0, 1.0)),
    "look at fewer lists": ((1.0, 0.0), (1.0, 1.0)),
    "look at more lists": ((0.0, 1.0), (1.0, 1.0)),
    "choose less of what they read": ((1.0, 1.0), (1.0, 0.0)),
}
"""Attention and the share that is chosen of what is read and wanted: at first, at last."""
ONLINE, KEPT_UNP, REFIT_UNP, REFIT_BATCH = (
    "adaqac-online",
    "adaqac-unp, kept",
    "adaqac-unp, fitted again",
    "adaqac-batch, fitted again",
)
FEEDBACK = (ONLINE, KEPT_UNP, REFIT_UNP, REFIT_BATCH)
Logs = list[dict[str, list[float]]]
"""What was found on each log of a world."""
RATIO = "100 {:.1f} ({:.1f} to {:.1f})"


def study(
    steps: Steps, *, users: int = 150, sessions: int = 150, typists: int = 24, seeds: int = 3
) -> Report:
    """Follow simulated people through a year in which they change, with a control.

    Parameters
    ----------
    steps : Steps
    users, sessions : int
        Of each simulated query log.
    typists : int
        Of each simulated log of compositions.
    seeds : int
        Logs of each world, at least 2.
    """
    if seeds < 2:
        raise InputError(f"seeds is {seeds}, expected at least 2: a range is over seeds.")
    found = {
        world: each_log(
            *(steps, world, year_of_searches, seeds), world=world, users=users, sessions=sessions
        )
        for world in WORLDS
    }
    fed_back = {
        look: [
            steps(
                f"{look}, typists {seed + 1} of {seeds}",
                year_of_feedback,
                look=look,
                users=typists,
                seed=seed,
            )
            for seed in range(seeds)
        ]
        for look in LOOKS
    }
    report = Report(
        "A year of change",
        lead=f"Simulated: what a search box loses as people change, if it is not fitted again. "
        f"{_sentence(found, fed_back)}",
    )
    report.section("Popularity, habits and sessions")
    report.text(
        f"{users} simulated searchers with {sessions} sessions each in a year "
        f"(telic.simulate.searchers), {seeds} logs of each world. The box is fitted on the first "
        f"{NIGHTS[0]} days with all signals and serves the day after {len(NIGHTS)} nights, four "
        "weeks apart, to users of whom no weight was learned. What a user submits, and the "
        "session, count at once in every row. “Popularity moves”: the logarithm of each noun's "
        "popularity changes over the year, by a normal draw with standard deviation 1.5. “Habits "
        "fade, sessions grow”: at first half of the sessions begin with a habitual query, and few "
        "queries follow from the one before; at last it is the other way round."
    )
    report.table(_year_table(found))
    report.table(_nights_table(found["both"]))
    report.section("Feedback on lists")
    first, valid = LEARNED
    report.text(
        f"{typists} simulated typists with {first + valid} compositions each before anything "
        f"changes, and {STAGES * IN_STAGE} in {STAGES} stages afterwards "
        f"(telic.simulate.changing_people), {seeds} logs of each kind, over made-up phrases. From "
        "stage to stage they look at fewer lists, or at more, or choose less of what they read "
        "and want. The models are fitted once and kept, or go on learning online, or are fitted "
        "again before each stage on all compositions so far. Gate and running check are at work."
    )
    report.table(_feedback_table(fed_back))
    return report


def year_of_searches(
    *, world: str, users: int, sessions: int, seed: int, nights: Sequence[int] = NIGHTS
) -> dict[str, list[float]]:
    """Return the mean reciprocal rank on the day after each night, by how the box was fitted."""
    log = searchers(**WORLDS[world], users=users, sessions=sessions, days=365, seed=seed)
    whole = Searches(log, seed=seed)
    tested = np.unique(whole.user[whole.part == TESTED])
    found: dict[str, list[float]] = {ONCE: [], KEPT: [], MONTHLY: [], NIGHTLY: []}
    once: Completer | None = None
    for number, night in enumerate(nights):
        known = Searches(_until(log, BEGIN + night * DAY), seed=seed)
        nightly = fit_signals(known)
        if once is None:
            once = monthly = nightly
        assert once.signals is not None
        kept = completer_of_searches(known, once.signals.weights)
        fitted_after = nights[max(number - 1, 0)]
        for how, box, since in (
            (ONCE, once, nights[0]),
            (KEPT, kept, night),
            (MONTHLY, monthly, fitted_after),
            (NIGHTLY, nightly, night),
        ):
            found[how].append(_served(box, whole, tested, BEGIN + since * DAY, BEGIN + night * DAY))
        monthly = nightly
    return found


def _until(log: QueryLog, night: int) -> QueryLog:
    before = log.at < night
    columns = {name: getattr(log, name)[before] for name in ("query", "at", "user", "count")}
    return replace(log, **columns)


def _served(box: Completer, log: Searches, tested: np.ndarray, since: int, night: int) -> float:
    """Serve the day after a night to some users, who went on submitting since the box was made."""
    users: dict[str, UserState] = {}
    ranks = []
    during = (log.at >= since) & (log.at < night + DAY) & np.isin(log.user, tested)
    for e in np.flatnonzero(during).tolist():
        name, at = log.names[log.user[e]], int(log.at[e])
        text = log.index.phrase(int(log.query[e]))
        user = users.setdefault(name, box.user(name))
        composition = box.compose(user, at=at)
        if at >= night:
            wanted = fold(text)
            for length in range(1, log.prefixes[e] + 1):
                shown = composition.suggest(wanted[:length], at=0.0)
                texts = [fold(suggestion.text) for suggestion in shown]
                ranks.append(1 / (texts.index(wanted) + 1) if wanted in texts else 0.0)
        composition.submit(text)
    if not ranks:
        raise InputError(
            f"nobody of the {tested.size} users whose day is tested searches on day "
            f"{(night - BEGIN) // DAY + 1} of a simulated log; ask for more users or sessions."
        )
    return float(np.mean(ranks))


def year_of_feedback(*, look: str, users: int, seed: int) -> dict[str, list[float]]:
    """Return the mean reciprocal rank in each stage of each model, and of the static order."""
    catalogue, first = letters_catalogue(seed), sum(LEARNED)
    (begin, end), (chosen, at_last) = LOOKS[look]
    stages = [Stage("", _looking(begin, chosen), first)]
    for i in range(STAGES):
        part = (i + 1) / STAGES
        setting = _looking(begin + part * (end - begin), chosen + part * (at_last - chosen))
        stages.append(Stage(f"stage {i + 1}", setting, IN_STAGE))
    log = simulate_stages(catalogue, stages, users=users, seed=seed)
    replay = simulated_replay(catalogue, log)
    number = np.empty(len(replay.part), np.int64)
    number[replay.by_user] = np.tile(np.arange(first + STAGES * IN_STAGE), users)

    def tested(train: int, valid: int, test: int) -> Tested:
        """Fit on each user's first compositions, and test the next ones."""
        parts = np.repeat([TRAIN, VALID, TEST], [train, valid, test])
        replay.part[:] = -1  # what comes later does not count yet
        inside = number < len(parts)
        replay.part[inside] = parts[number[inside]]
        return tested_gains(replay)

    once, static, _ = tested(*LEARNED, STAGES * IN_STAGE)
    again: list[dict[str, np.ndarray]] = []
    for i in range(STAGES):
        known = first + i * IN_STAGE
        valid = known * LEARNED[1] // first
        again.append(tested(known - valid, valid, IN_STAGE).gains)
    served = {
        ONLINE: checked(once["adaqac-online"]),
        KEPT_UNP: checked(once["adaqac-unp"]),
        REFIT_UNP: checked(np.hstack([each["adaqac-unp"] for each in again])),
        REFIT_BATCH: checked(np.hstack([each["adaqac-batch"] for each in again])),
    }
    ranks = {"static": static} | {how: static + gain for how, gain in served.items()}
    return {
        how: each.reshape(users, STAGES, IN_STAGE).mean(axis=(0, 2)).tolist()
        for how, each in ranks.items()
    }


def _looking(attention: float, chosen: float) -> Any:
    return replace(SETTINGS["readers"], attention=attention, accept=chosen, days=30.0)


def _share(logs: Logs, how: str, of: str) -> list[float]:
    """Mean, least and most over logs of a year's reciprocal rank, as a share of another's."""
    return spread([float(np.mean(one[how]) / np.mean(one[of])) for one in logs])


def _sentence(found: dict[str, Logs], fed_back: dict[str, Logs]) -> str:
    kept = min(_share(logs, KEPT, NIGHTLY)[1] for logs in found.values())
    once = min(_share(logs, ONCE, NIGHTLY)[1] for logs in found.values())
    gained = {
        look: {how: float(np.mean([_gain(one, how) for one in logs])) for how in FEEDBACK}
        for look, logs in fed_back.items()
    }
    said = ", ".join(f"{_kept(each)} where people “{look}”" for look, each in gained.items())
    return (
        f"With weights of the first {NIGHTS[0]} days and the counts of last night, it keeps at "
        f"least {kept:.1%} of the mean reciprocal rank of a box that is fitted each night; with "
        f"counts of the first {NIGHTS[0]} days, too, {once:.1%} in the worst log. Of what feedback "
        f"adds in the better of the models that are fitted again, learning online keeps {said}: a "
        "gate that was closed when the box was fitted stays closed."
    )


def _kept(gained: dict[str, float]) -> str:
    """Say which share of what models gain that are fitted again one that learns online gains."""
    again = max(gained[REFIT_UNP], gained[REFIT_BATCH])
    return f"{gained[ONLINE] / again:.0%}" if again > 0 else "nothing, as those add nothing,"


def _gain(one: dict[str, list[float]], how: str) -> float:
    return float(np.mean(one[how]) - np.mean(one["static"]))


def _year_table(found: dict[str, Logs]) -> Table:
    return Table(
        "Mean reciprocal rank over all prefixes, in percent of that of the box fitted each night",
        {"world": "", "MRR, fitted each night": "100 .2f"}
        | dict.fromkeys((ONCE, MONTHLY, KEPT), RATIO),
        [
            [
                world,
                float(np.mean([one[NIGHTLY] for one in logs])),
                *(_share(logs, how, NIGHTLY) for how in (ONCE, MONTHLY, KEPT)),
            ]
            for world, logs in found.items()
        ],
        "Means over logs and, in brackets, the least and the most. Where nothing changes, a fit "
        "on more days still knows more.",
    )


def _nights_table(logs: Logs) -> Table:
    hows = (ONCE, MONTHLY, KEPT, NIGHTLY)
    means = {how: np.mean([one[how] for one in logs], axis=0).tolist() for how in hows}
    return Table(
        "Where both change: MRR by days since the first fit",
        {"days": "d"} | dict.fromkeys(hows, "100 .2f"),
        [
            [night - NIGHTS[0] + 1, *(means[how][i] for how in hows)]
            for i, night in enumerate(NIGHTS)
        ],
        "Means over logs.",
    )


def _feedback_table(found: dict[str, Logs]) -> Table:
    return Table(
        "What feedback adds as it is served, in points of MRR over all keystrokes",
        {"people": "", "MRR static": "100 .2f"} | dict.fromkeys(FEEDBACK, SPREAD),
        [
            [
                look,
                float(np.mean([one["static"] for one in logs])),
                *(spread([_gain(one, how) for one in logs]) for how in FEEDBACK),
            ]
            for look, logs in found.items()
        ],
        "Means over logs and, in brackets, the least and the most.",
    )
