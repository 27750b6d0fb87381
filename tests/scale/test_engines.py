"""All engines keep one contract; faults end in the same result or in a clear error."""

import errno
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import distributed
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from tests.scale import functions
from tests.scale.cluster import Cluster, wait_for

import telic
from telic.errors import InputError, JobError
from telic.optim.losses import Logistic, Squared
from telic.scale import (
    Dask,
    Local,
    cluster_check,
    dask_cluster,
    memory,
    parse_memory,
    ranges,
    row_ranges,
)
from telic.scale.arrays import fold, store_arrays
from telic.scale.failures import Lost, LostWorker, failure
from telic.scale.job_folder import hidden, identity, placed
from telic.scale.job_report import JobReport, TaskReport
from telic.scale.memory import of_task
from telic.scale.retries import arrivals
from telic.scale.tasks import Done, Task, attempt


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_map_keeps_the_order_and_reports_each_partition(engine):
    found = engine.map(functions.double, [3, 1, 2])
    assert found.values == [6, 2, 4]
    assert [task.attempts for task in found.report.tasks] == [1, 1, 1]
    assert found.report.facts()["attempts"] == 3
    assert not found.report.skipped


def test_a_poisoned_partition_is_named_and_the_job_goes_on_from_what_is_finished(engine, tmp_path):
    out = tmp_path / "job"
    with pytest.raises(JobError, match=r"partition 2 \(3\): ValueError: three is no number.*kept"):
        engine.map(functions.fail_on_three, [1, 2, 3, 4, 5], out=out)
    end = time.monotonic() + 10  # a task that a worker has begun goes on to its end
    while any(name.startswith(".") for name in files(out)) and time.monotonic() < end:
        time.sleep(0.02)
    assert all(not name.startswith(".") for name in files(out)), "a half-written file"
    assert "part-00002" not in files(out)
    found = engine.map(functions.fail_on_three, [1, 2, 3, 4, 5], out=out, skip_bad=True)
    assert [path and path.read_text() for path in found.values] == ["2", "4", None, "8", "10"]
    assert found.report.skipped == {"2 (3)": "ValueError: three is no number"}
    assert found.report.facts()["kept from an earlier run"] >= 1


def test_storage_that_fails_for_a_moment_is_tried_again(engine, tmp_path):
    found = engine.map(functions.storage_fails_once, [(tmp_path / "tried", 7)])
    assert found.values == [7]
    assert found.report.tasks[0].attempts == 2


@pytest.mark.parametrize(
    ("function", "said"),
    [(functions.out_of_memory, "smaller pieces"), (functions.disk_is_full, "disk is full")],
)
def test_what_no_second_attempt_mends_is_not_tried_again(function, said, engine, tmp_path):
    out = tmp_path / "job" if function is functions.disk_is_full else None
    with pytest.raises(JobError, match=rf"partition 0 \(1\): .*{said}"):
        engine.map(function, [1], out=out)
    assert out is None or files(out) == ["job.json"]


class Unsendable:
    """A partition that is not pickled here, or not unpickled elsewhere."""

    def __init__(self, *instead):
        self.instead = instead

    def __reduce__(self):
        if not self.instead:
            raise ValueError("no copies")
        return self.instead


@pytest.mark.parametrize(
    ("partition", "said"),
    [
        (threading.Lock(), "TypeError: cannot pickle '_thread.lock' object"),
        (Unsendable(), "ValueError: no copies"),
        (Unsendable(int, ("one",)), "ValueError: invalid literal for int.*"),
    ],
)
def test_what_cannot_be_sent_is_named_and_the_others_are_finished(cluster, partition, said):
    with Dask(cluster.address) as dask:
        with pytest.raises(JobError, match=rf"partition 1 .* cannot be sent \({said}\)\. It must"):
            dask.map(functions.double, [1, partition, 3])
        found = dask.map(functions.double, [1, partition, 3], skip_bad=True)
        assert found.values == [2, None, 6]
        assert len(found.report.skipped) == 1
        (only,) = dask.map(functions.double, [partition], skip_bad=True).values
        assert only is None


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("recursion", r"RecursionError: maximum recursion depth exceeded[^.]*"),
        ("lock", r"ValueError: \('a lock', <unlocked .*>\)"),
        ("two", "TakesTwo: no data at the end"),
        ("more", "AddsWords: no data at the end"),
        ("cancelled", "CancelledError"),
        ("late", "TimeoutError: the storage is slow"),
        ("exit", "SystemExit: 3"),
    ],
)
def test_an_error_that_travels_badly_is_said_and_ends_no_worker(how, said, engine):
    with pytest.raises(JobError, match=rf"partition 0 \({how}\): {said}\. 0 of 1") as ended:
        engine.map(functions.raise_what_travels_badly, [how])
    assert "raise_what_travels_badly" in "".join(traceback.format_exception(ended.value.__cause__))
    found = engine.map(functions.double, [1, 2])
    assert [task.attempts for task in found.report.tasks] == [1, 1]


