"""Every workload with a worker killed in mid-job, ten times: the same result, work begun again."""

import signal

import numpy as np
import pytest
from scipy import sparse
from tests.scale.cluster import Cluster
from tests.scale.test_workloads import contents, design_files, query_log, users_only

from telic.auc import FileDesign, auc_in_pieces, cg_in_pieces, exact_in_pieces
from telic.completion import CAREFUL, Replay, fit_completer, fit_files
from telic.completion.fit import from_pieces, static_box
from telic.data.compositions import read_compositions
from telic.optim.admm import consensus_admm
from telic.privacy import Adversary, Auxiliary, attack, risks
from telic.scale import Dask, Local
from telic.simulate import Affinity, Catalogue, simulate_phones, simulate_typists
from telic.specialty import GibbsLDA
from telic.specialty.recognition.recognise import recognise

pytestmark = pytest.mark.slow

KILLS = 10
PRELOAD = """
import os
import signal
import time
from pathlib import Path

from telic.scale import dask_cluster
from telic.scale.tasks import attempt_elsewhere as work


def drawn():
    for ticket in sorted(Path({tickets!r}).iterdir()):
        try:
            ticket.unlink()
            return ticket.suffix
        except FileNotFoundError:  # another worker drew it
            pass


def die():
    time.sleep(0.2)  # the note that it has begun goes out
    os.kill(os.getpid(), signal.SIGKILL)


def attempt(*given):
    ticket = drawn()
    if ticket == ".before":
        die()
    done = work(*given)
    if ticket == ".after":
        die()
    return done


dask_cluster.attempt_elsewhere = attempt
"""
"""Each piece of work draws a ticket; on the last one its worker dies, before or after the work."""


def draw(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape)


def counts(here):
    query_log(here / "log.parquet")

    def run(engine, work):
        fit_files(here / "log.parquet", executor=engine, work=work).save(work / "box")
        return contents(work / "box")

    return run


def exact_ranker(here):
    design_files(here)
    design = FileDesign.open(here / "X.npy", here / "y.npy")
    return lambda engine, work: exact_in_pieces(design, executor=engine, out=work).coef.tobytes()


def auc(here):
    design_files(here)
    design = FileDesign.open(here / "X.npy", here / "y.npy")
    return lambda engine, work: auc_in_pieces(design, np.ones(5), executor=engine, out=work)


def conjugate_gradients(here):
    design_files(here, offset=1)
    design = FileDesign.open(here / "X.npy", here / "y.npy")
    return lambda engine, work: cg_in_pieces(design, executor=engine, out=work).coef.tobytes()


def shards(here):
    X, A = draw(90, 6), np.diff(np.eye(6), axis=0)
    y = np.where(X.sum(axis=1) > 0, 1.0, -1.0)
    data = [(X[:20], y[:20]), (X[20:60], y[20:60]), (X[60:], y[60:])]

    def run(engine, work):
        found = consensus_admm(data, A=A, l1=0.02, l2=0.01, tol=0.2, executor=engine, work=work)
        return found.coef.tobytes()

    return run


def risk(here):
    network = users_only()
    adversary = Adversary.of(network)
    return lambda engine, work: [
        one.hashes.tobytes() for one in risks(network, adversary, executor=engine, work=work)
    ]


def the_attack(here):
    network = users_only()
    auxiliary = Auxiliary(network, Adversary.of(network))

    def run(engine, work):
        found = attack(auxiliary, network, distance=3, executor=engine, work=work)
        return [found.candidates(target, 3).tobytes() for target in range(60)]

    return run


PHRASES = ["".join("abc"[i] for i in row) for row in draw(60, 9).argsort(axis=1) % 3]
CATALOGUE = Catalogue(sorted(set(PHRASES)), np.arange(1, 1 + len(set(PHRASES))))


def learned(table, **options):
    replay = Replay(read_compositions(table), min_compositions=4, min_users=1)

    def run(engine, work):
        box = fit_completer(replay, protocol=CAREFUL, executor=engine, work=work, **options)
        box.save(work / "box")
        return contents(work / "box")

    return run


