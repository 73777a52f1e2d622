"""How results look on a terminal: rich text from untrusted words, or JSON."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from askalike.text.markup import excerpt, plain_text
from askalike.types import Answer, Hit

ANSWER_CHARACTERS = 240
MATCHED_WORDS = 8
SMALL_SCORE = 0.1

_ODD_BYTE = re.compile("[\udc80-\udcff]")  # as Python reads a byte of a path that is no UTF-8
_UNSEEN = {"Cc", "Cf", "Cs"}

console = Console(highlight=False, soft_wrap=False)
errors = Console(stderr=True, highlight=False)


def safe(text: str) -> str:
    """Return text that cannot move the cursor, set colours or turn the writing direction: one line, no controls.

    Bytes of a path that are no UTF-8 are written out, so that it can be told from others.

    >>> safe("red \\x1b[31m alert\\nnext"), safe("caf\\udce9.csv")
    ('red [31m alert next', 'caf\\\\xe9.csv')
    """
    spaced = _ODD_BYTE.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", " ".join(text.split()))
    if spaced.isascii() and spaced.isprintable():
        return spaced
    return "".join(letter for letter in spaced if unicodedata.category(letter) not in _UNSEEN or letter == "\u200d")


def print_json(value: Any) -> None:
    """Print one JSON value, readable and in the order given; what the output cannot hold, JSON writes as an escape."""
    shown = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    try:
        shown.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        shown = json.dumps(value, indent=2, allow_nan=False) + "\n"
    sys.stdout.write(shown)
    sys.stdout.flush()  # a full disk is told while there is somebody to tell it


def print_whole(text: str, to: Console = console) -> None:
    """Print a line that must not be broken, since it holds a path or a command to copy."""
    to.print(text, markup=False, soft_wrap=True)


def print_aligned(shown: RenderableType, to: Console = console) -> None:
    """Print a table; into a file or pipe, without the spaces that only fill up its lines."""
    if to.is_terminal:
        to.print(shown)
        return
    for line in to.render_lines(shown, pad=False):
        to.print("".join(segment.text for segment in line).rstrip(), markup=False, soft_wrap=True)


def print_hits(hits: list[Hit], to: Console = console, *, explained: Sequence[Text] = ()) -> None:
    """Print hits: rank, score, title, id and date, the words that matched, the best answer's first lines.

    Where no word matched, the encoder found it, and that is said.

    Args:
        explained: what is to be added to each hit, or nothing.
    """
    if not hits:
        to.print(
            "No earlier question that may be shown shares a informative word with this one, or is near to its meaning."
        )
        return
    table = Table.grid(padding=(0, 1, 1, 1))
    table.add_column(justify="right", style="cyan")
    table.add_column(justify="right", style="cyan")
    table.add_column()
    digits = score_digits(max(hit.score for hit in hits))
    for number, hit in enumerate(hits):
        title = Text(safe(hit.question.title) or "(no title)", style="bold")
        lines = [title, _details(hit), *explained[number : number + 1], _answer(hit.answer, hit.answer_count)]
        shown = Text("\n").join(lines)
        table.add_row(str(hit.rank), f"{hit.score:.{digits}f}", shown)
    print_aligned(table, to)


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
        parts.insert(0, f"{hit.likelihood:.0%} likely the same")
    if question.created is not None:
        parts.append(question.created.date().isoformat())
    if question.tags:
        parts.append(" ".join(f"[{safe(tag)}]" for tag in question.tags))
    if question.url:
        parts.append(safe(question.url))
    if hit.duplicate_of:
        parts.append("duplicate of " + ", ".join(safe(one) for one in hit.duplicate_of))
    line = Text(" · ".join(parts), style="dim")
    words = list(dict.fromkeys(safe(match.word).lower() for match in hit.matched))
    if words:
        more = f" and {len(words) - MATCHED_WORDS} more" if len(words) > MATCHED_WORDS else ""
        line.append("\nmatched: " + ", ".join(words[:MATCHED_WORDS]) + more, style="green")
    elif hit.components.get("cosine", 0.0) > 0:
        line.append("\nmatched: no word, but the meaning", style="magenta")
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
