"""``askalike show`` and ``source``: one question with all that belongs to it; where the records came from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Final, Literal

import typer
from rich.text import Text

from askalike.cli.arguments import CsvOption, ForumArgument, JsonOption, ParquetOption, form_of
from askalike.cli.display import console, print_json, print_records, print_whole, safe
from askalike.errors import SettingError
from askalike.forum import Forum
from askalike.store import SourceCounts
from askalike.text.markup import plain_text
from askalike.types import Answer, Question


def show(
    forum: ForumArgument,
    identifier: Annotated[str, typer.Argument(metavar="ID", help="The question's id.")],
    as_json: JsonOption = False,
) -> None:
    """Show a question with its answers, links and judgements."""
    with Forum.open(forum) as opened:
        question, answers = opened.question(identifier), opened.answers(identifier)
        links = opened.links_of(identifier)
        verdicts = [one for one in opened.verdicts() if identifier in (one.question_id, one.candidate_id)]
        ends = {end for one in links for end in (one.source_id, one.target_id)}
        ends |= {end for one in verdicts for end in (one.question_id, one.candidate_id)}
        titles = {one: opened.question(one).title for one in ends - {identifier}}
    if as_json:
        print_json({"question": question, "answers": answers, "links": links, "judgements": verdicts})
        return
    console.print(Text(safe(question.title) or "(no title)", style="bold"))
    console.print(Text(" · ".join(map(safe, _details(question))), style="dim"))
    _print_text(question)
    for link in links:
        other, way = (link.target_id, "→") if link.source_id == identifier else (link.source_id, "←")
        kind = "duplicate of" if link.kind == "duplicate" else "related to"
        kind = kind if way == "→" or link.kind == "related" else "duplicate:"
        print_whole(f"{kind} {safe(other)}: {safe(titles[other])}")
    for one in verdicts:
        other = one.candidate_id if one.question_id == identifier else one.question_id
        by = f" by {safe(one.by)}" if one.by else ""
        print_whole(f"judged {one.verdict}{by} beside {safe(other)}: {safe(titles[other])}")
    for answer in answers:
        console.print()
        console.print(Text(" · ".join(map(safe, _details(answer))), style="yellow"))
        _print_text(answer)


def _details(post: Question | Answer) -> Iterator[str]:
    if isinstance(post, Answer):
        yield "accepted answer" if post.is_accepted else "answer"
    yield post.id
    if post.created is not None:
        yield post.created.date().isoformat()
    if post.author:
        yield f"by {post.author}"
    if post.score is not None:
        yield f"{post.score:+d}"
    if isinstance(post, Question):
        if post.tags:
            yield " ".join(f"[{tag}]" for tag in post.tags)
        if post.language:
            yield f"in {post.language}{' (detected)' if post.is_language_detected else ''}"
        if post.closed is not None:
            yield f"closed {post.closed.date().isoformat()}"
        if post.url:
            yield post.url


def _print_text(post: Question | Answer) -> None:
    for line in plain_text(post.body, post.markup).splitlines():
        console.print(Text(safe(line)))


SOURCE_COLUMNS: Final[Mapping[str, Callable[[SourceCounts], str]]] = {
    "source": lambda one: one.name,
    "format": lambda one: one.format,
    "questions": lambda one: f"{one.questions:,}",
    "answers": lambda one: f"{one.answers:,}",
    "links": lambda one: f"{one.links:,}",
}


def source(
    action: Annotated[Literal["list", "remove"], typer.Argument(metavar="ACTION", help="list, or remove one.")],
    forum: ForumArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="remove: the source's name.", show_default=False)] = "",
    yes: Annotated[bool, typer.Option("--yes", help="remove: do not ask.")] = False,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
    as_parquet: ParquetOption = False,
) -> None:
    """List the archives a forum was filled from, or remove one.

    Removing a source deletes its questions, answers and links; what people judged counts again when they return.
    """
    form = form_of(as_json, as_csv, as_parquet)
    with Forum.open(forum) as opened:
        if action == "list":
            if name:
                raise SettingError(f"list takes no name, and got {name!r}", "leave it out")
            print_records(opened.source_counts(), SourceCounts, form, SOURCE_COLUMNS)
            return
        held = {one.name: one for one in opened.source_counts()}
        if name in held and not yes:
            found = held[name]
            counted = f"{found.questions:,} questions, {found.answers:,} answers and {found.links:,} links"
            typer.confirm(f"Delete {counted} of {safe(name)}?", abort=True, err=True)
        gone = opened.remove_source(name)
    if form == "jsonl":
        print_json({"removed": gone})
    else:
        print_whole(
            f"removed {safe(name)}: {gone.questions:,} questions, {gone.answers:,} answers, {gone.links:,} links"
        )
