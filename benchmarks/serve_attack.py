"""Hostile requests against a service, and how a client fares that searches meanwhile.

Command: ``python -m benchmarks.serve_attack [--seconds S]``. The forum holds the first 5,000 Reddit questions. The
service is a process of its own with the default rate and 1,024 file handles; it listens on the loopback alone, where
each attacker has an address of its own (127.0.0.2 and on), as strangers would. Each attack goes on for S seconds,
over a bounded number of connections. The healthy client is a third process: it searches for questions of the forum,
every second time over a new connection, and its slowest answers show how much of the service the attack takes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import random
import resource
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

from recipes.folders import WORK

from askalike.client import Client
from askalike.operations import OPERATIONS
from benchmarks.record import create_reddit_forum, option_parser, percentiles, write
from benchmarks.serve_load import Connection, requests
from benchmarks.serving import memory_mb, serving

COMMAND = "python -m benchmarks.serve_attack"
QUESTIONS = 5_000
HANDLES = 1_024
SILENT = 1_100
PAUSE_S = 0.02
"""Between two searches of the healthy client."""
LONGEST_S = 15.0
"""A search that takes longer counts as an error."""
ATTACKERS = 8
"""Addresses that an attack comes from, each with a rate of its own."""

HEAD = b"Host: 127.0.0.1\r\nContent-Type: application/json\r\n"


class Attack:
    """What an attacker does: connections to open, and what came of them.

    Args:
        port: of the service.
        seconds: how long the attack goes on.
    """

    def __init__(self, port: int, seconds: float) -> None:
        self._port = port
        self.end = time.monotonic() + seconds
        self.seen: Counter[str] = Counter()

    @property
    def goes_on(self) -> bool:
        """Return whether there is time left."""
        return time.monotonic() < self.end

    async def connect(self, number: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection from one of the attackers' addresses."""
        address = (f"127.0.0.{2 + number % ATTACKERS}", 0)
        self.seen["connections"] += 1
        return await asyncio.wait_for(
            asyncio.open_connection("127.0.0.1", self._port, local_addr=address), max(0.1, self.end - time.monotonic())
        )

    async def status(self, reader: asyncio.StreamReader) -> str:
        """Return the status of an answer whose body is left unread, or what came instead of one."""
        try:
            line = await asyncio.wait_for(reader.readline(), max(0.1, self.end - time.monotonic()))
        except TimeoutError:
            return "no answer in time"
        return line.split()[1].decode() if line.startswith(b"HTTP/1.1 ") else "closed"

    async def many(self, count: int, act: Callable[[int], Awaitable[None]]) -> None:
        """Run ``count`` of an action at once until the end."""

        async def bounded(number: int) -> None:
            try:
                async with asyncio.timeout(self.end - time.monotonic() + 2):
                    await act(number)
            except (OSError, TimeoutError, asyncio.IncompleteReadError):
                self.seen["cut"] += 1

        await asyncio.gather(*map(bounded, range(count)))

    async def send(self, number: int, content: bytes) -> None:
        """Send the same over new connections until the end, reading a status each time."""
        while self.goes_on:
            with contextlib.suppress(OSError, TimeoutError):
                reader, writer = await self.connect(number)
                try:
                    writer.write(content)
                    self.seen[await self.status(reader)] += 1
                finally:
                    writer.close()


async def keep_open(attack: Attack, number: int, first: bytes, drop: bytes, every_s: float) -> None:
    """Keep a connection that sends something small from time to time, and open another when it is closed."""
    while attack.goes_on:
        with contextlib.suppress(OSError, TimeoutError):
            reader, writer = await attack.connect(number)
            try:
                writer.write(first)
                while attack.goes_on and not reader.at_eof():
                    if drop:
                        writer.write(drop)
                        await writer.drain()
                    with contextlib.suppress(TimeoutError):
                        content = await asyncio.wait_for(reader.read(999), every_s)
                        attack.seen["answered" if content else "closed"] += 1
            finally:
                writer.close()


async def silent(attack: Attack) -> None:
    await attack.many(SILENT, lambda number: keep_open(attack, number, b"", b"", 1.0))


async def slow_heads(attack: Attack) -> None:
    await attack.many(600, lambda number: keep_open(attack, number, b"GET /healthz HTTP/1.1\r\n", b"a: b\r\n", 1.0))


async def slow_bodies(attack: Attack) -> None:
    first = b"POST /v1/similar HTTP/1.1\r\n" + HEAD + b"Content-Length: 900000\r\n\r\n{"
    await attack.many(600, lambda number: keep_open(attack, number, first, b" ", 1.0))


async def deaf(attack: Attack) -> None:
    """Request much, and read none of it."""
    request = b"GET /v1/questions?limit=100 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 100

    async def act(number: int) -> None:
        _, writer = await attack.connect(number)
        try:
            writer.write(request)
            while attack.goes_on and not writer.is_closing():
                await asyncio.sleep(0.5)
        finally:
            writer.transport.abort()

    await attack.many(100, act)


