import sqlite3
from contextlib import closing

import pytest

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
