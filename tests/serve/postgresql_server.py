"""A PostgreSQL server of the tests' own: in a temporary folder, on loopback, as nobody special."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def programs():
    """Where the server's programs are, or None."""
    found = shutil.which("pg_ctl")
    folders = [Path(found).parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


class Server:
    """A server that can be started, killed and started again."""

    def __init__(self, folder, port):
        self.folder, self.port = folder, port
        self.url = f"postgresql+psycopg://telic@127.0.0.1:{port}/postgres"
        # The server refuses to run as root.
        self._who = {"user": "postgres", "group": "postgres", "extra_groups": []}
        if os.geteuid() != 0:
            self._who = {}
        else:
            shutil.chown(folder, "postgres", "postgres")

    def call(self, program, *arguments):
        subprocess.run(
            [programs() / program, "-D", self.folder / "data", *arguments],
            check=True, timeout=60, stdout=subprocess.DEVNULL, cwd=self.folder, **self._who,
        )  # fmt: skip

    def create(self):
        self.call("initdb", "--username=telic", "--auth=trust", "--no-sync", "--encoding=UTF8")

    def start(self):
        # Processes are killed here, not the machine: the system keeps what they wrote.
        options = f"-F -p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories="
        self.call("pg_ctl", "-w", "-l", self.folder / "log", "-o", options, "start")

    def kill(self):
        """End it as a crash would, by the process id in its folder."""
        self.call("pg_ctl", "-w", "-m", "immediate", "stop")


@contextmanager
def running() -> Iterator[Server]:
    if os.geteuid() == 0:
        pwd.getpwnam("postgres")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="telic-postgresql-"))
    server = Server(folder, port)
    try:
        server.create()
        server.start()
        try:
            yield server
        finally:
            server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
