"""The files in deploy/: an nginx before the service; settings and a unit that can be read."""

import configparser
import http.client
import json
import shutil
import socket
import ssl
import subprocess
import time
import tomllib
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from telic.serve import Settings, serving
from telic.serve.callers.tenant_keys import add_key
from telic.serve.operation.settings_sources import read_settings, split_options

DEPLOY = Path(__file__).parents[2] / "deploy"
NGINX = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
NAME = "search.shop.example"
CONF = """
daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1;
events {{ worker_connections 64; }}
http {{
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  {server}
}}
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@contextmanager
def nginx(folder, upstream):
    """Run the example as it is but for ports and files; give its port."""
    port = free_port()
    certificate = ["-subj", f"/CN={NAME}", "-keyout", folder / "key.pem", "-out", folder / "c.pem"]
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"),
            *("ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", *certificate),
        ],
        check=True,
        capture_output=True,
    )
    server = (DEPLOY / "nginx.conf").read_text()
    for old, new in (
        ("server 127.0.0.1:8000;", f"server 127.0.0.1:{upstream};"),
        ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
        (f"/etc/ssl/{NAME}.pem", f"{folder}/c.pem"),
        (f"/etc/ssl/{NAME}.key", f"{folder}/key.pem"),
        ("/var/log/nginx/telic.log", f"{folder}/telic.log"),
    ):
        assert old in server
        server = server.replace(old, new)
    (folder / "nginx.conf").write_text(CONF.format(folder=folder, server=server))
    process = subprocess.Popen([NGINX, "-p", folder, "-c", folder / "nginx.conf"])
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, (folder / "error.log").read_text()
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.skipif(NGINX is None, reason="no nginx here: apt-get install nginx")
def test_behind_nginx_with_a_key(completer, tmp_path):
    tmp_path.chmod(0o755)
    key = add_key(tmp_path / "keys.toml", "shop")
    settings = Settings.beside(tmp_path / "model", port=0, keys=str(tmp_path / "keys.toml"))
    settings = replace(settings, names=(NAME,), rate=0.01, burst=2)
    with (
        serving(completer, settings) as address,
        nginx(tmp_path, int(address.rpartition(":")[2])) as port,
    ):
        trusted = ssl.create_default_context(cafile=tmp_path / "c.pem")
        trusted.check_hostname = False

        def ask(path, **headers):
            connection = http.client.HTTPSConnection("127.0.0.1", port, context=trusted, timeout=30)
            connection.request("GET", path, headers={"Host": NAME, **headers})
            answer = connection.getresponse()
            body = answer.read()
            connection.close()
            return answer, body

        answer, body = ask("/suggest?q=sal", Authorization=f"Bearer {key}")
        assert answer.status == 200
        assert json.loads(body)[3][0] == f"https://{NAME}/search?q=salmon"
        assert answer.headers["strict-transport-security"]
        # Whatever a client says of its address, its requests are one client's.
        statuses = [
            ask("/suggest?q=secret", **{"X-Forwarded-For": f"192.0.2.{i}"})[0] for i in "123"
        ]
        assert [answer.status for answer in statuses] == [401, 401, 429]
        assert ask("/metrics", Authorization=f"Bearer {key}")[0].status == 404
        assert ask("/livez", Host="evil.example")[0].status == 400
    logs = "".join(file.read_text() for file in tmp_path.glob("*.log"))
    assert "secret" not in logs


def test_the_settings_file_holds_settings():
    given = tomllib.loads((DEPLOY / "settings.toml").read_text())
    settings, sources = read_settings("box", (), {}, DEPLOY / "settings.toml")
    assert set(sources) == set(given)
    assert settings.names == (NAME,)


def test_the_units_command_can_be_read():
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str
    unit.read(DEPLOY / "telic.service")
    program, *words = unit["Service"]["ExecStart"].split()
    assert Path(program).name == "telic"
    assert words[:2] == ["completion", "serve"]
    assert [word for word in words if word.startswith("--")] == ["--settings"]
    command = (DEPLOY / "Containerfile").read_text().partition('CMD ["/data')[2].split("]")[0]
    models, options = split_options([each.strip(' "') for each in f"/data{command}".split(",")])
    assert models == ["/data/box"]
    assert read_settings("box", options).settings.keys == "/data/keys.toml"
