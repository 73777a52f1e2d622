"""Yahoo! Answers questions as the LiveQA track hands them out: one line a question, no header, no answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from askalike.read.files import first_bytes, regular_size
from askalike.read.frame import ReadContext
from askalike.read.text_lines import text_lines
from askalike.read.values import Unreadable, identifier, moment, one_line, unescaped
from askalike.read.values import text as checked
from askalike.types import Question, Record

_FIRST_LINE = re.compile(rb"\d{14}AA\w+\t[^\t]*\t[^\t]*\t\d{4}-\d\d-\d\d\t")


class YahooLiveQaReader:
    """Questions with title, body, date and two categories; further tabs belong to the body."""

    name = "yahoo-liveqa"
    title = "Yahoo! Answers questions of the LiveQA track (tab-separated)"

    def matches(self, path: Path) -> bool:
        """Say whether the first line begins with a Yahoo! Answers id, two categories and a date."""
        return _FIRST_LINE.match(first_bytes(path)) is not None

    def size_bytes(self, path: Path) -> int:
        """Return the stored size."""
        return regular_size(path)

    def read(self, path: Path, context: ReadContext) -> Iterator[Record]:
        """Yield the questions in file order.

        Raises:
            DamagedInputError: the file is empty, truncated or not UTF-8.
        """
        for line, text in text_lines(path, path.name, context):
            fields = text.split("\t", 5)
            try:
                question = _question(fields, context)
            except Unreadable as error:
                context.reject(path.name, line, fields[0], str(error))
                continue
            context.records_in += 1
            yield question


def _question(fields: list[str], context: ReadContext) -> Question:
    if len(fields) != 6:
        raise Unreadable(f"{len(fields)} fields, expected id, category, main category, date, title and body")
    name, category, main_category, date, title, body = fields
    return Question(
        identifier(name),
        one_line(unescaped(title), "title", context),
        checked(unescaped(body), "body", context).strip(),
        tags=tuple(dict.fromkeys(unescaped(label) for label in (main_category, category) if label)),
        created=moment(date, context),
        url=context.address(identifier(name)),
    )
