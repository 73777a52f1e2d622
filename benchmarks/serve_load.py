"""How fast the service answers under load: 1, 16 and 32 connections, titles alone and with bodies, writes meanwhile.

Command: ``python -m benchmarks.serve_load [--seconds S] [--steady S] [--workers N]``. The forum holds all
Reddit questions. ``--mixed`` measures one thing alone, on the first 5,000: 64 clients search and write in turn for a
minute; then the service is stopped, and every write that it acknowledged is looked for. The service is a process of its
own; the client, asyncio with connections that stay open, is this one, on the same machine: both share its cores. Each
search is a question of the forum, with the library's own time for the same beside it. At the end such searches go on
for minutes, while memory is watched.

Connections that ask again at once measure what the service can do: with n of them, and r answers a second, each waits
n / r seconds on average, however fast a search is. So 16 also ask at random moments, at the rates of ``PACES`` in all,
and an answer's time counts from the moment when its request was due.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from recipes.folders import WORK

from askalike import Forum, Query
from benchmarks.record import create_reddit_forum, option_parser, percentiles, reddit_forum, write
from benchmarks.serving import Running, handles, memory_mb, serving

COMMAND = "python -m benchmarks.serve_load"
CONNECTIONS = (1, 16, 32)
WRITES_PER_S = (0, 20)
PACES = (50, 100, 150)
"""Searches a second of 16 connections together, by title."""
WRITERS = 32
"""Connections that write: enough for the wanted rate even if each answer takes a second."""
STEADY = ("title", 16, 20)
"""The load while memory is watched: kind of search, connections, writes a second."""
KINDS = ("title", "title and body")
SAMPLED = 500
LIBRARY = 200
K = 10
CLIENTS, MIXED_QUESTIONS, MIXED_S = 64, 5_000, 60.0
WRITE_EVERY = 4
"""Of the requests of one of the 64 clients, every fourth is a write."""


@dataclass
class Tally:
    """What came of one measurement.

    Args:
        seconds, writes: how long each search and each write took.
        statuses: of the answers.
        stored: question → its title as acknowledged last, or None once it was deleted.
    """

    seconds: list[float] = field(default_factory=list)
    writes: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    memory_mb: list[tuple[float, float]] = field(default_factory=list)
    stored: dict[str, str | None] = field(default_factory=dict)

    @property
    def refused(self) -> int:
        """Return how many answers were not 200."""
        return self.statuses.total() - self.statuses[200]


class Connection:
    """One HTTP connection that stays open."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ask(self, method: str, path: str, body: bytes) -> int:
        """Send a request; return the status once the whole answer is there."""
        if self._writer is None or self._reader is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        status = int((await self._reader.readuntil(b"\r\n")).split()[1])
        length, is_kept = 0, True
        while (line := await self._reader.readuntil(b"\r\n")) != b"\r\n":
            name, _, value = line.lower().partition(b":")
            if name == b"content-length":
                length = int(value)
            is_kept &= (name, value.strip()) != (b"connection", b"close")
        await self._reader.readexactly(length)
        if not is_kept:  # the next one may come to another worker
            self.close()
            self._reader = self._writer = None
        return status

    def close(self) -> None:
        """Close it."""
        if self._writer is not None:
            self._writer.close()