def users(here):
    return learned(simulate_typists(CATALOGUE, setting="readers", users=8, compositions=16, seed=1))


def apps(here):
    size = len(CATALOGUE.phrases)
    of_apps = [f"app {i}" for i in range(size)], np.ones(size), np.arange(size + 1)
    affinity = Affinity(*of_apps, np.arange(size), np.ones(size))
    options = {"users": 8, "compositions": 8, "strength": 0.9, "seed": 1}
    return learned(simulate_phones(CATALOGUE, affinity=affinity, **options), model="appaware")


def halves(here):
    X, labels = draw(60, 30), np.repeat(["a", "b", "c"], 20)
    counts = sparse.csr_array(np.maximum(np.round(X + np.repeat(np.eye(3, 30), 20, axis=0)), 0))

    def run(engine, work):
        return recognise(
            counts, labels, method="Naive", executor=engine, work=work
        ).scores.tobytes()

    return run


def topics(here):
    counts = np.maximum(np.round(draw(90, 20)), 0)
    model = GibbsLDA(n_topics=4, max_iter=5, shards=3)
    return lambda engine, work: model.fit(counts, executor=engine, work=work).components_.tobytes()


WORKLOADS = {
    counts: 2**30,
    exact_ranker: 2**20,
    auc: 2**20,
    conjugate_gradients: 2**20,
    shards: 2**30,
    risk: 16 * 80,
    the_attack: 16 * 100,
    users: 2**15,
    apps: 2**30,
    halves: 2**30,
    topics: 2**30,
}
"""And the memory of a task, by which most are cut to pieces."""


@pytest.fixture(scope="module")
def mortal(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mortal")
    (folder / "tickets").mkdir()
    preload = folder / "mortal.py"
    preload.write_text(PRELOAD.format(tickets=str(folder / "tickets")))
    running = Cluster(folder, preload=str(preload))
    running.ready().close()
    yield running, str(preload), folder / "tickets"
    running.close()


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda one: one.__name__)
def test_a_worker_killed_ten_times_changes_nothing(mortal, workload, tmp_path, monkeypatch):
    cluster, preload, tickets = mortal
    monkeypatch.setattr(static_box, "HELD_OUT", 60)
    plan = {"rows": 600, "buckets": 3}
    monkeypatch.setattr(from_pieces, "_plan", lambda work, *more: work.mkdir(exist_ok=True) or plan)
    run = workload(tmp_path)

    def made(engine, name):
        work = tmp_path / name
        work.mkdir()
        engine.memory = WORKLOADS[workload]
        return run(engine, work), [report.facts() for report in engine.reports]

    expected, _ = made(Local(threads=1), "local")
    with Dask(cluster.address) as dask:
        found, reports = made(dask, "undisturbed")
    assert found == expected
    tasks = sum(facts["attempts"] for facts in reports)
    # The step size that was best is walked with once more: its pieces lie there already.
    kept = sum(facts["kept from an earlier run"] for facts in reports)
    assert tasks == sum(facts["partitions"] for facts in reports) - kept
    for kill in range(KILLS):
        last = kill * tasks // KILLS
        for number in range(last):
            (tickets / f"{number:05d}.work").touch()
        (tickets / f"{last:05d}.{('before', 'after')[kill % 2]}").touch()
        with Dask(cluster.address) as dask:
            found, reports = made(dask, f"kill-{kill}")
        assert found == expected
        dead = [worker for worker in cluster.workers if worker.poll() is not None]
        assert [worker.returncode for worker in dead] == [-signal.SIGKILL]
        again = [where for facts in reports for where in facts["begun again"].values()]
        assert any(f"(pid {dead[0].pid})" in where[0] for where in again)
        assert all(f"(pid {dead[0].pid})" not in where[-1] for where in again)
        assert not list(tickets.iterdir())
        cluster.workers.remove(dead[0])
        cluster.workers.append(cluster.add_worker(preload))
        cluster.ready(2).close()
