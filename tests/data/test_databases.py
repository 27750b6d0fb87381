import sqlite3
import sys
from contextlib import closing

import pytest
from sqlalchemy import event
from sqlalchemy.exc import DatabaseError

from telic.data import databases
from telic.data.databases import POSTGRESQL, Gone, check_file, open_engine
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
        ("postgresql+psycopg://ann:s3cr@tpass@host/box", "more than one @. In .* write it as %40"),
        ("postgresql+psycopg://ann:s3@cret/pass@host/box", "more than one @"),
    ],
)
def test_a_url_that_names_no_database_of_ours_is_refused(url, message):
    with pytest.raises(InputError, match=message):
        open_engine(url, [])


@pytest.mark.parametrize(
    ("driver", "hint"),
    [
        ("psycopg", r"psycopg. Install it: pip install telic\[postgresql\]"),
        ("psycopg2", r"psycopg2. For PostgreSQL write postgresql\+psycopg://"),
    ],
)
def test_a_database_whose_driver_is_not_installed_is_refused_without_its_password(
    driver, hint, monkeypatch
):
    monkeypatch.setitem(sys.modules, driver, None)
    with pytest.raises(InputError, match=f"needs the package {hint}") as e:
        open_engine(f"postgresql+{driver}://ann:secret@host/box", [])
    assert "secret" not in str(e.value)


def test_nobody_waits_long_for_what_others_hold():
    assert databases.POSTGRESQL["connect_timeout"] == 3
    assert databases.POSTGRESQL["options"] == "-c lock_timeout=2s -c statement_timeout=10s"
    silent = databases.POSTGRESQL["keepalives_interval"] * databases.POSTGRESQL["keepalives_count"]
    assert databases.POSTGRESQL["keepalives_idle"] + silent < 20
    assert databases.POSTGRESQL["tcp_user_timeout"] == 10_000


def told_to_the_driver(url):
    """Return what a driver is told for a connection, which is not made."""
    engine, told = open_engine(url, []), {}

    @event.listens_for(engine, "do_connect")
    def asked(dialect, record, arguments, options):
        told.update(options)
        raise InterruptedError

    with pytest.raises(InterruptedError):
        engine.connect()
    return told


@pytest.mark.parametrize("scheme", ["postgresql+psycopg", "postgresql"])
def test_the_driver_of_postgresql_is_told_how_long_to_wait(scheme):
    assert told_to_the_driver(f"{scheme}://ann@host/box").items() >= POSTGRESQL.items()


def test_what_the_url_says_goes_first():
    said = "options=-csearch_path%3Dshop&connect_timeout=9"
    told = told_to_the_driver(f"postgresql+psycopg://ann@host/box?{said}")
    assert told["connect_timeout"] == "9"
    assert told["options"] == f"{POSTGRESQL['options']} -csearch_path=shop"
    assert told["tcp_user_timeout"] == POSTGRESQL["tcp_user_timeout"]


def test_what_is_committed_is_on_disk_and_what_is_deleted_is_gone(tmp_path, monkeypatch):
    connect = sqlite3.connect

    def of_another_build(*given, **options):
        made = connect(*given, **options)
        made.execute("PRAGMA synchronous=OFF").close()
        made.execute("PRAGMA secure_delete=OFF").close()
        return made

    monkeypatch.setattr(sqlite3, "connect", of_another_build)
    engine = open_engine(f"sqlite:///{tmp_path / 'store.sqlite'}", [])
    with engine.connect() as connection:
        assert (tmp_path / "store.sqlite-wal").exists()
        settings = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "secure_delete")
        ]
    engine.dispose()
    assert settings == ["wal", 2, 1]  # 2 is FULL


def test_who_writes_holds_the_lock_from_the_beginning(tmp_path):
    engine = open_engine(f"sqlite:///{tmp_path / 'store.sqlite'}", [])
    with closing(sqlite3.connect(tmp_path / "store.sqlite", timeout=0)) as other:
        with engine.begin():
            other.execute("BEGIN IMMEDIATE")
            other.rollback()
        locked = pytest.raises(sqlite3.OperationalError, match="locked")
        with engine.execution_options(writes=True).begin(), locked:
            other.execute("BEGIN IMMEDIATE")
    engine.dispose()


@pytest.mark.parametrize("lost", ["store.sqlite", "store.sqlite-wal"])
@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_not_the_one_that_was_opened_is_noticed(tmp_path, lost, replaced):
    engine = open_engine(f"sqlite:///{tmp_path / 'store.sqlite'}", [])
    with engine.connect() as connection:
        check_file(connection)
        (tmp_path / lost).rename(tmp_path / "elsewhere")
        if replaced:
            (tmp_path / lost).write_bytes((tmp_path / "elsewhere").read_bytes())
        with pytest.raises(Gone, match="deleted or replaced"):
            check_file(connection)
        connection.rollback()
        with pytest.raises(Gone):
            connection.begin()
    engine.dispose()


def test_a_file_that_is_no_database_is_said_and_let_go(tmp_path, monkeypatch):
    made, connect = [], sqlite3.connect

    def noted(*given, **options):
        made.append(connect(*given, **options))
        return made[-1]

    (tmp_path / "notes.txt").write_text("years of work " * 99)
    monkeypatch.setattr(sqlite3, "connect", noted)
    with pytest.raises(InputError, match=r"notes.txt: is no SQLite database\. Name another file"):
        open_engine(f"sqlite:///{tmp_path / 'notes.txt'}", [])
    monkeypatch.setattr("telic.data.databases._refuse_foreign", lambda *_: None)
    with pytest.raises(DatabaseError, match="not a database"):  # put there a moment later
        open_engine(f"sqlite:///{tmp_path / 'notes.txt'}", []).connect()
    assert len(made) == 2
    for each in made:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            each.execute("SELECT 1")
