"""The section on how far a likelihood can be believed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.sections.cells import table

__all__ = ["believed"]


def believed(result: Mapping[str, Any]) -> list[str]:
    """Return how good likelihoods are on sets that they were not fitted to, and what verdicts do for them."""
    by_others, used = result["dev"]["by other sets"], result["used"]
    spreads = result["dev"]["after verdicts, by the prior's spread"]
    counts = list(next(iter(result["test, after verdicts"].values())))
    return [
        "## How likely two questions ask the same",
        "",
        f"σ({used['intercept']} + {used['slope']} · cosine), fitted to pairs that people judged at Quora and Qatar"
        " Living, and moved by a forum's own verdicts. Off by: how far the mean likelihood of ten groups of pairs is"
        " from the share of each that was judged the same. Travel: the search's five best, by marks, which miss much"
        " that asks the same.",
        "",
        *table(
            ("test set", "pairs", "the same", "AUC", "log loss", "of the share alone", "off by"),
            [_row(name, one) for name, one in result["test"].items()],
        ),
        "",
        "After so many verdicts, drawn from the set and judged on the rest of it: off by, in points of 100 (log loss).",
        "",
        *table(
            ("test set", *(f"{count} verdicts" for count in counts)),
            [(name, *_course(one)) for name, one in result["test, after verdicts"].items()],
        ),
        "",
        "By a fit of the other judged set alone, from which the strength of the prior was chosen:",
        "",
        *table(
            ("dev set", "prior's σ", *(f"{count} verdicts" for count in counts)),
            [(name, spread, *_course(spreads[spread][name])) for name in by_others for spread in spreads],
        ),
    ]


def _row(name: str, one: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        name,
        f"{one['pairs']:,}",
        f"{100 * one['same']:.0f} %",
        f"{one['auc']:.3f}",
        f"{one['log_loss']:.3f}",
        f"{one['log_loss_of_the_share']:.3f}",
        f"{100 * one['off_by']:.0f} points",
    )


def _course(found: Mapping[str, Mapping[str, float]]) -> list[str]:
    return [f"{100 * one['off_by']:.0f} ({one['log_loss']:.2f})" for one in found.values()]
