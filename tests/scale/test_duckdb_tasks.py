"""DuckDB within a task: it keeps to the task's memory and leaves nothing in its folder."""

import signal
import sys
import threading
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from telic.errors import InputError, JobError
from telic.scale import duckdb_tasks
from telic.scale.duckdb_tasks import database, listed, sorted_on_disk
from telic.scale.memory import granted


def numbers(*values):
    return pa.table({"a": pa.array(values, pa.int64())})


def test_tables_are_sorted_so_many_rows_at_a_time_and_nothing_stays(tmp_path, monkeypatch):
    tables = [numbers(*range(299, -1, -1)), numbers(), numbers(-1)]
    for part, longest in ((16, 120), (2**20, 64)):  # a row of 8 bytes takes 2**23 of the task's
        monkeypatch.setattr(duckdb_tasks, "PART", part)
        with granted(2**29):
            found = list(sorted_on_disk(tables, "a", tmp_path, 120))
        assert pa.Table.from_batches(found)["a"].to_pylist() == list(range(-1, 300))
        assert max(map(len, found)) == longest
        assert not list(tmp_path.iterdir())
    assert not list(sorted_on_disk([numbers()], "a", tmp_path, 120))


def test_a_database_is_set_for_tasks_side_by_side_without_a_network(tmp_path):
    with granted(2**30), database(tmp_path) as db:

        def setting(name):
            return db.execute(f"SELECT current_setting('{name}')").fetchone()[0]

        assert setting("memory_limit") == "614.3 MiB"  # three fifths
        assert setting("threads") == 1
        assert setting("TimeZone") == "UTC"
        assert not setting("autoinstall_known_extensions")
        assert not setting("autoload_known_extensions")
        assert Path(setting("temp_directory")).parent == tmp_path
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="names that Windows knows not")
@pytest.mark.parametrize("name", ["o'brien", "back\\slash", "both'\""])
def test_rows_spill_into_a_folder_of_any_name(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    with database(folder) as db:
        (spill,) = db.execute("SELECT current_setting('temp_directory')").fetchone()
    assert Path(spill).parent == folder
    (found,) = sorted_on_disk([numbers(3, 1, 2)], "a", folder, 10)
    assert found["a"].to_pylist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("error", "why", "kind", "said"),
    [
        (duckdb.OutOfMemoryException, "no\nroom", JobError, r"than the 38\.4 MiB .*\(no\)\. "),
        (duckdb.IOException, "No space left on device", JobError, "the disk is full where"),
        (duckdb.IOException, "Permission denied", duckdb.IOException, "Permission denied"),
        (RuntimeError, "a fault", RuntimeError, "a fault"),
    ],
)
def test_what_duckdb_cannot_do_is_said(tmp_path, error, why, kind, said):
    with pytest.raises(kind, match=said), granted(2**26), database(tmp_path):
        raise error(why)
    assert not list(tmp_path.iterdir())


def test_ctrl_c_while_duckdb_works_is_ctrl_c(tmp_path):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    long = "SELECT sum(a.range * b.range) FROM range(100000) a, range(100000) b"

    def work():
        with database(tmp_path) as db:
            threading.Timer(0.02, signal.raise_signal, (signal.SIGINT,)).start()
            db.execute(long)

    try:
        with pytest.raises(KeyboardInterrupt):
            work()
    finally:
        signal.signal(signal.SIGINT, before)
    assert not list(tmp_path.iterdir())


def test_a_path_is_a_text_of_sql_and_a_missing_duckdb_named(tmp_path, monkeypatch):
    assert listed([Path("it's"), Path("b")]) == "['it''s', 'b']"
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(InputError, match=r"needs DuckDB: pip install 'telic\[scale\]'"):
        database(tmp_path).__enter__()
