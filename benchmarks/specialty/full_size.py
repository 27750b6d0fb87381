"""The pipeline, LDA and PathSelClus at the published size; LDA beside tomotopy if installed."""

import resource
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.form import Run, grid
from benchmarks.specialty.lda_speed import compare
from telic.simulate.hospital import simulate_hospital
from telic.specialty.alarms.before_and_after import effect
from telic.specialty.alarms.explained_alarms import judge
from telic.specialty.discovery.by_seeds import links_of, path_of, representatives
from telic.specialty.discovery.discover import discover
from telic.specialty.discovery.pathselclus import fit_pathselclus
from telic.specialty.log.log_files import read_log
from telic.specialty.pseudonyms import Pseudonyms
from telic.specialty.recognition.recognise import CORE_CLASSES
from telic.specialty.recognition.shuffled_control import recognise_found
from telic.specialty.report.page import specialty_report

FILE = "specialty-speed.md"
HEAD = """# Speed of telic.specialty

The table measures the simulated
hospital at the published size, on one thread, compilation excluded. Targets are for a machine
without other work; on a shared one wall time is longer than CPU time.

"""


def _clock(work):
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return result, f"{cpu:.0f} CPU s, {wall:.0f} s wall"


def pipeline(folder):
    """All that `telic specialty report` does."""
    stages = {}

    def stage(name, work):
        result, stages[name] = _clock(work)
        return result

    def everything():
        log = stage("read", lambda: read_log(folder))
        found = stage("discover (3 + 2 runs)", lambda: discover(log))
        alerts = stage("alarms", lambda: judge(log, found))
        counted = effect(log, found, alerts)
        scores = stage("recognition, beside shuffled data", lambda: recognise_found(log, found)[0])
        report = specialty_report(
            log,
            found,
            alerts,
            counted,
            recognitions={k: one for (k, _), one in scores.items()},
            pseudonyms=Pseudonyms(),
        )
        stage("report", lambda: report.write(folder.parent / "report.html"))
        return log

    log, seconds = _clock(everything)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    size = f"{len(log.access_user):,} accesses"
    return [
        ["from the log to the report", "≤ 3 min", seconds, size],
        *([f"– {name}", "", seconds, ""] for name, seconds in stages.items()),
        ["peak memory of these steps", "≤ 2 GB", f"{peak:.2f} GiB", ""],
    ]


def pathselclus(folder, *paths):
    log = read_log(folder)
    patient, diagnosis = links_of(log, "general")
    seeds = representatives(log.taxonomy, diagnosis, CORE_CLASSES)
    links = {name: path_of(name, patient, diagnosis) for name in paths}
    tiny = sparse.csr_array(np.eye(20))
    fit_pathselclus({"p": tiny}, np.full(20, -1), n_clusters=2, restarts=1)  # compile
    _, seconds = _clock(lambda: fit_pathselclus(links, seeds, n_clusters=15))
    name = f"PathSelClus, 12 + 3 clusters, {' and '.join(paths)}"
    target = "≤ 5 min" if "U-P" in paths else "≤ 60 s"
    return [[name, target, seconds, "ten short restarts, two finished"]]


PARTS = {
    "pipeline": pipeline,
    "lda": lambda folder: compare(read_log(folder)),
    "pathselclus": lambda folder: pathselclus(folder, "U-P-D"),
    "pathselclus-patients": lambda folder: pathselclus(folder, "U-P-D", "U-P"),
}


def page(run: Run) -> str:
    """Return the page in Markdown; the folder of finished pieces keeps the simulated log too."""
    with tempfile.TemporaryDirectory() as temporary:
        log = (run.work or Path(temporary)) / "log"
        if not log.exists():
            simulate_hospital(log)
        rows = run.rows(PARTS, log)
    return HEAD + grid(["what", "target", "measured", ""], rows)
