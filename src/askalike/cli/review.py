"""``askalike review``: moderation from the command line: the queue, who has what, notes, decisions, undo, the log."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
import typer

from askalike.cli.arguments import ForumArgument, JsonOption, command
from askalike.cli.display import BarProgress, print_json, print_records, print_whole, safe
from askalike.errors import InputError, SettingError
from askalike.forum import Duplicate, Forum
from askalike.forum.queue import LONGEST
from askalike.types import Assignment, Decided, Draw, Feedback, LogEntry

Action = Literal["queue", "take", "give-back", "taken", "note", "decide", "undo", "log"]
MOST_PAIRS: Final = 500
"""That are decided on in one step."""
MOST_BYTES: Final = 16 << 20
MOST_SHOWN: Final = 1_000_000
LONGEST_MINUTES: Final = LONGEST // timedelta(minutes=1)

_Pair = tuple[str, str]


class Row(msgspec.Struct, frozen=True):
    """A pair of the queue; ``id`` is the later question, ``original_id`` the earlier one."""

    likelihood: float
    id: str
    original_id: str
    title: str
    original_title: str
    taken_by: str
    taken_until: datetime | None
    notes: int


QUEUE: Final[Mapping[str, Callable[[Row], str]]] = {
    "likely": lambda row: f"{row.likelihood:.0%}",
    "question": lambda row: f"{row.id}: {row.title}",
    "may repeat": lambda row: f"{row.original_id}: {row.original_title}",
    "taken": lambda row: row.taken_by,
    "notes": lambda row: str(row.notes or ""),
}
TAKEN: Final[Mapping[str, Callable[[Assignment], str]]] = {
    "who": lambda one: one.by,
    "question": lambda one: one.question_id,
    "may repeat": lambda one: one.candidate_id,
    "until": lambda one: "given back" if one.until is None else _moment(one.until),
}
LOG: Final[Mapping[str, Callable[[LogEntry], str]]] = {
    "entry": lambda one: str(one.number),
    "when": lambda one: _moment(one.at),
    "who": lambda one: one.by,
    "what": lambda one: f"undid {one.undoes}" if one.kind == "undone" else one.kind + " (undone)" * one.undone,
    "question": lambda one: one.question_id,
    "and": lambda one: one.candidate_id,
    "bulk": lambda one: one.bulk,
    "note": lambda one: one.text,
}


def review(
    action: Annotated[
        Action,
        typer.Argument(metavar="ACTION", help="queue, take, give-back, taken, note, decide, undo or log."),
    ],
    forum: ForumArgument,
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID OTHER...", help="Pairs: a question, and the one it may repeat.", show_default=False),
    ] = None,
    by: Annotated[str, typer.Option("--by", help="Who does it; queue: leave out what others have taken.")] = "",
    tag: Annotated[str, typer.Option("--tag", help="Of the queue: pairs of which a question has this tag.")] = "",
    precision: Annotated[
        float | None, typer.Option("--precision", help="Of the queue: pairs of which this share is to be the same.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", help="So many pairs, or entries of the log.", min=1, max=MOST_SHOWN)
    ] = 20,
    pairs: Annotated[
        Path | None, typer.Option("--pairs", help="A CSV file with id and original_id; - reads standard input.")
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option("--minutes", help="take: for so long; else until given back.", min=0, max=LONGEST_MINUTES),
    ] = None,
    anyones: Annotated[bool, typer.Option("--anyones", help="give-back: whoever has taken them.")] = False,
    text: Annotated[str, typer.Option("--text", help="note: what is noted.")] = "",
    verdict: Annotated[
        Literal["duplicate", "different"] | None, typer.Option("--verdict", help="decide: duplicate or different.")
    ] = None,
    link: Annotated[bool, typer.Option("--link/--no-link", help="decide: link duplicates to their originals.")] = True,
    preview: Annotated[bool, typer.Option("--preview", help="decide: store nothing, show what would be.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="decide: what the queue holds, without being named.")] = False,
    entry: Annotated[
        list[int] | None, typer.Option("--entry", help="undo: this entry of the log; repeatable; default: the last.")
    ] = None,
    bulk: Annotated[str, typer.Option("--bulk", help="undo, log: what was decided together.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Moderate: queue, take, note, decide, undo, log.

    Without pairs, take and decide take the first of the queue, which --tag and --precision narrow; decide then shows
    them and stores nothing without --yes. Decisions that are given together are stored all or none. A duplicate is
    linked to its original unless --no-link is given; undoing a decision takes its link back, if nobody else made it.
    """
    named = [*_named(ids or ()), *(_read(pairs) if pairs else ())]
    form: Literal["jsonl"] | None = "jsonl" if as_json else None
    with Forum.open(forum) as opened:
        moderation = opened.moderation
        if action == "queue":
            print_records(list(islice(_queue(opened, tag, precision, by or None), limit)), Row, form, QUEUE)
        elif action == "taken":
            held = [one for one in moderation.assignments() if by in ("", one.by)]
            print_records(held, Assignment, form, TAKEN)
        elif action == "take":
            wanted = named or [_ends(one) for one in islice(_queue(opened, tag, precision, by), limit)]
            lasting = None if minutes is None else timedelta(minutes=minutes)
            print_records(moderation.take(wanted, by, lasting) if wanted else [], Assignment, form, TAKEN)
        elif action == "give-back":
            everything = [(one.question_id, one.candidate_id) for one in moderation.assignments() if one.by == by]
            freed = moderation.give_back(named or everything, None if anyones else by)
            _tell({"given_back": freed}, f"{freed} pairs are free again", as_json)
        elif action == "note":
            question, candidate = _one(named)[0]
            noted = moderation.note(question, candidate, text, by)
            _tell(noted, f"noted, entry {noted.number}", as_json)
        elif action == "decide":
            if verdict is None:
                raise SettingError("no verdict was given", "say --verdict duplicate or --verdict different")
            given = [Feedback(question, candidate, verdict, by) for question, candidate in named]
            if not named:
                waiting = islice(_proposed(opened, tag, precision, by), limit)
                ends = ((one.question.id, one.candidate.id, one.draw or Draw()) for one in waiting)
                given = [Feedback(question, candidate, verdict, by, draw=draw) for question, candidate, draw in ends]
            _decide(opened, given, has_links=link, is_preview=preview or not (named or yes), as_json=as_json)
        elif action == "undo":
            numbers = [] if bulk else entry or [moderation.last(by).number]
            undone = moderation.undo(numbers, bulk=bulk, by=by)
            print_records(undone, LogEntry, form, LOG, unbroken=["what"])
            _warn_of_written(opened, undone, as_json)
        else:
            asked = _one(named)[0] if named else None
            print_records(moderation.log(limit, pair=asked, bulk=bulk), LogEntry, form, LOG, unbroken=["what"])


