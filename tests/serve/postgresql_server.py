"""A PostgreSQL server of the tests' own: in a temporary folder, on loopback, as nobody special."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg


def programs():
    """Where the server's programs are, or None."""
    found = shutil.which("pg_ctl")
    folders = [Path(found).parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


class Server:
    """A server that can be started, killed and started again."""

    def __init__(self, folder, port, waits_for_disk):
        self.folder, self.port, self.waits_for_disk = folder, port, waits_for_disk
        self.url = f"postgresql+psycopg://telic@127.0.0.1:{port}/postgres"
        # The server refuses to run as root.
        self._who = {"user": "postgres", "group": "postgres", "extra_groups": []}
        if os.geteuid() != 0:
            self._who = {}
        else:
            shutil.chown(folder, "postgres", "postgres")

    def call(self, program, *arguments):
        """Start a program of the server's; the process is our child, which leaves no zombie."""
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [programs() / program, "-D", self.folder / "data", *arguments],
                stdout=log, stderr=log, cwd=self.folder, **self._who,
            )  # fmt: skip

    def create(self):
        done = self.call(
            "initdb", "--username=telic", "--auth=trust", "--no-sync", "--encoding=UTF8"
        )
        if done.wait(60):
            raise RuntimeError((self.folder / "log").read_text())

    def start(self):
        # Processes are killed here, not the machine: the system keeps what they wrote.
        options = [] if self.waits_for_disk else ["-F"]
        options += ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]
        self._process = self.call("postgres", "-p", str(self.port), *options)
        end = time.monotonic() + 60
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError((self.folder / "log").read_text())
            time.sleep(0.02)

    def _answers(self):
        try:
            psycopg.connect(self.url.replace("+psycopg", "")).close()
        except psycopg.OperationalError:
            return False
        return True

    def kill(self):
        """Kill it and all its processes with signal 9."""
        pid = self._process.pid
        others = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for each in (pid, *map(int, others)):
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        self._process.wait()


@contextmanager
def running(*, waits_for_disk: bool = False) -> Iterator[Server]:
    if os.geteuid() == 0:
        pwd.getpwnam("postgres")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="telic-postgresql-"))
    server = Server(folder, port, waits_for_disk)
    try:
        server.create()
        server.start()
        try:
            yield server
        finally:
            server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
