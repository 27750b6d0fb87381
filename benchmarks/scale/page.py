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
from typing import NamedTuple

from benchmarks.form import Run, mapped
from benchmarks.scale.work import (
    LABELS,
    PIECES,
    RAN_OUT,
    ROWS,
    write_choices,
    write_design,
    write_log,
)
from telic.report.table import Table
from telic.scale.memory import parse_memory, said

FILE = "scale-speed.md"
OPTIONS = {
    "rows": (1e8, "of the query log"),
    "design": (5.3e7, "rows of the labelled design: 20 GB on disk"),
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


def took(name: str, folder: Path, memory: str, *more: str) -> Took:
    command = [sys.executable, "-m", "benchmarks.scale.work", name, str(folder), memory, *more]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    wall, processor, resident = json.loads(done.stdout.splitlines()[-1])
    return Took(wall, processor, resident)


def hours(found: Took, rows: int, wanted: float) -> float:
    """Processor hours for more rows, at the rate of a run."""
    return found.processor / rows * wanted / 3600


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


MEMORY, SECONDS = "memory", "s"
"""Yardsticks that are no run: the memory that is given, and a second."""
TARGETS: dict[str, list[tuple[float, str]]] = {
    "count in pieces": [(1.5, "count by DuckDB"), (1.15, MEMORY)],
    "fit a design": [(1.3, "read a design"), (1.15, MEMORY)],
    "AUC of a design": [(1.3, "read a design"), (1.15, MEMORY)],
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
    told = []
    for most, yardstick in TARGETS.get(name, ()):
        found = runs[name].wall
        if yardstick == MEMORY:
            found = runs[name].resident / parse_memory(memory)
        elif yardstick != SECONDS:
            found /= runs[yardstick].wall
        unit = " s" if yardstick == SECONDS else f" × {yardstick}"
        met = "met" if found <= most else f"missed ({found:.2f})"
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


def tables(rows: int, design_rows: int, memory: str, folder: Path) -> Iterator[Table]:
    write_log(folder, rows)
    alone, given = counted_by_duckdb(folder, memory)
    counts = {"count by DuckDB": alone, "count in pieces": took("count in pieces", folder, memory)}
    ran_out = parse_memory(given) > parse_memory(memory)
    yield table(
        f"{rows:,} submissions of a simulated query log, memory {memory}",
        counts,
        memory,
        (f"DuckDB alone ran out of this memory, and was given {given}. " if ran_out else "")
        + "DuckDB and telic both write popularity, its last 28 days, people, sessions and each "
        "user's own queries. telic also checks each row and folds each query, and can go on after "
        "an interruption. At telic's rate 10¹⁰ submissions take "
        f"{hours(counts['count in pieces'], rows, 1e10):.0f} processor hours.",
    )
    (folder / "log.parquet").unlink()
    width = 50
    write_design(folder, design_rows, width)
    size = said(8 * width * design_rows)
    names = ("read a design", "fit a design", "AUC of a design")
    passes = {name: took(name, folder, memory) for name in names}
    longer = hours(passes["fit a design"], design_rows, 1e10)
    yield table(
        f"{design_rows:,} rows of {width} numbers ({size}), memory {memory}",
        passes,
        memory,
        "Resident memory counts pages of the mapped file, which the system takes back at need. "
        f"At this rate a fit of 10¹⁰ rows takes {longer:.1f} processor hours.",
    )
    for name in (ROWS, LABELS):
        (folder / name).unlink()
    write_choices(folder)
    for work, title in (
        ("users' weights", "Weights of 4,000 users, learned by the batch in buckets of users"),
        ("100 rounds", "100 rounds of two shards, 100,000 weights, states in files"),
    ):
        runs = {f"{work}, two threads": took(work, folder, memory)}
        for number, workers in ((1, "one worker process"), (2, "two worker processes")):
            with cluster(folder, number) as (address, _):
                runs[f"{work}, {workers}"] = took(work, folder, memory, address)
        yield table(title, runs, memory, "Processor seconds of the workers are not counted.")
    took("simulate a network", folder, memory)
    with cluster(folder, 2, memory="8GiB") as (address, peaks):
        judged = took("risk of a network", folder, memory, address)
    parts = (folder / PIECES).rglob("*.npy")
    mapped = sum(part.stat().st_size for part in parts if "step-" not in str(part))
    yield Table(
        "A network of t.qq's size, which two worker processes share",
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
    given = run.options
    with tempfile.TemporaryDirectory() as temporary:
        made = tables(int(given.rows), int(given.design), given.memory, Path(temporary))
        return "\n\n".join([head.strip(), *(table.markdown().strip() for table in made)]) + "\n"
