"""Yahoo! Answers: Webscope L6, the questions of the LiveQA track, and threads in a table of Python byte literals.

The stream of L6 is cut at the ends of ``<vespaadd>`` and each question is parsed on its own, so one that is not well
formed is rejected with its line and the other millions are read. Subject, content and answers are HTML in XML.

Source: the data set's own description, "ydata-yanswers-all-questions-v1_0", which names the elements.

The table of threads has no ids: a question's id is "t-" and the first 12 hexadecimal digits of the SHA-256 of the
thread's texts, so that it is the same in every file; a row that repeats another, answers and all, is rejected.
"""

from __future__ import annotations

import ast
import hashlib
import io
import re
from collections.abc import Iterator
from itertools import chain
from operator import itemgetter
from pathlib import Path

from askalike.errors import DamagedInputError, FormatError, UnsafeInputError
from askalike.readers.files import (
    first_bytes,
    folder_members,
    read_blocks,
    text_lines,
)
from askalike.readers.frame import ReadContext, Reader
from askalike.readers.table import csv_rows
from askalike.readers.values import Unreadable, identifier, one_line, read_each, read_question
from askalike.readers.values import text as checked
from askalike.readers.xml import read_xml
from askalike.text.markup import unescaped
from askalike.types import Answer, Question, Record

_OPEN, _CLOSE = b"<vespaadd>", b"</vespaadd>"
_ROOT, _ROOT_END = b"<ystfeed", b"</ystfeed>"
_PART = re.compile(r"\.part(\d+)(?=\.gz$|\.bz2$|$)")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


class YahooReader(Reader):
    """Questions and answers of the L6 archive.

    The tags are the main, the sub- and the last category, each once. ``nbestanswers`` holds the best answer too: it
    is yielded once.
    """

    name = "yahoo"

    def matches(self, path: Path) -> bool:
        """Say whether the first bytes of the (first) file hold a ``<vespaadd>``."""
        return any(_OPEN in first_bytes(file) for file in self.files(path)[:1])

    def files(self, path: Path) -> list[Path]:
        """Return the file, or all parts of it in order when its folder or one part is given."""
        if path.is_file():
            part = _PART.search(path.name)
            return _parts(path.parent, path.name[: part.start()]) if part else [path]
        if not path.is_dir():
            return []
        first = next((file for file in sorted(path.iterdir()) if _PART.search(file.name)), None)
        if first is not None:
            return self.files(first)
        return [*folder_members(path, ".xml"), *sorted(path.glob("*.xml.bz2"))][:1]

    def read(self, path: Path, context: ReadContext) -> Iterator[Record]:
        """Yield every question followed by its answers."""
        files = self.files(path)
        if not files:
            raise FormatError(f"{path.name} holds no Yahoo! Answers XML", "give the file, or the folder of its parts")
        _check_parts(files)
        name = _PART.sub("", files[0].name)
        blocks = chain.from_iterable(read_blocks(file, file.name, context) for file in files)
        for line, element in _elements(blocks, name, context.options.limits.xml_token_bytes):
            yield from _records(element, name, line, context)


def _parts(folder: Path, stem: str) -> list[Path]:
    numbered = {
        int(part[1]): file
        for file in folder.iterdir()
        if (part := _PART.search(file.name)) and file.name[: part.start()] == stem
    }
    return [numbered[number] for number in sorted(numbered)]


def _check_parts(files: list[Path]) -> None:
    numbers = [int(part[1]) for file in files if (part := _PART.search(file.name))]
    if numbers != list(range(1, len(numbers) + 1)):
        names = ", ".join(file.name for file in files)
        raise FormatError(f"there are {names}, expected parts from 1 on without a gap", "put all parts in one folder")


def _elements(blocks: Iterator[bytes], name: str, limit: int) -> Iterator[tuple[int, bytes]]:
    """Yield (line, bytes) of every ``<vespaadd>`` element, and of what is no element, which then fails to parse."""
    unread = b""
    while _OPEN not in unread and len(unread) <= limit and (block := next(blocks, b"")):
        unread += block
    prologue, _, rest = unread.partition(_OPEN)
    _check_prologue(prologue, name, is_whole=prologue == unread)
    declaration = b"".join(re.findall(rb"<\?xml[^>]*\?>", prologue)[:1])
    line, unread, block = 1 + prologue.count(b"\n"), _OPEN + rest, b"-"
    while block:
        while (end := unread.find(_CLOSE)) >= 0:
            stop = end + len(_CLOSE)
            for start, piece in _pieces(unread[:stop]):
                yield line + unread.count(b"\n", 0, start), declaration + piece
            line += unread.count(b"\n", 0, stop)
            unread = unread[stop:]
        if len(unread) > limit:
            raise UnsafeInputError(
                f"{name}, line {line}: more than {limit:,} bytes without the end of a question",
                "the file is damaged, or not Yahoo! Answers XML",
            )
        block = next(blocks, b"")
        unread += block
    rest = unread.lstrip()
    if rest.rstrip() != (_ROOT_END if _ROOT in prologue else b""):
        line += unread.count(b"\n", 0, len(unread) - len(rest))
        raise DamagedInputError(
            f"{name}, line {line}: the file ends too early, or its root is not closed",
            "fetch it again; a part has to lie beside the other parts",
        )


def _check_prologue(prologue: bytes, name: str, is_whole: bool) -> None:
    if not prologue and is_whole:
        raise DamagedInputError(f"{name} is empty", "fetch the file again from where it came")
    if re.search(rb"<!(?!--)", prologue):
        raise UnsafeInputError(f"{name}: a document type or entity is declared; this is never read", "remove that part")
    if is_whole:
        raise FormatError(f"{name} holds no <vespaadd> element", "give the L6 archive as it was handed out")


