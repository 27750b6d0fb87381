"""Phrases added, counted up and deleted while the service runs: who may, when it is seen, that it
stays, and that it counts once."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy.exc import IntegrityError
from starlette.testclient import TestClient

from telic.completion import DenyList, Lesson
from telic.serve import create_app
from telic.serve.callers.tenant_keys import add_key
from telic.serve.callers.tokens import sign_user
from telic.serve.http.errors import Problem
from telic.serve.state import group_commit, phrase_changes
from telic.serve.state.group_commit import MAX_CHANGES, MAX_READS, Journal
from telic.serve.state.phrase_changes import MOST, checked_changes
from telic.serve.state.store import Outcome, Store, StoreError, Submission


@pytest.fixture
def keyed(any_settings, tmp_path):
    """Settings with keys, an editor's key, and that of somebody who only asks."""
    file = tmp_path / "keys.toml"
    keys = add_key(file, "desk", editor=True), add_key(file, "shop")
    return replace(any_settings, keys=str(file)), *keys


def started(make_completer, settings, **changes):
    """A service with a completer of its own, which its changes belong to."""
    return TestClient(create_app(make_completer(**changes), settings), "http://127.0.0.1:8000")


def post(client, key, id, *changes):
    headers = {"authorization": f"Bearer {key}"}
    return client.post("/phrases", json={"id": id, "changes": list(changes)}, headers=headers)


def listed(client, key, q="so"):
    return client.get(
        "/suggest", params={"q": q}, headers={"authorization": f"Bearer {key}"}
    ).json()[1]


def test_changes_are_seen_at_once_and_after_a_start_and_a_swap(make_completer, keyed, caplog):
    settings, editor, key = keyed
    with started(make_completer, settings) as client:
        assert listed(client, key) == ["soup"]
        answer = post(client, editor, "1", {"phrase": "sorbet", "popularity": 99999})
        assert (answer.status_code, answer.json()) == (200, {"number": 1})
        assert listed(client, key) == ["sorbet", "soup"]
        both = {"phrase": "soup", "delete": True}, {"phrase": "socca", "by": 3}
        assert post(client, editor, "2", *both).json() == {"number": 2}
        assert listed(client, key) == ["sorbet", "socca"]
    with started(make_completer, settings) as client:  # what killed the first is no matter
        assert listed(client, key) == ["sorbet", "socca"]
    denying = make_completer().denying(DenyList(("socca",)))
    with TestClient(create_app(denying, settings), "http://127.0.0.1:8000") as client:
        assert listed(client, key) == ["sorbet"]  # another model, whose editor denies it
    assert "a change of batch 2 is left out: this model denies it" in caplog.text


def test_a_batch_that_is_sent_again_counts_once(make_completer, keyed):
    settings, editor, _ = keyed
    counted = {"phrase": "sorbet", "by": 5}
    with started(make_completer, settings) as client:
        assert [post(client, editor, "1", counted).json()["number"] for _ in range(3)] == [1, 1, 1]
        live = client.app.changes._completer.live
        once = live.weight(live.find("sorbet"))
    with started(make_completer, settings) as client:
        assert post(client, editor, "1", counted).json() == {"number": 1}
        live = client.app.changes._completer.live
        assert live.weight(live.find("sorbet")) == once


def test_what_one_process_stores_another_sees_within_a_second(make_completer, keyed):
    settings, editor, key = keyed
    with started(make_completer, settings) as one, started(make_completer, settings) as other:
        post(one, editor, "1", {"phrase": "sorbet", "popularity": 9})
        began = time.monotonic()
        while "sorbet" not in listed(other, key) and time.monotonic() - began < 30:
            time.sleep(0.02)
        assert "sorbet" in listed(other, key)


def test_batches_of_many_writers_have_one_order(completer, any_settings):
    stores = [Store(any_settings.database, completer) for _ in range(4)]

    def write(n):
        while True:
            try:
                return stores[n % 4].change(f"{n}", [["sorbet", "by", float(n)]])
            except StoreError:  # sent again, as who was not answered does
                continue

    with ThreadPoolExecutor(4) as pool:
        numbers = list(pool.map(write, range(24)))
    assert sorted(numbers) == list(range(1, 25))
    found = dict(stores[0].changes(0))
    assert found == {number: [["sorbet", "by", float(n)]] for n, number in enumerate(numbers)}
    assert [number for number, _ in stores[1].changes(20)] == [21, 22, 23, 24]
    for store in stores:
        store.close()


def test_only_an_editors_key_changes_anything(make_completer, client, keyed):
    settings, _, key = keyed
    change = {"phrase": "sorbet", "popularity": 9}
    with started(make_completer, settings) as keyed_client:
        for proof, status in ((key, 403), (sign_user(key, "ada"), 403), ("telic_x", 401)):
            assert post(keyed_client, proof, "1", change).status_code == status
        assert listed(keyed_client, key) == ["soup"]
    assert post(client, "", "1", change).json()["error"]["code"] == "no_editor"  # without keys


