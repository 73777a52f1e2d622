"""RAMN, the reduced attentive matching network: an unsupervised ranker over the hidden states of an autoencoder.

**Comparison.** How well each word of a query is matched in each candidate, and each word back.

::

    s_ij      similarity of the states h_qi and h_Qj                              (10)
    b_i(Q)    max_j s_ij, the best match of w_i in Q                              (11)
    f_i       tf(w_i | C) / Σ_{w ∈ q} tf(w | C)                                   (14)

Source: Zhang and Wu 2018 (AAAI), equations 10, 11 and 14.
Reading: C is "the unlabelled corpus": every text that the autoencoder learned from, comments and answers included. The
paper says nothing of words that C does not hold; they count as if they had occurred once, so that
they are as important as the rarest ones and no factor is zero; more occurrences were tried on dev
(LOG.md).
Differs: words are read without punctuation, which the texts that the paper prints have. The paper looks from the query
alone: b_j(q) of a candidate's words, with f_j over the candidate's own words, is ours.

**Score.** The three layers, switched one by one.

::

    d_i       1 if w_i occurs in Q, else f_i                                      the reduced vector, (16)
    g(w_i,Q)  d_i^γ · b_i(Q)                                                      (17), γ = 1
    R         1 - α · rank(Q)                                                     (18)
    g(q,Q)    R · Π_i g(w_i, Q)                                                   (19)
    both      R · √(Π_i g(w_i, Q)^(1/T) · Π_j g(w_j, q)^(1/M))                   of T words and of M

Source: Zhang and Wu 2018 (AAAI), equations 12 and 16 to 19.
Differs: the product over up to 128 words is a sum of logarithms. The paper does not say what becomes of products ≤ 0:
here a similarity counts as at least a small positive number, ``floor``. Nor of a word that the query repeats: each of
its occurrences is a factor, or the best one alone; dev chose between these, and among floors (docs/results.md). Nor of
texts without words: a candidate without any has the floor for every word of the query, and beside a query without any
the rank alone counts. Both directions are ours.
Reading: the rank is the one that the search engine gave ("the initial rank produced by an external search engine"),
which goes up to 166 where ten candidates were taken of more. R is then 0 or less from a rank of 1/α on, of which the
paper says nothing: ``signed`` has it as the formula does, so that those come last, the best match of them the very
last; ``clamped`` lets them count as a millionth, so that they come last in the order of their matches. ``scaled`` is
for positions 1 to N: where N is above ten the rank counts as 10 · rank / N, and R is never negative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.settings import check_settings

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


Repeats = Literal["each", "once"]
RankFactor = Literal["scaled", "clamped", "signed"]
"""What R is where 1 - α · rank would be 0 or less, see above."""

ALPHAS: Final = tuple(round(0.01 + 0.005 * step, 3) for step in range(19))
"""The paper's grid for α: 0.01, 0.015, … 0.1."""


@dataclass(frozen=True, slots=True)
class RamnSettings:
    """RAMN, but for the states and frequencies that it compares.

    Args:
        has_mismatch: the second layer, lexical mismatch; without it d_i = 1.
        alpha: α of the third layer, the rank factor 1 - α · rank, in [0, 0.1]; 0 leaves it out.
        similarity: s_ij: the ``dot`` product, the ``cosine``, or ``shifted-cosine``, (1 + cos) / 2.
        floor: what a similarity counts at least, in [10⁻⁹, 1]: its logarithm is taken.
        repeats: words that the query has more than once: ``each`` occurrence is a factor of the product, or the word
            ``once``, with the best match of its occurrences.
        mismatch_weight: γ in [0, 10]: d_i^γ stands for d_i; 1 is the paper's. With much more, scores would come to 0,
            which says that there is no hit.
        is_per_word: the geometric mean of the factors of all words stands for their product; the rank factor then
            counts as much beside a long query as beside a short one.
        is_both_ways: the candidate's words are matched in the query too, and the mean of both counts, so that a long
            candidate, which has something for every word, is not above a short one that says the same. It takes
            ``is_per_word`` and the words as often as they occur.
        rank_factor: ``scaled`` for positions among the candidates; ``clamped`` or ``signed`` for an engine's ranks.
    """

    has_mismatch: bool = True
    alpha: float = 0.035
    similarity: Similarity = "dot"
    floor: float = 1e-3
    repeats: Repeats = "each"
    mismatch_weight: float = 1.0
    is_per_word: bool = False
    is_both_ways: bool = False
    rank_factor: RankFactor = "scaled"

    def __post_init__(self) -> None:
        check_settings(self)
        if self.is_both_ways and not (self.is_per_word and self.repeats == "each"):
            raise SettingError(
                f"is_both_ways with is_per_word {self.is_per_word} and repeats {self.repeats!r}",
                'texts of different lengths can be joined per word only: set is_per_word, and repeats to "each"',
            )


Doubles = NDArray[np.float64]

CANDIDATES = 10
"""Of a query, in the paper's data."""

_LEAST = 1e-6


def reduced(importance: Doubles, occurs: NDArray[np.bool_]) -> Doubles:
    """Return d_i for each candidate: 1 where the word occurs in it, else f_i.  # (T, N)

    Example:
        The paper's, equations 15 and 16: "We propose an unsupervised model" beside "We propose a supervised model".

        >>> importance = np.array([0.5401, 0.0075, 0.4221, 0.0008, 0.0295])
        >>> reduced(importance, np.array([[True], [True], [False], [False], [True]]))[:, 0].tolist()
        [1.0, 1.0, 0.4221, 0.0008, 1.0]
    """
    return np.where(occurs, 1.0, importance[:, None])


