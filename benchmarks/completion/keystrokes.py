"""Processor time of a keystroke: in a large catalogue, and with all signals of a query log."""

import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.form import in_turn
from telic.completion import Completer, PrefixIndex, Relevance, UserState, fit_files
from telic.completion.learning.adaqac import FeedbackDesign
from telic.completion.learning.do_no_harm import Gate
from telic.simulate.searchers import searchers


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
    users = {"ada": UserState(weights.copy(), history=history)}
    completer = Completer(
        *(index, relevance, FeedbackDesign(np.ones(16), True), weights, users, Gate.always(1)),
        *("adaqac-online", 10, 0.1, "careful", False),
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
    work = f"keystroke in process, {len(phrases):,} phrases, 95 past queries"
    yield work, "≤ 150 µs", f"{np.median(micro):.0f} µs of processor time"


def with_signals():
    """Processor time of a keystroke on a simulated query log, without and with all signals."""
    log = searchers(users=300, sessions=30, nouns=2000)
    users = [user for user in log.users if user]
    typed = [log.queries[query] for query in log.query[::97]]

    def type_into(box):
        for number, target in enumerate(typed):
            composition = box.compose(box.user(users[number % len(users)]))
            for end in range(1, 9):
                composition.suggest(target[:end], at=0.3 * end)

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "log.parquet"
        columns = {
            "query": [log.queries[query] for query in log.query],
            "at": pa.array(log.at, pa.timestamp("us")),
            "user": [log.users[user] for user in log.user],
        }
        pq.write_table(pa.table(columns), file)
        boxes = {
            (n, signals): fit_files(file, min_users=1, n=n, signals=signals)
            for n in (10, 50)
            for signals in (None, "all")
        }
    for box in boxes.values():
        type_into(box)  # compiles
    seconds = in_turn(5, {key: partial(type_into, box) for key, box in boxes.items()})
    found = {key: 1e6 * each / (8 * len(typed)) for key, each in seconds.items()}
    for n, target in ((10, 60), (50, 150)):
        yield (
            f"what all signals add to a keystroke, {n} suggestions at most, {len(log.queries):,} "
            "phrases",
            f"≤ {target} µs",
            f"{found[n, 'all'] - found[n, None]:.0f} µs of processor time: the whole keystroke "
            f"takes {found[n, 'all']:.0f} µs, and {found[n, None]:.0f} µs without signals",
        )
