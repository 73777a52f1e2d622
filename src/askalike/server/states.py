"""What the service tells about itself, as values: their fields are the JSON's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class HealthAnswer:
    """Whether the service lives, or is ready."""

    status: Literal["ok", "ready"]


@dataclass(frozen=True, slots=True)
class ForumState:
    """What the forum holds."""

    name: str
    language: str
    questions: int
    answers: int
    duplicates: int
    related: int
    answered: int
    first: str | None
    last: str | None
    size_bytes: int


@dataclass(frozen=True, slots=True)
class IndexState:
    """How many changes no search sees yet."""

    behind: int


@dataclass(frozen=True, slots=True)
class VectorsView:
    """Which model answers, and what is still to be encoded."""

    model: str
    entries: int
    waiting: int
    next_model: str
    has_graph: bool


@dataclass(frozen=True, slots=True)
class RankerView:
    """A way to rank, and whether this forum can be searched by it."""

    name: str
    about: str
    available: bool


@dataclass(frozen=True, slots=True)
class DuplicatesState:
    """How far the comparison of all questions has come."""

    done: int
    questions: int
    pairs: int


@dataclass(frozen=True, slots=True)
class FeedbackState:
    """How many pairs people have judged, by the verdict that counts."""

    duplicate: int
    different: int


@dataclass(frozen=True, slots=True)
class MayView:
    """What this request's key may do."""

    read: bool
    write: bool


@dataclass(frozen=True, slots=True)
class ServiceState:
    """The worker that answered."""

    worker_pid: int
    workers: int
    started: str
    uptime_s: float
    requests: int
    open_without_key: bool
    may: MayView


@dataclass(frozen=True, slots=True)
class LatencyView:
    """How long the newest thousand answers of a route took; ``count`` is of all."""

    p50: float
    p95: float
    p99: float
    count: int


@dataclass(frozen=True, slots=True)
class StatusAnswer:
    """What a forum's maintenance wants to know."""

    version: str
    forum: ForumState
    index: IndexState
    vectors: VectorsView
    rankers: list[RankerView]
    ranker: str
    duplicates: DuplicatesState
    feedback: FeedbackState
    service: ServiceState
    latency_ms: dict[str, LatencyView]
