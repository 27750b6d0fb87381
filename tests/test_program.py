"""The program as a process: what ends it from outside."""

import os
import signal
import subprocess
import sys

import pytest

from telic import __main__


def started(code: str) -> subprocess.Popen:
    """Start the program with another command line; the code prints once it is there."""
    found = subprocess.Popen(
        [sys.executable, "-c", f"import sys, time, telic.cli\nfrom telic import __main__\n{code}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert found.stdout is not None
    assert found.stdout.readline() == "here\n"
    return found


def test_sigterm_unwinds_so_that_nothing_half_written_is_left(tmp_path):
    found = started(
        "from telic.data import atomic_path\n"
        "def run():\n"
        f"    with atomic_path({str(tmp_path / 'out')!r}) as temporary:\n"
        "        temporary.write_text('half')\n"
        "        print('here', flush=True)\n"
        "        time.sleep(60)\n"
        "telic.cli.main = run\n"
        "__main__.main()"
    )
    assert list(tmp_path.iterdir())
    found.send_signal(signal.SIGTERM)
    assert found.communicate(timeout=60) == ("", "")
    assert found.returncode == 143
    assert not list(tmp_path.iterdir())


def test_sigterm_ends_what_does_not_end_by_itself():
    found = started(
        "__main__.GRACE = 0.1\n"
        "def run():\n"
        "    try:\n"
        "        print('here', flush=True)\n"
        "        time.sleep(60)\n"
        "    finally:\n"
        "        time.sleep(60)\n"
        "telic.cli.main = run\n"
        "__main__.main()"
    )
    found.send_signal(signal.SIGTERM)
    found.communicate(timeout=30)
    assert found.returncode == 143


def test_a_service_with_a_handler_of_its_own_takes_its_time():
    found = started(
        "import signal\n"
        "__main__.GRACE = 0.1\n"
        "def run():\n"
        "    told = []\n"
        "    signal.signal(signal.SIGTERM, lambda *_: told.append(1))\n"
        "    print('here', flush=True)\n"
        "    while not told:\n"
        "        time.sleep(0.05)\n"
        "    time.sleep(0.5)\n"
        "    print('done')\n"
        "telic.cli.main = run\n"
        "__main__.main()"
    )
    found.send_signal(signal.SIGTERM)
    assert found.communicate(timeout=30) == ("done\n", "")
    assert found.returncode == 0


def test_ctrl_c_while_importing_prints_nothing(monkeypatch):
    monkeypatch.setattr(__main__, "_unwind_on_sigterm", lambda: signal.raise_signal(signal.SIGINT))
    # What runs in the background of a script ignores Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(SystemExit) as ended:
            __main__.main()
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.value.code == 130


def test_a_closed_output_is_no_error():
    code = (
        "import sys, telic.cli\nfrom telic import __main__\n"
        "telic.cli.main = lambda: sys.stdout.buffer\n__main__.main()"
    )
    done = subprocess.run(
        ["sh", "-c", '"$0" -c "$1" >&-', sys.executable, code], capture_output=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_what_the_outputs_encoding_lacks_is_escaped():
    done = subprocess.run(
        [sys.executable, "-m", "telic", "study", "--help"],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert r"tables 2.3\u20132.5" in done.stdout
