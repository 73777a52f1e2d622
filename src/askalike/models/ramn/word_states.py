"""Texts as an encoder sees them word by word, and how alike words are.

Enters: states of words. Leaves: similarities, ``WordMatch`` values. May import: types.
"""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.types import WordMatch

__all__ = ["Similarity", "WordStates", "similarities", "word_matches"]

Floats = NDArray[np.float32]
Similarity = Literal["dot", "cosine", "shifted-cosine"]

_TINY = np.float32(1e-12)


class WordStates(Protocol):
    """A text as an encoder sees it."""

    @property
    def words(self) -> tuple[str, ...]:
        """Return the words that were read."""

    @property
    def states(self) -> Floats:
        """Return the state of each word.  # (T, D) float32"""


def similarities(own: Floats, theirs: Floats, similarity: Similarity) -> Floats:
    """Return s_ij of the states of a query (T, D) and of a candidate (M, D).  # (T, M)

    Example:
        Of (3, 4) and (4, 3): 24, 24/25 and (1 + 24/25)/2:

        >>> pair = np.array([[3.0, 4.0]], np.float32), np.array([[4.0, 3.0]], np.float32)
        >>> [round(float(similarities(*pair, name)[0, 0]), 2) for name in ("dot", "cosine", "shifted-cosine")]
        [24.0, 0.96, 0.98]
    """
    if similarity == "dot":
        return np.asarray(own @ theirs.T)
    found = own @ theirs.T
    found *= _inverse_lengths(own)[:, None]
    found *= _inverse_lengths(theirs)
    if similarity == "shifted-cosine":
        found += 1
        found /= 2
    return np.asarray(found)


def word_matches(
    asked: WordStates, read: WordStates, importance: NDArray[np.floating], similarity: Similarity = "cosine"
) -> tuple[WordMatch, ...]:
    """Return for each word of a query what is most like it in another text, and their cosine; none without words.

    Args:
        importance: of the query's words, in [0, 1].  # (T,)
        similarity: by which the most like is chosen.
    """
    if not (asked.words and read.words):
        return ()
    cosines = similarities(asked.states, read.states, "cosine")
    chosen = cosines if similarity == "cosine" else similarities(asked.states, read.states, similarity)
    held = set(read.words)
    return tuple(
        WordMatch(word, read.words[best], float(row[best]), float(weight), word not in held)
        for word, row, best, weight in zip(
            asked.words, cosines, chosen.argmax(axis=1).tolist(), importance.tolist(), strict=True
        )
    )


def _inverse_lengths(states: Floats) -> Floats:
    """Return 1/|h| of each state: there are fewer products than numbers in all states to be brought to length 1."""
    return np.asarray(1 / np.maximum(np.sqrt(np.einsum("td,td->t", states, states)), _TINY))
