"""How much memory 40 million searches take, in the columns of AmazonQAC.

The data set itself is not at hand. Files with its columns are written: sessions whose terms are
drawn by a power law from twelve million, and who follow nothing. Then `telic study amazonqac
--share 1` runs on them, the whole study. The goal is 8 GiB. Of what a signal is worth this says
nothing.
"""

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.form import Run, grid

FILE = "amazonqac-memory.md"
OPTIONS = {
    "rows": (40_000_000, "submissions of the training split"),
    "terms": (12_000_000, "terms that sessions draw from"),
}
HEAD = """# Memory that forty million searches take

Files with AmazonQAC's columns were made up: {rows:,} submissions of {sessions:,} sessions,
{terms:,} distinct terms, in {files} files; on average {typed:.1f} prefixes were typed towards
each, and a session has some four submissions, some minutes apart. Terms are drawn by a power
law and follow nothing, so the results are of no interest. One process runs the whole study on
them (`telic study amazonqac --share 1`): it reads the files in pieces, learns and tests. The
table gives the most memory that it held, and its processor time. The goal is 8 GiB.

"""
A_FILE, SESSION, TESTED = 1_000_000, 4, 20_000
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
DAYS, PAUSE = 60, 180


def term(number):
    """Return a term of two to five words, another one for each number."""
    words = []
    while number or not words:
        number, rest = divmod(number, len(SYLLABLES) ** 2)
        words.append(SYLLABLES[rest // len(SYLLABLES)] + SYLLABLES[rest % len(SYLLABLES)])
    return " ".join([*words, "set"])


def drawn(rng, count, terms):
    """Terms by a power law of exponent one: the logarithm of their rank is uniform."""
    return np.exp(rng.uniform(0, np.log(terms), count)).astype(int)


def moments(rng, session):
    """Sessions begin whenever they like, and go on after some minutes; in seconds."""
    pauses = np.cumsum(rng.exponential(PAUSE, len(session)))
    first = np.flatnonzero(np.diff(session, prepend=-1))
    begun = rng.uniform(0, DAYS * 86_400, len(first)) - pauses[first]
    return (np.repeat(begun, np.diff(first, append=len(session))) + pauses).astype(int)


def texts_of(seconds):
    at = np.datetime64("2023-09-01") + seconds.astype("timedelta64[s]")
    return np.datetime_as_string(at, unit="s").tolist()


def write(work, rows, terms):
    """Write the files; return what they hold."""
    for split in ("train", "test"):
        (work / split).mkdir(parents=True)
    seen, sessions, typed, files = np.zeros(terms + 1, bool), 0, 0, 0
    for begin in range(0, rows, A_FILE):
        rng = np.random.default_rng([0, begin])
        count = min(A_FILE, rows - begin)
        session = sessions + np.cumsum(rng.random(count) < 1 / SESSION)
        sessions = int(session[-1]) + 1
        number = drawn(rng, count, terms)
        seen[number] = True
        words = list(map(term, number.tolist()))
        first = rng.integers(1, 6, count).tolist()
        prefixes = [
            [w[:k] for k in range(f, len(w) + 1)] for w, f in zip(words, first, strict=True)
        ]
        typed += sum(map(len, prefixes))
        at = texts_of(moments(rng, session))
        columns = {
            "query_id": np.arange(begin, begin + count),
            "session_id": session,
            "prefixes": prefixes,
            "first_prefix_typed_time": at,
            "final_search_term": words,
            "search_time": at,
            "popularity": np.ones(count, int),
        }
        pq.write_table(pa.table(columns), work / "train" / f"part-{files:05}.parquet")
        files += 1
    rng = np.random.default_rng([1, 0])
    words = list(map(term, drawn(rng, TESTED, terms).tolist()))
    past = [[term(n) for n in drawn(rng, SESSION, terms)] for _ in range(TESTED)]
    at = texts_of(DAYS * 86_400 + np.arange(TESTED))
    columns = {
        "query_id": np.arange(TESTED),
        "session_id": rows + np.arange(TESTED),
        "past_search_terms": [[[text, at[0]] for text in each] for each in past],
        "prefix": [w[: 1 + i % len(w)] for i, w in enumerate(words)],
        "prefix_typed_time": at,
        "final_search_term": words,
        "search_time": at,
    }
    pq.write_table(pa.table(columns), work / "test" / "part-00000.parquet")
    held = {"sessions": sessions, "terms": int(seen.sum()), "files": files, "typed": typed / rows}
    (work / "held.json").write_text(json.dumps(held))
    return held


def page(run: Run) -> str:
    """Return the page in Markdown; the folder of finished pieces keeps the files too."""
    with tempfile.TemporaryDirectory() as temporary:
        work = run.work or Path(temporary)
        data = work / "data"
        if not (data / "held.json").exists():
            write(data, run.options.rows, run.options.terms)
        words = ["study", "amazonqac", "--data", data, "--share", "1", "--work", work / "kept"]
        words += ["--out", work / "report.html", "--overwrite"]
        subprocess.check_call([sys.executable, "-m", "telic", *map(str, words)])
        took = resource.getrusage(resource.RUSAGE_CHILDREN)  # of the largest, which is this one
        held = json.loads((data / "held.json").read_text())
    gib, seconds = took.ru_maxrss / 2**20, took.ru_utime + took.ru_stime
    row = [f"{run.options.rows:,} submissions", f"{gib:.2f} GiB", f"{seconds:,.0f} s"]
    head = HEAD.format(rows=run.options.rows, **held)
    return head + grid(
        ["read, learned from and tested", "memory, at most", "processor time"], [row]
    )
