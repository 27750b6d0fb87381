"""What commands say of a job that ran in pieces."""

from telic.cli.jobs import Job
from telic.scale import Local


def test_all_runs_of_one_function_are_said_together(tmp_path):
    with Local(threads=1) as executor:
        executor.map(sum, [[1], [2]])
        executor.map(len, [[1]])
        executor.map(sum, [[3]])
        said = Job(executor, tmp_path).said()
    assert [(each["job"], each["partitions"]) for each in said] == [
        ("builtins.sum", 3),
        ("builtins.len", 1),
    ]
