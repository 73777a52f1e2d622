"""The section on what misspellings cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.sections.cells import table

__all__ = ["lost"]


def lost(result: Mapping[str, Any]) -> list[str]:
    """Return each system's figures with and without misspellings."""
    lines = [
        (
            name,
            *(_shown(found[key]) for key in ("written", "misspelled", "lost")),
            f"{100 * found['lost_share']:.0f} %",
            f"{found['p_value']:.4f}",
            f"{beside:.4f}" if (beside := result["p_lost_beside_bm25"].get(name)) is not None else "",
        )
        for name, found in result["systems"].items()
    ]
    example = result["example"]
    header = ("system", "as written", "misspelled", "lost", "of it", "p", "p, loss beside BM25's")
    return [
        "## Misspellings",
        "",
        f"{result['measure']} over {result['collection']:,} real questions of {result['queries']} duplicates, as they"
        " were written and with one random edit of a letter in each content word of the query, the mean of"
        f" {result['draws']} draws: “{example['written']}” becomes “{example['misspelled']}”. SCQA, which"
        f" reads letter trigrams, learned from {result['siamese_pairs']:,} questions with answers; the others read"
        " whole words or word pieces.",
        "",
        *table(header, lines),
    ]


def _shown(found: Mapping[str, Any]) -> str:
    low, high = found["interval95"]
    return f"{found['mean']:.1f} ({low:.1f}–{high:.1f})"
