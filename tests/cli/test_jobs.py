"""What commands say of a job that ran in pieces, and where the pieces may lie."""

import errno
import shutil
import sys

import pytest

from telic import cli
from telic.cli.jobs import Job, tell_job
from telic.errors import InputError
from telic.scale import JobReport, Local, TaskReport
from telic.scale.job_folder import working_folder


@pytest.fixture
def telic(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("query,at,user\n" + "abc,2024-01-01T00:00:00Z,u1\n" * 9)
    (tmp_path / "list.csv").write_text("phrase,weight\nTea,3\n")
    net = tmp_path / "net"
    net.mkdir()
    (net / "schema.json").write_text('{"nodes": {"user": {"attributes": {}}}, "links": []}')
    (net / "nodes_user.csv").write_text("id\n1\n2\n")

    def run(words):
        monkeypatch.setattr(sys, "argv", ["telic", *words.split(), "--memory", "1GiB"])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code or 0, capsys.readouterr().err

    return run


IN_PIECES = {
    "completion fit log.csv box --min-users 1": ("box.job", "log.csv"),
    "completion fit list.csv box": ("box.job", "list.csv"),
    "privacy risk net": ("telic-risk.job", "net"),
    "privacy attack net net": ("telic-attack.job", "net"),
    "privacy attack net net --candidates found.parquet": ("found.parquet.job", "net"),
}


@pytest.mark.parametrize("words", IN_PIECES)
def test_pieces_lie_in_no_folder_of_somebody_else(telic, tmp_path, words):
    own, read = IN_PIECES[words]
    (tmp_path / own).mkdir()
    (tmp_path / own / "thesis").write_text("years")
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for more, why in (
        ("", "holds other files"),
        (f" --work {own}", "holds other files"),
        (f" --work {read}", "is read by this command"),
        (" --work net/nodes_user.csv", "is read" if read == "net" else "cannot be used"),
    ):
        code, error = telic(words + more)
        assert code == 2
        assert why in error
    assert files == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    # Its own folder is removed at the end; a named one stays, and may be used again.
    (tmp_path / own / "thesis").unlink()
    again = words.replace("box", "other").replace("found", "other")
    for more in ("", " --work kept", " --work kept"):
        code, error = telic((again if more else words) + more + " --overwrite" * ("other" in again))
        assert code == 0, error
        assert not (tmp_path / own).exists()
    assert (tmp_path / "kept").is_dir()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("completion fit none.csv box --memory 1GiB", "none.csv: no such file"),
        ("completion fit log.csv box --memory 1GiB --signals all", "Leave out the other model"),
    ],
)
def test_a_job_that_is_refused_leaves_no_folder(telic, tmp_path, words, says):
    before = sorted(tmp_path.iterdir())
    code, error = telic(words)
    assert code == 2
    assert says in error
    assert len(error.splitlines()) == 1
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.usefixtures("telic")
@pytest.mark.parametrize(("memory", "code"), [("399MiB", 2), ("400MiB", 0)])
def test_memory_that_the_libraries_take_alone_is_no_bound(monkeypatch, capsys, memory, code):
    words = ["telic", "completion", "fit", "list.csv", "box", "--memory", memory]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == code
    said = "--memory (Python alone takes 300MiB) is '399MiB', expected at least 400MiB."
    assert (said in capsys.readouterr().err) == bool(code)


@pytest.mark.parametrize("work", ["./box", "box/work", "kept/../box/work", "link/box/work"])
def test_pieces_do_not_lie_in_the_output(telic, tmp_path, work):
    (tmp_path / "link").symlink_to(tmp_path)
    code, error = telic(f"completion fit log.csv box --min-users 1 --work {work}")
    assert code == 2
    assert "is the output, too" in error
    assert not (tmp_path / "box").exists()


def test_an_empty_address_is_no_job_on_this_machine(monkeypatch, capsys, telic):
    words = ["telic", "completion", "fit", "list.csv", "box", "--cluster", ""]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit):
        cli.main()
    assert "cluster is '', expected an address" in capsys.readouterr().err


def test_two_commands_at_once_do_not_share_a_folder_of_pieces(telic, tmp_path):
    with working_folder("telic-risk.job", "telic-risk.job") as folder:
        code, error = telic("privacy risk net")
        assert code == 2
        assert "telic-risk.job: another command works in it. Wait for its end, or name" in error
        assert folder.is_dir()
        assert telic("privacy risk net --work other")[0] == 0
    assert telic("privacy risk net")[0] == 0  # that one has ended


@pytest.mark.parametrize("again", [False, True])
def test_a_folder_that_another_command_removes_meanwhile_is_none(tmp_path, monkeypatch, again):
    def removed(file, how):
        shutil.rmtree(tmp_path / "job")
        if again:  # and a third command has made anew
            (tmp_path / "job").mkdir()
            (tmp_path / "job" / "job.json").write_text("{}")

    monkeypatch.setattr("fcntl.flock", removed)
    with pytest.raises(InputError, match="works in it"), working_folder("box", tmp_path / "job"):
        pass


def test_a_file_system_without_locks_is_worked_on(tmp_path, monkeypatch):
    def none(file, how):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr("fcntl.flock", none)
    with working_folder("box", tmp_path / "job") as folder:
        assert folder == tmp_path / "job"


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


def test_what_was_begun_again_or_left_out_is_said(capfd, tmp_path):
    report = JobReport("f", [TaskReport("0 (a)"), TaskReport("1 (b)")])
    report.tasks[0].outcome, report.tasks[0].where = "done", ["here", "there"]
    report.tasks[0].bytes, report.tasks[0].seconds = 2048, 1.25
    report.tasks[1].outcome = "skipped: ValueError: no"
    with Local(threads=1) as executor:
        executor.reports.append(report)
        tell_job(Job(executor, tmp_path))
    assert capfd.readouterr().err.splitlines() == [
        "f: 2 partitions; 2 attempts; 2.0 KiB of results; 1.2 s of work; 1 on there",
        "  begun again: 0 (a), on here, then there",
        "  left out: 1 (b): ValueError: no",
    ]