def _decide(opened: Forum, given: Sequence[Feedback], *, has_links: bool, is_preview: bool, as_json: bool) -> None:
    if not given:
        raise InputError("the queue has no such pair", "ask for less with --precision, or name pairs")
    if len(given) > MOST_PAIRS:
        raise SettingError(f"{len(given):,} pairs were given", f"decide on {MOST_PAIRS} at a time")
    done = opened.moderation.decide(given, has_links=has_links, is_preview=is_preview)
    _tell_decided(done, opened, is_preview, as_json)
    if done.refused:
        raise typer.Exit(1)


def _proposed(opened: Forum, tag: str, precision: float | None, by: str | None) -> Iterator[Duplicate]:
    """Yield the pairs of the queue; of a promised precision those alone, without what chance draws between them."""
    with BarProgress() as progress:
        opened.compare(progress=progress)
    if precision is not None and not 0 < precision < 1:
        raise SettingError(f"--precision is {precision:g}", "expected a share above 0 and below 1, such as 0.9")
    least = 0.5 if precision is None else opened.least_score(f"precision:{precision:g}")
    for one in opened.proposals(least, tag=tag, by=by):
        if precision is None or one.score >= least:
            yield one


def _queue(opened: Forum, tag: str, precision: float | None, by: str | None) -> Iterator[Row]:
    taken, log = opened.moderation.taken(), opened.moderation.log
    for one in _proposed(opened, tag, precision, by):
        ends = (one.question.id, one.candidate.id)
        held = taken.get(frozenset(ends))
        notes = sum(entry.kind == "note" for entry in log(1000, pair=ends))
        named = (one.question.title, one.candidate.title)
        yield Row(one.likelihood, *ends, *named, held.by if held else "", held.until if held else None, notes)


