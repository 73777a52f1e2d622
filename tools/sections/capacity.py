"""How much a larger forum will need: what was measured at several sizes, drawn on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Points = Sequence[tuple[float, float]]

AHEAD = (2_000_000, 10_000_000)
"""Sizes that are foretold."""


def straight(points: Points) -> Callable[[float], float]:
    """Return y = a + b x by least squares of relative errors, with b at least 0.

    >>> round(straight([(1, 3.0), (2, 5.0), (4, 9.0)])(10), 6)
    21.0
    """
    weights = [1 / y**2 for _, y in points]
    total = sum(weights)
    mean_x = sum(weight * x for weight, (x, _) in zip(weights, points, strict=True)) / total
    mean_y = sum(weight * y for weight, (_, y) in zip(weights, points, strict=True)) / total
    spread = sum(weight * (x - mean_x) ** 2 for weight, (x, _) in zip(weights, points, strict=True))
    both = sum(weight * (x - mean_x) * (y - mean_y) for weight, (x, y) in zip(weights, points, strict=True))
    slope = max(0.0, both / spread)
    return lambda x: mean_y + slope * (x - mean_x)


def _memory(one: Mapping[str, Any]) -> float:
    found = one["indexing"]["peak_memory_mb"]
    return float(found.get("this process, without mapped files", found["this process"]))


QUANTITIES: Mapping[str, tuple[Callable[[Mapping[str, Any]], float], str]] = {
    "records on disk": (lambda one: one["disk_mb"]["archive.sqlite"], "MB"),
    "index of words on disk": (lambda one: one["disk_mb"]["lexical"], "MB"),
    "vectors on disk": (lambda one: one["disk_mb"]["vectors"], "MB"),
    "most memory while indexing, without mapped files": (_memory, "MB"),
    "processor time of indexing": (lambda one: sum(one["indexing"]["processor_s"].values()), "s"),
    "a search by title": (lambda one: one["search"]["title"]["p50_ms"], "ms"),
    "a search with a body": (lambda one: one["search"]["title and body"]["p50_ms"], "ms"),
    "an addition until it is found": (lambda one: one["added until found"]["p50_ms"], "ms"),
}
"""Name → how it is read from a result, and its unit."""


def capacity(measured: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the page of what larger forums need, from the results of ``benchmarks.scale``."""
    ordered = sorted(measured, key=lambda one: int(one["questions"]))
    sizes = [int(one["questions"]) for one in ordered]
    ahead = [size for size in AHEAD if size > sizes[-1]]
    names = [f"{size:,}" for size in sizes] + [f"{size:,}, predicted" for size in ahead]
    lines = [
        "# Capacity",
        "",
        "What a forum needs on one machine, written by `python -m tools.document` from what `python -m benchmarks.scale"
        " --questions N` measured ([speed](results/speed.md)). Sizes without a result are predicted by the line a + b n"
        " through the measured ones, which has the least squares of relative errors. The last column is the error of"
        " such a prediction: that of the largest measured size from the smaller ones. The questions are Reddit's, the"
        " vectors the package's own of 300 dimensions; times are of one core.",
        "",
        f"| | {' | '.join(names)} | error |",
        "|---|" + "---|" * (len(names) + 1),
    ]
    for name, (read, unit) in QUANTITIES.items():
        points = [(float(size), float(read(one))) for size, one in zip(sizes, ordered, strict=True)]
        cells = [shown(y, unit) for _, y in points] + [shown(straight(points)(size), unit) for size in ahead]
        x, y = points[-1]
        error = f"{100 * (straight(points[:-1])(x) / y - 1):+.0f} %" if len(points) > 2 else ""
        lines.append(f"| {name} | {' | '.join(cells)} | {error} |")
    lines += [
        "",
        "**Other vectors** take about 2.2 bytes a dimension and question on disk: 840 MB a million with MiniLM's 384.",
        "",
        "**Several machines** that share one [PostgreSQL](postgresql.md) each hold the indexes above; the records are"
        " in the database alone. Each machine more answers as many searches more. Beyond some ten million questions the"
        " index of one machine is the limit.",
    ]
    return lines


def shown(value: float, unit: str) -> str:
    """Return a figure with its unit, in the larger one where that reads better."""
    if unit == "MB" and value >= 1000:
        return f"{value / 1000:.1f} GB"
    if unit == "s" and value >= 7200:
        return f"{value / 3600:.1f} h"
    return f"{value:.0f} {unit}" if value >= 20 else f"{value:.1f} {unit}"
