"""Processor time of a keystroke, by a user with a history in a large made-up catalogue."""

import time

import numpy as np

from telic.completion import Completer, PrefixIndex, Relevance, UserState
from telic.completion.learning.adaqac import FeedbackDesign
from telic.completion.learning.do_no_harm import Gate


def made_up_completer(size=33_000):
    """Return a completer over made-up phrases, one of whose users has a history; the phrases."""
    rng = np.random.default_rng(0)
    syllables = [a + b for a in "bcdfghklmnprstvw" for b in "aeiou"]
    drawn = size + size // 5
    phrases = [
        " ".join("".join(rng.choice(syllables, rng.integers(1, 4))) for _ in range(words))
        for words in rng.integers(1, 4, drawn)
    ]
    phrases = list(dict.fromkeys(phrases))[:size]
    index = PrefixIndex.build(phrases, np.log1p(rng.zipf(1.3, len(phrases)).clip(0, 1e6)))
    weights = rng.normal(scale=0.1, size=17)
    relevance = Relevance("personal-s", popular=0.5, personal=0.5)
    history = dict.fromkeys([*phrases[:85], *(f"b own {i}" for i in range(10))], 1.0)
    completer = Completer(
        index,
        relevance,
        FeedbackDesign(np.ones(16), True),
        weights,
        {"ada": UserState(weights.copy(), history=history)},
        Gate.always(1),
        "adaqac-online",
        10,
        0.1,
        "careful",
        False,
    )
    return completer, phrases


def keystrokes():
    """Processor time of a keystroke, by a user with a history in a large catalogue."""
    completer, phrases = made_up_completer()
    micro = []
    for target in phrases[::100]:
        began = time.process_time()
        composition = completer.compose(completer.user("ada"))
        for typed in range(8):
            composition.suggest(target[: typed + 1], at=0.3 * typed)
        micro.append(1e6 * (time.process_time() - began) / 8)
    return [
        (
            f"keystroke in process, {len(phrases):,} phrases, 95 past queries",
            "≤ 150 µs",
            f"{np.median(micro):.0f} µs of processor time",
        )
    ]
