"""Changes are built into the list while the service runs: no answer changes, none is lost."""

import asyncio
import json
import os
import re
import shutil
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from telic.completion import Completer, DenyList
from telic.completion.box import compaction
from telic.completion.box.compaction import keep
from telic.serve import create_app
from telic.serve.callers.tenant_keys import add_key
from telic.serve.operation.metrics import Metrics
from telic.serve.state import background_compaction, phrase_changes
from telic.serve.state.background_compaction import KeptLists
from telic.serve.state.group_commit import Journal
from telic.serve.state.row_trimming import RowTrimming
from telic.serve.state.store import Store


@pytest.fixture
def editor(settings, make_completer, tmp_path, monkeypatch):
    """Settings of a saved model whose changes are built in from the third on; an editor's key."""
    monkeypatch.setattr(phrase_changes, "EVERY", 0.02)
    make_completer().save(tmp_path / "model")
    key = add_key(tmp_path / "keys.toml", "desk", editor=True)
    return replace(settings, keys=str(tmp_path / "keys.toml"), compact_after=3), key


@pytest.fixture
def built_here(monkeypatch):
    """Build in a thread of the test's own process; give what was built, and hold it on demand."""

    class Built(list):
        held = threading.Event()
        begun = 0

    built = Built()
    built.held.set()

    class Popen:
        returncode = 0

        def __init__(self, command, pass_fds, **_):
            assert command[-1] == compaction.__name__
            self.lock = os.dup(*pass_fds)
            built.begun += 1

        def communicate(self, given):
            assert built.held.wait(30)
            keep(**json.loads(given))
            built.append(given)
            os.close(self.lock)
            return b"", b""

        def terminate(self):
            built.held.set()

    monkeypatch.setattr(background_compaction.subprocess, "Popen", Popen)
    return built


@contextmanager
def service(settings, completer=None):
    model = Path(settings.compacted.removesuffix(".compacted"))
    app = create_app(completer or Completer.load(model), settings)
    with TestClient(app, "http://127.0.0.1:8000") as client:
        yield client


def post(client, key, id, *changes):
    headers = {"authorization": f"Bearer {key}"}
    given = {"id": id, "changes": list(changes)}
    assert client.post("/phrases", json=given, headers=headers).status_code == 200


def listed(client, key, q="so", **more):
    answer = client.get(
        "/suggest", params={"q": q} | more, headers={"authorization": f"Bearer {key}"}
    )
    assert answer.status_code == 200
    return answer.json()[1]


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def compact(client):
    """Whether all changes are built in."""
    return not len(client.app.changes.completer.live)


THREE = [{"phrase": f"so{i}", "popularity": 1e6 - i} for i in range(3)]


def test_a_process_builds_the_changes_in_and_every_answer_is_right(editor):
    settings, key = editor
    with service(settings) as one, service(settings) as other:
        post(one, key, "1", *THREE)
        while not (compact(one) and compact(other)):
            assert listed(one, key) == ["so0", "so1", "so2", "soup"]
            time.sleep(0.05)
        assert listed(other, key) == ["so0", "so1", "so2", "soup"]
        # What comes then is seen by both, and built in once it is much.
        post(other, key, "2", {"phrase": "soup", "delete": True}, {"phrase": "so1", "by": 9e6})
        until(lambda: listed(one, key) == ["so1", "so0", "so2"])
        assert len(list(Path(settings.compacted).glob("*-*-*"))) == 1
    with service(settings) as again:
        assert len(again.app.changes.completer.live) == 2
        assert listed(again, key) == ["so1", "so0", "so2"]


def test_what_is_being_typed_goes_on(editor, built_here):
    settings, key = editor
    ada = {"user": "ada", "composition": "c"}
    with service(settings) as client:
        beside = Completer.load(settings.compacted.removesuffix(".compacted"))
        assert "so0" not in listed(client, key, "s", t=0, **ada)
        post(client, key, "1", *THREE)
        until(lambda: compact(client))
        # What was shown for three seconds sinks, as without the swap.
        typing = beside.compose(beside.user())
        expected = [[s.text for s in typing.suggest("s", at=0.0)]]
        for phrase in THREE:
            beside.live.put(phrase["phrase"], phrase["popularity"])
        expected += [[s.text for s in typing.suggest(q, at=t)] for q, t in (("so", 3), ("s", 4))]
        found = [listed(client, key, q, t=1000 * t, **ada) for q, t in (("so", 3), ("s", 4))]
        assert found == expected[1:]
        post(client, key, "2", {"phrase": "so0", "delete": True})
        assert "so0" not in listed(client, key, "so", t=5000, **ada)
        post(client, key, "3", *({"phrase": f"sa{i}", "popularity": 1} for i in range(3)))
        until(lambda: compact(client) and len(built_here) == 2)
        post(client, key, "4", {"phrase": "so1", "delete": True})
        for q in ("s", "so"):  # begun again
            assert "so1" not in listed(client, key, q, t=6000, **ada)