async def measure(
    running: Running, bodies: Sequence[bytes], connections: int, writes_per_s: int, seconds: float, pace: float = 0
) -> Tally:
    """Search over some connections for a time, while others write at a rate.

    Args:
        pace: searches a second of all connections; 0 for as many as are answered.
    """
    tally = Tally()
    end = time.perf_counter() + seconds

    async def search(seed: int) -> None:
        chance, connection = random.Random(seed), Connection(running.port)
        began = time.perf_counter()
        while began < end:
            if pace:
                began += chance.expovariate(pace / connections)
                await asyncio.sleep(max(0.0, began - time.perf_counter()))
            else:
                began = time.perf_counter()
            status = await connection.ask("POST", "/v1/similar", chance.choice(bodies))
            tally.seconds.append(time.perf_counter() - began)
            tally.statuses[status] += 1
        connection.close()

    async def change(writer: int) -> None:
        connection, number = Connection(running.port), 0
        began = time.perf_counter()
        while time.perf_counter() < end:
            number += 1
            title = f"written while searched {time.time_ns()}"  # one that was written before would be no change
            body = json.dumps({"title": title, "body": "some words of text " * 10})
            before = time.perf_counter()
            status = await connection.ask("PUT", f"/v1/questions/load-{writer}-{number % 100}", body.encode())
            tally.writes.append(time.perf_counter() - before)
            tally.statuses[status] += 1
            await asyncio.sleep(max(0.0, began + number * WRITERS / writes_per_s - time.perf_counter()))
        connection.close()

    async def watch() -> None:
        while time.perf_counter() < end:
            tally.memory_mb.append(memory_mb(running.process.pid))
            await asyncio.sleep(1)

    changes = [change(writer) for writer in range(WRITERS)] if writes_per_s else []
    await asyncio.gather(watch(), *changes, *(search(seed) for seed in range(connections)))
    return tally


async def search_and_write(port: int, bodies: Sequence[bytes], seconds: float) -> Tally:
    """Let 64 clients search, add, edit and delete, each over one connection."""
    tally, end = Tally(), time.perf_counter() + seconds

    async def be_client(client: int) -> None:
        chance, connection, own = random.Random(client), Connection(port), list[str]()
        for number in range(1_000_000):
            began = time.perf_counter()
            if began > end:
                break
            if number % WRITE_EVERY:
                status = await connection.ask("POST", "/v1/similar", chance.choice(bodies))
                tally.seconds.append(time.perf_counter() - began)
            else:
                name = chance.choice(own) if own and chance.random() < 0.5 else f"c{client}-{number}"
                title = None if name in own and chance.random() < 0.4 else f"written by {client} as number {number}"
                method, body = ("DELETE", b"") if title is None else ("PUT", json.dumps({"title": title}).encode())
                status = await connection.ask(method, f"/v1/questions/{name}", body)
                tally.writes.append(time.perf_counter() - began)
                if status == 200:
                    tally.stored[name] = title
                    own = [*{*own, name}] if title is not None else [other for other in own if other != name]
            tally.statuses[status] += 1
        connection.close()

    await asyncio.gather(*map(be_client, range(CLIENTS)))
    return tally


def lost_writes(forum: Forum, stored: Mapping[str, str | None]) -> list[str]:
    """Return the questions that are not as they were acknowledged last, or that a search does not find."""
    titles = {question.id: question.title for question in forum.questions()}
    wrong = [name for name, title in stored.items() if titles.get(name) != title]
    drawn = random.Random(0).sample(sorted(stored.items()), min(200, len(stored)))
    return wrong + [
        name
        for name, title in drawn
        if title is not None and name not in dict(forum.indexes.ranking(Query(title, k=20, ranker="words")))
    ]


def measure_mixed(workers: int) -> dict[str, object]:
    """Return what came of 64 clients that searched and wrote for a minute."""
    folder = WORK / "serve" / "mixed.forum"
    with create_reddit_forum(folder, MIXED_QUESTIONS) as forum:
        bodies = requests(forum, "title")
    with serving(folder, "--workers", str(workers)) as running:
        asyncio.run(search_and_write(running.port, bodies, 5.0))  # caches, lazily read files
        before = {"memory_mb": memory_mb(running.process.pid), "handles": handles(running.process.pid)}
        tally = asyncio.run(search_and_write(running.port, bodies, MIXED_S))
        after = {"memory_mb": memory_mb(running.process.pid), "handles": handles(running.process.pid)}
    with Forum.open(folder) as forum:
        wrong = lost_writes(forum, tally.stored)
    return {
        "clients": CLIENTS,
        "seconds": MIXED_S,
        "workers": workers,
        "questions": MIXED_QUESTIONS,
        "searches": {**percentiles(tally.seconds), "count": len(tally.seconds)},
        "writes": {**percentiles(tally.writes), "count": len(tally.writes)},
        "statuses": {str(status): count for status, count in sorted(tally.statuses.items())},
        "lost_or_wrong": len(wrong),
        "such_as": wrong[:3],
        "before": before,
        "after": after,
    }


