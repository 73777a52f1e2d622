"""Words to letter trigrams: a misspelled or inflected word keeps most of them.

::

    table → #table# → #ta, tab, abl, ble, le#

Source: Das et al. 2016 (ACL), section 3.1, "word hashing"; section 7: "lower-casing, stemming, stopword and special
character removal". The name and the delimiter are those of Huang et al. 2013 (CIKM), section 3.2.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain
from typing import Final

from askalike.text.analyzer import Analyzer
from askalike.text.characters import MARKS, normalised
from askalike.text.settings import TextSettings

DELIMITER: Final = "#"
"""Stands before and after a word; no word holds it."""

_SPECIAL = re.compile(rf"[^\w{MARKS}'\s]|_")
_MOST_WORDS: Final = 1 << 16  # remembered


@lru_cache(maxsize=_MOST_WORDS)
def trigrams(word: str) -> tuple[str, ...]:
    """Return the letter trigrams of a word between two delimiters, in order; a word of n characters has n.

    A digit and a combining mark count as letters. A word of one character is one trigram.

    >>> trigrams("table"), trigrams("c"), trigrams("中")
    (('#ta', 'tab', 'abl', 'ble', 'le#'), ('#c#',), ('#中#',))
    """
    marked = f"{DELIMITER}{word}{DELIMITER}"
    return tuple(marked[begin : begin + 3] for begin in range(len(word)))


class TrigramReader:
    """Turns text into the trigrams of its terms. Safe to share between threads.

    Special characters are taken out before terms are made, so that a path or a version is its words alone: ``22.04`` is
    ``22`` and ``04``, ``c++`` is ``c``. An apostrophe is left to the analyzer, which knows contractions. Letters are
    those of any script; an ideograph is a word, and so one trigram. The settings say whether stop words are dropped and
    words stemmed.

    Reading: a text is its trigrams with repetitions, as the "term vectors" of the paper count terms.

    >>> reader = TrigramReader(TextSettings())
    >>> reader.words("The user's tables: /boot/grub.cfg, 22.04 & C++")
    ['user', 'tabl', 'boot', 'grub', 'cfg', '22', '04', 'c']
    >>> reader.trigrams("The tables, in C++")
    ['#ta', 'tab', 'abl', 'bl#', '#c#']
    """

    def __init__(self, settings: TextSettings) -> None:
        self._analyzer = Analyzer(settings)

    def words(self, text: str) -> list[str]:
        """Return the words whose trigrams are read, in order and with repetitions."""
        return self._analyzer.terms(_SPECIAL.sub(" ", normalised(text)))

    def trigrams(self, text: str) -> list[str]:
        """Return the trigrams of a plain text, in order and with repetitions."""
        return list(chain.from_iterable(map(trigrams, self.words(text))))
