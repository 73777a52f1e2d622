"""The service's JSON: requests and answers, each shape defined once for the service, its client and its document.

A question, an answer, a judgement, a matched word are those of ``askalike.types``; here is what the service adds.
Requests have bounds and name every field that they take: reading one stops at the first value that does not fit, so
that nothing is nested deeper than its fields are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import Meta, Struct

from askalike.errors import InputError
from askalike.types import (
    Answer,
    Correction,
    Draw,
    Filters,
    GroupKind,
    LikelihoodWord,
    LinkKind,
    LogEntry,
    Markup,
    Match,
    Order,
    Query,
    Question,
    ReliabilityBin,
    language_code,
    parse_moment,
)

MOST_HITS: Final = 100
_LARGEST: Final = 2**63 - 1

Id = Annotated[str, Meta(min_length=1, max_length=512)]
Title = Annotated[str, Meta(max_length=1_000)]
Body = Annotated[str, Meta(max_length=200_000)]
Name = Annotated[str, Meta(max_length=200)]
Tag = Annotated[str, Meta(min_length=1, max_length=100)]
Moment = Annotated[
    str, Meta(max_length=64, description="ISO 8601; UTC if unsaid", examples=["2024-05-01T12:30:00Z", "2024-05-01"])
]
Votes = Annotated[int, Meta(ge=-_LARGEST, le=_LARGEST)]
OwnId = Annotated[Id, Meta(description="May be left out; else the same as in the path.")]
Limit = Annotated[int, Meta(ge=1, le=100)]
Minimum = Annotated[
    float | str,
    Meta(
        description="The least score, by default a probability; or a promise, precision:P or recall:R such as "
        "precision:0.9; or default, by which 19 of 20 titles of other subjects find nothing."
    ),
]
Language = Annotated[
    str,
    Meta(
        max_length=35,
        pattern="^([A-Za-z]{2,3}([-_.@][A-Za-z0-9]+)*)?$",
        description="Of a forum in several: an ISO 639 code such as de, or a tag such as pt-BR.",
    ),
]
Cursor = Annotated[Name, Meta(description="The ``next`` of the page before.")]


def _other_id() -> InputError:
    return InputError("the id in the body is another than in the path", "leave it out of the body")


# -- requests ----------------------------------------------------------------------------------------------------------


class _Request(Struct, frozen=True, forbid_unknown_fields=True):
    """The base of all that is sent: a field that is not known is refused."""


class SimilarRequest(_Request, frozen=True):
    """A question that may have been asked before."""

    title: Annotated[Title, Meta(description="One line; title, body or id must hold something.")] = ""
    body: Body = ""
    markup: Annotated[Markup, Meta(description="How the body is written.")] = "plain"
    k: Annotated[int, Meta(ge=1, le=MOST_HITS, description="How many hits.")] = 10
    ranker: Annotated[Name, Meta(description="One of the forum's rankers; its default if omitted.")] | None = None
    before: Annotated[Moment, Meta(description="Only questions asked before this moment.")] | None = None
    after: Annotated[Moment, Meta(description="Only questions asked at this moment or later.")] | None = None
    answered: Annotated[bool, Meta(description="Only questions with an answer, or only those without.")] | None = None
    closed: Annotated[bool, Meta(description="Only closed questions, or only open ones.")] | None = None
    minimum: Minimum = 0.0
    order: Annotated[
        Order, Meta(description="help: the same hits, a good answer before others that are about as likely.")
    ] = "probability"
    tags: Annotated[tuple[Tag, ...], Meta(max_length=20, description="Only questions with all of these.")] = ()
    exclude: Annotated[tuple[Id, ...], Meta(max_length=1_000, description="Never these questions.")] = ()
    id: (
        Annotated[
            Id, Meta(description="The question's own id, where the forum holds it; without a text, that is read.")
        ]
        | None
    ) = None
    not_tags: Annotated[tuple[Tag, ...], Meta(max_length=20, description="Only questions with none of these.")] = ()
    languages: Annotated[tuple[Language, ...], Meta(max_length=20, description="Only questions in one of these.")] = ()
    query_language: Annotated[
        Language, Meta(description="What the question is in, in a forum of several; else detected.")
    ] = ""
    fields: Annotated[
        tuple[HitField, ...],
        Meta(
            description="Only these of each hit, such as score, and question.id and question.title in any case; "
            "else all but best_answer.html."
        ),
    ] = ()

    @property
    def has_text(self) -> bool:
        """Whether something is asked; else the stored question of ``id`` is read."""
        return bool(self.title.strip() or self.body.strip())

    @property
    def query(self) -> Query:
        """Return the search.

        Raises:
            SettingError: ``before`` or ``after`` is no moment.
        """
        filters = Filters(
            tags=self.tags,
            before=parse_moment("before", self.before),
            exclude_ids=frozenset(self.exclude),
            exclude_tags=self.not_tags,
            after=parse_moment("after", self.after),
            is_answered=self.answered,
            is_closed=self.closed,
            languages=self.languages,
        )
        return Query(
            self.title,
            self.body,
            self.markup,
            self.k,
            filters,
            self.ranker,
            self.id or "",
            minimum=self.minimum,
            order=self.order,
            language=self.query_language,
        )

    @property
    def hit_parts(self) -> dict[str, set[str]]:
        """Return the wanted fields of a hit, in the order in which they are sent → the wanted fields of each of these.

        >>> parts = SimilarRequest(fields=("score", "best_answer.text")).hit_parts
        >>> parts["score"], parts["best_answer"], sorted(parts["question"])
        (set(), {'text'}, ['id', 'title'])
        """
        wanted: dict[str, set[str]] = {}
        for name in self.fields or DEFAULT_FIELDS:
            whole, _, part = name.partition(".")
            wanted.setdefault(whole, set()).update([part] if part else PARTS.get(whole, ()))
        wanted.setdefault("question", set()).update(NAMED)
        return wanted


class QuestionRequest(_Request, frozen=True):
    """A question to be stored under the id of the path."""

    title: Title
    body: Body = ""
    markup: Markup = "plain"
    tags: Annotated[tuple[Tag, ...], Meta(max_length=100)] = ()
    created: Moment | None = None
    closed: Moment | None = None
    score: Votes | None = None
    url: Title = ""
    author: Name = ""
    language: Annotated[Language, Meta(description="What it is in; found out if unsaid, in a forum of several.")] = ""
    is_language_detected: Annotated[bool, Meta(description="The language was found out, and is so again.")] = False
    id: OwnId | None = None

    def question(self, identifier: str) -> Question:
        """Return the question.

        Raises:
            SettingError: a date is none.
            InputError: its own id is another.
        """
        if self.id not in (None, identifier):
            raise _other_id()
        return Question(
            identifier,
            self.title,
            self.body,
            self.markup,
            self.tags,
            parse_moment("created", self.created),
            parse_moment("closed", self.closed),
            self.score,
            self.url,
            self.author,
            language_code(self.language),
            self.is_language_detected,
        )


class AnswerRequest(_Request, frozen=True):
    """An answer to be stored under the id of the path."""

    question_id: Id
    body: Body
    markup: Markup = "plain"
    created: Moment | None = None
    score: Votes | None = None
    author: Name = ""
    accepted: Annotated[bool, Meta(description="Accepted as the solution.")] = False
    id: OwnId | None = None

    def answer(self, identifier: str) -> Answer:
        """Return the answer.

        Raises:
            SettingError: its date is none.
            InputError: its own id is another.
        """
        if self.id not in (None, identifier):
            raise _other_id()
        return Answer(
            identifier,
            self.question_id,
            self.body,
            self.markup,
            parse_moment("created", self.created),
            self.score,
            self.author,
            is_accepted=self.accepted,
        )


By = Annotated[
    Name, Meta(description="Who does it, where the request has no key; else it is as the key is named, if it is.")
]


class DecisionRequest(_Request, frozen=True):
    """A person's decision on a pair; ``candidate`` is the original, where they are duplicates."""

    question: Id
    candidate: Id
    verdict: Literal["duplicate", "different"]
    by: By = ""
    draw: Annotated[Draw, Meta(description="As it came with the pair; left out: a pair that was likely.")] = Draw()
    link: Annotated[bool, Meta(description="Link a duplicate to its original, which is shown instead.")] = True


