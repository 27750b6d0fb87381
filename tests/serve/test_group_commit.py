"""Between the event loop and the store: one check for all, and answers to who has gone."""

import asyncio
import threading
from dataclasses import replace

import pytest

from telic.completion import Lesson
from telic.serve.state import group_commit, outages
from telic.serve.state.group_commit import Journal
from telic.serve.state.store import Outcome, Store, StoreError, Submission


def test_who_asks_for_health_within_a_second_shares_one_write(completer, settings, monkeypatch):
    store, checks = Store(settings.database, completer), []
    monkeypatch.setattr(store, "check", lambda: checks.append(1))

    async def ask():
        journal = Journal(store, settings)
        journal.start()
        await asyncio.gather(*(journal.check() for _ in range(5)))
        await journal.check()
        shared = len(checks)
        monkeypatch.setattr(group_commit, "EVERY", 0.0)
        await journal.check()
        await journal.close()
        return shared

    assert asyncio.run(ask()) == 1
    assert len(checks) == 2


def test_a_check_that_waits_for_the_store_does_not_outlive_the_journal(
    completer, settings, monkeypatch
):
    store, held = Store(settings.database, completer), threading.Event()
    monkeypatch.setattr(store, "check", lambda: held.wait(30))

    async def ask():
        journal = Journal(store, replace(settings, write_seconds=30))
        journal.start()
        asked = asyncio.create_task(journal.check())
        await asyncio.sleep(0.01)
        closing = asyncio.create_task(journal.close())
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asked, 5)
        held.set()
        await closing

    asyncio.run(ask())


def test_a_writer_that_is_stuck_is_an_outage_until_it_answers(
    completer, settings, monkeypatch, caplog
):
    """Whatever other threads and connections can do meanwhile."""
    monkeypatch.setattr(outages, "EVERY", 0.01)
    monkeypatch.setattr(group_commit, "EVERY", 0.0)
    store, held, cuts = Store(settings.database, completer), threading.Event(), []

    def record(submissions):
        assert held.wait(30)
        return [Outcome(True, 1) for _ in submissions]

    monkeypatch.setattr(store, "record", record)
    monkeypatch.setattr(store, "cut", lambda: cuts.append(1))

    async def ask():
        journal = Journal(store, replace(settings, write_seconds=0.05))
        journal.start()
        for _ in range(3):
            with pytest.raises(StoreError, match="does not answer in time"):
                await journal.write(Submission("ada", "1", Lesson("soup")))
            with pytest.raises(StoreError, match="does not answer in time"):
                await journal.check()
            journal._settings = settings
            assert await journal.change(f"id{len(cuts)}", []) > 0
            journal._settings = replace(settings, write_seconds=0.05)
            assert journal.problem == "it does not answer in time"
        while len(cuts) < 5:
            await asyncio.sleep(0.01)
        held.set()
        while journal.problem:
            await asyncio.sleep(0.01)
        await journal.check()
        await journal.close()

    asyncio.run(asyncio.wait_for(ask(), 30))
    assert [record.getMessage() for record in caplog.records] == [
        "the store fails (write): it does not answer in time",
        "the store works again (write)",
    ]


@pytest.mark.parametrize("fails", [False, True])
def test_who_has_gone_is_not_answered_and_the_next_is(fails, completer, settings, monkeypatch):
    store, held, batches = Store(settings.database, completer), threading.Event(), []

    def record(submissions):
        batches.append(len(submissions))
        held.wait(30)
        if fails and len(batches) == 1:
            raise StoreError("the disk is full")
        return [Outcome(True, 1) for _ in submissions]

    monkeypatch.setattr(store, "record", record)
    submission = Submission("ada", "1", Lesson("soup"))

    async def ask():
        errors = []
        asyncio.get_running_loop().set_exception_handler(lambda _, told: errors.append(told))
        journal = Journal(store, replace(settings, write_seconds=0.02))
        journal.start()
        with pytest.raises(StoreError, match="does not answer in time"):
            await journal.write(submission)
        journal._settings = settings
        waiting = [asyncio.create_task(journal.write(submission)) for _ in range(3)]
        await asyncio.sleep(0.01)
        held.set()
        assert [one.learned for one in await asyncio.gather(*waiting)] == [True] * 3
        await journal.close()
        return errors

    assert asyncio.run(ask()) == []
    assert batches == [1, 3]  # what waited was written together


def test_what_waits_at_the_end_is_written_and_nothing_runs_on(completer, settings, monkeypatch):
    """Neither the thread that writes nor the task that looks for the end of an outage."""
    monkeypatch.setattr(outages, "EVERY", 60.0)
    store, held, batches = Store(settings.database, completer), threading.Event(), []

    def record(submissions):
        batches.append(len(submissions))
        held.wait(30)
        return [Outcome(True, 1) for _ in submissions]

    def fail(user, version):
        raise StoreError("the disk is gone")

    monkeypatch.setattr(store, "record", record)
    monkeypatch.setattr(store, "read", fail)
    submission = Submission("ada", "1", Lesson("soup"))

    async def ask():
        journal = Journal(store, settings)
        journal.start()
        with pytest.raises(StoreError, match="the disk is gone"):
            await journal.read("ada", 0)
        assert len(asyncio.all_tasks()) == 2  # this one and that which waits for the disk
        waiting = [asyncio.create_task(journal.write(submission))]
        while not batches:
            await asyncio.sleep(0.001)
        waiting += [asyncio.create_task(journal.write(submission)) for _ in range(2)]
        await asyncio.sleep(0)
        closing = asyncio.create_task(journal.close())
        await asyncio.sleep(0.01)
        held.set()
        await asyncio.wait_for(asyncio.gather(closing, *waiting), 30)
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert not journal._writer.is_alive()

    asyncio.run(ask())
    assert batches == [1, 2]
