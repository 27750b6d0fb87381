"""Users who change after fitting: what re-ranking costs them with and without the running check.

Simulated people (`telic.simulate.simulate_change`). The rule's four numbers are chosen on one
half of a family of logs and reported once on the other. `changed` and `openings` are steps of the
study: they return what JSON takes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import product
from typing import Any, NamedTuple, Self

import numpy as np

from telic.completion.fit.models import fit_models, fit_relevance
from telic.completion.learning import do_no_harm
from telic.completion.learning.adaqac import CAREFUL
from telic.completion.learning.replayed_log import TEST, TRAIN, VALID, Replay
from telic.errors import InputError
from telic.evaluate import paired_t_test
from telic.simulate import (
    SETTINGS,
    Catalogue,
    geonames_catalogue,
    other_tastes,
    simulate_change,
    simulate_typists,
    simulated_replay,
)
from telic.simulate.dwell_controls import UNGATED

MODELS = ("adaqac-unp", "adaqac-batch", "adaqac-online")
"""The first two keep the weights that were fitted; the last goes on learning."""
COMPOSITIONS = (40, 20, 60, 240)
"""Of each user: training, validation, served before the change, served after it."""

TYPING_ON = replace(SETTINGS["readers"], accept=0.0)
"""They read as before and then type on: what was looked at for long is now what is wanted. No
worse opponent of what was learned from readers is among the simulated people."""
AFTER = {
    "no change": None,
    "inattentive": SETTINGS["inattentive"],
    "calibrated": SETTINGS["calibrated"],
    "reading, then typing on": TYPING_ON,
    "other tastes": None,
}
FAMILY = tuple(product(("readers", "calibrated"), AFTER))
"""Settings before and after the change."""


class Rule(NamedTuple):
    """The numbers of a `telic.completion.learning.do_no_harm.RunningCheck`."""

    forgetting: float
    margin: float
    budget: float
    allowance: float


RULE = Rule(do_no_harm.FORGETTING, do_no_harm.MARGIN, do_no_harm.BUDGET, do_no_harm.ALLOWANCE)
GRID = tuple(
    Rule(*numbers)
    for numbers in product((0.97, 0.98, 0.99), (0.05, 0.1, 0.2), (1.0, 1.5), (0.001, 0.002))
)
KEPT = 0.98
"""A rule must keep this share of the gains where re-ranking helps."""


@dataclass(frozen=True)
class Case:
    """Gains in mean reciprocal rank over the static order, without the running check."""

    before: str
    after: str
    seed: int
    static: float
    """MRR of the static order at every keystroke."""
    gains: dict[str, np.ndarray]
    """Model -> float64 (users, submissions): mean over the keystrokes of each composition."""
    change: int
    """Submissions served before the change."""

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        """Read what `changed` returned."""
        gains = {model: np.asarray(own) for model, own in stored["gains"].items()}
        return cls(**{**stored, "gains": gains})


def letters_catalogue(seed: int, phrases: int = 400) -> Catalogue:
    """Phrases of twelve letters a to c: many behind each prefix, so that lists are often wrong."""
    rng = np.random.default_rng(seed)
    drawn = rng.choice(list("abc"), (phrases, 12))
    texts = sorted({"".join(letters) for letters in drawn})
    return Catalogue(texts, rng.pareto(1.2, len(texts)) + 1)


@cache
def phrases(name: str, seed: int) -> Catalogue:
    """Return made-up phrases of a seed ("letters"), or the world's places ("places")."""
    return letters_catalogue(seed) if name == "letters" else geonames_catalogue()


def changed(*, catalogue: str, before: str, after: str, seed: int, users: int) -> dict[str, Any]:
    """Do what `changed_users` does, with the `phrases` of a name; `Case` takes what is returned."""
    return asdict(changed_users(phrases(catalogue, seed), before, after, seed=seed, users=users))


