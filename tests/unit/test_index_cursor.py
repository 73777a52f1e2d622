"""A mark as a file holds it, and what is refused."""

from __future__ import annotations

import pytest

from askalike.index.cursor import Mark

MARK = Mark(applied=7, scanned=3, is_complete=False, fingerprint="f")


def test_a_mark_is_read_back_as_it_was_written() -> None:
    assert Mark.from_json(MARK.to_json(2), 2) == MARK


@pytest.mark.parametrize(
    "found", [None, [], {}, {**MARK.to_json(1), "more": 1}, {**MARK.to_json(1), "applied": True}, {"format": 1}]
)
def test_what_is_no_mark_is_refused(found: object) -> None:
    with pytest.raises(ValueError, match="expected applied, scanned, is_complete, fingerprint, format"):
        Mark.from_json(found, 1)


def test_a_mark_of_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="it has format 2, expected 1"):
        Mark.from_json(MARK.to_json(2), 1)
