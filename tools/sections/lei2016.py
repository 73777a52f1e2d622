"""The section on the tables of Lei et al. 2016."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.sections.cells import compared, mean, table

__all__ = ["reproduction"]

MEASURES = ("map", "mrr", "p@1", "p@5")
MARKS = {"recomputed": "=", "remembered": "~"}
"""Where a reported figure is from, if not from the texts of paper and thesis → what is written before it."""


def reproduction(result: Mapping[str, Any]) -> list[str]:
    """Return a table for each test set, and where the course of the trainings is."""
    lines = [
        "## Lei et al. 2016, row by row",
        "",
        "What `askalike reproduce lei2016` found. Means over queries and seeds; ± is the standard deviation of the"
        " seeds' means, in brackets the interval over queries; p compares MAP with BM25's, each query's value being the"
        " mean over seeds. Dev chose epochs and the SVM's C. Reported are MAP, MRR, P@1 and P@5 on AskUbuntu's test"
        " set, as the texts of the paper and of Joshi's thesis print them; = was recomputed from the released scores,"
        " ~ is remembered and has to be checked before it is quoted.",
    ]
    for found in result["sets"].values():
        dev, *tests = found["tasks"]
        lines += ["", f"### {found['title'][0].upper()}{found['title'][1:]}", ""]
        if not found["is_the_papers_data"]:
            lines[-1:] = ["", "The reported figures are of other data: compare the order of rows, not figures.", ""]
        for task in tests:
            lines += [f"{task}:", "", *_table(found["rows"], dev, task), ""]
        if found["compared"]:
            lines += ["What paper and thesis say of rows, by MAP; p of the paired randomisation test, two-sided:", ""]
            lines += [*compared(found["compared"]), ""]
        lines += _not_run(found["rows"])
    if result["figure"]:
        lines += [
            "Pre-training, a line a network and seed; the dot is the epoch that was kept, that of the lowest"
            " perplexity:",
            "",
            f"![Perplexity and dev MRR by epoch of pre-training]({result['figure']})",
            "",
        ]
    lines += [f"The course of every training is in [{result['logs']}](../results/{result['logs']})."]
    return lines


def _table(rows: list[Mapping[str, Any]], dev: str, task: str) -> list[str]:
    header = ("row", "parameters", "seeds", "dev mrr", *MEASURES, "p", "reported")
    return table(header, [_row(row, dev, task) for row in rows if row["found"]])


def _row(row: Mapping[str, Any], dev: str, task: str) -> tuple[str, ...]:
    found = row["found"][task]
    low, high = (100 * bound for bound in found["map"]["interval95"])
    p_value = found["map"]["p_value"]
    reported = row["reported"]
    return (
        row["row"],
        f"{row['parameters']:,}" if row["parameters"] else "",
        str(len(row["seeds"])) if row["parameters"] else "",
        mean(row["found"][dev]["mrr"]),
        f"{mean(found['map'])} ({low:.1f}–{high:.1f})",
        *(mean(found[name]) for name in MEASURES[1:]),
        "" if p_value is None else f"{p_value:.4f}",
        " / ".join(_reported(reported.get(name)) for name in MEASURES) if reported else "",
    )


def _reported(figure: Mapping[str, Any] | None) -> str:
    return f"{MARKS.get(figure['origin'], '')}{figure['value']:.1f}" if figure else "–"


def _not_run(rows: list[Mapping[str, Any]]) -> list[str]:
    """Return a line for each reason why rows were not run."""
    reasons = dict.fromkeys(row["not_run"] for row in rows if row["not_run"])
    return [
        line
        for reason in reasons
        for line in (
            f"Not in the table, since {reason}: {', '.join(row['row'] for row in rows if row['not_run'] == reason)}.",
            "",
        )
    ]
