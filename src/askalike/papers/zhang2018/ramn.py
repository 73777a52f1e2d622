"""RAMN, the reduced attentive matching network: an unsupervised ranker over the hidden states of an autoencoder.

**Comparison.** How well each word of a query is matched in each candidate.

::

    s_ij      similarity of the states h_qi and h_Qj                              (10)
    b_i(Q)    max_j s_ij, the best match of w_i in Q                              (11)
    f_i       tf(w_i | C) / Σ_{w ∈ q} tf(w | C)                                   (14)

Reading: C is "the unlabelled corpus": every text that the autoencoder learned from, comments and answers included. The
paper says nothing of words that C does not hold; they count as if they had occurred once, so that they are as important
as the rarest ones and no factor is zero.
Differs: words are read without punctuation, which the texts that the paper prints have.

**Score.** The three layers, switched one by one.

::

    d_i       1 if w_i occurs in Q, else f_i                                      the reduced vector, (16)
    g(w_i,Q)  d_i · b_i(Q)                                                        (17)
    R         1 - α · rank(Q)                                                     (18)
    g(q,Q)    R · Π_i g(w_i, Q)                                                   (19)

Source: Zhang and Wu 2018 (AAAI), equations 10 to 12, 14 and 16 to 19.
Differs: the product over up to 128 words is a sum of logarithms. The paper does not say what becomes of products ≤ 0:
here a similarity counts as at least a small positive number, ``floor``. Nor of a word that the query repeats: each of
its occurrences is a factor. Nor of texts without words: a candidate without any has the floor for every word of the
query, and beside a query without any the rank alone counts.
Reading: the rank is the one that the search engine gave ("the initial rank produced by an external search engine"),
which goes up to 166 where ten candidates were taken of more. R is then 0 or less from a rank of 1/α on, of which the
paper says nothing: ``signed`` has it as the formula does, so that those come last, the best match of them the very
last; ``clamped`` lets them count as a millionth, so that they come last in the order of their matches. ``scaled`` is
for positions 1 to N: where N is above ten the rank counts as 10 · rank / N, and R is never negative.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, Protocol

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from askalike.errors import DamagedModelError
from askalike.evaluation.forum.tasks import RerankTask
from askalike.models.encoders.model import Model, WordStates
from askalike.settings import check_fields
from askalike.types import Question, Run

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Flags = NDArray[np.bool_]
Similarity = Literal["dot", "cosine"]
RankFactor = Literal["scaled", "clamped", "signed"]
"""What R is where 1 - α · rank would be 0 or less, see above."""

ALPHAS: Final = tuple(round(0.01 + 0.005 * step, 3) for step in range(19))
"""The paper's grid for α: 0.01, 0.015, … 0.1."""
CANDIDATES: Final = 10
"""Of a query, in the paper's data."""
_TINY = np.float32(1e-12)
_LEAST: Final = 1e-6


class StateSource(Protocol):
    """Knows the states of texts, and the corpus that they were learned from."""

    def states(self, questions: Sequence[Question], /) -> Sequence[WordStates]:
        """Return the words and states of questions, in their order."""

    def frequencies(self, words: Sequence[str], /) -> NDArray[np.integer]:
        """Return how often each word occurred in the corpus, ≥ 0.  # (T,)"""


class ModelStates:
    """The states of an autoencoder's encoder.

    Args:
        model: knows how often each word occurred in what it was trained on.

    Raises:
        DamagedModelError: the model knows no frequencies.
    """

    def __init__(self, model: Model) -> None:
        if model.counts is None:
            raise DamagedModelError("the model does not say how often its words occur", "train it again")
        self.states, self._vocabulary, self._counts = model.states, model.vocabulary, model.counts

    def frequencies(self, words: Sequence[str]) -> NDArray[np.integer]:
        """Return how often each word occurred in the texts that were learned from, 0 for one that did not.  # (T,)"""
        ids = np.array(self._vocabulary.ids(words), dtype=np.intp)
        return np.where(ids > 0, self._counts[ids], 0)


def similarities(own: Floats, theirs: Floats, similarity: Similarity) -> Floats:
    """Return s_ij of the states of a query (T, D) and of a candidate (M, D).  # (T, M)

    Example:
        Of (3, 4) and (4, 3): 24 and 24/25:

        >>> pair = np.array([[3.0, 4.0]], np.float32), np.array([[4.0, 3.0]], np.float32)
        >>> [round(float(similarities(*pair, name)[0, 0]), 2) for name in ("dot", "cosine")]
        [24.0, 0.96]
    """
    products = own @ theirs.T
    if similarity == "cosine":
        lengths = [np.maximum(np.sqrt(np.einsum("td,td->t", states, states)), _TINY) for states in (own, theirs)]
        products /= lengths[0][:, None] * lengths[1]
    return np.asarray(products)


def importance(frequencies: NDArray[np.integer]) -> Doubles:
    """Return f_i, equation 14, of words that occurred so often; one that never did counts as one that did once.

    Example:
        >>> importance(np.array([6, 3, 0])).tolist()
        [0.6, 0.3, 0.1]
    """
    counted = np.maximum(frequencies, 1).astype(np.float64)
    return np.asarray(counted / counted.sum()) if len(counted) else counted


@dataclass(frozen=True, slots=True)
class Comparison:
    """A query of T words beside N candidates.

    Args:
        best: b_i(Q), -inf where a candidate has no words.  # (T, N) float32
        occurs: whether the candidate has the word itself.  # (T, N)
        importance: f_i in (0, 1]; small is important.  # (T,)
    """

    best: Floats
    occurs: Flags
    importance: Doubles


