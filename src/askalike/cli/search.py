"""``askalike search``: earlier questions that ask the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

import typer

from askalike.cli.arguments import ForumArgument, JsonOption, body_text, moment
from askalike.cli.calling import command
from askalike.cli.display import console, errors, print_hits, print_json, print_whole, query_lines, safe
from askalike.cli.progress import BarProgress
from askalike.errors import SettingError
from askalike.forum import Forum, ForumSettings
from askalike.index.vector_sets import VectorsState
from askalike.search import RANKER_NAMES, RANKERS
from askalike.search.settings import ALL, THRESHOLDS
from askalike.types import Filters, Query

SETTINGS = ForumSettings(neighbours="exact")
"""A command asks once: looking at all vectors takes less than reading the graph."""


def search(
    forum: ForumArgument,
    title: Annotated[str, typer.Argument(metavar="TITLE", help="The question's title.", show_default=False)],
    body: Annotated[str, typer.Option("--body", help="Its body, in Markdown; - reads standard input.")] = "",
    k: Annotated[int, typer.Option("--k", "-k", help="Number of results.")] = 10,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Only questions with this tag; repeatable.")] = None,
    before: Annotated[str | None, typer.Option("--before", help="Only questions asked before this date.")] = None,
    exclude: Annotated[list[str] | None, typer.Option("--exclude", help="Exclude this id; may be repeated.")] = None,
    ranker: Annotated[
        str | None,
        typer.Option("--ranker", help=f"One of {', '.join(RANKER_NAMES)}; default: probability."),
    ] = None,
    threshold: Annotated[
        str,
        typer.Option(
            "--threshold",
            help=f"One of {', '.join(THRESHOLDS)}: average shows nothing whose score is below the candidates' average.",
        ),
    ] = ALL,
    minimum: Annotated[
        str,
        typer.Option(
            "--minimum",
            help="The least probability, or a promise such as precision:0.9 or recall:0.95 (see askalike threshold).",
        ),
    ] = "0",
    explain: Annotated[bool, typer.Option("--explain", help="Show the parts of scores and weights of words.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the earlier questions that are most similar to a new one, with their best answers."""
    text = body_text(body)
    if not title.strip() and not text.strip():
        raise SettingError("the question is empty", "give a title, or a body with --body")
    filters = Filters(tuple(tag or ()), moment(before, "--before"), frozenset(exclude or ()))
    settings = replace(SETTINGS, search=replace(SETTINGS.search, threshold=threshold))
    with BarProgress() as progress, Forum.open(forum, settings=settings, progress=progress) as opened:
        lacking = list(_lacking(opened, ranker))
        least = opened.least(minimum)
        found = opened.search(Query(title, text, "markdown", k, filters, ranker, is_explained=explain, minimum=least))
        excluded = "" if found.hits else _barred(opened, filters)
    if found.notice:
        lacking.append(f"note: {safe(found.notice)}")
    notes = [*lacking, *(safe(f"note: {one.written} was corrected to {one.meant}") for one in found.corrections)]
    for line in [*notes, f"note: {excluded}"] if as_json and excluded else notes:
        print_whole(line, errors)
    if as_json:
        print_json(found.hits)
    elif excluded:
        print_whole(excluded)
    else:
        first = found.hits[0].explanation if found.hits else None
        if first is not None and (words := query_lines(first)):
            console.print(words, end="\n\n")
        print_hits(found.hits, has_scores=explain)


def _lacking(forum: Forum, ranker: str | None) -> Iterator[str]:
    """Yield what keeps questions from being found as well as they could be; nothing mostly."""
    behind = forum.behind
    if behind:
        found = forum.info()
        indexed, held = found.indexed, found.counts.questions
        yield (
            f"note: indexing is not finished: {indexed:,} of {held:,} questions"
            if indexed < held
            else f"note: indexing is not finished: {behind:,} change{'' if behind == 1 else 's'} to go"
        )
        return
    vectors = forum.vectors
    chosen = RANKERS.get(ranker or SETTINGS.search.ranker)
    if vectors.waiting and chosen is not None and chosen.needs_vectors:
        yield f"note: {_unencoded(vectors)}"
        yield f"hint: {command('encode', forum.path)}"


def _barred(forum: Forum, filters: Filters) -> str:
    """Return that no question of the forum has the tags and the date that were asked for, "" where one has."""
    asked = replace(filters, exclude_ids=frozenset())
    if asked == Filters() or any(map(asked.admits, forum.questions())):
        return ""
    wanted = []
    if asked.tags:
        wanted.append(f"has the tag{'s' if len(asked.tags) > 1 else ''} {', '.join(map(safe, asked.tags))}")
    if asked.before:
        wanted.append(f"was asked before {asked.before.isoformat(' ', 'minutes')}")
    return f"No question {' and '.join(wanted)}."


def _unencoded(state: VectorsState) -> str:
    """Return what searching by meaning lacks."""
    count = f"{state.waiting:,} question{' is' if state.waiting == 1 else 's are'} not encoded"
    if not state.model:
        return f"found by words only: {count}"
    if state.next_model:
        return safe(f"the previous model is in use: {count} by the new one, {state.next_model}")
    return f"{count}, and found by words only"
