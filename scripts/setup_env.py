"""Build .venv, or the folder given, from requirements.lock, or say in one line why it cannot be.

Runs on the system's Python with the standard library alone, so its syntax stays old enough for an
old Python to reach the message that it is too old.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / (sys.argv[1] if len(sys.argv) > 1 else ".venv")
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
LOCK = ROOT / "requirements.lock"
STAMP = VENV / ".ready"


def stop(message):
    sys.exit("telic set-up: " + message)


def run(what, *command):
    """Run a command quietly; on failure show the end of its output and stop."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=str(ROOT))
    if done.returncode:
        tail = done.stdout.decode("utf-8", "replace").strip().splitlines()[-12:]
        print("\n".join(tail), file=sys.stderr)
        stop(what)


def leave_out_unwritable_cache(uv):
    """Tell uv to do without its cache where no file can be made in it, as in a read-only home."""
    asked = subprocess.run([uv, "cache", "dir"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    folder = asked.stdout.decode().strip()
    try:
        os.makedirs(folder, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        os.environ["UV_NO_CACHE"] = "1"


def uv_requirement():
    """The lines of the lock that pin uv, so that the installer itself is checked by hash too."""
    block, inside = [], False
    for line in LOCK.read_text().splitlines():
        if line[:1].strip() and not line.startswith("#"):
            inside = line.startswith("uv==")
        if inside:
            block.append(line)
    return "\n".join(block) + "\n"


def main():
    if sys.version_info < (3, 11):
        stop(
            "Python 3.11 or newer is needed, this is {}.{} ({}). "
            "Install it and run: make PYTHON=python3.11 ...".format(
                sys.version_info[0], sys.version_info[1], sys.executable
            )
        )
    fingerprint = hashlib.sha256(
        LOCK.read_bytes() + (ROOT / "pyproject.toml").read_bytes() + sys.version.encode()
    ).hexdigest()
    if STAMP.exists() and STAMP.read_text() == fingerprint:
        return
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        stop(
            "this Python has no 'venv' or 'ensurepip' module. On Debian and Ubuntu: "
            "apt-get install python3-venv"
        )
    print("Setting up {} (once; about a minute) ...".format(VENV.name), flush=True)
    if VENV.exists():
        if not (VENV / "pyvenv.cfg").exists():
            stop("{} is no virtual environment and is left alone. Remove it.".format(VENV))
        shutil.rmtree(str(VENV))
    unmade = "{} could not be created (output above)".format(VENV)
    run(unmade, sys.executable, "-m", "venv", str(VENV))
    python = str(BIN / "python")
    pins = VENV / "uv.txt"
    pins.write_text(uv_requirement())
    failed = (
        "the packages could not be installed; the lines above say why. If the package index was "
        "not reached, being behind a proxy or mirror, set HTTPS_PROXY, or PIP_INDEX_URL and "
        "UV_DEFAULT_INDEX. Then run make again."
    )
    run(
        failed,
        *(python, "-m", "pip", "install", "-q", "--require-hashes", "--no-deps", "-r", str(pins)),
    )
    uv = str(BIN / "uv")
    # Once here, and not at every start where Python may write none (PYTHONDONTWRITEBYTECODE).
    os.environ["UV_COMPILE_BYTECODE"] = "1"
    leave_out_unwritable_cache(uv)
    run(
        failed,
        *(uv, "pip", "install", "--python", python, "--require-hashes", "-r", str(LOCK)),
    )
    run(
        "telic itself could not be installed (output above)",
        *(uv, "pip", "install", "--python", python, "--no-deps", "--no-build-isolation"),
        *("--offline", "-e", str(ROOT)),
    )
    STAMP.write_text(fingerprint)


if __name__ == "__main__":
    main()
