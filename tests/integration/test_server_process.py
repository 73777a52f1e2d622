"""The service as a process: what it acknowledged is there after it was killed, and every worker sees each change."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

import pytest
from tests.postgres_server import new_database

from askalike import Forum, Question
from askalike.client import Client, ServiceError
from askalike.server.guards import Keys

pytestmark = pytest.mark.slow

START_S = 120.0


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@contextmanager
def serving(
    folder: Path, *options: str, before: str = "", meanwhile: Callable[[Client], None] | None = None, **more: str
) -> Iterator[tuple[subprocess.Popen[bytes], Client]]:
    """Serve a forum in a process of its own until the end; give it once it is ready.

    Args:
        before: what its shell does before.
        meanwhile: is called once it answers, before it is ready.
        more: of its environment.
    """
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "askalike.cli.main",
        "serve",
        str(folder),
        "--port",
        str(port),
        "--log-json",
        *options,
    ]
    if before:
        command = ["sh", "-c", f'{before}; exec "$@"', "sh", *command]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **more}
    with (folder.parent / "log").open("ab") as log:
        process = subprocess.Popen(command, stderr=log, stdout=log, env=environment, start_new_session=True)
    client = Client(f"http://127.0.0.1:{port}")
    try:
        end = time.monotonic() + START_S
        while True:
            try:
                client.ready()
                break
            except ServiceError as error:
                assert process.poll() is None, (folder.parent / "log").read_text()
                if meanwhile is not None and error.status:
                    meanwhile, call = None, meanwhile
                    call(client)
                assert time.monotonic() < end, "the service did not become ready"
                time.sleep(0.05)
        yield process, client
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(START_S)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Forum.create(tmp_path / "f.forum") as forum:
        forum.add([Question("1", "Wifi drops at night"), Question("2", "Printer prints blank pages")])
    return tmp_path / "f.forum"


def test_what_was_acknowledged_survives_a_kill(folder: Path) -> None:
    acknowledged: list[str] = []
    with serving(folder, "--rate", "0") as (process, client):

        def write() -> None:
            number = 0
            while True:
                number += 1
                try:
                    client.put(f"n{number}", f"Toaster number {number}")
                    acknowledged.append(f"n{number}")
                except ServiceError:
                    return

        writer = threading.Thread(target=write)
        writer.start()
        while len(acknowledged) < 20:
            assert writer.is_alive()
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait(START_S)
        writer.join(30)
    with serving(folder) as (process, client):
        assert [identifier for identifier in acknowledged if client.question(identifier).id != identifier] == []
        hits = client.similar("toaster number 1", k=100).hits
        assert f"n{1}" in {hit.question.id for hit in hits}
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(START_S) in (0, -signal.SIGTERM)
    with Forum.open(folder) as forum:
        assert forum.indexes.behind() == 0
        assert len(forum) >= 2 + len(acknowledged)


def test_every_worker_sees_each_change_at_once(folder: Path) -> None:
    with serving(folder, "--workers", "2", "--rate", "0") as (_, client):
        workers: set[int] = set()
        end = time.monotonic() + START_S
        requests = 0
        while len(workers) < 2:  # the second may still be starting
            assert time.monotonic() < end
            client.close()  # a new connection, which any worker may take
            workers.add(client.status().service.worker_pid)
            requests += 1

        def first(title: str) -> set[str]:
            return {client.similar(title, k=1).hits[0].question.title for _ in range(10)}

        assert client.put("new", "Toaster burns").indexed
        assert first("toaster burns") == {"Toaster burns"}
        client.put("new", "Kettle leaks")
        assert first("kettle leaks") == {"Kettle leaks"}
        counted = f'askalike_requests_total{{route="GET /v1/status",status="200"}} {requests}.0\n'
        for _ in range(10):  # whichever worker is asked
            assert counted in client.metrics()
        client.delete("new")
        assert first("kettle leaks at night") == {"Wifi drops at night"}


def test_workers_serve_a_folder_of_forums_together(tmp_path: Path) -> None:
    for name, title in (("travel", "Visa for a layover"), ("cooking", "Rice sticks to the pan")):
        with Forum.create(tmp_path / "network" / name) as forum:
            forum.add([Question("1", title)])
    with serving(tmp_path / "network", "--workers", "2", "--rate", "0") as (process, root):
        travel, cooking = (Client(f"{root.address}/{name}") for name in ("travel", "cooking"))
        for number in range(10):  # whichever worker is asked
            travel.put(f"new {number}", f"Toaster number {number}")
            assert travel.similar(f"toaster number {number}", k=1).hits[0].question.id == f"new {number}"
            assert [hit.question.title for hit in cooking.similar("rice sticks").hits] == ["Rice sticks to the pan"]
        counted = root.metrics()
        assert 'askalike_requests_total{forum="travel",route="POST /v1/similar",status="200"} 10.0' in counted
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(START_S) in (0, -signal.SIGTERM)


def test_workers_end_with_their_parent_and_leave_nothing(folder: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with serving(folder, "--workers", "2", "--rate", "0", TMPDIR=str(temporary)) as (process, client):
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        if not children.exists():
            pytest.skip("this system does not tell a process's children")
        workers = {int(pid) for pid in children.read_text().split()}
        process.kill()
        process.wait(START_S)
        end = time.monotonic() + START_S
        while any(Path(f"/proc/{pid}").exists() for pid in workers):
            assert time.monotonic() < end, "a worker went on without its parent"
            time.sleep(0.05)
        with pytest.raises(ServiceError):
            client.status()
    assert list(temporary.iterdir()) == []


def test_a_worker_that_was_killed_is_started_again(folder: Path) -> None:
    with serving(folder, "--workers", "2", "--rate", "0") as (process, client):
        first = client.status().service.worker_pid
        os.kill(first, signal.SIGKILL)
        workers: set[int] = set()
        end = time.monotonic() + START_S
        while len(workers - {first}) < 2:
            assert time.monotonic() < end
            client.close()
            try:
                workers.add(client.status().service.worker_pid)
            except ServiceError:
                continue  # it was killed while it answered
        process.terminate()
        assert process.wait(START_S) in (0, -signal.SIGTERM)


def test_more_connections_than_file_handles_end_nothing_and_fill_no_log(folder: Path) -> None:
    with serving(folder, "--rate", "0", before="ulimit -n 320") as (_, client):
        silent = [socket.create_connection(("127.0.0.1", int(client.address.rsplit(":", 1)[1]))) for _ in range(400)]
        try:
            assert all(client.question("1").id == "1" for _ in range(20))
        finally:
            for connection in silent:
                connection.close()
        assert client.question("1").id == "1"
    lines = (folder.parent / "log").read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    assert len([entry for entry in entries if entry["level"] != "info"]) <= 10
    assert len(lines) < 100


def test_with_few_file_handles_requests_wait_and_nothing_acknowledged_is_lost(folder: Path) -> None:
    acknowledged, statuses = set[str](), Counter[int]()

    def ask(number: int) -> None:
        for turn in range(8):
            name = f"n{number}-{turn}"
            with Client(client.address) as own:  # a new connection each time
                try:
                    if (number + turn) % 3:
                        own.similar("wifi drops")
                    else:
                        own.put(name, f"Toaster number {number} {turn}")
                        acknowledged.add(name)
                except ServiceError as error:
                    statuses[error.status] += 1

    with serving(folder, "--rate", "0", before="ulimit -n 64") as (_, client):
        with ThreadPoolExecutor(24) as threads:
            list(threads.map(ask, range(24)))
        assert client.similar("wifi drops").hits
    assert set(statuses) <= {0, 503}, statuses
    assert "Traceback" not in (folder.parent / "log").read_text()
    with Forum.open(folder) as forum:
        assert acknowledged <= {question.id for question in forum.questions()}
    assert Forum.check(folder).is_sound


def test_more_forums_than_file_handles_are_all_answered(tmp_path: Path) -> None:
    folder, names = tmp_path / "network", [f"f{number}" for number in range(30)]
    with Forum.create(folder / names[0]) as forum:
        forum.add([Question("1", "Wifi drops at night")])
    for name in names[1:]:
        shutil.copytree(folder / names[0], folder / name)
    with serving(folder, "--rate", "0", before="ulimit -n 320") as (_, client):
        for name in names:
            with Client(f"{client.address}/{name}") as forum:
                assert forum.similar("wifi at night").hits, name
                forum.put("2", "Printer vanishes")
    lines = (tmp_path / "log").read_text().splitlines()
    entries = [entry["message"] for entry in map(json.loads, lines) if entry["level"] != "info"]
    assert entries == ["2 forums are open at once in place of 100: file handles are few"]


@pytest.fixture
def away(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path, str]:
    """Return a forum whose database is away, the link that brings it back, and where that has to lead."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    first, server = new_database().split("host=")
    place, *more = server.split("&", 1)
    sockets = tmp_path / "pg"
    sockets.symlink_to(unquote(place))
    with Forum.attach(tmp_path / "there.forum", "&".join([f"{first}host={sockets}", *more])) as forum:
        forum.add(Question("1", "Wifi drops at night"))
    sockets.unlink()
    return tmp_path / "there.forum", sockets, unquote(place)


