"""A user is forgotten while the service runs: nothing is left in files, stores and processes."""

import asyncio
import gc
import json
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from telic import cli
from telic.completion import Completer, UserState
from telic.errors import InputError, ModelError
from telic.serve import create_app, serving
from telic.serve.callers.tenant_keys import add_key
from telic.serve.client import Client, ServiceError
from telic.serve.requests.between_workers import PeerError, WorkerPlace
from telic.serve.state import forgotten_users
from telic.serve.state.composition_recorder import Recorder, erase, recorded
from telic.serve.state.store import Store, StoreError

USER, SECRET = "user-4711", "zanzibar express"


@pytest.fixture(scope="module", autouse=True)
def only_what_is_made_here():
    """What tests before these loaded holds none of their users: nobody looks through it for one."""
    gc.freeze()


@pytest.fixture
def kept(any_settings, make_completer, tmp_path, monkeypatch):
    """Settings of a model that was fitted on two users, and that records them."""
    monkeypatch.setattr(forgotten_users, "EVERY", 0.02)
    weights = make_completer().everyone
    users = {
        USER: UserState(weights.copy(), history={SECRET: 40.0}, previous=SECRET),
        "bob": UserState(weights.copy(), history={"saffron": 4.0}),
    }
    make_completer(users=users).save(tmp_path / "model")
    return replace(any_settings, record=str(tmp_path / "records"), record_unasked=True)


@contextmanager
def service(settings, place=None):
    completer = Completer.load(Path(settings.compacted.removesuffix(".compacted")))
    app = create_app(completer, settings, place=place)
    with TestClient(app, "http://127.0.0.1:8000") as client:
        yield client


def typed(client, user, composition, query="z"):
    given = {"q": query, "user": user, "composition": composition}
    answer = client.post("/suggest", json=given)
    assert answer.status_code == 200
    return answer.json()[1]


def submitted(client, user, composition, query):
    given = {"query": query, "user": user, "composition": composition}
    return client.post("/submit", json=given).status_code


def forget(client, user=USER):
    answer = client.post("/forget", json={"user": user})
    assert answer.status_code == 200, answer.text
    return answer.json()


def files_with(folder, *texts):
    """Name the files that hold one of some texts, in whatever way."""
    return [
        str(file)
        for file in Path(folder).rglob("*")
        if file.is_file() and any(text.encode() in file.read_bytes() for text in texts)
    ]


def states_with(query):
    """Count the users' states in this process that hold a query."""
    gc.collect()
    return sum(isinstance(each, UserState) and query in each.history for each in gc.get_objects())


def test_nothing_is_left_of_a_user_and_all_of_the_others(kept, tmp_path):
    with service(kept) as client:
        assert typed(client, USER, "1") == [SECRET]
        for user in (USER, "bob"):
            assert typed(client, user, "2", "sa")
            assert submitted(client, user, "2", f"{SECRET} of {user}") == 200
            assert typed(client, user, "3")  # is being typed
        # Of a user: keystrokes 1, 2 and 3 (bob: 2 and 3), and the submission.
        assert forget(client) == {"rows": 2, "records": 4, "model": True}
        assert files_with(tmp_path, USER) == []
        assert states_with(SECRET) == states_with(f"{SECRET} of {USER}") == 0
        assert typed(client, USER, "3") == []
        assert forget(client) == {"rows": 0, "records": 1, "model": False}
        assert typed(client, "bob", "4") == [f"{SECRET} of bob"]
        assert submitted(client, USER, "5", "soup") == 200  # as somebody new
    with service(kept) as client:
        assert typed(client, USER, "6") == []
        assert typed(client, "bob", "6") == [f"{SECRET} of bob"]
        assert typed(client, "bob", "7", "saf") == ["saffron"]
        assert forget(client) == {"rows": 2, "records": 1, "model": False}
    assert files_with(tmp_path, USER, f"{SECRET} of {USER}") == []
    assert json.loads((tmp_path / "model" / "manifest.json").read_text())["meta"]["users"] == [
        "bob"
    ]


def test_every_worker_forgets(kept, tmp_path):
    with ExitStack() as workers:
        one, other = (
            workers.enter_context(service(kept, WorkerPlace(index, 2, str(tmp_path))))
            for index in range(2)
        )
        here = other.app.desk.peers.elsewhere(USER) is None
        owner, another = (other, one) if here else (one, other)
        assert typed(another, USER, "1") == typed(owner, USER, "1") == [SECRET]
        assert submitted(another, USER, "2", SECRET) == 200
        # What is begun beside the owner while that is started anew is forgotten as well.
        aside = another.app.desk._compositions
        another.portal.call(aside.open, USER, "9")
        assert len(aside) == 1
        assert forget(another)["rows"] == 2
        assert len(aside) == 0
        assert states_with(SECRET) == 0
        assert typed(owner, USER, "3") == typed(another, USER, "3") == []
        for worker in (one, other):
            assert worker.app.desk._compositions._barred == set()


