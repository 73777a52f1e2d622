"""``askalike search`` and ``similar``: earlier questions that ask the same, for one question or many at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from askalike.cli.arguments import ForumArgument, JsonOption, SearchOptions, body_text, command
from askalike.cli.display import BarProgress, console, messages, print_found, print_json, print_whole, query_lines, safe
from askalike.errors import InputError, SettingError
from askalike.evaluation.files import write_trec_run
from askalike.forum import Forum, ForumSettings
from askalike.index.vector_sets import VectorsState
from askalike.readers.detection import find_archive
from askalike.readers.frame import ReadContext
from askalike.search import RANKERS
from askalike.types import Filters, Query, Question, SearchResult

SETTINGS = ForumSettings()
USUAL = SearchOptions()


def search(
    forum: ForumArgument,
    title: Annotated[str, typer.Argument(metavar="TITLE", help="The question's title.", show_default=False)] = "",
    body: Annotated[str, typer.Option("--body", help="Its body, in Markdown; - reads standard input.")] = "",
    options: SearchOptions = USUAL,
    batch: Annotated[
        Path | None,
        typer.Option(
            "--batch",
            help="Ask all questions of a file: one title a line in a .txt, or any format of archives.",
        ),
    ] = None,
    run: Annotated[Path | None, typer.Option("--run", help="With --batch: write a TREC run to this file.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Find the earlier questions most similar to a new one.

    They come with their best answers. Many questions are asked at once with --batch, and answered in one pass.
    """
    text = body_text(body)
    if batch is not None and (title.strip() or text.strip()):
        raise SettingError("both a question and --batch were given", "give one of them")
    if batch is None and not title.strip() and not text.strip():
        raise SettingError("the question is empty", "give a title, or a body with --body")
    if run is not None and batch is None:
        raise SettingError("--run goes with --batch alone", "name a file of questions with --batch")
    query = options.query(title, text)
    if batch is not None:
        _search_many(forum, batch, query, options.threshold, run, as_json=as_json)
    else:
        _search(forum, query, options.threshold, as_json=as_json)


def similar(
    forum: ForumArgument,
    identifier: Annotated[str, typer.Argument(metavar="ID", help="The question's id.")],
    options: SearchOptions = USUAL,
    as_json: JsonOption = False,
) -> None:
    """Find the questions most similar to one of the forum.

    It is not among them itself, nor is what people judged different from it.
    """
    _search(forum, options.query(own=identifier), options.threshold, as_json=as_json)


def _search(forum: Path, query: Query, threshold: str, *, as_json: bool) -> None:
    with BarProgress() as progress, _opened(forum, threshold, progress) as opened:
        if query.own:
            stored = Query.stored(opened.question(query.own))
            query = replace(query, title=stored.title, body=stored.body, markup=stored.markup)
            query = replace(query, language=query.language or stored.language)
        lacking = list(_lacking(opened, query.ranker))
        found = opened.search(query)
        excluded = "" if found.hits else _barred(opened, query.filters)
    notes = list(dict.fromkeys([*lacking, *_notes(found)]))
    for line in [*notes, f"note: {excluded}"] if as_json and excluded else notes:
        messages.say(line)
    if messages.is_verbose:
        shown = ", ".join(f"{stage} {1000 * seconds:.1f} ms" for stage, seconds in found.seconds.items())
        messages.say(shown, "debug", seconds={stage: round(one, 6) for stage, one in found.seconds.items()})
    if as_json:
        print_json(found.hits)
    elif excluded:
        print_whole(excluded)
    else:
        first = found.hits[0].explanation if found.hits else None
        if first is not None and (words := query_lines(first)):
            console.print(words, end="\n\n")
        print_found(found, has_scores=query.is_explained)


