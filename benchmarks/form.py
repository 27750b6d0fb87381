"""The form of every page of benchmarks: a module with `FILE`, `page` and, if need be, `OPTIONS`.

`FILE` is the page in ``docs``, `page` takes a `Run` and returns the page in Markdown, and `OPTIONS`
gives options of its own, or other defaults, by name: (default, help).
"""

import hashlib
import json
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import telic

OPTIONS = {
    "only": ("", "part of the name of what to measure"),
    "repeat": (5, "runs of each; the median counts"),
    "limit": (60.0, "seconds after which a rival is out"),
}
"""What every page takes."""


class Run:
    """One run of a page: its options, and the folder that keeps what is finished."""

    def __init__(self, work: Path | None = None, **given: Any) -> None:
        self.work = work
        self.options = SimpleNamespace(**given)
        if work:
            work.mkdir(parents=True, exist_ok=True)

    def kept(self, name: str, make: Callable[..., Any], *given: Any) -> Any:
        """Take a finished piece (what JSON holds) from the folder, or make it of what is given.

        A generator gives a list. Nothing is taken over from other code of telic or of these pages,
        nor from other options.
        """
        file = self.work and self.work / f"{name.replace('/', '|')}-{self._made_by()}.json"
        if file and file.is_file():
            return json.loads(file.read_text(encoding="utf-8"))
        content = json.dumps(make(*given), ensure_ascii=False, default=list)
        if file:
            file.write_text(content, encoding="utf-8")
        return json.loads(content)

    def rows(self, parts: Mapping[str, Callable[..., Any]], *given: Any) -> list[list[Any]]:
        """Take or make the rows of every part that is asked for, one part after the other."""
        found = []
        for name, make in parts.items():
            if self.asks_for(name):
                found += self.kept(name, make, *given)
        return found

    def _made_by(self) -> str:
        options = {name: value for name, value in vars(self.options).items() if name != "only"}
        return hashlib.sha256(repr((_code(), sorted(options.items()))).encode()).hexdigest()[:16]

    def asks_for(self, name: str) -> bool:
        """Whether a part is measured in this run."""
        return self.options.only in name


@cache
def _code() -> str:
    """Digest of every file of telic's code and of the benchmarks'."""
    folders = Path(telic.__file__).parent, Path(__file__).parent
    files = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def clock(work: Callable[[], Any], repeat: int = 1) -> tuple[float, Any]:
    """Return seconds of processor time, the median of some runs, and what the last one made."""
    times = []
    for _ in range(repeat):
        began = time.process_time()
        result = work()
        times.append(time.process_time() - began)
    return statistics.median(times), result


def in_turn(repeat: int, calls: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Median processor seconds of each; they take turns, so a noisy minute falls on all alike."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeat):
        for name, call in calls.items():
            times[name].append(clock(call)[0])
    return {name: statistics.median(each) for name, each in times.items()}


def megabytes(field: str, process: int | str = "self") -> float:
    """Of memory of a process, by a field of its status: VmRSS now, VmHWM at most."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition(f"{field}:")[2].split()[0]) * 1024 / 1e6


def mapped(process: int | str, *kinds: str) -> list[int]:
    """Bytes of memory of a process, in all fields of its smaps_rollup that begin with each word."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return [1024 * sum(int(x.split()[1]) for x in lines if x.startswith(kind)) for kind in kinds]


def geometric_mean(rows: Iterable[Sequence[str]]) -> float:
    """Of the ratios, which rows end with."""
    return statistics.geometric_mean(float(row[-1]) for row in rows)


def grid(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown, whose rows are shown as they come."""
    lines = [" | ".join(columns), " | ".join(["---"] * len(columns))]
    for row in rows:
        lines.append(" | ".join(row))
        print(lines[-1], flush=True)
    return "".join(f"| {line} |\n" for line in lines)
