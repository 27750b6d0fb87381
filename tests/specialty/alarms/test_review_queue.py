import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from tests.serve import postgresql_server

from telic.errors import InputError
from telic.simulate.hospital_families import simulate_family
from telic.specialty.alarms import review_queue
from telic.specialty.alarms.colleagues import care_of
from telic.specialty.alarms.explained_alarms import judge
from telic.specialty.alarms.review_queue import MOVES, STATES, ReviewQueue
from telic.specialty.discovery.result import Discovery


@pytest.fixture(scope="module")
def log():
    return simulate_family("wards", 0).log


@pytest.fixture(scope="module")
def nothing(log):
    return Discovery("residuals", [], np.full(len(log.users), -1))


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/review.sqlite"
        return
    if postgresql_server.programs() is None:
        pytest.skip("no PostgreSQL server here: apt-get install postgresql")
    with postgresql_server.running() as server:
        yield server.url


@pytest.fixture
def queue(url):
    queue = ReviewQueue(url)
    yield queue
    queue.close()


def test_runs_bring_alarms_and_people_have_the_last_word(log, nothing, queue, url):
    before = judge(log, nothing)
    now = judge(log, nothing, care=care_of(log, nothing))
    soon_explained = np.flatnonzero(now.explained)[:6]
    raised = np.zeros(len(log.access_user), dtype=bool)
    raised[soon_explained] = True
    first = replace(before, declared=np.where(raised, 0.5, 2.0), practised=np.where(raised, 0.5, 2))
    second = replace(first, colleagues=now.colleagues)
    assert queue.add(log, nothing, first, name="monday", limit=10) == (6, 0, 0, 0)
    assert queue.add(log, nothing, first, name="monday", limit=10) == (0, 0, 6, 0)
    one, two = (alarm["alarm"] for alarm in queue.alarms(limit=2))
    queue.move(one, "confirmed", by="ann", note="no reason was given")
    # The same accesses in another file, whose rows are numbered otherwise.
    again = replace(log, access_row=log.access_row + 100)
    assert queue.add(again, nothing, second, name="tuesday", limit=10) == (0, 5, 1, 0)
    assert queue.counts() == {"open": 0, "explained": 5, "confirmed": 1, "closed": 0}
    assert queue.add(again, nothing, first, name="monday", limit=10) == (0, 5, 1, 0)
    queue.move(two, "closed", by="bob")
    queue.close()
    queue = ReviewQueue(url)  # everything is on disk, and ids stay
    assert queue.add(again, nothing, first, name="monday", limit=10) == (0, 0, 6, 0)
    (confirmed,) = queue.alarms(state="confirmed")
    assert confirmed["alarm"] == one
    assert [(step["state"], step["by"]) for step in confirmed["history"]] == [
        ("open", "telic"),
        ("confirmed", "ann"),
    ]
    assert confirmed["history"][1]["note"] == "no reason was given"
    (closed,) = queue.alarms(state="closed")
    assert [step["state"] for step in closed["history"]] == ["open", "explained", "open", "closed"]
    assert closed["row"] in log.access_row[soon_explained] + 100
    names = set(log.users)
    assert not any(alarm["user"] in names for alarm in queue.alarms(limit=10))
    queue.close()


def test_what_people_decide_while_a_log_comes_in_stays_decided(
    log, nothing, queue, url, monkeypatch
):
    alerts = judge(log, nothing)
    queue.add(log, nothing, alerts, name="monday", limit=10)
    one = queue.alarms(limit=1)[0]["alarm"]
    person, described = ReviewQueue(url), review_queue.lines

    def slowly(*given, **options):
        found = described(*given, **options)
        person.move(one, "confirmed", by="ann")  # also where SQLite has one file for all
        return found

    monkeypatch.setattr(review_queue, "lines", slowly)
    assert queue.add(log, nothing, alerts, name="tuesday", limit=10).new <= 1
    (confirmed,) = queue.alarms(state="confirmed")
    assert (confirmed["alarm"], confirmed["decided"], confirmed["log"]) == (one, True, "tuesday")
    monkeypatch.undo()
    queue.add(log, nothing, alerts, name="monday", limit=10)
    assert [step["by"] for step in queue.alarms(state="confirmed")[0]["history"]] == [
        "telic",
        "ann",
    ]
    person.close()


