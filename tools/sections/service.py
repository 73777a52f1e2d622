"""Sections on the service: how it answers under load, and what kills leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.sections.cells import table

__all__ = ["attacks", "beside", "kills", "load", "schema"]

MINUTES = 10
PERCENTILES = ("p50_ms", "p95_ms", "p99_ms")


def load(result: Mapping[str, Any]) -> list[str]:
    """Return latency and rate by connections, writes meanwhile, and the memory over the run."""
    rows = []
    for name, found in result["service"].items():
        kind, connections, writes = name.split(", ")
        write = found.get("write")
        rows.append(
            (
                kind,
                connections.split()[0],
                *(f"{found[key]:.0f}" for key in PERCENTILES),
                f"{found['per_s']:.0f}",
                writes.split()[0],
                f"{write['per_s']:.0f}" if write else "",
                f"{write['p50_ms']:.0f} / {write['p99_ms']:.0f}" if write else "",
                found["refused"],
            )
        )
    header = ("searches for", "connections", "p50", "p95", "p99", "a second")
    written = ("writes wanted a second", "done", "write p50 / p99", "not answered with 200")
    library = "; ".join(f"{kind} {found['p50_ms']:.0f} ms" for kind, found in result["library"].items())
    workers = "one worker process" if result["workers"] == 1 else f"{result['workers']} worker processes"
    return [
        "## The service under load",
        "",
        f"{result['questions']:,} Reddit questions, {workers}, each row {result['seconds_each']:.0f} s; client and"
        " service share the two cores, and each connection asks again as soon as it is answered. Milliseconds. The"
        f" library alone, asked from within its process before the service starts: {library} (p50).",
        "",
        *table((*header, *written), rows),
        "",
        *_paced(result.get("paced", {})),
        *_steady(result["steady"]),
    ]


def beside(result: Mapping[str, Any]) -> list[str]:
    """Return the service beside a plain one."""
    rows = [
        (name, connections, *(_spread(found, key) for key in ("per_s", *PERCENTILES)))
        for connections in next(iter(result["services"].values()))
        for name, found in ((name, of[connections]) for name, of in result["services"].items())
    ]
    ratios = "; ".join(
        f"over {connections} {min(found):.1f} to {max(found):.1f}"
        for connections, found in result["answers a second, askalike by plain"].items()
    )
    memory = {name: f"{own + mapped:,.0f}" for name, (own, mapped) in result[MEMORY].items()}
    return [
        "## The service beside a plain one",
        "",
        f"Titles among {result['questions']:,} Reddit questions, {result['workers']} workers each, in turns on the same"
        " two cores, which the client shares; the least and the most of the turns. *plain*: FastAPI, MiniLM through"
        " sentence-transformers and an exact FAISS index of 384 dimensions (vectors drawn by chance), as one would"
        " write it in an afternoon: no words, no probability, no highlights, no answers, no writes. *askalike*: with"
        " the package's encoder, which takes a title less than MiniLM does. Milliseconds.",
        "",
        *table(("service", "connections", "a second", "p50", "p95", "p99"), rows),
        "",
        f"Answers a second, times those of the plain one: {ratios}. Memory of all workers, mapped files included:"
        f" {memory['askalike']} MB, the plain one {memory['plain']} MB.",
    ]


MEMORY = "memory of all workers, MB: own, mapped"


def _spread(found: Sequence[Mapping[str, float]], key: str) -> str:
    values = [one[key] for one in found]
    return f"{min(values):.0f}–{max(values):.0f}"


def _paced(found: Mapping[str, Any]) -> list[str]:
    """Return how long an answer takes when so often is asked, by chance, in place of as often as is answered."""
    if not found:
        return []
    rows = [(pace, *(f"{one[key]:.0f}" for key in PERCENTILES), f"{one['per_s']:.0f}") for pace, one in found.items()]
    return [
        "16 connections that ask for titles by chance, so often a second in all; an answer's time counts from the",
        "moment when it was to be asked:",
        "",
        *table(("asked a second", "p50", "p95", "p99", "answered a second"), rows),
        "",
    ]


def _steady(found: Mapping[str, Any]) -> list[str]:
    """Return how memory went while the same was asked for minutes."""
    kind, connections, writes = found["asked"]
    memory = found["memory_mb_each_second"]
    parts = [memory[len(memory) * part // MINUTES : len(memory) * (part + 1) // MINUTES] for part in range(MINUTES)]
    rows = [
        (name, *(f"{max(pair[place] for pair in part):,.0f}" for part in parts if part))
        for place, name in enumerate(("its own", "files mapped"))
    ]
    return [
        f"Memory while {connections} connections search for {kind}s and {writes} writes a second go on, for"
        f" {found['seconds'] / 60:.0f} minutes ({found['per_s']:.0f} searches and {found['write']['per_s']:.0f} writes"
        " a second were answered), by tenths of the time, largest in MB:",
        "",
        *table(("memory", *(str(part + 1) for part in range(len(rows[0]) - 1))), rows),
    ]


def kills(result: Mapping[str, Any]) -> list[str]:
    """Return what kills under write load left."""
    size = ""
    if "questions" in result:
        size = f", in {result['kills_while_loading']} of them beside a load of {result['questions']:,} questions"
    return [
        "## The service killed while it writes",
        "",
        f"{result['kills']} kills (SIGKILL) while {result['clients']} clients wrote{size},"
        f" {result['acknowledged_writes']:,} writes acknowledged: {result['failures']} were missing after a restart.",
    ]


def followed(result: Mapping[str, Any]) -> list[str]:
    """Return how a forum fared that followed a living one, and was killed."""
    lag, polled, events = result["webhook_lag_s"], result["poll_lag_s"], result["events"]
    refused = sum(count for name, count in result["hostile_webhooks"].items() if "refused" in name)
    sent = sum(count for name, count in result["hostile_webhooks"].items() if "came before" not in name)
    return [
        "## A living forum followed by a process that is killed",
        "",
        f"A fake Discourse of {result['topics']:,} topics lived for {result['simulated_days']:g} days of a simulated"
        f" clock: {result['changes_in_all']:,} changes, {events['events lost']} of {events['events']:,} webhooks lost,"
        f" {sum(result['failures'].values()):,} of {result['requests']:,} requests failed. The follower was killed"
        f" {result['kills']} times. In the end {result['differences']} of {result['threads_compared']:,} topics"
        " differed.",
        "",
        f"By webhook, a change was found by searches {lag['p50']:g} s later (p50), {lag['p99']:g} s at p99; by polls,"
        f" each {result['poll_s']:g} s, {polled['p50']:g} s after it was written, {polled['p99']:g} s at p99. Both"
        " count what the follower itself took, also to start again after a kill, on the wall's clock beside other work."
        f" {result['requests_above_the_rate']} requests came above the limit of {result['rate_a_minute']} a minute."
        f" {refused} of {sent} webhooks with a wrong, missing or former signature, with too many bytes or nested too"
        " deep were refused.",
        "",
        f"All was loaded from an archive in {result['loaded_from_an_archive_s']:.0f} s; then {result['polls']:,} polls"
        f" and {result['sweeps']} sweeps took {result['follower_processor_s']} s of processor time and at most"
        f" {result['follower_peak_mb']} MB of memory.",
    ]


def schema(result: Mapping[str, Any]) -> list[str]:
    """Return what requests made from the OpenAPI document came to."""
    return [
        "## Requests made from the OpenAPI document",
        "",
        f"Schemathesis made {result['requests']:,} requests on {len(result['by_route'])} routes:"
        f" {result['server_errors']} ended in an error of the service.",
    ]


def attacks(result: Mapping[str, Any]) -> list[str]:
    """Return how a client fared that searched while the service was attacked."""
    rows = [
        (
            name,
            *(f"{found[key]:.0f}" for key in ("p50_ms", "p99_ms", "max_ms")),
            found["searches"],
            sum(found["errors"].values()),
            f"{found['attack'].get('connections', 0):,}",
            ", ".join(f"{what} {count:,}" for what, count in found["attack"].items() if what != "connections"),
        )
        for name, found in result["attacks"].items()
    ]
    header = ("attack", "p50", "p99", "slowest", "searches", "errors", "connections of the attack", "what it got")
    log, memory = result["log"], result["memory_mb"]
    return [
        "## The service under attack",
        "",
        f"A client searches {result['questions']:,} Reddit questions, every second time over a new connection, while"
        f" the service is attacked from eight other addresses of the loopback, {result['seconds_each']:.0f} s each. The"
        f" service has {result['file_handles']:,} file handles and the default limits; all share two cores."
        " Milliseconds of the client's searches; statuses and counts of what the attack got.",
        "",
        *table(header, rows),
        "",
        f"Afterwards the service answers, holds {memory['after'][0]:.0f} MB (before: {memory['before'][0]:.0f} MB),"
        f" and has logged {log['warnings']} warnings and {log['errors']} errors in {log['lines']:,} lines, each of"
        " them JSON.",
    ]
