"""Time risk and attack at the size of t.qq: `python -m benchmarks.privacy [users] [out.md]`."""

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.privacy.recursion import candidates
from telic.hin import induced, read_network, write_network
from telic.privacy.auxiliary import Auxiliary, Rules
from telic.privacy.dehin import _target_links, attack
from telic.privacy.risk import risks
from telic.privacy.target import subsets
from telic.simulate.microblog import TQQ_USERS, Community, microblog

LOAD = """
import sys, time
from telic.hin import read_network
read_network(sys.argv[2])
begin = time.perf_counter(), time.process_time()
read_network(sys.argv[1])
print(time.perf_counter() - begin[0], time.process_time() - begin[1])
print(next(int(x.split()[1]) / 1e6 for x in open("/proc/self/status") if "VmHWM" in x))
"""
SAMPLED = 25
"""Targets that the recursion is timed on."""


def cpu(function, repeats=1):
    """Median CPU seconds, and the last result."""
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        result = function()
        times.append(time.process_time() - begin)
    return statistics.median(times), result


def main(users=TQQ_USERS, out="benchmarks/privacy/speed.md"):
    rows = []

    def row(work, target, seen):
        rows.append(f"| {work} | {target} | {seen} |")
        print(rows[-1], flush=True)

    small, (few,) = microblog(users=3000, communities=[Community(0.02, 200)])
    warm = Auxiliary(small, Rules.of(small))
    attack(warm, induced(small, {"user": few}), max_distance=3)
    list(risks(small, max_distance=2))
    begin, used = time.perf_counter(), time.process_time()
    network, (members,) = microblog(users=users, communities=[Community(0.01)], seed=0)
    links = sum(len(part) for part in network.links.values())
    wall, used = time.perf_counter() - begin, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    row("simulate", "≤ 60 s", f"{wall:.0f} s ({used:.0f} CPU s), {peak:.1f} GB at most")
    with tempfile.TemporaryDirectory() as folder:
        write_network(small, Path(folder) / "small")
        write_network(network, Path(folder) / "net")
        words = [sys.executable, "-c", LOAD, f"{folder}/net", f"{folder}/small"]
        loaded, busy, memory = map(float, subprocess.check_output(words).split())
        network = read_network(Path(folder) / "net")
    row(
        "load from Parquet",
        "≤ 10 s, ≤ 1.2 GB",
        f"{loaded:.1f} s ({busy:.1f} CPU s), {memory:.2f} GB at most",
    )
    target = induced(network, {"user": members})
    spent, prepared = cpu(lambda: Auxiliary(network, Rules.of(target)))
    row("prepare the auxiliary network, once", "", f"{spent:.1f} CPU s")
    spent, result = cpu(lambda: attack(prepared, target, max_distance=3), 5)
    row("attack, 1,000 targets, n = 0…3, 4 link types", "≤ 0.5 CPU s", f"{spent:.3f} CPU s")
    every = subsets(list(prepared.rules.strengths))
    many, _ = cpu(lambda: [attack(prepared, target, max_distance=3, links=s) for s in every])
    row("the same for 15 subsets of link types", "≤ 5 s", f"{many:.2f} CPU s")
    _compare(row, prepared, target, result, spent)
    spent, _ = cpu(lambda: [found.risk for found in risks(network, max_distance=3)])
    row("risk, 45 settings, the whole network", "≤ 30 CPU s", f"{spent:.1f} CPU s")
    Path(out).write_text(
        f"Simulated microblog, {users:,} users, {links:,} links; written by "
        "`python -m benchmarks.privacy`.\n\n| work | target | measured |\n|---|---|---|\n"
        + "\n".join(rows) + "\n"
    )  # fmt: skip


def _compare(row, prepared, target, result, spent):
    sets = prepared.intervals(target)
    _, *links = _target_links(prepared, target, None)
    args = (sets.first, sets.last, *links, prepared.indptr, prepared.indices, prepared.strength)
    chosen = np.random.default_rng(0).choice(target.size("user"), SAMPLED, replace=False)
    for hasty, name in ((False, "as printed"), (True, "with early exits")):
        for n in (1, 2, 3):
            total = 0.0
            same = True
            for t in chosen:
                keep = np.zeros(prepared.size, bool)
                candidates(n, hasty, t, keep[:0], *args)
                begin = time.process_time()
                candidates(n, hasty, t, keep, *args)
                total += time.process_time() - begin
                found = np.sort(prepared.order[np.flatnonzero(keep)])
                same = same and np.array_equal(found, result.candidates(int(t), n))
            whole = total * target.size("user") / SAMPLED
            row(
                f"the compiled recursion, {name}, n = {n}, from {SAMPLED} of the targets",
                "level method ≥ 1,000× less" if n == 3 else "",
                f"about {whole:.1f} CPU s for 1,000 targets: {whole / spent:,.0f}× the level "
                f"method's n = 0…3; candidate sets {'equal' if same else 'DIFFER'}",
            )


if __name__ == "__main__":
    main(*(int(x) if x.isdecimal() else x for x in sys.argv[1:]))
