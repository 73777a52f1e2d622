"""``askalike report``: what the suggestions of a month brought, and what people did with them as labels."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from askalike.cli.arguments import CsvOption, ForumArgument, JsonOption, form_of
from askalike.cli.display import console, print_aligned, print_file, print_json, safe
from askalike.errors import SettingError
from askalike.forum import Forum
from askalike.types import Comparison, OutcomeLabel, Report

_COUNTED = {
    "shown": "visits with suggestions",
    "opened": "with one opened",
    "helped": "with one that helped",
    "asked": "asked all the same",
    "duplicates": "of these soon marked a duplicate",
    "saved": "helped, and nothing asked",
}


def report(
    forum: ForumArgument,
    month: Annotated[str, typer.Option("--month", help="The month, as 2026-11; the running one if omitted.")] = "",
    labels: Annotated[
        bool, typer.Option("--labels", help="What people did before they asked, a JSON object a line or CSV.")
    ] = False,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Show what suggestions brought in a month.

    It needs visits that were counted: askalike serve --outcomes, and the widget with data-count. With --labels, each
    suggestion of a visit in which a question was asked is a label, with the probability with which it was shown.
    """
    form = form_of(as_json, as_csv, False)
    if labels and as_json:
        raise SettingError("--labels and --json were given", "labels are a JSON object a line, or CSV")
    with Forum.open(forum) as opened:
        if labels:
            print_file(opened.outcome_labels(month), OutcomeLabel, form or "jsonl")
            return
        found = opened.report(month)
    if as_json:
        print_json(found)
    elif as_csv:
        console.print("day,shown,opened,helped,asked,duplicates,saved", markup=False)
        for one in found.days:
            console.print(f"{one.day},{','.join(str(getattr(one.counts, name)) for name in _COUNTED)}", markup=False)
    else:
        _show(found)


def _show(found: Report) -> None:
    table = Table(found.month, "", show_header=True, box=None, pad_edge=False)
    for name, about in _COUNTED.items():
        table.add_row(about, f"{getattr(found.total, name):,}")
    print_aligned(table)
    if not found.total.shown:
        console.print("No visit was counted: start the service with --outcomes, and the widget with data-count.")
        return
    share = found.total.saved / found.total.shown
    console.print(f"{share:.1%} of visits saved (95 % interval {found.saved_low:.1%} to {found.saved_high:.1%})")
    questions = Table("helped", "opened", "shown", "question", box=None, pad_edge=False)
    for one in found.questions:
        questions.add_row(str(one.helped), str(one.opened), str(one.shown), safe(f"{one.title} ({one.id})"))
    if found.questions:
        print_aligned(questions)
    if found.comparison is not None:
        console.print(_said(found.comparison), markup=False)


def _said(found: Comparison) -> str:
    share = "" if found.share is None else f", {found.share:.1%} of those that one won"
    better = {
        "": "neither is better by more than chance",
        "default": "the default is better",
        "rival": "the rival is better",
    }
    return (
        f"comparison: of {found.visits:,} visits the default won {found.default:,} and the rival {found.rival:,}{share}"
        f" (95 % interval {found.low:.1%} to {found.high:.1%}, p = {found.p_value:.3g}): {better[found.better]}"
    )
