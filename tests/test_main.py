import subprocess
import sys


def test_the_package_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "telic", "--help"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert "completion" in done.stdout
