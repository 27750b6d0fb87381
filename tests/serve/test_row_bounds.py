"""Bounds on the store's rows: what goes first, what is refused, and how the operator is told."""

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import create_engine, inspect, text
from starlette.testclient import TestClient

from telic.completion import Lesson
from telic.serve import create_app
from telic.serve.callers.tenant_keys import add_key
from telic.serve.state import row_bounds, store
from telic.serve.state.row_bounds import Bounds
from telic.serve.state.store import FullError, Store, Submission


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Rows are removed in several transactions."""
    monkeypatch.setattr(row_bounds, "PART", 2)
    monkeypatch.setattr(store, "PART", 2)


@pytest.fixture
def bounded(completer, any_settings):
    """Open stores on one database."""
    opened = []

    def made(**bounds):
        opened.append(Store(any_settings.database, completer, bounds=Bounds(**bounds)))
        return opened[-1]

    yield made
    for each in opened:
        each.close()


def rows(settings, table):
    engine = create_engine(settings.database)
    with engine.connect() as connection:
        found = connection.execute(text(f'SELECT "user" FROM {table} ORDER BY at')).scalars().all()
    engine.dispose()
    return found


def submit(store, *users, composition="c"):
    for user in users:  # one after another, so that their times differ
        store.record([Submission(user, composition, Lesson("soup"))])


def test_the_oldest_submissions_go_and_users_keep_what_they_taught(bounded, any_settings):
    store = bounded(submissions=3)
    submit(store, *"abc")
    assert store.trim() == {"submissions": 0, "user_states": 0}  # as many as there may be
    submit(store, *"defgh")
    assert store.trim() == {"submissions": 5, "user_states": 0}
    assert rows(any_settings, "submissions") == ["f", "g", "h"]
    assert store.read("a").state.history == {"soup": 1.0}
    assert store.trim() == {"submissions": 0, "user_states": 0}


def test_states_go_by_when_they_last_learned(bounded, any_settings, make_completer):
    store = bounded(user_states=3)
    submit(store, *"abcde")
    submit(store, "a", composition="again")
    other = Store(
        any_settings.database, make_completer(model="static")
    )  # another model's count too
    submit(other, "z", composition="another")
    other.close()
    assert store.trim() == {"submissions": 0, "user_states": 3}
    assert rows(any_settings, "user_states") == ["e", "a", "z"]
    assert len(rows(any_settings, "submissions")) == 7
    assert store.read("b") is None
    submit(store, "b", composition="anew")  # somebody new
    assert store.read("b").version == 1


def test_a_batch_too_many_is_refused_and_those_that_are_there_stay(bounded):
    store = bounded(changes=2)
    batch = [["sorbet", "by", 1.0]]
    assert [store.change(id, batch) for id in ("1", "2")] == [1, 2]
    with pytest.raises(FullError):
        store.change("3", batch)
    assert store.change("2", batch) == 2  # sent again
    assert [number for number, _ in store.changes(0)] == [1, 2]
    assert bounded().change("3", batch) == 3  # without a bound


def test_a_store_of_an_older_version_goes_on(bounded, any_settings):
    submit(bounded(), *"ab")
    engine = create_engine(any_settings.database)
    with engine.begin() as connection:
        connection.execute(text("DROP INDEX user_states_at"))
        connection.execute(text("DROP INDEX submissions_at"))
        connection.execute(text("ALTER TABLE user_states DROP COLUMN at"))
    store = bounded(user_states=1)
    submit(store, "c")
    assert store.read("a").state.history == {"soup": 1.0}
    assert store.trim() == {"submissions": 0, "user_states": 2}  # never written since: the oldest
    assert rows(any_settings, "user_states") == ["c"]
    names = {index["name"] for index in inspect(engine).get_indexes("submissions")}
    assert names == {"submissions_at"}
    engine.dispose()


def test_who_learns_while_others_are_removed_stays(bounded, any_settings):
    """Another process writes a state after it was found to be old, and before it is removed."""
    store = bounded(user_states=1)
    submit(store, *"ab")
    engine = create_engine(any_settings.database)
    with ThreadPoolExecutor(1) as pool:
        with engine.begin() as connection:
            later = "UPDATE user_states SET at = '2999-01-01 00:00:00.000000' WHERE \"user\" = 'a'"
            connection.execute(text(later))
            removed = pool.submit(store.trim)
            time.sleep(0.5)  # in which it comes to where it waits
        assert removed.result()["user_states"] == 0
    engine.dispose()
    assert rows(any_settings, "user_states") == ["b", "a"]


def counted(client, key):
    found = client.get("/metrics", headers={"authorization": f"Bearer {key}"}).text
    lines = [line.rpartition(" ") for line in found.splitlines() if line.startswith("telic_store_")]
    return {name: float(value) for name, _, value in lines}


def test_health_metrics_and_the_log_say_that_a_bound_is_reached(
    make_completer, any_settings, tmp_path, caplog
):
    caplog.set_level(logging.WARNING, "telic.serve")
    file = tmp_path / "keys.toml"
    admin = add_key(file, "ops", admin=True)
    headers = {"authorization": f"Bearer {add_key(file, 'desk', editor=True)}"}
    settings = replace(any_settings, keys=str(file), max_submissions=1, max_batches=1)
    app = create_app(make_completer(), settings)
    with TestClient(app, "http://127.0.0.1:8000") as client:

        def post(path, **given):
            return client.post(path, json=given, headers=headers)

        for user in ("ada", "bob"):
            given = {"user": user, "composition": "c", "query": "soup"}
            assert post("/submit", **given).status_code == 200
        client.portal.call(app.bounds.look)
        assert client.get("/healthz").json()["bounds_reached"] == ["submissions"]
        change = [{"phrase": "sorbet", "by": 1}]
        assert post("/phrases", id="1", changes=change).status_code == 200
        refused = post("/phrases", id="2", changes=change)
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "too_many_batches")
        post("/phrases", id="3", changes=change)
        health = client.get("/healthz")
        assert (health.status_code, health.json()["status"]) == (200, "ok")
        assert health.json()["bounds_reached"] == ["submissions", "changes"]
        found = counted(client, admin)
        assert found['telic_store_rows_removed_total{table="submissions"}'] == 1
        assert found['telic_store_rows_removed_total{table="user_states"}'] == 0
        assert found['telic_store_bound_reached{table="submissions"}'] == 1
        assert found['telic_store_bound_reached{table="changes"}'] == 1
        assert 'telic_store_bound_reached{table="user_states"}' not in found
    assert [record.getMessage() for record in caplog.records[-2:]] == [
        "the store has 1 rows of submissions: the oldest are removed",
        "the store has 1 rows of changes: more are refused",
    ]


def test_a_service_looks_when_it_starts(completer, any_settings):
    store = Store(any_settings.database, completer)
    submit(store, *"abcd")
    store.close()
    settings = replace(any_settings, max_submissions=2)
    with TestClient(create_app(completer, settings), "http://127.0.0.1:8000") as client:
        began = time.monotonic()
        while "bounds_reached" not in client.get("/healthz").json():
            assert time.monotonic() - began < 30
    assert rows(any_settings, "submissions") == ["c", "d"]