def test_what_other_machines_know_goes_within_a_second(kept, tmp_path):
    with service(kept) as here, service(replace(kept, record="")) as there:
        assert typed(there, USER, "1") == [SECRET]
        forget(here)
        deadline = time.monotonic() + 30
        while states_with(SECRET) or there.app.desk._compositions._barred:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert typed(there, USER, "2") == []
        assert submitted(there, USER, "2", "soup") == 200
        time.sleep(0.1)
        assert typed(there, USER, "3", "so") == ["soup"]  # once is enough


@contextmanager
def unread_notes(app, monkeypatch):
    """Let a process read no notes of forgotten users until the block ends, and then all."""
    store, ends = app.forgotten._store, threading.Event()
    forgotten = store.forgotten

    def fails_at_first(after):
        if not ends.is_set():
            raise StoreError("it is locked")
        return forgotten(after)

    monkeypatch.setattr(store, "forgotten", fails_at_first)
    deadline = time.monotonic() + 30
    while app.forgotten._works:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    yield
    ends.set()
    while not app.forgotten._works:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_users_forgotten_elsewhere_while_the_store_fails_are_forgotten_later(
    kept, monkeypatch, caplog
):
    with service(kept) as here, service(replace(kept, record="")) as there:
        with unread_notes(there.app, monkeypatch):
            for user in (USER, "bob"):
                assert typed(there, user, "1", "s")
                forget(here, user)
            assert {USER, "bob"} <= there.app.desk._compositions.known()
        assert not {USER, "bob"} & there.app.desk._compositions.known()
        assert typed(there, USER, "2") == []
    said = [record.getMessage() for record in caplog.records if "whom" in record.getMessage()]
    assert said == [
        "whom others forget is not forgotten here yet: it is locked",
        "whom others forget is forgotten here again",
    ]


def test_what_a_user_does_afterwards_stays_when_other_machines_learn_of_it(kept, monkeypatch):
    with service(kept) as here, service(replace(kept, record="")) as there:
        assert typed(there, USER, "1") == [SECRET]
        with unread_notes(there.app, monkeypatch):
            forget(here)
            assert submitted(there, USER, "2", "soup") == 200  # by a process that knows the user
            assert submitted(here, USER, "3", "soap") == 200
        kept_of = here.app.forgotten._store.kept_of(USER)
        assert {row["query"] for row in kept_of["submissions"]} == {"soup", "soap"}
        (state,) = kept_of["user_states"]
        assert set(state["state"]["history"]) == {"soup", "soap"}
        for client in (here, there):
            assert set(typed(client, USER, "4", "so")) == {"soup", "soap"}
            assert typed(client, USER, "5") == []


def test_a_model_that_still_has_the_user_brings_nobody_back(kept, tmp_path, make_completer):
    """Such as another machine's, or one that is fitted again on the old log."""
    with service(kept) as client:
        forget(client)
    users = {USER: UserState(make_completer().everyone, history={SECRET: 40.0})}
    make_completer(users=users).save(tmp_path / "model")
    with service(kept) as client:
        assert typed(client, USER, "1") == []
        assert states_with(SECRET) == 1  # `users`, here above


def test_what_is_under_way_is_written_and_then_erased(kept, tmp_path):
    begun, go_on, answers = threading.Event(), threading.Event(), []
    with service(kept) as client:
        record = client.app.journal._store.record

        def slow(submissions):
            begun.set()
            assert go_on.wait(30)
            return record(submissions)

        client.app.journal._store.record = slow
        submits = threading.Thread(
            target=lambda: answers.append(submitted(client, USER, "1", SECRET))
        )
        submits.start()
        assert begun.wait(30)
        forgets = threading.Thread(target=lambda: answers.append(forget(client)))
        forgets.start()
        compositions = client.app.desk._compositions
        while USER not in compositions._barred:
            time.sleep(0.01)
        # In the meantime the user is nobody in particular, and nothing is taken or recorded.
        assert typed(client, USER, "2") == []
        assert typed(client, USER, "3", "so") == ["soup"]
        assert submitted(client, USER, "2", SECRET) == 503
        assert len(compositions) == 0
        go_on.set()
        submits.join(30)
        forgets.join(30)
        assert answers == [200, {"rows": 2, "records": 0, "model": True}]
        assert typed(client, USER, "4") == []
    assert files_with(tmp_path, SECRET) == []