def changed_users(
    catalogue: Catalogue,
    before: str,
    after: str,
    *,
    seed: int,
    users: int = 24,
    compositions: tuple[int, int, int, int] = COMPOSITIONS,
) -> Case:
    """Fit on people before they change and follow what the fitted gate lets each model do.

    Each composition is scored by the weights before it; MPC, careful protocol.
    """
    train, valid, same, changed = compositions
    first = train + valid + same
    log = simulate_change(
        catalogue,
        before=before,
        after=AFTER[after] or before,
        users=users,
        compositions=(first, changed),
        seed=seed,
        causes=other_tastes(catalogue, seed=seed) if after == "other tastes" else None,
    )
    replay = simulated_replay(catalogue, log)
    parts = np.repeat([TRAIN, VALID, TEST], [train, valid, same + changed])
    replay.part[replay.by_user] = np.tile(parts, users)
    tested = tested_gains(replay)
    return Case(before, after, seed, tested.static_mean, tested.gains, same)


class Tested(NamedTuple):
    """What models, fitted on a replay, do on its part to test; shape (users, compositions) each."""

    gains: dict[str, np.ndarray]
    """Model → reciprocal rank over that of the static order, where the fitted gate is open."""
    static: np.ndarray
    """Reciprocal rank of the static order."""
    static_mean: float
    """The same over keystrokes, and not over compositions."""


def tested_gains(replay: Replay) -> Tested:
    """Fit on a replay, MPC and careful protocol; return means over keystrokes by composition."""
    models = fit_models(replay, fit_relevance(replay, "mpc", CAREFUL), CAREFUL)
    moments = replay.moments(models.relevance, replay.every_keystroke(TEST))
    ranks = models.reciprocal_ranks(replay, moments, gated=False)
    user = replay.log.user[moments.composition]
    length = replay.prefix_length(moments.keystroke)
    begin = np.flatnonzero(np.diff(moments.composition, prepend=-1))
    keystrokes = np.diff(begin, append=len(moments))

    def by_composition(each: np.ndarray) -> np.ndarray:
        return (np.add.reduceat(each, begin) / keystrokes).reshape(len(replay.log.users), -1)

    gains = {}
    for model in MODELS:
        is_open = models.gates[model].open(user, length)
        gains[model] = by_composition(np.where(is_open, ranks[model] - ranks["static"], 0.0))
    static = ranks["static"]
    return Tested(gains, by_composition(static), float(static.mean()))


def checked(gains: np.ndarray, rule: Rule = RULE) -> np.ndarray:
    """Return what is left of the gains, shape (users, submissions), under a running check."""
    recent, drawdown = np.zeros(len(gains)), np.zeros(len(gains))
    served = np.empty_like(gains)
    for t, gain in enumerate(gains.T):
        is_open = (recent >= -rule.margin) & (drawdown < rule.budget)
        served[:, t] = np.where(is_open, gain, 0.0)
        recent = rule.forgetting * recent + gain
        drawdown = np.maximum(0.0, drawdown - served[:, t] - rule.allowance)
    return served


class Verdict(NamedTuple):
    """What a rule does to a family of cases; gains and losses in mean reciprocal rank."""

    kept: float
    """Share of the gains that is kept where a model gains, mean over cases and models."""
    lost: float
    """Mean over the cases and models that lose after the change, after the change."""
    most_lost: float
    """The same, of the case and model where it is largest."""


def judge(cases: Iterable[Case], rule: Rule | None) -> Verdict:
    """Judge a rule, or that there is none, on the submissions after the change.

    InputError if nobody gains, or nobody loses, so that there is nothing to keep or to lose.
    """
    kept, lost = [], []
    for case, model in product(cases, MODELS):
        gains = case.gains[model]
        served = gains if rule is None else checked(gains, rule)
        bare, left = (part[:, case.change :].mean() for part in (gains, served))
        if bare > 0:
            kept.append((left / bare, bare))
        elif bare < 0:
            lost.append(-left)
    if not kept or not lost:
        raise InputError(
            f"after the changes {len(kept)} models gain and {len(lost)} lose, expected one of each "
            "at least. Take more users, fits or seeds."
        )
    share, weight = np.array(kept).T
    return Verdict(float(np.average(share, weights=weight)), float(np.mean(lost)), max(lost))


