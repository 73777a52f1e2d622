"""Sections on several machines: an engine beside local indexes, its kills, and batches by Ray."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.sections.cells import table

__all__ = ["batches", "engine_kills", "engines", "service_kills"]

MISSING = ("by record", "by words", "by vector", "deleted and there")
SHOWN = {"lexical": "words", "vector": "vectors"}


def engines(result: Mapping[str, Any]) -> list[str]:
    """Return how alike an engine finds, and how long it takes."""
    rows = [
        (
            SHOWN.get(name, name),
            f"{found['overlap_at_10']:.3f}",
            *(f"{found['search'][which]['p50_ms']:.1f}" for which in ("local", "milvus")),
            found["p50_ratio"],
            *(f"{found['processor_ms'][which]:.1f}" for which in ("local", "milvus")),
            found["most_calls"],
        )
        for name, found in result["rankers"].items()
    ]
    times = result.get("repeats", 1)
    repeated = f", {times} times, of which the least time of a query counts" if times > 1 else ""
    header = ("ranker", "overlap at 10", "p50 local", "p50 Milvus", "ratio", "processor local", "Milvus", "most calls")
    load, written, filled = result["load_average"][0], result["indexed"], result["load_s"]
    return [
        f"## An engine beside local indexes, {result['questions']:,} questions",
        "",
        f"Milvus Lite 2.5.1 and a forum's own indexes, {result['questions']:,} questions of Reddit, {result['queries']}"
        f" asked by title in both in turn{repeated}, on two cores which other work used (load {load:.0f})."
        " Milliseconds; processor time is a search's mean, the engine's process included.",
        "",
        *table(header, rows),
        "",
        f"Of the exactly nearest ten vectors the engine finds {nearest(result['nearest'])}. Filling took"
        f" {filled['milvus']:.0f} s, local indexes {filled['local']:.0f} s. At {written['per_second']} writes a second"
        f" {written['writes']} writes could be found after {written['p50_ms'] / 1000:.1f} s (p50) and"
        f" {written['p99_ms'] / 1000:.1f} s (p99), for {written['processor_ms']:.0f} ms of processor time each.",
    ]


def nearest(found: float | Mapping[str, float]) -> str:
    """Return which share is found, where every vector is compared and where codes propose candidates.

    >>> nearest(1.0), nearest({"FLAT": 1.0, "codes": 0.998})
    ('1.000', '1.000 where every vector is compared (FLAT), 0.998 where codes propose candidates')
    """
    if isinstance(found, Mapping):
        return (
            f"{found['FLAT']:.3f} where every vector is compared (FLAT),"
            f" {found['codes']:.3f} where codes propose candidates"
        )
    return f"{found:.3f}"


def engine_kills(result: Mapping[str, Any]) -> list[str]:
    """Return what an engine's kills left."""
    acknowledged = f"{result['acknowledged']:,}"
    wrong = ", ".join(f"{name} {count}" for name, count in result["wrong"].items())
    return [
        "## Kills of an engine",
        "",
        f"{result['server']} standalone, which has vectors alone, killed {result['kills']} times while vectors were"
        f" put, replaced and removed: of {acknowledged} acknowledged ones wrong {wrong}. It answered again after"
        f" {min(result['restart_s']):.0f} to {max(result['restart_s']):.0f} s.",
    ]


def service_kills(result: Mapping[str, Any]) -> list[str]:
    """Return what kills of all parts of a service, and a promoted standby, left."""
    rows = [
        (what, f"{acknowledged:,}", *(f"{wrong[name]:,}" for name in ("looked for", *MISSING)))
        for what, acknowledged, wrong in (
            ("each part killed", result["acknowledged"], result["wrong"]),
            ("standby promoted", result["promoted"]["acknowledged"], result["promoted"]["wrong"]),
        )
    ]
    feeding = "a process that feeds the engine"
    if "posted" in result:
        feeding = f"`askalike follow`, which brought {result['posted']:,} of the writes from a forum in SQLite"
    parts = ", ".join(f"{part} ({least} to {most} s)" for part, (least, most) in result["restart_s"].items())
    return [
        "## Kills of every part of a service",
        "",
        f"PostgreSQL with a synchronous standby, Milvus Lite as a server, `askalike serve` and {feeding}, each killed"
        f" {result['kills_of_each']} times while a client wrote through the service, and answering again after:"
        f" {parts}. Then PostgreSQL killed once more, and its standby promoted. Of what was acknowledged"
        " and not deleted since, missing:",
        "",
        *table(("", "acknowledged then", "looked for", *MISSING), rows),
    ]


def batches(result: Mapping[str, Any]) -> list[str]:
    """Return what batches reach beside a plain pool, after kills, and beside a forum's own pairs."""
    lines = ["## Batches"]
    if found := result.get("throughput"):
        share, seconds = 100 * found["share_of_pool"], found["seconds"]
        lines += [
            "",
            f"{found['questions']:,} questions of Reddit encoded by two workers of Ray at {share:.0f} % of the rate of"
            f" a pool of two processes ({seconds['ray']:.0f} s and {seconds['pool']:.0f} s, part by part in turn on a"
            " busy machine).",
        ]
    if kills := result.get("kill"):
        rows = [
            (name, found["parts"], found["there_after_kill"], found["made_again"], f"{found['distinct']:,}")
            for name, found in kills.items()
        ]
        header = ("cluster", "parts", "there after the kill", "made then", "distinct questions at the end")
        lines += [
            "",
            "The command and a worker killed (SIGKILL), and the same command again:",
            "",
            *table(header, rows),
        ]
    if pairs := result.get("pairs"):
        rows = [(least, found["pairs"], f"{found['recall']:.3f}") for least, found in pairs["recall"].items()]
        groups = pairs["groups"]
        lines += [
            "",
            f"Pairs of {pairs['questions']:,} questions beside the forum's own (`askalike duplicates`), for"
            f" {pairs['processor_ms']:.1f} ms of processor time a question, encoding included:",
            "",
            *table(("from probability", "pairs of the forum", "found"), rows),
            "",
            f"Groups: {groups['local']}, of which {groups['same_as_forum']} are the forum's {groups['forum']} and"
            f" {groups['same_as_ray']} those by Ray.",
        ]
    return lines