def test_a_user_who_is_just_being_read_is_forgotten(kept):
    begun, go_on, answers = threading.Event(), threading.Event(), []
    with service(replace(kept, read_seconds=30)) as client:
        assert submitted(client, USER, "1", SECRET) == 200
        read = client.app.journal._store.read

        def slow(*asked):
            found = read(*asked)
            begun.set()
            assert go_on.wait(30)
            return found

        client.app.journal._store.read = slow
        types = threading.Thread(target=lambda: answers.append(typed(client, USER, "2")))
        types.start()
        assert begun.wait(30)
        forgets = threading.Thread(target=lambda: forget(client))
        forgets.start()
        while USER not in client.app.desk._compositions._barred:
            time.sleep(0.01)
        time.sleep(0.1)
        go_on.set()
        types.join(30)
        forgets.join(30)
        assert answers == [[]]
        assert states_with(SECRET) == 0


def test_a_failed_store_forgets_nobody_and_the_user_goes_on(kept, monkeypatch):
    with service(kept) as client:

        def fails(user):
            raise StoreError("it is locked")

        monkeypatch.setattr(client.app.forgotten._store, "forget", fails)
        answer = client.post("/forget", json={"user": USER})
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "no_store")
        assert submitted(client, USER, "1", "soup") == 200


def test_a_model_folder_that_cannot_be_written_is_said(kept, monkeypatch):
    def refuse(folder, user):
        raise ModelError("model: may not be written to.")

    monkeypatch.setattr(forgotten_users, "erase_user", refuse)
    with service(kept) as client:
        answer = client.post("/forget", json={"user": USER})
        assert (answer.status_code, answer.json()["error"]["code"]) == (500, "model_not_written")
        assert typed(client, USER, "1") == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (["problem", "the disk is full"], "the disk is full"),
        (PeerError(), None),  # it is just being started: it knows nobody
        (RuntimeError("broken"), "broken"),
        (None, "a process does not answer in time"),
    ],
)
def test_a_user_is_forgotten_once_every_process_has_and_is_admitted_by_all(
    completer, settings, monkeypatch, answer, said
):
    asked = []

    async def forget():
        patience = 0.5 if answer is None else 10.0
        app = create_app(completer, replace(settings, write_seconds=patience), place=None)
        await app.start()
        app.desk._others = {7}

        async def ask(other, request):
            asked.append((other, request[:2]))
            if request[0] == "forgotten":
                return ["answer"]
            if answer is None:
                await asyncio.sleep(30)
            if isinstance(answer, Exception):
                raise answer
            return answer

        app.desk.peers.ask = ask
        submitted = await app.desk.submit("soup", "bob", "1")
        assert submitted.updates == 0
        try:
            if said is None:
                assert (await app.desk.forget("bob"))["rows"] == 2
            else:
                with pytest.raises((StoreError, RuntimeError), match=said):
                    await app.desk.forget("bob")
                assert app.journal._store.read("bob").version == 1
            assert not app.desk._compositions._barred
        finally:
            await app.stop()

    asyncio.run(forget())
    assert asked == [(7, ["forget", "bob"]), (7, ["forgotten", "bob"])]


def test_records_that_wait_for_the_disk_are_said_to_before_a_user_is_forgotten(kept, monkeypatch):
    with service(kept) as client:
        monkeypatch.setattr(client.app.recorder, "flush", lambda seconds: False)
        answer = client.post("/forget", json={"user": USER})
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "no_store")
        assert "records wait for the disk" in answer.json()["error"]["message"]


def test_a_service_that_cannot_read_whom_it_forgot_does_not_start(kept, monkeypatch, completer):
    def fail(self, after):
        raise StoreError("the disk is gone")

    monkeypatch.setattr(Store, "forgotten", fail)
    with pytest.raises(InputError, match="the database: the disk is gone"):
        create_app(completer, kept)


def test_of_a_service_that_stopped_nothing_runs_on(kept, tmp_path):
    async def run():
        before = {*threading.enumerate()}
        completer = Completer.load(tmp_path / "model")
        with tempfile.TemporaryDirectory(prefix="telic-") as folder:
            app = create_app(completer, kept, place=WorkerPlace(0, 2, folder))
            await app.start()
            assert len(asyncio.all_tasks()) > 1
            await app.stop()
            mailbox = app.desk.peers._mailbox
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert mailbox.fileno() == -1
        await asyncio.get_running_loop().shutdown_default_executor()
        for thread in {*threading.enumerate()} - before:
            thread.join(5)  # a pool's thread that is told to end
            assert not thread.is_alive()

    asyncio.run(run())


