"""How well each word of a query is matched in each candidate, by meaning and by the word itself, and each word back.

::

    s_ij      similarity of the states h_qi and h_Qj                              (10)
    b_i(Q)    max_j s_ij, the best match of w_i in Q                              (11)
    f_i       tf(w_i | C) / Σ_{w ∈ q} tf(w | C)                                   (14)

Source: Zhang and Wu 2018 (AAAI), equations 10, 11 and 14.
Reading: C is "the unlabelled corpus": every text that the autoencoder learned from, comments and answers included. The
paper says nothing of words that C does not hold; they count as if they had occurred once, so
that they are as important as the rarest ones and no factor is zero; more occurrences were tried on dev
(``benchmarks.tune_ramn``).
Differs: words are read without punctuation, which the paper's outputs show. The paper looks from the query alone:
b_j(q) of a candidate's words, with f_j over the candidate's own words, is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.types import WordMatch

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


Frequencies = Callable[[Sequence[str]], NDArray[np.integer]]
"""Words → how often each occurred in the corpus C, ≥ 0.  # (T,)"""


@dataclass(frozen=True, slots=True)
class Backwards:
    """The words of N candidates, M in all and one candidate's after the other's, beside the query.

    Args:
        lengths: words of each candidate.  # (N,)
        best: b_j(q).  # (M,) float32
        occurs: whether the query has the word itself.  # (M,) bool
        importance: f_j in (0, 1], shares of a candidate's own words.  # (M,) float64
    """

    lengths: NDArray[np.intp]
    best: Floats
    occurs: NDArray[np.bool_]
    importance: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A query of T words beside N candidates.

    Args:
        words: of the query.
        best: b_i(Q), -inf where a candidate has no words.  # (T, N) float32
        occurs: whether the candidate has the word itself.  # (T, N) bool
        importance: f_i in (0, 1]; small is important.  # (T,) float64
        backwards: the candidates' words beside the query, where both directions were asked for.
    """

    words: tuple[str, ...]
    best: Floats
    occurs: NDArray[np.bool_]
    importance: NDArray[np.float64]
    backwards: Backwards | None = None


def compare(
    query: WordStates,
    candidates: Sequence[WordStates],
    frequencies: Frequencies,
    similarity: Similarity = "dot",
    *,
    is_both_ways: bool = False,
) -> Comparison:
    """Return how a query compares with each of its candidates, in one product of all states.

    Args:
        is_both_ways: compare the candidates' words with the query too.

    Raises:
        ValueError: states of different sizes.
    """
    lengths = np.array([len(candidate.words) for candidate in candidates], dtype=np.intp)
    starts = np.cumsum(lengths) - lengths
    best = np.full((len(query.words), len(candidates)), -np.inf, np.float32)
    has_words = lengths > 0
    words = [word for candidate in candidates for word in candidate.words]
    numbers: dict[str, int] = {}  # those of the query's words first
    own = _numbered(query.words, numbers)
    distinct = len(numbers)
    theirs = _numbered(words, numbers)
    held = theirs < distinct
    has_word = np.zeros((distinct, len(candidates)), np.bool_)
    has_word[theirs[held], np.repeat(np.arange(len(candidates)), lengths)[held]] = True
    back = np.full(len(words), -np.inf, np.float32)
    if query.words and words:
        states = np.concatenate([candidate.states for candidate in candidates if candidate.words])
        found = similarities(query.states, states, similarity)  # (T, M)
        best[:, has_words] = np.maximum.reduceat(found, starts[has_words], axis=1)
        back = found.max(axis=0) if is_both_ways else back
    counted = frequencies(list(numbers)[: None if is_both_ways else distinct])
    shares = importance(counted[own])
    if not is_both_ways:
        return Comparison(query.words, best, has_word[own], shares)
    theirs_shares = _shares(np.maximum(counted[theirs], 1), lengths) if words else np.zeros(0)
    return Comparison(query.words, best, has_word[own], shares, Backwards(lengths, back, held, theirs_shares))


def _numbered(words: Sequence[str], numbers: dict[str, int]) -> NDArray[np.intp]:
    """Return the number of each word; new ones are numbered on."""
    return np.array([numbers.setdefault(word, len(numbers)) for word in words], dtype=np.intp)


def importance(frequencies: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return f_i, equation 14, of words that occurred so often; one that never did counts as one that did once.

    Example:
        >>> importance(np.array([6, 3, 0])).tolist()
        [0.6, 0.3, 0.1]
    """
    counted = np.maximum(frequencies, 1).astype(np.float64)
    return np.asarray(counted / counted.sum()) if len(counted) else counted


def _shares(counted: NDArray[np.integer], lengths: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return f_j of the words of several texts, one text after the other.  # (M,)"""
    has_words = lengths > 0
    starts = (np.cumsum(lengths) - lengths)[has_words]
    totals = np.add.reduceat(counted.astype(np.float64), starts)
    return np.asarray(counted / np.repeat(totals, lengths[has_words]))
