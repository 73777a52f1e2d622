"""Misspelt words of a query are read as known ones; known words never change."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from askalike.rank.correction import corrected
from askalike.rank.query import Query
from askalike.text.analyzer import Analyzer
from askalike.text.misspelling import one_edit_away
from askalike.text.settings import TextSettings
from askalike.types import Correction

ANALYZER = Analyzer(TextSettings())
FREQUENT = ("the", "router", "laptop", "rotor", "wifi", "printer", "restarts")
HELD = {"router": 9, "laptop": 5, "rotor": 3, "wifi": 7, "printer": 1, "restart": 4, "wlan": 2}


class FirstIsMostFrequent:
    """A speller of a few words."""

    def rank(self, word: str) -> int | None:
        return FREQUENT.index(word) if word in FREQUENT else None


def read(title: str, body: str = "", held: Mapping[str, int] = HELD, markup: str = "plain") -> tuple[Query, list[str]]:
    query, found = corrected(
        Query(title, body, markup),  # type: ignore[arg-type]
        ANALYZER,
        FirstIsMostFrequent(),
        lambda term: held.get(term, 0),
    )
    return query, [f"{one.written}>{one.meant}" for one in found]


def test_a_word_that_nobody_knows_is_read_as_the_most_frequent_one_that_is_near() -> None:
    query, found = read("My roter and lapotp")  # roter is as near to rotor as to router
    assert (query.title, found) == ("My router and laptop", ["roter>router", "lapotp>laptop"])


def test_the_body_is_corrected_too_and_keeps_the_rest_of_what_was_written() -> None:
    query, found = read("Wifi", "<p>The <b>Roter</b>, roter-7 &amp; restrats.</p>", markup="html")
    assert query.body == "<p>The <b>router</b>, roter-7 &amp; restarts.</p>"
    assert found == ["roter>router", "restrats>restarts"]


@pytest.mark.parametrize(
    ("title", "why"),
    [
        ("wlan", "the forum knows it"),
        ("rotor", "the encoder knows it, though router is more frequent"),
        ("tgi", "too short"),
        ("lapotpp", "two edits away"),
        ("lapt0p", "not all letters"),
        ("prnter", "a single question has what may have been meant"),
        ("/etc/roter.conf", "a path"),
    ],
)
def test_what_is_known_short_far_or_no_word_stays(title: str, why: str) -> None:
    assert read(title) == (Query(title, "", "plain"), []), why


def test_a_near_word_that_the_forum_lacks_is_passed_over() -> None:
    assert read("roter", held={**HELD, "router": 0})[1] == ["roter>rotor"]


def test_only_so_many_words_are_looked_at() -> None:
    unknown = [f"x{'abcdefghijklmnopqrstuvwxyz'[i % 26] * 4}{'abc'[i // 26]}" for i in range(40)]
    assert read(" ".join([*unknown, "roter"]))[1] == []
    assert read(" ".join([*unknown[:31], "roter"]))[1] == ["roter>router"]


def test_one_edit_away_are_all_words_of_the_four_edits_and_never_the_word_itself() -> None:
    found = set(one_edit_away("aab", letters="ab"))
    left_out, swapped = {"ab", "aa"}, {"aba"}
    put_in = {"aaab", "baab", "abab", "aabb", "aaba"}
    changed = {"bab", "abb", "aaa"}
    assert found == left_out | swapped | put_in | changed


def test_a_correction_is_a_value() -> None:
    assert Correction("roter", "router") == Correction(written="roter", meant="router")
