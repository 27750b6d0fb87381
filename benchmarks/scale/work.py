"""What the tables of `benchmarks.scale` time, each run as a process of its own.

`python -m benchmarks.scale.work NAME FOLDER MEMORY` prints, as JSON, the seconds of the work
without the interpreter's start, the processor seconds with it, the most bytes resident, and what
the work itself returns.
"""

import functools
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.form import megabytes

DAY = 24 * 3600 * 1_000_000
LOG, ROWS, LABELS, CHOICES = "log.parquet", "X.npy", "y.npy", "choices.npz"
TYPED, NETWORK, PIECES = "typed.parquet", "network", "pieces"
WEIGHTS = 100_000
RAN_OUT = 3
"""How a process ends that had too little memory."""


def write_log(folder: Path, rows: int) -> None:
    """Write a query log of simulated submissions, by blocks: queries by Zipf, 20 for each user."""
    rng, writer = np.random.default_rng(0), None
    for start in range(0, rows, 1_000_000):
        n = min(1_000_000, rows - start)
        query = np.char.add("query number ", np.minimum(rng.zipf(1.3, n), 3_000_000).astype(str))
        user = np.char.add("user-", rng.integers(0, rows // 20 + 1, n).astype(str))
        at = 1_700_000_000_000_000 + (start + np.arange(n)) * (100 * DAY // rows)
        table = pa.table(
            {
                "query": pa.array(query.astype(object), pa.string()),
                "at": pa.array(at, pa.timestamp("us", tz="UTC")),
                "user": pa.array(user.astype(object), pa.string()),
            }
        )
        writer = writer or pq.ParquetWriter(folder / LOG, table.schema)
        writer.write_table(table, row_group_size=250_000)
    writer.close()


def write_design(folder: Path, rows: int, width: int) -> None:
    """Write labelled rows by blocks, never whole."""
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(folder / ROWS, "w+", np.float64, (rows, width))
    y = np.zeros(rows, np.int8)
    for start in range(0, rows, 100_000):
        block = rng.normal(size=(min(100_000, rows - start), width))
        y[start : start + len(block)] = block[:, 0] + rng.normal(size=len(block)) > 1.5
        X[start : start + len(block)] = block
    X.flush()
    np.save(folder / LABELS, y)


def engine(memory: str, address: str | None = None, **more: Any) -> Any:
    """Threads of this machine, or a cluster."""
    from telic.scale import Dask, Local

    return Dask(address, **more) if address else Local(threads=2, memory=memory, **more)


def write_choices(folder: Path, users: int, each: int = 40) -> None:
    """Write what users chose, among ten candidates of 17 features."""
    rng, n = np.random.default_rng(0), users * each
    x = rng.normal(size=(10 * n, 17))
    own = np.repeat(rng.normal(size=(users, 17)), 10 * each, axis=0)
    score = (x * own).sum(axis=1) + rng.gumbel(size=len(x))
    chosen = 10 * np.arange(n) + score.reshape(n, 10).argmax(axis=1)
    np.savez(folder / CHOICES, x=x, chosen=chosen, group=each * np.arange(users + 1))


def write_compositions(people: str, folder: Path, memory: str, compositions: str) -> None:
    """Write the log of simulated people of 50 compositions, by blocks of other people."""
    from telic import simulate

    catalogue, writer = simulate.read_catalogue(), None
    for block, start in enumerate(range(0, int(compositions), 500_000)):
        users = min(500_000, int(compositions) - start) // 50
        log = getattr(simulate, people)(catalogue, users=users, compositions=50, seed=block)
        for place, name in enumerate(log.column_names):
            if name in ("user", "composition"):
                renamed = pc.binary_join_element_wise(f"{block}-", log[name], "")
                log = log.set_column(place, log.schema.field(name), renamed)
        writer = writer or pq.ParquetWriter(folder / TYPED, log.schema)
        writer.write_table(log, row_group_size=100_000)
    writer.close()


def fit_compositions(folder: Path, memory: str) -> None:
    from telic.completion import fit_files

    with tempfile.TemporaryDirectory(dir=folder) as work, engine(memory) as given:
        fit_files(folder / TYPED, executor=given, work=work)


def fit_in_memory(folder: Path, memory: str) -> None:
    from telic.completion import fit_files

    fit_files(folder / TYPED)


def fit_signals(folder: Path, memory: str) -> float:
    """Fit with all signals; return how far the weights may be above their optimum, relatively."""
    from telic.completion import fit_files

    fitted = fit_files(folder / TYPED, signals="all").signals.weights
    return fitted.gap / fitted.objective


def count_in_pieces(folder: Path, memory: str, address: str | None = None) -> None:
    from telic.completion.fit.from_pieces import count_logs
    from telic.data.pieces import open_pieces
    from telic.data.recognised_columns import shape_of

    log = folder / LOG
    with tempfile.TemporaryDirectory(dir=folder) as work, engine(memory, address) as given:
        count_logs([(str(log), shape_of(open_pieces(log)))], given, Path(work))


def count_by_duckdb(folder: Path, memory: str) -> None:
    """The same counts by DuckDB's own hand: no check of rows, no folding beyond lower case."""
    import duckdb

    try:
        _count_by_duckdb(duckdb, folder, memory)
    except duckdb.OutOfMemoryException:
        sys.exit(RAN_OUT)


def _count_by_duckdb(duckdb: Any, folder: Path, memory: str) -> None:
    from telic.scale import parse_memory

    with tempfile.TemporaryDirectory(dir=folder) as work, duckdb.connect() as db:
        db.execute(f"SET memory_limit = '{parse_memory(memory) >> 10}KiB'")
        db.execute(f"SET temp_directory = '{work}'")
        db.execute("SET preserve_insertion_order = false")
        log = (
            '(SELECT lower(query) AS form, query, epoch_us("at") AS us, "user" AS person '
            f"FROM '{folder / LOG}')"
        )
        end = db.execute(f"SELECT max(us) + 1 FROM {log}").fetchone()[0]
        split = db.execute(
            f"SELECT min(us) FROM (SELECT us FROM {log} ORDER BY us DESC LIMIT 1000)"
        )
        split, window = split.fetchone()[0], 28 * DAY
        counts = ", ".join(
            f"count(*) FILTER ({rule})"
            for rule in (
                "true",
                f"us >= {end - window}",
                f"us < {split}",
                f"us < {split} AND us >= {split - window}",
            )
        )
        queries = {
            "texts": f"SELECT form, query, {counts} FROM {log} GROUP BY ALL",
            "people": f"SELECT form, count(DISTINCT person), count(DISTINCT person) FILTER "
            f"(us < {split}) FROM {log} GROUP BY form",
            "histories": f"SELECT person, form, count(*), arg_max(query, us), max(us) FROM {log} "
            "GROUP BY ALL",
            "sessions": f"""SELECT form, count(*) FROM (SELECT DISTINCT person, form, sum(pause)
                OVER (PARTITION BY person ORDER BY us) AS session FROM (SELECT person, form, us,
                (us - lag(us) OVER (PARTITION BY person ORDER BY us) > 1800000000)::INT AS pause
                FROM {log})) GROUP BY form""",
        }
        for name, query in queries.items():
            db.execute(f"COPY ({query}) TO '{work}/{name}.parquet'")


def read_design(folder: Path, memory: str) -> None:
    """Read the rows once, and do nothing but look whether each is finite."""
    from telic.auc import FileDesign

    design = FileDesign.open(folder / ROWS, folder / LABELS)
    for _ in design.blocks(0, design.rows):
        pass


def fit_design(folder: Path, memory: str, address: str | None = None) -> None:
    from telic.auc import FileDesign, exact_in_pieces

    design = FileDesign.open(folder / ROWS, folder / LABELS)
    with engine(memory, address) as given:
        exact_in_pieces(design, executor=given)


def auc_of_design(folder: Path, memory: str, address: str | None = None) -> None:
    from telic.auc import FileDesign, auc_in_pieces

    design = FileDesign.open(folder / ROWS, folder / LABELS)
    with tempfile.TemporaryDirectory(dir=folder) as work, engine(memory, address) as given:
        auc_in_pieces(design, np.ones(design.width), executor=given, out=Path(work) / "scores")


def pull(shard: int, state: dict | None, shared: dict, number: int) -> tuple[dict, dict]:
    """A shard's round: a vector of weights goes half of the way to its own."""
    own = np.full(WEIGHTS, float(shard)) if state is None else state["own"]
    return {"own": own}, {"x": shared["x"] + (own - shared["x"]) / 2}


def mean(shared: dict, messages: list[dict]) -> tuple[dict, bool]:
    return {"x": np.mean([message["x"] for message in messages], axis=0)}, False


def hundred_rounds(folder: Path, memory: str, address: str | None = None) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as work, engine(memory, address) as given:
        start = {"x": np.zeros(WEIGHTS)}
        given.rounds(pull, mean, [1, 2], start, out=Path(work) / "rounds", max_rounds=100)


def users_weights(folder: Path, memory: str, address: str | None = None) -> None:
    from telic.choice import Choices, fit_groups

    with np.load(folder / CHOICES) as held:
        x, chosen, group = (held[name] for name in ("x", "chosen", "group"))
    choices = Choices(x, np.zeros(len(x)), np.arange(0, len(x) + 1, 10), chosen, group)
    with tempfile.TemporaryDirectory(dir=folder) as work, engine(memory, address) as given:
        for l2 in (0.01, 0.1, 1.0, 10.0, 100.0):  # those that adaQAC chooses from
            fit_groups(choices, l2=l2, executor=given, work=work)


def simulate_network(folder: Path, memory: str, users: str) -> None:
    from telic.hin import write_network
    from telic.simulate.microblog import microblog

    write_network(microblog(users=int(users), seed=0)[0], folder / NETWORK)


def risk_of_network(folder: Path, memory: str, address: str | None = None) -> None:
    """Judge all users by all link types at distances 0 to 3; the folder keeps what was mapped."""
    from telic.hin import read_network
    from telic.privacy import Adversary, risks

    network = read_network(folder / NETWORK)
    adversary = Adversary.of(network, in_links=False, joint=False, distance=3)
    every = [list(adversary.links)]
    shutil.rmtree(folder / PIECES, ignore_errors=True)
    with engine(memory, address, piece="32MiB") as given:
        list(risks(network, adversary, links=every, executor=given, work=folder / PIECES))


WORK = {
    "count in pieces": count_in_pieces,
    "count by DuckDB": count_by_duckdb,
    "simulate typists": functools.partial(write_compositions, "simulate_typists"),
    "simulate phones": functools.partial(write_compositions, "simulate_phones"),
    "fit compositions": fit_compositions,
    "fit compositions in memory": fit_in_memory,
    "fit all signals": fit_signals,
    "read a design": read_design,
    "fit a design": fit_design,
    "AUC of a design": auc_of_design,
    "users' weights": users_weights,
    "100 rounds": hundred_rounds,
    "simulate a network": simulate_network,
    "risk of a network": risk_of_network,
}

if __name__ == "__main__":
    name, where, memory, *more = sys.argv[1:]
    work = functools.partial(WORK[name], Path(where), memory, *more)
    if more[:1] and more[0].startswith("tcp"):
        import distributed  # noqa: F401 - who has a cluster has loaded it before there is work

    begun = time.perf_counter()
    found = work()
    wall = time.perf_counter() - begun
    # getrusage would tell of the parent, which was copied before this process became its own.
    print(json.dumps([wall, sum(os.times()[:2]), round(megabytes("VmHWM") * 1e6), found]))
