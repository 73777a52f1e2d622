"""What a service can be asked for: one table, from which its routes, its client and its OpenAPI document are made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from askalike import schemas
from askalike._version import __version__
from askalike.types import LogEntry

Right = Literal["read", "write"]
Answered = TypeVar("Answered")

JSON: Final = "application/json"
PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True, eq=False)
class Operation(Generic[Answered]):
    """One thing that can be asked for.

    Args:
        path: with the names of its parts in braces.
        returns: the type of the answer.
        body: what is sent.
        query: the names of the query string.
        right: what a key needs; None where none is needed.
        media: the type of the answer's content.
        refusals: statuses that it may be refused with, beside those that all may.
        is_search: it changes nothing, whatever its method.
        example: of what is sent.
    """

    method: str
    path: str
    about: str
    returns: type[Answered]
    body: type[msgspec.Struct] | None = None
    query: type[msgspec.Struct] | None = None
    right: Right | None = "read"
    media: str = JSON
    refusals: tuple[int, ...] = ()
    is_search: bool = False
    example: Mapping[str, Any] | None = None

    @property
    def is_change(self) -> bool:
        """Return whether it changes something."""
        return self.method != "GET" and not self.is_search


SIMILAR: Final = Operation(
    "POST",
    "/v1/similar",
    "The questions that ask the same, with their best answers: the same as a text, or as a stored question.",
    schemas.Similar,
    body=schemas.SimilarRequest,
    refusals=(404, 409),
    is_search=True,
    example={
        "title": "Bluetooth headphones: bad sound during calls",
        "k": 3,
        "fields": ["score", "question.url", "best_answer.text"],
    },
)
QUESTIONS: Final = Operation(
    "GET",
    "/v1/questions",
    "The forum's questions, newest first by date; those without a date are last.",
    schemas.QuestionsPage,
    query=schemas.QuestionsQuery,
)
QUESTION: Final = Operation(
    "GET",
    "/v1/questions/{id}",
    "A question with its answers and links.",
    schemas.ShownQuestion,
    refusals=(404,),
)
PUT_QUESTION: Final = Operation(
    "PUT",
    "/v1/questions/{id}",
    "Add or replace a question; it is on disk when the answer comes.",
    schemas.Written,
    body=schemas.QuestionRequest,
    right="write",
    example={
        "title": "Wifi drops every evening",
        "body": "Since **the update** it drops at eight.",
        "markup": "markdown",
        "tags": ["wifi"],
        "created": "2024-05-01T20:15:00Z",
    },
)
DELETE_QUESTION: Final = Operation(
    "DELETE",
    "/v1/questions/{id}",
    "Delete a question with its answers and links.",
    schemas.Written,
    right="write",
    refusals=(404,),
)
MARK: Final = Operation(
    "PUT",
    "/v1/questions/{id}/originals/{original}",
    "Link a question as a duplicate of another: the other is shown in its place.",
    schemas.Written,
    right="write",
    refusals=(404,),
)
UNMARK: Final = Operation(
    "DELETE",
    "/v1/questions/{id}/originals/{original}",
    "Remove a duplicate link.",
    schemas.Written,
    right="write",
    refusals=(404,),
)
PUT_ANSWER: Final = Operation(
    "PUT",
    "/v1/answers/{id}",
    "Add or replace an answer; it is on disk when the answer comes.",
    schemas.Written,
    body=schemas.AnswerRequest,
    right="write",
    example={"question_id": "q1", "body": "Choose another channel.", "accepted": True},
    refusals=(404,),
)
DELETE_ANSWER: Final = Operation(
    "DELETE",
    "/v1/answers/{id}",
    "Delete an answer.",
    schemas.Written,
    right="write",
    refusals=(404,),
)
HELPED: Final = Operation(
    "POST",
    "/v1/questions/{id}/helped",
    "Count that this question answered the one that somebody was about to ask.",
    schemas.HelpedCount,
    refusals=(404,),
)
OPENED: Final = Operation(
    "POST",
    "/v1/questions/{id}/opened",
    "Count that this question was opened where it was suggested.",
    schemas.Opened,
    refusals=(404,),
)
PAIRS: Final = Operation(
    "GET",
    "/v1/duplicates",
    "Pairs of the archive that may be duplicates, best first.",
    schemas.PairsPage,
    query=schemas.PairsQuery,
)
GROUPS: Final = Operation(
    "GET",
    "/v1/duplicates/groups",
    "Questions of the archive that ask the same, each the same as every other, largest group first.",
    schemas.GroupsPage,
    query=schemas.GroupsQuery,
)
DECIDE: Final = Operation(
    "POST",
    "/v1/decisions",
    "Decide on a pair: a judgement, a link where they are duplicates, and an entry of the log.",
    LogEntry,
    body=schemas.DecisionRequest,
    right="write",
    example={"question": "q1156", "candidate": "q1045", "verdict": "duplicate", "by": "ann"},
    refusals=(404, 409),
)
UNDO: Final = Operation(
    "POST",
    "/v1/decisions/undo",
    "Undo a decision: what was judged before counts again, and a link that nobody else has made goes.",
    LogEntry,
    body=schemas.UndoRequest,
    right="write",
    example={"number": 1, "by": "ann"},
    refusals=(404, 409),
)
LOG: Final = Operation(
    "GET",
    "/v1/log",
    "Who decided and undid what, newest first; for keys that may write.",
    schemas.LogPage,
    query=schemas.LogQuery,
    right="write",
)
FOLLOW: Final = Operation(
    "POST",
    "/v1/follow",
    "Take a webhook of the forum that this one follows, as Discourse or GitHub signs and sends it.",
    schemas.Followed,
    right=None,
    refusals=(401, 403, 404, 408, 415),
)
STATUS: Final = Operation("GET", "/v1/status", "What the forum holds, and how the service does.", schemas.Status)
METRICS: Final = Operation("GET", "/metrics", "Counts and times, as Prometheus reads them.", str, media=PROMETHEUS)
HEALTH: Final = Operation("GET", "/healthz", "Whether the service lives.", schemas.Health, right=None)
READY: Final = Operation("GET", "/readyz", "Whether the service is ready to answer.", schemas.Health, right=None)
DOCUMENT: Final = Operation("GET", "/openapi.json", "This document.", dict, right=None)

OPERATIONS: Final[tuple[Operation[Any], ...]] = (
    *(SIMILAR, QUESTIONS, QUESTION, PUT_QUESTION, DELETE_QUESTION, MARK, UNMARK, PUT_ANSWER, DELETE_ANSWER),
    *(HELPED, OPENED, PAIRS, GROUPS, DECIDE, UNDO, LOG, FOLLOW, STATUS, METRICS, HEALTH, READY, DOCUMENT),
)


# -- the document ------------------------------------------------------------------------------------------------------

ALL_REFUSALS: Final = (400, 405, 413, 421, 429, 500, 503, 504, 507)
"""Statuses that any request may be refused with."""

PARTIAL: Final = frozenset({"SimilarHit", "HitAnswer", "Question"})
"""Of these a request may ask for some fields alone."""

WITH_KEY: Final = (401, 403)
WITH_BODY: Final = (408, 415, 422)
_REF: Final = "#/components/schemas/{name}"
_NAME: Final = re.compile(r"{(\w+)}")
_PATH_VALUE: Final = {"type": "string", "minLength": 1, "maxLength": 512}


def service_document() -> dict[str, object]:
    """Return the OpenAPI 3.1 document of the service; msgspec describes what is sent and answered."""
    sent = _described([operation.body for operation in OPERATIONS if operation.body is not None])
    answered = _described([schemas.Error, *(operation.returns for operation in OPERATIONS)])
    for name, shape in answered.items():
        if name not in PARTIAL:  # whatever has a default is sent all the same
            shape["required"] = list(shape["properties"])
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described_operation(operation)
    error = {JSON: {"schema": _reference(schemas.Error)}}
    described = [operation for path in paths.values() for operation in path.values()]
    refused = {name for operation in described for name in operation["responses"]} - {"200"}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "askalike",
            "version": __version__,
            "description": "Finds the questions in a forum that ask the same. Errors are {error, hint}.",
        },
        "servers": [{"url": "./", "description": "The service that this document comes from."}],
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


def _described_operation(operation: Operation[Any]) -> dict[str, Any]:
    words = re.findall(r"[a-z0-9]+", operation.path.replace("/v1", ""))
    described: dict[str, Any] = {
        "operationId": "_".join([operation.method.lower(), *words]),
        "summary": operation.about,
        "responses": {"200": _answer(operation), **_refusals(operation)},
    }
    names = _NAME.findall(operation.path)
    parameters = [{"name": name, "in": "path", "required": True, "schema": _PATH_VALUE} for name in names]
    if operation.query is not None:
        properties = _described([operation.query])[operation.query.__name__]["properties"]
        parameters += [
            {"name": name, "in": "query", "required": False, "schema": schema} for name, schema in properties.items()
        ]
    if parameters:
        described["parameters"] = parameters
    if operation.body is not None:
        content = {"schema": _reference(operation.body), "example": operation.example}
        described["requestBody"] = {"required": True, "content": {JSON: content}}
    if operation.right is not None:
        described["security"] = [{"key": []}, {}]
        described["description"] = f"Needs the right to {operation.right}, where keys are asked for."
    return described


def _answer(operation: Operation[Any]) -> dict[str, Any]:
    return {"description": "Done.", "content": {operation.media: {"schema": _reference(operation.returns)}}}


def _refusals(operation: Operation[Any]) -> dict[str, Any]:
    statuses = {*ALL_REFUSALS, *operation.refusals}
    if operation.right is not None:
        statuses |= {*WITH_KEY}
    if operation.body is not None:
        statuses |= {*WITH_BODY}
    if operation.query is not None or "{" in operation.path:
        statuses |= {422}
    return {str(status): {"$ref": f"#/components/responses/{status}"} for status in sorted(statuses)}


def _reference(kind: Any) -> dict[str, Any]:
    """Return a reference to a shape, or how a plain type is described."""
    ((reference,), _) = msgspec.json.schema_components([kind], ref_template=_REF)
    return reference
