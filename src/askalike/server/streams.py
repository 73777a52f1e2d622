"""Many records in one request: NDJSON, a line for a record, none held longer than its batch.

A record of a bulk stream is acknowledged when it is on disk. Acknowledgements are sent while the stream still comes, so
that a client knows after a cut what is stored; the last line says that all were seen.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any, Final

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from askalike.errors import AskalikeError, InputError
from askalike.schemas import Acknowledgement, Error, RecordRequest, StreamEnd
from askalike.server.engine import Engine
from askalike.server.problem import Refused, refusal_of
from askalike.server.requests import parse_body
from askalike.server.service import Service
from askalike.server.settings import Limits
from askalike.store import check_question
from askalike.types import Question

NDJSON: Final = "application/x-ndjson"
BATCH: Final = 50
CATCH_UP_S: Final = 0.5
"""What was stored is found after so long, or a batch later."""
MOST_WAITING: Final = 16_000_000
"""So many bytes may wait until the client reads what it is told: of some 200,000 records."""

Line = tuple[int, bytes | Refused]
"""Its number from 1 on, and what it holds, or why it was not kept."""


class BulkResponse(Response):
    """Reads a request's stream while it answers it."""

    def __init__(self, service: Service, request: Request, client: str) -> None:
        super().__init__(media_type=NDJSON)
        self._client = client
        self._service = service
        self._request = request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Store records and acknowledge them."""
        headers = [(name, value) for name, value in self.raw_headers if name != b"content-length"]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        limits = self._service.settings.limits
        counts = {"stored": 0, "refused": 0}
        outbox = _Outbox(send)
        sending = asyncio.create_task(outbox.send_all())
        try:
            is_done = True
            try:
                async for batch in batches(lines_of(self._request.stream(), limits)):
                    for acknowledgement in await self._store(batch):
                        counts["refused" if acknowledgement.error else "stored"] += 1
                        outbox.put(_line(acknowledgement))
                    await self._catch_up(is_last=False)
                    await outbox.room()
            except TimeoutError:
                is_done = False
                hint = "send the rest again"
                outbox.put(_line(Error(f"no whole line came for {limits.stream_s:g} s", hint)))
            except ClientDisconnect:
                return
            finally:
                await self._catch_up(is_last=True)
            outbox.close(_line(StreamEnd(is_done, **counts)))
            await sending
        finally:
            sending.cancel()

    async def _store(self, batch: Sequence[Line]) -> list[Acknowledgement]:
        service = self._service
        call = partial(stored, service.engine, batch)
        try:
            acknowledged: list[Acknowledgement] = await service.writer.run(
                call, service.settings.limits.stream_s, self._client
            )
            return acknowledged
        except (Refused, AskalikeError) as error:  # the writer is busy: what came of the batch is not known
            problem = refusal_of(error)
            return [_refusal(number, None, problem) for number, _ in batch]

    _caught_up_s = 0.0

    async def _catch_up(self, *, is_last: bool) -> None:
        """Let what was stored be found; what another process keeps from it, the maintenance does later."""
        now = time.monotonic()
        if is_last or now - self._caught_up_s > CATCH_UP_S:
            self._caught_up_s = now
            try:
                service = self._service
                await service.writer.run(service.engine.catch_up, service.settings.limits.stream_s, self._client)
            except (Refused, AskalikeError):
                return


class _Outbox:
    """What is told of records, sent while others are still read.

    A client may send all before it reads anything. It is read from for as long as there is room for what it is told,
    and then no more until it takes some; the connection ends where it does neither.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting = bytearray()
        self._is_changed = asyncio.Event()
        self._has_room = asyncio.Event()
        self._is_closed = False

    def put(self, line: bytes) -> None:
        """Add a line."""
        self._waiting += line
        self._is_changed.set()

    def close(self, line: bytes) -> None:
        """Add the last line."""
        self._is_closed = True
        self.put(line)

    async def room(self) -> None:
        """Return once there is room."""
        while len(self._waiting) > MOST_WAITING:
            self._has_room.clear()
            await self._has_room.wait()

    async def send_all(self) -> None:
        """Send lines as they come, until the last."""
        is_last = False
        while not is_last:
            await self._is_changed.wait()
            self._is_changed.clear()
            part, self._waiting, is_last = bytes(self._waiting), bytearray(), self._is_closed
            await self._send({"type": "http.response.body", "body": part, "more_body": not is_last})
            self._has_room.set()


def stored(engine: Engine, batch: Sequence[Line]) -> list[Acknowledgement]:
    """Store the records of those lines that can be stored, in one transaction; return a line for each."""
    questions: dict[int, Question] = {}
    acknowledged: dict[int, Acknowledgement] = {}
    for number, content in batch:
        if isinstance(content, Refused):
            acknowledged[number] = _refusal(number, None, content)
            continue
        try:
            record = parse_body(RecordRequest, content)
        except Refused as error:
            acknowledged[number] = _refusal(number, None, error)
            continue
        try:
            question = record.question(record.id)
            check_question(question)
            questions[number] = question
        except InputError as error:
            acknowledged[number] = _refusal(number, record.id, refusal_of(error))
    acknowledged |= _stored_together(engine, questions)
    return [acknowledged[number] for number, _ in batch]


def _stored_together(engine: Engine, questions: dict[int, Question]) -> dict[int, Acknowledgement]:
    if not questions:
        return {}
    numbers = list(questions)
    try:
        written = engine.store(questions.values())
        return {
            number: Acknowledgement(number, done.id, done.operation)
            for number, done in zip(numbers, written, strict=True)
        }
    except AskalikeError as error:
        return {number: _refusal(number, question.id, refusal_of(error)) for number, question in questions.items()}


async def lines_of(parts: AsyncIterator[bytes], limits: Limits) -> AsyncIterator[list[Line]]:
    """Yield the lines that each part of a stream completes; empty ones are left out, too long ones are refused.

    Raises:
        TimeoutError: no line was completed for ``limits.stream_s``.
    """
    loop = asyncio.get_running_loop()
    number, kept, is_too_long = 1, bytearray(), False
    refusal = Refused(413, f"the record is longer than {limits.record_bytes} bytes", "shorten it")
    iterator = aiter(parts)
    end_s = loop.time() + limits.stream_s
    while True:
        try:
            async with asyncio.timeout_at(end_s):
                part = await anext(iterator)
        except StopAsyncIteration:
            break
        lines: list[Line] = []
        *whole, rest = part.split(b"\n")
        for piece in whole:
            kept += piece
            if is_too_long or len(kept) > limits.record_bytes:
                lines.append((number, refusal))
            elif kept.strip():
                lines.append((number, bytes(kept)))
            kept.clear()
            is_too_long = False
            number += 1
        kept += rest
        if len(kept) > limits.record_bytes:
            kept.clear()
            is_too_long = True
        if lines:
            yield lines
        if whole:
            end_s = loop.time() + limits.stream_s
    if is_too_long:
        yield [(number, refusal)]
    elif kept.strip():
        yield [(number, bytes(kept))]


async def batches(parts: AsyncIterator[list[Line]]) -> AsyncIterator[list[Line]]:
    """Yield lines as they come, at most ``BATCH`` together."""
    async for part in parts:
        for start in range(0, len(part), BATCH):
            yield part[start : start + BATCH]


def _refusal(number: int, identifier: str | None, problem: Refused) -> Acknowledgement:
    return Acknowledgement(number, identifier, error=problem.error, hint=problem.hint)


def _line(value: Any) -> bytes:
    return msgspec.json.encode(value) + b"\n"
