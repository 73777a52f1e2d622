"""How a table's quotes are told apart."""

from __future__ import annotations

import pytest

from askalike.readers.table import _dialect as dialect
from askalike.readers.table import header_of

HEAD = '"id","title","body"\n'


def test_quotes_escaped_by_a_backslash_are_recognised() -> None:
    assert dialect(HEAD + '"1","say \\"hi\\"","b"\n', ".csv")["escapechar"] == "\\"


@pytest.mark.parametrize("rows", ['"1","t","b\\"\n', '"1","t","b\\"\n"2","t","c"\n', '"1","t\\","b ""q"""\n'])
def test_a_text_that_ends_with_a_backslash_is_not_taken_for_an_escaped_quote(rows: str) -> None:
    assert "escapechar" not in dialect(HEAD + rows, ".csv")


def test_the_header_is_read_in_its_dialect() -> None:
    assert header_of(HEAD, ".csv") == ["id", "title", "body"]
