import json

import pytest
from typer.testing import CliRunner

from telic.cli import app, main


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    run = CliRunner().invoke(app, ["specialty", "simulate", str(folder / "log"), "--scale", "0.03"])
    assert run.exit_code == 0
    return folder


def run(*arguments):
    result = CliRunner().invoke(app, ["specialty", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result


def test_discover_then_recognise_explain_and_report(folder):
    found = run("discover", folder / "log", "--topics", 35, "--restarts", 1, "--json")
    content = json.loads(found.stdout)
    assert content["simulated"] is True
    assert any(one["listed_code"] is None for one in content["specialties"])
    file = folder / "found.json"
    file.write_text(found.stdout)
    scores = run("recognise", folder / "log", "--found", file, "--classifier", "Naive", "--json")
    assert json.loads(scores.stdout)["recognition"][0]["f1"] > 0.5
    queue = json.loads(
        run("explain", folder / "log", "--found", file, "--limit", 3, "--json").stdout
    )
    assert len(queue["queue"]) == 3
    assert queue["queue"][0]["user"].startswith("user-")
    run("report", folder / "log", "--found", file, "--out", folder / "r.html")
    assert "De facto specialties" in (folder / "r.html").read_text()


def test_an_error_is_one_line_and_exit_code_2(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("sys.argv", ["telic", "specialty", "discover", str(tmp_path)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    error = capsys.readouterr().err.strip()
    assert error.startswith("telic: ")
    assert "meta.json: not found" in error
    assert "\n" not in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["recognise", "--classifier", "oracle"], "'oracle' is not a classifier"),
        (["report", "--out", "no/such/folder/r.html"], "does not exist"),
        (["discover", "--method", "pathselclus", "--paths", "U-X"], "paths names 'U-X'"),
    ],
)
def test_wrong_options_are_said_in_one_line(folder, capsys, monkeypatch, arguments, message):
    command, *options = arguments
    line = ["telic", "specialty", command, str(folder / "log"), *options]
    monkeypatch.setattr("sys.argv", line)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err.strip().splitlines()[-1]
