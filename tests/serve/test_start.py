"""What the service loads as it starts: nothing that takes seconds and no keystroke needs."""

import gc
import subprocess
import sys

from telic.serve.process import server

SLOW = ("scipy.stats", "scipy.sparse", "sklearn", "pandas", "matplotlib")


def test_starting_loads_nothing_that_only_fitting_needs():
    code = f"import sys, telic.serve; print([name for name in {SLOW} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_all_objects_are_looked_at_for_garbage_rarely(make_completer, settings):
    """With thousands of open compositions nobody is answered for a tenth of a second meanwhile."""
    before = gc.get_threshold()
    try:
        server._prepare(make_completer(), settings)
        assert gc.get_freeze_count() > 10_000
        young, _, all_before = (each["collections"] for each in gc.get_stats())
        kept = [[] for _ in range(300_000)]
        young_after, _, all_after = (each["collections"] for each in gc.get_stats())
    finally:
        gc.set_threshold(*before)
    assert len(kept) == 300_000
    assert young_after - young > 100
    assert all_after == all_before
