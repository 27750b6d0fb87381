"""Work on data larger than the memory it is given, beside DuckDB alone and a bare reading."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

from benchmarks.form import Run, mapped
from benchmarks.scale.work import (
    LABELS,
    LOG,
    PIECES,
    RAN_OUT,
    ROWS,
    TYPED,
    write_choices,
    write_design,
    write_log,
)
from telic.report.table import Table
from telic.scale.memory import parse_memory, said
from telic.simulate.microblog import TQQ_LINKS, TQQ_USERS

FILE = "scale-speed.md"
OPTIONS = {
    "rows": (1e8, "of the query log"),
    "compositions": (3e6, "of the log that feedback is learned from"),
    "phones": (1e6, "compositions of the log that all signals are learned from"),
    "design": (5.3e7, "rows of the labelled design: 20 GB on disk"),
    "choosers": (20_000, "users whose weights are learned"),
    "users": (TQQ_USERS, "of the network"),
    "memory": ("2GiB", "what the work is given"),
}


class Took(NamedTuple):
    """What a process took."""

    wall: float
    """Seconds of the work."""
    processor: float
    """Processor seconds of the whole process, imports too."""
    resident: int
    """Most bytes of memory that it held."""
    found: float | None
    """What the work returned."""


def took(name: str, folder: Path, memory: str, *more: str) -> Took:
    command = [sys.executable, "-m", "benchmarks.scale.work", name, str(folder), memory, *more]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return Took(*json.loads(done.stdout.splitlines()[-1]))


class Peaks:
    """The most bytes of memory that processes hold."""

    def __init__(self, processes: list[int]) -> None:
        self._processes = processes
        self.before, _ = self._now()
        self.added_up = self.together = 0

    def watch(self, ended: threading.Event) -> None:
        """Look ten times a second."""
        while not ended.wait(0.1):
            added_up, together = self._now()
            self.added_up = max(self.added_up, added_up)
            self.together = max(self.together, together)

    def _now(self) -> list[int]:
        """Bytes of all processes, added up, and with pages that several hold counted once."""
        each = [mapped(process, "Rss:", "Pss:") for process in self._processes]
        return [sum(kind) for kind in zip(*each, strict=True)]


@contextmanager
def cluster(folder: Path, workers: int = 2, memory: str = "1GiB") -> Iterator[tuple[str, Peaks]]:
    """Worker processes on this machine, and what memory they hold at most meanwhile."""
    from tests.scale.cluster import Cluster

    with closing(Cluster(folder, workers, memory=memory)) as running:
        running.ready().close()
        peaks, ended = Peaks([each.pid for each in running.workers]), threading.Event()
        watch = threading.Thread(target=peaks.watch, args=(ended,))
        watch.start()
        try:
            yield running.address, peaks
        finally:
            ended.set()
            watch.join()


def counted_by_duckdb(folder: Path, memory: str) -> tuple[Took, str]:
    """Return what DuckDB takes, and what memory it was given: twice as much whenever it ran out."""
    given = parse_memory(memory)
    while True:
        try:
            return took("count by DuckDB", folder, str(given)), said(given)
        except subprocess.CalledProcessError as error:
            if error.returncode != RAN_OUT:
                raise
            given *= 2


MEMORY, SECONDS, PROCESSOR, GIB = "memory", "s", "processor s", "GiB"
"""Yardsticks that are no run: the memory that is given, a second of the clock or of a processor, a
GiB."""
TARGETS: dict[str, list[tuple[float, str]]] = {
    "count in pieces": [(1.5, "count by DuckDB"), (1.15, MEMORY)],
    "fit a design": [(1.3, "read a design"), (1.15, MEMORY)],
    "AUC of a design": [(1.3, "read a design"), (1.15, MEMORY)],
    "fit compositions": [(1.3, "fit compositions in memory"), (1.0, MEMORY)],
    "fit all signals": [(300.0, PROCESSOR), (3.0, GIB)],
    "users' weights, two worker processes": [
        (0.65, "users' weights, one worker process"),
        (1.3, "users' weights, two threads"),
    ],
    "100 rounds, two worker processes": [(5.0, SECONDS)],
}
"""At most so many times a yardstick's time by the clock, or the memory."""
COLUMNS = {
    "work": "",
    "target": "",
    "of the first, wall": ".2f",
    "of the first, processor": ".2f",
    "seconds": ".1f",
    "processor seconds": ".1f",
    "resident": "",
}


def verdict(name: str, runs: dict[str, Took], memory: str) -> str:
    """Say which targets a run has, and whether it meets them."""
    told, one = [], runs[name]
    absolute = {SECONDS: one.wall, PROCESSOR: one.processor, GIB: one.resident / 2**30}
    for most, yardstick in TARGETS.get(name, ()):
        unit = f" {yardstick}" if yardstick in absolute else f" × {yardstick}"
        if yardstick in absolute:
            found = absolute[yardstick]
        elif yardstick == MEMORY:
            found = one.resident / parse_memory(memory)
        else:
            found = one.wall / runs[yardstick].wall
        met = "met" if found <= most else f"missed ({found:.3g})"
        told.append(f"≤ {most:g}{unit}: {met}")
    return "; ".join(told)