def test_nobody_decides_between_what_add_reads_and_writes(log, nothing, queue, url, monkeypatch):
    alerts = judge(log, nothing)
    queue.add(log, nothing, alerts, name="monday", limit=10)
    one = queue.alarms(limit=1)[0]["alarm"]
    person, read = ReviewQueue(url), review_queue._there
    deciding = threading.Thread(target=partial(person.move, one, "confirmed", by="ann"))

    def slowly(connection, *, locked=False):
        found = read(connection, locked=locked)
        if locked:
            deciding.start()
            time.sleep(0.3)  # it would be done by now if nothing held it
        return found

    monkeypatch.setattr(review_queue, "_there", slowly)
    queue.add(log, nothing, alerts, name="tuesday", limit=10)
    deciding.join()
    (confirmed,) = queue.alarms(state="confirmed")
    assert (confirmed["alarm"], confirmed["decided"]) == (one, True)
    person.close()


def test_of_two_who_decide_at_once_the_second_moves_from_where_the_first_left_it(
    log, nothing, queue, url
):
    queue.add(log, nothing, judge(log, nothing), name="log", limit=20)
    people = queue, ReviewQueue(url)
    for one in queue.alarms(limit=20):
        ready = threading.Barrier(2)

        def decide(person, state, alarm=one["alarm"], ready=ready):
            ready.wait()
            with suppress(InputError):  # the second may be refused
                person.move(alarm, state, by=state)

        with ThreadPoolExecutor(2) as pool:
            for done in [
                pool.submit(decide, *each)
                for each in zip(people, ("closed", "confirmed"), strict=True)
            ]:
                done.result()
    for alarm in queue.alarms(limit=20):
        states = [step["state"] for step in alarm["history"]]
        assert len(states) > 1
        assert all(after in MOVES[before] for before, after in pairwise(states)), states
        assert states[-1] == alarm["state"]
    people[1].close()


def test_a_queue_is_read_while_somebody_writes(log, nothing, tmp_path):
    url = f"sqlite:///{tmp_path}/review.sqlite"
    queue = ReviewQueue(url)
    queue.add(log, nothing, judge(log, nothing), name="log", limit=1)
    with queue._transaction(writes=True) as connection:
        connection.exec_driver_sql("DELETE FROM review_alarms")
        other = ReviewQueue(url)
        assert other.counts()["open"] == len(other.alarms()) == 1
        other.close()
    queue.close()


def test_alarms_are_listed_in_the_order_of_the_queue(log, nothing, queue, url):
    alerts = judge(log, nothing, care=care_of(log, nothing))
    assert alerts.standing is not None
    queue.add(log, nothing, alerts, name="monday", limit=50)
    first = log.access_row[alerts.queue("open")[:50]]
    listed = [alarm["row"] for alarm in queue.alarms(limit=50)]
    place = dict(zip(log.access_row, alerts.place, strict=True))
    assert set(listed) == set(first)
    assert [place[row] for row in listed] == sorted(place[row] for row in first)
    with queue._transaction() as connection:  # as an older version left it
        connection.exec_driver_sql("ALTER TABLE review_alarms DROP COLUMN place")
    queue.close()
    queue = ReviewQueue(url)
    lifts = [alarm["lift"] for alarm in queue.alarms(limit=50)]
    assert lifts == sorted(lifts)
    assert queue.add(log, nothing, alerts, name="monday", limit=50) == (
        0,
        0,
        50,
        queue_left(alerts),
    )
    assert [alarm["row"] for alarm in queue.alarms(limit=50)] == listed
    queue.close()


def queue_left(alerts):
    """Open alarms beyond the first fifty."""
    return len(alerts.queue("open")) - 50


def test_decided_alarms_make_room_for_the_next(log, nothing, tmp_path):
    alerts = judge(log, nothing)
    some = np.unique(alerts.queue("open")[:40])[:6]
    declared = np.full(len(log.access_user), 2.0)
    declared[some] = np.linspace(0.1, 0.6, len(some))
    alerts = replace(alerts, declared=declared, practised=declared)
    queue = ReviewQueue(f"sqlite:///{tmp_path}/review.sqlite")

    def add():
        return queue.add(log, nothing, alerts, name="monday", limit=2)

    assert add() == (2, 0, 0, 4)
    assert add() == (0, 0, 2, 4)
    for alarm in queue.alarms(state="open"):
        queue.move(alarm["alarm"], "closed", by="ann")
    assert add() == (2, 0, 2, 2)
    assert queue.counts() == {"open": 2, "explained": 0, "confirmed": 0, "closed": 2}
    assert queue.add(log, nothing, alerts, name="monday", limit=1) == (0, 0, 4, 2)
    assert [alarm["lift"] for alarm in queue.alarms(state="open")] == pytest.approx([0.3, 0.4])
    queue.close()


