"""What the service reports about itself and its forum."""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from prometheus_client.core import GaugeMetricFamily

from askalike import schemas
from askalike._version import __version__
from askalike.errors import AskalikeError
from askalike.forum.pairs import LEAST_SCORE
from askalike.search import RANKERS
from askalike.search.rankers import RERANKER
from askalike.server.metrics import FORUM
from askalike.server.service import Service
from askalike.store.rows import from_microseconds

LOG: Final = logging.getLogger("askalike.server")


def status(service: Service, rights: Collection[str]) -> schemas.Status:
    """Return what a forum holds, how far its indexes are, and how the service does.

    Args:
        rights: what the request that asks may do.
    """
    forum = service.forum
    info = forum.info()
    counts, vectors = info.counts, info.vectors
    verdicts = Counter(judgement.verdict for judgement in forum.store.judgements())
    compared = service.handlers.comparison_progress()
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
            schemas.RankerState(name, about.get(name, ""), available)
            for name, available in forum.models.rankers().items()
        ),
        ranker=forum.settings.search.ranker,
        duplicates=schemas.DuplicatesState(compared.done, compared.questions, forum.pairs.store.count(LEAST_SCORE)),
        feedback=schemas.FeedbackState(verdicts["duplicate"], verdicts["different"]),
        helped=schemas.HelpedState(*forum.store.helped()),
        reliability=forum.thresholds.reliability(),
        service=schemas.WorkerState(
            worker_pid=os.getpid(),
            workers=service.settings.workers,
            started=service.started.replace(microsecond=0),
            uptime_s=round(time.monotonic() - service.began_s, 1),
            requests=service.metrics.answered(),
            open_without_key=not service.settings.needs_keys,
            may=schemas.Permissions(read="read" in rights, write="write" in rights),
            ask_url=service.settings.ask_url,
        ),
    )


GAUGES: Final[tuple[tuple[str, str, Callable[[Service], Any]], ...]] = (
    ("questions", "Questions in the forum.", lambda service: len(service.forum)),
    ("index_behind", "Changes that no search sees yet.", lambda service: service.forum.indexes.behind()),
    ("vectors", "Vectors in the set that answers.", lambda service: service.forum.indexes.state().entries),
    (
        "vectors_waiting",
        "Questions that wait to be encoded.",
        lambda service: service.forum.indexes.state().waiting,
    ),
    ("pairs", "Pairs that may ask the same.", lambda service: service.forum.pairs.store.count(LEAST_SCORE)),
    ("pairs_waiting", "Questions that wait to be compared.", lambda service: service.forum.pairs.waiting()),
    ("workers", "Worker processes.", lambda service: service.settings.workers),
    ("engine_up", "Whether what finds the questions answers.", lambda service: service.forum.indexes.is_up),
    ("database_up", "Whether what holds the records answers.", lambda service: _is_database_up(service)),
)
"""Name, what it is about, and what returns its value for a service."""


def gauges(services: Sequence[Service]) -> list[GaugeMetricFamily]:
    """Return the gauges of each forum; one whose value cannot be read is left out."""
    families = []
    for name, about, value in GAUGES:
        labels = [FORUM] if any(service.metrics.forum for service in services) else []
        family = GaugeMetricFamily(f"askalike_{name}", about, labels=labels)
        for service in services:
            forum = service.metrics.forum
            try:
                family.add_metric([forum] if forum else [], float(value(service)))
            except AskalikeError as error:
                LOG.warning("no gauge %s of %s: %s", name, service.settings.folder.name, error)
        families.append(family)
    return families


def _is_database_up(service: Service) -> bool:
    try:
        service.forum.store.last_change()
    except AskalikeError:
        return False
    return True
