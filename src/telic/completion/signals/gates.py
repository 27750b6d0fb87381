"""Choose what the ranker uses: a penalty and a gate for each group of signals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from telic.completion.learning.do_no_harm import p_of_gain
from telic.completion.signals.groups import PAIRS
from telic.completion.signals.log_split import Searches
from telic.completion.signals.pair_weights import PAIR_PENALTIES, pair_lessons_of
from telic.completion.signals.sweep import SHRINKAGE, RankedPrefixes, Shrinkage
from telic.completion.signals.weights import PENALTIES, USUAL, Lessons, SignalWeights
from telic.errors import InputError
from telic.evaluate import paired_t_test

LEVEL = 0.9
"""Coverage of the interval that must lie above zero for a group to stay: one-sided, 5 %."""


def learn(
    searches: Searches,
    lessons: Lessons,
    chosen_by: Sequence[RankedPrefixes],
    groups: Sequence[str] | None = None,
    *,
    shrinkage: Shrinkage = SHRINKAGE,
    progress: Callable[[str], None] = lambda step: None,
) -> SignalWeights:
    """Choose a penalty for each group, switch off what does not help, and fit.

    One group after the other takes the penalty with the largest mean reciprocal rank on the part of
    the log to choose by. Then a group, the one of least worth first, is switched off unless its
    gain there over the fit without it is above zero with certainty: `LEVEL`, users as unit. As
    `telic.completion.learning.do_no_harm.p_of_gain` has it, that takes five users whose ranks
    change. Weights of pairs are learned last, beside the groups that stay, and have the same choice
    and gate.

    Parameters
    ----------
    searches : Searches
    lessons, chosen_by
        From `lessons_of` and `choosing_moments`.
    groups : sequence of str, optional
        Those that may be on, of `Searches.groups`; by default all.
    shrinkage : Shrinkage
        That of the lessons.
    progress : callable, optional
        Called with a short text before each piece of work.

    Raises
    ------
    InputError
        If the log tells nothing of a group.
    """
    groups = searches.groups if groups is None else groups
    for group in groups:
        if group not in searches.groups:
            raise InputError(
                f"the log tells nothing of {group!r}, expected some of {', '.join(searches.groups)}"
            )
    unit = _users(searches, chosen_by)
    penalties = {group: USUAL for group in groups if group != PAIRS}
    for group in penalties:
        progress(f"penalty of {group}")
        tried = {
            p: _ranks(lessons.fit(penalties | {group: p}), chosen_by).mean() for p in PENALTIES
        }
        penalties[group] = max(tried, key=tried.__getitem__)
    gates: dict[str, str] = {}
    while penalties:
        progress(f"worth of {', '.join(penalties)}")
        whole = _ranks(lessons.fit(penalties), chosen_by)
        others = {group: lessons.fit(_without(penalties, group)) for group in penalties}
        worths = {
            group: Worth.of(whole, _ranks(other, chosen_by), unit)
            for group, other in others.items()
        }
        useless = {group: worth for group, worth in worths.items() if not worth.certain}
        if not useless:
            gates |= {group: worth.said for group, worth in worths.items()}
            break
        worst = min(useless, key=lambda group: useless[group].gain)
        gates[worst] = useless[worst].said
        penalties = _without(penalties, worst)
    found = lessons.fit(penalties)
    if PAIRS in groups:
        progress("weights of pairs")
        fitted, worth = learn_pairs(searches, found, chosen_by, shrinkage=shrinkage)
        gates[PAIRS] = worth.said
        if worth.certain:
            found = fitted
    return replace(found, gates={group: gates[group] for group in groups})


@dataclass(frozen=True)
class Worth:
    """What a group adds to a model, on the half of the users to choose by."""

    gain: float
    """In mean reciprocal rank; users are the unit."""
    certain: bool
    """Whether it is above zero with certainty."""
    said: str
    """Whether the group is on, and why."""

    @classmethod
    def of(cls, whole: np.ndarray, other: np.ndarray, unit: np.ndarray) -> "Worth":
        """Compare reciprocal ranks with the group and without it; `unit` says whose each is."""
        test = paired_t_test(whole, other, unit, level=LEVEL, within=(-1.0, 1.0))
        certain = bool(p_of_gain(whole - other, unit) < (1 - LEVEL) / 2)
        few = ", of too few users" if not certain and test.low > 0 else ""
        said = (
            f"{'on' if certain else 'off'}: MRR {100 * test.difference:+.2f} points on the half to "
            f"choose by ({100 * test.low:+.2f} to {100 * test.high:+.2f}){few}"
        )
        return cls(test.difference, certain, said)


def learn_pairs(
    searches: Searches,
    model: SignalWeights,
    chosen_by: Sequence[RankedPrefixes],
    prefixes: tuple[np.ndarray, np.ndarray] | None = None,
    *,
    shrinkage: Shrinkage = SHRINKAGE,
) -> tuple[SignalWeights, Worth]:
    """Add weights of pairs to a model with the best of the penalties, and say what they are worth.

    Parameters
    ----------
    searches, model, prefixes, shrinkage
        As `pair_lessons_of` takes them.
    chosen_by
        From `choosing_moments`.
    """
    lessons = pair_lessons_of(searches, model, prefixes, shrinkage=shrinkage)
    fits = [lessons.fit(penalty) for penalty in PAIR_PENALTIES]
    ranks = [_ranks(fitted, chosen_by) for fitted in fits]
    best = int(np.argmax([own.mean() for own in ranks]))
    worth = Worth.of(ranks[best], _ranks(model, chosen_by), _users(searches, chosen_by))
    if not len(lessons):
        worth = Worth(0.0, False, "off: no pair of queries came before that enough users submitted")
    return fits[best], worth


def _users(searches: Searches, chosen_by: Sequence[RankedPrefixes]) -> np.ndarray:
    unit = np.concatenate([searches.unit[moments.event] for moments in chosen_by])
    return np.unique(unit, return_inverse=True)[1]


def _ranks(fitted: SignalWeights, chosen_by: Sequence[RankedPrefixes]) -> np.ndarray:
    return np.concatenate([fitted.ranks(moments) for moments in chosen_by])


def _without(penalties: dict[str, float], group: str) -> dict[str, float]:
    return {name: penalty for name, penalty in penalties.items() if name != group}