def table(title: str, runs: dict[str, Took], memory: str, note: str) -> Table:
    first = next(iter(runs.values()))
    rows = [
        [
            name,
            verdict(name, runs, memory),
            one.wall / first.wall,
            one.processor / first.processor,
            one.wall,
            one.processor,
            said(one.resident),
        ]
        for name, one in runs.items()
    ]
    return Table(title, COLUMNS, rows, note)


def tables(given: SimpleNamespace, folder: Path) -> Iterator[Table]:
    memory, curves = given.memory, Curves(folder, given.memory)
    yield from log_tables(int(given.rows), memory, folder, curves)
    yield from composition_tables(int(given.compositions), memory, folder, curves)
    yield signals_table(int(given.phones), memory, folder)
    yield from design_tables(int(given.design), memory, folder, curves)
    write_choices(folder, int(given.choosers))
    for work, title in (
        (
            "users' weights",
            f"Weights of {given.choosers:,} simulated users, by the batch in buckets of users",
        ),
        ("100 rounds", "100 rounds of two shards, 100,000 weights, states in files"),
    ):
        runs = {f"{work}, two threads": took(work, folder, memory)}
        runs |= curves.over_workers(work)
        yield table(title, runs, memory, "Processor seconds of the workers are not counted.")
    yield from network_tables(int(given.users), folder, curves)
    yield curves.sizes_table()
    yield curves.workers_table()
    yield curves.paper_table()


class Curves:
    """What the same work takes at other sizes, and with more workers."""

    def __init__(self, folder: Path, memory: str) -> None:
        self._folder, self._memory = folder, memory
        self._sizes: list[tuple[str, int, Took]] = []
        self._workers: list[list[Took]] = []
        self._names: list[str] = []

    def at(self, work: str, size: int) -> Took:
        """Run some work on a size, by threads."""
        found = took(work, self._folder, self._memory)
        self._sizes.append((work, size, found))
        return found

    def over_workers(self, work: str, memory: str = "2GiB") -> dict[str, Took]:
        """Run some work with one worker process, and with two, whose peaks are kept."""
        runs = {}
        for number, workers in ((1, "one worker process"), (2, "two worker processes")):
            with cluster(self._folder, number, memory) as (address, self.peaks):
                runs[f"{work}, {workers}"] = took(work, self._folder, self._memory, address)
        self._names.append(work)
        self._workers.append(list(runs.values()))
        return runs

    def sizes_table(self) -> Table:
        columns = {"work": "", "of": ",", "seconds": ".1f", "processor seconds": ".1f"}
        rows = [
            [work, size, one.wall, one.processor, 1e6 * one.processor / size, said(one.resident)]
            for work in dict.fromkeys(work for work, _, _ in self._sizes)
            for own, size, one in self._sizes
            if own == work
        ]
        return Table(
            "Over size",
            columns | {"processor seconds a million": ".2f", "resident": ""},
            rows,
            "Sizes are submissions, compositions, rows, and users of a network. What a process "
            "takes to start is in the small ones.",
        )

    def workers_table(self) -> Table:
        rows = [
            [name, one.wall, two.wall, two.wall / one.wall]
            for name, (one, two) in zip(self._names, self._workers, strict=True)
        ]
        columns = {"one worker, seconds": ".1f", "two workers, seconds": ".1f", "of one": ".2f"}
        return Table(
            "Over workers",
            {"work": ""} | columns,
            rows,
            f"Logs and designs are a tenth of the whole size. This machine has {os.cpu_count()} "
            "processor cores, on which the scheduler and the process that asks run, too: more "
            "workers would share them.",
        )

    def paper_table(self) -> Table:
        """Multiply the rates of the largest sizes."""
        largest = {work: (size, one) for work, size, one in self._sizes}
        wanted = {
            "count in pieces": (1e10, "10¹⁰ submissions"),
            "fit a design": (1e10, "10¹⁰ rows of 50 numbers"),
            "AUC of a design": (1e10, "10¹⁰ rows of 50 numbers"),
            "risk of a network": (1e9 * TQQ_USERS / TQQ_LINKS, "10⁹ links"),
        }
        rows = []
        for work, (size, called) in wanted.items():
            at, one = largest[work]
            hours = one.processor * size / at / 3600
            rows.append([work, called, hours, 60 * hours / 16])
        return Table(
            "On paper: a log of 10¹⁰ rows, a network of 10⁹ links",
            {"work": "", "of": "", "processor hours": ".1f", "minutes on 16 cores": ".0f"},
            rows,
            "The rate of the largest size above, times the size: storage that is as fast for all "
            "cores is taken for granted. Users' own queries, and a network, must fit on disks that "
            "every worker reaches; see [what must fit into memory]"
            "(../how-to/use-a-cluster.md#what-must-fit-into-memory).",
        )


SMALLER = (0.01, 0.1)
"""Parts of the size at which the same work is measured, too; the last one also over workers."""


