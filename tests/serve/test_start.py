"""What the service loads as it starts: nothing that takes seconds and no keystroke needs."""

import subprocess
import sys

SLOW = ("scipy.stats", "scipy.sparse", "sklearn", "pandas", "matplotlib")


def test_starting_loads_nothing_that_only_fitting_needs():
    code = f"import sys, telic.serve; print([name for name in {SLOW} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
