"""``askalike info``: what a forum holds."""

from __future__ import annotations

from typing import Any

import msgspec
from rich.table import Column, Table
from rich.text import Text

from askalike.cli.arguments import ForumArgument, JsonOption
from askalike.cli.display import print_aligned, print_json, print_whole, safe
from askalike.cli.encode import minilm_hint
from askalike.forum import Forum, Info
from askalike.search import RERANKERS
from askalike.store.rows import from_microseconds

UNUSUAL = (
    "answers_without_question",
    "marks_without_question",
    "judgements_without_question",
    "unreadable_dates",
    "encoder_problem",
    "engine",
    "student",
    "queries_by",
)
"""Shown only where there are some."""


def info(forum: ForumArgument, as_json: JsonOption = False) -> None:
    """Show what a forum holds and whether its indexes are in step."""
    with Forum.open(forum) as opened:
        is_ready = opened.rankers()
        found = info_object(opened.info(), [name for name in RERANKERS if is_ready[name]])
        hint = minilm_hint(opened)
    if as_json:
        print_json(found)
        return
    table = Table("", Column(overflow="fold"), show_header=False, box=None, pad_edge=False)
    for name, value in found.items():
        if not value and name in UNUSUAL:
            continue
        text = ", ".join(value) if isinstance(value, list) else str(value or "-")
        shown = f"{value:,}" if isinstance(value, int) else safe(text or "-")
        table.add_row(name.replace("_", " "), Text(shown))
    print_aligned(table)
    if hint:
        print_whole(hint)


def info_object(found: Info, learned: list[str]) -> dict[str, Any]:
    """Return the facts as JSON; ``learned`` names the rankers that the forum has learned."""
    counts = found.counts
    return {
        "forum": found.path,
        "language": found.language,
        "questions": counts.questions,
        "answers": counts.answers,
        "questions_with_answer": counts.questions_with_answer,
        "duplicate_marks": counts.duplicates,
        "related_marks": counts.related,
        "judgements": counts.judgements,
        "answers_without_question": counts.answers_without_question,
        "marks_without_question": counts.links_without_question,
        "judgements_without_question": counts.judgements_without_question,
        "unreadable_dates": list(found.unreadable_dates),
        "first_question": msgspec.to_builtins(from_microseconds(counts.first_us)),
        "last_question": msgspec.to_builtins(from_microseconds(counts.last_us)),
        "indexed": found.indexed,
        "changes_not_indexed": found.behind,
        "engine": found.engine or None,
        "model": found.vectors.model or None,
        "next_model": found.vectors.next_model or None,
        "encoded": found.vectors.entries,
        "encoded_by_next_model": found.vectors.next_entries,
        "not_encoded": found.vectors.waiting,
        "student": found.vectors.student or None,
        "queries_by": found.vectors.queries if found.vectors.student else None,
        "encoder_problem": found.vectors.problem or None,
        "learned_rankers": learned,
        "size_bytes": found.size_bytes,
    }
