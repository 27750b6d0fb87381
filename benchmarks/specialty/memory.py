"""How much memory ten million accesses take.

Usage: python benchmarks/specialty/memory.py WORK [COPIES]

A simulated log is written, and COPIES (6) of it are put into one, each with patients and encounters
of its own: 10 million accesses of 3,269 users. Then another process reads it, discovers, and judges
the alarms, and prints its largest resident size after each step. The goal is 3 GiB.
"""

import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from telic.simulate.hospital import simulate_hospital
from telic.specialty.log.log_files import read_log, write_log

SCALE = 0.35
COPIES = 6


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
    from telic.specialty.alarms.judge import judge
    from telic.specialty.discovery.discover import discover

    began = time.process_time()

    def say(step):
        gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{step}: {gib:.2f} GiB, {time.process_time() - began:.0f} CPU s", flush=True)

    log = read_log(work / "log")
    say(f"{len(log.access_user):,} accesses read")
    found = discover(log, restarts=1)
    say(f"{len(found.specialties)} specialties")
    alerts = judge(log, found, care=care_of(log))
    say(f"{int(np.count_nonzero(alerts.raised)):,} alarms")


def main():
    work = Path(sys.argv[1])
    if sys.argv[2:] == ["measure"]:
        return measure(work)
    work.mkdir(parents=True, exist_ok=True)
    if not (work / "log").exists():
        write(work, int(sys.argv[2]) if sys.argv[2:] else COPIES)
    subprocess.run([sys.executable, __file__, str(work), "measure"], check=True)


if __name__ == "__main__":
    main()
