"""A streaming XML reader that believes nothing: no entities, nothing external, bounded depth and size.

Characters that XML does not allow, written as they are or as references (``&#x0E;``), become U+FFFD; real dumps hold
them. Expat is fed in blocks and its events are handed on after each. Declarations of elements and attributes inside the
file are accepted; a declaration of an entity, or anything that names a file or an address outside, is refused before
it has any effect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import BinaryIO, Literal, NamedTuple, NoReturn
from xml.parsers import expat

from askalike.errors import DamagedInputError, UnsafeInputError
from askalike.readers.frame import Limits

_BLOCK_BYTES = 1 << 16


class XmlEvent(NamedTuple):
    """One start or end of an element.

    Args:
        kind: "start" or "end".
        attributes: of a start; empty at an end.
        text: of an end: the characters directly inside the element, joined; "" at a start.
        line: where the tag stands, the first line is 1.
    """

    kind: Literal["start", "end"]
    tag: str
    attributes: dict[str, str]
    text: str
    line: int


class _Events:
    """Collects expat's calls for one block, and holds the text of the elements that are open."""

    def __init__(self, name: str, limits: Limits) -> None:
        self.name = name
        self.limits = limits
        self.ready: list[XmlEvent] = []
        self.texts: list[list[str]] = []
        self.characters = 0  # characters in ``texts``
        self.calls = 0
        self.parser = self._parser()

    def _parser(self) -> expat.XMLParserType:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.specified_attributes = True  # a declared default could multiply a small file
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.CommentHandler = self._count_call
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = lambda name, *_: self._refuse(f"the file declares the entity {name!r}")
        parser.NotationDeclHandler = lambda name, *_: self._refuse(f"the file declares the external notation {name!r}")
        parser.ExternalEntityRefHandler = lambda *_: self._refuse("the file asks for an external entity")
        return parser

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self.calls += 1
        if len(self.texts) >= self.limits.xml_depth:
            self._refuse(f"elements nested deeper than {self.limits.xml_depth}")
        self.texts.append([])
        self.ready.append(XmlEvent("start", tag, attributes, "", self.parser.CurrentLineNumber))

    def _end(self, tag: str) -> None:
        self.calls += 1
        text = "".join(self.texts.pop())
        self.characters -= len(text)
        self.ready.append(XmlEvent("end", tag, {}, text, self.parser.CurrentLineNumber))

    def _characters(self, text: str) -> None:
        self.calls += 1
        if len(self.texts) == 1 and text.isspace():
            return  # line ends between the records would add up for as long as the root is open
        self.texts[-1].append(text)
        self.characters += len(text)
        if self.characters > self.limits.xml_token_bytes:
            self._refuse(f"more than {self.limits.xml_token_bytes:,} characters inside one element")

    def _count_call(self, text: str) -> None:
        self.calls += 1

    def _doctype(self, name: str, system_id: str | None, public_id: str | None, has_internal: bool) -> None:
        if system_id is not None or public_id is not None:
            self._refuse(f"the document type points outside the file: {system_id or public_id!r}")

    def _refuse(self, what: str) -> NoReturn:
        raise UnsafeInputError(
            f"{self.name}, line {self.parser.CurrentLineNumber}: {what}; this is never read",
            "if you trust the file, remove that part and read it again",
        )