def test_a_folder_belongs_to_one_job(tmp_path):
    Local().map(functions.write_double, [1, 2], out=tmp_path / "job")
    for function, partitions in ((functions.write_double, [1, 3]), (functions.wait_for_go, [1, 2])):
        with pytest.raises(InputError, match="holds results of another job"):
            Local().map(function, partitions, out=tmp_path / "job")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    with pytest.raises(InputError, match="holds other files"):
        Local().map(functions.write_double, [1], out=tmp_path / "mine")


@given(st.integers(1, 40), st.integers(0, 3), st.randoms())
def test_the_tree_depends_neither_on_the_order_nor_on_groups_of_a_power_of_two(size, power, chance):
    def joined(one, other):
        return f"({one}{other})"

    leaves = [(i, str(i)) for i in range(size)]
    whole = fold(leaves, joined, size)
    shuffled = leaves.copy()
    random.Random(chance.random()).shuffle(shuffled)
    assert fold(shuffled, joined, size) == whole
    groups = ranges(size, 2**power)
    partial = [
        (g, fold([(i - a, str(i)) for i in range(a, b)], joined, b - a))
        for g, (a, b) in enumerate(groups)
    ]
    assert fold(partial, joined, len(groups)) == whole


@given(st.lists(st.booleans(), min_size=1, max_size=20), st.randoms())
def test_what_was_skipped_is_left_out_of_the_tree(there, chance):
    def joined(one, other):
        return f"({one}{other})"

    def tree(values):
        """Pair neighbours until one is left; who has no partner waits."""
        while len(values) > 1:
            pairs = [values[i : i + 2] for i in range(0, len(values), 2)]
            some = [[value for value in pair if value is not None] for pair in pairs]
            values = [joined(*one) if len(one) == 2 else one[0] if one else None for one in some]
        return values[0]

    leaves = [(i, str(i) if here else None) for i, here in enumerate(there)]
    expected = tree([value for _, value in leaves])
    chance.shuffle(leaves)
    assert fold(leaves, joined, len(leaves)) == expected


def test_a_tree_is_the_same_to_the_bit_on_every_engine_and_goes_on(engine, tmp_path):
    blocks = [np.random.default_rng(i).normal(size=50) for i in range(7)]
    expected = fold(((i, functions.sums(b)) for i, b in enumerate(blocks)), functions.add, 7)
    for run in ("first", "second"):
        found, report = engine.tree_reduce(
            functions.sums, functions.add, blocks, out=tmp_path / "sums"
        )
        assert found["sum"].tobytes() == expected["sum"].tobytes()
        assert report.facts()["kept from an earlier run"] == (7 if run == "second" else 0)


def test_rounds_go_on_after_the_last_whole_one(engine, tmp_path):
    shards = [tmp_path / "a", tmp_path / "four"]
    for shard in shards:
        shard.mkdir()

    def run(name, max_rounds=20):
        start = {"x": np.array(0.0), "rounds": np.array(0)}
        return engine.rounds(
            functions.newton_step, functions.newton_combine, [str(s) for s in shards], start,
            out=tmp_path / name, max_rounds=max_rounds,
        )  # fmt: skip

    whole, rounds = run("whole")
    assert rounds == 6
    assert float(whole["x"]) == 2.5 * (1 - 0.5**6)
    (shards[1] / "fail").touch()
    with pytest.raises(JobError, match=r"shard 1.*told to fail"):
        run("broken")
    (shards[1] / "fail").unlink()
    again, rounds = run("broken")
    assert rounds == 6
    assert again["x"].tobytes() == whole["x"].tobytes()
    assert not any("round-00004" in path.name for path in (tmp_path / "whole").iterdir())


def test_rounds_go_on_whatever_their_arrays_are_called(tmp_path):
    def step(shard, state, shared, number):
        return shared, {"over": np.array(shard)}

    def combine(shared, messages):
        return {"over": shared["over"] + sum(each["over"] for each in messages)}, False

    for rounds in (2, 5, 3, 6):  # fewer than before: those of that round
        found, done = Local(threads=1).rounds(
            step, combine, [1, 2], {"over": np.array(0)}, out=tmp_path / "job", max_rounds=rounds
        )
        assert (int(found["over"]), done) == (3 * rounds, rounds)


def test_ranges_of_no_size_are_refused():
    for step in (0, -1):
        with pytest.raises(InputError, match=f"step is {step}"):
            ranges(5, step)


@pytest.mark.parametrize("threads", [0, 1025, "two", 1.5])
def test_threads_that_cannot_be_are_refused(threads):
    with pytest.raises(InputError, match=f"threads is {threads!r}, expected 1 to 1024"):
        Local(threads=threads)


def test_a_client_of_ones_own_stays_open(cluster):
    own = cluster.ready()
    with Dask(client=own) as dask:
        assert dask.slots == 2
    assert own.status == "running"
    own.close()
    with Dask(cluster.address) as dask:
        made = dask._client
    assert made.status == "closed"


