"""Comparisons of rows: a table on a terminal, objects as JSON.

Enters: ``Compared``. Leaves: a table, objects. May import: experiments.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.table import Table

from askalike.experiments.row_comparison import Compared

__all__ = ["comparison_objects", "comparison_table"]


def comparison_table(found: Iterable[Compared]) -> Table:
    """Return a line for each comparison below the name of its task, differences times 100; it fits 80 columns."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("rows", no_wrap=True)
    for name in ("difference", "interval", "p"):
        table.add_column(name, justify="right", no_wrap=True)
    by_task: dict[str, list[Compared]] = {}
    for one in found:
        by_task.setdefault(one.task, []).append(one)
    for task, of_task in by_task.items():
        table.add_row(task, style="bold")
        for one in of_task:
            table.add_row(
                f"{one.better} over {one.worse}",
                f"{100 * one.difference.mean:+.2f}",
                f"{100 * one.difference.low:+.1f} to {100 * one.difference.high:+.1f}",
                f"{one.p_value:.4f}",
            )
    return table


def comparison_objects(found: Iterable[Compared]) -> list[dict[str, Any]]:
    """Return each comparison as JSON prints it; differences lie in [-1, 1]."""
    return [
        {
            "better": one.better,
            "worse": one.worse,
            "task": one.task,
            "difference": one.difference.mean,
            "interval95": [one.difference.low, one.difference.high],
            "p_value": one.p_value,
        }
        for one in found
    ]
