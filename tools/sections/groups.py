"""The section on groups: whether questions of one group were read as the same, and what groups cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.sections.cells import table


def held_together(result: Mapping[str, Any]) -> list[str]:
    """Return what was read of pairs within groups, and the cost of groups in a large forum."""
    reading, cost = result["reading"], result.get("cost")
    shown = reading["shown"]
    rows = [
        (f"travel, shown: a minimum of {shown['minimum']}", *_cells(shown)),
        ("of these, linked as duplicates", *_cells(reading["shown, linked"])),
        ("of these, by probability alone", *_cells(reading["shown, by probability alone"])),
        ("what a minimum of 0.6 adds", *_cells(reading["from 0.6"])),
    ]
    rows += [
        (f"travel without its links, a minimum of {minimum}", *_cells(found))
        for minimum, found in reading["without links"].items()
    ]
    if "slicer" in result:
        rows.append(("Slicer, shown", *_cells(result["slicer"])))
    twice = reading["read twice"]
    lines = [
        "## Groups",
        "",
        "Pairs within groups, read by one language model by the guide of the judged pools: grade 2 or 3 answers the"
        f" other question. Read twice: {twice['pairs']}, {twice['both 2 or 3, or neither']} on the same side. What"
        " links and names count was chosen by the pairs without links and by others of linked groups.",
        "",
        *table(("pairs", "in groups", "read", "grade 2 or 3", "95 % interval"), rows),
        "",
        "Shown: "
        + ", ".join(f"{count} groups of the kind {kind}" for kind, count in reading["kinds"].items())
        + f"; the largest has {reading['largest']} questions.",
    ]
    if cost:
        after = cost["after one link or judgement, ms"]
        lines += [
            "",
            f"{cost['questions']:,} questions of Reddit with {cost['pairs']:,} pairs drawn at random: all"
            f" {cost['groups']:,} groups anew in {cost['first, s']:.1f} s and {cost['memory of the first, MB']} MB, in"
            f" step after one link or judgement in {after['median']:.0f} ms (at most {after['most']:.0f}), a page of 20"
            f" groups in {cost['a page of groups, ms']:.0f} ms.",
        ]
    return lines


def _cells(found: Mapping[str, Any]) -> tuple[str, str, str, str]:
    if not found["pairs"]:
        return str(found["in groups"]), "0", "", ""
    low, high = (f"{100 * end:.0f}" for end in found["interval"])
    return str(found["in groups"]), str(found["pairs"]), f"{100 * found['share']:.0f} %", f"{low} to {high} %"