def test_a_killed_worker_changes_nothing_but_the_ledger(cluster, tmp_path):
    partitions = [(tmp_path, number) for number in range(4)]
    with Dask(cluster.address) as dask:
        victim = cluster.workers[0]

        def kill():
            wait_for(lambda: list(tmp_path.glob(f"begun-*-{victim.pid}")), "the victim's task")
            os.kill(victim.pid, signal.SIGKILL)
            victim.wait()
            (tmp_path / "go").touch()

        killer = threading.Thread(target=kill)
        killer.start()
        found = dask.map(functions.wait_for_go, partitions, out=tmp_path / "job")
        killer.join()
    assert [path.read_text() for path in found.values] == ["0", "1", "2", "3"]
    (twice,) = [task for task in found.report.tasks if task.attempts > 1]
    assert str(victim.pid) in twice.where[0]
    assert str(victim.pid) not in twice.where[1]
    cluster.workers[0] = cluster.add_worker()
    cluster.ready(2).close()


def test_a_result_that_dies_with_its_worker_before_it_is_fetched_is_made_again(
    cluster, monkeypatch
):
    wait = distributed.wait
    monkeypatch.setattr(
        distributed, "wait", lambda futures, seconds, when: wait(futures, 60, "ALL_COMPLETED")
    )
    tasks = [Task(number, f"task {number}", None, 2**30) for number in range(2)]
    with Dask(cluster.address) as dask:
        outcomes = dask.outcomes("job", functions.double, tasks)
        first, outcome = next(outcomes)
        assert outcome.value == 2 * first
        monkeypatch.setattr(distributed, "wait", wait)
        (where,) = {where for task, where in dask.begun("job") if task == f"task {1 - first}"}
        (victim,) = [worker for worker in cluster.workers if f"pid {worker.pid})" in where]
        victim.kill()
        victim.wait()
        wait_for(lambda: dask.slots == 1, "the scheduler's word of the victim")
        ((second, outcome),) = outcomes
    assert (second, outcome.value) == (1 - first, 2 * (1 - first))
    cluster.workers.remove(victim)
    cluster.workers.append(cluster.add_worker())
    cluster.ready(2).close()


def test_a_result_that_never_comes_is_waited_for_as_long_as_a_worker_is():
    class Future:
        def result(self, timeout):
            raise TimeoutError(f"after {timeout} seconds")

    outcome = dask_cluster._outcome(Future(), 3.0)
    assert isinstance(outcome, Lost)
    assert "3 seconds" in str(outcome)


@pytest.mark.slow
def test_a_partition_that_kills_its_workers_is_named_and_the_rest_is_finished(cluster):
    cluster.workers += [cluster.add_worker() for _ in range(2)]
    cluster.ready(4).close()
    with Dask(cluster.address) as dask:
        found = dask.map(functions.kill_on_three, [1, 2, 3, 4, 5, 6], skip_bad=True)
    assert found.values == [2, 4, None, 8, 10, 12]
    ((name, why),) = found.report.skipped.items()
    assert name == "2 (3)"
    assert "every worker that began it died" in why
    cluster.workers = [worker for worker in cluster.workers if worker.poll() is None]
    while len(cluster.workers) < 2:
        cluster.workers.append(cluster.add_worker())
    cluster.ready(2).close()


def test_workers_of_ray_that_die(ray, tmp_path):
    found = ray.map(functions.kill_once, [(tmp_path / "killed", n) for n in (1, 2, 3, 4)])
    assert found.values == [2, 4, 6, 8]
    assert [task.attempts for task in found.report.tasks] == [1, 1, 2, 1]
    found = ray.map(functions.kill_on_three, [1, 2, 3, 4], skip_bad=True)
    assert found.values == [2, 4, None, 8]
    ((name, why),) = found.report.skipped.items()
    assert name == "2 (3)"
    assert "every worker that began it died" in why


def test_a_worker_with_another_version_is_refused(cluster, tmp_path):
    old = tmp_path / "old_telic.py"
    old.write_text("import telic\n\ntelic.__version__ = '0.0.9'\n")
    with Dask(cluster.address) as before:
        there = before.slots
        stranger = cluster.add_worker(str(old))
        wait_for(lambda: before.slots > there, "the stranger")
        with pytest.raises(InputError, match=r"has telic 0\.0\.9, this process has"):
            Dask(cluster.address)
        # One that comes while a job runs says so itself.
        with pytest.raises(JobError, match=r"this worker has 0\.0\.9"):
            before.map(functions.double, range(200))
        stranger.kill()
        stranger.wait()
        wait_for(lambda: before.slots == there, "the stranger's end")


@pytest.mark.slow
def test_a_lost_scheduler_is_a_clear_error_and_another_engine_goes_on(tmp_path, caplog):
    alone = Cluster(tmp_path, workers=1)
    partitions = [(tmp_path, number) for number in range(3)]
    try:
        alone.ready().close()
        with Dask(alone.address) as dask:

            def kill():
                wait_for(lambda: list(tmp_path.glob("begun-*")), "the first task")
                alone.scheduler.kill()

            killer = threading.Thread(target=kill)
            killer.start()
            with pytest.raises(JobError, match=r"the scheduler .* is gone.*0 of 3 are finished"):
                dask.map(functions.wait_for_go, partitions, out=tmp_path / "job")
            killer.join()
    finally:
        alone.close()
    complaints = [r.name for r in caplog.records if r.levelno >= logging.WARNING]
    assert "distributed.client" not in complaints
    (tmp_path / "go").touch()
    found = Local().map(functions.wait_for_go, partitions, out=tmp_path / "job")
    assert [path.read_text() for path in found.values] == ["0", "1", "2"]