@pytest.mark.parametrize(
    "changes",
    [
        [],
        "sorbet",
        [{"phrase": "sorbet"}],
        [{"phrase": "sorbet", "popularity": 1, "by": 1}],
        [{"phrase": "sorbet", "popularity": 1, "payload": {"price": 4}}],
        [{"phrase": "sorbet", "popularity": -1}],
        [{"phrase": "sorbet", "popularity": "9"}],
        [{"phrase": "sorbet", "by": True}],
        [{"phrase": "sorbet", "by": 10**400}],
        [{"phrase": "sorbet", "delete": False}],
        [{"phrase": " ", "by": 1}],
        [{"phrase": "x" * 100_000, "by": 1}],
        [{"phrase": "sorbet", "by": 1}, {"phrase": 7, "by": 1}],
        [{"phrase": "sorbet", "by": 1}, None],
        [{"phrase": " \0", "by": 1}],
        [{"phrase": f"s{i}", "by": 1} for i in range(MOST + 1)],
    ],
)
def test_a_batch_with_one_bad_change_changes_nothing(make_completer, settings, tmp_path, changes):
    key = add_key(tmp_path / "keys.toml", "desk", editor=True)
    settings = replace(settings, keys=str(tmp_path / "keys.toml"))
    with started(make_completer, settings) as client:
        headers = {"authorization": f"Bearer {key}"}
        given = {"id": "1", "changes": changes}
        answer = client.post("/phrases", json=given, headers=headers)
        assert answer.status_code in (413, 422), answer.text
        assert listed(client, key) == ["soup"]
        assert post(client, key, "1", {"phrase": "sorbet", "by": 1}).json() == {"number": 1}


@pytest.mark.parametrize(
    "change",
    [None, {"phrase": "sorbet", "popularity": "9"}, {"phrase": "sorbet", "popularity": -4}],
)
def test_the_bad_one_of_many_changes_is_named(make_completer, keyed, change):
    settings, editor, _ = keyed
    with started(make_completer, settings) as client:
        answer = post(client, editor, "1", {"phrase": "ice", "by": 1}, change)
        assert "changes[1]" in answer.json()["error"]["message"]


def test_a_batch_with_more_than_an_id_and_changes_is_refused(make_completer, keyed):
    """What the service does not take is never dropped in silence."""
    settings, editor, key = keyed
    with started(make_completer, settings) as client:
        given = {"id": "1", "changes": [{"phrase": "sorbet", "by": 1}], "tenant": "shop"}
        answer = client.post("/phrases", json=given, headers={"authorization": f"Bearer {editor}"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "bad_change")
        assert listed(client, key) == ["soup"]


def test_a_phrase_is_stored_as_it_is_suggested(make_completer, keyed):
    """Control characters among it: a store may not take them."""
    settings, editor, key = keyed
    with started(make_completer, settings) as client:
        given = {"phrase": " sorbet\0 with\tlemon", "by": 1}
        assert post(client, editor, "1", given).json() == {"number": 1}
        assert set(listed(client, key)) == {"soup", "sorbet with lemon"}
    store = Store(settings.database, make_completer())
    assert dict(store.changes(0))[1] == [["sorbet with lemon", "by", 1.0]]
    store.close()


def test_an_id_that_comes_again_with_other_changes_is_refused(make_completer, keyed):
    """Otherwise they would be acknowledged and never made."""
    settings, editor, key = keyed
    with started(make_completer, settings) as client:
        assert post(client, editor, "1", {"phrase": "sorbet", "by": 1}).json() == {"number": 1}
        answer = post(client, editor, "1", {"phrase": "socca", "by": 1})
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "id_taken")
        assert post(client, editor, "2", {"phrase": "socca", "by": 1}).json() == {"number": 2}
        assert set(listed(client, key)) == {"soup", "sorbet", "socca"}


def test_an_editor_of_one_tenant_takes_no_id_of_anothers(make_completer, keyed, tmp_path):
    settings, editor, key = keyed
    other = add_key(tmp_path / "keys.toml", "default", editor=True)
    with started(make_completer, settings) as client:
        assert post(client, editor, "1", {"phrase": "sorbet", "by": 1}).json() == {"number": 1}
        assert post(client, other, "1", {"phrase": "socca", "by": 1}).json() == {"number": 2}
        posing = post(client, other, "desk:1", {"phrase": "sorbet", "by": 1})
        assert posing.json() == {"number": 3}  # not told that it is there
        assert set(listed(client, key)) == {"soup", "sorbet", "socca"}


def test_no_more_than_so_many_phrases_are_changed_and_deleting_goes_on(make_completer, keyed):
    settings, editor, key = keyed
    with started(make_completer, replace(settings, max_changes=3)) as client:
        new = [{"phrase": f"so{i}", "by": 1} for i in range(3)]
        assert post(client, editor, "1", *new).status_code == 200
        for again in range(2):  # what was deleted is remembered too
            answer = post(client, editor, f"a{again}", {"phrase": "sorbet", "by": 1})
            assert (answer.status_code, answer.json()["error"]["code"]) == (409, "too_many_changes")
            deleted = {"phrase": f"so{again}", "delete": True}
            assert post(client, editor, f"b{again}", deleted).status_code == 200
        assert listed(client, key) == ["soup", "so2"]


