"""What the service learned survives it, and belongs to the model that learned it."""

import gc
import os
import secrets
import signal
import sqlite3
import stat
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pytest
from sqlalchemy import create_engine, event
from sqlalchemy.exc import DatabaseError, IntegrityError, OperationalError, SQLAlchemyError
from starlette.testclient import TestClient

from telic.completion import Lesson, Relevance, fit_files
from telic.completion.learning.adaqac import FeedbackDesign
from telic.completion.learning.feedback import FEATURES
from telic.data.databases import Gone
from telic.errors import InputError
from telic.serve import Settings, create_app
from telic.serve.state.store import (
    ATTEMPTS,
    COLLISIONS,
    DamagedStateError,
    Store,
    StoreError,
    Submission,
    _reason,
    fingerprint,
)


def search(app, composition):
    """Search as bob; return the answer to the submission and the texts shown first."""
    with TestClient(app, "http://localhost") as client:
        keys = {"user": "bob", "composition": composition}
        texts = client.get("/suggest", params=keys | {"q": "sa"}).json()[1]
        return client.post("/submit", json=keys | {"query": "samosa"}).json(), texts


def test_what_was_learned_survives_a_restart(completer, settings):
    places = []
    for n in (1, 2, 3):
        answer, texts = search(create_app(completer, settings), f"c{n}")
        assert answer == {"learned": True, "updates": n}
        places.append(texts.index("samosa"))
    assert places[-1] < places[0]  # an own search, so it is more relevant


def test_another_models_weights_are_not_taken_over(completer, make_completer, settings):
    search(create_app(completer, settings), "c1")
    other = make_completer(everyone=completer.everyone * 2)
    assert fingerprint(other) != fingerprint(completer)
    answer, _ = search(create_app(other, settings), "c2")
    assert answer["updates"] == 1
    answer, _ = search(create_app(completer, settings), "c3")
    assert answer["updates"] == 2


@pytest.fixture
def any_store(completer, any_settings):
    store = Store(any_settings.database, completer)
    yield store
    store.close()


def submission(user, composition, query="soup"):
    return Submission(user, composition, Lesson(query))


def test_a_submission_and_its_state_are_written_together(any_store):
    (outcome,) = any_store.record([submission("ada", "c")])
    assert (outcome.learned, outcome.updates, outcome.stored.version) == (False, 0, 1)
    stored = any_store.read("ada")
    assert stored.version == 1
    assert stored.state.as_json() == outcome.stored.state.as_json()
    assert stored.state.history == {"saffron": 40.0, "soup": 1.0}
    assert any_store.read("ada", 1) is None  # nothing newer
    assert any_store.read("nobody") is None


def test_a_submission_counts_once_however_often_it_comes(any_store):
    lesson = Lesson("soup", 0, np.ones((1, len(FEATURES))), np.zeros(1))
    twice = [Submission("ada", "c", lesson)] * 2
    first, second = any_store.record(twice)
    assert (first.learned, first.updates) == (second.learned, second.updates) == (True, 1)
    (again,) = any_store.record([submission("ada", "c", "sage")])
    assert (again.learned, again.updates, again.stored) == (True, 1, None)
    assert any_store.read("ada").state.history == {"saffron": 40.0, "soup": 1.0}


def test_of_a_batch_that_cannot_be_written_whole_nothing_is(any_store, completer, monkeypatch):
    any_store.record([submission("ada", "a")])

    def teach(user, lesson):
        raise RuntimeError("broken")

    broken = replace(completer)
    object.__setattr__(broken, "teach", teach)
    monkeypatch.setattr(any_store, "_completer", broken)
    with pytest.raises(RuntimeError):
        any_store.record([submission("ada", "a"), submission("bob", "b")])
    assert any_store.read("bob") is None
    assert any_store.read("ada").version == 1