class UndoRequest(_Request, frozen=True):
    """A decision that is to be undone, by the number of its entry in the log."""

    number: Annotated[int, Meta(ge=1, le=_LARGEST)]
    by: By = ""


class LogQuery(_Request, frozen=True):
    """Which page of the log is wanted."""

    before: Annotated[int, Meta(ge=0, le=_LARGEST, description="The ``next`` of the page before.")] = 0
    limit: Limit = 20
    question: Annotated[Id, Meta(description="With ``candidate``: only entries on this pair.")] | None = None
    candidate: Id | None = None


class QuestionsQuery(_Request, frozen=True):
    """Which page of the questions is wanted."""

    after: Cursor | None = None
    limit: Limit = 20


class PairsQuery(_Request, frozen=True):
    """Which page of the pairs is wanted."""

    cursor: Cursor | None = None
    limit: Limit = 20
    minimum: Minimum = 0.5
    sample: Annotated[
        bool,
        Meta(description="For a queue to judge: every fifth pair is drawn at random, whatever its score."),
    ] = False
    tag: Annotated[Tag, Meta(description="Only pairs of which a question has this tag.")] | None = None


class GroupsQuery(_Request, frozen=True):
    """Which page of the groups is wanted."""

    cursor: Cursor | None = None
    limit: Limit = 20
    minimum: Annotated[float, Meta(ge=0.5, le=1, description="No pair of a group is less likely the same.")] = 0.85


