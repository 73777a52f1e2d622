"""Words to stems, one stem for each word, so that what is said of a stem can be said of its word.

Source: M. F. Porter, Snowball (snowballstem.org), through PyStemmer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from threading import Lock
from typing import Final

import Stemmer

from askalike.text.tokens import is_compound

_HAS_DIGIT = re.compile(r"\d")
_LONGEST_STEMMED: Final = 64  # what is longer is no word of a language
_MOST_WORDS: Final = 1 << 16  # remembered


class WordStemmer:
    """Brings words to their stems. Safe to share between threads.

    These stay as they are written: a word that ``tokens`` keeps whole (a path, an address), one with a digit, one of
    more than 64 characters, and one of which nothing would be left.

    Args:
        language: a Snowball stemmer, one of ``settings.LANGUAGES``.

    >>> WordStemmer("english").stems(["routers", "user's", "/etc/hosts", "22.04s"])
    ['router', 'user', '/etc/hosts', '22.04s']
    """

    def __init__(self, language: str) -> None:
        self._stemmer = Stemmer.Stemmer(language, 0)
        self._lock = Lock()  # a Snowball stemmer has inner state
        self._stem = lru_cache(maxsize=_MOST_WORDS)(self._worked_out)

    def stems(self, words: Iterable[str]) -> list[str]:
        """Return the stem of each word, in order."""
        return [word if len(word) > _LONGEST_STEMMED else self._stem(word) for word in words]

    def _worked_out(self, word: str) -> str:
        if not word.isalpha() and (is_compound(word) or _HAS_DIGIT.search(word)):
            return word
        with self._lock:
            stem: str = self._stemmer.stemWord(word)
        return stem or word


@cache
def stemmer_of(language: str) -> WordStemmer:
    """Return the stemmer of a language, the same one whenever it is asked for."""
    return WordStemmer(language)