@pytest.mark.parametrize("skip_bad", [False, True])
def test_an_interrupt_is_none_of_the_jobs_errors(tmp_path, skip_bad):
    with pytest.raises(KeyboardInterrupt):
        Local(threads=2).map(functions.interrupt, [1, 2], out=tmp_path / "job", skip_bad=skip_bad)


def test_an_interrupt_on_a_worker_is_its_partitions_error(cluster):
    with (
        Dask(cluster.address) as dask,
        pytest.raises(JobError, match=r"partition 0 \(interrupt\): KeyboardInterrupt\. 0 of 1"),
    ):
        dask.map(functions.raise_what_travels_badly, ["interrupt"])


def test_a_task_of_its_own_may_take_a_gibibyte():
    assert of_task() == 2**30


def test_a_worker_that_does_not_see_the_folder_says_so(tmp_path):
    task = Task(1, "0 (1)", tmp_path / "elsewhere" / "part-00000", 2**30)
    with pytest.raises(JobError, match="storage that every worker and this machine share"):
        attempt(functions.write_double, task, telic.__version__)


def test_nothing_there_is_said_in_a_line():
    with pytest.raises(InputError, match=r"no Dask scheduler answers at 'tcp://127\.0\.0\.1:9'"):
        Dask("tcp://127.0.0.1:9", patience=0.5)
    for wrong in ("", "scheduler", "tcp://", "tcp://host", "tcp://host:port", "http://host:80"):
        with pytest.raises(InputError, match=f"cluster is {wrong!r}, expected an address"):
            Dask(wrong)
    with pytest.raises(InputError, match="an address or a client"):
        Dask()
    for wrong in ("much", "1 B", "2 XiB", "", "9" * 400):
        with pytest.raises(InputError, match="memory is"):
            parse_memory(wrong)
    with pytest.raises(InputError, match=r"tls://a:1', .* names no certificates. Give them as"):
        Dask("tls://a:1")


def test_nobody_pays_for_what_is_not_used():
    code = (
        "import sys, telic, telic.scale, telic.completion\n"
        "assert not {'dask', 'distributed', 'duckdb', 'tornado'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


def storage_fails(value):
    raise OSError(5, "again")


def test_storage_that_goes_on_failing_is_tried_three_times():
    found = Local(threads=1).map(storage_fails, [1], skip_bad=True)
    assert found.report.tasks[0].attempts == 3
    assert found.report.skipped == {"0 (1)": "OSError: [Errno 5] again"}


MIB = 2**20


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64MiB", 64 * MIB),
        (64 * MIB, 64 * MIB),
        ("1.5 GiB", 1536 * MIB),
        ("0.1tb", 10**11),
        ("70000k", 7 * 10**7),
        ("65536 kib", 64 * MIB),
        ("100M", 10**8),
        ("1TiB", 2**40),
        ("1g", 10**9),
    ],
)
def test_memory_is_read_as_people_write_it(text, size):
    assert parse_memory(text) == size


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536 * 1024, "1.5 MiB"),
        (2**30, "1.0 GiB"),
        (2**50, "1024.0 TiB"),
    ],
)
def test_memory_is_said_in_the_largest_unit(size, words):
    assert memory.said(size) == words


def test_memory_is_shared_by_the_threads_less_what_python_takes(monkeypatch):
    with pytest.raises(InputError, match="at least 64MiB"):
        parse_memory(64 * MIB - 1)
    assert Local(threads=2, memory="500MiB").memory == (500 - 300) * MIB // 2
    assert Local(threads=1, memory="364MiB").own_memory == 64 * MIB
    assert Local(threads=1, memory="70MiB").own_memory == 64 * MIB
    monkeypatch.setattr("telic.scale.local.of_this_machine", lambda: 2**30)
    assert Local(threads=1024).own_memory == (512 - 300) * MIB


def test_a_partition_takes_a_tasks_memory_or_the_piece_that_was_asked_for():
    assert Local(threads=2, memory="500MiB").piece == 100 * MIB
    assert Local(threads=2, memory="500MiB", piece="1MiB").piece == MIB
    assert Local(threads=2, memory="500MiB", piece="1GiB").piece == 100 * MIB
    assert Dask(client=Scheduler(worker(1, 2**30)), piece="2MiB").piece == 2 * MIB
    with pytest.raises(InputError, match="piece is '1000KiB', expected at least 1MiB"):
        Local(piece="1000KiB")


class Scheduler:
    """A Dask client of workers that are not there."""

    status = "running"
    scheduler = SimpleNamespace(address="tcp://s:1")

    def __init__(self, *workers):
        self.workers = {f"tcp://w{i}:1": worker for i, worker in enumerate(workers)}

    def scheduler_info(self, n_workers):
        return {"workers": self.workers}

    def run(self, function, *folder, workers=None, on_error="raise"):
        said = {where: worker.get("says", function) for where, worker in self.workers.items()}
        found = {where: say(*folder) if callable(say) else say for where, say in said.items()}
        return {where: found[where] for where in workers or found}

    def close(self, timeout):
        self.status = "closed"


