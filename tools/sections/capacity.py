"""How much a larger forum will need: what was measured at several sizes, drawn on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Points = Sequence[tuple[float, float]]

FORMULAS = (10**6, 10**7, 10**8, 10**9)
RECORD = 1_000
"""Bytes of a question in PostgreSQL."""
DIMENSIONS = 300
PROCESS = 36e6
"""Bytes of a Milvus Lite that has read nothing."""
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


def capacity(
    measured: Sequence[Mapping[str, Any]],
    machines: Mapping[str, Any] | None = None,
    forums: Sequence[Mapping[str, Any]] = (),
    turns: Mapping[str, Any] | None = None,
) -> list[str]:
    """Return the page of what larger forums need.

    Args:
        measured: results of ``benchmarks.scale``.
        machines: that of ``benchmarks.capacity``.
        forums: those of ``benchmarks.engines``.
        turns: that of ``benchmarks.scale --asked``.
    """
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
        " such a prediction: that of the largest measured size from the smaller ones; where these were measured at"
        " other commits, it holds what changed between them too. The questions are Reddit's, the"
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
    commits = [str(one.get("commit", "")) for one in ordered]
    if len(set(commits)) > 1:  # what came between two of them may be a part of the error
        lines.append(f"| measured at commit | {' | '.join(f'`{one}`' for one in commits)} |{' |' * (len(ahead) + 1)}")
    lines += in_turns(turns) if turns else []
    lines += [
        "",
        "**Other vectors** take about 2.2 bytes a dimension and question on disk: 840 MB a million with MiniLM's 384.",
        "",
        "**Several machines** that share one [PostgreSQL](postgresql.md) each hold the indexes above; the records are"
        " in the database alone. Each machine more answers as many searches more. Beyond some ten million questions the"
        " index of one machine is the limit.",
    ]
    return lines if machines is None else [*lines, "", *engines(machines, forums)]


def in_turns(result: Mapping[str, Any]) -> list[str]:
    """Return how searches grow, by forums that were asked in turns."""
    rows = sorted(result["rows"], key=lambda one: int(one["questions"]))
    kinds = [kind for kind in rows[0] if kind != "questions"]
    return [
        "",
        f"How searches grow, by forums that were asked in turns (`python -m benchmarks.scale --asked FOLDER…`, commit"
        f" `{result['commit']}`; {result['machine']['cpu']}, another machine than that of most figures above), median"
        " processor time, and how many times that of the smallest:",
        "",
        f"| | {' | '.join(format(int(one['questions']), ',') for one in rows)} |",
        "|---|" + "---|" * len(rows),
        *(
            f"| {kind} | "
            + " | ".join(
                shown(one[kind]["p50_ms"], "ms")
                + (f" ({one[kind]['p50_ms'] / rows[0][kind]['p50_ms']:.1f})" if one is not rows[0] else "")
                for one in rows
            )
            + " |"
            for kind in kinds
        ),
    ]


def engines(result: Mapping[str, Any], forums: Sequence[Mapping[str, Any]] = ()) -> list[str]:
    """Return what PostgreSQL and Milvus need, by formulas, and these beside what was measured.

    Args:
        result: that of ``benchmarks.capacity``.
        forums: those of ``benchmarks.engines``.
    """
    milvus, records = result["milvus"], result["postgresql"]
    measured = sorted((one for one in forums if "memory_mb" in one), key=lambda one: int(one["questions"]))
    largest = measured[-1]
    whole = (1e6 * largest["memory_mb"] - PROCESS) / largest["questions"]
    more = round(whole) - 4 * DIMENSIONS
    rows = [("records in PostgreSQL", "1.0 kB · n", *(shown(RECORD * n / 1e6, "MB") for n in FORMULAS))]
    for name, formula, one in (
        ("memory of Milvus, every vector held", f"(4 d + {more:,} B) · n", whole),
        ("memory of Milvus, graphs over 8 bits", f"(d + 128 B + {more:,} B) · n", DIMENSIONS + 128 + more),
    ):
        rows.append((name, formula, *(shown(one * n / 1e6, "MB") for n in FORMULAS)))
    rows.append(
        (
            "processor time of words, of 10 million a shard",
            "2 · S · 15.5 ms · (n / 10⁶ / S)^0.7",
            *(shown(2 * (shards := max(1, n // 10**7)) * 15.5 * (n / 1e6 / shards) ** 0.7, "ms") for n in FORMULAS),
        )
    )
    checked = [
        (f"bytes of a question in PostgreSQL, {one['questions']:,}", float(RECORD), float(one["bytes_per_question"]))
        for one in records
    ]
    for size in milvus["memory"][0]["bytes"]:
        foretold = len(milvus["memory"]) * PROCESS + whole * int(size)
        held = sum(one["bytes"][size] for one in milvus["memory"])
        checked.append((f"MB of Milvus Lite with {int(size):,} questions, filled in parts", foretold / 1e6, held / 1e6))
    checked += [
        (f"words over {one['shards']} collections, ms", one["predicted"], one["ms"]) for one in milvus["shards"]
    ]
    slopes = " and ".join(f"{one['bytes_per_question']:,}" for one in milvus["memory"])
    return [
        "## With an engine",
        "",
        f"Formulas for a forum in PostgreSQL and [Milvus](milvus.md), of d = {DIMENSIONS} dimensions:",
        "",
        f"| | formula | {' | '.join(f'{n:,}' for n in FORMULAS)} |",
        "|---|---|" + "---|" * len(FORMULAS),
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
        "What `python -m benchmarks.capacity` measured on one machine beside them, and `python -m benchmarks.engines`"
        " of whole forums:",
        "",
        "| | predicted | measured | error |",
        "|---|---|---|---|",
        *(
            f"| {name} | {_figure(predicted)} | {_figure(measured)} | {100 * (predicted / measured - 1):+.0f} % |"
            for name, predicted, measured in checked
        ),
        "",
        f"Memory is that of the forum of {largest['questions']:,} questions, less the {PROCESS / 1e6:.0f} MB of the"
        f" process. The {more:,} bytes beside a vector's numbers are words, terms, the text that a question is compared"
        f" by, the vector's code, and what the engine keeps of rows. An engine that was filled in parts, as by writes,"
        " takes more: each part writes the rows of its terms again, which leaves pages of the file half full (28.0 MB"
        " for 20.2 of 4,000 questions in eight parts), and the process that wrote them with a fifth more memory until"
        " it is started again. Words and vectors apart, 10,000 questions at a time,"
        f" grow by {slopes} bytes a question. Plan for 1.7 times the formula.",
        "",
        "Of words the time in the largest collection and the growth from the smallest"
        f" ({', '.join(f'{int(size):,}: {one} ms' for size, one in milvus['words_ms'].items())}) predict the others:"
        " so few questions cost Milvus Lite little beside the call itself, and the power of .7 is that of local indexes"
        " of a million. Unverified: everything about Milvus above 100,000 questions, its graphs, its several nodes;"
        " PostgreSQL above the sizes shown.",
    ]


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 20 else f"{value:.2f}"


def shown(value: float, unit: str) -> str:
    """Return a figure with its unit, in the larger one where that reads better."""
    if unit == "MB" and value >= 1000:
        return f"{value / 1000:.1f} GB"
    if unit == "s" and value >= 7200:
        return f"{value / 3600:.1f} h"
    return f"{value:.0f} {unit}" if value >= 20 else f"{value:.1f} {unit}"