def test_a_history_forgets_what_was_submitted_longest_ago(completer, any_settings):
    store = Store(any_settings.database, completer, max_history=2)
    for i, query in enumerate(["soup", "sage", "soup", "salad"]):
        store.record([submission("u", f"c{i}", query)])
    assert store.read("u").state.history == {"soup": 2.0, "salad": 1.0}
    store.close()


def test_eight_writers_lose_nothing_and_agree_with_one(completer, any_settings, monkeypatch):
    """Eight stores on one file, for three users; then one store, in the order of their numbers."""
    monkeypatch.setattr("telic.data.databases.LOCKED_SECONDS", 60.0)  # SQLite's lock has no queue
    rng = np.random.default_rng(0)

    def lesson(query):
        x = rng.normal(size=(3, len(FEATURES)))
        return Lesson(query, int(rng.integers(3)), x, rng.normal(size=3), (0.1, -0.05))

    lessons = {f"c{i}": lesson(f"query {i % 5}") for i in range(160)}
    work = [Submission(f"u{i % 3}", key, each) for i, (key, each) in enumerate(lessons.items())]
    stores = [Store(any_settings.database, completer) for _ in range(8)]

    def write(i):
        for each in work[i::8]:
            stores[i].record([each])
            stores[i].record([each, work[0]])  # again, beside what another wrote

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    for store in stores[1:]:
        store.close()
    engine = create_engine(any_settings.database)
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(
            'SELECT "user", composition, number, updates FROM submissions ORDER BY "user", number'
        ).fetchall()
    engine.dispose()
    assert len(rows) == len(work)
    for user in ("u0", "u1", "u2"):
        own = [row for row in rows if row[0] == user]
        assert [row[2:] for row in own] == [(n, n) for n in range(1, len(own) + 1)]
        state = completer.user(user)
        for _, composition, *_ in own:
            completer.teach(state, lessons[composition])
        found = stores[0].read(user).state
        assert found.weights.tobytes() == state.weights.tobytes()
        assert (found.history, found.check) == (state.history, state.check)
    stores[0].close()


def test_a_damaged_state_is_said_to_be(store, tmp_path):
    store.record([submission("ada", "c")])
    with sqlite3.connect(tmp_path / "model.sqlite") as connection:
        connection.execute("UPDATE user_states SET state = '[1]'")
    connection.close()
    with pytest.raises(DamagedStateError):
        store.read("ada")


def test_an_error_of_the_database_says_nothing_of_what_was_searched_for(store, monkeypatch):
    secret = "".join(["ill", "ness"])

    def no_disk(connection, submissions):
        connection.exec_driver_sql("INSERT INTO nowhere VALUES (?)", (secret,))

    monkeypatch.setattr(store, "_record", no_disk)
    with pytest.raises(StoreError) as error:
        store.record([submission("ada", "c", secret)])
    text = "".join(traceback.format_exception(error.value))
    assert "nowhere" in text
    assert secret not in text


@pytest.mark.parametrize("back", [False, True], ids=["gone", "another in its place"])
def test_what_is_written_to_a_deleted_file_is_not_stored(store, tmp_path, back):
    file = tmp_path / "model.sqlite"
    store.record([submission("ada", "a")])
    content = file.read_bytes()
    file.unlink()
    if back:
        file.write_bytes(content)
    for call in (store.check, partial(store.record, [submission("ada", "b")])):
        with pytest.raises(StoreError):
            call()
        if back:
            break
    if back:  # from now on it is that one's
        store.record([submission("ada", "b")])
    assert file.exists() == back


def test_a_file_that_vanishes_between_write_and_commit_keeps_nothing(store, tmp_path, monkeypatch):
    whole = store._record

    def vanish(connection, submissions):
        outcomes = whole(connection, submissions)
        (tmp_path / "model.sqlite").unlink()
        return outcomes

    monkeypatch.setattr(store, "_record", vanish)
    with pytest.raises(StoreError, match="deleted or replaced"):
        store.record([submission("ada", "a")])