def worker(threads, memory_limit, **more):
    return {"nthreads": threads, "memory_limit": memory_limit, "host": "h"} | more


def test_a_task_takes_three_fifths_of_a_threads_memory_on_the_smallest_worker():
    roomy, small, unsaid = worker(2, 40 * 2**30), worker(4, 2**34), worker(3, None)
    assert Dask(client=Scheduler(roomy, small)).memory == int(0.6 * 2**32)
    assert Dask(client=Scheduler(roomy, unsaid)).memory == int(0.6 * 2**31)
    assert Dask(client=Scheduler(roomy, small)).slots == 6
    assert Dask(client=Scheduler(roomy), memory="1GiB").memory == 2**30


def test_a_cluster_is_checked_by_its_clocks_and_memory(monkeypatch):
    def clock(ahead):
        return lambda: (dask_cluster.versions(), time.time() + ahead)

    client = Scheduler(
        worker(2, 2**30, says=clock(4.0)),
        worker(2, 2**30 - 1, says=clock(-6.0)),
        worker(2, None, says=clock(6.0)),
        worker(1, 2**29, says=OSError("no module")),
    )
    monkeypatch.setattr(cluster_check, "connected", lambda address, patience: client)
    found = [each.wrong for each in cluster_check.check_cluster("tcp://there:8786")]
    assert found == [
        [],
        ["its clock is off by -6 s", "has 1023 MiB for 2 threads"],
        ["its clock is off by +6 s"],
        ["cannot run telic (OSError: no module)"],
    ]
    assert client.status == "closed"


def test_what_a_job_did_is_said_by_partition_and_in_all():
    report = JobReport("f", [TaskReport(str(i)) for i in range(4)])
    first, again, kept, bad = report.tasks
    first.outcome, first.where, first.seconds, first.bytes = "done", ["here"], 0.25, 100
    again.outcome, again.where, again.seconds, again.bytes = "done", ["here", "there"], 1.5, 28
    kept.outcome, bad.outcome, bad.where = "kept", "skipped: ValueError: no: number", ["there"]
    assert report.facts() == {
        "job": "f",
        "partitions": 4,
        "kept from an earlier run": 1,
        "done where": {"here": 1, "there": 1},
        "attempts": 4,
        "begun again": {"1": ["here", "there"]},
        "skipped": {"3": "ValueError: no: number"},
        "bytes of results": 128,
        "seconds of work": 1.75,
    }


def test_a_sum_of_nothing_is_refused():
    with pytest.raises(InputError, match="no partition to add up"):
        Local().tree_reduce(functions.fail_on_three, dict, [])
    with pytest.raises(JobError, match="every partition was skipped"):
        Local().tree_reduce(functions.no_arrays, dict, [1, 2], skip_bad=True)


def test_rows_of_a_file_are_those_that_were_there_when_the_job_began(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"x": range(10)}), path, row_group_size=4)
    parts = row_ranges(path, 4)
    found = [batch["x"].to_pylist() for part in parts for batch in part.batches(["x"], 3)]
    assert [row for each in found for row in each] == [*range(10)]
    assert max(map(len, found)) == 3
    written = path.read_bytes()
    path.write_bytes(written[:4] + bytes(len(written) - 8) + written[-4:])
    os.utime(path, ns=(parts[0].state[1], parts[0].state[1]))
    with pytest.raises(InputError, match=r"rows 1 to 4: cannot be read \(.*\S\)\. Write it again"):
        list(parts[0].batches(["x"], 3))
    path.write_bytes(written[:-1])
    with pytest.raises(InputError, match="changed since the job began"):
        list(parts[0].batches(["x"], 3))


@pytest.mark.parametrize(
    "kind",
    [
        pa.array,
        np.array,
        lambda rows: pa.table({"x": rows}),
        lambda rows: pa.record_batch({"x": rows}),
        lambda rows: np.array([*map(str, rows)], object),
        lambda rows: {"x": np.array(rows)},
        lambda rows: [partial(max, {"x": {"y": pa.array(rows)}})],
        lambda rows: pd.DataFrame({"x": rows}),
        lambda rows: sparse.csr_array([rows]),
        lambda rows: sparse.coo_array([rows]),
        lambda rows: np.ma.array(np.ones(len(rows)), mask=np.array(rows) < 0),
        lambda rows: {*map(str, rows)},
    ],
)
def test_a_job_is_another_by_any_row_of_what_it_is_given(kind):
    rows = [*range(5000)]
    one, same, other = kind(rows), kind(list(rows)), kind([*rows[:2500], -1, *rows[2501:]])
    assert identity(functions.double, [one]) == identity(functions.double, [same])
    assert identity(functions.double, [one]) != identity(functions.double, [other])
    assert identity(partial(max, one), []) != identity(partial(max, other), [])


def test_a_job_is_another_by_the_object_whose_method_it_calls_and_by_the_form_of_a_matrix():
    one, same, other = Counter("a"), Counter("a"), Counter("b")
    assert identity(one.get, ["a"]) == identity(same.get, ["a"])
    assert identity(one.get, ["a"]) != identity(other.get, ["a"])
    rows = sparse.csr_array(np.eye(3, k=1))
    assert identity(max, [rows]) != identity(max, [sparse.csc_array(rows.T)]), "the same arrays"