def _ends(row: Row) -> _Pair:
    return row.id, row.original_id


def _named(ids: Sequence[str]) -> Iterator[_Pair]:
    if len(ids) % 2:
        raise SettingError(f"{len(ids)} ids were given", "expected pairs: a question, and the one it may repeat")
    yield from zip(ids[::2], ids[1::2], strict=True)


def _read(path: Path) -> Iterator[_Pair]:
    """Yield the pairs of a CSV file, such as ``askalike duplicates --csv`` writes it."""
    try:
        if str(path) == "-":
            content = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with path.open("rb") as file:
                content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise InputError(f"{path} has more than {MOST_BYTES:,} bytes", "decide on fewer pairs at a time")
        rows = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        for row in rows:
            pair = (row.get("id") or "", row.get("original_id") or "")
            if not all(pair):
                raise InputError(f"{path}, line {rows.line_num}, names no pair", "expected columns id and original_id")
            yield pair
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read: {error}", "expected CSV in UTF-8 with id and original_id") from error


def _one(named: Sequence[_Pair]) -> Sequence[_Pair]:
    if len(named) != 1:
        raise SettingError(f"{len(named)} pairs were named", "name one: ID OTHER")
    return named


def _moment(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d %H:%M}"


def _tell(value: Any, sentence: str, as_json: bool) -> None:
    if as_json:
        print_json(value)
    else:
        print_whole(sentence)


def _tell_decided(done: Decided, opened: Forum, is_preview: bool, as_json: bool) -> None:
    if as_json:
        print_json(done)
        return
    held = opened.questions_by_id([one for entry in done.entries for one in (entry.question_id, entry.candidate_id)])
    for one in done.entries:
        titles = (held[name].title if name in held else "" for name in (one.question_id, one.candidate_id))
        named = [f"{name}: {title}" for name, title in zip((one.question_id, one.candidate_id), titles, strict=True)]
        print_whole(f"{one.kind:<10}{safe(' | '.join(named))}{'  (linked)' if one.made_link else ''}")
    for refusal in done.refused:
        print_whole(f"refused   {safe(f'{refusal.question_id} | {refusal.candidate_id}: {refusal.error}')}")
    count = f"{len(done.entries)} decision{'s' * (len(done.entries) != 1)}"
    if is_preview:
        more = f", {len(done.refused)} refused" if done.refused else ""
        print_whole(f"{count}{more}; nothing was stored: name the pairs, or say --yes, without --preview")
        return
    bulk = next((one.bulk for one in done.entries if one.bulk), "")
    option = ("--bulk", bulk) if bulk else ("--entry", done.entries[0].number)
    print_whole(f"{count} stored; to undo:\n  {command('review', 'undo', opened.path, *option)}")


def _warn_of_written(opened: Forum, undone: Sequence[LogEntry], as_json: bool) -> None:
    pairs = {(one.question_id, one.candidate_id) for one in undone}
    done = [one for one in opened.moderation.outbox() if (one.question_id, one.candidate_id) in pairs]
    written = [one for one in done if one.state == "done"]
    if written and not as_json:
        print_whole(f"{len(written)} writes to {safe(written[0].target)} stay there: change them by hand")