def _search_many(forum: Path, batch: Path, query: Query, threshold: str, run: Path | None, *, as_json: bool) -> None:
    asked = list(questions_of(batch))
    if run is not None and (odd := next((one.id for one in asked if len(one.id.split()) != 1), None)) is not None:
        raise SettingError(f"the id {odd!r} has spaces in it, which a TREC run cannot hold", "use --json instead")
    with BarProgress() as progress, _opened(forum, threshold, progress) as opened:
        for line in _lacking(opened, query.ranker):
            messages.say(line)
        queries = [replace(query, title=one.title, body=one.body, markup=one.markup) for one in asked]
        found = dict(zip((one.id for one in asked), opened.similar_many(queries, progress=progress), strict=True))
    if run is not None:
        ranked = {name: [(hit.question.id, hit.score) for hit in one.hits] for name, one in found.items()}
        write_trec_run(run, ranked)
        messages.say(f"wrote the hits of {len(found):,} questions to {run}")
    if as_json:
        print_json([{"query": name, "hits": one.hits} for name, one in found.items()])
    elif run is None:
        for question, one in zip(asked, found.values(), strict=True):
            console.rule(f"{safe(question.id)}: “{safe(question.title)}”", align="left", style="dim")
            print_found(one, has_scores=query.is_explained)


def questions_of(path: Path) -> list[Question]:
    """Return the questions of a file: a title a line in a ``.txt``, else whatever can be indexed.

    Raises:
        InputError: it cannot be read, or holds no question.
    """
    if path.suffix == ".txt" and path.is_file():
        try:
            lines = path.read_text(encoding="utf-8-sig").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path} cannot be read: {error}", "expected UTF-8, one title a line") from error
        found = [Question(str(number), line.strip()) for number, line in enumerate(lines, 1) if line.strip()]
    else:
        archive, reader, _ = find_archive(path)
        context = ReadContext(notice=lambda text: messages.note(safe(text)))
        found = [one for one in reader.read(archive, context) if isinstance(one, Question)]
        if context.rejects.count:
            first = context.rejects.first[0]
            raise InputError(
                f"{context.rejects.count:,} records of {path} cannot be read, the first in line {first.line}:"
                f" {first.reason}",
                "correct them, or leave them out",
            )
    if not found:
        raise InputError(f"{path} holds no question", "expected one title a line in a .txt, or an archive")
    return list({one.id: one for one in found}.values())


def _opened(forum: Path, threshold: str, progress: BarProgress) -> Forum:
    settings = replace(SETTINGS, search=replace(SETTINGS.search, threshold=threshold))
    return Forum.open(forum, settings=settings, progress=progress)


def _notes(found: SearchResult) -> Iterator[str]:
    if found.notice:
        yield f"note: {safe(found.notice)}"
    for one in found.corrections:
        yield safe(f"note: {one.written} was corrected to {one.meant}")


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
    """Return that no question of the forum is as the filters want it, "" where one is."""
    asked = replace(filters, exclude_ids=frozenset())
    if asked == Filters() or forum.count(asked):
        return ""
    wanted = []
    for names, has in ((asked.tags, "has"), (asked.exclude_tags, "has not")):
        if names:
            wanted.append(f"{has} the tag{'s' if len(names) > 1 else ''} {', '.join(map(safe, names))}")
    if asked.languages:
        wanted.append(f"is in {' or '.join(map(safe, asked.languages))}")
    for moment, when in ((asked.before, "before"), (asked.after, "after")):
        if moment:
            wanted.append(f"was asked {when} {moment.isoformat(' ', 'minutes')}")
    for is_so, named in ((asked.is_answered, "answered"), (asked.is_closed, "closed")):
        if is_so is not None:
            wanted.append(f"is {'' if is_so else 'not '}{named}")
    return f"No question {' and '.join(wanted)}."


def _unencoded(state: VectorsState) -> str:
    """Return what searching by meaning lacks."""
    count = f"{state.waiting:,} question{' is' if state.waiting == 1 else 's are'} not encoded"
    if not state.model:
        return f"found by words only: {count}"
    if state.next_model:
        return safe(f"the previous model is in use: {count} by the new one, {state.next_model}")
    return f"{count}, and found by words only"
