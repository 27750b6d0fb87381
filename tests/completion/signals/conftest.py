import numpy as np
import pytest

from telic.data.queries import QueryLog

PHRASES = ("tea", "teapot", "tea pot", "green tea", "green", "greenhouse", "Tea", "té")
PHRASES += ("house", "house of tea", "paris", "par", "naïve", "a b c")
HOUR = 3600 * 1_000_000


def random_log(seed, rows=120, users=5):
    """Random submissions with sessions, ties in time, and some that name nobody."""
    rng = np.random.default_rng(seed)
    at = 1_767_225_600_000_000 + np.cumsum(rng.choice([0, HOUR // 20, HOUR, 30 * HOUR], rows))
    names = [None, *(f"user {u}" for u in range(users))]
    return QueryLog(
        list(PHRASES),
        rng.integers(len(PHRASES), size=rows).astype(np.int32),
        at,
        names,
        rng.integers(users + 1, size=rows).astype(np.int32),
        rng.integers(1, 3, rows).astype(float),
    )


@pytest.fixture
def make_log():
    return random_log
