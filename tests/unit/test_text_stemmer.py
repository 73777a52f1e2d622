"""Words become stems one by one; what is no plain word stays; threads share a stemmer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from askalike.text.analyzer import WordStemmer, stemmer_of


def test_words_of_a_language_become_stems() -> None:
    assert stemmer_of("english").stems(["drops", "dropping", "daily", "user's", "can't"]) == [
        *("drop", "drop", "daili", "user", "can't")
    ]
    assert stemmer_of("german").stems(["häuser", "häusern"]) == ["haus", "haus"]


@pytest.mark.parametrize(
    "word",
    ["/etc/hosts", "resolv.conf", "c++", "22.04s", "e1234s", "https://example.org/cables", "x" * 64 + "s", "é2s"],
)
def test_what_is_no_plain_word_stays_as_it_is_written(word: str) -> None:
    assert stemmer_of("english").stems([word]) == [word]


@pytest.mark.parametrize(("language", "word"), [("porter", "s"), ("irish", "d'"), ("turkish", "'")])
def test_a_word_of_which_nothing_would_be_left_stays(language: str, word: str) -> None:
    assert stemmer_of(language).stems([word]) == [word]


def test_threads_that_share_a_stemmer_do_not_disturb_each_other() -> None:
    read = [f"{first}{second}{end}" for first in "bcdfg" for second in "aeiou" for end in ("nning", "tations", "bly")]
    alone = WordStemmer("english").stems(read)
    shared = WordStemmer("english")
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(shared.stems, [read] * 64)) == [alone] * 64
