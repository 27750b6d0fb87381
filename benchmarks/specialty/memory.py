"""How much memory ten million accesses take.

A simulated log is written, and copies of it are put into one, each with patients and encounters of
its own: 10 million accesses of 3,269 users. Then another process reads it, discovers, and judges
the alarms, and says its largest resident size after each step. The goal is 3 GiB.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.form import Run, grid
from telic.simulate.hospital import simulate_hospital
from telic.specialty.log.log_files import read_log, write_log

SCALE = 0.35
FILE = "specialty-memory.md"
OPTIONS = {"copies": (6, "of the simulated log")}
HEAD = """# Memory that a large access log takes

The log is {copies} copies of a simulated hospital's in one, each with patients and encounters of
its own. One process reads it, discovers with one start, and judges the alarms. The table gives the
most memory that the process has held when each step ends, and its processor time so far. The goal
for ten million accesses is 3 GiB.

"""


def write(work, copies):
    simulate_hospital(work / "one", scale=SCALE)
    tables = {}
    for name in ("accesses", "diagnoses"):
        one = pq.read_table(work / "one" / f"{name}.parquet").unify_dictionaries()
        parts = []
        for copy in range(copies):
            part = one
            for column in ("patient", "encounter"):
                ids = part[column].combine_chunks()
                named = pc.binary_join_element_wise(
                    ids.dictionary.cast(pa.string()), str(copy), "-"
                )
                again = pa.DictionaryArray.from_arrays(ids.indices, named)
                part = part.set_column(part.column_names.index(column), column, again)
            parts.append(part)
        tables[name] = pa.concat_tables(parts).unify_dictionaries()
    tables["providers"] = pq.read_table(work / "one" / "providers.parquet")
    write_log(work / "log", tables, vocabulary="other", simulated=True)


def measure(work):
    from telic.specialty.alarms.colleagues import care_of
    from telic.specialty.alarms.explained_alarms import judge
    from telic.specialty.discovery.discover import discover

    began = time.process_time()

    def say(step):
        gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{step}: {gib:.2f} GiB, {time.process_time() - began:.0f} CPU s", flush=True)

    log = read_log(work / "log")
    say(f"{len(log.access_user):,} accesses read")
    found = discover(log, restarts=1)
    say(f"{len(found.specialties)} specialties")
    alerts = judge(log, found, care=care_of(log, found))
    say(f"{int(np.count_nonzero(alerts.raised)):,} alarms")


def page(run: Run) -> str:
    """Return the page in Markdown; the folder of finished pieces keeps the log too."""
    with tempfile.TemporaryDirectory() as temporary:
        work = run.work or Path(temporary)
        if not (work / "log").exists():
            write(work, run.options.copies)
        words = [sys.executable, "-m", "benchmarks.specialty.memory", str(work)]
        steps = subprocess.check_output(words, text=True).splitlines()
    head = HEAD.format(copies=run.options.copies)
    return head + grid(["after", "at most, and processor time"], [s.split(": ") for s in steps])


if __name__ == "__main__":
    measure(Path(sys.argv[1]))
