"""How results look on a terminal: rich text from untrusted words, tables, files on standard output."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from askalike.cli.messages import print_json, safe
from askalike.errors import SettingError
from askalike.records import Form, write_records
from askalike.text.markup import excerpt, plain_text
from askalike.types import (
    Answer,
    Hit,
    SearchResult,
    likelihood_word,
)

ANSWER_CHARACTERS = 240
MATCHED_WORDS = 8
SMALL_SCORE = 0.1
LEAST_ADDEND = 0.005
Addends = Mapping[str, Mapping[str, float]]

console = Console(highlight=False, soft_wrap=False)


def print_records(
    records: Iterable[Any],
    kind: type,
    form: Form | None,
    columns: Mapping[str, Callable[[Any], str]],
) -> None:
    """Print records as one table: for people, one JSON list, CSV, or Parquet.

    Args:
        columns: what people are shown: heading → a record's cell.
    """
    if form == "jsonl":
        print_json(list(records))
    elif form is not None:
        print_file(records, kind, form)
    else:
        table = Table(box=None, pad_edge=False, header_style="dim")
        for name in columns:
            table.add_column(name)
        for record in records:
            table.add_row(*(Text(safe(cell(record))) for cell in columns.values()))
        print_aligned(table)


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print what JSON would hold, a line for each name."""
    width = max(map(len, facts))
    for name, value in facts.items():
        print_whole(f"{name.replace('_', ' '):<{width}}  {_fact(value)}")


