"""The section on table 2 of Das et al. 2016."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.sections.cells import compared, mean, table

__all__ = ["earlier", "part_of_the_pairs", "reproduction"]

MEASURES = ("map", "mrr", "p@1")
LEARNED = (
    "alpha",
    "eta",
    "answer_weight",
    "iterations",
    "seed",
    "most_answers",
    "accepted_votes",
    "heuristic",
    "least",
)
"""Options that no grid varies."""


def reproduction(result: Mapping[str, Any]) -> list[str]:
    """Return a table for each test split, what the paper says of rows, curves, settings and examples."""
    lines = ["## Das et al. 2016, row by row", "", _beginning(result)]
    for one in result["sets"].values():
        for task in one["tests"]:
            lines += ["", f"### {one['title'][0].upper()}{one['title'][1:]}: {task}", "", *_table(result, one, task)]
    if result["compared"]:
        lines += ["", "What the paper says of rows, by MAP; p of the paired randomisation test, two-sided:", ""]
        lines += compared(result["compared"])
    lines += ["", "What dev chose (seed 0 where there are several):", "", *_settings(result)]
    if result["figure"]:
        lines += ["", *_curves(result)]
    if result["examples"]:
        lines += ["", *_examples(result["examples"])]
    if kept := result.get("outcomes"):
        lines += ["", f"Every query's value, of every row and seed, is in [{kept}](../results/{kept})."]
    return lines


def earlier(result: Mapping[str, Any]) -> list[str]:
    """Return the same of rows that learned from answers that were counted as questions."""
    _, *rest = reproduction(result)
    return [f"## Das et al. 2016, an earlier version: learned from {result['learned_from']['questions']:,} rows", *rest]


def part_of_the_pairs(result: Mapping[str, Any]) -> list[str]:
    """Return the same of rows that learned from a part of the questions."""
    _, *rest = reproduction(result)
    return [f"## Das et al. 2016, learned from {result['learned_from']['questions']:,} questions", *rest]


def _beginning(result: Mapping[str, Any]) -> str:
    learned = result["learned_from"]
    sources = ", ".join(f"{count:,} of {name}" for name, count in sorted(learned["sources"].items()))
    left_out = ", ".join(f"{count:,} {why}" for why, count in learned["left_out"].items()) or "none"
    stand_in = (
        ""
        if result["is_the_papers_data"]
        else " The sets stand in for Yahoo! Answers, which the reported figures are of: compare the order of rows, not"
        " figures."
    )
    earlier = (
        ""
        if any(row["row"] == "trigrams" for row in result["rows"])
        else " These rows are of an earlier version, which counted each answer of Reddit's file as a question of its"
        " own and summed the networks' loss: compare them with each other alone."
    )
    return (
        "What `askalike reproduce das2016` found. Means over queries and seeds; ± is the standard deviation of the"
        " seeds' means, in brackets the interval over queries; p compares MAP with LMIR's. Each set's dev split chose"
        f" every setting; no candidate's answers are read.{stand_in} Questions and answers are cut to 60 terms before"
        " alignment by IBM's model 1, for which the paper has GIZA++; MAP is of the whole order, before the threshold"
        " of the average of a query's candidates. Other readings: [readings](readings.md). Learned from"
        f" {learned['questions']:,} questions with answers: {sources}. Left out of these: {left_out}.{earlier}"
    )


def _table(result: Mapping[str, Any], one: Mapping[str, Any], task: str) -> list[str]:
    header = ("row", "the paper's name", "seeds", "dev MAP", "MAP", "MRR", "P@1", "p", "reported")
    lines = []
    for row in result["rows"]:
        if not row["found"]:
            continue
        found = row["found"][task]
        low, high = (100 * bound for bound in found["map"]["interval95"])
        p_value = found["map"]["p_value"]
        reported = row["reported"]
        lines.append(
            (
                row["row"],
                row["name"],
                str(len(row["seeds"])) if row["seeds"] else "",
                mean(row["found"][one["dev"]]["map"]),
                f"{mean(found['map'])} ({low:.1f}–{high:.1f})",
                mean(found["mrr"]),
                mean(found["p@1"]),
                "" if p_value is None else f"{p_value:.4f}",
                " / ".join(f"{reported[name]:.1f}" for name in MEASURES) if reported else "",
            )
        )
    missing = [row["row"] for row in result["rows"] if not row["found"]]
    return table(header, lines) + (["", f"Not finished: {', '.join(missing)}."] if missing else [])


def _settings(result: Mapping[str, Any]) -> list[str]:
    lines = []
    for row in result["rows"]:
        for name, chosen in row["by_seed"].get("0", {}).get("settings", {}).items():
            shown = ", ".join(f"{key} {value}" for key, value in chosen.items() if _is_shown(row, key, chosen))
            lines.append((row["row"], name, shown))
    return table(("row", "set", "settings"), lines)


def _is_shown(row: Mapping[str, Any], key: str, chosen: Mapping[str, Any]) -> bool:
    return row["system"] == "siamese" or (key not in LEARNED and not (key == "answer" and not chosen[key]))


def _curves(result: Mapping[str, Any]) -> list[str]:
    lines = [
        f"![MAP of dev by epoch and by the weight of the network]({result['figure']})",
        "",
        "MAP of dev sets by epoch, as in the paper's figure 3, and by the weight α of the network beside BM25, as in"
        " its figure 5, means over seeds; full lines are networks that share their weights, broken ones those that do"
        " not, dotted ones those with the summed loss, and the paper's α. By epoch, queries without a positive"
        " candidate are left out of every set. The"
        " course of every training is in"
        f" [{result['logs']}](../results/{result['logs']}).",
    ]
    best = [
        (row, name, *(max(curve, key=lambda point: point[1])[0],), f"{100 * max(value for _, value in curve):.2f}")
        for row, found in result["by_alpha"].items()
        for name, curve in found.items()
    ]
    return [*lines, "", *table(("row", "set", "best α on dev", "its dev MAP"), best)]


def _examples(found: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [
        "Queries of dev splits, as in the paper's table 3: for each rival the first whose best candidate is relevant by"
        " T-SCQA alone, and the first whose is by the rival alone. Each with two best candidates, + where relevant:",
        "",
    ]
    for one in found:
        lines.append(f"- {one['task']}: {one['query']}")
        for name, titles in one["found"].items():
            shown = "; ".join(f"{'+' if relevant else '-'} {title}" for title, relevant in titles)
            lines.append(f"  - {name}: {shown}")
    return lines