def test_a_job_is_another_by_the_kind_of_an_object_that_has_the_same_fields():
    assert identity(partial(max, Logistic()), [1]) == identity(partial(max, Logistic()), [1])
    assert identity(partial(max, Logistic()), [1]) != identity(partial(max, Squared()), [1])


def power(exponent):
    """A function that calls itself, and reads a variable that has no value yet."""

    def raised(part, left):
        return part * raised(part, left - 1) if left else exponent and unset

    return raised
    unset = 1


def through(container):
    """A maker of functions that call themselves by what holds them."""

    def made(factor):
        def raised(part):
            return held[0](part) * factor

        held = container(raised)
        return raised

    return made


@pytest.mark.parametrize(
    "made",
    [
        through(lambda function: [function]),
        through(lambda function: {0: function}),
        through(lambda function: {0: partial(function)}),
        lambda factor: lambda part: part * factor,
        lambda factor: lambda part, factor=factor: part * factor,
        lambda factor: lambda part, *, factor=factor: part * factor,
        lambda factor: partial(lambda part, times: times(part), times=lambda part: part * factor),
        power,
    ],
)
def test_a_job_is_another_by_what_its_function_reads_around_it(made):
    assert identity(made(2), [1]) == identity(made(2), [1])
    assert identity(made(2), [1]) != identity(made(3), [1])
    add, also, times = (lambda x: x + 1), (lambda x: x + 1), (lambda x: x * 1)
    assert identity(add, [1]) == identity(also, [1])
    others = [lambda x: x + 2, lambda x: abs(x), lambda x: x.real, lambda x: x.imag]
    others += [lambda x: sum(i * i for i in x), lambda x: sum(i + i for i in x)]
    others += [lambda x: x in {"tea", "ten"}, lambda x: x in {"tea", "teo"}]
    assert len({identity(f, [1]) for f in (add, times, *others)}) == 10


def test_a_lambda_with_a_set_is_the_same_in_every_process():
    program = (
        "from telic.scale.job_folder import identity\n"
        "print(identity(lambda x: x in {'tea', 'ten', 'teo', 'te'}, [1]))\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in "123"
    }
    assert len(found) == 1


def test_a_worker_of_another_version_does_nothing():
    task = Task(1, "0 (1)", None, 2**20)
    assert attempt(functions.double, task, telic.__version__).value == 2
    with pytest.raises(JobError, match=r"the job is of telic 0\.0\.0, this worker has"):
        attempt(functions.double, task, "0.0.0")


def what_comes(plan, *, skip_bad=False, targets=None):
    """Run tasks whose attempts end as planned; return what arrives, the report and the batches."""
    tasks = [Task(i, f"{i}", targets and targets[i], 0) for i in range(len(plan))]
    report = JobReport("job", [TaskReport(task.name) for task in tasks])
    ends, batches = [iter(each) for each in plan], []

    def outcomes(batch):
        batches.append([task.partition for task in batch])
        for j, task in enumerate(batch):
            yield j, next(ends[task.partition])

    found = dict(arrivals(outcomes, tasks, report, skip_bad=skip_bad, watch=None))
    return found, [task.outcome for task in report.tasks], batches


def test_a_partition_is_begun_three_times_if_its_storage_fails():
    failed, done = OSError(errno.EIO, "no answer"), Done(7, 0.5)
    assert what_comes([[failed, failed, done]]) == ({0: 7}, ["done"], [[0]] * 3)
    with pytest.raises(
        JobError, match=r"partition 0: OSError: .*no answer\. 1 of 2 are finished\."
    ):
        what_comes([[failed, failed, failed, done], [done]])
    found = what_comes([[failed, failed, failed, done], [done]], skip_bad=True)
    assert found[0] == {0: None, 1: 7}
    assert found[1][0].startswith("skipped: OSError")


def test_who_kills_a_worker_is_found_by_running_suspects_alone():
    lost, done = LostWorker("its worker died"), Done(1, 0.0)
    found = what_comes([[lost, done], [done], [lost, lost], [lost, done]], skip_bad=True)
    assert found[0] == {0: 1, 1: 1, 2: None, 3: 1}
    assert found[2] == [[0, 1, 2, 3], [3], [2], [0]]
    with pytest.raises(JobError, match="partition 2: its worker died"):
        what_comes([[done], [done], [lost, lost]])


def test_a_lost_cluster_ends_a_job_even_if_bad_partitions_may_be_skipped():
    with pytest.raises(JobError, match=r"^the scheduler is gone\. 1 of 3 are finished\.$"):
        what_comes([[Done(1, 0.0)], [Lost("the scheduler is gone")], []], skip_bad=True)


def test_what_a_worker_wrote_must_be_seen_here(tmp_path):
    there, missing = tmp_path / "part-0", tmp_path / "part-1"
    there.write_text("7")
    found = what_comes([[], [Done(None, 0.0)]], targets=[there, missing], skip_bad=True)
    assert found[0] == {0: there, 1: None}
    assert found[1][0] == "kept"
    assert "was written where it ran, but is not here" in found[1][1]


