"""The table of what was added names files and definitions that exist, and counts no line twice."""

from __future__ import annotations

import pytest
from tools import lines


def test_every_entry_of_the_table_exists_and_is_counted_once() -> None:
    places = [place for named in lines.ADDED.values() for place in named]
    assert len(places) == len(set(places))
    whole = [file for place in places if ":" not in place for file, _ in lines.lines_of(place)]
    assert len(whole) == len(set(whole))
    for place in places:
        found = list(lines.lines_of(place))
        assert sum(one.code for _, one in found) > 0, place
        assert ":" not in place or found[0][0] not in whole, f"{place} is counted with its file"


def test_a_name_that_is_gone_is_refused() -> None:
    with pytest.raises(LookupError, match=r"forum/forum\.py does not define Gone"):
        list(lines.lines_of("forum/forum.py:Gone"))
    with pytest.raises(LookupError, match=r"there is no gone\.py"):
        list(lines.lines_of("gone.py"))
