"""
Three cases in which skipping says something
============================================

Section 2.4.7 of the adaQAC chapter describes three compositions in which a static order keeps
showing what the user has just passed over: an entity whose *attribute* is wanted, a query that is
being *reformulated*, and a recent event where an *earlier* one is meant. Here they are, replayed
keystroke by keystroke.

The weights are set by hand, to show the mechanism: each look at a suggestion costs it something,
more at the top of the list and more the longer the look. What real weights are worth is another
question: `telic completion evaluate` answers it for a log.
"""

import numpy as np
from matplotlib import pyplot

from telic.completion import Completer, PrefixIndex, Relevance
from telic.completion.learning.adaqac import FeedbackDesign
from telic.completion.learning.do_no_harm import Gate
from telic.completion.learning.feedback import FEATURES

WEIGHTS = {"DwellT": -0.3, "IsPrevQuery": -0.5, "Pos@1": -0.4, "Pos@2": -0.1}


def completer(relevance):
    """A search box over a few phrases with given static relevance."""
    weights = np.array([WEIGHTS.get(name, 0.0) for name in FEATURES])
    return Completer(
        PrefixIndex.build(list(relevance), list(relevance.values())),
        Relevance.named("mpc"),
        FeedbackDesign(np.ones(len(FEATURES)), learn_relevance=False),
        weights,
        {},
        Gate.always(0),
        "adaqac-unp",
        10,
        0.1,
        "careful",
        simulated=False,
    )


# %%
# Each case: static relevance, the prefixes typed with the seconds each was looked at, the query
# submitted before, and the query that is wanted.

CASES = {
    "Disambiguation": (
        {"lefont sandy springs": 3.0, "lefont sandy springs showtime": 2.4, "lefont theater": 1.5},
        [("l", 0.2), ("le", 0.2), ("lef", 0.3), ("lefo", 0.9), ("lefon", 1.1), ("lefont", 0.0)],
        None,
        "lefont sandy springs showtime",
    ),
    "Reformulation": (
        {"detroit red wings": 3.0, "detroit lions": 2.6, "detroit tigers": 1.6},
        [
            ("detroit red", 0.4),
            ("detroit re", 0.3),
            ("detroit r", 0.9),
            ("detroit ", 0.3),
            ("detroit", 0.0),
        ],
        "detroit red wings",
        "detroit lions",
    ),
    "Smoothing over-sense": (
        {"russia attack ukraine": 3.0, "russia attack georgia": 2.0, "russia today": 1.8},
        [
            ("russia", 0.3),
            ("russia ", 0.4),
            ("russia a", 0.6),
            ("russia at", 0.8),
            ("russia att", 0.0),
        ],
        None,
        "russia attack georgia",
    ),
}

# %%
# Replay them. The static order never moves; the adaptive one lets what was passed over sink.


def positions(case):
    """Position of the wanted query at every keystroke: static, and with feedback."""
    relevance, strokes, previous, wanted = case
    box = completer(relevance)
    user = box.user()
    user.previous = previous
    composition, now, found = box.compose(user), 0.0, []
    for prefix, dwell in strokes:
        shown = composition.suggest(prefix, at=now)
        now += dwell
        print(f"{prefix!r:14}", [suggestion.text for suggestion in shown])
        place = next((i for i, s in enumerate(shown) if s.text == wanted), None)
        found.append(
            (shown[place].static_position, place + 1) if place is not None else (None,) * 2
        )
    return found


figure, panels = pyplot.subplots(1, 3, figsize=(10, 3), sharey=True)
for panel, (name, case) in zip(panels, CASES.items(), strict=True):
    print(f"\n{name}: wanted is {case[3]!r}")
    found = positions(case)
    prefixes = [prefix for prefix, _ in case[1]]
    panel.plot(range(len(found)), [static for static, _ in found], "o--", label="static")
    panel.plot(range(len(found)), [adaptive for _, adaptive in found], "o-", label="adaQAC")
    panel.set_xticks(range(len(found)), prefixes, rotation=45, ha="right", fontsize=8)
    panel.set_title(f"{name}\n{case[3]}", fontsize=9)
    panel.set_yticks([1, 2, 3])
    assert found[-1][1] == 1 < found[-1][0]
panels[0].set_ylabel("position of the wanted query")
panels[0].set_ylim(3.3, 0.7)
panels[0].legend(fontsize=8)
figure.tight_layout()