def test_a_locked_store_says_so_and_a_reader_does_not_wait(store, tmp_path, monkeypatch):
    store.record([submission("ada", "a")])
    other = sqlite3.connect(tmp_path / "model.sqlite", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreError, match="locked"):
        store.record([submission("ada", "b")])
    assert store.read("ada").version == 1
    other.execute("ROLLBACK")
    other.close()
    store.record([submission("ada", "b")])
    assert store.read("ada").version == 2


def test_a_full_disk_says_so_and_what_was_kept_is_kept(completer, settings, monkeypatch):
    store = Store(settings.database, completer)

    def small(connection, record):
        connection.execute("PRAGMA max_page_count = 12").close()

    event.listen(store._engine, "connect", small)
    submissions = (submission(f"u{i}", "c", "x" * 200) for i in range(1_000))
    kept = []
    with pytest.raises(StoreError, match="full"):
        kept.extend(store.record([each])[0].stored.version for each in submissions)
    assert kept
    assert store.read(f"u{len(kept) - 1}") is not None
    assert store.read(f"u{len(kept)}") is None
    store.close()


def test_what_is_acknowledged_has_reached_the_disk(store):
    """SQLite waits for the disk at each commit, which it does not in WAL mode by default."""
    with store._engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


def test_what_is_erased_is_overwritten_in_the_file(completer, settings, monkeypatch):
    """Also where SQLite was built to leave it in free pages."""
    connect = sqlite3.connect

    def built_otherwise(*args, **options):
        connection = connect(*args, **options)
        connection.execute("PRAGMA secure_delete=OFF").close()
        return connection

    monkeypatch.setattr(sqlite3, "connect", built_otherwise)
    store = Store(settings.database, completer)
    store.record([submission("ada", "c", "a query of hers")])
    files = [Path(f"{store._engine.url.database}{end}") for end in ("", "-wal")]
    assert any(b"a query of hers" in file.read_bytes() for file in files)
    store.forget("ada")
    with store._engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    assert not any(b"a query of hers" in file.read_bytes() for file in files)
    store.close()


def test_what_is_erased_is_not_left_in_the_log_of_writes(store):
    store.record([submission("ada", "c", "a query of hers"), submission("bob", "c", "his own")])
    files = [Path(f"{store._engine.url.database}{end}") for end in ("", "-wal")]
    assert any(b"a query of hers" in file.read_bytes() for file in files)
    store.forget("ada")
    assert not any(b"a query of hers" in file.read_bytes() for file in files)
    assert store.read("ada") is None
    assert store.read("bob").state.history == {"his own": 1.0}


def test_a_check_writes_and_what_it_writes_does_not_add_up(any_store):
    for _ in range(3):
        any_store.check()
    with any_store._engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM probe").scalar() == 1


def test_erasing_says_so_where_others_read_what_is_erased(store, tmp_path, monkeypatch):
    monkeypatch.setattr("telic.data.databases.LOCKED_SECONDS", 0.01)
    store.record([submission("ada", "c")])
    with closing(sqlite3.connect(tmp_path / "model.sqlite")) as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM submissions").fetchall()
        with pytest.raises(StoreError, match="in use by others"):
            store.forget("ada")
    assert store.forget("ada") == (0, 2)


@pytest.mark.parametrize(
    "write",
    [
        lambda store: store.record([submission("ada", "c")])[0].updates == 0,
        lambda store: store.change("id", [["tea", 1.0]]) == 1,
        lambda store: store.forget("ada")[1] == 1,
    ],
    ids=["record", "change", "forget"],
)
def test_what_another_process_came_before_with_is_tried_again_but_not_for_ever(any_store, write):
    refusals = []

    def come_before(connection, cursor, statement, parameters, context, many):
        if statement.startswith("INSERT") and refusals:
            raise IntegrityError("", {}, refusals.pop())

    event.listen(any_store._engine, "before_cursor_execute", come_before)
    refusals += [Exception("taken")] * ATTEMPTS
    with pytest.raises(StoreError, match="the same again and again"):
        write(any_store)
    refusals += [Exception("taken")] * (ATTEMPTS - 1)
    assert write(any_store)


