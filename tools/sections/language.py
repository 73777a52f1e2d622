"""The section on how fast the language models are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.sections.cells import table

__all__ = ["speed"]


def speed(result: Mapping[str, Any]) -> list[str]:
    """Return learning and scoring times."""
    training, sizes = result["training"], result["sizes"]
    cases = list(next(iter(result["scoring"].values())))
    lines = [
        (kind, *(f"{found[case]['median_ms']:.1f} ({found[case]['best_ms']:.1f})" for case in cases))
        for kind, found in result["scoring"].items()
    ]
    return [
        "## Speed of language models",
        "",
        f"IBM's model 1 on {training['pairs']:,} drawn pairs of texts with {training['pairs_of_terms']:,} pairs of"
        f" terms: {training['pairs_per_s']:,} pairs a second in an iteration, {training['numbering_s']:.1f} s to begin"
        f" with, {training['peak_memory_mb']} MB of memory at most. Scoring {sizes['candidates']:,} candidates of a"
        f" query, milliseconds of processor time, median (and best) of {sizes['rounds']}; the target is"
        f" {sizes['target_ms']} ms:",
        "",
        *table(("model", *(case.replace("terms, candidates", "terms beside candidates") for case in cases)), lines),
    ]
