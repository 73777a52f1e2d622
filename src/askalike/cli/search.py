"""``askalike search`` and ``similar``: earlier questions that ask the same.

rich is loaded where hits are printed: programs that ask for JSON do not wait for it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from askalike.cli.arguments import ForumArgument, JsonOption, body_text, command
from askalike.cli.messages import BarProgress, messages, print_json, safe
from askalike.errors import EncoderError, InputError, SettingError
from askalike.forum import Forum, ForumSettings
from askalike.search import RANKER_NAMES, RANKERS
from askalike.types import Filters, Order, Query, Question, SearchResult, parse_moment

SETTINGS = ForumSettings()
Show = Callable[[SearchResult, Mapping[str, Mapping[str, float]] | None], None]
"""Shows a result, and of each question by its id what its logit is the sum of; None shows no parts of scores."""

ResultsOption = Annotated[int, typer.Option("--k", "-k", help="Number of results.")]
AllOption = Annotated[bool, typer.Option("--all", help="Show hits below the forum's threshold, too.")]


def _ranker_names(incomplete: str) -> list[str]:
    return [name for name in RANKER_NAMES if name.startswith(incomplete)]


def search(
    forum: ForumArgument,
    title: Annotated[str, typer.Argument(metavar="TITLE", help="The question's title.", show_default=False)] = "",
    body: Annotated[str, typer.Option("--body", help="Its body, in Markdown; - reads standard input.")] = "",
    k: ResultsOption = 10,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Only questions with this tag; repeatable.")] = None,
    not_tag: Annotated[
        list[str] | None, typer.Option("--not-tag", help="Only questions without this tag; repeatable.")
    ] = None,
    before: Annotated[str | None, typer.Option("--before", help="Only questions asked before this date.")] = None,
    after: Annotated[str | None, typer.Option("--after", help="Only questions asked on this date or later.")] = None,
    answered: Annotated[
        bool | None,
        typer.Option("--answered/--unanswered", help="Only questions with an answer, or only those without."),
    ] = None,
    closed: Annotated[
        bool | None, typer.Option("--closed/--open", help="Only closed questions, or only open ones.")
    ] = None,
    exclude: Annotated[list[str] | None, typer.Option("--exclude", help="Exclude this id; repeatable.")] = None,
    language: Annotated[
        list[str] | None, typer.Option("--language", help="Only questions in this language, such as de; repeatable.")
    ] = None,
    query_language: Annotated[
        str,
        typer.Option("--query-language", help="The question's language, in a forum of several; detected if omitted."),
    ] = "",
    minimum: Annotated[
        str | None,
        typer.Option(
            "--minimum",
            "--min",
            help="The least score of a hit, by default its probability; or precision:P or recall:R"
            " (askalike threshold).",
        ),
    ] = None,
    everything: AllOption = False,
    order: Annotated[
        Order,
        typer.Option(
            "--order", help="probability, or help: a good answer before other hits that are about as likely the same."
        ),
    ] = "probability",
    ranker: Annotated[
        str | None,
        typer.Option(
            "--ranker", help=f"One of {', '.join(RANKER_NAMES)}; default: probability.", autocompletion=_ranker_names
        ),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show what each probability is made of.")] = False,
    batch: Annotated[
        Path | None,
        typer.Option(
            "--batch",
            help="Search for all questions of a file: one title a line in a .txt, or any format of archives.",
        ),
    ] = None,
    run: Annotated[Path | None, typer.Option("--run", help="With --batch: write a TREC run to this file.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Find the earlier questions most similar to a new one.

    They come with their best answers. The number of a hit is the probability that an answer to it answers the question;
    hits below the forum's threshold are shown with --all, and are always part of --json. --batch searches for many
    questions in one pass.
    """
    text = body_text(body)
    has_question = bool(title.strip() or text.strip())
    if batch is None and not has_question:
        raise SettingError("the question is empty", "give a title, or a body with --body")
    if batch is not None and has_question:
        raise SettingError("both a question and --batch were given", "give one of them")
    if run is not None and batch is None:
        raise SettingError("--run goes with --batch alone", "name a file of questions with --batch")
    filters = Filters(
        tuple(tag or ()),
        parse_moment("--before", before),
        frozenset(exclude or ()),
        tuple(not_tag or ()),
        parse_moment("--after", after),
        answered,
        closed,
        tuple(language or ()),
    )
    query = Query(
        title,
        text,
        "markdown",
        k,
        filters,
        ranker,
        minimum=minimum or 0.0,
        order=order,
        language=query_language,
    )
    show = None if as_json else _printer(is_all=everything or minimum is not None)
    if batch is not None:
        _search_many(forum, batch, query, run, show, has_addends=explain)
    else:
        _search(forum, query, show, has_addends=explain)


