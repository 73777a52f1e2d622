"""``askalike show``: a question in full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer
from rich.text import Text

from askalike.cli.arguments import ForumArgument, JsonOption
from askalike.cli.display import console, print_whole
from askalike.cli.messages import print_json, safe
from askalike.forum import Forum
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
        links = opened.store.links_of(identifier)
        judgements = [it for it in opened.store.judgements() if identifier in (it.question_id, it.candidate_id)]
        others = {end for link in links for end in (link.source_id, link.target_id)}
        others |= {end for it in judgements for end in (it.question_id, it.candidate_id)}
        titles = {other: opened.question(other).title for other in others - {identifier}}
    if as_json:
        print_json({"question": question, "answers": answers, "links": links, "judgements": judgements})
        return
    console.print(Text(safe(question.title) or "(no title)", style="bold"))
    console.print(Text(" · ".join(map(safe, _details(question))), style="dim"))
    _print_text(question)
    for link in links:
        is_source = link.source_id == identifier
        other = link.target_id if is_source else link.source_id
        relation = "related to" if link.kind == "related" else "duplicate of" if is_source else "duplicate:"
        print_whole(f"{relation} {safe(other)}: {safe(titles[other])}")
    for judgement in judgements:
        other = judgement.candidate_id if judgement.question_id == identifier else judgement.question_id
        by = f" by {safe(judgement.by)}" if judgement.by else ""
        print_whole(f"judged {judgement.verdict}{by} beside {safe(other)}: {safe(titles[other])}")
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
