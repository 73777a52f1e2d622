"""The headline rows of the results: one table a subject, and a chart of what the searches find."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tools.sections.cells import figure, table

Load = Callable[[str], Mapping[str, Any]]
"""From the name of a results file to its content."""

TASKS = {
    "travel test, retrieval": ("travel.stackexchange.com, duplicates", "recall@10"),
    "slicer test half": ("3D Slicer, linked topics", "recall@10"),
    "semeval test2016": ("SemEval 2016, re-ranking", "map"),
    "semeval test2017": ("SemEval 2017, re-ranking", "map"),
    "quora test half": ("Quora, pairs", "ap"),
}
SYSTEMS = {
    "bm25": "words alone (BM25)",
    "general": "the general encoder alone",
    "search, general": "askalike as it is installed",
    "minilm": "MiniLM alone",
    "search, minilm": "askalike with MiniLM",
    "search, student": "askalike with a student of MiniLM",
}
BY_OTHERS = {
    "search, general, not learned here": "askalike as it is installed, weights learned without the forum",
    "search, minilm, not learned here": "askalike with MiniLM, weights learned without the forum",
    "search, student, not learned here": "askalike with a student, weights learned without the forum",
}
"""Of the searches above, what they owe to pairs of the same forum."""


def headlines(load: Load) -> list[str]:
    """Return the tables that a reader should see first."""
    return [
        "## What the search finds",
        "",
        "The search by its default ranker, the probability that both ask the same, beside words and encoders alone.",
        "",
        *_found(load("quality-search")),
        "",
        "![What each system finds, with intervals](quality.svg)",
        "",
        "all-MiniLM-L6-v2 (MiniLM) was trained by others on duplicate links of Stack Exchange and on Quora's pairs, so"
        " travel's and Quora's columns are no test of it on what it has not seen. The scorer's weights were learned on"
        " judged pairs of eleven forums, among them travel, Slicer and Qatar, whose questions of train and dev SemEval"
        " has; the last rows are by weights that were learned without that forum. Nothing was learned from Quora."
        " Differences with p, misspelt queries, probabilities and the dev splits: [quality](results/quality.md).",
        "",
        "## How fast",
        "",
        *_speed(load),
        "",
        "Rivals, memory, updates and training: [speed](results/speed.md).",
        "",
        "## What survives",
        "",
        *_survived(load),
        "",
        "Damage and hostile requests: [robustness](results/robustness.md).",
        "",
        "## The papers, row by row",
        "",
        *_papers(load),
        "",
        "Every row, seed, interval and test is on the page of its paper; what the papers leave open, with both"
        " readings, is in [readings](papers/readings.md).",
    ]


def _found(result: Mapping[str, Any]) -> list[str]:
    tables = result["tables"]
    rows = [
        (label, *(_cell(tables[task], system, measure) for task, (_, measure) in TASKS.items()))
        for system, label in (SYSTEMS | BY_OTHERS).items()
        if any(system in tables[task] for task in TASKS)
    ]
    return table(("test split", *(f"{label}, {measure}" for label, measure in TASKS.values())), rows)


def _cell(rows: Mapping[str, Any], system: str, measure: str) -> str:
    """Return a figure; an empty cell for a system that a task does not have."""
    return figure(rows[system], measure) if system in rows else ""


def _speed(load: Load) -> list[str]:
    scale = load("scale-224741")
    indexing, search = scale["indexing"], scale["search"]
    rival = load("encode-runtime")["beside_rival"]
    title, body = (search[kind] for kind in ("title", "title and body"))
    updates, served = load("updates")["until_shown"], load("serve-load")
    many = served["service"]["title, 32 connections, 0 writes/s"]
    workers = "worker" if served["workers"] == 1 else "workers"
    return table(
        ("work", "figure"),
        [
            (
                f"search among {indexing['questions']:,} questions, median (99th percentile)",
                f"title {title['p50_ms']:.1f} ({title['p99_ms']:.1f}) ms;"
                f" title and body {body['p50_ms']:.1f} ({body['p99_ms']:.1f}) ms",
            ),
            (
                "index and encode them",
                f"{indexing['seconds']:.0f} s, {indexing['peak_memory_mb']['this process']:,} MB of memory,"
                f" {scale['disk_mb']['all']:.0f} MB on disk",
            ),
            ("a change until a search shows it, median", f"{max(one['p50_ms'] for one in updates.values()):.0f} ms"),
            (
                f"searches a second over HTTP, {served['workers']} {workers}",
                f"{many['per_s']:.0f}",
            ),
            (
                "questions encoded a second, one core",
                f"{rival['questions_per_s']['askalike']:,.0f}, {rival['times_as_fast']['askalike']:.0f} times"
                " all-MiniLM-L6-v2 on two",
            ),
        ],
    )


def _survived(load: Load) -> list[str]:
    kill, served, schema = load("kill"), load("serve-kill"), load("serve-schema")
    return table(
        ("attack", "outcome"),
        [
            (
                f"{kill['kills']} kills of a writing process",
                f"{kill['failures']} failures, {kill['acknowledged_writes']:,} acknowledged writes",
            ),
            (
                f"{served['kills']} kills of the service under {served['clients']} writing clients",
                f"{served['failures']} failures, {served['acknowledged_writes']:,} acknowledged writes",
            ),
            (
                f"{schema['requests']:,} generated requests",
                f"{schema['server_errors']} internal errors",
            ),
        ],
    )


def _papers(load: Load) -> list[str]:
    lei = load("lei2016")["sets"]["travel"]["rows"]
    all_sizes = load("zhang2018")["rows"]
    size = max(row["texts"] for row in all_sizes if row["row"] == "attention-full")
    zhang = [row for row in all_sizes if row["texts"] in (0, size)]
    das = load("das2016")["rows"]
    names = {
        "lei2016": ("bm25", "candidate-search", "rcnn-mean", "rcnn-last-pretrained"),
        "zhang2018": ("ir", "bm25", "attention-full", "attention-clamped"),
        "das2016": ("bm25", "lmir", "trigrams-idf", "scqa", "t-scqa"),
    }
    rows = [
        *_of_paper("[Lei et al. 2016](papers/lei2016.md)", lei, names["lei2016"], "travel test"),
        *_of_paper("[Zhang and Wu 2018](papers/zhang2018.md)", zhang, names["zhang2018"], "test2016"),
        *_of_paper("[Das et al. 2016](papers/das2016.md)", das, names["das2016"], "semeval2016-test"),
    ]
    return table(("paper", "row", "test split", "MAP", "seeds"), rows)


def _of_paper(
    paper: str, rows: list[Mapping[str, Any]], names: tuple[str, ...], task: str
) -> list[tuple[str, str, str, str, str]]:
    found = {row["row"]: row for row in reversed(rows)}
    listed = []
    for name in names:
        values = found[name]["found"][task]["map"]
        low, high = values["interval95"]
        cell = f"{100 * values['mean']:.1f} ({100 * low:.1f}–{100 * high:.1f})"
        listed.append((paper, name, task, cell, str(len(found[name]["seeds"]) or 1)))
    return listed


COLOURS = ("#9aa0a6", "#a6c8ff", "#1a73e8", "#f2c18d", "#e8710a", "#188038")
BAR, GAP, LEFT, WIDTH = 13, 16, 250, 860


def chart(result: Mapping[str, Any]) -> str:
    """Return the bars of the first table as SVG: a group a test split, a bar a system, a line its 95 % interval."""
    present = [name for name in SYSTEMS if any(name in result["tables"][task] for task in TASKS)]
    colours = dict(zip(SYSTEMS, COLOURS, strict=True))
    scale = (WIDTH - LEFT - 60) / 100
    legend, x, y = [], 10, 8
    for label, colour in ((SYSTEMS[name], colours[name]) for name in present):
        width = 34 + round(6.2 * len(label))
        if x + width > WIDTH:
            x, y = 10, y + 16
        legend.append(
            f'<rect x="{x}" y="{y}" width="11" height="11" fill="{colour}"/>'
            f'<text x="{x + 16}" y="{y + 10}">{label}</text>'
        )
        x += width
    parts: list[str] = []
    top = y + 26
    for task, (label, measure) in TASKS.items():
        parts.append(f'<text x="{LEFT - 10}" y="{top + 38}" text-anchor="end">{label}</text>')
        parts.append(
            f'<text x="{LEFT - 10}" y="{top + 54}" text-anchor="end" class="small">{measure}, times 100</text>'
        )
        for system in (name for name in present if name in result["tables"][task]):
            values, colour = result["tables"][task][system], colours[system]
            low, high = (LEFT + scale * bound for bound in values[f"{measure}_interval95"])
            middle = top + BAR / 2
            parts.append(
                f'<rect x="{LEFT}" y="{top}" width="{scale * values[measure]:.1f}" height="{BAR - 2}" fill="{colour}"/>'
                f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{middle - 1}" y2="{middle - 1}" stroke="#444"/>'
                f'<text x="{high + 5:.1f}" y="{middle + 3}" class="small">{values[measure]:.1f}</text>'
            )
            top += BAR
        top += GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" font-family="sans-serif" font-size="12">'
        "<style>text{fill:#222}.small{font-size:10px;fill:#555}</style>"
        f'<rect width="{WIDTH}" height="{top}" fill="#fff"/>{"".join(legend)}{"".join(parts)}</svg>\n'
    )
