"""The table of routes: the source of the application and of its OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import BaseModel

from askalike.server import requests, schemas
from askalike.server.call import Call
from askalike.server.engine import Engine
from askalike.server.problem import Refused

Right = Literal["read", "write"]


@dataclass(frozen=True, slots=True)
class Described:
    """What the OpenAPI document tells of something that can be asked for.

    Args:
        may: the right that a key needs; None where none is.
        media: the type of the answer, and of the body where there is one.
        refusals: statuses that it may be refused with, beside those that all may.
    """

    method: str
    path: str
    about: str
    returns: type
    takes: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    may: Right | None = "read"
    media: str = "application/json"
    refusals: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Route:
    """One thing that can be asked for.

    Args:
        does: works in a thread; returns a value of ``returns``.
        returns: a view.
        takes: the model of the body, None where there is none.
        query: the model of the query string.
        may: the right that a key needs.
        refusals: statuses that this route may give beside those that all may.
    """

    method: str
    path: str
    about: str
    does: Callable[[Engine, Call], Any]
    returns: type
    takes: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    may: Right = "read"
    refusals: tuple[int, ...] = ()

    def described(self) -> Described:
        """Return what the OpenAPI document tells of it."""
        return Described(
            self.method,
            self.path,
            self.about,
            self.returns,
            takes=self.takes,
            query=self.query,
            may=self.may,
            refusals=self.refusals,
        )


def _put(engine: Engine, call: Call) -> schemas.Written:
    return engine.put(call.body.question(_identifier(call)))


def _put_answer(engine: Engine, call: Call) -> schemas.Written:
    return engine.put_answer(call.body.answer(_identifier(call)))


def _identifier(call: Call) -> str:
    identifier = call.path["id"]
    if call.body.id is not None and call.body.id != identifier:
        raise Refused(422, "the id in the body is another than in the path", "leave it out of the body")
    return identifier


def _similar_to(engine: Engine, call: Call) -> schemas.SimilarAnswer:
    query = call.query
    return engine.similar_to(call.path["id"], query.k, query.ranker, is_explained=query.explain)


ROUTES: Final[tuple[Route, ...]] = (
    Route(
        "POST",
        "/v1/similar",
        "Earlier questions that ask the same, with their best answers.",
        lambda engine, call: engine.similar(call.body.query()),
        schemas.SimilarAnswer,
        takes=requests.SimilarRequest,
        refusals=(409,),
    ),
    Route(
        "GET",
        "/v1/questions",
        "The forum's questions, newest first by date; those without a date are last.",
        lambda engine, call: engine.questions(call.query.limit, call.query.after),
        schemas.QuestionsAnswer,
        query=requests.QuestionsQuery,
    ),
    Route(
        "GET",
        "/v1/questions/{id}/similar",
        "Questions that are similar to a stored one, later ones too.",
        _similar_to,
        schemas.SimilarAnswer,
        query=requests.SimilarQuery,
        refusals=(404, 409),
    ),
    Route(
        "GET",
        "/v1/questions/{id}",
        "A question with its answers and links.",
        lambda engine, call: engine.question(call.path["id"]),
        schemas.QuestionAnswer,
        refusals=(404,),
    ),
    Route(
        "PUT",
        "/v1/questions/{id}",
        "Add or replace a question; it is on disk when the answer comes.",
        _put,
        schemas.Written,
        takes=requests.QuestionRequest,
        may="write",
    ),
    Route(
        "DELETE",
        "/v1/questions/{id}",
        "Delete a question with its answers and links.",
        lambda engine, call: engine.delete(call.path["id"]),
        schemas.Written,
        may="write",
        refusals=(404,),
    ),
    Route(
        "PUT",
        "/v1/questions/{id}/originals/{original}",
        "Mark a question a duplicate of another: the other is shown in its place.",
        lambda engine, call: engine.mark(call.path["id"], call.path["original"]),
        schemas.Written,
        may="write",
        refusals=(404,),
    ),
    Route(
        "DELETE",
        "/v1/questions/{id}/originals/{original}",
        "Take the mark of a duplicate away.",
        lambda engine, call: engine.unmark(call.path["id"], call.path["original"]),
        schemas.Written,
        may="write",
        refusals=(404,),
    ),
    Route(
        "PUT",
        "/v1/answers/{id}",
        "Add or replace an answer; it is on disk when the answer comes.",
        _put_answer,
        schemas.Written,
        takes=requests.AnswerRequest,
        may="write",
        refusals=(404,),
    ),
    Route(
        "DELETE",
        "/v1/answers/{id}",
        "Delete an answer.",
        lambda engine, call: engine.delete_answer(call.path["id"]),
        schemas.Written,
        may="write",
        refusals=(404,),
    ),
    Route(
        "POST",
        "/v1/feedback",
        "A person's verdict on two questions: a label to train with; a pair that differs is proposed no more.",
        lambda engine, call: engine.judge(call.body.feedback()),
        schemas.FeedbackView,
        takes=requests.FeedbackRequest,
        may="write",
        refusals=(404,),
    ),
    Route(
        "GET",
        "/v1/duplicates",
        "Pairs of the archive that may ask the same, best first.",
        lambda engine, call: engine.duplicates.pairs(call.query.cursor, call.query.limit, call.query.minimum),
        schemas.DuplicatesAnswer,
        query=requests.DuplicatesQuery,
    ),
    Route(
        "GET",
        "/v1/duplicates/clusters",
        "Questions of the archive that hang together by such pairs and by marks, largest cluster first.",
        lambda engine, call: engine.duplicates.clusters(call.query.cursor, call.query.limit, call.query.minimum),
        schemas.ClustersAnswer,
        query=requests.ClustersQuery,
    ),
)