def test_what_a_worker_does_first_is_noted_and_what_it_writes_is_named(tmp_path, monkeypatch):
    noted = []

    class Worker:
        address = "tcp://there:1"

        def log_event(self, job, said):
            noted.append((job, said))

    monkeypatch.setattr(distributed, "get_worker", Worker)
    task = Task(3, "part-1", None, 2**30)
    done = dask_cluster._begin("job-7", functions.double, task, telic.__version__)
    assert done.value == 6
    assert noted == [("job-7", {"task": "part-1", "where": f"tcp://there:1 (pid {os.getpid()})"})]
    name = cluster_check._touch(str(tmp_path))
    assert files(tmp_path) == [name]
    assert cluster_check._touch(str(tmp_path)) != name
    assert len(files(tmp_path)) == 2


@pytest.mark.parametrize(("error", "said"), [(ImportError("a\nb"), "a"), (OSError(), "")])
def test_workers_must_have_what_this_process_has(error, said):
    def fails():
        raise error

    def other():
        return ours | {"numpy": "0.1"}

    ours = dask_cluster.versions()
    dask_cluster.check_alike(Scheduler(worker(1, None), worker(1, None)))
    with pytest.raises(InputError, match=r"worker tcp://w1:1 has numpy 0.1, this process"):
        dask_cluster.check_alike(Scheduler(worker(1, None), worker(1, None, says=other)))
    with pytest.raises(InputError, match=rf"cannot run telic \({type(error).__name__}: {said}\)"):
        dask_cluster.check_alike(Scheduler(worker(1, None, says=fails)))


def test_a_worker_that_is_not_there_yet_is_waited_for(monkeypatch):
    """As after a worker's death, until its nanny has begun another."""
    looks = [{}, {}, {"tcp://w0:1": worker(3, None)}]

    class Restarting(Scheduler):
        def scheduler_info(self, n_workers):
            self.workers = looks.pop(0) if looks else self.workers
            return super().scheduler_info(n_workers)

    monkeypatch.setattr(dask_cluster, "LOOK", 0.01)
    assert Dask(client=Restarting()).slots == 3
    said = r"has no worker, and none came in 0\.02 seconds\. Start one with: dask worker tcp://s:1"
    with pytest.raises(InputError, match=said):
        Dask(client=Scheduler(), patience=0.02)


def test_where_tasks_were_begun_is_known_beyond_what_the_schedulers_log_keeps():
    """The log keeps the last thousand events: a job of more partitions ended in an error."""

    class Forgetful(Scheduler):
        def subscribe_topic(self, topic, handler):
            self.handler = handler

        def unsubscribe_topic(self, topic):
            del self.handler

        def get_events(self, topic):
            return noted[-2:]

    noted = [(float(at), {"task": f"{at % 3}", "where": f"w{at // 3}"}) for at in range(6)]
    client = Forgetful(worker(1, 2**30))
    dask = Dask(client=client)
    assert list(dask.outcomes("job", functions.double, [])) == []
    for event in noted[:5]:  # the last one is under way, and in the log
        client.handler(event)
    begun = [(said["task"], said["where"]) for _, said in noted]
    assert dask.begun("job") == begun
    assert not hasattr(client, "handler")
    assert list(dask.outcomes("lost", functions.double, [])) == []
    client.handler(noted[0])
    client.status = "closed"
    assert dask.begun("lost") == begun[:1]


def test_a_folder_that_is_written_twice_is_written_once(tmp_path):
    with placed(tmp_path / "made") as first, placed(tmp_path / "made") as second:
        for number, folder in enumerate((first, second)):
            folder.mkdir()
            (folder / str(number)).touch()
    assert files(tmp_path) == ["made"]
    assert files(tmp_path / "made") == ["1"]  # which ended first
    for begin in (Path.mkdir, Path.touch):
        with pytest.raises(KeyboardInterrupt):
            broken(tmp_path / "broken", begin)
    assert files(tmp_path) == ["made"]


def broken(path, begin):
    with placed(path) as temporary:
        begin(temporary)
        raise KeyboardInterrupt


@pytest.mark.parametrize("sizes", [[4], [1, 1, 1, 1], [5, 1, 2, 9], [3, 3, 3], [2, 7]])
@pytest.mark.parametrize("rows", [1, 3, 4, 100])
def test_row_groups_are_put_together_until_there_are_enough_rows(sizes, rows, tmp_path):
    path = tmp_path / "rows.parquet"
    numbers = iter(range(sum(sizes)))
    with pq.ParquetWriter(path, pa.schema([("x", pa.int64())])) as file:
        for size in sizes:
            file.write_table(pa.table({"x": [next(numbers) for _ in range(size)]}))
    parts = row_ranges(path, rows)
    assert [group for part in parts for group in part.groups] == [*range(len(sizes))]
    first = 0
    for part in parts:
        own = [sizes[group] for group in part.groups]
        assert (part.first, part.rows) == (first, sum(own))
        assert str(part).endswith(f"rows {first + 1} to {first + sum(own)}")
        assert sum(own[:-1]) < rows <= max(sum(own), rows if part is parts[-1] else 0)
        (read,) = part.batches(["x"], 1000)
        assert read["x"].to_pylist() == [*range(first, first + sum(own))]
        first += sum(own)