def compare(
    query: WordStates,
    candidates: Sequence[WordStates],
    frequencies: Callable[[Sequence[str]], NDArray[np.integer]],
    similarity: Similarity = "dot",
) -> Comparison:
    """Return how a query compares with each of its candidates.

    Raises:
        ValueError: states of different sizes.
    """
    best = np.full((len(query.words), len(candidates)), -np.inf, np.float32)
    for place, candidate in enumerate(candidates):
        if query.words and candidate.words:
            best[:, place] = similarities(query.states, candidate.states, similarity).max(axis=1)
    theirs = [set(candidate.words) for candidate in candidates]
    occurs = np.array([[word in words for words in theirs] for word in query.words], np.bool_).reshape(best.shape)
    return Comparison(best, occurs, importance(frequencies(query.words)))


@dataclass(frozen=True, slots=True)
class RamnSettings:
    """RAMN, but for the states and frequencies that it compares.

    Args:
        has_mismatch: the second layer, lexical mismatch; without it d_i = 1.
        alpha: α of the third layer, the rank factor 1 - α · rank, in [0, 0.1]; 0 leaves it out.
        similarity: s_ij: the ``dot`` product, which is the paper's, or the ``cosine``.
        floor: what a similarity counts at least, in [10⁻⁹, 1]: its logarithm is taken.
        rank_factor: ``scaled`` for positions among the candidates; ``clamped`` or ``signed`` for an engine's ranks.
    """

    has_mismatch: bool = True
    alpha: Annotated[float, Meta(ge=0, le=0.1)] = 0.035
    similarity: Similarity = "dot"
    floor: Annotated[float, Meta(ge=1e-9, le=1)] = 1e-3
    rank_factor: RankFactor = "scaled"

    def __post_init__(self) -> None:
        check_fields(self)


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

    Example:
        Two words, the second is missing in the only candidate, α = 0.1 at rank 1: 0.9 · (1 · 2) · (0.25 · 0.5).

        >>> best, occurs = np.array([[2.0], [0.5]], np.float32), np.array([[True], [False]])
        >>> comparison = Comparison(best, occurs, np.array([0.75, 0.25]))
        >>> round(float(np.exp(log_scores(comparison, np.array([1]), RamnSettings(alpha=0.1)))[0]), 4)
        0.225
    """
    factors = np.log(np.maximum(comparison.best.astype(np.float64), settings.floor))  # (T, N)
    if settings.has_mismatch:
        factors += np.log(np.where(comparison.occurs, 1.0, comparison.importance[:, None]))
    rank = np.abs(rank_factors(ranks, settings.alpha, settings.rank_factor))
    with np.errstate(divide="ignore"):  # R is 0
        return np.asarray(np.log(rank) + factors.sum(axis=0))


@dataclass(frozen=True, slots=True)
class Ramn:
    """RAMN over one autoencoder; it re-ranks a search's hits, as any object with ``score`` does."""

    source: StateSource
    settings: RamnSettings = field(default_factory=RamnSettings)

    def score(self, query: Question, questions: Sequence[Question]) -> Doubles:
        """Return scores in the order of g(q, Q); the initial rank of a question is its place.  # (N,)"""
        own, *theirs = self.source.states([query, *questions])
        comparison = compare(own, theirs, self.source.frequencies, self.settings.similarity)
        return ordered_scores(comparison, np.arange(1, len(questions) + 1), self.settings)


def ordered_scores(comparison: Comparison, ranks: NDArray[np.integer], settings: RamnSettings) -> Doubles:
    """Return finite numbers in the order of g(q, Q), which a negative R turns round.  # (N,)"""
    logs = log_scores(comparison, ranks, settings)
    if settings.rank_factor != "signed":
        return logs
    return in_order(logs, rank_factors(ranks, settings.alpha, "signed"))


def engine_ranks(candidates: Sequence[tuple[str, float]]) -> NDArray[np.int64]:
    """Return the ranks of candidates that have 1 / rank as their score, as SemEval's are read.  # (N,)

    >>> engine_ranks([("a", 1.0), ("b", 1 / 7), ("c", 1 / 166)]).tolist()
    [1, 7, 166]
    """
    return np.array([round(1 / score) for _, score in candidates], dtype=np.int64)


@dataclass
class Matcher:
    """RAMN with one autoencoder on whole tasks; what does not depend on the settings is computed once."""

    source: StateSource
    _compared: dict[tuple[str, Similarity], Mapping[str, Comparison]] = field(default_factory=dict)

    def run(self, task: RerankTask, settings: RamnSettings) -> Run:
        """Return every query's candidates, in their given order, with scores in the order of g(q, Q).

        The initial rank is the position among the candidates where the rank factor is ``scaled``, otherwise the rank
        that the search engine gave.
        """
        compared = self.comparisons(task, settings.similarity)
        run: Run = {}
        for query, candidates in task.given.items():
            is_scaled = settings.rank_factor == "scaled"
            ranks = np.arange(1, len(candidates) + 1) if is_scaled else engine_ranks(candidates)
            scores = ordered_scores(compared[query], ranks, settings).tolist()
            run[query] = [(document, score) for (document, _), score in zip(candidates, scores, strict=True)]
        return run

    def comparisons(self, task: RerankTask, similarity: Similarity) -> Mapping[str, Comparison]:
        """Return each query beside its candidates."""
        key = (task.name, similarity)
        if key not in self._compared:
            compared: dict[str, Comparison] = {}
            for query, candidates in task.given.items():
                texts = [task.queries[query], *(task.documents[document] for document, _ in candidates)]
                own, *theirs = self.source.states(texts)
                compared[query] = compare(own, theirs, self.source.frequencies, similarity)
            self._compared[key] = compared
        return self._compared[key]
