"""``askalike search``: earlier questions that ask the same."""

from __future__ import annotations

from typing import Annotated

import typer

from askalike.cli.arguments import ForumArgument, JsonOption, body_text, moment
from askalike.cli.display import print_hits, print_json
from askalike.cli.progress import BarProgress
from askalike.errors import SettingError
from askalike.forum import Forum
from askalike.types import Filters
from askalike.wire import hit_object

__all__ = ["search"]


def search(
    forum: ForumArgument,
    title: Annotated[str, typer.Argument(metavar="TITLE", help="The question's title.", show_default=False)],
    body: Annotated[str, typer.Option("--body", help="Its body, in Markdown; - reads it from standard input.")] = "",
    k: Annotated[int, typer.Option("--k", "-k", help="How many to show.")] = 10,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Only with this tag; may be repeated.")] = None,
    before: Annotated[str | None, typer.Option("--before", help="Only asked before this date.")] = None,
    exclude: Annotated[list[str] | None, typer.Option("--exclude", help="Never this id; may be repeated.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the earlier questions that are most similar to a new one, with their best answers."""
    text = body_text(body)
    if not title.strip() and not text.strip():
        raise SettingError("the question is empty", "give a title, or a body with --body")
    filters = Filters(tuple(tag or ()), moment(before, "--before"), frozenset(exclude or ()))
    with BarProgress() as progress, Forum.open(forum, progress=progress) as opened:
        hits = opened.similar(title, text, k, markup="markdown", filters=filters)
    if as_json:
        print_json([hit_object(hit) for hit in hits])
    else:
        print_hits(hits)
