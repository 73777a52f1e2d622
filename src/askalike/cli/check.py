"""``askalike check``: whether a forum's folder holds what was written; and what is damaged, made anew."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from askalike.cli.arguments import ForumArgument, JsonOption
from askalike.cli.display import BarProgress, console, print_json, print_whole, safe
from askalike.forum import CheckReport, Finding, Forum


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
