"""What the service counts, as Prometheus reads it: all workers together, through ``prometheus_client``.

Several workers share a folder of small files, named by ``PROMETHEUS_MULTIPROC_DIR`` before a worker starts: each writes
its own, and whichever is asked adds all of them up, those of workers that have ended too, so that no count goes back.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    Metric,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
KEPT: Final = 1_000
"""So many of the newest times of a route give its percentiles."""
SHARED: Final = "PROMETHEUS_MULTIPROC_DIR"
"""The environment's name for the folder that the workers of one service share."""


@dataclass(frozen=True, slots=True)
class Gauge(Collector):
    """A number that goes up and down, as it is when it is asked for."""

    name: str
    about: str
    value: float

    def collect(self) -> Iterator[Metric]:
        """Yield it."""
        yield GaugeMetricFamily(self.name, self.about, self.value)


class Metrics:
    """The counts of one worker process, and the newest times of its routes; any thread may count."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "askalike_requests", "Requests by route and status.", ["route", "status"], registry=self._registry
        )
        self._routes = Histogram(
            "askalike_request_seconds",
            "Time to answer by route.",
            ["route"],
            buckets=BUCKETS_S,
            registry=self._registry,
        )
        self._stages = Histogram(
            "askalike_stage_seconds",
            "Time of the stages of a search.",
            ["stage"],
            buckets=BUCKETS_S,
            registry=self._registry,
        )
        self._guard = threading.Lock()
        self._counts: dict[str, int] = {}
        self._newest: dict[str, deque[float]] = {}

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._requests.labels(route, str(status)).inc()
        self._routes.labels(route).observe(seconds)
        with self._guard:
            self._counts[route] = self._counts.get(route, 0) + 1
            self._newest.setdefault(route, deque(maxlen=KEPT)).append(seconds)

    def stage(self, name: str, seconds: float) -> None:
        """Count a stage of a search."""
        self._stages.labels(name).observe(seconds)

    def requests(self) -> int:
        """Return how many requests this worker has answered."""
        with self._guard:
            return sum(self._counts.values())

    def latencies_ms(self) -> dict[str, tuple[float, float, float, int]]:
        """Return for each route the median, 95th and 99th percentile of newest times, and how often it was asked."""
        with self._guard:
            newest = {route: (sorted(times), self._counts[route]) for route, times in self._newest.items()}
        found: dict[str, tuple[float, float, float, int]] = {}
        for route, (times, count) in sorted(newest.items()):
            p50, p95, p99 = (round(1000 * percentile(times, share), 2) for share in (0.5, 0.95, 0.99))
            found[route] = (p50, p95, p99, count)
        return found

    def text(self, gauges: Iterable[Gauge] = ()) -> bytes:
        """Return everything that all workers have counted, and the forum's gauges, as Prometheus reads it."""
        registry = CollectorRegistry() if SHARED in os.environ else self._registry
        if registry is not self._registry:
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        found = generate_latest(registry)
        current = CollectorRegistry()
        for gauge in gauges:
            current.register(gauge)
        return found + generate_latest(current)


def percentile(ascending: list[float], share: float) -> float:
    """Return the nearest-rank percentile, 0 of nothing.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 0.5), percentile([1.0, 2.0, 3.0, 4.0], 0.99)
    (2.0, 4.0)
    """
    if not ascending:
        return 0.0
    rank = max(1, -int(-share * len(ascending) // 1))
    return ascending[rank - 1]
