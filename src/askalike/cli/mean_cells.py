"""Means over seeds as papers' tables show them: a cell on a terminal, an object as JSON.

Enters: ``SeedMean``. Leaves: text, objects. May import: experiments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from askalike.experiments.seed_means import SeedMean

__all__ = ["mean_cell", "means_object"]


def mean_cell(mean: SeedMean, *, has_interval: bool) -> str:
    """Return a mean times 100, with its spread over seeds and, dimmed, its interval over queries."""
    found = mean.over_queries
    spread = "" if mean.spread is None else f" ±{100 * mean.spread:.1f}"
    interval = f" [dim]{100 * found.low:.1f}–{100 * found.high:.1f}[/dim]" if has_interval else ""
    return f"{100 * found.mean:.2f}{spread}{interval}"


def means_object(means: Mapping[str, Mapping[str, SeedMean]]) -> dict[str, Any]:
    """Return task → measure → mean as JSON prints it; means lie in [0, 1]."""
    return {
        task: {
            measure: {
                "mean": mean.over_queries.mean,
                "interval95": [mean.over_queries.low, mean.over_queries.high],
                "spread": mean.spread,
                "p_value": mean.p_value,
            }
            for measure, mean in found.items()
        }
        for task, found in means.items()
    }
