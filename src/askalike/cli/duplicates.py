"""``askalike duplicates``: the pairs or groups of a forum's questions that may ask the same."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Annotated, Final

import typer
from msgspec import to_builtins

from askalike.cli.arguments import (
    CsvOption,
    ForumArgument,
    JsonOption,
    ParquetOption,
    form_of,
    interruptible,
    same_again,
)
from askalike.cli.display import console, print_file, print_records, print_whole
from askalike.cli.messages import BarProgress, messages, print_json, safe
from askalike.errors import SettingError
from askalike.forum import Duplicate, Forum
from askalike.forum.duplicates import MemberRow, PairRow, folded, member_rows, pair_rows
from askalike.forum.groups import DEFAULT_MINIMUM, LEAST
from askalike.records import Form
from askalike.types import Group, Question, parse_moment

COLUMNS: Final[Mapping[str, Callable[[Sequence[Duplicate]], str]]] = {
    "likely": lambda pairs: _likely(pairs),
    "question": lambda pairs: _named(_questions(pairs)[1:]),
    "may repeat": lambda pairs: _named(_questions(pairs)[:1]),
}


LIKELY: Final = 0.5
LEAST_SHOWN: Final = 0.2
SCREEN: Final = 10
"""So many pairs are listed in any case, from ``LEAST_SHOWN`` on, and so many rows where people set no limit."""
_HOW_TO_SEE_ALL: Final = "--limit 0 lists all, --csv as a table; people judge them on the page of askalike serve"


def _first_screen(pairs: Iterable[Duplicate]) -> Iterator[Duplicate]:
    """Yield the likely pairs, and others until there are ``SCREEN``."""
    for place, pair in enumerate(pairs):
        if place >= SCREEN and not pair.is_exact and pair.likelihood < LIKELY:
            return
        yield pair


def _likely(pairs: Sequence[Duplicate]) -> str:
    """Return how likely the likeliest pair is, by which rows are ordered, and the least likely."""
    shown = dict.fromkeys("exact" if pair.is_exact else f"{pair.likelihood:.0%}" for pair in pairs)
    return " to ".join(list(shown)[:: max(1, len(shown) - 1)])


def _named(questions: Sequence[Question]) -> str:
    """Return the ids of questions with their titles, each title once."""
    ids: dict[str, list[str]] = {}
    for question in questions:
        ids.setdefault(question.title, []).append(question.id)
    return "; ".join(f"{', '.join(names)}: {title}" for title, names in ids.items())


def _questions(pairs: Sequence[Duplicate]) -> list[Question]:
    """Return the questions of pairs, that which repeats none of the others first."""
    repeats = {pair.question.id: pair.question for pair in pairs}
    originals = {pair.candidate.id: pair.candidate for pair in pairs}
    first = next((question for name, question in originals.items() if name not in repeats), pairs[0].candidate)
    return [first, *(question for name, question in {**repeats, **originals}.items() if name != first.id)]


def duplicates(
    forum: ForumArgument,
    minimum: Annotated[
        str | None,
        typer.Option(
            "--min",
            "--minimum",
            help="The least probability of being duplicates; or precision:P or recall:R. Default: 0.5; with"
            " --linked 0; with --groups 0.85, of the least likely pair. Where fewer than 10 pairs reach 0.5, the table"
            " for the terminal also lists the best of the others, down to 0.2.",
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Only pairs of which one was asked on this date or later.")
    ] = None,
    tag: Annotated[
        str, typer.Option("--tag", help="Only pairs of which a question has this tag; case does not matter.")
    ] = "",
    exact: Annotated[bool, typer.Option("--exact", help="Only questions with the same text.")] = False,
    groups: Annotated[
        bool, typer.Option("--groups", help="Groups in which each question asks the same as every other.")
    ] = False,
    linked: Annotated[
        bool, typer.Option("--linked", help="Pairs that duplicate links join already, in place of the others.")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            help="Print at most so many pairs or groups; 0: all. Default: all with --json, --csv and --parquet; in the"
            " terminal the first 10 rows.",
            min=0,
        ),
    ] = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
    as_parquet: ParquetOption = False,
) -> None:
    """List pairs of the forum's questions that may be duplicates.

    The best come first; pairs that are linked (--linked) or were judged are left out. In the terminal, questions of
    which each may repeat every other come as one row. Every question is compared with all others once, and again after
    it has changed: what was compared is kept, so that Ctrl-C loses nothing.

    With --groups, links and judgements count too; the largest groups come first, and of each group the question
    to answer the others by.
    """
    form = form_of(as_json, as_csv, as_parquet)
    start = parse_moment("--since", since)
    chosen = [
        option
        for option, is_given in (("--since", since), ("--exact", exact), ("--tag", tag), ("--linked", linked))
        if is_given
    ]
    if groups and chosen:
        raise SettingError(f"{chosen[0]} does not go with --groups", "leave one of them out")
    if linked and len(chosen) > 1:
        raise SettingError(f"{chosen[0]} does not go with --linked", "leave one of them out")
    with (
        interruptible(lambda: ("what was compared is kept", same_again())),
        BarProgress() as progress,
        Forum.open(forum, progress=progress) as opened,
    ):
        if groups:
            opened.pairs.compare(progress=progress)
            every = opened.groups.find(minimum or DEFAULT_MINIMUM)
            listed = every[: SCREEN if limit is None and form is None else limit or None]
            questions = opened.store.questions_by_id([member for group in listed for member in group.members])
            members = list(member_rows(opened.store, listed)) if form in ("csv", "parquet") else []
        else:
            is_screen = form is None and minimum is None and not (linked or exact)
            least = minimum or (0.0 if linked else LEAST_SHOWN if is_screen else LIKELY)
            pairs = (
                opened.pairs.linked_duplicates(least, progress=progress)
                if linked
                else opened.pairs.duplicates(least, since=start, is_exact=exact, tag=tag, progress=progress)
            )
            if is_screen:
                pairs = _first_screen(pairs)
            shown = list(islice(pairs, min(limit or 0, sys.maxsize) or None))
            links, judged = opened.store.counts().duplicates, len(opened.store.judgements())
    if not groups:
        _print_pairs(shown, form, limit)
        if (links or judged) and not linked:
            messages.note(f"left out: {_counted(links, judged)}; --linked lists linked pairs, --groups counts all")
    elif form is None:
        _show(listed, questions)
        _note_cut(len(listed), len(every), "groups", limit)
    elif form == "jsonl":
        titles = {identifier: question.title for identifier, question in questions.items()}
        print_json([{**to_builtins(group), "titles": [titles.get(it, "") for it in group.members]} for group in listed])
    else:
        print_file(members, MemberRow, form)
    if minimum is None and not (linked or exact):
        messages.note(f"--min {LEAST if groups else LEAST_SHOWN:g} lists less likely pairs too")


def _print_pairs(pairs: Sequence[Duplicate], form: Form | None, limit: int | None) -> None:
    if form is not None:
        print_records(pair_rows(pairs), PairRow, form, {})
        return
    rows = folded(pairs)
    cut = rows[: SCREEN if limit is None else None]
    print_records(cut, list, None, COLUMNS)
    _note_cut(len(cut), len(rows), f"rows, of {len(pairs):,} pairs", limit)


def _note_cut(shown: int, total: int, what: str, limit: int | None) -> None:
    """Say how many there are, where people set no limit and do not see all."""
    if limit is None and shown < total:
        messages.note(f"the first {shown} of {total:,} {what}; {_HOW_TO_SEE_ALL}")


def _counted(links: int, judged: int) -> str:
    counts = (f"{links:,} duplicate {'link' if links == 1 else 'links'}", f"{judged:,} judged")
    return " and ".join(text for text, count in zip(counts, (links, judged), strict=True) if count)


def _show(groups: Sequence[Group], questions: Mapping[str, Question]) -> None:
    for group in groups:
        first, *others = (f"{safe(it)}: {safe(questions[it].title if it in questions else '')}" for it in group.members)
        weakest = group.weakest
        least = f", the least likely pair {safe(weakest.first)} and {safe(weakest.second)}" if weakest else ""
        share = f" ({100 * weakest.probability:.0f} %)" if weakest else ""
        print_whole(first)
        console.print(f"  {len(group.members)} times, {group.kind}{least}{share}", style="dim", markup=False)
        for member in others:
            print_whole(f"  {member}")
    if not groups:
        print_whole("No questions ask the same.")