def test_machines_that_get_the_same_in_other_orders_do_not_wait_for_each_other(
    completer, postgresql
):
    stores = [Store(postgresql.url, completer) for _ in range(2)]
    submissions = [Submission(f"order-{user}", "c", Lesson("soup")) for user in "ab"]
    inserted = []

    def noted(connection, cursor, statement, parameters, context, executemany):
        if statement.startswith("INSERT INTO submissions"):
            inserted.append([row["user"] for row in parameters])

    for store in stores:
        event.listen(store._engine, "before_cursor_execute", noted)
    for store, given in zip(stores, (submissions, submissions[::-1]), strict=True):
        outcomes = store.record(given)
        assert [each.learned for each in outcomes] == [False, False]
        for each in submissions:
            store.forget(each.user)
        store.close()
    assert inserted == [["order-a", "order-b"]] * 2


@pytest.mark.parametrize("code", COLLISIONS)
@pytest.mark.parametrize("times", [ATTEMPTS - 1, ATTEMPTS])
def test_what_collides_with_others_is_tried_again(store, monkeypatch, code, times):
    collided = Exception("deadlock detected")
    collided.sqlstate = code
    errors = [OperationalError(None, None, collided)] * times

    def collides(does):
        def once(*given):
            if errors:
                raise errors.pop()
            return does(*given)

        return once

    monkeypatch.setattr(store, "_record", collides(store._record))
    if times < ATTEMPTS:
        store.record([Submission("ada", "c", Lesson("soup"))])
        assert store.read("ada").version == 1
    else:
        with pytest.raises(StoreError, match="again and again"):
            store.record([Submission("ada", "c", Lesson("soup"))])
        assert store.read("ada") is None
    assert not errors


def test_a_connection_that_does_not_answer_is_closed_and_the_next_call_has_another(
    completer, postgresql, caplog
):
    store = Store(postgresql.url, completer)
    with store._transaction(store._engine) as connection:
        server = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
    os.kill(server, signal.SIGSTOP)
    try:
        check = threading.Thread(target=store.check, daemon=True)
        check.start()  # in the pool it takes the one that is stopped
        store.cut()  # not yet
        check.join(0.2)
        assert check.is_alive()
        store.cut(0.1)
        check.join(10)
        assert not check.is_alive()
        store.check()
    finally:
        os.kill(server, signal.SIGCONT)
        store.close()
    said = [record.getMessage() for record in caplog.records]
    assert said == ["the store's connections are closed: one did not answer"]


def test_what_was_acknowledged_outlives_a_server_that_is_killed(completer, postgresql):
    store = Store(postgresql.url, completer)
    kept = []
    for n in range(2):
        kept.append(store.record([submission("ada", f"c{n}")])[0].stored.version)
        postgresql.kill()
        with pytest.raises(StoreError):
            store.record([submission("ada", "lost")])
        with pytest.raises(StoreError):
            store.read("ada")
        postgresql.start()
    assert kept == [1, 2]
    assert store.read("ada").version == 2
    store.close()