def read_xml(
    stream: BinaryIO, name: str, limits: Limits | None = None, repair: Callable[[str], None] = lambda kind: None
) -> Iterator[XmlEvent]:
    """Yield the starts and ends of all elements of a stream, in order.

    Args:
        stream: opened for bytes; its encoding is what its XML declaration says, UTF-8 where it says nothing.
        limits: depth, and the length of one tag or of the text inside one element.
        repair: called for each character that was replaced, with what it was.

    Raises:
        UnsafeInputError: entities, external ids, notations, or a limit passed; names file and line.
        DamagedInputError: empty, truncated, mis-encoded or not well formed; names file and line.

    >>> import io
    >>> [(e.kind, e.tag, e.attributes, e.text) for e in read_xml(io.BytesIO(b'<a><b n="1">hi</b></a>'), "x.xml")][1:3]
    [('start', 'b', {'n': '1'}, ''), ('end', 'b', {}, 'hi')]
    """
    limits = limits or Limits()
    events = _Events(name, limits)
    total = waiting = calls = 0
    for block in _allowed_blocks(stream, repair):
        total += len(block)
        _feed(events, block, is_final=False)
        waiting = 0 if events.calls > calls else waiting + len(block)
        calls = events.calls
        if waiting > limits.xml_token_bytes:
            line = events.parser.CurrentLineNumber
            raise UnsafeInputError(
                f"{name}, line {line}: a tag longer than {limits.xml_token_bytes:,} bytes",
                "the file is damaged or made to harm; fetch it again from where it came",
            )
        yield from events.ready
        events.ready.clear()
    if total == 0:
        raise DamagedInputError(f"{name} is empty, expected XML", "fetch the file again from where it came")
    _feed(events, b"", is_final=True)
    yield from events.ready


_FORBIDDEN = bytes({*range(0x20)} - {0x09, 0x0A, 0x0D})
_REFERENCE = re.compile(rb"&#(?:([0-9]{1,9})|[xX]([0-9a-fA-F]{1,8}));")
_LONGEST_REFERENCE = len("&#x0010FFFF;")
_REPLACED = b"&#xFFFD;"
_UNITS_OF_TWO_BYTES = (b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<")
_KIND = "characters that XML does not allow, replaced by U+FFFD"


def _allowed_blocks(stream: BinaryIO, repair: Callable[[str], None]) -> Iterator[bytes]:
    """Yield a stream's blocks without characters that XML does not allow; a reference is never cut in two."""
    rest, is_bytewise = b"", None
    while block := stream.read(_BLOCK_BYTES):
        if is_bytewise is None:
            is_bytewise = not block.startswith(_UNITS_OF_TWO_BYTES)
        if not is_bytewise:
            yield block
            continue
        block = rest + block
        cut = block.rfind(b"&", max(0, len(block) - _LONGEST_REFERENCE))
        is_cut = cut >= 0 and b";" not in block[cut:]
        rest = block[cut:] if is_cut else b""
        yield _allowed(block[:cut] if is_cut else block, repair)
    if rest:
        yield _allowed(rest, repair)


def _allowed(block: bytes, repair: Callable[[str], None]) -> bytes:
    def replaced(match: re.Match[bytes]) -> bytes:
        code = int(match[1]) if match[1] else int(match[2], 16)
        is_allowed = code in (0x9, 0xA, 0xD) or 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE
        if is_allowed or 0x10000 <= code < 0x110000:
            return match[0]
        repair(_KIND)
        return _REPLACED

    if b"&#" in block:
        block = _REFERENCE.sub(replaced, block)
    for code in set(block) & set(_FORBIDDEN):
        for _ in range(block.count(code)):
            repair(_KIND)
        block = block.replace(bytes([code]), _REPLACED)
    return block


def _feed(events: _Events, block: bytes, is_final: bool) -> None:
    try:
        events.parser.Parse(block, is_final)
    except expat.ExpatError as error:
        what = expat.ErrorString(error.code)
        fault = "the file ends too early" if is_final else "this is not well-formed XML"
        raise DamagedInputError(
            f"{events.name}, line {error.lineno}: {fault} ({what})",
            "the file is truncated or mis-encoded; fetch it again from where it came",
        ) from error
    except (LookupError, ValueError) as error:  # an encoding that Python does not know, or one of several bytes
        raise DamagedInputError(
            f"{events.name}, line 1: the encoding that the file names cannot be read ({error})",
            "convert the file to UTF-8",
        ) from error
