"""Are the two hidden specialties found? F1 against the simulator's truth, seed by seed.

Usage: python benchmarks/specialty/recovery.py SCALE SEEDS [METHOD [VIEW]]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from telic.simulate.hospital import simulate_hospital
from telic.simulate.hospital_practices import HIDDEN_SIZES
from telic.specialty.access import read_log
from telic.specialty.discover import discover
from telic.specialty.explain import effect, judge


def run(scale: float, seed: int, method: str, view: str | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        simulate_hospital(path, scale=scale, seed=seed)
        log = read_log(path)
        practice = np.array(pq.read_table(path / "truth_users.parquet")["practice"].to_pylist())
        snooping = pq.read_table(path / "truth_accesses.parquet")["row"].to_numpy()
        topic = pq.read_table(path / "truth_encounters.parquet")["practice"].to_pylist()
    found = discover(log, method=method, view=view, restarts=1, seed=seed, threads=2)
    scores = []
    for hidden in HIDDEN_SIZES:
        truth = set(np.flatnonzero(practice == hidden))
        f1, listed = max(
            (
                (2 * len(truth & set(one.users)) / (len(truth) + len(one.users)), one.listed_code)
                for one in found.specialties
            ),
            key=lambda pair: pair[0],
            default=(0.0, None),
        )
        scores.append(f"{hidden} F1 {f1:.3f} listed {listed or 'none'}")
    alerts = judge(log, found)
    counted = effect(log, found, alerts, snooping)
    about = np.isin(np.array(topic)[log.access_encounter], list(HIDDEN_SIZES))
    hidden_user = np.isin(practice[log.access_user], list(HIDDEN_SIZES))
    own = about & hidden_user & ~np.isin(log.access_row, snooping)
    raised, explained = int((alerts.raised & own).sum()), int((alerts.explained & own).sum())
    print(
        f"scale {scale:g} seed {seed} {method}: {'; '.join(scores)}; planted-specialty alarms "
        f"{raised} explained {explained / max(raised, 1):.3f}; snooping {counted.snooping} caught "
        f"{counted.caught_without} -> {counted.caught_with} in {counted.queue_length}",
        flush=True,
    )


if __name__ == "__main__":
    scale, seeds = float(sys.argv[1]), int(sys.argv[2])
    for seed in range(seeds):
        run(scale, seed, *(sys.argv[3:5] + ["lda", None][len(sys.argv) - 3 :]))
