"""What the service tells about itself and its forum."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Collection

from askalike._version import __version__
from askalike.search import RANKERS, RERANKERS
from askalike.server.metrics import Gauge, merged
from askalike.server.service import Service
from askalike.server.states import (
    DuplicatesState,
    FeedbackState,
    ForumState,
    IndexState,
    LatencyView,
    MayView,
    RankerView,
    ServiceState,
    StatusAnswer,
    VectorsView,
)
from askalike.store.rows import from_microseconds
from askalike.wire import moment_text


def status(service: Service, may: Collection[str]) -> StatusAnswer:
    """Return what a forum's maintenance wants to know.

    Args:
        may: what the request that asks may do.
    """
    forum = service.engine.forum
    info = forum.info()
    counts, vectors = info.counts, info.vectors
    verdicts = Counter(one.verdict for one in forum.verdicts())
    compared = service.engine.duplicates.progress()
    about = {name: ranker.about for name, ranker in RANKERS.items()} | dict(RERANKERS)
    return StatusAnswer(
        version=__version__,
        forum=ForumState(
            name=forum.path.name,
            language=info.language,
            questions=counts.questions,
            answers=counts.answers,
            duplicates=counts.duplicates,
            related=counts.related,
            answered=counts.questions_with_answer,
            first=moment_text(from_microseconds(counts.first_us)),
            last=moment_text(from_microseconds(counts.last_us)),
            size_bytes=info.size_bytes,
        ),
        index=IndexState(info.behind),
        vectors=VectorsView(
            vectors.model, vectors.entries, vectors.waiting, vectors.next_model, has_graph=vectors.has_graph
        ),
        rankers=[RankerView(name, about.get(name, ""), available) for name, available in forum.rankers().items()],
        ranker=forum.settings.search.ranker,
        duplicates=DuplicatesState(compared.done, compared.questions, forum.pairs.store.count()),
        feedback=FeedbackState(verdicts["duplicate"], verdicts["different"]),
        service=_service(service, may),
        latency_ms={route: LatencyView(*times) for route, times in service.metrics.latencies_ms().items()},
    )


def _service(service: Service, may: Collection[str]) -> ServiceState:
    return ServiceState(
        worker_pid=os.getpid(),
        workers=service.settings.workers,
        started=moment_text(service.started.replace(microsecond=0)) or "",
        uptime_s=round(time.monotonic() - service.began_s, 1),
        requests=service.metrics.requests(),
        open_without_key=not service.settings.needs_keys,
        may=MayView(read="read" in may, write="write" in may),
    )


def gauges(service: Service) -> list[Gauge]:
    """Return what Prometheus watches beside the counts of requests."""
    forum = service.engine.forum
    vectors = forum.vectors
    return [
        Gauge("askalike_questions", "Questions in the forum.", forum.size()),
        Gauge("askalike_index_behind", "Changes that no search sees yet.", forum.behind),
        Gauge("askalike_vectors", "Vectors in the set that answers.", vectors.entries),
        Gauge("askalike_vectors_waiting", "Questions that wait to be encoded.", vectors.waiting),
        Gauge("askalike_pairs", "Pairs that may ask the same.", forum.pairs.store.count()),
        Gauge("askalike_pairs_waiting", "Questions that wait to be compared.", forum.pairs.waiting()),
        Gauge("askalike_workers", "Worker processes.", service.settings.workers),
    ]


def metrics_text(service: Service) -> str:
    """Return everything that is counted, by all workers, as Prometheus reads it."""
    return merged([service.metrics.text(gauges(service)), *service.board.others()])
