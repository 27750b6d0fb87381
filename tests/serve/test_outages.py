"""Outages of the store: what is said, counted and tried again, of reading and of writing apart."""

import asyncio

import pytest

from telic.serve.operation.metrics import Metrics
from telic.serve.state import outages
from telic.serve.state.outages import Outages
from telic.serve.state.store import DamagedStateError, StoreError


def test_the_store_is_up_again_when_both_ways_work(monkeypatch, caplog):
    monkeypatch.setattr(outages, "EVERY", 0.0)
    metrics, works, tried = Metrics(), set(), []

    def up():
        return b"telic_store_up 1.0" in metrics.exposition()

    async def ask():
        async def probe(what):
            tried.append(what)
            if what not in works:
                raise StoreError("it is gone")

        store = Outages(
            {what: lambda what=what: probe(what) for what in ("read", "write")}, metrics
        )
        store.close()  # nothing is tried yet
        with pytest.raises(DamagedStateError), store.noticing("read"):
            raise DamagedStateError  # one user's state: no outage
        assert (store.problem, up()) == (None, True)
        for what, error, said in (
            ("read", StoreError("it is gone"), "it is gone"),
            ("read", StoreError("it is gone"), "it is gone"),
            ("write", TimeoutError(), "it does not answer in time"),
        ):
            store.refuse("write")
            with pytest.raises(StoreError, match=said), store.noticing(what):
                raise error
            assert (store.problem, up()) == ("it is gone", False)
            with pytest.raises(StoreError, match=said):
                store.refuse(what)
        (recovery,) = asyncio.all_tasks() - {asyncio.current_task()}
        works.add("read")
        tried.clear()
        while tried.count("write") < 2:  # by then reading was tried, too
            await asyncio.sleep(0)
        store.refuse("read")
        assert (store.problem, up()) == ("it is gone", False)
        works.add("write")
        await recovery
        assert (store.problem, up()) == (None, True)
        with pytest.raises(StoreError), store.noticing("read"):
            raise StoreError("it is gone")
        (again,) = asyncio.all_tasks() - {asyncio.current_task()}
        store.close()
        with pytest.raises(asyncio.CancelledError):
            await again

    asyncio.run(ask())
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "the store fails (read): it is gone",
        "the store fails (write): it does not answer in time",
        "the store works again (read)",
        "the store works again (write)",
        "the store fails (read): it is gone",
    ]
