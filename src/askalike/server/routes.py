"""What answers each operation, and the path from a request to the thread that works for it."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import cache, partial
from typing import Any, Final

import msgspec

from askalike import operations, schemas
from askalike.follow import webhook
from askalike.operations import OPERATIONS, Operation, service_document
from askalike.server.pool import Batched
from askalike.server.problem import Refused
from askalike.server.requests import Reply, Request, parse_body, parse_query, path_values
from askalike.server.service import ServedForum, Service
from askalike.server.status import gauges, status
from askalike.store import ForumLayout

LARGE_BYTES: Final = 20_000
"""A search for a longer text takes its time: with 200 kB, some twenty times that of a title."""

Endpoint = Callable[[Request], Awaitable[Reply]]
Routes = Mapping[str, Mapping[str, Endpoint]]
"""Path, with names in braces → method → what answers."""

Handler = Callable[[Service, Request], Any]

HANDLERS: Final[Mapping[Operation[Any], Handler]] = {
    operations.SIMILAR: lambda service, request: service.handlers.similar(request.body),
    operations.QUESTIONS: lambda service, request: service.handlers.questions(request.query.limit, request.query.after),
    operations.QUESTION: lambda service, request: service.handlers.question(request.values["id"]),
    operations.PUT_QUESTION: lambda service, request: service.handlers.put(request.body.question(request.values["id"])),
    operations.DELETE_QUESTION: lambda service, request: service.handlers.delete(request.values["id"]),
    operations.MARK: lambda service, request: service.handlers.mark(request.values["id"], request.values["original"]),
    operations.UNMARK: lambda service, request: service.handlers.unmark(
        request.values["id"], request.values["original"]
    ),
    operations.PUT_ANSWER: lambda service, request: service.handlers.put_answer(
        request.body.answer(request.values["id"])
    ),
    operations.DELETE_ANSWER: lambda service, request: service.handlers.delete_answer(request.values["id"]),
    operations.HELPED: lambda service, request: service.handlers.helped(request.values["id"]),
    operations.OPENED: lambda service, request: service.handlers.opened(request.values["id"]),
    operations.PAIRS: lambda service, request: service.handlers.pairs(request.query, request.key_name),
    operations.GROUPS: lambda service, request: service.handlers.groups(
        request.query.cursor, request.query.limit, request.query.minimum
    ),
    operations.DECIDE: lambda service, request: service.handlers.decide(request.body, request.key_name),
    operations.UNDO: lambda service, request: service.handlers.undo(request.body, request.key_name),
    operations.LOG: lambda service, request: service.handlers.log(request.query, request.key_name),
    operations.STATUS: lambda service, request: status(service, request.rights),
    operations.METRICS: lambda service, request: service.metrics.text(gauges([service])),
}
"""What a thread does for an operation; it returns a value of the operation's type."""


def forum_routes(forum: ServedForum) -> Routes:
    """Return what is answered for a forum.

    Raises:
        KeyError: nothing answers an operation of the table.
    """
    others: Mapping[Operation[Any], Endpoint] = {
        operations.HEALTH: health,
        operations.DOCUMENT: _document_reply,
        operations.READY: partial(_ready, forum),
        operations.FOLLOW: partial(_follow, forum),
    }
    routes: dict[str, dict[str, Endpoint]] = {}
    for operation in OPERATIONS:
        endpoint = others.get(operation) or partial(_run_operation, forum, operation, HANDLERS[operation])
        routes.setdefault(operation.path, {})[operation.method] = endpoint
    return routes


async def _run_operation(forum: ServedForum, operation: Operation[Any], handler: Handler, request: Request) -> Reply:
    """Check a request, let a thread work for it, and return its answer."""
    access, limits = forum.access, forum.access.settings.limits
    access.check_rate(request.client_key)
    if operation.right is not None:
        request.rights, request.key_name, _ = access.admit(
            request.headers, operation.right, is_change=operation.is_change
        )
    service = await forum.ensure_open()
    request.values = path_values(request.values)
    request.query = parse_query(operation.query, request.query_string)
    content = b""
    if operation.body is not None:
        content = await request.read_body(limits.body_bytes, limits.timeout_s)
        request.body = parse_body(operation.body, content)
    pool, is_large = service.writers if operation.is_change else service.readers, len(content) > LARGE_BYTES
    work: Callable[[], Any] | Batched = partial(handler, service, request)
    if operation is operations.SIMILAR and pool.batches and not is_large:
        work = Batched(request.body)
    value = await pool.run(work, limits.timeout_s, request.client_key, is_large=is_large)
    return Reply(value if isinstance(value, bytes) else msgspec.json.encode(value), operation.media)


async def health(request: Request) -> Reply:
    """Answer that the service lives, whatever the forum holds, and while it is closed."""
    return Reply(msgspec.json.encode(schemas.Health("ok")))


async def _document_reply(request: Request) -> Reply:
    return Reply(_document())


@cache
def _document() -> bytes:
    return json.dumps(service_document()).encode()


async def _ready(forum: ServedForum, request: Request) -> Reply:
    if forum.service is None:  # to open it costs, whoever asks
        forum.access.check_rate(request.client_key)
    await (await forum.ensure_open()).check_ready()
    return Reply(msgspec.json.encode(schemas.Health("ready")))


async def _follow(forum: ServedForum, request: Request) -> Reply:
    if forum.access.rates.take_token(request.client_key, time.monotonic()) > 0:
        raise Refused(429, "too many webhooks", "the poll finds what they are about", {"Retry-After": "1"})
    service, limits = await forum.ensure_open(), forum.access.settings.limits
    content = await request.read_body(min(limits.body_bytes, webhook.MAX_BYTES), limits.timeout_s, webhook.TYPES)
    work = partial(webhook.receive, ForumLayout(service.settings.folder), request.headers, content)
    try:
        outcome = await service.writers.run(work, limits.timeout_s, request.client_key)
    except webhook.WebhookError as error:
        raise Refused(error.status, error.message, error.hint) from error
    return Reply(msgspec.json.encode(schemas.Followed(outcome)))
