"""Letter trigrams: the paper's example, what is read of hostile and foreign text, and what misspelling leaves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askalike.models.siamese.model import DELIMITER, TrigramReader, trigrams
from askalike.text.settings import TextSettings

ENGLISH = TrigramReader(TextSettings())
AS_WRITTEN = TrigramReader(TextSettings(stem=False, stop_words=False))


def test_table_is_the_papers_example() -> None:
    assert trigrams("table") == ("#ta", "tab", "abl", "ble", "le#")


@pytest.mark.parametrize(
    ("word", "expected"),
    [("", ()), ("c", ("#c#",)), ("ab", ("#ab", "ab#")), ("22", ("#22", "22#")), ("мир", ("#ми", "мир", "ир#"))],
)
def test_short_words_numbers_and_other_scripts_are_words_like_others(word: str, expected: tuple[str, ...]) -> None:
    assert trigrams(word) == expected


def test_case_stop_words_endings_and_special_characters_go() -> None:
    assert ENGLISH.words("Do I mount THE drives?! (read-only)") == ["mount", "drive", "read", "onli"]
    assert ENGLISH.words("***") == []
    assert ENGLISH.trigrams("the") == []
    assert ENGLISH.trigrams("Mounting") == ["#mo", "mou", "oun", "unt", "nt#"]


def test_what_is_kept_whole_elsewhere_is_its_words_alone() -> None:
    assert AS_WRITTEN.words("/etc/resolv.conf") == ["etc", "resolv", "conf"]
    assert AS_WRITTEN.words("max_size http://a-b.org/x?y=1") == ["max", "size", "http", "a", "b", "org", "x", "y", "1"]
    assert AS_WRITTEN.words("22.04 c++ c# me@example.org #tag") == ["22", "04", "c", "c", "me", "example", "org", "tag"]


def test_contractions_are_those_of_the_analyzer() -> None:
    assert AS_WRITTEN.words("can't user’s") == ["cant", "user"]
    assert TrigramReader(TextSettings(language="french", stem=False)).words("l'avion")[-1] == "avion"


def test_scripts_without_spaces_and_marks() -> None:
    assert AS_WRITTEN.trigrams("中国") == ["#中#", "#国#"]
    assert AS_WRITTEN.words("हिन्दी") == ["हिन्दी"]
    assert AS_WRITTEN.words("Straße ＡＢＣ ½") == ["strasse", "abc", "1", "2"]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("accommodation", "accomodation"), ("definitely", "definately"), ("bluetooth", "bluetoth")],
)
def test_a_misspelled_word_shares_most_of_its_trigrams(right: str, wrong: str) -> None:
    first, second = set(AS_WRITTEN.trigrams(right)), set(AS_WRITTEN.trigrams(wrong))
    assert len(first & second) >= 0.6 * len(first)
    assert first != second


def test_repetitions_count() -> None:
    assert ENGLISH.trigrams("car car") == 2 * ["#ca", "car", "ar#"]


@given(st.text())
def test_no_word_holds_a_delimiter_white_space_or_punctuation(text: str) -> None:
    for word in AS_WRITTEN.words(text):
        assert word.split() == [word]
        assert DELIMITER not in word
        assert not set(word) & set("/.-_@:+'\"")
        assert len(trigrams(word)) == len(word)