def test_changes_that_cannot_be_read_stop_nothing(make_completer, keyed, caplog):
    settings, editor, key = keyed
    with started(make_completer, settings) as client:
        other = Store(settings.database, make_completer())
        other.change("x", [["sorbet"], ["sorbet", "by", "many"], ["socca", "by", 2.0]])
        other.close()
        assert post(client, editor, "1", {"phrase": "sorbet", "by": 1}).json() == {"number": 2}
        assert set(listed(client, key)) == {"soup", "sorbet", "socca"}
    assert "a change of batch 1 is left out: it is damaged" in caplog.text


def test_many_batches_are_read_at_a_start(make_completer, completer, keyed):
    settings = keyed[0]
    store = Store(settings.database, completer)
    for number in range(250):
        store.change(f"{number}", [["sorbet", "by", 1.0]])
    store.close()
    with started(make_completer, settings) as client:
        live = client.app.changes._completer.live
        assert live.weight(live.find("sorbet")) == pytest.approx(np.log1p(250))


def test_batches_that_wait_for_a_locked_store_are_bounded(completer, settings, monkeypatch):
    store, held = Store(settings.database, completer), threading.Event()
    monkeypatch.setattr(store, "change", lambda *_: held.wait(30) and 1)
    journal = Journal(store, replace(settings, write_seconds=0.01))

    async def ask():
        journal.start()
        said = []
        for number in range(MAX_CHANGES + 1):
            with pytest.raises(StoreError) as raised:
                await journal.change(f"{number}", [])
            said.append(str(raised.value))
        held.set()
        while journal._changing:
            await asyncio.sleep(0.001)
        journal._settings = settings  # with time enough for a busy machine
        assert await journal.change("later", []) == 1
        await journal.close()
        assert store._closed
        return said

    said = asyncio.run(ask())
    assert said[-1] == "too many changes wait for it"
    assert set(said[:-1]) == {"it does not answer in time"}


def test_reads_that_wait_for_a_slow_store_are_bounded(completer, settings, monkeypatch):
    store, held = Store(settings.database, completer), threading.Event()
    monkeypatch.setattr(store, "read", lambda *_: held.wait(30) and None)
    journal = Journal(store, replace(settings, read_seconds=10))

    async def ask():
        journal.start()
        first = [asyncio.create_task(journal.read("ada", 0)) for _ in range(MAX_READS)]
        await asyncio.sleep(0)
        try:
            with pytest.raises(StoreError, match="too many reads wait for it"):
                await journal.read("ada", 0)
        finally:
            held.set()
        answers = await asyncio.gather(*first)
        assert await journal.read("ada", 0) is None
        await journal.close()
        return answers

    assert asyncio.run(ask()) == [None] * MAX_READS


def test_a_batch_of_as_many_changes_as_may_be_is_made(make_completer, settings, monkeypatch):
    completer = make_completer()
    monkeypatch.setattr(phrase_changes, "MOST", 2)
    three = [{"phrase": f"so{i}", "by": 1} for i in range(3)]
    assert len(checked_changes(three[:2], completer, settings)) == 2
    with pytest.raises(Problem, match="'changes' are 3, over 2"):
        checked_changes(three, completer, settings)


def test_a_phrase_that_others_write_at_the_same_time_is_tried_five_times(store, monkeypatch):
    tried = []

    def collide(*_):
        tried.append(1)
        raise IntegrityError("INSERT", {}, Exception("taken"))

    monkeypatch.setattr(store, "_record", collide)
    monkeypatch.setattr("telic.serve.state.store._now", collide)
    submission = Submission("ada", "c", Lesson("soup"))
    for write in (lambda: store.record([submission]), lambda: store.change("1", [])):
        tried.clear()
        with pytest.raises(StoreError, match="others write the same again and again"):
            write()
        assert len(tried) == 5


def test_submissions_that_wait_are_bounded_and_written_together(completer, settings, monkeypatch):
    monkeypatch.setattr(group_commit, "BATCH", 2)
    store, began, held = Store(settings.database, completer), threading.Event(), threading.Event()
    batches = []

    def record(batch):
        batches.append(len(batch))
        began.set()
        assert held.wait(30)
        return [Outcome(False, 0)] * len(batch)

    monkeypatch.setattr(store, "record", record)
    journal = Journal(store, replace(settings, max_waiting=4))

    async def ask():
        journal.start()
        submission = Submission("ada", "c", Lesson("soup"))
        first = asyncio.create_task(journal.write(submission))
        await asyncio.to_thread(began.wait, 30)
        others = [asyncio.create_task(journal.write(submission)) for _ in range(4)]
        await asyncio.sleep(0)
        try:
            with pytest.raises(StoreError, match="too many submissions wait for it"):
                await journal.write(submission)
        finally:
            held.set()
        await asyncio.gather(first, *others)
        await journal.close()

    asyncio.run(ask())
    assert batches == [1, 2, 2]
