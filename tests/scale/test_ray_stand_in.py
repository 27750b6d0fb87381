"""What telic asks of Ray, of a stand-in that runs tasks when they are waited for.

Ray itself is optional and large; with it, `test_engines.py` runs on a cluster of its own.
"""

import os
import sys
from types import ModuleType

import pytest
from tests.scale import functions

from telic.errors import InputError, JobError
from telic.scale import Ray
from telic.scale.memory import of_this_machine


class RayError(Exception):
    pass


class RayTaskError(RayError):
    def __init__(self, cause):
        super().__init__("in a task")
        self.cause = cause


class WorkerCrashedError(RayError):
    pass


class OutOfMemoryError(RayError):
    pass


class StandIn(ModuleType):
    """Runs what is waited for, the latest begun first; knows what it was asked for."""

    def __init__(self, *, cpus=2.0, memory=8 * 2**30, running=False, answers=None):
        super().__init__("ray")
        self.resources = {"CPU": cpus, "memory": memory}
        self.running, self.answers = running, answers
        self.given, self.begun, self.most, self.cancelled, self.broken = [], {}, 0, [], None
        self.exceptions = ModuleType("ray.exceptions")
        for error in (RayError, RayTaskError, WorkerCrashedError, OutOfMemoryError):
            setattr(self.exceptions, error.__name__, error)

    def is_initialized(self):
        return self.running

    def init(self, address, **options):
        if self.answers is not None:
            raise self.answers
        self.given, self.running = [address, options], True

    def shutdown(self):
        self.running = False

    def cluster_resources(self):
        return {name: value for name, value in self.resources.items() if value is not None}

    def remote(self, **options):
        assert options == {"num_cpus": 1, "max_retries": 0}

        def decorate(function):
            class Begun:
                @staticmethod
                def remote(*arguments):
                    ticket = object()
                    self.begun[ticket] = (function, arguments)
                    self.most = max(self.most, len(self.begun))
                    return ticket

            return Begun

        return decorate

    def wait(self, tickets, *, num_returns):
        assert num_returns == 1
        assert set(tickets) == set(self.begun)
        return [tickets[-1]], tickets[:-1]

    def get(self, ticket):
        function, arguments = self.begun.pop(ticket)
        if self.broken:
            raise self.broken
        try:
            return function(*arguments)
        except Exception as error:
            raise RayTaskError(error) from None

    def cancel(self, ticket, *, force):
        assert force
        self.cancelled.append(self.begun.pop(ticket))


@pytest.fixture
def made(monkeypatch):
    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED", raising=False)

    def make(**options):
        monkeypatch.setitem(sys.modules, "ray", one := StandIn(**options))
        return one

    return make


def test_a_ray_of_its_own_stays_on_this_machine_and_ends_with_it(made):
    ray = made()
    with Ray() as engine:
        assert ray.given[0] == "local"
        assert ray.given[1] == {
            "log_to_driver": False,
            "include_dashboard": False,
            "_node_ip_address": "127.0.0.1",
        }
        assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
        assert engine.slots == 2
        assert engine.memory == int(0.6 * 4 * 2**30)
        assert engine.own_memory == of_this_machine() // 2
        found = engine.map(functions.double, [3, 1, 2, 5])
        assert found.values == [6, 2, 4, 10]
        assert [task.attempts for task in found.report.tasks] == [1, 1, 1, 1]
        assert ray.most == 2  # as many as there are processors
        assert ray.running
    assert not ray.running


def test_a_cluster_that_is_there_is_joined_and_left_as_it_was(made):
    ray = made(cpus=None, memory=None)
    with Ray("ray://a:10001", memory="2GiB") as engine:
        assert ray.given == ["ray://a:10001", {"log_to_driver": False}]
        assert (engine.slots, engine.memory) == (1, 2**31)
    ray = made(running=True, memory=None, cpus=0.5)
    with Ray(piece="1GiB") as engine:
        assert not ray.given
        assert engine.slots == 1
        assert engine.memory == int(0.6 * (of_this_machine() // 2))
        assert engine.piece == 2**30
    assert ray.running  # whose it was


@pytest.mark.parametrize(
    ("answers", "why"), [(ConnectionError("nobody\nthere"), "nobody"), (ValueError(), "")]
)
def test_a_cluster_that_does_not_answer_is_named(answers, why, made):
    made(answers=answers)
    with pytest.raises(InputError, match=rf"no cluster of Ray answers at 'a:1' \({why}\)"):
        Ray("a:1")


def test_ray_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match="pip install ray"):
        Ray()


def test_a_partition_that_fails_is_named_and_what_runs_beside_it_is_cancelled(made, tmp_path):
    ray = made(cpus=3)
    with Ray() as engine:
        with pytest.raises(JobError, match=r"partition 2 \(3\): ValueError: three is no number"):
            engine.map(functions.fail_on_three, [1, 2, 3, 4, 5], out=tmp_path / "job")
        assert not ray.begun
        assert len(ray.cancelled) == 2
        found = engine.map(functions.fail_on_three, [1, 2, 3], out=tmp_path / "a", skip_bad=True)
    assert [path and path.read_text() for path in found.values] == ["2", "4", None]
    assert found.report.skipped == {"2 (3)": "ValueError: three is no number"}


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (WorkerCrashedError(), "every worker that began it died"),
        (OutOfMemoryError(), "every worker that began it died"),
        (RayError(), r"the cluster of Ray is gone \(RayError\)"),
        (RayTaskError("no exception"), "RayTaskError"),
    ],
)
def test_what_ray_says_of_workers_is_said_of_the_partition(error, said, made):
    ray = made()
    with Ray() as engine:
        ray.broken = error
        with pytest.raises(JobError, match=said):
            engine.map(functions.double, [1, 2])
