"""What the service counts, as Prometheus reads it: all workers together, through ``prometheus_client``.

Several workers share a folder of small files, named by ``PROMETHEUS_MULTIPROC_DIR`` before a worker starts: each writes
its own, and whichever is asked adds all of them up, those of workers that have ended too, so that no count goes back.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    Metric,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
FORUM: Final = "forum"
"""The label that says which forum, where a service has several."""
SHARED: Final = "PROMETHEUS_MULTIPROC_DIR"
"""The environment's name for the folder that the workers of one service share."""


class Counters:
    """What a worker process counts, for one forum or for several.

    Args:
        is_by_forum: every count has its forum's name.
    """

    def __init__(self, *, is_by_forum: bool = False) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        first = [FORUM] if is_by_forum else []
        self.requests = Counter(
            "askalike_requests", "Requests by route and status.", [*first, "route", "status"], registry=self._registry
        )
        self.suggestions = Counter(
            "askalike_suggestions",
            "Similar questions that were shown, opened, or said to have helped.",
            [*first, "event"],
            registry=self._registry,
        )
        self.routes, self.stages = (
            Histogram(name, about, [*first, label], buckets=BUCKETS_S, registry=self._registry)
            for name, about, label in (
                ("askalike_request_seconds", "Time to answer by route.", "route"),
                ("askalike_stage_seconds", "Time of the stages of a search.", "stage"),
            )
        )

    def text(self, gauges: Iterable[Metric] = (), forum: str = "") -> bytes:
        """Return everything that all workers have counted, and the gauges, as Prometheus reads it.

        Args:
            forum: only its counts, where counts are by forum.
        """
        registry: Collector = self._registry
        if SHARED in os.environ:
            registry = MultiProcessCollector(CollectorRegistry())  # type: ignore[no-untyped-call]
        families = list(registry.collect())
        for family in families if forum else ():
            family.samples = [sample for sample in family.samples if sample.labels.get(FORUM) == forum]
        return generate_latest(_Families([*families, *gauges]))


@dataclass(frozen=True, slots=True, eq=False)
class _Families(Collector):
    """Families of metrics as a collector of Prometheus's client."""

    families: Iterable[Metric]

    def collect(self) -> Iterable[Metric]:
        """Return the families of metrics."""
        return self.families


class Metrics:
    """The counts of a forum in one worker process; any thread may count.

    Args:
        counters: of the process, where it has several forums.
        forum: its name then.
    """

    def __init__(self, counters: Counters | None = None, forum: str = "") -> None:
        self._counters = counters or Counters()
        self.forum = forum
        self._labels = (forum,) if forum else ()
        self._guard = threading.Lock()
        self._answered = 0

    def count_request(self, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._counters.requests.labels(*self._labels, route, str(status)).inc()
        self._counters.routes.labels(*self._labels, route).observe(seconds)
        with self._guard:
            self._answered += 1

    def count_stage(self, name: str, seconds: float) -> None:
        """Count how long a stage of a search took."""
        self._counters.stages.labels(*self._labels, name).observe(seconds)

    def count_suggestions(self, event: Literal["shown", "opened", "helped"], count: int = 1) -> None:
        """Count suggestions by event."""
        self._counters.suggestions.labels(*self._labels, event).inc(count)

    def answered(self) -> int:
        """Return how many requests this worker has answered."""
        return self._answered

    def text(self, gauges: Iterable[Metric] = ()) -> bytes:
        """Return everything that all workers have counted for the forum, and its gauges, as Prometheus reads it."""
        return self._counters.text(gauges, self.forum)
