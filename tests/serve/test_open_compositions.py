"""Open compositions: their clock, their bounds, and requests that come twice or too late."""

import asyncio
import threading
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from sqlalchemy.exc import OperationalError

from telic.data.ubi import read_ubi
from telic.serve.operation.metrics import Seen
from telic.serve.state.composition_recorder import Recorder
from telic.serve.state.group_commit import Journal
from telic.serve.state.open_compositions import OpenCompositions
from telic.serve.state.store import DamagedStateError, Store, StoreError


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


class Box:
    """OpenCompositions with a journal, whose event loop runs while one of these is called."""

    def __init__(self, completer, settings, clock):
        self.loop = asyncio.new_event_loop()
        self.store = Store(settings.database, completer, max_history=settings.max_history)
        self.journal = Journal(self.store, settings)
        self.compositions = OpenCompositions(completer, self.journal, settings, clock=clock)
        self.loop.call_soon(self.journal.start)

    def run(self, *calls):
        async def all_of_them():
            return await asyncio.wait_for(asyncio.gather(*calls), 30)

        return self.loop.run_until_complete(all_of_them())

    async def type(self, query, user, composition, *, client=None):
        typing = await self.compositions.open(user, composition)
        return self.compositions.suggest(typing, query, client=client).suggestions()

    def suggest(self, *request, **options):
        return self.run(self.type(*request, **options))[0]

    def submit(self, *request):
        (outcome,) = self.run(self.compositions.submit(*request))
        return outcome.learned, outcome.updates

    def is_open(self, *key):
        return self.compositions.find(*key) is not None

    def __len__(self):
        return len(self.compositions)

    def close(self):
        self.run(self.journal.close())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()


@pytest.fixture
def make(completer, settings, clock):
    opened = []

    def made(served=completer, **changes):
        opened.append(Box(served, replace(settings, **changes), clock))
        return opened[-1]

    yield made
    for box in opened:
        box.close()


def directly(completer, keystrokes):
    """What the library itself suggests at the last of (prefix, at)."""
    return directly_of(completer, "u", keystrokes)


def directly_of(completer, user, keystrokes):
    composition = completer.compose(completer.user(user))
    return [composition.suggest(prefix, at=at) for prefix, at in keystrokes][-1]


def test_the_servers_clock_stamps_keystrokes(make, clock, completer):
    compositions = make()
    compositions.suggest("s", "u", "c")
    clock.now += 1.5
    assert compositions.suggest("sa", "u", "c") == directly(completer, [("s", 0.0), ("sa", 1.5)])


def test_the_clients_clock_frees_dwell_from_the_network(make, clock, completer):
    compositions = make()
    compositions.suggest("s", "u", "c", client=5000.0)
    clock.now += 9.0
    found = compositions.suggest("sa", "u", "c", client=5000.5)
    assert found == directly(completer, [("s", 0.0), ("sa", 0.5)])


def test_a_client_may_begin_to_tell_its_time_later(make, clock, completer):
    compositions = make()
    compositions.suggest("s", "u", "c")
    clock.now += 1.0
    compositions.suggest("sa", "u", "c", client=7.0)
    found = compositions.suggest("sal", "u", "c", client=7.5)
    assert found == directly(completer, [("s", 0.0), ("sa", 1.0), ("sal", 1.5)])


@pytest.mark.parametrize("jump", [1e5, 1e9, 1e12])
def test_a_clock_that_jumps_dates_nothing_beyond_an_idle_composition(make, tmp_path, jump):
    box = make(idle_seconds=600.0)
    box.compositions._recorder = recorder = Recorder(tmp_path / "log")
    recorder.start()
    (typing,) = box.run(box.compositions.open("u", "c", consent=True))
    box.compositions.suggest(typing, "s", client=0.0)
    box.compositions.suggest(typing, "so", client=jump)
    box.run(box.compositions.submit("soup", "u", "c"))
    recorder.close()
    row = read_ubi(tmp_path / "log")[0].to_pylist()[0]
    first, last = (stroke["at"] for stroke in row["keystrokes"])
    assert (last - first).total_seconds() == pytest.approx(600, abs=1)
    assert row["submitted_at"] >= last


def test_a_request_that_comes_twice_is_one_keystroke(make, completer):
    compositions = make()
    for client in (1.0, 1.0, 1.4):
        once = compositions.suggest("s", "u", "c", client=client)
    assert once == directly(completer, [("s", 0.0)])
    found = compositions.suggest("sa", "u", "c", client=2.0)
    assert found == directly(completer, [("s", 0.0), ("sa", 1.0)])