async def pipelined(attack: Attack) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

    async def act(number: int) -> None:
        reader, writer = await attack.connect(number)
        try:
            while attack.goes_on:
                writer.write(request * 500)
                for _ in range(500):
                    await reader.readuntil(b"}")
                attack.seen["200"] += 500
        finally:
            writer.close()

    await attack.many(16, act)


async def churn(attack: Attack) -> None:
    async def act(number: int) -> None:
        while attack.goes_on:
            with contextlib.suppress(OSError, TimeoutError):
                _, writer = await attack.connect(number)
                writer.transport.abort()

    await attack.many(16, act)


def sent(*contents: bytes, at_once: int = 16) -> Callable[[Attack], Awaitable[None]]:
    """Return an attack that sends each of these in turn over new connections."""

    async def attack_with(attack: Attack) -> None:
        await attack.many(at_once, lambda number: attack.send(number, contents[number % len(contents)]))

    return attack_with


def posted(method: str, path: str, body: bytes) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\n".encode() + HEAD
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def bombs() -> Iterator[bytes]:
    """Yield JSON that is expensive to read, for every route that takes a body."""
    largest = 990_000
    bodies = [
        b'[["' + b'\\"' * (largest // 2),
        b"[" * largest,
        b'{"a":' * (largest // 5),
        b"[" + b"[]," * (largest // 3) + b"[]]",
        b"{" + b",".join(b'"%d":1' % number for number in range(largest // 10)) + b"}",
        b'{"title":"x","exclude":[' + b'"a",' * (largest // 4) + b'"a"]}',
        b'{"title":"x","k":' + b"9" * largest + b"}",
        b'{"title":"' + b"\\ud83d\\ude00" * (largest // 12) + b'"}',
    ]
    for operation in OPERATIONS:
        if operation.body is not None:
            for body in bodies:
                yield posted(operation.method, operation.path.replace("{id}", "x").replace("{original}", "y"), body)


def expensive_searches() -> Iterator[bytes]:
    """Yield searches that are allowed, and take long."""
    words = " ".join(f"w{number}" for number in range(30_000))
    for body, markup in (
        ("a " * 99_000, "plain"),
        (words[:199_000], "plain"),
        ("<p>" * 60_000, "html"),
        ("*a " * 60_000, "markdown"),
    ):
        query = {"title": "how to", "body": body, "markup": markup, "k": 100, "explain": True}
        yield posted("POST", "/v1/similar", json.dumps(query).encode())


CHUNKED: Final = b"POST /v1/similar HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n"
SEARCH: Final = json.dumps({"title": "how to get a visa"}).encode()

ATTACKS: Final[dict[str, Callable[[Attack], Awaitable[None]]]] = {
    "silent connections": silent,
    "slow heads": slow_heads,
    "slow bodies": slow_bodies,
    "answers never read": deaf,
    "pipelined requests": pipelined,
    "connections opened and cut": churn,
    "what is no HTTP": sent(
        b"\x16\x03\x01\x02\x00\x01\r\n\r\n", b"GET /\r\n\r\n", b"\x00" * 9_000, b"GET / HTTP/9.9\r\n\r\n"
    ),
    "large heads": sent(b"GET /" + b"a" * 300_000, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nA: " + b"a" * 300_000),
    "many headers": sent(
        b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"a:b\r\n" * 60_000,
        b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"a:b\r\n" * 3_000 + b"\r\n",
    ),
    "smuggled requests": sent(
        CHUNKED + b"Content-Length: 4\r\n\r\n0\r\n\r\nGET /v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        posted("POST", "/v1/similar", b"")[:-4] + b"\r\nContent-Length: 9\r\n\r\n",
        CHUNKED.replace(b"HTTP/1.1", b"HTTP/1.0") + b"\r\n0\r\n\r\n",
        CHUNKED.replace(b"chunked", b"chunked, identity") + b"\r\n0\r\n\r\n",
    ),
    "tiny and wrong chunks": sent(
        CHUNKED + b"\r\n" + b"1\r\na\r\n" * 150_000, CHUNKED + b"\r\nffffffffffffffffffff\r\n"
    ),
    "large bodies": sent(
        posted("POST", "/v1/similar", b'{"title":"' + b"a" * 8_000_000),
        CHUNKED + b"\r\n" + (b"10000\r\n" + b"a" * 65_536 + b"\r\n") * 120,
        at_once=8,
    ),
    "JSON bombs": sent(*bombs(), at_once=48),
    "odd addresses": sent(
        *(
            b"GET " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
            for path in (
                b"/v1/questions/" + b"%ff" * 4_000,
                b"/v1/questions/" + b"%" * 9_000,
                b"/v1/questions/" + b"%2e%2e%2f" * 1_000,
                b"/" * 9_000,
                b"/v1/questions?" + b"limit=1&" * 1_500,
                b"/v1/questions?after=" + b"9" * 9_000,
                b"/v1/duplicates?minimum=1e-" + b"9" * 900,
                b"*",
            )
        )
    ),
    "forged addresses": sent(
        *(
            b"POST /v1/similar HTTP/1.1\r\nX-Forwarded-For: %s\r\n" % forged
            + HEAD
            + b"Content-Length: %d\r\n\r\n" % len(SEARCH)
            + SEARCH
            for forged in (b"10.0.0.1", b"10.0.0.2, 10.0.0.3", b"<script>" * 1_000, b"1" * 15_000)
        )
    ),
    "searches that take long": sent(*expensive_searches()),
}


def search(port: int, bodies: list[bytes], seconds: float, results: Any) -> None:
    """Be the healthy client: search until the end; send how long each search took, and what went wrong."""

    async def search_until_end() -> tuple[list[float], Counter[str]]:
        chance, times, errors = random.Random(0), list[float](), Counter[str]()
        end, connection = time.monotonic() + seconds, Connection(port)
        while (began := time.monotonic()) < end:
            if len(times) % 2 == 0:
                connection.close()
                connection = Connection(port)
            try:
                async with asyncio.timeout(LONGEST_S):
                    status = await connection.ask("POST", "/v1/similar", chance.choice(bodies))
                if status != 200:
                    errors[str(status)] += 1
            except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
                errors[type(error).__name__] += 1
                connection.close()
                connection = Connection(port)
            times.append(time.monotonic() - began)
            await asyncio.sleep(PAUSE_S)
        connection.close()
        return times, errors

    results.send(asyncio.run(search_until_end()))


def measured(
    port: int, bodies: list[bytes], seconds: float, attack: Callable[[Attack], Awaitable[None]] | None
) -> dict[str, Any]:
    """Return how the healthy client fared during an attack, and what came of the attack."""
    receiver, sender = multiprocessing.Pipe()
    healthy = multiprocessing.get_context("spawn").Process(target=search, args=(port, bodies, seconds, sender))
    healthy.start()
    attacker = Attack(port, seconds)
    if attack is not None:
        asyncio.run(_until_end(attack, attacker))
    times, errors = receiver.recv()
    healthy.join()
    return {
        **percentiles(times),
        "max_ms": round(1000 * max(times), 1),
        "searches": len(times),
        "errors": dict(errors),
        "attack": dict(sorted(attacker.seen.items())),
    }


async def _until_end(attack: Callable[[Attack], Awaitable[None]], attacker: Attack) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(attacker.end - time.monotonic() + 5):
            await attack(attacker)


def main() -> None:
    """Attack in every way, and write the result."""
    parser = option_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", default="", help="attacks whose names hold this")
    options = parser.parse_args()
    folder = WORK / "serve" / "attack.forum"
    with create_reddit_forum(folder, QUESTIONS) as forum:
        bodies = requests(forum, "title")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    chosen = {name: attack for name, attack in ATTACKS.items() if options.only in name}
    rows: dict[str, dict[str, Any]] = {}
    with serving(folder, "--rate", "50", "--threads", "4") as running:
        resource.prlimit(running.process.pid, resource.RLIMIT_NOFILE, (HANDLES, HANDLES))
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(8_192, most[1]), most[1]))
        _wait_until_compared(running.client)
        rows["none"] = measured(running.port, bodies, options.seconds, None)
        print("none", rows["none"], flush=True)
        before = memory_mb(running.process.pid)
        for name, attack in chosen.items():
            rows[name] = measured(running.port, bodies, options.seconds, attack)
            print(name, rows[name], flush=True)
            running.client.status()  # raises where it no longer answers
        after = memory_mb(running.process.pid)
    lines = (folder.parent / "service.log").read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines]  # every line is JSON, or this raises
    body = {
        "questions": QUESTIONS,
        "seconds_each": options.seconds,
        "file_handles": HANDLES,
        "attacks": rows,
        "memory_mb": {"before": before, "after": after},
        "log": {
            "lines": len(lines),
            "warnings": sum(entry["level"] == "warning" for entry in entries),
            "errors": sum(entry["level"] == "error" for entry in entries),
        },
    }
    if options.only:
        print(json.dumps(body, indent=1))
    else:
        write("serve-attack", COMMAND, body)


def _wait_until_compared(client: Client) -> None:
    """Return once no work in the background is left, or after five minutes."""
    end = time.monotonic() + 300
    while (state := client.status().duplicates).done < state.questions and time.monotonic() < end:
        time.sleep(0.5)


if __name__ == "__main__":
    main()