def log_tables(rows: int, memory: str, folder: Path, curves: Curves) -> Iterator[Table]:
    """Count submissions."""
    for share in SMALLER:
        write_log(folder, int(share * rows))
        curves.at("count in pieces", int(share * rows))
    curves.over_workers("count in pieces")
    write_log(folder, rows)
    alone, given = counted_by_duckdb(folder, memory)
    counts = {"count by DuckDB": alone, "count in pieces": curves.at("count in pieces", rows)}
    ran_out = parse_memory(given) > parse_memory(memory)
    yield table(
        f"{rows:,} submissions of a simulated query log, memory {memory}",
        counts,
        memory,
        (f"DuckDB alone ran out of this memory, and was given {given}. " if ran_out else "")
        + "DuckDB and telic both write popularity, its last 28 days, people, sessions and each "
        "user's own queries. telic also checks each row and folds each query, and can go on after "
        "an interruption.",
    )
    (folder / LOG).unlink()


def composition_tables(
    compositions: int, memory: str, folder: Path, curves: Curves
) -> Iterator[Table]:
    """Fit a search box on compositions: check them, replay them, learn from them."""
    work = "fit compositions"
    for share in SMALLER:
        took("simulate typists", folder, memory, str(int(share * compositions)))
        curves.at(work, int(share * compositions))
    took("simulate typists", folder, memory, str(compositions))
    whole = f"{work} in memory"
    runs = {whole: took(whole, folder, memory), work: curves.at(work, compositions)}
    yield table(
        f"A search box of {compositions:,} compositions of simulated typists, memory {memory}",
        runs,
        memory,
        "Every row is checked, the log is replayed, and a box learns from implicit feedback "
        "(`telic completion fit`). In memory, too, a long log is learned from in chunks of users, "
        "but what these chose among, and what is long of the log, stays in memory.",
    )
    (folder / TYPED).unlink()


def signals_table(compositions: int, memory: str, folder: Path) -> Table:
    """Fit all groups of signals, in memory, on compositions with feedback and apps."""
    took("simulate phones", folder, memory, str(compositions))
    run = took("fit all signals", folder, memory)
    (folder / TYPED).unlink()
    return table(
        f"A search box of {compositions:,} compositions of simulated phones, with all signals",
        {"fit all signals": run},
        memory,
        "In memory: popularity, recency, habits, sessions, match, feedback and apps "
        "(`telic completion fit --signals all`). The weights are at most "
        f"{run.found:.0e} of the objective above their optimum.",
    )


def design_tables(rows: int, memory: str, folder: Path, curves: Curves) -> Iterator[Table]:
    """Fit labelled rows, and count how well they are ranked."""
    width, fits = 50, ("fit a design", "AUC of a design")
    for share in SMALLER:
        write_design(folder, int(share * rows), width)
        for name in fits:
            curves.at(name, int(share * rows))
    for name in fits:
        curves.over_workers(name)
    write_design(folder, rows, width)
    passes = {"read a design": took("read a design", folder, memory)}
    passes |= {name: curves.at(name, rows) for name in fits}
    yield table(
        f"{rows:,} made-up rows of {width} numbers ({said(8 * width * rows)}), memory {memory}",
        passes,
        memory,
        "Resident memory counts pages of the mapped file, which the system takes back at need.",
    )
    for name in (ROWS, LABELS):
        (folder / name).unlink()


def network_tables(users: int, folder: Path, curves: Curves) -> Iterator[Table]:
    """Judge the users of a network that workers share."""
    for share in (*SMALLER, 1.0):
        took("simulate a network", folder, "8GiB", str(int(share * users)))
        curves.at("risk of a network", int(share * users))
    *_, judged = curves.over_workers("risk of a network", memory="8GiB").values()
    peaks = curves.peaks
    parts = (folder / PIECES).rglob("*.npy")
    mapped = sum(part.stat().st_size for part in parts if "step-" not in str(part))
    yield Table(
        f"A simulated network of {users:,} users, which two worker processes share",
        {"what": "", "size": ""},
        [
            ["links and views in files that both map", said(mapped)],
            ["both workers before", said(peaks.before)],
            ["both at most, added up", said(peaks.added_up)],
            ["both at most, what both hold counted once", said(peaks.together)],
        ],
        "The risk of all users by all link types at distances 0 to 3, "
        f"{judged.wall:.0f} s. The last line counts once what both workers map. If each held a "
        "copy of its own, it would be as large as the line before it.",
    )


HEAD = """# Speed on data larger than memory

All this was measured on {cores} processor cores, with a load of {load:.0f} by other work at the
start. Each line is a process of its own. Processor seconds tell more than the clock where others
compute too; they count the start of Python and all threads.
"""


def page(run: Run) -> str:
    """Return the page in Markdown."""
    head = HEAD.format(cores=os.cpu_count(), load=os.getloadavg()[0])
    with tempfile.TemporaryDirectory() as temporary:
        made = tables(run.options, Path(temporary))
        return "\n\n".join([head.strip(), *(table.markdown().strip() for table in made)]) + "\n"
