import sqlite3
from contextlib import closing

import pytest

from telic.data import databases
from telic.data.databases import open_engine
from telic.errors import InputError
from telic.serve.state.store import SUBMISSIONS
from telic.specialty.alarms.review_queue import ReviewQueue


@pytest.mark.parametrize("store", [lambda url: open_engine(url, [SUBMISSIONS.name]), ReviewQueue])
def test_a_database_of_something_else_is_left_as_it_is(tmp_path, store):
    file = tmp_path / "thesis.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE chapters (words TEXT)")
        connection.commit()
    before = file.read_bytes()
    with pytest.raises(InputError, match=r"database of something else \(its tables: chapters\)"):
        store(f"sqlite:///{file}")
    assert file.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [file.name]


@pytest.mark.parametrize("held", [[], ["own"], ["own", "chapters"]])
def test_an_empty_database_and_ones_own_are_opened(tmp_path, held):
    file = tmp_path / "store.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        for name in held:
            connection.execute(f"CREATE TABLE {name} (words TEXT)")
        connection.execute("PRAGMA user_version = 1")  # writes the file, without a table too
        connection.commit()
    engine = open_engine(f"sqlite:///{file}", {"own"})
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT 1").scalar() == 1
    engine.dispose()


def test_a_connection_is_kept_unless_its_pool_was_disposed_of_meanwhile(tmp_path):
    engine = open_engine(f"sqlite:///{tmp_path / 'store.sqlite'}", [])
    kept = []
    for disposed in (False, True, False):
        with engine.connect() as connection:
            connection.exec_driver_sql("SELECT 1")
            kept.append(connection.connection.dbapi_connection)
            if disposed:
                engine.dispose()
    engine.dispose()
    assert kept[0] is kept[1]
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        kept[1].execute("SELECT 1")
    assert kept[2] is not kept[1]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sqlite:///box.sqlite?mode=ro", "URL has options, which SQLite's takes none of"),
        ("sqlite://host/box.sqlite", "names a host, but SQLite has none"),
        ("sqlite://", "in memory and would be forgotten. Name a file"),
        ("box.sqlite", "no SQLAlchemy URL. Write sqlite:///"),
    ],
)
def test_a_url_that_names_no_database_of_ours_is_refused(url, message):
    with pytest.raises(InputError, match=message):
        open_engine(url, [])


def test_a_database_whose_driver_is_not_installed_is_refused_without_its_password():
    with pytest.raises(
        InputError, match=r"needs the package .*pip install telic\[postgresql\]"
    ) as e:
        open_engine("postgresql+psycopg2://ann:secret@host/box", [])
    assert "secret" not in str(e.value)


def test_nobody_waits_long_for_what_others_hold():
    assert databases.POSTGRESQL["connect_timeout"] == 3
    assert databases.POSTGRESQL["options"] == "-c lock_timeout=2s -c statement_timeout=10s"
