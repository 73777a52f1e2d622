"""A cursor as a file holds it, and what is refused."""

from __future__ import annotations

import pytest

from askalike.index.cursor import Cursor

CURSOR = Cursor(applied=7, scanned=3, is_complete=False, fingerprint="f")


def test_a_cursor_is_read_back_as_it_was_written() -> None:
    assert Cursor.from_json(CURSOR.to_json(2), 2) == CURSOR


@pytest.mark.parametrize(
    "found", [None, [], {}, {**CURSOR.to_json(1), "more": 1}, {**CURSOR.to_json(1), "applied": True}, {"format": 1}]
)
def test_what_is_no_cursor_is_refused(found: object) -> None:
    with pytest.raises(ValueError, match="expected applied, scanned, is_complete, fingerprint, format"):
        Cursor.from_json(found, 1)


def test_a_cursor_of_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="it has format 2, expected 1"):
        Cursor.from_json(CURSOR.to_json(2), 1)