def choose(cases: list[Case]) -> Rule:
    """Return the rule of `GRID` that loses least among those that keep `KEPT` of the gains."""
    verdicts = {rule: judge(cases, rule) for rule in GRID}
    enough = [rule for rule in GRID if verdicts[rule].kept >= KEPT]
    return min(enough, key=lambda rule: verdicts[rule].lost)


def rows(cases: Sequence[Case]) -> list[dict[str, Any]]:
    """Return one row for each change and model: what users gain after it, with and without.

    ``gain`` and ``checked`` are means over users with the ends of their 95 % intervals, users of
    all seeds together; ``worst`` and ``worst_checked`` the largest sum that any user lost over any
    stretch of submissions; ``held`` the share of submissions with the static order by the check.
    """
    found = []
    for (before, after), model in product(FAMILY, MODELS):
        own = [case for case in cases if (case.before, case.after) == (before, after)]
        gains = np.concatenate([case.gains[model] for case in own])
        served = np.concatenate([checked(case.gains[model]) for case in own])
        change = own[0].change
        row: dict[str, Any] = {"before": before, "after": after, "model": model}
        for name, part in (("gain", gains), ("checked", served)):
            means = part[:, change:].mean(axis=1)
            test = paired_t_test(means, np.zeros(len(means)), np.arange(len(means)))
            row |= {name: test.difference, f"{name}_low": test.low, f"{name}_high": test.high}
        row |= {"worst": worst_stretch(gains), "worst_checked": worst_stretch(served)}
        found.append(row | {"held": float((gains != served)[:, change:].mean())})
    return found


def worst_stretch(gains: np.ndarray) -> float:
    """Return the largest sum lost over consecutive submissions of one user."""
    lost = np.concatenate([np.zeros((len(gains), 1)), np.cumsum(-gains, axis=1)], axis=1)
    return float((lost - np.minimum.accumulate(lost, axis=1)).max())


LOG = 60
"""Compositions of each user in the logs behind `openings`."""
DRAWS = 4000
"""Draws of gains without a mean."""
Ranges = list[tuple[int, int]]
"""For each fit, the ranges of prefix length that open with one test for each, and by the gate."""


def openings(*, setting: str, seed: int, users: int) -> Ranges:
    """Return how many ranges open in each model's gate, fitted on one log."""
    known = phrases("letters", seed)
    log = simulate_typists(known, setting=setting, users=users, compositions=LOG, seed=seed)
    replay = simulated_replay(known, log)
    models = fit_models(replay, fit_relevance(replay, "mpc", UNGATED), UNGATED)
    moments = replay.moments(models.relevance, replay.every_keystroke(VALID))
    ranks = models.reciprocal_ranks(replay, moments)
    user = replay.log.user[moments.composition]
    length = replay.prefix_length(moments.keystroke)
    return [_count_open(ranks[model] - ranks["static"], user, length) for model in MODELS]


def openings_by_chance(*, users: int, draws: int = DRAWS) -> Ranges:
    """Return how many ranges open where gains are drawn at random, with mean zero in each."""
    rng = np.random.default_rng(0)
    user, length = np.tile(np.arange(users), 5), np.repeat([2, 5, 8, 11, 20], users)
    return [_count_open(rng.normal(0, 0.1, len(user)), user, length) for _ in range(draws)]


def _count_open(gain: np.ndarray, user: np.ndarray, length: np.ndarray) -> tuple[int, int]:
    """Ranges that open with one test at .025 each, and by the gate."""
    own_bin, single = do_no_harm.bin_of(length), 0
    for b in np.unique(own_bin):
        rows = own_bin == b
        test = paired_t_test(gain[rows], np.zeros(rows.sum()), user[rows])
        single += bool(test.low > 0)
    gate = do_no_harm.Gate.fitted(gain, user, length, int(user.max()) + 1)
    return single, int(gate.bins.sum())
