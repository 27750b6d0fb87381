"""`telic completion serve`: its errors on one line, and how it stops."""

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from dataclasses import replace

import pytest

from telic.cli import main
from telic.serve.process.server import listen


def command(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["telic", "completion", "serve", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, capsys.readouterr().err.strip()


def test_a_missing_model(monkeypatch, capsys, tmp_path):
    code, error = command(monkeypatch, capsys, tmp_path / "nowhere")
    assert code == 2
    assert "nowhere" in error
    assert "\n" not in error


def test_a_port_in_use(monkeypatch, capsys, tmp_path, completer):
    completer.save(tmp_path / "model")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, error = command(monkeypatch, capsys, tmp_path / "model", "--port", port)
    assert code == 2
    assert f"port {port}" in error
    assert "--port" in error
    assert "\n" not in error


@pytest.mark.parametrize("way", ["option", "variable", "file"])
def test_however_several_workers_are_asked_for_they_start(
    monkeypatch, capsys, tmp_path, completer, way
):
    completer.save(tmp_path / "model")
    (tmp_path / "settings.toml").write_text("workers = 2\n" if way == "file" else "")
    if way == "variable":
        monkeypatch.setenv("TELIC_SERVE_WORKERS", "2")
    started = []
    monkeypatch.setattr(
        "telic.serve.run_workers", lambda _, settings, **__: started.append(settings.workers)
    )
    options = ["--settings", tmp_path / "settings.toml", *["--workers=2"] * (way == "option")]
    assert command(monkeypatch, capsys, tmp_path / "model", *options) == (0, "")
    assert started == [2]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_no_answer_waits_for_an_acknowledgement(completer, settings, host):
    """Nagle's algorithm holds an answer's second packet back until the first is acknowledged."""
    with (
        listen(replace(settings, host=host, port=0)) as listener,
        socket.create_connection(listener.getsockname()[:2]),
        listener.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX")
@pytest.mark.parametrize("what", ["model", "titles.csv"])
def test_it_serves_until_interrupted(tmp_path, completer, what):
    if what == "model":
        completer.save(tmp_path / "model")
    else:
        (tmp_path / what).write_text("title,views\nTea,3\nsecret tea,4\n")
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", "from telic.cli import main; main()"),
            *("completion", "serve", str(tmp_path / what), "--port", "0"),
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        lines = iter(process.stderr.readline, "")
        line = next(line for line in lines if line.startswith("search box: "))
        address = line.split()[2]
        with urllib.request.urlopen(f"{address}/suggest?q=secret", timeout=30) as answer:
            assert answer.status == 200
        with pytest.raises(OSError, match=r"400|reset|Broken pipe"):  # HTTPError is one
            urllib.request.urlopen(f"{address}/suggest?q={'s' * 10_000_000}", timeout=30)
        with urllib.request.urlopen(f"{address}/healthz", timeout=30) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode in (0, 130)
    assert "Traceback" not in rest
    assert "secret" not in rest