def _pieces(chunk: bytes) -> Iterator[tuple[int, bytes]]:
    """Cut at every ``<vespaadd>``, so that a question without an end takes none of its neighbours along."""
    starts = [match.start() for match in re.finditer(_OPEN, chunk)]
    if chunk[: starts[0] if starts else None].strip():
        starts.insert(0, 0)
    for start, stop in zip(starts, [*starts[1:], len(chunk)], strict=True):
        yield start, chunk[start:stop]


def _records(element: bytes, name: str, line: int, context: ReadContext) -> Iterator[Record]:
    try:
        fields, answers = _parse(element, context)
    except DamagedInputError as error:
        context.reject(name, line, "", f"this question is not well-formed XML: {error.message}")
        return
    try:
        question = _question(fields, context)
    except Unreadable as error:
        context.reject(name, line, fields.get("uri", ""), str(error))
        return
    context.records_in += 1
    yield question
    author = fields.get("best_id", "") or fields.get("best_yid", "")
    for answer in _answers(question.id, fields.get("bestanswer", ""), answers, author):
        context.records_in += 1
        yield answer


def _question(fields: dict[str, str], context: ReadContext) -> Question:
    values = {
        "title": _one_line(fields.get("subject", ""), context),
        "body": fields.get("content"),
        "tags": [_one_line(fields.get(level, ""), context) for level in ("maincat", "subcat", "cat")],
        "created": fields.get("date"),
        "author": fields.get("id") or fields.get("yid"),
    }
    return read_question(identifier(fields.get("uri"), "uri"), values, "html", context)


def _answers(question_id: str, best: str, texts: list[str], author: str = "") -> Iterator[Answer]:
    """Yield the answers in file order; a best answer that is not among them comes first, numbered 0.

    Args:
        author: of the best answer.
    """
    if best and best not in texts:
        yield Answer(f"{question_id}-0", question_id, best, "html", author=author, is_accepted=True)
    accepted = texts.index(best) + 1 if best in texts else 0
    for number, text in enumerate(texts, start=1):
        is_best = number == accepted
        yield Answer(f"{question_id}-{number}", question_id, text, "html", author=author * is_best, is_accepted=is_best)


def _parse(element: bytes, context: ReadContext) -> tuple[dict[str, str], list[str]]:
    """Return the texts of a question's elements by their names, and those of its answers."""
    fields, answers = dict[str, str](), list[str]()
    for event in read_xml(io.BytesIO(element), "within it", context.options.limits):
        text = event.text.strip()
        if event.kind == "start" or event.tag in ("vespaadd", "document", "nbestanswers"):
            continue
        if event.tag != "answer_item":
            fields[event.tag] = text
        elif text:
            answers.append(text)
        else:
            context.skipped["empty answers"] += 1
    return fields, answers


def _one_line(text: str, context: ReadContext) -> str:
    """Turn a subject or category, which is HTML too, into one line of text."""
    return one_line(unescaped(_BREAK.sub(" ", text)), "subject", context)


_FIRST_LINE = re.compile(rb"\d{14}AA\w+\t[^\t]*\t[^\t]*\t\d{4}-\d\d-\d\d\t")


class YahooLiveQaReader(Reader):
    """Questions with title, body, date and two categories; further tabs belong to the body."""

    name = "yahoo-liveqa"

    def matches(self, path: Path) -> bool:
        """Say whether the first line begins with a Yahoo! Answers id, two categories and a date."""
        return _FIRST_LINE.match(first_bytes(path)) is not None

    def read(self, path: Path, context: ReadContext) -> Iterator[Record]:
        """Yield the questions in file order."""
        lines = ((line, text.split("\t", 5)) for line, text in text_lines(path, path.name, context))
        yield from read_each(lines, lambda fields: _liveqa_question(fields, context), path.name, context, itemgetter(0))


def _liveqa_question(fields: list[str], context: ReadContext) -> Question:
    if len(fields) != 6:
        raise Unreadable(f"{len(fields)} fields, expected id, category, main category, date, title and body")
    name, category, main_category, date, title, body = fields
    values = {
        "title": unescaped(title),
        "body": unescaped(body).strip(),
        "tags": [unescaped(main_category), unescaped(category)],
        "created": date,
    }
    return read_question(identifier(name), values, "plain", context)


_HEADER = ["subject", "content", "bestanswer"]
_SHOWN_CHARS = 40
_LITERAL = re.compile(r"""b'(?:[^'\\\n]|\\[^\n])*'|b"(?:[^"\\\n]|\\[^\n])*\"""")


class YahooThreadsReader(Reader):
    """Questions followed by their answers; subject, content and answers are HTML."""

    name = "yahoo-threads"

    def matches(self, path: Path) -> bool:
        """Say whether the header is subject, content, bestanswer, ans0 and the next line a byte literal."""
        head = first_bytes(path).replace(b"\r", b"")
        return head.startswith(b"subject,content,bestanswer,ans0") and re.search(rb"\n+\"?b[\"']", head) is not None

    def read(self, path: Path, context: ReadContext) -> Iterator[Record]:
        """Yield the threads in file order."""
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
            for answer in _answers(name, best, list(filter(None, others))):
                context.records_in += 1
                yield answer


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
        names = [str(cell)[:_SHOWN_CHARS] for cell in header.cells[:3]] if header else []
        raise DamagedInputError(f"{path.name}, line 1: found {names}, expected {_HEADER}", "check the format")
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
