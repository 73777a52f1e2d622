"""How many of a text's words are a language's function words: whether it reads like that language at all.

Of running text in English they are a third or more, whatever it is about; of text in another language, next to none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from askalike.text.stop_words import STOP_WORDS
from askalike.text.tokens import words

LEAST_SHARE: Final = 0.12
"""Below it a text does not read like the language: English forums measure from 0.34 (their titles alone from 0.22),
forums in nine other languages at most 0.07 (0.09); see LOG.md."""

_LEAST_WORDS: Final = 50
_MOST_WORDS: Final = 20_000


def function_word_share(texts: Iterable[str], language: str) -> float | None:
    """Return the share of the words of some texts that are function words of a language, in [0, 1].

    At most about 20,000 words are read. None where the language has no list, or there are fewer than 50 words: too few
    to tell by.

    >>> function_word_share(["The router is in the cellar and nobody hears it"] * 5, "english")
    0.6
    >>> function_word_share(["Der Router steht im Keller"], "english")  # too few words
    """
    listed, read, found = STOP_WORDS.get(language), 0, 0
    if listed is None:
        return None
    for text in texts:
        held = words(text)
        read += len(held)
        found += sum(word in listed for word in held)
        if read >= _MOST_WORDS:
            break
    return found / read if read >= _LEAST_WORDS else None


def reads_like(texts: Iterable[str], language: str) -> bool | None:
    """Return whether some texts read like a language; None where nothing can be told.

    >>> reads_like(["Der Router steht im Keller und niemand hört ihn"] * 6, "english")
    False
    """
    share = function_word_share(texts, language)
    return None if share is None else share >= LEAST_SHARE
