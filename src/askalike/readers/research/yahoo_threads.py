"""Yahoo! Answers threads in a table of Python byte literals: subject, content, best answer, up to ten answers.

The table has no ids: a question's id is "t-" and the first 12 hexadecimal digits of the SHA-256 of the thread's texts,
so that it is the same in every file; a row that repeats another, answers and all, is rejected.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from askalike.errors import DamagedInputError
from askalike.readers.files import first_bytes, regular_size, text_lines
from askalike.readers.frame import ReadContext
from askalike.readers.table_rows import csv_rows
from askalike.readers.values import Unreadable, one_line, unescaped
from askalike.readers.values import text as checked
from askalike.types import Answer, Question, Record

_HEADER = ["subject", "content", "bestanswer"]
_SHOWN_CHARS = 40
_LITERAL = re.compile(r"""b'(?:[^'\\\n]|\\[^\n])*'|b"(?:[^"\\\n]|\\[^\n])*\"""")


class YahooThreadsReader:
    """Questions followed by their answers; subject, content and answers are HTML."""

    name = "yahoo-threads"
    title = "Yahoo! Answers threads (CSV of byte literals)"

    def matches(self, path: Path) -> bool:
        """Say whether the header is subject, content, bestanswer, ans0 and the next line a byte literal."""
        head = first_bytes(path).replace(b"\r", b"")
        return head.startswith(b"subject,content,bestanswer,ans0") and re.search(rb"\n+\"?b[\"']", head) is not None

    def size_bytes(self, path: Path) -> int:
        """Return the stored size."""
        return regular_size(path)

    def read(self, path: Path, context: ReadContext) -> Iterator[Record]:
        """Yield the threads in file order.

        Raises:
            DamagedInputError: the file is empty, truncated, not UTF-8, or no such table.
        """
        seen: set[str] = set()
        for line, row in _rows(path, context):
            try:
                texts = _texts(row, context)
                subject, content, best, *others = texts
                title = one_line(unescaped(subject), "subject", context)
            except Unreadable as error:
                context.reject(path.name, line, "", str(error))
                continue
            name = "t-" + hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]
            if name in seen or not title:
                reason = "this thread was met before" if title else "a question needs a subject"
                context.reject(path.name, line, name, reason)
                continue
            seen.add(name)
            context.records_in += 1
            yield Question(name, title, content, "html", url=context.address(""))
            yield from _answers(name, best, [text for text in others if text], context)


def byte_literal(cell: str, limit_chars: int) -> str:
    r"""Return the text of a Python byte literal in UTF-8; "" for ``None`` and an empty cell.

    Only a single literal is evaluated: anything else in the cell, such as an expression, is refused first.

    Raises:
        ValueError: the cell is longer than the limit, no byte literal, or its bytes are not UTF-8.

    >>> byte_literal(r"b'caf\xc3\xa9'", 100), byte_literal("None", 100)
    ('café', '')
    """
    if cell in ("", "None"):
        return ""
    if len(cell) > limit_chars:
        raise ValueError(f"a cell of {len(cell):,} characters, at most {limit_chars:,} are read")
    if _LITERAL.fullmatch(cell) is None:
        raise ValueError(f"{cell[:40]!r} is no byte literal")
    value: bytes = ast.literal_eval(cell)
    return value.decode("utf-8")


def _rows(path: Path, context: ReadContext) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, cells) of every row behind the header; what is no row of cells is rejected."""
    line = 0

    def lines() -> Iterator[str]:
        nonlocal line
        for line, text in text_lines(path, path.name, context):  # noqa: B007 - the enclosing function reads it
            yield text.rstrip("\r")

    table = csv_rows(lines(), path.name, context.options.limits, strict=True)
    header = next(table, None)
    if header is None or list(header.cells[:3]) != _HEADER:
        found = [str(cell)[:_SHOWN_CHARS] for cell in header.cells[:3]] if header else []
        raise DamagedInputError(f"{path.name}, line 1: found {found}, expected {_HEADER}", "check the format")
    for row in table:
        if row.problem:
            context.reject(path.name, line, "", row.problem)
        else:
            yield line, list(map(str, row.cells))


def _texts(row: list[str], context: ReadContext) -> list[str]:
    if len(row) < 4:
        raise Unreadable(f"{len(row)} cells, expected subject, content, best answer and answers")
    try:
        texts = [byte_literal(cell, context.options.limits.field_chars) for cell in row]
    except (ValueError, SyntaxError) as error:
        raise Unreadable(str(error)) from error
    return [checked(text, "cell", context).strip() for text in texts]


def _answers(question_id: str, best: str, texts: list[str], context: ReadContext) -> Iterator[Answer]:
    """Yield the answers in column order; a best answer that is not among them comes first, numbered 0."""
    if best and best not in texts:
        context.records_in += 1
        yield Answer(f"{question_id}-0", question_id, best, "html", is_accepted=True)
    accepted = texts.index(best) if best in texts else -1
    for number, text in enumerate(texts):
        context.records_in += 1
        yield Answer(f"{question_id}-{number + 1}", question_id, text, "html", is_accepted=number == accepted)
