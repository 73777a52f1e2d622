"""JSON documents one after the other: items of a top-level list, lines of a JSONL file, or one whole document."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path

from askalike.errors import DamagedInputError, UnsafeInputError
from askalike.readers.files import plain_suffix, read_blocks, read_lines
from askalike.readers.frame import ReadContext
from askalike.readers.jsonl import load_object
from askalike.readers.values import Unreadable

_SPACE = re.compile(r"[ \t\r\n]*")
_NEAR_CHARS = 64  # longer than any number, word or escape that a block could cut
_HINT = "fetch the file again from where it came"


def read_json_items(path: Path, name: str, context: ReadContext) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield (line, object) for each object of a file; in JSONL, a line that is no object is rejected.

    Raises:
        DamagedInputError: empty, truncated, mis-encoded, or not JSON; names file and line.
        UnsafeInputError: one item is larger than ``limits.document_bytes``, or nested too deep.
    """
    if plain_suffix(path) in (".jsonl", ".ndjson"):
        yield from _lines(path, name, context)
        return
    window = _Window(path, name, context)
    is_list = window.skip("[")
    while True:
        if is_list and window.skip("]"):
            break
        line = window.line
        item = window.value()
        if isinstance(item, dict):
            yield line, item
        else:
            context.reject(name, line, "", f"a JSON {type(item).__name__}, expected an object")
        if not is_list:
            break
        if not window.skip(","):
            if window.skip("]"):
                break
            raise window.damaged("expected a comma or the end of the list")
    if not window.is_at_end():
        raise window.damaged("there is more after the end of the JSON document")


def _lines(path: Path, name: str, context: ReadContext) -> Iterator[tuple[int, dict[str, object]]]:
    for number, line in read_lines(path, name, context):
        if not line or line.isspace():
            context.skipped["blank line"] += 1
            continue
        try:
            item = load_object(line)
        except Unreadable as error:
            context.reject(name, number, "", str(error))
            continue
        yield number, item


class _Window:
    """The part of a JSON text that is not yet decoded; it grows until one value is whole, and then moves on."""

    def __init__(self, path: Path, name: str, context: ReadContext) -> None:
        self.name = name
        self.line = 1
        self._limit = context.options.limits.document_bytes
        self._blocks = read_blocks(path, name, context)
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._scan = json.JSONDecoder().raw_decode
        self._text = ""
        self._at = 0
        self._is_done = False

    def skip(self, character: str) -> bool:
        """Step over white space, and over this character where it comes next."""
        if self.is_at_end() or self._text[self._at] != character:
            return False
        self._step(self._at + 1)
        return True

    def is_at_end(self) -> bool:
        """Step over white space, and say whether nothing is left."""
        while True:
            space = _SPACE.match(self._text, self._at)
            self._step(space.end() if space else self._at)
            if self._at < len(self._text):
                return False
            if not self._more(1):
                return True

    def value(self) -> object:
        """Decode the value that comes next, reading on until it is whole."""
        if self.is_at_end():
            raise self.damaged("the file ends too early, expected a JSON value")
        while True:
            try:
                value, end = self._scan(self._text, self._at)
            except RecursionError as error:
                raise UnsafeInputError(f"{self.name}, line {self.line}: JSON nested too deep", _HINT) from error
            except ValueError as error:
                if _is_mistake(error, len(self._text)):
                    raise self.damaged(f"not JSON: {_plain(error)}") from error
                waiting = len(self._text) - self._at
                if waiting > self._limit:
                    message = f"{self.name}, line {self.line}: one JSON item longer than {self._limit:,} characters"
                    raise UnsafeInputError(message, "give the topics as one JSON object a line") from error
                if not self._more(waiting):  # doubling keeps the repeated scans linear in all
                    raise self.damaged(f"the file ends too early: {_plain(error)}") from error
            else:
                self._step(end)
                return value

    def damaged(self, found: str) -> DamagedInputError:
        """Return the error that names file and line."""
        return DamagedInputError(f"{self.name}, line {self.line}: {found}", _HINT)

    def _step(self, to: int) -> None:
        self.line += self._text.count("\n", self._at, to)
        self._at = to

    def _more(self, characters: int) -> bool:
        """Drop what was decoded and read at least so many characters more; say whether there were any."""
        parts = [self._text[self._at :]]
        held = 0
        while held < characters and not self._is_done:
            block = next(self._blocks, b"")
            self._is_done = not block
            try:
                parts.append(self._decode(block, final=self._is_done))
            except UnicodeDecodeError as error:
                line = self.line + sum(part.count("\n") for part in parts) + block.count(b"\n", 0, error.start)
                message = f"{self.name}, line {line}: not UTF-8"
                raise DamagedInputError(message, "convert the file to UTF-8") from error
            held += len(parts[-1])
        self._text, self._at = "".join(parts), 0
        return held > 0


def _is_mistake(error: ValueError, length: int) -> bool:
    """Say whether more text cannot mend this: the fault is neither an open string nor near the end of the text."""
    if not isinstance(error, json.JSONDecodeError):
        return True
    return error.pos < length - _NEAR_CHARS and not error.msg.startswith("Unterminated string")


def _plain(error: ValueError) -> str:
    return error.msg if isinstance(error, json.JSONDecodeError) else str(error)
