"""``askalike delete``: questions by their ids, or all that came from one archive."""

from __future__ import annotations

from typing import Annotated

import typer

from askalike.cli.arguments import ForumArgument, JsonOption
from askalike.cli.display import console, print_json, print_whole, safe
from askalike.errors import SettingError
from askalike.forum import Forum


def delete(
    forum: ForumArgument,
    identifiers: Annotated[
        list[str] | None, typer.Argument(metavar="ID...", help="The questions' ids.", show_default=False)
    ] = None,
    source: Annotated[
        str, typer.Option("--source", help="Delete all that came from this archive; askalike info lists the names.")
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="With --source: do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete questions with their answers and links.

    Judgements are kept: they count again when their questions return.
    """
    if bool(identifiers) == bool(source):
        raise SettingError("expected either ids or --source", "give one of them")
    if source:
        _delete_source(forum, source, is_confirmed=yes, as_json=as_json)
        return
    with Forum.open(forum) as opened:
        opened.delete(identifiers or ())
    if as_json:
        print_json({"deleted": identifiers})
    else:
        console.print(f"deleted {', '.join(map(safe, identifiers or ()))}", markup=False)


def _delete_source(forum: ForumArgument, name: str, *, is_confirmed: bool, as_json: bool) -> None:
    with Forum.open(forum) as opened:
        counts = {source.name: source for source in opened.store.source_counts()}.get(name)
        if counts is not None and not is_confirmed:
            records = f"{counts.questions:,} questions, {counts.answers:,} answers and {counts.links:,} links"
            typer.confirm(f"Delete {records} of {safe(name)}?", abort=True, err=True)
        deleted = opened.remove_source(name)
    if as_json:
        print_json({"deleted": deleted})
    else:
        print_whole(
            f"deleted {deleted.questions:,} questions, {deleted.answers:,} answers and {deleted.links:,} links"
            f" of {safe(name)}"
        )
