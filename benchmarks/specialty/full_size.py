"""The published size: PathSelClus with 12 + 3 clusters, and the pipeline from log to report.

Usage: python benchmarks/specialty/full_size.py [SCALE]
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import sparse

from telic.simulate.hospital import simulate_hospital
from telic.specialty.access import read_log
from telic.specialty.discover import discover
from telic.specialty.explain import Pseudonyms, effect, judge
from telic.specialty.pathselclus import fit_pathselclus
from telic.specialty.recognise import CORE_CLASSES
from telic.specialty.report import specialty_report
from telic.specialty.seeded import links_of, path_of, representatives


def clock(name, work):
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    print(
        f"{name:40s} {time.perf_counter() - wall:6.1f} s, {time.process_time() - cpu:6.1f} CPU s",
        flush=True,
    )
    return result


def write_report(log, found, file):
    alerts = judge(log, found)
    counted = effect(log, found, alerts)
    report = specialty_report(log, found, alerts, counted, recognitions={}, pseudonyms=Pseudonyms())
    report.write(file)


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "log"
    simulate_hospital(path, scale=float((sys.argv[1:] or ["1"])[0]))
    start = time.perf_counter()
    log = clock("read", lambda: read_log(path))
    found = clock("discover (LDA, topics chosen, 3 + 2 runs)", lambda: discover(log))
    clock("alarms and report", lambda: write_report(log, found, Path(folder) / "report.html"))
print(f"from {len(log.access_user):,} accesses to the report: {time.perf_counter() - start:.1f} s")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(f"peak memory of the simulation and all of this: {peak:.2f} GiB")
patient, diagnosis = links_of(log, "general")
seeds = representatives(log.taxonomy, diagnosis, CORE_CLASSES)
half = {name: path_of(name, patient, diagnosis) for name in ("U-P-D", "U-P")}
tiny = sparse.csr_array(np.eye(20))
fit_pathselclus({"p": tiny}, np.full(20, -1), n_clusters=2, restarts=1)  # compile
for paths in (["U-P-D"], ["U-P-D", "U-P"]):
    links = {name: half[name] for name in paths}
    clock(
        f"PathSelClus, 12 + 3, {' and '.join(paths)}",
        lambda links=links: fit_pathselclus(links, seeds, n_clusters=15),
    )
