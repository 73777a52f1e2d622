"""What the service answers, as values: their fields are the JSON's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from askalike.types import LinkKind, Markup, Verdict

LikelihoodWord = Literal["almost certain", "likely", "possible", "unlikely", "unknown"]
Ranges = list[tuple[int, int]]
"""(start, end) in Unicode code points, the end not included, ascending."""


@dataclass(frozen=True, slots=True)
class ErrorView:
    """Why a request was refused, and what can be done."""

    error: str
    hint: str


@dataclass(frozen=True, slots=True)
class QuestionView:
    """A question as the forum holds it."""

    id: str
    title: str
    body: str
    markup: Markup
    tags: list[str]
    created: str | None
    closed: str | None
    score: int | None
    url: str
    author: str


@dataclass(frozen=True, slots=True)
class AnswerView:
    """An answer, as it was written, as safe HTML, and as plain text."""

    id: str
    question_id: str
    body: str
    markup: Markup
    created: str | None
    score: int | None
    author: str
    accepted: bool
    html: str
    text: str


@dataclass(frozen=True, slots=True)
class LikelihoodView:
    """How likely two questions ask the same; None, "unknown", where the ranker cannot tell."""

    value: float | None
    word: LikelihoodWord


@dataclass(frozen=True, slots=True)
class MatchView:
    """A word of the query that a hit has."""

    word: str
    field: Literal["title", "body"]
    weight: float


@dataclass(frozen=True, slots=True)
class HighlightsView:
    """Where the matched words are in a hit's title and in its excerpt."""

    title: Ranges
    excerpt: Ranges


@dataclass(frozen=True, slots=True)
class ViaView:
    """The question that was found, where its original stands in for it."""

    id: str
    title: str


@dataclass(frozen=True, slots=True)
class WordWeightView:
    """A word and how much of it the encoder lets in, in [0, 1]."""

    word: str
    weight: float


@dataclass(frozen=True, slots=True)
class WordMatchView:
    """A word of the query and what stands for it in a hit, where a ranker matches word by word."""

    word: str
    match: str
    similarity: float
    importance: float
    missing: bool


@dataclass(frozen=True, slots=True)
class WordEffectView:
    """A word of the query, and what the score's cosine loses without it."""

    word: str
    effect: float


@dataclass(frozen=True, slots=True)
class AttendedView:
    """What the ranker made of the words of the query and of a hit's title."""

    query_title: list[WordWeightView]
    query_body: list[WordWeightView]
    title: list[WordWeightView]
    matches: list[WordMatchView]
    effects: list[WordEffectView]


@dataclass(frozen=True, slots=True)
class HitView:
    """A similar question, with what an asker needs to judge it."""

    rank: int
    score: float
    likelihood: LikelihoodView
    components: dict[str, float]
    matched: list[MatchView]
    missing: list[str]
    highlights: HighlightsView
    question: QuestionView
    excerpt: str
    best_answer: AnswerView | None
    answers: int
    via: ViaView | None = None
    attended: AttendedView | None = None


@dataclass(frozen=True, slots=True)
class CorrectionView:
    """A word of the query that nobody knows, and the one that was searched for instead."""

    written: str
    meant: str


@dataclass(frozen=True, slots=True)
class SimilarAnswer:
    """The hits of a search, best first."""

    ranker: str
    took_ms: float
    corrections: list[CorrectionView]
    hits: list[HitView]


@dataclass(frozen=True, slots=True)
class LinkView:
    """A mark between a question and another, seen from the first."""

    id: str
    title: str
    kind: LinkKind
    direction: Literal["to", "from"]


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """A question with all that belongs to it."""

    question: QuestionView
    html: str
    text: str
    answers: list[AnswerView]
    links: list[LinkView]


@dataclass(frozen=True, slots=True)
class Brief:
    """A question in a list."""

    id: str
    title: str
    created: str | None
    score: int | None
    answers: int
    url: str
    excerpt: str
    tags: list[str]


@dataclass(frozen=True, slots=True)
class QuestionsAnswer:
    """A page of the forum's questions, those that came last first."""

    questions: list[Brief]
    next: str | None
    total: int


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a question: it is on disk, and searches find it where ``indexed``."""

    id: str
    operation: Literal["added", "edited", "unchanged", "deleted"]
    indexed: bool


@dataclass(frozen=True, slots=True)
class FeedbackView:
    """A person's verdict on a pair."""

    question: str
    candidate: str
    verdict: Verdict
    by: str
    at: str


@dataclass(frozen=True, slots=True)
class ProgressView:
    """How many of the forum's questions have been compared with the others."""

    done: int
    questions: int


@dataclass(frozen=True, slots=True)
class PairView:
    """Two questions that may ask the same; ``question`` is the later one."""

    question: Brief
    candidate: Brief
    score: float
    cosine: float | None
    likelihood: LikelihoodView
    cluster: int


@dataclass(frozen=True, slots=True)
class DuplicatesAnswer:
    """A page of pairs, best first."""

    pairs: list[PairView]
    next: str | None
    progress: ProgressView


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Questions that hang together by pairs and marks; ``questions`` are the first 20, the canonical one first."""

    canonical: Brief
    size: int
    pairs: int
    best: float
    questions: list[Brief] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ClustersAnswer:
    """A page of clusters, largest first."""

    clusters: list[ClusterView]
    next: str | None
    progress: ProgressView