def test_an_access_is_looked_up_where_the_log_has_it_now(log, nothing, tmp_path):
    queue = ReviewQueue(f"sqlite:///{tmp_path}/review.sqlite")
    alerts = judge(log, nothing)
    queue.add(log, nothing, alerts, name="export", limit=3)
    decided, *_ = before = queue.alarms()
    for begun, said in (
        ("%%%%", "holds no alarm '%%%%'"),
        ("", "'': give at least 4 characters"),
        (decided["alarm"][:3] + "…", "give at least 4 characters"),
        ("xyzw…", "holds no alarm 'xyzw…'"),
    ):
        with pytest.raises(InputError, match=said):
            queue.move(begun, "closed", by="ann")
    assert queue.move(decided["alarm"][:8] + "…", "closed", by="ann") == decided["alarm"]
    # The export has grown: its newest rows stand first.
    grown = replace(log, access_row=log.access_row + 1000)
    assert queue.add(grown, nothing, alerts, name="export", limit=2)[:3] == (0, 0, 3)
    now = queue.alarms()
    assert [one["row"] for one in now] == [one["row"] + 1000 for one in before]
    assert [one["state"] for one in now] == ["closed", "open", "open"]
    assert [len(one["history"]) for one in now] == [2, 1, 1]
    queue.close()


def test_what_raises_no_alarm_any_longer_is_explained(log, nothing, tmp_path):
    queue = ReviewQueue(f"sqlite:///{tmp_path}/review.sqlite")
    raised = np.zeros(len(log.access_user), dtype=bool)
    raised[:4] = True
    before = replace(
        judge(log, nothing), declared=np.where(raised, 0.5, 2.0), practised=np.where(raised, 0.5, 2)
    )
    assert queue.add(log, nothing, before, name="log", limit=10) == (4, 0, 0, 0)
    one, *_ = (alarm["alarm"] for alarm in queue.alarms())
    queue.move(one, "confirmed", by="ann")
    now = replace(before, declared=np.full(len(raised), 2.0))  # everybody declares a code by now
    assert queue.add(log, nothing, now, name="log", limit=10) == (0, 3, 1, 0)
    assert queue.counts() == {"open": 0, "explained": 3, "confirmed": 1, "closed": 0}
    because = {alarm["because"] for alarm in queue.alarms(state="explained")}
    assert because == {"the declared specialty covers a diagnosis"}
    assert queue.add(log, nothing, before, name="log", limit=10) == (0, 3, 1, 0)  # open again
    queue.close()


def test_only_moves_that_make_sense_are_taken(log, nothing, tmp_path):
    queue = ReviewQueue(f"sqlite:///{tmp_path}/review.sqlite")
    queue.add(log, nothing, judge(log, nothing), name="log", limit=1)
    (alarm,) = (one["alarm"] for one in queue.alarms())
    path = {
        "open": (),
        "explained": ("explained",),
        "confirmed": ("confirmed",),
        "closed": ("closed",),
    }
    assert set(MOVES) == set(STATES) == set(path)
    for state, moves in MOVES.items():
        for wanted in STATES:
            if state != "open":
                queue.move(alarm, state, by="ann")
            if wanted in moves:
                queue.move(alarm, wanted, by="ann")
            else:
                with pytest.raises(InputError, match="cannot become"):
                    queue.move(alarm, wanted, by="ann")
            (now,) = queue.alarms()
            assert now["state"] == (wanted if wanted in moves else state)
            if now["state"] != "open":
                queue.move(alarm, "open", by="ann")
    queue.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda queue, one: queue.move("none", "closed", by="ann"), "holds no alarm 'none'"),
        (lambda queue, one: queue.move(one, "done", by="ann"), "state is 'done'"),
        (lambda queue, one: queue.move(one, "closed", by=" "), "needs the name of the person"),
        (lambda queue, one: queue.move(one, "closed", by="telic"), "needs the name of the person"),
        (lambda queue, one: queue.move(one, "closed", by="Telic "), "needs the name of the person"),
        (lambda queue, one: queue.alarms(state="done"), "state is 'done'"),
    ],
)
def test_wrong_wishes_are_said_and_change_nothing(log, nothing, tmp_path, change, message):
    queue = ReviewQueue(f"sqlite:///{tmp_path}/review.sqlite")
    queue.add(log, nothing, judge(log, nothing), name="log", limit=1)
    before = queue.alarms()
    with pytest.raises(InputError, match=message):
        change(queue, before[0]["alarm"])
    assert queue.alarms() == before
    queue.close()


def test_a_database_that_fails_says_so_in_one_line_and_quotes_nothing(tmp_path):
    file = tmp_path / "review.sqlite"
    queue = ReviewQueue(f"sqlite:///{file}")
    file.unlink()
    with pytest.raises(InputError, match="the database failed") as error:
        queue.counts()
    assert "\n" not in str(error.value)
    queue.close()