def test_the_file_of_an_older_version_is_refused(completer, tmp_path):
    with sqlite3.connect(tmp_path / "x.sqlite") as connection:
        connection.execute('CREATE TABLE submissions ("user" TEXT, composition TEXT, query TEXT)')
    connection.close()
    with pytest.raises(InputError, match=r"lacks accepted, at, learned, listed, number, rank"):
        Store(f"sqlite:///{tmp_path}/x.sqlite", completer)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://bob:hunter2@host/x",
        "postgresql+psycopg://host/x?user=bob&password=hunter2",
        "nosuch://bob:hunter2@host/x",
        "postgresql+psycopg://bob:hunter2@host:port/x",
        "sqlite://bob:hunter2@host/x",
    ],
)
def test_no_error_shows_the_databases_password(completer, url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as error:
        Store(url, completer)
    assert not list(tmp_path.iterdir())
    assert "hunter2" not in "".join(traceback.format_exception(error.value))


def test_a_server_that_refuses_is_named_without_the_password(completer, monkeypatch):
    def refuse(engine):
        raise OperationalError(None, None, Exception("the server is down"))

    monkeypatch.setattr("telic.serve.state.store._TABLES.create_all", refuse)
    monkeypatch.setattr("telic.serve.state.store.open_engine", lambda *_: MagicMock())
    monkeypatch.setattr("telic.serve.state.store.Lines", MagicMock())
    with pytest.raises(InputError, match=r"host/x: cannot be opened.*the server is down") as error:
        Store("postgresql+psycopg://bob:hunter2@host/x?sslpassword=hunter2", completer)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    "change",
    [
        {"model": "adaqac-batch"},
        {"protocol": "paper"},
        {"everyone": np.ones(len(FEATURES))},
        {"design": FeedbackDesign(np.full(len(FEATURES), 2.0), False)},
        {"relevance": Relevance("personal-s", popular=1.0, personal=1.0)},
        {"relevance": Relevance("personal", popular=2.0, personal=1.0)},
        {"relevance": Relevance("personal", popular=1.0, personal=2.0)},
        {"relevance": Relevance("personal", 1.0, 1.0, deviations=(1.0, 2.0, 1.0))},
    ],
    ids=str,
)
def test_weights_are_kept_apart_by_all_that_gives_them_their_meaning(
    completer, make_completer, change
):
    assert fingerprint(make_completer()) == fingerprint(completer)
    assert fingerprint(make_completer(**change)) != fingerprint(completer)


def test_users_keep_their_histories_where_only_the_files_of_a_box_changed(tmp_path):
    queries = tmp_path / "queries.csv"
    queries.write_text("user,query,at\nada,tea,2026-03-02T09:00\nbob,tea,2026-03-03T09:00\n")
    boxes = []
    for titles in ("title,views\ntea,5\n", "title,views\ntea,7\ntoast,9\n"):
        (tmp_path / "titles.csv").write_text(titles)
        boxes.append(fit_files(tmp_path / "titles.csv", queries))
    assert fingerprint(boxes[0]) == fingerprint(boxes[1])
    assert fingerprint(boxes[0]) != fingerprint(fit_files(tmp_path / "titles.csv"))


def holds_open(folder):
    """Whether a descriptor of this process leads to a file in a folder."""
    descriptors = Path("/proc/self/fd")
    if not descriptors.is_dir():
        pytest.skip("needs Linux's /proc")
    files = [os.path.realpath(descriptor) for descriptor in descriptors.iterdir()]
    return any(file.startswith(f"{folder}/") for file in files)


def test_an_application_that_is_never_started_holds_no_connection(completer, settings, tmp_path):
    app = create_app(completer, settings)
    assert not holds_open(tmp_path)
    with TestClient(app, "http://localhost") as client:
        assert client.get("/healthz").status_code == 200
        assert holds_open(tmp_path)
    assert not holds_open(tmp_path)


def test_sqlite_runs_in_wal_mode_and_is_its_owners_alone(completer, tmp_path):
    settings = Settings.beside(tmp_path / "places.model")
    Store(settings.database, completer).close()
    file = tmp_path / "places.model.sqlite"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with sqlite3.connect(file) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_a_connection_being_opened_while_the_store_closes_is_closed_when_it_comes_back(store):
    closing, made = threading.Event(), []

    def slow(*_):  # the last thing before the database is asked
        closing.wait(30)

    def use():
        with store._engine.connect() as connection:
            made.append(connection.connection.dbapi_connection)

    event.listen(store._engine, "do_connect", slow)
    with ThreadPoolExecutor(1) as pool:
        used = pool.submit(use)
        store.close()
        closing.set()
        used.result(30)
    with pytest.raises(Exception, match="closed"):
        made[0].execute("SELECT 1")