def test_a_request_that_was_overtaken_is_answered_but_is_no_keystroke(make, completer):
    compositions = make()
    compositions.suggest("s", "u", "c", client=1.0)
    compositions.suggest("sal", "u", "c", client=3.0)
    late = compositions.suggest("sa", "u", "c", client=2.0)
    assert [suggestion.feedback for suggestion in late] == [0.0] * len(late)
    found = compositions.suggest("sals", "u", "c", client=4.0)
    assert found == directly(completer, [("s", 0.0), ("sal", 2.0), ("sals", 3.0)])


def test_a_clock_that_runs_backwards_does_no_harm(make, clock, completer):
    compositions = make()
    compositions.suggest("s", "u", "c")
    clock.now -= 50.0
    found = compositions.suggest("sa", "u", "c")
    assert [suggestion.feedback for suggestion in found] == [0.0] * len(found)


requests = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from([0.0, 10.0, 35.0])), max_size=25
)


@examples(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(requests, st.integers(1, 4))
def test_the_longest_idle_makes_room_and_the_idle_expire(make, clock, requests, max_open):
    """Against the definition: of those touched within a minute, the last `max_open`."""
    compositions = make(max_open=max_open, idle_seconds=60.0)
    touched = {}
    for composition, pause in requests:
        clock.now += pause
        compositions.suggest("s", "u", composition)
        touched.pop(composition, None)
        touched = {name: at for name, at in touched.items() if clock.now - at <= 60.0}
        touched[composition] = clock.now
        touched = dict(list(touched.items())[-max_open:])
        assert len(compositions) == len(touched)
    everything = {name for name in "abcdef" if ("u", name) in compositions.compositions._open}
    assert everything == set(touched)


def test_an_idle_composition_is_not_open(make, clock):
    compositions = make(idle_seconds=60.0)
    compositions.suggest("s", "u", "a")
    clock.now += 60
    assert compositions.is_open("u", "a")
    clock.now += 61
    assert not compositions.is_open("u", "a")


def test_an_endless_composition_begins_anew_again_and_again(make, completer):
    compositions = make(max_keystrokes=2)
    typed = [(prefix, float(at)) for at, prefix in enumerate(["s", "sa", "sal", "sals", "salsi"])]
    found = [compositions.suggest(prefix, "u", "c", client=at) for prefix, at in typed]
    for first in (0, 2, 4):
        for last in range(first, min(first + 2, 5)):
            since = [(prefix, at - first) for prefix, at in typed[first : last + 1]]
            assert found[last] == directly(completer, since)


def test_compositions_of_a_user_share_what_was_learned(make):
    compositions = make()
    for composition in "ab":
        compositions.suggest("sa", "u", composition)
    assert compositions.submit("salad", "u", "a") == (True, 1)
    assert compositions.submit("sage", "u", "b") == (True, 2)
    assert not compositions.is_open("u", "a")


def test_threads_of_the_store_lose_no_submission(make):
    compositions = make(max_open=3)  # compositions close and reopen all the time

    async def search(i):
        await compositions.type("sa", f"u{i % 3}", f"c{i}", client=0.0)
        await compositions.type("sal", f"u{i % 3}", f"c{i}", client=0.5)
        await compositions.compositions.submit("salad", f"u{i % 3}", f"c{i}")

    compositions.run(*(search(i) for i in range(30)))
    assert [compositions.store.read(f"u{i}").state.history["salad"] for i in range(3)] == [10.0] * 3


class Gate:
    """Stands in for a call of the store, and lets nobody through before told to."""

    def __init__(self, monkeypatch, store, name):
        self.entered, self.leave, self.call = threading.Event(), threading.Event(), None
        self.call = getattr(store, name)
        monkeypatch.setattr(store, name, self)

    def __call__(self, *arguments):
        self.entered.set()
        assert self.leave.wait(30)
        return self.call(*arguments)


def test_a_slow_write_makes_nobody_else_wait(make, monkeypatch):
    """Not who types on, nor who begins, known or not; eight submissions wait for the disk."""
    compositions = make()
    for user in ("known", "busy"):
        compositions.suggest("s", user, "c")
    gate = Gate(monkeypatch, compositions.store, "record")

    async def others():
        writes = [
            asyncio.create_task(compositions.compositions.submit("soup", "busy", f"c{i}"))
            for i in range(8)
        ]
        await asyncio.to_thread(gate.entered.wait)
        found = [await compositions.type("sa", user, "d") for user in ("known", "busy", "new")]
        found.append(await compositions.type("sa", "busy", "c"))
        waiting = [task.done() for task in writes]
        gate.leave.set()
        await asyncio.gather(*writes)
        return found, waiting

    ((found, waiting),) = compositions.run(others())
    assert all(found)
    assert not any(waiting)


def test_a_known_user_does_not_wait_for_a_slow_read(make, monkeypatch, clock):
    compositions = make()
    compositions.suggest("s", "u", "c")
    clock.now += 60
    gate = Gate(monkeypatch, compositions.store, "read")
    assert compositions.suggest("s", "u", "d")
    assert compositions.is_open("u", "d")
    gate.leave.set()


def test_requests_that_come_together_open_a_composition_once(make, monkeypatch, completer):
    compositions = make()
    asked = []
    read = compositions.store.read
    monkeypatch.setattr(compositions.store, "read", lambda *key: asked.append(key) or read(*key))
    found = compositions.run(
        *(
            compositions.type(prefix, "u", "c", client=at)
            for prefix, at in (("s", 0.0), ("sa", 1.0))
        )
    )
    assert len(asked) == 1
    assert found[1] == directly(completer, [("s", 0.0), ("sa", 1.0)])


def test_what_another_process_wrote_is_seen_at_the_next_composition(make, clock):
    here, there = make(), make()
    for box in (here, there):
        before = [suggestion.text for suggestion in box.suggest("sa", "u", "a")]
    for i in range(3):
        there.submit("samosa", "u", f"c{i}")
    clock.now += 2.0
    here.suggest("sa", "u", "b")  # answered at once; what is newer comes after
    here.run(asyncio.sleep(0.1))
    assert here.compositions._users["u"].version == 3
    after = [suggestion.text for suggestion in here.suggest("sa", "u", "d")]
    assert after.index("samosa") < before.index("samosa")


def test_a_refused_submission_teaches_nothing_and_counts_once_when_sent_again(make, monkeypatch):
    compositions = make()
    for at, prefix in enumerate(["s", "sa"]):
        compositions.suggest(prefix, "u", "c", client=float(at))
    whole = compositions.store._record

    def no_disk(*arguments):
        whole(*arguments)
        raise OperationalError(None, None, Exception("disk I/O error"))

    monkeypatch.setattr(compositions.store, "_record", no_disk)
    for _ in range(2):
        with pytest.raises(StoreError, match="disk I/O error"):
            compositions.submit("salad", "u", "c")
    assert compositions.compositions._users["u"].state.updates == 0
    assert compositions.journal.problem == "disk I/O error"
    monkeypatch.undo()
    assert compositions.submit("salad", "u", "c") == (True, 1)  # the composition was kept
    assert compositions.submit("salad", "u", "c") == (True, 1)
    assert compositions.journal.problem is None
    assert compositions.store.read("u").state.history == {"salad": 1.0}


def test_a_submission_that_is_sent_twice_at_once_is_recorded_once(make, tmp_path):
    box = make()
    box.compositions._recorder = recorder = Recorder(tmp_path / "log")
    recorder.start()
    (typing,) = box.run(box.compositions.open("u", "c", consent=True))
    box.compositions.suggest(typing, "s")
    box.run(*(box.compositions.submit("soup", "u", "c") for _ in range(3)))
    recorder.close()
    (events,) = (tmp_path / "log").glob("events*")
    assert len(events.read_text().splitlines()) == 1


@pytest.fixture
def recorded(make, tmp_path):
    """A box that records, and a function that closes the records and reads them."""
    box = make()
    box.compositions._recorder = recorder = Recorder(tmp_path / "log")
    recorder.start()

    def read():
        recorder.close()
        return read_ubi(tmp_path / "log")[0].to_pylist()

    return box, read


async def type_and_consent(box, query, composition):
    typing = await box.compositions.open("u", composition, consent=True)
    return box.compositions.suggest(typing, query).texts()


def test_a_key_after_a_submission_begins_no_other_record_of_it(recorded):
    box, read = recorded

    async def resent():
        for query in ("s", "sa"):
            await type_and_consent(box, query, "c")
        await box.compositions.submit("salad", "u", "c")
        await type_and_consent(box, "sal", "c")
        await box.compositions.submit("salad", "u", "c")
        await type_and_consent(box, "s", "d")
        await box.compositions.submit("salad", "u", "d")

    box.run(resent())
    assert [len(row["keystrokes"]) for row in read()] == [2, 1]


def test_who_is_forgotten_leaves_nothing_of_what_was_submitted(recorded):
    box, _ = recorded
    box.run(type_and_consent(box, "s", "c"))
    box.submit("salad", "u", "c")
    assert list(box.compositions._ended) == [("u", "c")]
    box.compositions.bar("u")
    box.run(box.compositions.drop("u"))
    assert not box.compositions._ended


def test_a_key_that_comes_while_a_submission_is_stored_is_no_part_of_its_record(recorded):
    box, read = recorded

    async def racing():
        shown = await type_and_consent(box, "s", "c")
        sent = asyncio.create_task(box.compositions.submit(shown[1], "u", "c"))
        await asyncio.sleep(0)
        await type_and_consent(box, "sa", "c")
        await sent

    box.run(racing())
    (row,) = read()
    assert [key["prefix"] for key in row["keystrokes"]] == ["s"]
    assert row["selected"] == 2


def test_a_store_that_fails_makes_one_begin_with_what_is_known(
    make, monkeypatch, completer, caplog
):
    compositions = make()

    def gone(*key):
        raise StoreError("the server is gone")

    monkeypatch.setattr(compositions.store, "read", gone)
    for user in ("ada", "bob", "cy"):
        assert compositions.suggest("sa", user, "c") == directly_of(completer, user, [("sa", 0.0)])
    assert caplog.text.count("the server is gone") == 1  # and not for each
    monkeypatch.undo()
    monkeypatch.setattr("telic.serve.state.outages.EVERY", 0.0)
    for _ in range(200):
        if compositions.journal.problem is None:
            break
        compositions.run(asyncio.sleep(0.05))
    assert compositions.journal.problem is None


def test_a_user_whose_state_is_damaged_is_no_trouble_to_others(make, monkeypatch):
    compositions = make()
    record = compositions.store.record

    def damaged(submissions):
        if any(each.user == "u" for each in submissions):
            raise DamagedStateError("damaged")
        return record(submissions)

    monkeypatch.setattr(compositions.store, "record", damaged)
    gate = Gate(monkeypatch, compositions.store, "record")

    async def together():
        writes = [
            asyncio.create_task(compositions.compositions.submit("soup", user, "c"))
            for user in "xuv"
        ]
        await asyncio.to_thread(gate.entered.wait)
        await asyncio.sleep(0)
        gate.leave.set()
        return await asyncio.gather(*writes, return_exceptions=True)

    ((one, two, three),) = compositions.run(together())
    assert (one.updates, three.updates) == (0, 0)
    assert isinstance(two, DamagedStateError)
    assert compositions.journal.problem is None


def test_a_served_paper_model_is_the_librarys_over_restarts_in_order_of_submission(
    make, make_completer
):
    """Two compositions at a time, submitted the other way round; a new process for each pair."""
    printed = make_completer(
        protocol="paper", schedule="annealed", l2=0.5, keep_unlisted=True, do_no_harm=False
    )
    user = printed.user("u")
    for n, queries in enumerate([("sage", "sold out"), ("soup", "salad"), ("sold out", "sage")]):
        compositions = make(printed)
        typing = [printed.compose(user) for _ in queries]
        for at, prefix in enumerate(["s", "sa"]):
            for i, composition in enumerate(typing):
                found = compositions.suggest(prefix, "u", f"{n}-{i}", client=float(at + i))
                assert found == composition.suggest(prefix, at=float(at + i))
        for i in (1, 0):
            assert typing[i].submit(queries[i])
            assert compositions.submit(queries[i], "u", f"{n}-{i}") == (True, user.updates)
    assert compositions.store.read("u").state.as_json() == user.as_json()
    assert user.updates == 6


def test_what_the_running_check_saw_outlives_the_process(make, make_completer):
    """A user whom re-ranking harms is kept from it after a restart too, and from nobody else's."""
    completer = make_completer()

    def search(user, composition):
        compositions = make(completer)
        for at, prefix in enumerate(["salmon", "sa"]):
            found = compositions.suggest(prefix, user, composition, client=2.0 * at)
        compositions.submit("salmon", user, composition)  # what was shown, skipped, and wanted
        return [suggestion.feedback != 0 for suggestion in found]

    assert any(search("u", "a"))
    assert not any(search("u", "b"))
    assert any(search("v", "a"))


def test_users_at_hand_are_bounded_and_the_latest_stay(make):
    box = make(max_users=2, max_open=1)
    for user in "uvw":
        box.suggest("s", user, user)
    assert list(box.compositions._latest) == ["v", "w"]


@pytest.mark.parametrize(
    ("typed", "submitted", "seen"),
    [
        ("so", "soup", Seen(2, 1, 1, True)),
        ("so", "Soup", Seen(2, 1, 1, True)),
        ("sO", "Soup ", Seen(2, 1, 1, True)),
        ("SOUP", "soup", Seen(4, 1, 1, False)),
        ("soup", "soup", Seen(4, 1, 1, False)),  # typed to its end, though it was shown
        ("sa", "salad", Seen(2, 2, 8, True)),
        ("sa", "sake", Seen(2, 0, 8, False)),
        ("x", "y", Seen(1, 0, 0, False)),
    ],
)
def test_a_submission_says_what_was_typed_and_where_the_list_had_it(
    make, monkeypatch, typed, submitted, seen
):
    box, written = make(), []
    monkeypatch.setattr(
        box.store,
        "record",
        lambda batch, record=box.store.record: written.extend(batch) or record(batch),
    )
    box.suggest(typed, "u", "c")
    box.submit(submitted, "u", "c")
    box.submit(submitted, "u", "never typed")
    assert [each.seen for each in written] == [seen, None]