# -- answers -----------------------------------------------------------------------------------------------------------

Ranges = Annotated[
    list[Annotated[list[int], Meta(min_length=2, max_length=2)]],
    Meta(
        description="[start, end] of each, in Unicode code points, the end not included, ascending. "
        'In JavaScript: [...text].slice(start, end).join("").'
    ),
]


Outcome = Literal["added", "edited", "unchanged", "deleted"]


class Error(Struct, frozen=True):
    """Why a request was refused, and what can be done."""

    error: str
    hint: str


class Likelihood(Struct, frozen=True):
    """The probability that an answer to one question answers the other; null, "unknown", where the ranker gives scores
    alone."""

    value: float | None
    word: LikelihoodWord


class ShownAnswer(Answer, frozen=True, kw_only=True):
    """An answer as it was written, as safe HTML, and as plain text."""

    html: str
    text: str


class HitAnswer(Struct, frozen=True):
    """The best answer to a hit: as plain text, and as safe HTML where that is asked for."""

    id: str = ""
    created: datetime | None = None
    score: int | None = None
    author: str = ""
    accepted: bool = False
    text: str = ""
    html: str = ""


class Highlights(Struct, frozen=True):
    """Where the matched words are in a hit's title and in its excerpt."""

    title: Ranges = []
    excerpt: Ranges = []


class Via(Struct, frozen=True):
    """The question that was found, where its original is shown in its place; what matched are its words."""

    id: str
    title: str
    highlights: Ranges


class SimilarHit(Struct, frozen=True):
    """A similar question, with what an asker needs to judge it; what the request leaves out has its default."""

    rank: int = 0
    score: float = 0.0
    likelihood: Likelihood = Likelihood(None, "unknown")
    components: Mapping[str, float] = {}
    matched: tuple[Match, ...] = ()
    missing: tuple[str, ...] = ()
    highlights: Highlights = Highlights()
    question: Question = Question("", "")
    excerpt: str = ""
    best_answer: HitAnswer | None = None
    answers: int = 0
    via: Via | None = None


PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "question": tuple(part.name for part in dataclasses.fields(Question)),
    "best_answer": HitAnswer.__struct_encode_fields__,
}
"""Fields of a hit whose own fields can be asked for one by one."""
HIT_FIELDS: Final = (
    *SimilarHit.__struct_encode_fields__,
    *(f"{name}.{part}" for name, parts in PARTS.items() for part in parts),
)
if TYPE_CHECKING:
    HitField = str
else:
    HitField = Literal[HIT_FIELDS]
NAMED: Final = ("id", "title")
"""Of the question of a hit, these are always sent."""
DEFAULT_FIELDS: Final = (
    *(name for name in SimilarHit.__struct_encode_fields__ if name != "best_answer"),
    *(f"best_answer.{part}" for part in PARTS["best_answer"] if part != "html"),
)


class Similar(Struct, frozen=True):
    """The hits of a search, best first; a notice where the encoder or the reranker could not be asked, or not all is
    indexed."""

    ranker: str
    took_ms: float
    corrections: tuple[Correction, ...]
    hits: tuple[SimilarHit, ...]
    notice: str = ""
    least: Annotated[
        float | None,
        Meta(description="The forum's threshold: fold hits that are less likely; null where the ranker gives scores."),
    ] = None
    is_new: Annotated[
        bool, Meta(description="No hit reaches the threshold, and the encoder reads the question's language.")
    ] = False


class ShownLink(Struct, frozen=True):
    """A link between a question and another, seen from the first."""

    id: str
    title: str
    kind: LinkKind
    direction: Literal["to", "from"]


class ShownQuestion(Struct, frozen=True):
    """A question with all that belongs to it."""

    question: Question
    html: str
    text: str
    answers: tuple[ShownAnswer, ...]
    links: tuple[ShownLink, ...]


class ListedQuestion(Struct, frozen=True):
    """A question in a list."""

    id: str
    title: str
    created: datetime | None
    score: int | None
    answers: int
    url: str
    excerpt: str
    tags: tuple[str, ...]


class QuestionsPage(Struct, frozen=True):
    """A page of the forum's questions, newest first by date; those without a date are last."""

    questions: tuple[ListedQuestion, ...]
    next: str | None
    total: int