def test_a_keystroke_that_is_repeated_shows_no_phrase_that_was_deleted_since(editor, built_here):
    settings, key = editor
    ada = {"user": "ada", "composition": "c"}
    with service(settings) as client:
        assert listed(client, key, "so", **ada) == ["soup"]
        post(client, key, "1", {"phrase": "soup", "delete": True})
        assert listed(client, key, "so", **ada) == []
        post(client, key, "2", *THREE)
        until(lambda: compact(client))
        assert listed(client, key, "so", **ada) == ["so0", "so1", "so2"]
        assert client.app.desk._compositions.find("desk:ada", "c").keystrokes == 1


def test_what_is_changed_while_a_list_is_built_is_not_in_it_and_not_lost(editor, built_here):
    settings, key = editor
    with service(settings) as client:
        built_here.held.clear()
        post(client, key, "1", *THREE)
        time.sleep(0.1)
        post(client, key, "2", {"phrase": "so0", "delete": True}, {"phrase": "soda", "by": 2e6})
        built_here.held.set()
        until(lambda: len(client.app.changes.completer.live) == 2)
        assert listed(client, key) == ["soda", "so1", "so2", "soup"]
        assert len(built_here) == 1
    with service(settings) as again:
        assert listed(again, key) == ["soda", "so1", "so2", "soup"]
        assert len(again.app.changes.completer.live) == 2


def test_whatever_a_killed_process_leaves_no_change_is_lost(editor, built_here, tmp_path, caplog):
    """Killed before a list has its name, or before the older one goes; and a disk that failed."""
    settings, key = editor
    lists = Path(settings.compacted)
    with service(settings) as client:
        post(client, key, "1", *THREE)
        until(lambda: compact(client))
        (first,) = lists.glob("*-*-*")
        shutil.copytree(first, tmp_path / "first")
        post(client, key, "2", *({"phrase": f"so{i}", "delete": True} for i in range(3)))
        until(lambda: compact(client) and len(built_here) == 2)
        post(client, key, "3", {"phrase": "soda", "by": 2e6})
    (second,) = lists.glob("*-*-*")
    shutil.copytree(tmp_path / "first", first)
    (lists / f"{compaction.BEGUN}x").mkdir()
    for changed in (1, 4, 4):  # since the second list, since the first, since the model's own
        with service(replace(settings, compact_after=9)) as again:
            assert listed(again, key) == ["soda", "soup"]
            assert len(again.app.changes.completer.live) == changed
        damaged = second if changed == 1 else first
        (damaged / "index.kinds.npy").write_bytes(b"")
        (damaged / "manifest.json").write_text("{}")
    assert "a list with its changes is left out" in caplog.text


def test_a_list_that_serves_is_not_taken_again_and_a_damaged_one_is_said_once(
    editor, built_here, caplog
):
    settings, key = editor
    with service(settings) as client:
        post(client, key, "1", *THREE)
        until(lambda: compact(client))
        assert client.app.changes._lists.newer() is None
        store, (kept,) = client.app.journal._store, Path(settings.compacted).glob("*-*-*")
        lists = KeptLists(
            Completer.load(settings.compacted.removesuffix(".compacted")), store, settings
        )
        assert (lists.newer().number, lists.newer().folder) == (1, kept)
        (kept / "index.kinds.npy").write_bytes(b"")
        (kept / "manifest.json").write_text("{}")
        caplog.clear()
        assert [lists.newer() for _ in range(3)] == [None] * 3
        assert caplog.text.count("a list with its changes is left out") == 1


def test_a_list_of_another_store_or_another_model_is_none(
    editor, built_here, make_completer, tmp_path, monkeypatch
):
    settings, key = editor
    with service(settings) as client:
        post(client, key, "1", *THREE)
        until(lambda: compact(client))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    other = replace(settings, database=f"sqlite:///{tmp_path}/other.sqlite")
    with service(other) as client:
        post(client, key, "1", {"phrase": "sorbet", "popularity": 1e6})
        assert listed(client, key) == ["sorbet", "soup"]
    denying = make_completer().denying(DenyList(("so1",)))
    with service(settings, denying) as client:
        assert listed(client, key) == ["so0", "so2", "soup"]
    assert not list(temporary.iterdir())  # where a model that has no folder is written


def test_a_list_that_cannot_be_built_leaves_the_changes_as_they_are(editor, monkeypatch, caplog):
    settings, key = editor
    begun = []

    class Popen:
        returncode = 1

        def __init__(self, *_, **__):
            begun.append(self)

        def communicate(self, given):
            return b"", b"Warning: slow\n[Errno 28] No space left on device\n"

        def terminate(self):
            pass

    monkeypatch.setattr(background_compaction.subprocess, "Popen", Popen)
    with service(settings) as client:
        post(client, key, "1", *THREE)
        until(lambda: begun)
        time.sleep(0.2)
        assert len(begun) == 1  # no second one within a minute
        assert listed(client, key) == ["so0", "so1", "so2", "soup"]
    assert "not built into the list: [Errno 28] No space left on device" in caplog.text


