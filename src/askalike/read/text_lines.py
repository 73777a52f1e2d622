"""The lines of a UTF-8 file as text, with their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from askalike.errors import DamagedInputError
from askalike.read.files import read_lines
from askalike.read.frame import ReadContext


def text_lines(path: Path, name: str, context: ReadContext) -> Iterator[tuple[int, str]]:
    """Yield (number, line) of every line that is not blank; the first line of the file is 1, line ends are dropped.

    Raises:
        DamagedInputError: empty, truncated, not UTF-8, or a line too long; names file and line.
    """
    for number, line in read_lines(path, name, context):
        try:
            text = line.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise DamagedInputError(
                f"{name}, line {number}: byte {error.start + 1} of it is not UTF-8", "convert the file to UTF-8"
            ) from error
        if text and not text.isspace():
            yield number, text