def test_a_bar_that_nobody_lifts_ends(kept):
    with service(kept) as client:
        client.portal.call(client.app.forgotten.begin, USER)
        assert typed(client, USER, "1") == []
        assert not client.app.desk._compositions._users  # nobody reads whom nobody may know
        assert submitted(client, USER, "1", "soup") == 503
    with service(replace(kept, write_seconds=0.05)) as client:
        with suppress(StoreError):  # a busy disk takes longer; who is barred is so all the same
            client.portal.call(client.app.forgotten.begin, USER)
        deadline = time.monotonic() + 30
        while submitted(client, USER, "1", "soup") != 200:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_only_an_admins_key_forgets_and_a_tenants_user_has_its_tenants_name(kept, tmp_path):
    keys = tmp_path / "keys.toml"
    admin, shop = add_key(keys, "watch", admin=True), add_key(keys, "shop")
    with service(replace(kept, keys=str(keys))) as client:

        def ask(key, path, **given):
            headers = {"authorization": f"Bearer {key}"}
            return client.post(path, json=given, headers=headers)

        long = "x" * kept.max_id
        for user in ("ada", "bob", long):
            given = {"query": SECRET, "user": user, "composition": "1"}
            assert ask(shop, "/submit", **given).status_code == 200
        refused = ask(shop, "/forget", user="shop:ada")
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "no_admin")
        assert ask(admin, "/forget", user="ada").json()["rows"] == 0
        assert ask(admin, "/forget", user="shop:ada").json()["rows"] == 2
        assert ask(admin, "/forget", user=f"shop:{long}").json()["rows"] == 2
        assert ask(admin, "/forget", user=" ").status_code == 422
        found = [
            ask(shop, "/suggest", q="z", user=user, composition="2").json()[1]
            for user in ("ada", "bob")
        ]
        assert found == [[], [SECRET]]


def test_the_command_asks_the_service(kept, tmp_path, monkeypatch, capsys):
    keys = tmp_path / "keys.toml"
    (tmp_path / "key").write_text(add_key(keys, "watch", admin=True) + "\n")
    completer = Completer.load(tmp_path / "model")

    def telic(*arguments):
        monkeypatch.setattr(sys, "argv", ["telic", "completion", "forget", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        said = capsys.readouterr()
        return stop.value.code or 0, said.out, said.err

    with serving(completer, replace(kept, port=0, keys=str(keys))) as address:
        with_key = ["--service", address, "--key-file", tmp_path / "key"]
        erased = "erased from the model; 0 rows erased from the database; 0 records erased\n"
        assert telic(USER, *with_key)[:2] == (0, erased)
        code, _, said = telic(USER, *with_key)
        assert (code, "knows no such user" in said) == (2, True)
        assert "no_key" not in (said := telic(USER, "--service", address)[2])
        assert "A key or a user's token is needed" in said
        with (
            closing(Client(address, key=(tmp_path / "key").read_text().strip())) as client,
            pytest.raises(ServiceError, match="missing or blank"),
        ):
            client.forget("")
    for wrong, message in (
        ([USER, *with_key, "--recorded", tmp_path], "name only the user"),
        (["model", USER, *with_key], "name only the user"),
        ([USER], "name the model folder and the user"),
        (["model", USER, "--key-file", "x"], "--key-file goes with --service"),
        ([USER, "--service", address, "--key-file", tmp_path / "none"], "cannot be read"),
    ):
        code, _, said = telic(*wrong)
        assert (code, message in " ".join(said.split())) == (2, True), said


def test_records_are_written_while_others_are_erased(tmp_path):
    """No line of anybody else is lost, whoever replaces the file in the meantime."""
    recorders = [Recorder(tmp_path) for _ in range(2)]

    def write(recorder, name):
        for n in range(150):
            for user in (USER, name):
                typing = recorder.begin(user)
                recorder.keystroke(typing, f"s{n}", 0.0, ["soup"])
            assert recorder.flush(30)

    threads = [
        threading.Thread(target=write, args=(recorder, f"u{i}"))
        for i, recorder in enumerate(recorders)
    ]
    for recorder in recorders:
        recorder.start()
    for thread in threads:
        thread.start()
    erased = 0
    while any(thread.is_alive() for thread in threads):
        erased += erase(tmp_path, USER)
    for recorder in recorders:
        recorder.close()
    erased += erase(tmp_path, USER)
    assert erased == 300
    lines = [line for file in recorded(tmp_path) for line in file.read_text().splitlines()]
    assert sorted({json.loads(line)["client_id"] for line in lines}) == ["u0", "u1"]
    assert len(lines) == 300


def test_a_note_keeps_no_id(completer, any_settings):
    store = Store(any_settings.database, completer)
    numbers = [store.forget(user)[1] for user in ("ada-lovelace", "bob", "ada-lovelace")]
    assert numbers == [1, 2, 3]
    notes = store.forgotten(0)
    assert sorted(notes) == [0, 2, 3]  # the last of each, and the key
    assert sorted(store.forgotten(2)) == [0, 3]
    assert len({*notes.values()}) == 3
    assert not any("lovelace" in note for note in notes.values())
    store.close()