def similar(
    forum: ForumArgument,
    identifier: Annotated[str, typer.Argument(metavar="ID", help="The question's id.")],
    k: ResultsOption = 10,
    everything: AllOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find the questions most similar to one of the forum.

    Neither it nor what people judged different from it is shown.
    """
    _search(forum, Query("", k=k, own=identifier), None if as_json else _printer(is_all=everything))


def _printer(*, is_all: bool) -> Show:
    from askalike.cli.display import print_result

    return partial(print_result, is_all=is_all)


def _addends(forum: Forum, query: Query, result: SearchResult) -> dict[str, dict[str, float]]:
    """Return what the logit of each question that matched is the sum of, by its id; nothing where scores are none."""
    ids = [(hit.via or hit.question).id for hit in result.hits if hit.likelihood is not None]
    nums = forum.store.nums_by_id(ids)
    with contextlib.suppress(EncoderError):  # the result's notice says so
        by_num = forum.indexes.with_searcher(lambda searcher: searcher.addends(query, list(nums.values())))
        return {identifier: by_num[num] for identifier, num in nums.items() if num in by_num}
    return {}


def _search(forum: Path, query: Query, show: Show | None, *, has_addends: bool = False) -> None:
    """Search for one question, and show the result; None prints JSON."""
    with BarProgress() as progress, Forum.open(forum, progress=progress) as opened:
        if query.own:
            query = Query.stored(opened.question(query.own), query.k)
        warnings = list(_missing_from_indexes(opened, query.ranker))
        result = opened.search(query)
        addends = _addends(opened, query, result) if has_addends else None
        no_match = "" if result.hits else _unsatisfied(opened, query.filters)
    notes = [*([] if result.notice else warnings), *_notes(result)]
    for line in [*notes, f"note: {no_match}"] if show is None and no_match else notes:
        messages.say(line)
    if messages.is_verbose:
        times = ", ".join(f"{stage} {1000 * seconds:.1f} ms" for stage, seconds in result.seconds.items())
        messages.say(times, "debug", seconds={stage: round(spent, 6) for stage, spent in result.seconds.items()})
    if show is None:
        print_json(result.hits)
    elif no_match:
        from askalike.cli.display import print_whole

        print_whole(no_match)
    else:
        show(result, addends)


def _search_many(
    forum: Path, batch: Path, query: Query, run: Path | None, show: Show | None, *, has_addends: bool
) -> None:
    questions = list(questions_of(batch))
    if run is not None and (odd := next((it.id for it in questions if len(it.id.split()) != 1), None)) is not None:
        raise SettingError(f"the id {odd!r} has spaces in it, which a TREC run cannot hold", "use --json instead")
    with BarProgress() as progress, Forum.open(forum, progress=progress) as opened:
        for line in _missing_from_indexes(opened, query.ranker):
            messages.say(line)
        queries = [replace(query, title=it.title, body=it.body, markup=it.markup) for it in questions]
        results = opened.similar_many(queries, progress=progress)
        addends = [
            _addends(opened, query, result) if has_addends else None
            for query, result in zip(queries, results, strict=True)
        ]
    if run is not None:
        from askalike.evaluation.files import write_trec_run

        ranked = {
            question.id: [(hit.question.id, hit.score) for hit in result.hits]
            for question, result in zip(questions, results, strict=True)
        }
        write_trec_run(run, ranked)
        messages.say(f"wrote the hits of {len(ranked):,} questions to {run}")
    if show is None:
        print_json([{"query": it.id, "hits": result.hits} for it, result in zip(questions, results, strict=True)])
    elif run is None:
        from askalike.cli.display import console

        for question, result, parts in zip(questions, results, addends, strict=True):
            console.rule(f"{safe(question.id)}: “{safe(question.title)}”", align="left", style="dim")
            show(result, parts)


def questions_of(path: Path) -> list[Question]:
    """Return the questions of a file: a title a line in a ``.txt``, else whatever can be indexed."""
    if path.suffix == ".txt" and path.is_file():
        try:
            lines = path.read_text(encoding="utf-8-sig").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path} cannot be read: {error}", "expected UTF-8, one title a line") from error
        questions = [Question(str(number), line.strip()) for number, line in enumerate(lines, 1) if line.strip()]
    else:
        from askalike.readers.detection import find_archive
        from askalike.readers.frame import ReadContext

        archive, reader, _ = find_archive(path)
        context = ReadContext(notice=lambda text: messages.note(safe(text)))
        questions = [record for record in reader.read(archive, context) if isinstance(record, Question)]
        if context.rejects.count:
            first = context.rejects.first[0]
            raise InputError(
                f"{context.rejects.count:,} records of {path} cannot be read, the first in line {first.line}:"
                f" {first.reason}",
                "correct them, or leave them out",
            )
    if not questions:
        raise InputError(f"{path} holds no question", "expected one title a line in a .txt, or an archive")
    return list({question.id: question for question in questions}.values())


def _notes(result: SearchResult) -> Iterator[str]:
    if result.notice:
        yield f"note: {safe(result.notice)}"
    for correction in result.corrections:
        yield safe(f"note: {correction.written} was corrected to {correction.meant}")


def _missing_from_indexes(forum: Forum, ranker: str | None) -> Iterator[str]:
    """Yield a warning where questions are not indexed or not encoded yet."""
    behind, waiting = forum.indexes.behind(), forum.indexes.state().waiting
    chosen = RANKERS.get(ranker or SETTINGS.search.ranker)
    if behind:
        yield f"note: indexing is not finished: {behind:,} change{'' if behind == 1 else 's'} to go"
    elif waiting and chosen is not None and chosen.reads_vectors:
        yield f"note: {waiting:,} question{' is' if waiting == 1 else 's are'} not encoded yet"
        yield f"hint: {command('encode', forum.path)}"


def _unsatisfied(forum: Forum, filters: Filters) -> str:
    """Return the sentence that no question satisfies the filters, or "" where one does."""
    filters = replace(filters, exclude_ids=frozenset())
    if filters == Filters() or forum.indexes.count(filters):
        return ""
    wanted = []
    for names, has in ((filters.tags, "has"), (filters.exclude_tags, "has not")):
        if names:
            wanted.append(f"{has} the tag{'s' if len(names) > 1 else ''} {', '.join(map(safe, names))}")
    if filters.languages:
        wanted.append(f"is in {' or '.join(map(safe, filters.languages))}")
    for limit, when in ((filters.before, "before"), (filters.after, "after")):
        if limit:
            wanted.append(f"was asked {when} {limit.isoformat(' ', 'minutes')}")
    for is_so, named in ((filters.is_answered, "answered"), (filters.is_closed, "closed")):
        if is_so is not None:
            wanted.append(f"is {'' if is_so else 'not '}{named}")
    return f"No question {' and '.join(wanted)}."
