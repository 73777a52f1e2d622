"""A real MariaDB server for tests, of the system's own package; one for all, a database for each test."""

from __future__ import annotations

import atexit
import getpass
import itertools
import shutil
import socket
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest

READER = "reader"
PASSWORD = "let me read"
_numbers = itertools.count()


@cache
def server_port() -> int:
    """Start the server at the first call; return its port."""
    pytest.importorskip("pymysql", reason="PyMySQL is not installed")
    programs = [
        shutil.which(one, path="/usr/sbin:/usr/bin:/usr/local/bin") for one in ("mariadbd", "mariadb-install-db")
    ]
    if None in programs:
        pytest.skip("mariadbd and mariadb-install-db are not installed (Debian: mariadb-server)")
    server, install = map(str, programs)
    folder = Path(tempfile.mkdtemp(prefix="askalike-mariadb-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    own = ["--no-defaults", f"--datadir={folder / 'data'}", f"--user={getpass.getuser()}"]
    made = subprocess.run(
        [install, *own, "--auth-root-authentication-method=normal", "--skip-test-db"], capture_output=True, text=True
    )
    if made.returncode:
        pytest.skip(f"mariadb-install-db failed: {made.stderr[-300:]}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    more = ["--innodb-buffer-pool-size=16M", "--innodb-flush-log-at-trx-commit=0", "--skip-name-resolve"]
    more += [
        "--bind-address=127.0.0.1",
        f"--port={port}",
        f"--socket={folder / 'socket'}",
        f"--pid-file={folder / 'pid'}",
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([server, *own, *more], stdout=log, stderr=log)
    atexit.register(_end, process)
    until_s = time.monotonic() + 60
    while True:
        try:
            with connected(port, "root", "") as connection, connection.cursor() as cursor:
                cursor.execute(f"CREATE USER {READER}@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'")
                cursor.execute(f"GRANT SELECT ON `forum%`.* TO {READER}@'127.0.0.1'")
            return port
        except OSError as error:
            if process.poll() is not None or time.monotonic() > until_s:
                raise AssertionError((folder / "log").read_text()[-2_000:]) from error
            time.sleep(0.1)


def connected(port: int, user: str, password: str, database: str | None = None) -> Any:
    """Return a connection; what it cannot reach is an OSError."""
    import pymysql

    try:
        return pymysql.connect(
            host="127.0.0.1", port=port, user=user, password=password, database=database, autocommit=True
        )
    except pymysql.OperationalError as error:
        raise OSError(str(error)) from error


def new_database() -> tuple[str, Any]:
    """Return the address at which a reader asks a new, empty database, and a connection that may write."""
    port = server_port()
    name = f"forum{next(_numbers)}"
    with connected(port, "root", "") as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    return f"mysql://{READER}@127.0.0.1:{port}/{name}", connected(port, "root", "", name)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
