"""The section on students: a large encoder's documents, searched by a small table's queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.sections.cells import table

FORUMS = ("devops", "reddit", "slicer", "travel")


def pools(result: Mapping[str, Any]) -> list[str]:
    """Return nDCG@5 of each system on the judged pools, what students cost, and the card of one."""
    rows, costs = [], []
    for name, row in result["rows"].items():
        for part in ("alone", "with words"):
            if part in row:
                values = row[part]
                low, high = values["interval"]
                system = name if part == "alone" else f"{name}, with words"
                shown = [f"{values[forum]:.1f}" for forum in FORUMS]
                rows.append((system, *shown, f"{values['all']:.1f} ({low:.1f}–{high:.1f})"))
        travel, held = row.get("travel"), row.get("held out")
        if travel:
            cosine = f"{held['cosine'][1]:.3f}" if held else ""
            spent = f"{row['training_s']:,}" if "training_s" in row else ""
            costs.append((name, cosine, f"{100 * travel['overlap@10']:.1f}", f"{100 * travel['ndcg@10']:.1f}", spent))
    compared = [
        (name, f"{middle:+.1f} ({low:+.1f} to {high:+.1f})")
        for name, (low, middle, high) in result["differences"].items()
    ]
    took = ", ".join(f"{name} {ms:.2f} ms" for name, ms in result["query_p50_ms"].items())
    queries = len(result["queries"])
    return [
        "## Students of MiniLM",
        "",
        f"nDCG@5 of {queries} judged queries (gain 2^grade − 1, judged candidates alone). Documents are MiniLM's,"
        " queries the student's, unless a row says otherwise. The weight of words is chosen on the other three forums."
        " Neither these queries nor travel's dev and test queries, nor texts that equal their titles,"
        " were learned from.",
        "",
        *table(("system", *FORUMS, "all"), rows),
        "",
        *table(("difference in nDCG@5", "mean, 95 % interval"), compared),
        "",
        "Cosine: to the teacher's vector of texts that were kept out of training. Travel: dev titles over all questions"
        " of the forum, brute force; overlap@10 is the share of the teacher's ten nearest among the student's. Training"
        f" with the teacher's vectors at hand. A query through the student, p50: {took}.",
        "",
        *table(("queries by", "cosine", "travel, overlap@10", "travel dev, nDCG@10", "training, s"), costs),
        "",
        "### The model card of the general student",
        "",
        *[f"#### {line[2:]}" if line.startswith("# ") else line for line in result["card"].splitlines()],
    ]
