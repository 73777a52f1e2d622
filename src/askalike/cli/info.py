"""``askalike info`` and ``askalike check``: what a forum holds, and whether its files are what was written."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from askalike.cli.arguments import ForumArgument, JsonOption
from askalike.cli.display import console, print_facts, print_whole
from askalike.cli.messages import BarProgress, print_json, safe
from askalike.forum import Forum, Info
from askalike.forum.check import CheckReport, Finding
from askalike.store import SourceCounts
from askalike.store.rows import from_microseconds

UNUSUAL = (
    "answers_without_question",
    "marks_without_question",
    "judgements_without_question",
    "encoder_problem",
    "engine",
)
"""Shown only where there are some."""


def info(
    forum: ForumArgument,
    as_json: JsonOption = False,
) -> None:
    """Show what a forum holds and whether its indexes are in step."""
    with Forum.open(forum) as opened:
        facts = info_object(opened.info(), opened.store.source_counts())
    if as_json:
        print_json(facts)
        return
    print_facts({name: value for name, value in facts.items() if value or name not in UNUSUAL})


def info_object(info: Info, sources: list[SourceCounts]) -> dict[str, Any]:
    """Return the facts as JSON."""
    counts = info.counts
    return {
        "forum": info.path,
        "language": info.language,
        "languages": dict(info.languages),
        "questions": counts.questions,
        "answers": counts.answers,
        "questions_with_answer": counts.questions_with_answer,
        "duplicate_marks": counts.duplicates,
        "related_marks": counts.related,
        "judgements": counts.judgements,
        "sources": [msgspec.to_builtins(source) for source in sources],
        "answers_without_question": counts.answers_without_question,
        "marks_without_question": counts.links_without_question,
        "judgements_without_question": counts.judgements_without_question,
        "first_question": msgspec.to_builtins(from_microseconds(counts.first_us)),
        "last_question": msgspec.to_builtins(from_microseconds(counts.last_us)),
        "indexed": info.indexed,
        "changes_not_indexed": info.behind,
        "engine": info.engine or None,
        "model": info.vectors.model or None,
        "next_model": info.vectors.next_model or None,
        "encoded": info.vectors.entries,
        "encoded_by_next_model": info.vectors.next_entries,
        "not_encoded": info.vectors.waiting,
        "encoder_problem": info.vectors.problem or None,
        "size_bytes": info.size_bytes,
    }


def check(
    forum: ForumArgument,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Rebuild what is damaged from the archive: indexes, vectors, pairs. The archive is never changed.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Look for damage in a forum's files, and repair it.

    Archive, indexes, pairs and models are compared with what was written. The exit code is 1 on damage.
    """
    with BarProgress() as progress:
        report = Forum.repair(forum, progress=progress) if repair else Forum.check(forum, progress=progress)
    if as_json:
        print_json(report_object(str(forum), report))
    else:
        _show(report)
    if not report.is_sound:
        raise typer.Exit(1)


def report_object(forum: str, report: CheckReport) -> dict[str, Any]:
    """Return a report as JSON."""
    findings = [
        {"part": it.part, "path": it.path, "found": it.what, "hint": it.mend or None, "is_damage": it.is_damage}
        for it in report.findings
    ]
    return {"forum": forum, "is_sound": report.is_sound, "repaired": list(report.repaired), "findings": findings}


def _show(report: CheckReport) -> None:
    if report.repaired:
        console.print(f"rebuilt: {safe(', '.join(report.repaired))}")
    for finding in report.findings:
        print_whole(_line(finding))
    damaged = [finding for finding in report.findings if finding.is_damage]
    for hint in dict.fromkeys(finding.mend for finding in damaged if finding.mend):
        print_whole(f"hint: {safe(hint)}")
    if not damaged:
        console.print("Everything is sound.")


def _line(finding: Finding) -> str:
    kind = "damage" if finding.is_damage else "note"
    return f"{kind}: {safe(finding.path or finding.part)}: {safe(finding.what)}"
