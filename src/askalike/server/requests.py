"""What requests may hold, and how much: checked once, here."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, WithJsonSchema
from pydantic.functional_validators import BeforeValidator

from askalike.types import Answer, Feedback, Filters, Markup, Query, Question, Verdict

MOST_HITS = 100
_LARGEST = 2**63 - 1


def _moment(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("no moment; expected one such as 2024-05-01 or 2024-05-01T12:30:00Z") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


Id = Annotated[str, StringConstraints(min_length=1, max_length=512)]
Title = Annotated[str, StringConstraints(max_length=1_000)]
Body = Annotated[str, StringConstraints(max_length=200_000)]
Name = Annotated[str, StringConstraints(max_length=200)]
Tag = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Moment = Annotated[
    datetime,
    BeforeValidator(_moment),
    WithJsonSchema({"type": "string", "examples": ["2024-05-01T12:30:00Z"], "description": "ISO 8601; UTC if unsaid"}),
]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SimilarRequest(_Request):
    """A question that may have been asked before."""

    title: Title = Field("", description="One line; title or body must hold something.")
    body: Body = ""
    k: int = Field(10, ge=1, le=MOST_HITS, description="How many hits.")
    markup: Markup = Field("plain", description="How the body is written.")
    tags: list[Tag] = Field(default_factory=list, max_length=20, description="Only questions with all of these.")
    before: Moment | None = Field(None, description="Only questions asked before this moment.")
    exclude: list[Id] = Field(default_factory=list, max_length=1_000, description="Never these questions.")
    ranker: Name | None = Field(None, description="One of the forum's rankers; its default if omitted.")
    explain: bool = Field(False, description="Tell how much each word counts.")
    id: Id | None = Field(None, description="The question's own id, where the forum holds it.")

    def query(self) -> Query:
        """Return the search."""
        filters = Filters(tuple(self.tags), self.before, frozenset(self.exclude))
        return Query(
            self.title, self.body, self.markup, self.k, filters, self.ranker, self.id or "", is_explained=self.explain
        )


class QuestionRequest(_Request):
    """A question to be stored under the id of the path."""

    title: Title
    body: Body = ""
    markup: Markup = "plain"
    tags: list[Tag] = Field(default_factory=list, max_length=100)
    created: Moment | None = None
    closed: Moment | None = None
    score: int | None = Field(None, ge=-_LARGEST, le=_LARGEST)
    url: Title = ""
    author: Name = ""
    id: Id | None = Field(None, description="May be left out; else the same as in the path.")

    def question(self, identifier: str) -> Question:
        """Return the question."""
        return Question(
            identifier,
            self.title,
            self.body,
            self.markup,
            tuple(self.tags),
            self.created,
            self.closed,
            self.score,
            self.url,
            self.author,
        )


class RecordRequest(QuestionRequest):
    """One line of a bulk stream."""

    id: Id


class AnswerRequest(_Request):
    """An answer to be stored under the id of the path."""

    question_id: Id
    body: Body
    markup: Markup = "plain"
    created: Moment | None = None
    score: int | None = Field(None, ge=-_LARGEST, le=_LARGEST)
    author: Name = ""
    accepted: bool = Field(False, description="Marked as the solution.")
    id: Id | None = Field(None, description="May be left out; else the same as in the path.")

    def answer(self, identifier: str) -> Answer:
        """Return the answer."""
        return Answer(
            identifier,
            self.question_id,
            self.body,
            self.markup,
            self.created,
            self.score,
            self.author,
            is_accepted=self.accepted,
        )


class FeedbackRequest(_Request):
    """A person's verdict on a pair."""

    question: Id
    candidate: Id
    verdict: Verdict = Field(description="withdrawn: what was said before no longer counts.")
    by: Name = Field("", description="Who judged.")

    def feedback(self) -> Feedback:
        """Return the verdict."""
        return Feedback(self.question, self.candidate, self.verdict, self.by)


class _Query(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SimilarQuery(_Query):
    """How similar questions of a stored one are wanted."""

    k: int = Field(10, ge=1, le=MOST_HITS)
    ranker: Name | None = None
    explain: bool = False


class QuestionsQuery(_Query):
    """Which page of the questions is wanted."""

    after: Name | None = Field(None, description="The ``next`` of the page before.")
    limit: int = Field(20, ge=1, le=100)


class DuplicatesQuery(_Query):
    """Which page of the pairs is wanted."""

    cursor: Name | None = Field(None, description="The ``next`` of the page before.")
    limit: int = Field(20, ge=1, le=100)
    minimum: float = Field(0.5, ge=0, le=1, description="The least score of a pair.")


class ClustersQuery(DuplicatesQuery):
    """Which page of the clusters is wanted."""

    minimum: float = Field(0.5, ge=0, le=1, description="The least score of a pair, rounded down to steps of 0.05.")
