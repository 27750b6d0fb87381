import gc
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

from telic.data.compositions import read_compositions
from telic.data.contracts import COMPOSITIONS, OPTIONAL

WORDS = (
    "new york|new jersey|newcastle|new york times|news|paris|paris-nord|parma|são paulo|st. ives"
)
DAY = 24 * 3600 * 1_000_000


@pytest.fixture
def held_by_compositions():
    """A function that counts the bytes that compositions allocated since ``tracemalloc.start(20)``.

    Other tests' threads allocate, too.
    """

    def held():
        gc.collect()
        own = tracemalloc.Filter(True, "*/telic/completion/box/*", all_frames=True)
        return sum(each.size for each in tracemalloc.take_snapshot().filter_traces([own]).traces)

    return held


def toy_table(seed=0, users=5, compositions=16, phrases=None, list_length=5):
    """A small random composition log that keeps the contract: no model of people is meant."""
    rng = np.random.default_rng(seed)
    phrases = phrases or WORDS.split("|")
    rows = []
    for u in range(users):
        at = 1_700_000_000_000_000 + u
        for c in range(compositions):
            query = phrases[rng.integers(len(phrases))]
            at += int(rng.integers(DAY // 2, 9 * DAY))
            keystrokes, now = [], at
            for length in range(1, rng.integers(1, len(query) + 1) + 1):
                prefix = query[:length]
                matching = [p for p in phrases if p.startswith(prefix)]
                shown = list(rng.permutation(matching)[:list_length])
                if rng.random() < 0.1:
                    shown.append(phrases[rng.integers(len(phrases))])
                keystrokes.append({"at": now, "prefix": prefix, "suggestions": shown})
                now += int(rng.lognormal(-1.5, 1) * 1e6)
            rows.append(
                {
                    "user": f"user {u}",
                    "composition": f"{u}-{c}",
                    "query": query,
                    "submitted_at": now,
                    "selected": None,
                    "keystrokes": keystrokes,
                }
            )
    schema = pa.schema([field for field in COMPOSITIONS if field.name not in OPTIONAL[1:]])
    return pa.Table.from_pylist(rows, schema=schema)


@pytest.fixture(scope="session")
def make_table():
    return toy_table


@pytest.fixture(scope="session")
def toy_log():
    return read_compositions(toy_table())