def test_how_much_is_finished_counts_what_was_kept(tmp_path):
    (tmp_path / "0").touch()
    tasks = [Task(i, f"{i}", tmp_path / f"{i}", 0) for i in range(4)]
    report = JobReport("job", [TaskReport(task.name) for task in tasks])
    watched = []

    def outcomes(batch):
        for j, task in enumerate(batch):
            if task.partition == 3:
                yield j, ValueError("no")
            else:
                task.target.touch()
                yield j, Done(None, 0.5)

    found = []
    with pytest.raises(JobError, match=r"partition 3: ValueError: no\. 3 of 4 are finished"):
        found.extend(
            i
            for i, _ in arrivals(
                outcomes, tasks, report, skip_bad=False, watch=lambda *said: watched.append(said)
            )
        )
    assert watched == [("job", 2, 4), ("job", 3, 4)]
    assert [task.outcome for task in report.tasks[:3]] == ["kept", "done", "done"]
    assert [task.seconds for task in report.tasks[1:3]] == [0.5, 0.5]


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1024**2 - 1, "1024.0 KiB"),
        (1024**2, "1.0 MiB"),
        (1024**3, "1.0 GiB"),
        (1024**4, "1.0 TiB"),
        (5000 * 1024**4, "5000.0 TiB"),
    ],
)
def test_bytes_are_said_in_units_of_1024(size, words):
    assert memory.said(size) == words


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64MiB", 64 * 2**20),
        (64 * 2**20, 64 * 2**20),
        ("1.5 gib", 3 * 2**29),
        ("100MB", 10**8),
        ("1T", 10**12),
        ("2TiB", 2**41),
        ("70000k", 7 * 10**7),
        ("70000KiB", 70000 * 1024),
        (" 0.5g ", 5 * 10**8),
    ],
)
def test_amounts_of_memory_are_read_in_either_kind_of_unit(text, size):
    assert parse_memory(text) == size


def test_what_a_killed_process_left_is_removed_when_a_job_begins(tmp_path, monkeypatch):
    gone = subprocess.Popen(["true"])
    gone.wait()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: gone.pid)
        left = [hidden("job.json"), hidden("part-00000.parquet"), hidden("spill-x")]
    stays = [f".{'0' * 12}-{gone.pid}-1.of another machine", hidden("of a process that runs")]
    for number, begin in enumerate(
        (
            lambda folder: Local().map(functions.write_double, [1], out=folder),
            lambda folder: store_arrays(folder, {"x": np.zeros(2)}),
        )
    ):
        folder = tmp_path / f"{number}"
        (folder / left[2]).mkdir(parents=True)
        for name in (*left[:2], f"{left[2]}/tmp"):
            (folder / name).touch()
        begin(folder)
        made = files(folder)
        for name in stays:
            (folder / name).touch()
        begin(folder)
        assert files(folder) == sorted([*made, *stays])
        assert not any(name.startswith(".") for name in made)


@pytest.mark.parametrize("text", ["64MiB", "1", "lots", "-1GiB", "2 i", "1e9", "GiB", ""])
def test_no_amount_or_too_little_is_refused(text):
    with pytest.raises(InputError, match=f"memory is '{text}'"):
        parse_memory(text, least=2**26 + 1)


def test_a_connection_of_ours_that_cannot_be_used_is_closed(monkeypatch):
    class Client:
        status = "running"
        closed = 0

        def close(self, timeout):
            self.closed += 1

    def refused(client, patience):
        raise JobError("another version of telic")

    client = Client()
    monkeypatch.setattr(dask_cluster, "connected", lambda address, patience: client)
    monkeypatch.setattr(dask_cluster, "check_alike", refused)
    with pytest.raises(JobError, match="another version"):
        Dask("tcp://127.0.0.1:1")
    assert client.closed == 1
    with pytest.raises(JobError, match="another version"):
        Dask(client=client)
    assert client.closed == 1  # the caller's own stays open


@pytest.mark.parametrize(
    ("text", "most"),
    [("4294967296\n", 2**32), (f"{2**60}\n", 2**60), ("max\n", None), (None, None)],
)
def test_a_container_has_the_memory_that_it_may_take(tmp_path, monkeypatch, text, most):
    file = tmp_path / "memory.max"
    if text is not None:
        file.write_text(text)
    monkeypatch.setattr(memory, "CONTAINER", tmp_path / "none")
    whole = memory.of_this_machine()
    monkeypatch.setattr(memory, "CONTAINER", file)
    assert memory.of_this_machine() == min(whole, most or whole)


@pytest.mark.parametrize(
    ("error", "finished", "said"),
    [
        (
            ValueError("no"),
            2,
            "partition a: ValueError: no. 2 of 3 are finished and kept: the same",
        ),
        (ValueError("no"), 0, "partition a: ValueError: no. 0 of 3 are finished."),
        (InputError("row 2: no number."), 2, "partition a: row 2: no number."),
    ],
)
def test_a_job_goes_on_only_where_something_is_finished_and_the_input_stays(error, finished, said):
    text = str(failure("a", error, finished, 3, kept=True))
    assert text.startswith(said)
    assert ("goes on" in text) == ("the same" in said)
    assert text == said or "the same" in said