def rank_factors(ranks: NDArray[np.integer], alpha: float, kind: RankFactor = "scaled") -> Doubles:
    """Return R of candidates at these ranks, 1 being the best.  # (N,)

    Example:
        >>> [rank_factors(np.array([1, 40]), 0.05, kind).round(3).tolist() for kind in ("signed", "clamped")]
        [[0.95, -1.0], [0.95, 0.0]]
        >>> rank_factors(np.array([1, 2, 10]), 0.05).round(3).tolist()
        [0.95, 0.9, 0.5]
        >>> rank_factors(np.arange(1, 21), 0.05)[[0, 19]].round(3).tolist()
        [0.975, 0.5]
    """
    if kind == "signed":
        return np.asarray(1 - alpha * ranks)
    most = max(CANDIDATES, int(ranks.max(initial=0))) if kind == "scaled" else CANDIDATES
    return np.maximum(1 - alpha * ranks * CANDIDATES / most, _LEAST)


def in_order(logs: Doubles, factors: Doubles) -> Doubles:
    """Return numbers in the order of g, which may be negative, and too small for a float.

    Args:
        logs: log |g| of a query's candidates, -inf where R is 0.  # (N,)
        factors: their R.  # (N,)

    Example:
        Of R > 0 the better match is above, of R < 0 below, and R = 0 is between.

        >>> logs = np.array([-900.0, -950.0, -np.inf, -950.0, -900.0])
        >>> in_order(logs, np.array([0.5, 0.5, 0.0, -1.0, -1.0])).tolist()
        [51.0, 1.0, 0.0, -1.0, -51.0]
    """
    counts = factors != 0
    least = float(logs[counts].min(initial=0.0)) if counts.any() else 0.0
    return np.where(counts, np.sign(factors) * (1 + np.where(counts, logs, least) - least), 0.0)


def log_scores(comparison: Comparison, ranks: NDArray[np.integer], settings: RamnSettings) -> Doubles:
    """Return log g(q, Q) of each candidate; of a query without words log R alone; under ``signed`` log |g|.  # (N,)

    Args:
        ranks: place of each candidate in the search that found it, ≥ 1.  # (N,)

    Raises:
        ValueError: both directions are to count, but the comparison was made in one.

    Example:
        Two words, the second is missing in the only candidate, α = 0.1 at rank 1: 0.9 · (1 · 2) · (0.25 · 0.5).

        >>> seen = Comparison(
        ...     ("a", "b"), np.array([[2.0], [0.5]], np.float32), np.array([[True], [False]]), np.array([0.75, 0.25])
        ... )
        >>> round(float(np.exp(log_scores(seen, np.array([1]), RamnSettings(alpha=0.1)))[0]), 4)
        0.225
    """
    factors = np.log(np.maximum(comparison.best.astype(np.float64), settings.floor))  # (T, N)
    if settings.has_mismatch:
        factors += settings.mismatch_weight * np.log(reduced(comparison.importance, comparison.occurs))
    if settings.repeats == "once":
        factors = _once(factors, comparison.words)
    matched = factors.sum(axis=0)
    if settings.is_per_word:
        matched /= max(1, len(factors))
    if settings.is_both_ways and comparison.words:
        matched = (matched + backward_means(_backwards(comparison), settings)) / 2
    factors = np.abs(rank_factors(ranks, settings.alpha, settings.rank_factor))
    with np.errstate(divide="ignore"):  # R is 0
        return np.asarray(np.log(factors) + matched)


def backward_means(found: Backwards, settings: RamnSettings) -> Doubles:
    """Return the mean of log g(w_j, q) over each candidate's words; log of the floor for one without any.  # (N,)

    Example:
        Two words of one candidate, the second is not in the query: (log 0.5 + log(1 · 0.25)) / 2.

        >>> seen = Backwards(
        ...     np.array([2]), np.array([0.5, 1.0], np.float32), np.array([True, False]), np.array([0.75, 0.25])
        ... )
        >>> round(float(np.exp(backward_means(seen, RamnSettings()))[0]), 4)
        0.3536
    """
    factors = np.log(np.maximum(found.best.astype(np.float64), settings.floor))  # (M,)
    if settings.has_mismatch:
        factors += settings.mismatch_weight * np.log(np.where(found.occurs, 1.0, found.importance))
    means = np.full(len(found.lengths), np.log(settings.floor))
    has_words = found.lengths > 0
    if len(factors):
        starts = (np.cumsum(found.lengths) - found.lengths)[has_words]
        means[has_words] = np.add.reduceat(factors, starts) / found.lengths[has_words]
    return means


def scores(comparison: Comparison, ranks: NDArray[np.integer], settings: RamnSettings) -> Doubles:
    """Return g(q, Q) per word, in the order of ``log_scores``: its T-th root, a number that can be shown.  # (N,)"""
    found = log_scores(comparison, ranks, settings)
    return np.asarray(np.exp(found if settings.is_per_word else found / max(1, len(comparison.words))))


def _backwards(comparison: Comparison) -> Backwards:
    if comparison.backwards is None:
        raise ValueError("the comparison was made in one direction; compare(…, is_both_ways=True) makes it in both")
    return comparison.backwards


def _once(factors: Doubles, words: tuple[str, ...]) -> Doubles:
    """Return one row for each distinct word: the largest of its occurrences."""
    numbers: dict[str, int] = {}
    places = np.array([numbers.setdefault(word, len(numbers)) for word in words], dtype=np.intp)
    found = np.full((len(numbers), factors.shape[1]), -np.inf)
    np.maximum.at(found, places, factors)
    return found
