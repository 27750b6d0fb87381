import subprocess
import sys
from importlib.metadata import version


def test_the_package_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "telic", "--help"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert "completion" in done.stdout


def test_the_version_is_the_packages():
    done = subprocess.run(
        [sys.executable, "-m", "telic", "--version"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, f"telic {version('telic')}\n")
