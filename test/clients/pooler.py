"""A PgBouncer in transaction mode, in front of the server of PGHOST."""

import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

# Only a part of the socket's name: no TCP port is opened.
PORT = "6432"

CONFIG = """
[databases]
* = host={host} port={port}

[pgbouncer]
pool_mode = transaction
listen_addr =
listen_port = {own_port}
unix_socket_dir = {folder}
auth_type = trust
auth_file = {folder}/users.txt
pidfile = {folder}/pgbouncer.pid
logfile = {folder}/pgbouncer.log
"""


class Pooler:
    """A pooler that runs in a folder of its own; host and port are where it listens."""

    def __init__(self):
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="pooler."))
        self.host, self.port = str(self._folder), PORT
        config = self._folder / "pgbouncer.ini"
        config.write_text(
            CONFIG.format(
                host=os.environ["PGHOST"],
                port=os.environ["PGPORT"],
                own_port=PORT,
                folder=self._folder,
            )
        )
        (self._folder / "users.txt").write_text(f'"{os.environ["PGUSER"]}" ""\n')
        program = shutil.which("pgbouncer", path=os.environ["PATH"] + ":/usr/sbin")
        self._process = subprocess.Popen(
            [program, "-q", config], cwd=self._folder, stderr=subprocess.DEVNULL
        )
        self._wait()

    def _wait(self):
        """Wait until it listens."""
        limit = time.monotonic() + 60
        while True:
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(f"{self.host}/.s.PGSQL.{PORT}")
                    return
                except OSError:
                    log = self._folder / "pgbouncer.log"
                    assert self._process.poll() is None and time.monotonic() < limit, (
                        log.read_text() if log.exists() else "pgbouncer did not start"
                    )
            time.sleep(0.02)

    def close(self):
        self._process.terminate()
        self._process.wait()
        shutil.rmtree(self._folder)
