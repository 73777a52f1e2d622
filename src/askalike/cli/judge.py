"""``askalike judge`` and ``askalike threshold``: people's judgements, and which probability keeps a promise by them.

The queue is that of the page's Review: the likeliest pairs that nobody has judged, and every fifth drawn by chance.
What one text has and the other lacks is marked: what the longest blocks of words that both have in one order leave.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from difflib import SequenceMatcher
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

import typer
from msgspec import to_builtins
from rich.table import Table
from rich.text import Text

from askalike.cli.arguments import ForumArgument, JsonOption, command, interruptible, same_again
from askalike.cli.display import console, likely, print_whole
from askalike.cli.messages import BarProgress, print_json, safe
from askalike.errors import SettingError
from askalike.forum import Duplicate, Forum
from askalike.forum.labels import curve_lines
from askalike.search.thresholds import Promise, Threshold
from askalike.text.markup import plain_text
from askalike.types import Question, Verdict

KEYS: Final = {"y": "the same", "n": "different", "s": "skip", "u": "undo", "q": "quit"}
VERDICTS: Final[dict[str, Verdict]] = {"y": "duplicate", "n": "different"}
STOPS: Final = ("q", "\x03", "\x04", "\x1b")
TEXT_CHARACTERS: Final = 1_200
LEAST_SHARED: Final = 0.4
"""Texts that share less of their words have none marked: almost all would be."""

_WORD: Final = re.compile(r"\w+")


def judge(
    forum: ForumArgument,
    identifier: Annotated[
        str, typer.Argument(metavar="ID", help="The question's id; the queue is judged if omitted.", show_default=False)
    ] = "",
    candidate: Annotated[
        str, typer.Argument(metavar="OTHER", help="The id of the question it may repeat.", show_default=False)
    ] = "",
    verdict: Annotated[
        Verdict | None,
        typer.Argument(metavar="VERDICT", help=f"One of {', '.join(get_args(Verdict))}.", show_default=False),
    ] = None,
    by: Annotated[str, typer.Option("--by", help="Who judged.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Store whether two questions are duplicates.

    It is a label to train and calibrate with; a pair that differs is proposed no more.

    With a forum alone, its likeliest pairs and some that chance draws are shown in the terminal one after the other:
    y the same, n different, s skip, u undo, q quit. Each judgement is stored at once.
    """
    if identifier and candidate and verdict is not None:
        with Forum.open(forum) as opened:
            stored = opened.judge(identifier, candidate, verdict, by)
        if as_json:
            print_json(stored)
        else:
            console.print(f"judged {verdict}: {safe(identifier)} and {safe(candidate)}", markup=False)
        return
    if identifier:
        expected = "expected two ids and a verdict, or the forum alone to judge its queue"
        raise SettingError("a pair was not named whole", expected)
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        example = command("judge", forum, "ID", "OTHER", "duplicate")
        raise SettingError("the queue is judged in a terminal, without --json", f"name a pair: {example}")
    with Forum.open(forum) as opened:
        with interruptible(lambda: ("what was compared is kept", same_again())), BarProgress() as progress:
            opened.pairs.compare(progress=progress)
        judged = judge_queue(opened, by, _key)
    again = f"; to go on:\n  {same_again()}" if judged else ""
    console.print(f"{judged} judged{again}", markup=False, soft_wrap=True)


def _key() -> str:
    """Return the next key that is pressed, "q" for Ctrl-C."""
    try:
        return typer.getchar()
    except (KeyboardInterrupt, EOFError):
        return "q"


def judge_queue(forum: Forum, by: str, key: Callable[[], str]) -> int:
    """Show the pairs of the queue one after the other, store what people say, and return how many they judged.

    Args:
        key: waits for a key and returns it.
    """
    waiting = forum.queue.proposals()
    judged: list[Duplicate] = []
    shown = 0
    pair = next(waiting, None)
    while pair is not None or judged:
        if pair is not None:
            shown += 1
            _show(pair, shown)
        offered = [name for name in KEYS if name == "q" or (judged if name == "u" else pair)]
        last = "" if pair else "No pair is left to judge. "
        console.print(last + " · ".join(f"{name} {KEYS[name]}" for name in offered), style="dim", markup=False)
        pressed = key().lower()
        while pressed not in (*offered, *STOPS):
            pressed = key().lower()
        if pressed in STOPS:
            break
        console.print(f"{KEYS[pressed]}\n", style="bold")
        if pressed == "u":
            back = judged.pop()
            forum.judge(back.question.id, back.candidate.id, "withdrawn", by, back.draw)
            waiting, pair = chain([pair] if pair else [], waiting), back
            continue
        assert pair is not None
        if pressed in VERDICTS:
            forum.judge(pair.question.id, pair.candidate.id, VERDICTS[pressed], by, pair.draw)
            judged.append(pair)
        pair = next(waiting, None)
    if not shown:
        console.print("No pair is left to judge.")
    return len(judged)


def _show(pair: Duplicate, number: int) -> None:
    console.rule(f"{number} · {likely(pair.likelihood)}", align="left", style="dim")
    sides = [("asked later", pair.question), ("asked earlier", pair.candidate)]
    texts = [
        [_plain(question.title or "(no title)"), _plain(plain_text(question.body, question.markup))]
        for _, question in sides
    ]
    (title, body), (other_title, other_body) = texts
    marked = zip(differing(title, other_title, 0.0), differing(body, other_body, LEAST_SHARED), strict=True)
    table = Table.grid(padding=(0, 3, 0, 0), expand=True)
    table.add_column(ratio=1)
    table.add_column(ratio=1)
    cells = []
    for (when, question), (shown_title, shown_body) in zip(sides, marked, strict=True):
        shown_title.stylize_before("bold")
        cells.append(Text("\n").join([_about(when, question), shown_title, shown_body]))
    table.add_row(*cells)
    console.print(table)


