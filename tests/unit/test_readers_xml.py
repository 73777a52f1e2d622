"""The streaming XML reader: what it yields, what it refuses, and what it remembers."""

from __future__ import annotations

import io

import pytest

from askalike.errors import DamagedInputError, UnsafeInputError
from askalike.readers.frame import Limits
from askalike.readers.xml import XmlEvent, read_xml


def events(content: bytes, limits: Limits | None = None) -> list[XmlEvent]:
    return list(read_xml(io.BytesIO(content), "posts.xml", limits))


def test_starts_and_ends_come_in_order_with_their_lines() -> None:
    assert events(b'<a>\n <b n="1">one</b>\n</a>') == [
        XmlEvent("start", "a", {}, "", 1),
        XmlEvent("start", "b", {"n": "1"}, "", 2),
        XmlEvent("end", "b", {}, "one", 2),
        XmlEvent("end", "a", {}, "", 3),
    ]


def test_a_byte_order_mark_and_character_references_are_understood() -> None:
    assert events(b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8"?><a x="&lt;&#xA;&#233;"/>')[0].attributes == {
        "x": "<\né"
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<!DOCTYPE a [\n<!ENTITY lol 'lol'>]><a>&lol;</a>", "line 2: the file declares the entity 'lol'"),
        (b"<!DOCTYPE a [<!ENTITY % p SYSTEM 'file:///etc/passwd'>]><a/>", "declares the entity 'p'"),
        (b"<!DOCTYPE a SYSTEM 'http://example.org/a.dtd'><a/>", "points outside the file"),
        (b"<!DOCTYPE a [<!NOTATION gif SYSTEM 'viewer'>]><a/>", "external notation 'gif'"),
        (b"<a>" * 65, "nested deeper than 64"),
    ],
)
def test_entities_and_everything_outside_are_refused(content: bytes, message: str) -> None:
    with pytest.raises(UnsafeInputError, match=message):
        events(content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "posts.xml is empty"),
        (b"<a>\n<b>", "line 2: the file ends too early"),
        (b"<a>\n</b>", "line 2: this is not well-formed XML"),
        (b"<a>&undefined;</a>", "undefined entity"),
        (b"<?xml version='1.0' encoding='no-such'?><a/>", "encoding that the file names cannot be read"),
    ],
)
def test_damage_is_named_with_file_and_line(content: bytes, message: str) -> None:
    with pytest.raises(DamagedInputError, match=message):
        events(content)


@pytest.mark.parametrize("content", [b"<a x='" + b"y" * 300_000 + b"'/>", b"<a>" + b"y" * 300_000 + b"</a>"])
def test_a_tag_or_a_text_without_end_is_refused(content: bytes) -> None:
    with pytest.raises(UnsafeInputError):
        events(content, Limits(xml_token_bytes=100_000))