def test_two_processes_do_not_build_at_once(editor, built_here):
    settings, key = editor
    with service(settings) as one, service(settings) as other:
        built_here.held.clear()
        post(one, key, "1", *THREE)
        until(lambda: len(other.app.changes.completer.live) == 3)
        time.sleep(0.2)
        built_here.held.set()
        until(lambda: compact(one) and compact(other))
        assert built_here.begun == 1


def test_what_another_process_has_just_built_is_not_built_again(editor, built_here):
    """This one saw that a list was due before the other's was there."""
    settings, key = editor
    with service(settings) as client:
        built_here.held.clear()
        post(client, key, "1", *THREE)
        until(lambda: len(client.app.changes.completer.live) == 3)
        late = client.app.changes.completer
        built_here.held.set()
        until(lambda: compact(client))
        lists = background_compaction.KeptLists(late, client.app.journal._store, settings)
        asyncio.run(lists.build_if_due(late, 1))
        assert built_here.begun == 1


def test_a_service_that_stops_begins_no_list(editor, built_here):
    settings, key = editor
    with service(replace(settings, compact_after=4)) as client:
        post(client, key, "1", *THREE)
        lists = background_compaction.KeptLists(
            client.app.changes.completer, client.app.journal._store, settings
        )
        lists.close()
        asyncio.run(lists.build_if_due(client.app.changes.completer, 1))
        assert not built_here.begun


def test_a_batch_is_told_from_those_of_other_stores(completer, any_settings, tmp_path):
    store = Store(any_settings.database, completer)
    other = Store(f"sqlite:///{tmp_path}/other.sqlite", completer)
    for each in (store, other):
        each.change("1", [["sorbet", "by", 1.0]])
        each.change("2", [["sorbet", "by", 1.0]])
    told = [each.batch(number) for each in (store, other) for number in (1, 2)]
    assert len(set(told)) == 4
    assert all(re.fullmatch("[0-9a-f]{16}", each) for each in told)
    again = Store(any_settings.database, completer)
    assert again.batch(2) == told[1]
    assert again.batch(3) is None
    for each in (store, other, again):
        each.close()


def test_a_process_that_lags_behind_shows_open_compositions_all_changes(editor, built_here):
    """A list may have batches that the process has not seen."""
    settings, key = editor
    ada = {"user": "ada", "composition": "c"}
    with service(settings) as one, service(settings) as other:
        changes = other.app.changes
        other.portal.call(changes._tasks[0].cancel)
        listed(other, key, "s", t=0, **ada)
        post(one, key, "1", *THREE)
        until(lambda: changes._before is not None)
        assert listed(other, key, "so", t=1000, **ada) == ["so0", "so1", "so2", "soup"]


def test_no_list_is_built_where_nothing_says_to(editor, built_here):
    settings, key = editor
    for without in (replace(settings, compact_after=0), replace(settings, compacted="")):
        app = create_app(Completer.load(settings.compacted.removesuffix(".compacted")), without)
        with TestClient(app, "http://127.0.0.1:8000") as client:
            assert len(app.changes._tasks) == 1
            post(client, key, "1", *THREE)
    assert not built_here


def test_what_comes_while_a_list_is_taken_counts_once(editor, built_here):
    """Another process stores a batch between two looks at the store."""
    settings, _ = editor
    completer = Completer.load(settings.compacted.removesuffix(".compacted"))

    async def counted():
        store = Store(settings.database, completer)
        journal = Journal(store, settings)
        journal.start()
        lists = KeptLists(completer, store, settings)
        bounds = RowTrimming(journal.trim, settings, Metrics())
        changes = phrase_changes.Changes(completer, store, journal, lists, bounds)
        for i in range(4):
            await changes.make(f"b{i}", [phrase_changes.Change(f"zz {i}", "by", 1.0)])
        await lists.build_if_due(changes.completer, 4)
        kept = lists.newer()
        await changes.make("b4", [phrase_changes.Change("zz 4", "by", 1.0)])
        caught_up = changes._catch_up

        async def and_then_another_stores():
            await caught_up()
            store.change("other", [["zz x", "by", 1.0]])

        changes._catch_up = and_then_another_stores
        await changes._take(kept)
        await caught_up()
        live = changes.completer.live
        found = {text: live.weight(live.find(text)) for text in ("zz 4", "zz x")}
        await journal.close()
        return found

    assert asyncio.run(counted()) == pytest.approx(dict.fromkeys(("zz 4", "zz x"), np.log(2)))
