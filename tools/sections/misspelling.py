"""The sections on what misspellings cost, and on how they are corrected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.sections.cells import table

__all__ = ["corrected", "lost"]


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
        " whole words or word pieces." + _kept(result["systems"], "rows of"),
        "",
        *table(header, lines),
    ]


def _kept(parts: Mapping[str, Mapping[str, Any]], what: str) -> str:
    """Return which parts an earlier run measured, "" where none was."""
    by_commit: dict[str, list[str]] = {}
    for name, one in parts.items():
        if "commit" in one:
            by_commit.setdefault(one["commit"], []).append(name)
    return "".join(f" The {what} {', '.join(names)}: commit `{commit}`." for commit, names in by_commit.items())


def _shown(found: Mapping[str, Any]) -> str:
    low, high = found["interval95"]
    return f"{found['mean']:.1f} ({low:.1f}–{high:.1f})"


def corrected(result: Mapping[str, Any]) -> list[str]:
    """Return what the correction of words does to misspelt words, to right ones and to code, beside the rule before."""
    rows = [
        (
            f"{name}, {found['questions']:,} questions" if rule == "before" else "",
            rule,
            *(_outcome(row[kind]) for kind in ("as people type", "any letter")),
            f"{row['as written']['changed']} of {row['as written']['titles']:,}",
            f"{row['code']['words changed']} of {row['code']['pieces']:,}",
            *(f"{row[kind]['median']:.2f} / {row[kind]['p95']:.1f}" for kind in ("title_ms", "question_ms")),
        )
        for name, found in result["forums"].items()
        for rule, row in found["rules"].items()
    ]
    search = result["search"]
    searched = [
        (
            kind,
            *(_shown(found[rule]) for rule in ("uncorrected", "before", "now", "gained over before")),
            f"{found['p_value']:.4f}",
        )
        for kind, found in search.items()
        if isinstance(found, Mapping)
    ]
    header = (
        *("forum", "rule", "as people type: right / wrong / left", "any letter: right / wrong / left"),
        *("titles changed as written", "pieces of code and logs changed", "ms a title, median / p95", "ms a question"),
    )
    return [
        "## Corrected words",
        "",
        "Titles of questions that the forum does not hold, with one misspelt word each, drawn as people type (a letter"
        " twice, a neighbouring key, a vowel for a vowel) or with any letter: read as the right word, as a wrong one,"
        " or left. Beside them the same titles as they are, of which some are misspelt by their authors, and blocks of"
        " code and pasted logs. Parameters were chosen on the first forum and the dev split of travel's duplicates."
        + _kept(result["forums"], "rows of"),
        "",
        *table(header, rows),
        "",
        f"recall@10 of the default search over the travel forum's {search['queries']} duplicates, the mean of"
        f" {search['draws']} draws:",
        "",
        *table(("queries", "uncorrected", "rule before", "rule now", "gained over before", "p"), searched),
    ]


def _outcome(found: Mapping[str, Any]) -> str:
    return " / ".join(f"{100 * found[name] / found['queries']:.1f} %" for name in ("rightly", "wrongly", "left"))
