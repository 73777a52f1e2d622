"""How well each word of a query is matched in each candidate, by meaning and by the word itself, and each word back.

::

    s_ij      similarity of the states h_qi and h_Qj                              (10)
    b_i(Q)    max_j s_ij, the best match of w_i in Q                              (11)
    f_i       tf(w_i | C) / Σ_{w ∈ q} tf(w | C)                                   (14)

Enters: words and states of a query and of its candidates; frequencies. Leaves: a ``Comparison``, from which every
variant of the score follows without another look at the states. May import: rank's word states.

Source: Zhang and Wu 2018 (AAAI), equations 10, 11 and 14.
Differs: C is every text that the autoencoder learned from, in a forum its answers too; the paper counts in its archive
of questions. The paper says nothing of words that C does not hold; they count as if they had occurred once, so
that they are as important as the rarest ones and no factor is zero; more occurrences were tried on dev
(``benchmarks.tune_ramn``). The paper looks from the query alone: b_j(q) of a
candidate's words, with f_j over the candidate's own words, is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askalike.models.ramn.word_states import Similarity, WordStates, similarities

__all__ = ["Backwards", "Comparison", "Frequencies", "compare", "importance"]

Floats = NDArray[np.float32]
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
    marks = np.zeros((distinct, len(candidates)), np.bool_)
    marks[theirs[held], np.repeat(np.arange(len(candidates)), lengths)[held]] = True
    back = np.full(len(words), -np.inf, np.float32)
    if query.words and words:
        states = np.concatenate([candidate.states for candidate in candidates if candidate.words])
        found = similarities(query.states, states, similarity)  # (T, M)
        best[:, has_words] = np.maximum.reduceat(found, starts[has_words], axis=1)
        back = found.max(axis=0) if is_both_ways else back
    counted = frequencies(list(numbers)[: None if is_both_ways else distinct])
    shares = importance(counted[own])
    if not is_both_ways:
        return Comparison(query.words, best, marks[own], shares)
    theirs_shares = _shares(np.maximum(counted[theirs], 1), lengths) if words else np.zeros(0)
    return Comparison(query.words, best, marks[own], shares, Backwards(lengths, back, held, theirs_shares))


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