def row(tally: Tally, seconds: float) -> dict[str, object]:
    """Return a measurement's row of the result."""
    searches: dict[str, object] = {
        **percentiles(tally.seconds),
        "per_s": round(len(tally.seconds) / seconds, 1),
        "refused": tally.refused,
    }
    if not tally.writes:
        return searches
    return {**searches, "write": {**percentiles(tally.writes), "per_s": round(len(tally.writes) / seconds, 1)}}


def requests(forum: Forum, kind: str) -> list[bytes]:
    """Return searches for some questions of the forum."""
    questions = random.Random(0).sample(list(forum.questions()), min(SAMPLED, len(forum)))
    return [
        json.dumps(
            {"title": question.title[:1000] or "?", "k": K}
            | ({"body": question.body[:200_000], "markup": question.markup} if kind == "title and body" else {})
        ).encode()
        for question in questions
    ]


def library(forum: Forum, bodies: Sequence[bytes]) -> dict[str, float]:
    """Return how long the library takes for the same searches, in this process."""
    seconds: list[float] = []
    for body in bodies[:LIBRARY]:
        search = json.loads(body)
        began = time.perf_counter()
        query = Query(search["title"], search.get("body", ""), search.get("markup", "plain"), K, is_canonical=True)
        forum.search(query)
        seconds.append(time.perf_counter() - began)
    return percentiles(seconds)


def copied() -> Path:
    """Return a copy of the forum, to which the clients write."""
    copy = WORK / "serve" / "reddit.forum"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(reddit_forum(), copy)
    return copy


def main() -> None:
    """Measure every combination and write the result."""
    parser = option_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--steady", type=float, default=600.0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--mixed", action="store_true", help="64 clients that search and write, alone")
    options = parser.parse_args()
    if options.mixed:
        write("serve-mixed", " ".join([COMMAND, *sys.argv[1:]]), measure_mixed(options.workers))
        return
    folder = copied()
    with Forum.open(folder) as forum:
        bodies = {kind: requests(forum, kind) for kind in KINDS}
        alone = {kind: library(forum, of_kind) for kind, of_kind in bodies.items()}
        size = len(forum)
    rows: dict[str, dict[str, object]] = {}
    with serving(folder, "--workers", str(options.workers)) as running:
        asyncio.run(measure(running, bodies["title"], 4, 0, min(5.0, options.seconds)))  # caches, lazily read files
        for kind in KINDS:
            for connections in CONNECTIONS:
                for writes in WRITES_PER_S:
                    tally = asyncio.run(measure(running, bodies[kind], connections, writes, options.seconds))
                    name = f"{kind}, {connections} connections, {writes} writes/s"
                    rows[name] = row(tally, options.seconds)
                    print(name, rows[name], flush=True)
        paced: dict[str, dict[str, object]] = {}
        for pace in PACES:
            tally = asyncio.run(measure(running, bodies["title"], 16, 0, options.seconds, pace))
            paced[str(pace)] = row(tally, options.seconds)
            print(f"title, 16 connections, {pace} searches/s", paced[str(pace)], flush=True)
        kind, connections, writes = STEADY
        tally = asyncio.run(measure(running, bodies[kind], connections, writes, options.steady))
        steady = row(tally, options.steady) | {"memory_mb_each_second": tally.memory_mb}
        print("steady", steady, flush=True)
    write(
        "serve-load",
        " ".join([COMMAND, *sys.argv[1:]]),
        {
            "questions": size,
            "workers": options.workers,
            "seconds_each": options.seconds,
            "library": alone,
            "service": rows,
            "paced": paced,
            "steady": {"asked": STEADY, "seconds": options.steady, **steady},
        },
    )


if __name__ == "__main__":
    main()
