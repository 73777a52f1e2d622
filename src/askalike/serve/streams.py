"""Many records in, many records out: NDJSON, a line for a record, none held longer than its batch.

A record of a bulk stream is acknowledged when it is on disk. Acknowledgements are sent while the stream still comes, so
that a client knows after a cut what is stored; the last line says that all were seen.

Enters: a stream of lines. Leaves: a stream of lines. May import: errors, types, its own folder.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

from pydantic import TypeAdapter
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from askalike.errors import AskalikeError, InputError
from askalike.serve.call import checked, parse_json
from askalike.serve.engine import Engine
from askalike.serve.problem import Problem, Refused, problem_of
from askalike.serve.requests import RecordRequest
from askalike.serve.service import Service
from askalike.serve.settings import Limits
from askalike.types import Question

__all__ = ["NDJSON", "BulkResponse", "lines_of", "stored", "stream"]

NDJSON: Final = "application/x-ndjson"
BATCH: Final = 50
PART: Final = 500
CATCH_UP_S: Final = 0.5
"""What was stored is found after so long, or a batch later."""
PATIENCE_S: Final = 60.0
"""A stream that stands still for so long is ended."""

Line = tuple[int, bytes | Problem]
"""Its number from 1 on, and what it holds, or why it was not kept."""


class BulkResponse(Response):
    """Reads a request's stream while it answers it."""

    def __init__(self, service: Service, request: Request) -> None:
        super().__init__(media_type=NDJSON)
        self._service = service
        self._request = request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Store records and acknowledge them."""
        headers = [(name, value) for name, value in self.raw_headers if name != b"content-length"]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        counts = {"stored": 0, "refused": 0}
        is_done = True
        try:
            async for batch in batches(lines_of(self._request.stream(), self._service.settings.limits)):
                for told in await self._store(batch):
                    counts["refused" if "error" in told else "stored"] += 1
                    await send({"type": "http.response.body", "body": _line(told), "more_body": True})
                await self._catch_up(is_last=False)
        except TimeoutError:
            is_done = False
            problem = {"error": f"nothing came for {PATIENCE_S:g} s", "hint": "send the rest again"}
            await send({"type": "http.response.body", "body": _line(problem), "more_body": True})
        except ClientDisconnect:
            return
        finally:
            await self._catch_up(is_last=True)
        end = _line({"done": is_done, **counts})
        await send({"type": "http.response.body", "body": end, "more_body": False})

    async def _store(self, batch: Sequence[Line]) -> list[dict[str, Any]]:
        service = self._service
        call = partial(stored, service.engine, batch, service.settings.limits.depth)
        try:
            return await service.writer.run(call, PATIENCE_S)
        except (Refused, AskalikeError) as error:  # the writer is busy: what came of the batch is not known
            problem = problem_of(error)
            return [_refusal(number, None, problem) for number, _ in batch]

    _caught_up_s = 0.0

    async def _catch_up(self, *, is_last: bool) -> None:
        """Let what was stored be found; what another process keeps from it, the keeper does later."""
        now = time.monotonic()
        if is_last or now - self._caught_up_s > CATCH_UP_S:
            self._caught_up_s = now
            try:
                await self._service.writer.run(self._service.engine.catch_up, PATIENCE_S)
            except (Refused, AskalikeError):
                return


def stored(engine: Engine, batch: Sequence[Line], depth: int) -> list[dict[str, Any]]:
    """Store the records of those lines that can be stored, in one transaction; return a line for each."""
    questions: dict[int, Question] = {}
    told: dict[int, dict[str, Any]] = {}
    for number, content in batch:
        if isinstance(content, Problem):
            told[number] = _refusal(number, None, content)
            continue
        try:
            record = checked(RecordRequest, parse_json(content, depth))
            question = record.question(record.id)
            engine.check(question)
            questions[number] = question
        except Refused as error:
            told[number] = _refusal(number, None, error.problem)
        except InputError as error:
            told[number] = _refusal(number, question.id, problem_of(error))
    told |= _stored_together(engine, questions)
    return [told[number] for number, _ in batch]


def _stored_together(engine: Engine, questions: dict[int, Question]) -> dict[int, dict[str, Any]]:
    if not questions:
        return {}
    numbers = list(questions)
    try:
        written = engine.store(questions.values())
        return {
            number: {"line": number, "id": one.id, "operation": one.operation}
            for number, one in zip(numbers, written, strict=True)
        }
    except AskalikeError as error:
        return {number: _refusal(number, one.id, problem_of(error)) for number, one in questions.items()}


async def lines_of(parts: AsyncIterator[bytes], limits: Limits) -> AsyncIterator[list[Line]]:
    """Yield the lines that each part of a stream completes; empty ones are left out, too long ones are refused.

    Raises:
        TimeoutError: the stream stands still.
    """
    number, kept, is_too_long = 1, b"", False
    refusal = Problem(413, f"the record is longer than {limits.record_bytes} bytes", "shorten it")
    iterator = aiter(parts)
    while True:
        try:
            part = await asyncio.wait_for(anext(iterator), PATIENCE_S)
        except StopAsyncIteration:
            break
        found: list[Line] = []
        *whole, rest = part.split(b"\n")
        for piece in whole:
            line, kept = kept + piece, b""
            if is_too_long or len(line) > limits.record_bytes:
                found.append((number, refusal))
            elif line.strip():
                found.append((number, line))
            is_too_long = False
            number += 1
        kept += rest
        if len(kept) > limits.record_bytes:
            kept, is_too_long = b"", True
        if found:
            yield found
    if is_too_long:
        yield [(number, refusal)]
    elif kept.strip():
        yield [(number, kept)]


async def batches(parts: AsyncIterator[list[Line]]) -> AsyncIterator[list[Line]]:
    """Yield lines as they come, at most ``BATCH`` together."""
    async for part in parts:
        for start in range(0, len(part), BATCH):
            yield part[start : start + BATCH]


def stream(service: Service, make: Callable[[], Iterator[Any]], kind: type) -> StreamingResponse:
    """Return views as lines, a part at a time."""
    adapter: TypeAdapter[Any] = TypeAdapter(kind)

    async def parts() -> AsyncIterator[bytes]:
        found = make()
        while part := await service.readers.run(lambda: list(islice(found, PART)), service.settings.limits.timeout_s):
            yield b"".join(adapter.dump_json(one) + b"\n" for one in part)

    return StreamingResponse(parts(), media_type=NDJSON)


def _refusal(number: int, identifier: str | None, problem: Problem) -> dict[str, Any]:
    return {"line": number, "id": identifier, "error": problem.error, "hint": problem.hint}


def _line(found: dict[str, Any]) -> bytes:
    return json.dumps(found).encode() + b"\n"
