"""Open compositions: their clock, their bounds, and requests that come twice or too late."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

import telic.serve.sessions
from telic.completion import Composition
from telic.serve.events import Events
from telic.serve.sessions import Sessions


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def make(completer, settings, clock):
    opened = []

    def made(served=completer, **changes):
        limited = replace(settings, **changes)
        opened.append(Events(limited.database, served))
        return Sessions(served, opened[-1], limited, clock=clock)

    yield made
    for events in opened:
        events.close()


def directly(completer, keystrokes):
    """What the library itself suggests at the last of (prefix, at)."""
    composition = completer.compose(completer.user("u"))
    return [composition.suggest(prefix, at=at) for prefix, at in keystrokes][-1]


def test_the_servers_clock_stamps_keystrokes(make, clock, completer):
    sessions = make()
    sessions.suggest("s", "u", "c")
    clock.now += 1.5
    assert sessions.suggest("sa", "u", "c") == directly(completer, [("s", 0.0), ("sa", 1.5)])


def test_the_clients_clock_frees_dwell_from_the_network(make, clock, completer):
    sessions = make()
    sessions.suggest("s", "u", "c", client=5000.0)
    clock.now += 9.0
    found = sessions.suggest("sa", "u", "c", client=5000.5)
    assert found == directly(completer, [("s", 0.0), ("sa", 0.5)])


def test_a_client_may_begin_to_tell_its_time_later(make, clock, completer):
    sessions = make()
    sessions.suggest("s", "u", "c")
    clock.now += 1.0
    sessions.suggest("sa", "u", "c", client=7.0)
    found = sessions.suggest("sal", "u", "c", client=7.5)
    assert found == directly(completer, [("s", 0.0), ("sa", 1.0), ("sal", 1.5)])


def test_a_request_that_comes_twice_is_one_keystroke(make, completer):
    sessions = make()
    for client in (1.0, 1.0, 1.4):
        once = sessions.suggest("s", "u", "c", client=client)
    assert once == directly(completer, [("s", 0.0)])
    found = sessions.suggest("sa", "u", "c", client=2.0)
    assert found == directly(completer, [("s", 0.0), ("sa", 1.0)])


def test_a_request_that_was_overtaken_is_answered_but_is_no_keystroke(make, completer):
    sessions = make()
    sessions.suggest("s", "u", "c", client=1.0)
    sessions.suggest("sal", "u", "c", client=3.0)
    late = sessions.suggest("sa", "u", "c", client=2.0)
    assert [suggestion.feedback for suggestion in late] == [0.0] * len(late)
    found = sessions.suggest("sals", "u", "c", client=4.0)
    assert found == directly(completer, [("s", 0.0), ("sal", 2.0), ("sals", 3.0)])


def test_a_clock_that_runs_backwards_does_no_harm(make, clock, completer):
    sessions = make()
    sessions.suggest("s", "u", "c")
    clock.now -= 50.0
    found = sessions.suggest("sa", "u", "c")
    assert [suggestion.feedback for suggestion in found] == [0.0] * len(found)


requests = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from([0.0, 10.0, 35.0])), max_size=25
)


@examples(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(requests, st.integers(1, 4))
def test_the_longest_idle_makes_room_and_the_idle_expire(make, clock, requests, max_open):
    """Against the definition: of those touched within a minute, the last `max_open`."""
    sessions = make(max_open=max_open, idle_seconds=60.0)
    touched = {}
    for composition, pause in requests:
        clock.now += pause
        sessions.suggest("s", "u", composition)
        touched.pop(composition, None)
        touched = {name: at for name, at in touched.items() if clock.now - at <= 60.0}
        touched[composition] = clock.now
        touched = dict(list(touched.items())[-max_open:])
        assert len(sessions) == len(touched)
    everything = {name for name in "abcdef" if ("u", name) in sessions._open}
    assert everything == set(touched)


def test_an_idle_composition_is_not_open(make, clock):
    sessions = make(idle_seconds=60.0)
    sessions.suggest("s", "u", "a")
    clock.now += 60
    assert sessions.is_open("u", "a")
    clock.now += 61
    assert not sessions.is_open("u", "a")


def test_an_endless_composition_begins_anew_again_and_again(make, completer):
    sessions = make(max_keystrokes=2)
    typed = [(prefix, float(at)) for at, prefix in enumerate(["s", "sa", "sal", "sals", "salsi"])]
    found = [sessions.suggest(prefix, "u", "c", client=at) for prefix, at in typed]
    for first in (0, 2, 4):
        for last in range(first, min(first + 2, 5)):
            since = [(prefix, at - first) for prefix, at in typed[first : last + 1]]
            assert found[last] == directly(completer, since)


def test_compositions_of_a_user_share_what_was_learned(make):
    sessions = make()
    for composition in "ab":
        sessions.suggest("sa", "u", composition)
    assert sessions.submit("salad", "u", "a") == (True, 1)
    assert sessions.submit("sage", "u", "b") == (True, 2)
    assert not sessions.is_open("u", "a")


def test_a_history_forgets_what_was_submitted_longest_ago(make, completer, settings):
    sessions = make(max_history=2)
    for i, query in enumerate(["soup", "sage", "soup", "salad"]):
        sessions.submit(query, "u", f"c{i}")
    events = Events(settings.database, completer)
    assert events.state("u").history == {"soup": 2.0, "salad": 1.0}
    events.close()


class Turnstile:
    """Stands in for `Composition.suggest`, and lets nobody out before told to."""

    def __init__(self, monkeypatch):
        self.inside, self.entered, self.leave = 0, threading.Semaphore(0), threading.Event()
        monkeypatch.setattr(Composition, "suggest", self.suggest)

    def suggest(self, *arguments, **options):
        self.inside += 1
        self.entered.release()
        assert self.leave.wait(30)
        self.inside -= 1
        return []


@pytest.mark.parametrize("second", ["suggest", "another composition", "submit"])
def test_one_request_at_a_time_works_on_a_users_state(make, monkeypatch, second):
    sessions = make()
    for composition in "cd":
        sessions.suggest("s", "u", composition, client=0.0)
    turnstile = Turnstile(monkeypatch)
    learned = []
    monkeypatch.setattr(
        Composition, "submit", lambda self, query: learned.append(turnstile.inside) or True
    )
    monkeypatch.setattr(telic.serve.sessions, "_forget_oldest", lambda *state: None)
    calls = {
        "suggest": lambda: sessions.suggest("sal", "u", "c", client=2.0),
        "another composition": lambda: sessions.suggest("sal", "u", "d", client=2.0),
        "submit": lambda: sessions.submit("salad", "u", "c"),
    }
    with ThreadPoolExecutor(2) as pool:
        pool.submit(sessions.suggest, "sa", "u", "c", client=1.0)
        assert turnstile.entered.acquire(timeout=30)
        waiting = pool.submit(calls[second])
        assert not turnstile.entered.acquire(timeout=0.2)
        assert not learned
        turnstile.leave.set()
        waiting.result(30)
    assert learned == [0] * (second == "submit")


def test_users_do_not_wait_for_each_other(make, monkeypatch):
    sessions = make()
    for user in "uv":
        sessions.suggest("s", user, "c", client=0.0)
    turnstile = Turnstile(monkeypatch)
    with ThreadPoolExecutor(2) as pool:
        for user in "uv":
            pool.submit(sessions.suggest, "sa", user, "c", client=1.0)
        assert turnstile.entered.acquire(timeout=30)
        assert turnstile.entered.acquire(timeout=30)
        turnstile.leave.set()


def test_threads_lose_no_submission(make, completer, settings):
    sessions = make(max_open=3)  # compositions close and reopen all the time

    def search(i):
        sessions.suggest("sa", f"u{i % 3}", f"c{i}", client=0.0)
        sessions.suggest("sal", f"u{i % 3}", f"c{i}", client=0.5)
        sessions.submit("salad", f"u{i % 3}", f"c{i}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(search, range(30)))
    events = Events(settings.database, completer)
    assert [events.state(f"u{i}").history["salad"] for i in range(3)] == [10.0] * 3
    events.close()


def test_a_served_paper_model_is_the_librarys_over_restarts_in_order_of_submission(
    make, make_completer, settings
):
    """Two compositions at a time, submitted the other way round; a new process for each pair."""
    printed = make_completer(
        protocol="paper", schedule="annealed", l2=0.5, keep_unlisted=True, do_no_harm=False
    )
    user = printed.user("u")
    for n, queries in enumerate([("sage", "sold out"), ("soup", "salad"), ("sold out", "sage")]):
        sessions = make(printed)
        typing = [printed.compose(user) for _ in queries]
        for at, prefix in enumerate(["s", "sa"]):
            for i, composition in enumerate(typing):
                found = sessions.suggest(prefix, "u", f"{n}-{i}", client=float(at + i))
                assert found == composition.suggest(prefix, at=float(at + i))
        for i in (1, 0):
            assert typing[i].submit(queries[i])
            assert sessions.submit(queries[i], "u", f"{n}-{i}") == (True, user.updates)
    events = Events(settings.database, printed)
    assert events.state("u").as_json() == user.as_json()
    assert user.updates == 6
    events.close()


def test_what_the_running_check_saw_outlives_the_process(make, make_completer):
    """A user whom re-ranking harms is kept from it after a restart too, and from nobody else's."""
    completer = make_completer()

    def search(user, composition):
        sessions = make(completer)
        for at, prefix in enumerate(["salmon", "sa"]):
            found = sessions.suggest(prefix, user, composition, client=2.0 * at)
        sessions.submit("salmon", user, composition)  # what was shown, skipped, and wanted
        return [suggestion.feedback != 0 for suggestion in found]

    assert any(search("u", "a"))
    assert not any(search("u", "b"))
    assert any(search("v", "a"))
