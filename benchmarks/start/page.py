"""What a fresh process takes to import each product, and until its first fit is done."""

import compileall
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import telic
from benchmarks.form import Run, grid
from telic.simulate.hospital import simulate_hospital

FILE = "start-speed.md"
OPTIONS = {"repeat": (3, "runs of each; the median counts, a cold cache runs once")}
ROWS = """import numpy as np
rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 20))
y = X[:, 0] + rng.normal(size=2000) > 1
"""
FITS = {
    "telic.completion": """from telic.completion import fit_files
fit_files("titles.csv", "queries.csv", min_users=1).suggest("te", user="ada")""",
    "telic.auc": f"{ROWS}from telic.auc import AUCClassifier\nAUCClassifier().fit(X, y)",
    "telic.specialty": """from telic.specialty import discover, read_log
discover(read_log("hospital"), restarts=1)""",
    "telic.privacy": """from telic.hin import LinkType, Schema, network_from_arrays
from telic.privacy import risks
schema = Schema({"user": {}}, (LinkType("follow", "user", "user"),))
links = {"follow": (["a", "a", "b"], ["b", "c", "c"])}
list(risks(network_from_arrays(schema, {"user": {"id": ["a", "b", "c"]}}, links)))""",
    "telic.optim": f"{ROWS}from telic.optim import ElasticNetClassifier\n"
    "ElasticNetClassifier().fit(X, y)",
}
"""A first fit of each product: a few rows, so that nearly all the time is the start."""
RIVAL = f"{ROWS}from sklearn.linear_model import LogisticRegression"
ALLOWED = 0.3
"""Seconds that the first fit of telic.optim may take beyond importing scikit-learn's rival."""
HEAD = """# Time to start

Processor seconds of a fresh process, Python's own start included, on one thread. “All public
names” imports the package and each of its public names; a program pays for those that it uses.
“First fit” is a fit of little data; the discovery of telic.specialty, in a small hospital, takes
most of its own time. With a cold cache the fit compiles every kernel that it needs, once for each
installation; `telic warmup` [does this ahead of time](../how-to/install.md#compile-ahead-of-time).
Warm figures are medians of {repeat} runs, cold
ones are of one run. “scikit-learn” imports and fits its `LogisticRegression`.

A first fit of telic.optim takes {beyond:.2f} s beyond the import of scikit-learn's
`LogisticRegression`. The target is {allowed} s, which is {met}. Importing numba alone takes
{numba:.2f} s. Both are differences of medians.

"""
EVERY_NAME = "import {0}; [getattr({0}, name) for name in getattr({0}, '__all__', ())]"


def spent(code: str, folder: Path, cache: Path) -> float:
    """Processor seconds of a process that runs some lines with the package of the folder."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(folder / "src")}
    with subprocess.Popen([sys.executable, "-c", code], cwd=folder, env=environment) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, code)
    return used.ru_utime + used.ru_stime


def page(run: Run) -> str:
    """Return the page in Markdown."""
    repeat = run.options.repeat
    rows = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        # Kernels compiled beside the source would serve here too, so this source has none; users
        # keep what Python compiled.
        shutil.copytree(
            Path(telic.__file__).parent,
            folder / "src" / "telic",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        compileall.compile_dir(folder / "src", quiet=1)
        (folder / "titles.csv").write_text("title,views\nTeapot,5\nTea cup,4\n")
        (folder / "queries.csv").write_text("user,query,at\nada,tea cup,2026-03-02T09:00\n")
        simulate_hospital(folder / "hospital", scale=0.005)

        def median(code: str, cache: Path) -> str:
            return f"{statistics.median(spent(code, folder, cache) for _ in range(repeat)):.2f}"

        rows.append(["Python alone", median("pass", folder), "", ""])
        imported = median(RIVAL, folder)
        fitted = median(f"{RIVAL}\nLogisticRegression().fit(X, y)", folder)
        rows.append(["scikit-learn", imported, "", fitted])
        with_numba = median(f"import numba\n{RIVAL}", folder)
        rows.append(["telic", median("import telic", folder), "", ""])
        for name, fit in FITS.items():
            if run.asks_for(name):
                cache = folder / name
                cold = f"{spent(fit, folder, cache):.1f}"
                every = median(EVERY_NAME.format(name), cache)
                rows.append([name, every, cold, median(fit, cache)])
    columns = ["", "all public names", "first fit, cold cache", "first fit, warm cache"]
    beyond = float({row[0]: row[-1] for row in rows}.get("telic.optim", "nan")) - float(imported)
    head = HEAD.format(
        repeat=repeat,
        beyond=beyond,
        allowed=ALLOWED,
        met="met" if beyond <= ALLOWED else "missed",
        numba=float(with_numba) - float(imported),
    )
    return head + grid(columns, rows)