class Written(Struct, frozen=True):
    """What became of a question: it is on disk, and searches find it where ``indexed``."""

    id: str
    operation: Outcome
    indexed: bool


class Compared(Struct, frozen=True):
    """How many of the forum's questions have been compared with the others."""

    done: int
    questions: int


class ShownPair(Struct, frozen=True):
    """Two questions that may be duplicates; ``question`` is the later one. Send ``draw`` back with what is judged."""

    question: ListedQuestion
    candidate: ListedQuestion
    score: float
    cosine: float | None
    likelihood: Likelihood
    draw: Draw


class PairsPage(Struct, frozen=True):
    """A page of pairs, best first."""

    pairs: tuple[ShownPair, ...]
    next: str | None
    progress: Compared
    you: Annotated[str, Meta(description="What the request's key is named.")] = ""


class LoggedEntry(LogEntry, frozen=True, kw_only=True):
    """An entry of the log, with the titles of both questions; empty where one is not there."""

    question_title: str = ""
    candidate_title: str = ""


class LogPage(Struct, frozen=True):
    """A page of the log, newest first; ``you`` is what the request's key is named."""

    entries: tuple[LoggedEntry, ...]
    next: int | None
    you: str = ""


class ShownWeakest(Struct, frozen=True):
    """The least likely pair of a group."""

    question: ListedQuestion
    candidate: ListedQuestion
    likelihood: Likelihood


class ShownGroup(Struct, frozen=True):
    """Questions that ask the same, each the same as every other; ``questions`` are the first 20, the canonical first.

    ``weakest`` is null where links, judgements or the same text join all.
    """

    canonical: ListedQuestion
    size: int
    kind: GroupKind
    weakest: ShownWeakest | None
    questions: tuple[ListedQuestion, ...]


class GroupsPage(Struct, frozen=True):
    """A page of groups, largest first."""

    groups: tuple[ShownGroup, ...]
    next: str | None
    progress: Compared


# -- the service itself ------------------------------------------------------------------------------------------------


class ListedForum(Struct, frozen=True):
    """One of the forums of a service.

    Args:
        path: under which it answers.
        is_open: whether it is open now; it is opened when it is asked for.
    """

    name: str
    path: str
    is_open: bool


class Forums(Struct, frozen=True):
    """The forums of a service that the request may read."""

    forums: tuple[ListedForum, ...]


class Followed(Struct, frozen=True):
    """What became of a webhook: kept on disk, known since it came before, or ignored, as a ping is."""

    outcome: Literal["kept", "known", "ignored"]


class Health(Struct, frozen=True):
    """Whether the service lives, or is ready."""

    status: Literal["ok", "ready"]


class ForumState(Struct, frozen=True):
    """What the forum holds."""

    name: str
    language: str
    languages: Mapping[str, int]
    questions: int
    answers: int
    duplicates: int
    related: int
    answered: int
    first: datetime | None
    last: datetime | None
    size_bytes: int


class IndexState(Struct, frozen=True):
    """How many changes no search sees yet."""

    behind: int


class VectorsState(Struct, frozen=True):
    """Which model answers, and what is still to be encoded."""

    model: str
    entries: int
    waiting: int
    next_model: str


class RankerState(Struct, frozen=True):
    """A way to rank, and whether this forum can be searched by it."""

    name: str
    about: str
    available: bool


class DuplicatesState(Struct, frozen=True):
    """How far the comparison of all questions has come."""

    done: int
    questions: int
    pairs: int


class FeedbackState(Struct, frozen=True):
    """How many pairs people have judged, by the judgement that counts."""

    duplicate: int
    different: int


class HelpedState(Struct, frozen=True):
    """How often askers said that an earlier question answered theirs, and how many questions did."""

    times: int
    questions: int


class HelpedCount(Struct, frozen=True):
    """How often a question answered somebody's."""

    id: str
    times: int


class Opened(Struct, frozen=True):
    """A suggestion that was opened, which is counted."""

    id: str


class Permissions(Struct, frozen=True):
    """What this request's key may do."""

    read: bool
    write: bool


class WorkerState(Struct, frozen=True):
    """The worker that answered."""

    worker_pid: int
    workers: int
    started: datetime
    uptime_s: float
    requests: int
    open_without_key: bool
    ask_url: Annotated[str, Meta(description="Where a question is asked; {title} stands for its title.")]
    may: Permissions


class Status(Struct, frozen=True):
    """What a forum holds, how far its indexes are, and how the service does."""

    version: str
    forum: ForumState
    index: IndexState
    vectors: VectorsState
    rankers: tuple[RankerState, ...]
    ranker: str
    duplicates: DuplicatesState
    feedback: FeedbackState
    helped: HelpedState
    reliability: tuple[ReliabilityBin, ...]
    service: WorkerState
