"""``askalike add``, ``edit``, ``delete``, ``link`` and ``unlink``: single changes to a forum."""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from askalike.cli.arguments import ForumArgument, JsonOption, body_text, command, moment
from askalike.cli.display import console, print_json, safe
from askalike.errors import SettingError, UnknownIdError
from askalike.forum import Forum
from askalike.types import Answer, Link, Question

IdOption = Annotated[str, typer.Option("--id", help="Its id; generated if omitted.")]
BodyOption = Annotated[str | None, typer.Option("--body", help="In Markdown; - reads standard input.")]
TagOption = Annotated[list[str] | None, typer.Option("--tag", help="A tag; may be repeated.")]
LanguageOption = Annotated[
    str | None, typer.Option("--language", help='What it is written in, such as de; "" lets it be found out.')
]


def add(
    forum: ForumArgument,
    title: Annotated[str, typer.Option("--title", help="The question's title.")] = "",
    body: BodyOption = None,
    identifier: IdOption = "",
    tag: TagOption = None,
    language: LanguageOption = None,
    created: Annotated[str | None, typer.Option("--created", help="When it was asked; default: now.")] = None,
    answer_to: Annotated[str, typer.Option("--answer-to", help="Add an answer to this question instead.")] = "",
    duplicate_of: Annotated[str, typer.Option("--duplicate-of", help="Link it as a duplicate of this question.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Add a question (--title), or an answer (--answer-to).

    It is on disk and found when the command returns.
    """
    if bool(title) == bool(answer_to):
        raise SettingError("expected either --title or --answer-to", "give one of them")
    if answer_to and (tag or duplicate_of or language):
        raise SettingError("--tag, --language and --duplicate-of do not go with --answer-to", "they are for questions")
    if answer_to and not body:
        raise SettingError("the answer has no text", "give it with --body, or --body - for standard input")
    made = identifier or f"m-{secrets.token_hex(6)}"
    when = moment(created, "--created") or datetime.now(UTC).replace(microsecond=0)
    text = body_text(body or "")
    with Forum.open(forum) as opened:
        if answer_to:
            answer = Answer(made, answer_to, text, "markdown", when)
            opened.add_answers([answer])
        else:
            question = Question(made, title, text, "markdown", tuple(tag or ()), when, language=language or "")
            opened.add(question, links=[Link(made, duplicate_of, "duplicate")] if duplicate_of else [])
            question = opened.question(made)
    if as_json:
        print_json(answer if answer_to else question)
    else:
        console.print(f"added {safe(made)}", markup=False)


def edit(
    forum: ForumArgument,
    identifier: Annotated[str, typer.Argument(metavar="ID", help="The question's id.")],
    title: Annotated[str | None, typer.Option("--title", help="Its new title.")] = None,
    body: BodyOption = None,
    tag: TagOption = None,
    language: LanguageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change a question's title, body, tags or language.

    What is not given stays.
    """
    if title is None and body is None and tag is None and language is None:
        raise SettingError("nothing to change was given", "give --title, --body, --tag or --language")
    with Forum.open(forum) as opened:
        question = opened.question(identifier)
        if title is not None:
            question = replace(question, title=title)
        if body is not None:
            question = replace(question, body=body_text(body), markup="markdown")
        if tag is not None:
            question = replace(question, tags=tuple(tag))
        if language is not None:
            question = replace(question, language=language, is_language_detected=False)
        opened.edit(question)
        question = opened.question(identifier)
    if as_json:
        print_json(question)
    else:
        console.print(f"edited {safe(identifier)}", markup=False)


def delete(
    forum: ForumArgument,
    identifiers: Annotated[list[str], typer.Argument(metavar="ID...", help="The questions' ids.")],
    as_json: JsonOption = False,
) -> None:
    """Delete questions with their answers and links."""
    with Forum.open(forum) as opened:
        opened.delete(identifiers)
    if as_json:
        print_json({"deleted": identifiers})
    else:
        console.print(f"deleted {', '.join(safe(one) for one in identifiers)}", markup=False)


OtherArgument = Annotated[str, typer.Argument(metavar="ORIGINAL", help="The id of the question it repeats.")]
RelatedOption = Annotated[bool, typer.Option("--related", help="They are merely related.")]


def link(
    forum: ForumArgument,
    identifier: Annotated[str, typer.Argument(metavar="ID", help="The question's id.")],
    original: OtherArgument,
    related: RelatedOption = False,
    as_json: JsonOption = False,
) -> None:
    """Link a question as a duplicate of another.

    The other must be no duplicate itself: a link that would lead on, or in a circle, is refused, and the chain shown.
    """
    made = Link(identifier, original, "related" if related else "duplicate")
    with Forum.open(forum) as opened:
        is_new = opened.add_links([made]) > 0 if related else opened.mark(identifier, original)
    _tell_link(made, "linked" if is_new else "already linked", as_json)


def unlink(
    forum: ForumArgument,
    identifier: Annotated[str, typer.Argument(metavar="ID", help="The question's id.")],
    original: OtherArgument,
    related: RelatedOption = False,
    as_json: JsonOption = False,
) -> None:
    """Remove a link between two questions."""
    gone = Link(identifier, original, "related" if related else "duplicate")
    with Forum.open(forum) as opened:
        if not opened.remove_links([gone]):
            raise UnknownIdError(
                f"question {identifier!r} is not linked as {gone.kind} to {original!r}",
                f'"{command("show", forum, identifier)}" lists its links',
            )
    _tell_link(gone, "unlinked", as_json)


def _tell_link(one: Link, done: str, as_json: bool) -> None:
    if as_json:
        print_json({"done": done, "link": one})
    else:
        kind = "a duplicate of" if one.kind == "duplicate" else "related to"
        console.print(f"{done}: {safe(one.source_id)} is {kind} {safe(one.target_id)}", markup=False)