def _fact(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{safe(str(name))} {_fact(part)}" for name, part in value.items()) or "-"
    if isinstance(value, list | tuple):
        return "; ".join(map(_fact, value)) or "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
    return safe(str(value)) if value else "-"


def plain_table(*names: str, right: Collection[str] = ()) -> Table:
    """Return an empty table without lines; its cells stay on one line.

    Args:
        right: names of the columns that are aligned to the right.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for name in names:
        table.add_column(name, justify="right" if name in right else "left", no_wrap=True)
    return table


def print_file(records: Iterable[Any], kind: type, form: Form) -> None:
    """Write records to standard output as the content of a file."""
    if form == "parquet" and sys.stdout.isatty():
        raise SettingError("Parquet is no text for a terminal", "write it to a file: > FILE.parquet")
    sys.stdout.flush()
    write_records(records, kind, form, sys.stdout.buffer)
    sys.stdout.flush()


def print_whole(text: str) -> None:
    """Print a line that must not be broken, since it holds a path or a command to copy."""
    console.print(text, markup=False, soft_wrap=True)


def print_aligned(shown: RenderableType) -> None:
    """Print a table; into a file or pipe, without the spaces that only fill up its lines."""
    if console.is_terminal:
        console.print(shown)
        return
    for line in console.render_lines(shown, pad=False):
        print_whole("".join(segment.text for segment in line).rstrip())


def print_result(result: SearchResult, addends: Addends | None = None, *, is_all: bool) -> None:
    """Print the hits of a search, and say where nothing like the question was asked before.

    Args:
        addends: as ``print_hits`` takes them.
        is_all: print hits below the forum's threshold, too.
    """
    hits = result.hits if is_all else result.likely_hits
    hidden = len(result.hits) - len(hits)
    if result.hits and result.is_new:
        console.print("The question looks new.", end="\n\n" if hits else "\n")
    if hits or not result.is_new or not hidden:
        print_hits(hits, addends)
    if hidden and result.least is not None:
        count, share = f"{hidden} hit{'' if hidden == 1 else 's'}", f"{100 * result.least:.1f} %"
        console.print(f"{count} less likely than {share}, too little to show: --all shows them", style="dim")


def print_hits(hits: Sequence[Hit], addends: Addends | None = None) -> None:
    """Print hits: rank, score, title, id and date, the words that matched, the best answer's first lines.

    Where no word matched, the encoder found it, and that is said.

    Args:
        addends: show the parts of scores too, and of each question, by its id, what its logit is the sum of.
    """
    if not hits:
        console.print("No similar questions found.")
        return
    table = Table.grid(padding=(0, 1, 1, 1))
    table.add_column(justify="right", style="cyan")
    table.add_column(justify="right", style="cyan")
    table.add_column()
    digits = score_digits(max(hit.score for hit in hits))
    for hit in hits:
        title = Text(safe(hit.question.title) or "(no title)", style="bold")
        explained = [] if addends is None else [Text(line, style="cyan") for line in scores(hit, addends)]
        lines = [title, _details(hit), *explained, _answer(hit.answer, hit.answer_count)]
        shown = Text("\n").join(lines)
        table.add_row(str(hit.rank), f"{hit.score:.{digits}f}", shown)
    print_aligned(table)


def likely(probability: float) -> str:
    """Return a likelihood in words and as a number.

    >>> likely(0.93), likely(0.004)
    ('almost certainly the same (93 %)', 'maybe related (below 1 %)')
    """
    share = "below 1 %" if probability < 0.01 else f"{100 * probability:.0f} %"
    return f"{likelihood_word(probability)} ({share})"


def score_digits(best: float) -> int:
    """Return with how many decimals scores are told apart, by the best of them: small ones, as of ranks, need more.

    >>> score_digits(12.3), score_digits(0.31), score_digits(2 / 61)
    (2, 2, 4)
    """
    return 2 if best >= SMALL_SCORE else 4


def _details(hit: Hit) -> Text:
    question = hit.question
    parts = [safe(question.id)]
    if hit.likelihood is not None:
        parts.insert(0, likely(hit.likelihood))
    if question.created is not None:
        parts.append(question.created.date().isoformat())
    if question.tags:
        parts.append(" ".join(f"[{safe(tag)}]" for tag in question.tags))
    if question.url:
        parts.append(safe(question.url))
    if hit.duplicate_of:
        parts.append("duplicate of " + ", ".join(map(safe, hit.duplicate_of)))
    line = Text(" · ".join(parts), style="dim")
    if hit.via is not None:
        line.append(f"\nfound through {safe(hit.via.id)}: {safe(hit.via.title)}")
    answered = [match for match in hit.matched if match.field == "answer"]
    for what, matched in (
        ("matched", [match for match in hit.matched if match not in answered]),
        ("found in an answer", answered),
    ):
        words = list(dict.fromkeys(safe(match.word).lower() for match in matched))
        if words:
            more = f" and {len(words) - MATCHED_WORDS} more" if len(words) > MATCHED_WORDS else ""
            line.append(f"\n{what}: " + ", ".join(words[:MATCHED_WORDS]) + more, style="green")
    if not hit.matched and hit.components.get("cosine", 0.0) > 0:
        line.append("\nmatched by meaning, no shared word", style="magenta")
    return line


def _answer(answer: Answer | None, count: int) -> Text:
    if answer is None:
        return Text("no answer yet", style="dim")
    shown = safe(excerpt(plain_text(answer.body, answer.markup), ANSWER_CHARACTERS)) or "(no text)"
    line = Text("accepted answer: " if answer.is_accepted else "answer: ", style="yellow")
    line.append(shown, style="default")
    if count > 1:
        line.append(f"  (+{count - 1} more)", style="dim")
    return line


def scores(hit: Hit, addends: Addends) -> Iterator[str]:
    """Yield the parts of a score in one line, and in another what the logit of its probability is the sum of."""
    parts = hit.components
    shown = [f"cosine {parts['cosine']:.2f}"] if "cosine" in parts else []
    if "reranker" in parts:
        shown.append(f"reranker {parts['reranker']:.2f}")
    if "bm25" in parts:
        share = f", {parts['bm25_share']:.0%} of the best" if parts.get("bm25_share") else ""
        shown.append(f"bm25 {parts['bm25']:.2f}{share}")
    if "alone" in parts:
        shown.append(f"the likeliest duplicate alone {parts['alone']:.0%}")
    yield " · ".join(shown)
    if logit := addends.get((hit.via or hit.question).id):
        total = sum(logit.values())
        terms = " · ".join(f"{name} {part:+.2f}" for name, part in logit.items() if abs(part) >= LEAST_ADDEND)
        yield f"{1 / (1 + math.exp(-total)):.1%} = σ({total:+.2f}): {terms}"
