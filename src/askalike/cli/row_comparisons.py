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
    """Return a line for each comparison, differences times 100."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("rows", "task"):
        table.add_column(name, no_wrap=True)
    for name in ("difference", "interval", "p"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in found:
        table.add_row(
            f"{one.better} over {one.worse}",
            one.task,
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
