"""The table of routes: the source of the application, and the OpenAPI document that is made from it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from http import HTTPStatus
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from askalike import schemas
from askalike._version import __version__
from askalike.follow import webhook
from askalike.server.guards import Right
from askalike.server.pool import Joined
from askalike.server.problem import Refused
from askalike.server.requests import (
    JSON,
    Call,
    admit,
    parse_body,
    parse_query,
    path_values,
    read_body,
)
from askalike.server.service import ServedForum, Service
from askalike.server.status import gauges, status
from askalike.store import ForumLayout
from askalike.types import LogEntry, Query

LARGE_BYTES: Final = 20_000
"""A search for a longer text takes its time: with 200 kB, some twenty times that of a title."""
ALL_REFUSALS: Final = (400, 405, 413, 421, 429, 500, 503, 504, 507)
"""Statuses that any request may be refused with."""

WITH_KEY: Final = (401, 403)
WITH_BODY: Final = (408, 415, 422)
_REF: Final = "#/components/schemas/{name}"
_NAME: Final = re.compile(r"{(\w+)}")
_PATH_VALUE: Final = {"type": "string", "minLength": 1, "maxLength": 512}

PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Route:
    """One thing that can be asked for.

    Args:
        name: method and path.
        handler: what a thread does; returns a value of ``returns``.
        joins: what the engine is asked for together with what others ask for, where that costs less; else ``handler``.
        respond: what answers where no thread does it all.
        constant: what is answered whatever the forum holds, and while it is closed.
        body: what is sent.
        query: the names of the query string.
        permission: the right that a key needs; None where none is needed.
        media: the type of the answer.
        refusals: statuses that it may be refused with, beside those that all may.
        is_search: it changes nothing, whatever its method.
    """

    name: str
    about: str
    returns: Any
    handler: Callable[[Service, Call], Any] | None = None
    joins: Callable[[Call], Query] | None = None
    respond: Callable[[Request, Service, frozenset[str]], Awaitable[Response]] | None = None
    constant: Callable[[], bytes] | None = None
    body: type[msgspec.Struct] | None = None
    query: type[msgspec.Struct] | None = None
    permission: Right | None = "read"
    media: str = JSON
    refusals: tuple[int, ...] = ()
    is_search: bool = False

    @property
    def method(self) -> str:
        """Return the method."""
        return self.name.partition(" ")[0]

    @property
    def path(self) -> str:
        """Return the path, with the names of its parts."""
        return self.name.partition(" ")[2]

    @property
    def is_change(self) -> bool:
        """Return whether it changes something."""
        return self.method != "GET" and not self.is_search


def endpoint(rows: dict[str, Route]) -> Callable[[Request], Awaitable[Response]]:
    """Return what answers the requests of one path: checks them, lets a thread work, writes the answer.

    Args:
        rows: method → route.
    """

    async def answer(request: Request) -> Response:
        row = rows["GET" if request.method == "HEAD" else request.method]
        forum: ServedForum = request.app.state.forum
        access, limits = forum.access, forum.access.settings.limits
        request.scope["state"]["route"] = row.name
        if row.constant is not None:
            return Response(row.constant(), media_type=JSON)
        rights = frozenset[str]()
        if row.permission or forum.service is None:  # to open it costs, whoever asks
            rights = admit(request, access, row.permission, is_change=row.is_change)
        service = await forum.opened()
        if row.respond is not None:
            return await row.respond(request, service, rights)
        sent = request.scope["query_string"]
        query = parse_query(row.query, sent) if sent or row.query else None
        content = await read_body(request, limits.body_bytes, limits.timeout_s) if row.body else b""
        body = parse_body(row.body, content) if row.body else None
        path = path_values(request.path_params) if request.path_params else {}
        call = Call(path, query, body, rights, access.name(request.headers))
        pool = service.writer if row.permission == "write" else service.readers
        client, is_large = request.scope["state"]["client"], len(content) > LARGE_BYTES
        assert row.handler is not None
        work: Callable[[], Any] | Joined = partial(row.handler, service, call)
        if row.joins is not None and pool.joins and not is_large:
            work = Joined(row.joins(call))
        value = await pool.run(work, limits.timeout_s, client, is_large=is_large)
        return Response(value if isinstance(value, bytes) else msgspec.json.encode(value), media_type=row.media)

    return answer


async def _follow(request: Request, service: Service, rights: frozenset[str]) -> Response:
    client, limits = request.scope["state"]["client"], service.settings.limits
    if request.app.state.forum.access.rates.wait_s(client, time.monotonic()) > 0:
        raise Refused(429, "too many webhooks", "the poll finds what they are about", {"Retry-After": "1"})
    content = await read_body(request, min(limits.body_bytes, webhook.MAX_BYTES), limits.timeout_s, webhook.TYPES)
    work = partial(webhook.receive, ForumLayout(service.settings.folder), dict(request.headers), content)
    try:
        outcome = await service.writer.run(work, limits.timeout_s, client)
    except webhook.WebhookError as error:
        raise Refused(error.status, error.message, error.hint) from error
    return Response(msgspec.json.encode(schemas.Followed(outcome)), media_type=JSON)


async def _ready(request: Request, service: Service, rights: frozenset[str]) -> Response:
    await service.check_ready()
    return Response(msgspec.json.encode(schemas.Health("ready")), media_type=JSON)


@cache
def _document() -> bytes:
    return json.dumps(service_document()).encode()


ROUTES: Final[tuple[Route, ...]] = (
    Route(
        "POST /v1/similar",
        "The questions that ask the same, with their best answers: the same as a text, or as a stored question.",
        schemas.Similar,
        lambda service, call: service.engine.similar(call.body.query),
        lambda call: call.body.query,
        body=schemas.SimilarRequest,
        refusals=(404, 409),
        is_search=True,
    ),
    Route(
        "GET /v1/questions",
        "The forum's questions, newest first by date; those without a date are last.",
        schemas.QuestionsPage,
        lambda service, call: service.engine.questions(call.query.limit, call.query.after),
        query=schemas.QuestionsQuery,
    ),
    Route(
        "GET /v1/questions/{id}",
        "A question with its answers and links.",
        schemas.ShownQuestion,
        lambda service, call: service.engine.question(call.path["id"]),
        refusals=(404,),
    ),
    Route(
        "PUT /v1/questions/{id}",
        "Add or replace a question; it is on disk when the answer comes.",
        schemas.Written,
        lambda service, call: service.engine.put(call.body.question(call.path["id"])),
        body=schemas.QuestionRequest,
        permission="write",
    ),
    Route(
        "DELETE /v1/questions/{id}",
        "Delete a question with its answers and links.",
        schemas.Written,
        lambda service, call: service.engine.delete(call.path["id"]),
        permission="write",
        refusals=(404,),
    ),
    Route(
        "PUT /v1/questions/{id}/originals/{original}",
        "Link a question as a duplicate of another: the other is shown in its place.",
        schemas.Written,
        lambda service, call: service.engine.mark(call.path["id"], call.path["original"]),
        permission="write",
        refusals=(404,),
    ),
    Route(
        "DELETE /v1/questions/{id}/originals/{original}",
        "Remove a duplicate link.",
        schemas.Written,
        lambda service, call: service.engine.unmark(call.path["id"], call.path["original"]),
        permission="write",
        refusals=(404,),
    ),
    Route(
        "PUT /v1/answers/{id}",
        "Add or replace an answer; it is on disk when the answer comes.",
        schemas.Written,
        lambda service, call: service.engine.put_answer(call.body.answer(call.path["id"])),
        body=schemas.AnswerRequest,
        permission="write",
        refusals=(404,),
    ),
    Route(
        "DELETE /v1/answers/{id}",
        "Delete an answer.",
        schemas.Written,
        lambda service, call: service.engine.delete_answer(call.path["id"]),
        permission="write",
        refusals=(404,),
    ),
    Route(
        "POST /v1/questions/{id}/helped",
        "Count that this question answered the one that somebody was about to ask.",
        schemas.HelpedCount,
        lambda service, call: service.engine.helped(call.path["id"]),
        refusals=(404,),
    ),
    Route(
        "POST /v1/questions/{id}/opened",
        "Count that this question was opened where it was suggested.",
        schemas.Opened,
        lambda service, call: service.engine.opened(call.path["id"]),
        refusals=(404,),
    ),
    Route(
        "GET /v1/duplicates",
        "Pairs of the archive that may be duplicates, best first.",
        schemas.PairsPage,
        lambda service, call: service.engine.pairs(call.query, call.name),
        query=schemas.PairsQuery,
    ),
    Route(
        "POST /v1/decisions",
        "Decide on a pair: a judgement, a link where they are duplicates, and an entry of the log.",
        LogEntry,
        lambda service, call: service.engine.decide(call.body, call.name),
        body=schemas.DecisionRequest,
        permission="write",
        refusals=(404,),
    ),
    Route(
        "POST /v1/decisions/undo",
        "Undo a decision: what was judged before counts again, and a link that nobody else has made goes.",
        LogEntry,
        lambda service, call: service.engine.undo(call.body, call.name),
        body=schemas.UndoRequest,
        permission="write",
        refusals=(404,),
    ),
    Route(
        "GET /v1/log",
        "Who decided and undid what, newest first; for keys that may write.",
        schemas.LogPage,
        lambda service, call: service.engine.log(call.query, call.name),
        query=schemas.LogQuery,
        permission="write",
    ),
    Route(
        "GET /v1/duplicates/groups",
        "Questions of the archive that ask the same, each the same as every other, largest group first.",
        schemas.GroupsPage,
        lambda service, call: service.engine.groups(call.query.cursor, call.query.limit, call.query.minimum),
        query=schemas.GroupsQuery,
    ),
    Route(
        "POST /v1/follow",
        "Take a webhook of the forum that this one follows, as Discourse or GitHub signs and sends it.",
        schemas.Followed,
        respond=_follow,
        permission=None,
        refusals=(401, 403, 404, 408, 415),
    ),
    Route(
        "GET /v1/status",
        "What the forum holds, and how the service does.",
        schemas.Status,
        lambda service, call: status(service, call.rights),
    ),
    Route(
        "GET /metrics",
        "Counts and times, as Prometheus reads them.",
        str,
        lambda service, call: service.metrics.text(gauges([service])),
        media=PROMETHEUS,
    ),
    Route(
        "GET /healthz",
        "Whether the service lives.",
        schemas.Health,
        constant=lambda: msgspec.json.encode(schemas.Health("ok")),
        permission=None,
    ),
    Route(
        "GET /readyz",
        "Whether the service is ready to answer.",
        schemas.Health,
        respond=_ready,
        permission=None,
    ),
    Route("GET /openapi.json", "This document.", dict, constant=_document, permission=None),
)


# -- the document ------------------------------------------------------------------------------------------------------


def service_document() -> dict[str, object]:
    """Return the OpenAPI 3.1 document of the service; msgspec describes what is sent and answered."""
    sent = _described([route.body for route in ROUTES if route.body is not None])
    answered = _described([schemas.Error, *(route.returns for route in ROUTES)])
    for shape in answered.values():  # whatever has a default is sent all the same
        shape["required"] = list(shape["properties"])
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    error = {JSON: {"schema": _reference(schemas.Error)}}
    operations = [operation for path in paths.values() for operation in path.values()]
    refused = {name for operation in operations for name in operation["responses"]} - {"200"}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "askalike",
            "version": __version__,
            "description": "Finds the questions in a forum that ask the same. Errors are {error, hint}.",
        },
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted((sent | answered).items())),
            "responses": {
                name: {"description": HTTPStatus(int(name)).phrase, "content": error} for name in sorted(refused)
            },
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(kinds: Iterable[type]) -> dict[str, Any]:
    """Return the schemas of these kinds and of all that they hold; of a description, the first paragraph."""
    _, shapes = msgspec.json.schema_components(kinds, ref_template=_REF)
    for shape in shapes.values():
        shape["description"] = " ".join(shape["description"].partition("\n\n")[0].split())
    return shapes


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": "_".join([route.method.lower(), *re.findall(r"[a-z0-9]+", route.path.replace("/v1", ""))]),
        "summary": route.about,
        "responses": {"200": _answer(route), **_refusals(route)},
    }
    names = _NAME.findall(route.path)
    parameters = [{"name": name, "in": "path", "required": True, "schema": _PATH_VALUE} for name in names]
    if route.query is not None:
        properties = _described([route.query])[route.query.__name__]["properties"]
        parameters += [
            {"name": name, "in": "query", "required": False, "schema": schema} for name, schema in properties.items()
        ]
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": _reference(route.body)}}}
    if route.permission is not None:
        operation["security"] = [{"key": []}, {}]
        operation["description"] = f"Needs the right to {route.permission}, where keys are asked for."
    return operation


def _answer(route: Route) -> dict[str, Any]:
    return {"description": "Done.", "content": {route.media: {"schema": _reference(route.returns)}}}


def _refusals(route: Route) -> dict[str, Any]:
    statuses = {*ALL_REFUSALS, *route.refusals}
    if route.permission is not None:
        statuses |= {*WITH_KEY}
    if route.body is not None:
        statuses |= {*WITH_BODY}
    if route.query is not None or "{" in route.path:
        statuses |= {422}
    return {str(status): {"$ref": f"#/components/responses/{status}"} for status in sorted(statuses)}


def _reference(kind: Any) -> dict[str, Any]:
    """Return a reference to a shape, or how a plain type is described."""
    ((reference,), _) = msgspec.json.schema_components([kind], ref_template=_REF)
    return reference