def _about(when: str, question: Question) -> Text:
    date = "" if question.created is None else f" {question.created.date().isoformat()}"
    return Text(f"{when}{date} · {safe(question.id)}", style="dim")


def _plain(text: str) -> str:
    shown = safe(text)
    return shown if len(shown) <= TEXT_CHARACTERS else f"{shown[:TEXT_CHARACTERS]}…"


def differing(first: str, second: str, least: float) -> tuple[Text, Text]:
    """Return two texts, the words of each that the other lacks there marked.

    Args:
        least: the share of the shorter text's words that both must have for any to be marked.

    >>> [text.markup for text in differing("wifi drops at night", "wifi drops at noon", 0.4)]
    ['wifi drops at [black on yellow]night[/black on yellow]', 'wifi drops at [black on yellow]noon[/black on yellow]']
    """
    places = [list(_WORD.finditer(text)) for text in (first, second)]
    words = [[span[0].casefold() for span in spans] for spans in places]
    matcher = SequenceMatcher(a=words[0], b=words[1], autojunk=False)
    shown = (Text(first), Text(second))
    shared = sum(block.size for block in matcher.get_matching_blocks())
    if shared < least * min(map(len, words)):
        return shown
    for text, spans, runs in zip(shown, places, zip(*_changes(matcher), strict=True), strict=False):
        for start, end in runs:
            if end > start:
                text.stylize("black on yellow", spans[start].start(), spans[end - 1].end())
    return shown


def _changes(matcher: SequenceMatcher[str]) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield where both texts differ: the words of the first and of the second, each from a place to another."""
    for kind, first, first_end, second, second_end in matcher.get_opcodes():
        if kind != "equal":
            yield (first, first_end), (second, second_end)


def threshold(
    forum: ForumArgument,
    precision: Annotated[
        float | None, typer.Option("--precision", help="This share of what is shown is to be a duplicate.")
    ] = None,
    recall: Annotated[
        float | None, typer.Option("--recall", help="This share of the duplicates is to be shown.")
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            help="A table of labelled pairs: question1, question2 (ids, titles or texts) and is_duplicate (1 or 0)."
            " They are stored, and probabilities follow. Without a promise: --precision 0.9.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Find the least probability that keeps a promise.

    The promise is that a share of what is shown is a duplicate, or that a share of the duplicates is shown.

    It rests on judged pairs that chance drew from the whole range of probability, as every fifth of askalike judge and
    of the page's Review is, and is so for pairs of a question and the five others that a search for it finds best. Or
    it rests on labelled pairs, and is so for pairs like them. Where both are too few, the answer is an estimate by how
    right the probabilities are in other forums, and says so.
    """
    if labels is not None and precision is None and recall is None:
        precision = 0.9
    promised = {"--precision": precision, "--recall": recall}
    options = {name: share for name, share in promised.items() if share is not None}
    if len(options) != 1:
        raise SettingError(
            f"{' and '.join(options) or 'no promise'} was given", "expected --precision, --recall or --labels"
        )
    for option, share in options.items():
        if not 0 < share < 1:
            raise SettingError(f"{option} is {share:g}", "expected a share above 0 and below 1, such as 0.9")
    if labels is not None:
        _by_labels(forum, labels, "recall" if precision is None else "precision", next(iter(options.values())), as_json)
        return
    with Forum.open(forum) as opened:
        least = opened.thresholds.find(precision=precision, recall=recall)
    if as_json:
        print_json(_object(least))
    else:
        for line in _lines(least, str(forum)):
            print_whole(line)


def _by_labels(forum: Path, labels: Path, kind: Literal["precision", "recall"], share: float, as_json: bool) -> None:
    with Forum.open(forum) as opened:
        report = opened.thresholds.label(labels)
    least = report.threshold(Promise(kind, share))
    if as_json:
        about_labels = {field.name: to_builtins(getattr(report, field.name)) for field in fields(report) if field.repr}
        print_json({**_object(least), **about_labels})
        return
    print_whole(
        f"{report.pairs:,} labelled pairs, {report.same:,} of them the same; {report.in_forum:,} are pairs of the"
        f" forum's questions, {report.stored:,} judgements are new"
    )
    if report.left_out:
        first = report.left_out[0]
        print_whole(f"{len(report.left_out):,} rows were left out, the first is row {first.row}: {safe(first.reason)}")
    for line in curve_lines(report):
        print_whole(line)
    for line in _lines(least, str(forum)):
        print_whole(line)


def _object(least: Threshold) -> dict[str, Any]:
    share = least.share
    return {
        "promise": least.promise.kind,
        "share": least.promise.share,
        "minimum": least.minimum,
        least.promise.kind: share.value,
        "interval90": [share.low, share.high],
        "judgements": least.judgements,
        "is_proved": least.judgements > 0,
        "about": least.about,
    }


def _lines(least: Threshold, forum: str) -> Iterator[str]:
    kind, share = least.promise.kind, least.share
    if least.minimum is None:
        yield f"no threshold: a {kind} of {least.promise.share:g} is promised by no probability"
    else:
        yield f"minimum    {least.minimum:.4f}"
    yield f"{kind:<10} {share.value:.3f} (90 % interval {share.low:.3f} to {share.high:.3f})"
    yield least.about
    if least.minimum is not None:
        promise = f"{kind}:{least.promise.share:.6f}".rstrip("0")
        yield f'  {command("search", forum)} "your question" --minimum {promise}'
