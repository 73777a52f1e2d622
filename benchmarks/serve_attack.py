"""Hostile requests against a service, and how a client fares that searches meanwhile.

Command: ``python -m benchmarks.serve_attack [--seconds S]``. The forum holds the first 5,000 Reddit questions. The
service is a process of its own with the default rate and 1,024 file handles; it listens on the loopback alone, where
each attacker has an address of its own (127.0.0.2 and on), as strangers would. Each attack goes on for so many seconds,
over a bounded number of connections. The healthy client is a third process: it searches for questions of the forum,
every second time over a new connection, and its slowest answers tell how much of the service the attack takes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import random
import resource
import shutil
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final

from recipes.folders import WORK

from askalike import Forum
from askalike.client import Client
from askalike.operations import OPERATIONS
from benchmarks.record import option_parser, percentiles, write, write_reddit
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
        """Return whether the time is not over."""
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

    async def many(self, count: int, one: Callable[[int], Awaitable[None]]) -> None:
        """Let so many do the same until the end."""

        async def repeated(number: int) -> None:
            try:
                async with asyncio.timeout(self.end - time.monotonic() + 2):
                    await one(number)
            except (OSError, TimeoutError, asyncio.IncompleteReadError):
                self.seen["cut"] += 1

        await asyncio.gather(*map(repeated, range(count)))

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


async def held(attack: Attack, number: int, first: bytes, drop: bytes, every_s: float) -> None:
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
                        attack.seen["closed" if not await asyncio.wait_for(reader.read(999), every_s) else "told"] += 1
            finally:
                writer.close()


async def silent(attack: Attack) -> None:
    await attack.many(SILENT, lambda number: held(attack, number, b"", b"", 1.0))


async def slow_heads(attack: Attack) -> None:
    await attack.many(600, lambda number: held(attack, number, b"GET /healthz HTTP/1.1\r\n", b"a: b\r\n", 1.0))


async def slow_bodies(attack: Attack) -> None:
    first = b"POST /v1/similar HTTP/1.1\r\n" + HEAD + b"Content-Length: 900000\r\n\r\n{"
    await attack.many(600, lambda number: held(attack, number, first, b" ", 1.0))


async def deaf(attack: Attack) -> None:
    """Ask for much, and read none of it."""
    asked = b"GET /v1/questions?limit=100 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 100

    async def one(number: int) -> None:
        _, writer = await attack.connect(number)
        try:
            writer.write(asked)
            while attack.goes_on and not writer.is_closing():
                await asyncio.sleep(0.5)
        finally:
            writer.transport.abort()

    await attack.many(100, one)


async def pipelined(attack: Attack) -> None:
    asked = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

    async def one(number: int) -> None:
        reader, writer = await attack.connect(number)
        try:
            while attack.goes_on:
                writer.write(asked * 500)
                for _ in range(500):
                    await reader.readuntil(b"}")
                attack.seen["200"] += 500
        finally:
            writer.close()

    await attack.many(16, one)


async def churn(attack: Attack) -> None:
    async def one(number: int) -> None:
        while attack.goes_on:
            with contextlib.suppress(OSError, TimeoutError):
                _, writer = await attack.connect(number)
                writer.transport.abort()

    await attack.many(16, one)


def sent(*contents: bytes, at_once: int = 16) -> Callable[[Attack], Awaitable[None]]:
    """Return an attack that sends each of these in turn over new connections."""

    async def attack_with(attack: Attack) -> None:
        await attack.many(at_once, lambda number: attack.send(number, contents[number % len(contents)]))

    return attack_with


def posted(method: str, path: str, body: bytes) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\n".encode() + HEAD
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def bombs() -> Iterator[bytes]:
    """Yield JSON that is dear to read, for every route that takes any."""
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


def dear_searches() -> Iterator[bytes]:
    """Yield searches that are allowed, and take long."""
    words = " ".join(f"w{number}" for number in range(30_000))
    for body, markup in (
        ("a " * 99_000, "plain"),
        (words[:199_000], "plain"),
        ("<p>" * 60_000, "html"),
        ("*a " * 60_000, "markdown"),
    ):
        asked = {"title": "how to", "body": body, "markup": markup, "k": 100, "explain": True}
        yield posted("POST", "/v1/similar", json.dumps(asked).encode())


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
    "searches that take long": sent(*dear_searches()),
}


def search(port: int, bodies: list[bytes], seconds: float, told: Any) -> None:
    """Be the healthy client: search until the end; tell how long each search took, and what went wrong."""

    async def go_on() -> tuple[list[float], Counter[str]]:
        chance, took, errors = random.Random(0), list[float](), Counter[str]()
        end = time.monotonic() + seconds
        kept: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        while (began := time.monotonic()) < end:
            is_new = kept is None or len(took) % 2 == 0
            try:
                async with asyncio.timeout(LONGEST_S):
                    reader, writer = (
                        await asyncio.open_connection("127.0.0.1", port) if is_new or kept is None else kept
                    )
                    writer.write(posted("POST", "/v1/similar", chance.choice(bodies)))
                    head = await reader.readuntil(b"\r\n\r\n")
                    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
                    await reader.readexactly(int(length.split(b":")[1]))
                status = head.split()[1].decode()
                if status != "200":
                    errors[status] += 1
                if kept is not None and is_new:
                    kept[1].close()
                kept = (reader, writer)
            except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
                errors[type(error).__name__] += 1
                kept = None
            took.append(time.monotonic() - began)
            await asyncio.sleep(PAUSE_S)
        return took, errors

    told.send(asyncio.run(go_on()))


def measured(
    port: int, bodies: list[bytes], seconds: float, attack: Callable[[Attack], Awaitable[None]] | None
) -> dict[str, Any]:
    """Return how the healthy client fared during an attack, and what came of the attack."""
    ours, theirs = multiprocessing.Pipe()
    healthy = multiprocessing.get_context("spawn").Process(target=search, args=(port, bodies, seconds, theirs))
    healthy.start()
    seen: Counter[str] = Counter()
    if attack is not None:
        made = Attack(port, seconds)
        asyncio.run(_until_end(attack, made))
        seen = made.seen
    took, errors = ours.recv()
    healthy.join()
    return {
        **percentiles(took),
        "max_ms": round(1000 * max(took), 1),
        "searches": len(took),
        "errors": dict(errors),
        "attack": dict(sorted(seen.items())),
    }


async def _until_end(attack: Callable[[Attack], Awaitable[None]], made: Attack) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(made.end - time.monotonic() + 5):
            await attack(made)


def forum_of(count: int) -> tuple[Path, list[bytes]]:
    """Return a forum of real questions, and searches for some of them."""
    folder = WORK / "serve" / "attack.forum"
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with Forum.create(folder) as forum:
        forum.load(write_reddit(WORK / "serve" / "attack.jsonl", count))
        questions = list(forum.questions())
    titles = [one.title for one in random.Random(0).sample(questions, 500)]
    return folder, [json.dumps({"title": title[:1_000], "k": 10}).encode() for title in titles if title.strip()]


def main() -> None:
    """Attack in every way, and write the result."""
    parser = option_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", default="", help="attacks whose names hold this")
    options = parser.parse_args()
    folder, bodies = forum_of(QUESTIONS)
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
    told = [json.loads(line) for line in lines]  # every line is JSON, or this raises
    body = {
        "questions": QUESTIONS,
        "seconds_each": options.seconds,
        "file_handles": HANDLES,
        "attacks": rows,
        "memory_mb": {"before": before, "after": after},
        "log": {
            "lines": len(lines),
            "warnings": sum(line["level"] == "warning" for line in told),
            "errors": sum(line["level"] == "error" for line in told),
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
