"""What the service reports about itself and its forum."""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

from askalike import schemas
from askalike._version import __version__
from askalike.errors import AskalikeError
from askalike.forum.pairs import LEAST_SCORE
from askalike.search import RANKERS
from askalike.search.reranker import RERANKER
from askalike.server.metrics import Gauge
from askalike.server.service import Service
from askalike.store.rows import from_microseconds

LOG: Final = logging.getLogger("askalike.server")


def status(service: Service, rights: Collection[str]) -> schemas.Status:
    """Return what a forum holds, how far its indexes are, and how the service does.

    Args:
        rights: what the request that asks may do.
    """
    forum = service.engine.forum
    info = forum.info()
    counts, vectors = info.counts, info.vectors
    verdicts = Counter(one.verdict for one in forum.store.judgements())
    compared = service.engine.duplicates.progress()
    about = {name: ranker.about for name, ranker in RANKERS.items()}
    about[RERANKER] = "the best by probability, each read together with the query by what the forum's user named"
    return schemas.Status(
        version=__version__,
        forum=schemas.ForumState(
            name=forum.path.name,
            language=info.language,
            languages=info.languages,
            questions=counts.questions,
            answers=counts.answers,
            duplicates=counts.duplicates,
            related=counts.related,
            answered=counts.questions_with_answer,
            first=from_microseconds(counts.first_us),
            last=from_microseconds(counts.last_us),
            size_bytes=info.size_bytes,
        ),
        index=schemas.IndexState(info.behind),
        vectors=schemas.VectorsState(
            vectors.model,
            vectors.entries,
            vectors.waiting,
            vectors.next_model,
        ),
        rankers=tuple(
            schemas.RankerState(name, about.get(name, ""), available) for name, available in forum.rankers().items()
        ),
        ranker=forum.settings.search.ranker,
        duplicates=schemas.DuplicatesState(compared.done, compared.questions, forum.pairs.store.count(LEAST_SCORE)),
        feedback=schemas.FeedbackState(verdicts["duplicate"], verdicts["different"]),
        helped=schemas.HelpedState(*forum.store.helped()),
        reliability=forum.reliability(),
        service=schemas.WorkerState(
            worker_pid=os.getpid(),
            workers=service.settings.workers,
            started=service.started.replace(microsecond=0),
            uptime_s=round(time.monotonic() - service.began_s, 1),
            requests=service.metrics.requests(),
            open_without_key=not service.settings.needs_keys,
            may=schemas.Permissions(read="read" in rights, write="write" in rights),
        ),
        latency_ms={route: schemas.Latency(*times) for route, times in service.metrics.latencies_ms().items()},
    )


def gauges(services: Sequence[Service]) -> list[Gauge]:
    """Return what Prometheus watches beside the counts of requests, of each forum; none of one that is in trouble."""
    found: dict[str, tuple[str, dict[str, float]]] = {}
    for service in services:
        try:
            numbers = _numbers(service)
        except AskalikeError as error:
            LOG.warning("no gauges of %s: %s", service.settings.folder.name, error)
            continue
        for name, about, value in numbers:
            found.setdefault(f"askalike_{name}", (about, {}))[1][service.metrics.forum] = value
    return [Gauge(name, about, values) for name, (about, values) in found.items()]


def _numbers(service: Service) -> tuple[tuple[str, str, float], ...]:
    """Return the name of each gauge, what it is about, and its value for a forum."""
    forum = service.engine.forum
    vectors = forum.vectors
    return (
        ("questions", "Questions in the forum.", len(forum)),
        ("index_behind", "Changes that no search sees yet.", forum.indexes.behind()),
        ("vectors", "Vectors in the set that answers.", vectors.entries),
        (
            "vectors_waiting",
            "Questions that wait to be encoded.",
            vectors.waiting,
        ),
        ("pairs", "Pairs that may ask the same.", forum.pairs.store.count(LEAST_SCORE)),
        ("pairs_waiting", "Questions that wait to be compared.", forum.pairs.waiting()),
        ("workers", "Worker processes.", service.settings.workers),
    )


def metrics_text(service: Service) -> bytes:
    """Return everything that is counted, by all workers, as Prometheus reads it."""
    return service.metrics.text(gauges([service]))