def test_a_connection_in_use_while_the_store_closes_is_closed_when_it_comes_back(any_store):
    with any_store._engine.connect() as connection:
        raw = connection.connection.dbapi_connection
        any_store.close()
        assert connection.exec_driver_sql("SELECT 1").scalar() == 1
    with pytest.raises(Exception, match="closed"):
        raw.execute("SELECT 1")


def test_a_file_that_is_no_database_leaves_no_connection_open(completer, tmp_path, recwarn):
    (tmp_path / "x.sqlite").write_bytes(b"no database" * 1_000)
    with pytest.raises(InputError, match="is no SQLite database"):
        Store(f"sqlite:///{tmp_path}/x.sqlite", completer)
    gc.collect()
    assert not recwarn.list


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nonsense", "no SQLAlchemy URL"),
        ("nosuch://x", "no SQLAlchemy URL"),
        ("postgresql+psycopg://bob@host:port/x", "no SQLAlchemy URL"),
        ("sqlite://", "in memory"),
        ("sqlite:////nowhere/at/all.sqlite", "cannot be opened"),
    ],
)
def test_a_database_that_cannot_be_used(completer, url, says):
    with pytest.raises(InputError, match=says) as error:
        Store(url, completer)
    assert "\n" not in str(error.value)


def test_a_file_that_is_no_database(completer, tmp_path):
    (tmp_path / "x.sqlite").write_text("not a database, but long enough to be looked at " * 99)
    with pytest.raises(InputError, match="is no SQLite database"):
        Store(f"sqlite:///{tmp_path}/x.sqlite", completer)


def test_a_call_that_begins_while_the_store_is_closed_leaves_no_connection(completer, settings):
    store = Store(settings.database, completer)
    store.close()
    assert store.changes(0) == []  # a thread that was on its way
    assert store._engine.pool.checkedin() == 0
    store.release()


def test_a_store_that_fails_at_the_start_is_said(completer, settings, monkeypatch):
    def fail(self, after):
        raise StoreError("the disk is full")

    monkeypatch.setattr(Store, "changes", fail)
    with pytest.raises(InputError, match="the database: the disk is full"):
        create_app(completer, settings)


