"""One value at a time: what is kept, repaired or refused."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest

from askalike.readers.frame import Limits, ReadContext, ReadOptions
from askalike.readers.values import Unreadable, check_has_text, identifier, moment, one_line, tags, text, whole_number
from askalike.types import Markup

NOON = datetime(2020, 5, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        "2020-05-01T12:00:00Z",
        "2020-05-01 12:00:00 UTC",
        "2020-05-01T14:00:00+02:00",
        " 2020-05-01 12:00 ",
        1588334400,
        "1588334400",
        1588334400000,
        NOON,
        datetime(2020, 5, 1, 12, 0),
    ],
)
def test_a_moment_is_read_in_every_usual_spelling(value: object) -> None:
    context = ReadContext()
    assert moment(value, context) == NOON
    assert not context.repaired


@pytest.mark.parametrize("value", ["yesterday", 1e300, math.nan, True, "0001-01-01T00:00:00+05:00"])
def test_a_moment_that_cannot_be_read_is_left_out_and_counted(value: object) -> None:
    context = ReadContext()
    assert moment(value, context) is None
    assert context.repaired == {"dates that cannot be read, left out": 1}


def test_scores_are_whole_numbers_of_64_bits() -> None:
    context = ReadContext()
    assert [whole_number(value, context) for value in (3, "3", "3.0", 3.0, -2, None, "")] == [
        3,
        3,
        3,
        3,
        -2,
        None,
        None,
    ]
    assert not context.repaired
    assert [whole_number(value, context) for value in ("many", math.nan, math.inf, 2**64, [], True)] == [None] * 6
    assert sum(context.repaired.values()) == 6


@pytest.mark.parametrize(("value", "expected"), [("a\x00b", "a�b"), ("a\ud800b", "a�b")])
def test_characters_that_cannot_be_stored_are_replaced_and_counted(value: str, expected: str) -> None:
    context = ReadContext()
    assert text(value, "body", context) == expected
    assert sum(context.repaired.values()) == 1


def test_a_text_of_another_type_or_size_is_refused() -> None:
    small = ReadContext(ReadOptions(limits=Limits(field_chars=5)))
    with pytest.raises(Unreadable, match="the body has 6 characters, at most 5"):
        text("abcdef", "body", small)
    with pytest.raises(Unreadable, match="the body is a list, expected text"):
        text(["a"], "body", small)
    with pytest.raises(Unreadable, match="the body is not UTF-8"):
        text(b"\xff", "body", small)
    assert text(12, "body", small) == "12"


def test_a_title_is_one_line() -> None:
    assert one_line(" How\r\n do I? ", "title", ReadContext()) == "How do I?"


@pytest.mark.parametrize(("value", "expected"), [("a1", "a1"), (7, "7"), (7.0, "7"), (" x ", "x")])
def test_an_identifier_is_a_text(value: object, expected: str) -> None:
    assert identifier(value) == expected


@pytest.mark.parametrize("value", ["  ", True, 7.5, math.nan, [], "a\x00", "\ud800", "x" * 1001])
def test_an_identifier_that_cannot_be_kept_is_refused(value: object) -> None:
    with pytest.raises(Unreadable):
        identifier(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("<c#><.net>", ("c#", ".net")),
        ("|c#|.net|", ("c#", ".net")),
        ("a, b,,a", ("a", "b")),
        ('["a", "b c"]', ("a", "b c")),
        ("[not json]", ("[not json]",)),
        ("[" * 100_000 + "]", ("[" * 100_000 + "]",)),
        (["a", {"id": 1, "name": "b"}, ""], ("a", "b")),
        ("", ()),
    ],
)
def test_tags_are_read_in_every_layout(value: object, expected: tuple[str, ...]) -> None:
    assert tags(value, ReadContext()) == expected


@pytest.mark.parametrize(
    ("body", "markup"),
    [
        ("<p></p>", "html"),
        ("<p>&nbsp;</p>\n<p><br></p>", "html"),
        ("<!-- nothing --><script>x</script>", "html"),
        ("&nbsp;", "markdown"),
        ("\u200b \xa0", "plain"),
    ],
)
def test_a_question_without_a_title_is_refused_where_its_body_shows_no_text(body: str, markup: Markup) -> None:
    with pytest.raises(Unreadable, match=f"the title is empty, and the body is {markup} without text"):
        check_has_text("", body, markup)
    check_has_text("a title", body, markup)
    check_has_text("", f"{body} word", markup)
