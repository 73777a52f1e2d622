"""The section on groups: whether questions of one group were read as the same, and what groups cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.sections.cells import table


def held_together(result: Mapping[str, Any]) -> list[str]:
    """Return what was read of pairs within groups, and the cost of groups in a large forum."""
    reading, cost = result["reading"], result.get("cost")
    rows = [
        (f"without its links, minimum {minimum}, {name}", *_cells(found))
        for minimum, kinds in reading["without links"].items()
        for name, found in kinds.items()
        if isinstance(found, Mapping)
    ]
    rows += [
        ("with its links, a group first and then a pair in it", *_cells(reading["linked, by group"])),
        ("with its links, each pair as likely", *_cells(reading["linked, by pair"])),
    ]
    shown, twice = reading["shown"], reading["read twice"]
    largest = ", ".join(f"{name} {size}" for name, size in shown["largest"].items())
    lines = [
        "## Groups",
        "",
        "Pairs within groups of travel.stackexchange.com, read by one language model by the guide of the judged pools:"
        f" grade 2 or 3 answers the other question. Read twice: {twice['pairs']}, {twice['same grade']} with the same"
        " grade. All pairs of groups without links were read, the others were drawn.",
        "",
        *table(("pairs", "read", "grade 2 or 3", "95 % interval"), rows),
        "",
        "Most groups of this forum come from its duplicate links, and what was linked to one original is often not the"
        " same as what else was: groups say which kind they are."
        f" Largest by kind, at the default minimum: {largest}.",
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


def _cells(found: Mapping[str, Any]) -> tuple[str, str, str]:
    low, high = (f"{100 * end:.0f}" for end in found["interval"])
    return str(found["pairs"]), f"{100 * found['share']:.0f} %", f"{low} to {high} %"