def test_a_server_that_is_read_only_or_refuses_its_user_is_said(completer, postgresql):
    name = f"t{secrets.token_hex(8)}"
    admin = create_engine(postgresql.url, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
        url = postgresql.url.rpartition("/")[0] + f"/{name}"
        store = Store(url, completer)
        connection.exec_driver_sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        with pytest.raises(StoreError, match=r"cannot execute .* in a read-only transaction"):
            store.check()
        store.close()
        connection.exec_driver_sql(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        connection.exec_driver_sql(f"CREATE USER {name}")
    admin.dispose()
    owner = create_engine(url, isolation_level="AUTOCOMMIT")
    with owner.connect() as connection:
        connection.exec_driver_sql(f"GRANT SELECT ON forgotten TO {name}")
    owner.dispose()
    store = Store(url.replace("telic@", f"{name}@"), completer)
    with pytest.raises(StoreError, match="permission denied for table probe"):
        store.check()
    store.close()


def test_services_that_start_together_make_one_store(completer, postgresql):
    admin = create_engine(postgresql.url, isolation_level="AUTOCOMMIT")
    for _ in range(3):
        name = f"t{secrets.token_hex(8)}"
        with admin.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        url = postgresql.url.rpartition("/")[0] + f"/{name}"
        with ThreadPoolExecutor(4) as pool:
            stores = list(pool.map(lambda url: Store(url, completer), [url] * 4))
        assert len({store.forgotten(0)[0] for store in stores}) == 1
        for store in stores:
            store.close()
    admin.dispose()


@pytest.mark.parametrize("new", [True, False])
def test_who_is_forgotten_waits_for_what_others_write_of_the_user(
    completer, any_settings, monkeypatch, new
):
    one, other = (Store(any_settings.database, completer) for _ in range(2))
    if not new:
        one.record([submission("ada", "b")])
    writing, go_on, order = threading.Event(), threading.Event(), []
    write_states = Store._write_states

    def slowly(self, *given):
        writing.set()
        go_on.wait(1)
        write_states(self, *given)
        order.append("written")

    monkeypatch.setattr(Store, "_write_states", slowly)
    with ThreadPoolExecutor(2) as pool:
        written = pool.submit(other.record, [submission("ada", "c")])
        assert writing.wait(30)
        forgotten = pool.submit(one.forget, "ada")
        assert not forgotten.done()
        written.result()
        rows, _ = forgotten.result()
    assert rows == (2 if new else 3)
    assert not any(one.kept_of("ada").values())
    for store in (one, other):
        store.close()


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_hold_every_text_is_refused(completer, postgresql, encoding):
    name = f"t{secrets.token_hex(8)}"
    admin = create_engine(postgresql.url, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.exec_driver_sql(
            f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'"
        )
    admin.dispose()
    with pytest.raises(InputError, match=f"encoding is {encoding}. Make one with: createdb"):
        Store(postgresql.url.rpartition("/")[0] + f"/{name}", completer)


def test_a_store_without_the_key_of_notes_makes_it_again(completer, any_settings):
    store = Store(any_settings.database, completer)
    with store._engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM forgotten")
    store.record([submission("ada", "c")])
    assert store.forget("ada")[0] == 2
    assert len(store.forgotten(0)) == 2
    store.close()


def test_schemas_of_one_database_are_stores_apart(completer, postgresql):
    stores = []
    for schema in ("shop_a", "shop_b"):
        admin = create_engine(postgresql.url, isolation_level="AUTOCOMMIT")
        with admin.connect() as connection:
            connection.exec_driver_sql(f"CREATE SCHEMA {schema}")
        admin.dispose()
        options = f"?options=-csearch_path%3D{schema}"
        stores.append(Store(postgresql.url + options, completer))
    stores[0].record([submission("ada", "c")])
    assert [store.read("ada") is None for store in stores] == [False, True]
    for store in stores:
        store.close()


@pytest.mark.parametrize(
    "said",
    [
        'connection failed: connection to server at "10.1.2.3", port 5432 failed',
        "failed to resolve host 'db.internal'",
        'connection is bad: connection to server on socket "/run/.s.PGSQL.5432" failed',
    ],
)
def test_the_log_alone_says_which_server_fails(completer, postgresql, caplog, said):
    store = Store(postgresql.url, completer)
    refused = OperationalError("secret", {}, Exception(said))

    def fails(*_):
        raise refused

    store._engine.connect = fails
    for _ in range(3):
        with pytest.raises(StoreError) as error:
            store.read("ada")
        assert str(error.value) == "its server cannot be reached, or refuses the service"
    (logged,) = [record.getMessage() for record in caplog.records]
    assert logged == f"the database: {said}"
    store.close()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OperationalError("secret", {}, Exception(" disk full\nof secrets ")), "disk full"),
        (OperationalError("secret", {}, Exception("")), "OperationalError"),
        (DatabaseError("secret", {}, sqlite3.DatabaseError("no database")), "no database"),
        (DatabaseError("secret", {}, Exception("a secret")), "DatabaseError"),
        (IntegrityError("secret", {}, sqlite3.IntegrityError("a secret")), "IntegrityError"),
        (Gone("the file was deleted"), "the file was deleted"),
        (SQLAlchemyError("a secret"), "SQLAlchemyError"),
    ],
)
def test_only_what_quotes_no_request_is_said_of_an_error(error, said):
    assert _reason(error) == said