def is_put(client: Client) -> bool:
    try:
        client.put("2", "Scanner hums")
    except ServiceError:
        return False
    return True


@pytest.mark.parametrize("workers", [1, 2])
def test_a_service_that_starts_before_its_database_refuses_until_it_answers(
    away: tuple[Path, Path, str], workers: int
) -> None:
    forum, sockets, place = away

    def bring_back(client: Client) -> None:
        with pytest.raises(ServiceError, match=str(sockets)) as refused:
            client.ready()
        assert refused.value.status == 503
        with pytest.raises(ServiceError, match=str(sockets)):
            client.put("2", "Scanner hums")
        assert client.health()
        sockets.symlink_to(place)

    with serving(forum, "--workers", str(workers), meanwhile=bring_back) as (process, client):
        end = time.monotonic() + START_S
        while not is_put(client):  # the other worker may still wait
            assert time.monotonic() < end, "a worker did not become ready"
        assert {hit.question.id for hit in client.similar("wifi scanner").hits} == {"1", "2"}
        process.send_signal(signal.SIGTERM)
        process.wait(START_S)
    assert "not open: " in (forum.parent / "log").read_text()


def test_a_service_that_waits_for_its_database_can_be_stopped(away: tuple[Path, Path, str]) -> None:
    forum, _, _ = away

    class Stopped(Exception):
        pass

    def stop(client: Client) -> None:
        assert client.health()
        raise Stopped

    with pytest.raises(Stopped), serving(forum, meanwhile=stop):
        pass
    assert "Traceback" not in (forum.parent / "log").read_text()


def test_two_servers_of_one_database_take_the_same_keys_and_see_each_others_changes(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    database = new_database()
    _, secret = Keys(folder).add("writer", "write")
    forums = []
    for name in ("one", "two"):  # each in a folder of its own, with the keys there first
        (tmp_path / name / "f.forum").mkdir(parents=True)
        shutil.copy(folder / "keys.json", tmp_path / name / "f.forum")
        Forum.attach(tmp_path / name / "f.forum", database).close()
        forums.append(tmp_path / name / "f.forum")
    with serving(forums[0], "--open-read") as (_, first), serving(forums[1], "--open-read") as (_, two):
        with pytest.raises(ServiceError, match="key"):
            first.put("9", "Scanner hums")
        for client, name, title in ((first, "9", "Scanner hums"), (two, "8", "Toaster burns")):
            Client(client.address, secret).put(name, title)
        for client in (first, two):
            end = time.monotonic() + START_S
            while {"8", "9"} - {hit.question.id for hit in client.similar("scanner hums toaster burns").hits}:
                assert time.monotonic() < end, "a change of the other server was not found"
                time.sleep(0.1)
