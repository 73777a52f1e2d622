"""What the service counts, as Prometheus reads it."""

from __future__ import annotations

import bisect
import os
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
KEPT: Final = 1_000
"""So many of the newest times of a route give its percentiles."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """A number that goes up and down."""

    name: str
    about: str
    value: float


@dataclass(slots=True)
class Histogram:
    """How often something took how long."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    total_s: float = 0.0

    def observe(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect.bisect_left(BUCKETS_S, seconds)] += 1
        self.total_s += seconds


class Metrics:
    """The counts of one worker process; any thread may count."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._requests: dict[tuple[str, int], int] = {}
        self._routes: dict[str, Histogram] = {}
        self._stages: dict[str, Histogram] = {}
        self._newest: dict[str, deque[float]] = {}

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        with self._guard:
            self._requests[route, status] = self._requests.get((route, status), 0) + 1
            self._routes.setdefault(route, Histogram()).observe(seconds)
            self._newest.setdefault(route, deque(maxlen=KEPT)).append(seconds)

    def stage(self, name: str, seconds: float) -> None:
        """Count a stage of a search."""
        with self._guard:
            self._stages.setdefault(name, Histogram()).observe(seconds)

    def requests(self) -> int:
        """Return how many requests were answered."""
        with self._guard:
            return sum(self._requests.values())

    def latencies_ms(self) -> dict[str, tuple[float, float, float, int]]:
        """Return for each route the median, 95th and 99th percentile of newest times, and how often it was asked."""
        with self._guard:
            newest = {route: sorted(times) for route, times in self._newest.items()}
            counts = {route: sum(found.counts) for route, found in self._routes.items()}
        found: dict[str, tuple[float, float, float, int]] = {}
        for route, times in sorted(newest.items()):
            p50, p95, p99 = (round(1000 * percentile(times, share), 2) for share in (0.5, 0.95, 0.99))
            found[route] = (p50, p95, p99, counts[route])
        return found

    def text(self, gauges: Iterable[Gauge] = ()) -> str:
        """Return everything as Prometheus reads it; each line of counts names the worker, gauges are the forum's."""
        labels = {"worker": str(os.getpid())}
        lines: list[str] = []
        with self._guard:
            lines += _head("askalike_requests_total", "Requests by route and status.", "counter")
            for (route, status), count in sorted(self._requests.items()):
                lines.append(_line("askalike_requests_total", {"route": route, "status": str(status), **labels}, count))
            for name, about, key, found in (
                ("askalike_request_seconds", "Time to answer by route.", "route", self._routes),
                ("askalike_stage_seconds", "Time of the stages of a search.", "stage", self._stages),
            ):
                lines += _head(name, about, "histogram")
                for value, histogram in sorted(found.items()):
                    lines += _histogram(name, {key: value, **labels}, histogram)
        for gauge in gauges:
            lines += [*_head(gauge.name, gauge.about, "gauge"), _line(gauge.name, {}, gauge.value)]
        return "\n".join(lines) + "\n"


def merged(texts: Iterable[str]) -> str:
    """Return several workers' counts as one text: each name's lines together, under one head.

    >>> print(merged(["# HELP a A.\\n# TYPE a counter\\na 1\\n", "# HELP a A.\\n# TYPE a counter\\na 2\\n"]), end="")
    # HELP a A.
    # TYPE a counter
    a 1
    a 2
    """
    heads: dict[str, list[str]] = {}
    values: dict[str, list[str]] = {}
    for text in texts:
        name = ""
        for line in text.splitlines():
            if line.startswith("# HELP "):
                name = line.split(" ", 3)[2]
                heads[name] = []
            if line.startswith("#"):
                heads[name].append(line)
            else:
                values.setdefault(name, []).append(line)
    return "".join(f"{line}\n" for name, head in heads.items() for line in (*head, *values.get(name, ())))


def percentile(ascending: list[float], share: float) -> float:
    """Return the nearest-rank percentile, 0 of nothing.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 0.5), percentile([1.0, 2.0, 3.0, 4.0], 0.99)
    (2.0, 4.0)
    """
    if not ascending:
        return 0.0
    rank = max(1, -int(-share * len(ascending) // 1))
    return ascending[rank - 1]


def _histogram(name: str, labels: Mapping[str, str], histogram: Histogram) -> list[str]:
    lines: list[str] = []
    count = 0
    for bound, times in zip((*map(str, BUCKETS_S), "+Inf"), histogram.counts, strict=True):
        count += times
        lines.append(_line(f"{name}_bucket", {**labels, "le": bound}, count))
    return [*lines, _line(f"{name}_sum", labels, histogram.total_s), _line(f"{name}_count", labels, count)]


def _head(name: str, about: str, kind: str) -> list[str]:
    return [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{shown}}} {value:.17g}" if shown else f"{name} {value:.17g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
