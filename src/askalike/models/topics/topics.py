"""The question-answer topic model (QATM): which topics a text is about, and a query's likelihood by words and topics.

::

    θ_d ~ Dirichlet(α)                                     the topics of a question and of its answers: the same
    each word of the question: z ~ θ_d, w ~ φ_z            in the language of questions
    each word of the answers:  z ~ θ_d, w ~ ψ_z            in the language of answers

A text's topics are found by variational inference, with φ and ψ as they were learned:

::

    γ_z    = α + Σ_w n_w · r_wz,        r_wz ∝ exp(Ψ(γ_z)) · φ_zw,       Ψ the digamma function
    θ_z(d) = γ_z / Σ_z γ_z

n_w counts a word, r_wz is the share of topic z in it; ψ stands for φ in words of answers.

A candidate makes a query by its words and by its topics::

    P(w|D) = λ · P_words(w|D) + (1 - λ) · Σ_z φ_zw θ_z(D)

P_words is any other model of words, smoothed with the collection: query likelihood, or a translation model beside which
the topics are a second, coarser way from word to word. A candidate of which no word was learned has no topics; P(w|C)
stands for them.

Source: Ji, Xu, Wang and He 2012 (CIKM) for the model, which adds topics to a translation-based language model; Zhang,
Wu, Wu, Li and Zhou 2014 (CIKM), a topic-based language model; Wei and Croft 2006 (SIGIR), for topics beside words in a
query's likelihood; Blei, Ng and Jordan 2003 (JMLR 3), section 5.2, for inference.
Reading: the papers of 2012 and 2014 are from memory; the equation of P(w|D) is that of Wei and Croft; Ji et al.,
as far as is known, infer by sampling. Das et al. 2016 name their two rows QATM-PR and TBLM_SQATM-V; what PR stands for
is not in what could be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.query_likelihood.likelihood import QueryModel
from askalike.models.query_likelihood.terms import TermLists

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

_WORDS_AT_ONCE = 8192
"""So many rows of topics fit into a processor's cache."""


@dataclass(frozen=True, slots=True)
class WordCounts:
    """How often each word occurs in each of N texts.

    Args:
        values: > 0, text by text.  # (C,)
        columns: the word of each, ascending within a text.  # (C,)
        starts: where each text begins, and C.  # (N + 1,)
        width: how many words there could be.
    """

    values: Floats
    columns: Ids
    starts: Ids
    width: int

    def totals(self) -> Floats:
        """Return the sum of each text's counts.  # (N,)"""
        rows = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        return np.bincount(rows, self.values, minlength=len(self.starts) - 1).astype(np.float64, copy=False)

    def pieces(self) -> Iterator[tuple[int, int]]:
        """Yield first and last + 1 of so many texts as have about ``_WORDS_AT_ONCE`` numbers together."""
        cuts = np.flatnonzero(np.diff(self.starts[:-1] // _WORDS_AT_ONCE)) + 1
        yield from pairwise([0, *cuts.tolist(), len(self.starts) - 1])


@dataclass(frozen=True, slots=True)
class Topics:
    """K topics in the language of questions and in that of answers.

    Args:
        questions: φ, the probability of each word of a question in each topic; columns sum to 1.  # (V, K) float32
        answers: ψ, of each word of an answer.  # (V, K) float32
        alpha: α > 0, of each topic.
        answer_weight: what a word of an answer counts beside one of a question, ≥ 0.

    Example:
        Two topics with a word each, α = 0.5: a text of the first word alone is about the first topic by
        (0.5 + 1) / (0.5 + 1 + 0.5) = 0.75; one without words is about both alike. In answers, 1 and 2 change places.

        >>> held = np.array([[0, 0], [1, 0], [0, 1]], np.float32)
        >>> topics = Topics(held, held[:, ::-1], alpha=0.5)
        >>> topics.mixtures(TermLists.of([[1], []])).tolist()
        [[0.75, 0.25], [0.5, 0.5]]
        >>> topics.mixtures(TermLists.of([[1]]), TermLists.of([[2, 2]])).round(3).tolist()  # 3.5 / 4
        [[0.875, 0.125]]
    """

    questions: NDArray[np.float32]
    answers: NDArray[np.float32]
    alpha: float
    answer_weight: float = 1.0

    @classmethod
    def none(cls) -> Topics:
        """Return topics of no word."""
        held = np.zeros((1, 1), np.float32)
        return cls(held, held, alpha=1.0)

    def mixtures(self, questions: TermLists, answers: TermLists | None = None, iterations: int = 20) -> Floats:
        """Return θ of each text: uniform for one without words that were learned.  # (N, K)

        Args:
            questions: N texts in the language of questions: queries, or questions of a forum.
            answers: those of each, in the language of answers.
            iterations: of the equations above, beginning with all topics alike; each text has as many, so that it has
                the same topics among others as alone.
        """
        size = len(self.questions)
        weights = None if answers is None else np.full(len(answers.ids), self.answer_weight)
        counts, words = self._occurring(pair_counts(questions, answers, size, weights))
        gamma = first_gamma(counts, self.alpha, words.shape[1])
        for _ in range(iterations):
            shared, gamma_of = responsibilities(counts, words, gamma)
            found = np.zeros_like(gamma)
            for first, last in counts.pieces():
                places = slice(counts.starts[first], counts.starts[last])
                own = shared[places, None] * words[counts.columns[places]]
                has_words = np.diff(counts.starts[first : last + 1]) > 0
                starts = counts.starts[first:last][has_words] - counts.starts[first]
                if len(starts):
                    found[first:last][has_words] = np.add.reduceat(own, starts)
            gamma = self.alpha + gamma_of * found
        return np.asarray(gamma / gamma.sum(axis=1, keepdims=True))

    def _occurring(self, counts: WordCounts) -> tuple[WordCounts, Floats]:
        """Return counts with a column for each word that occurs, and φ or ψ of those words.  # (N, W), (W, K)"""
        size = len(self.questions)
        columns, places = np.unique(counts.columns, return_inverse=True)
        of_questions, of_answers = columns[columns < size], columns[columns >= size] - size
        words = np.concatenate([self.questions[of_questions], self.answers[of_answers]]).astype(np.float64)
        return WordCounts(counts.values, places, counts.starts, len(columns)), words

    def probabilities(self, words: Ids, mixtures: Floats) -> Floats:
        """Return ``Σ_z φ_zw θ_z(d)``, 0 for a word that was never learned.  # (T, N)

        Args:
            mixtures: θ.  # (N, K)
        """
        is_known = (words > 0) & (words < len(self.questions))
        held = self.questions[np.where(is_known, words, 0)].astype(np.float64) * is_known[:, None]
        return np.asarray(held @ mixtures.T)


def pair_counts(
    questions: TermLists, answers: TermLists | None, size: int, weights: Floats | None = None
) -> WordCounts:
    """Return how often each word occurs in each question, and then the same of its answers.  # (N, 2V)

    Args:
        answers: those of each question, as one text; None for none.
        size: V, ids of the vocabulary with 0; what the vocabulary lacks is left out.
        weights: how much each term of the answers counts, ≥ 0; None for 1.  # (M,)

    >>> made = pair_counts(TermLists.of([[1, 1, -5]]), TermLists.of([[1, 2]]), 3, np.array([0.5, 1.0]))
    >>> made.values.tolist(), made.columns.tolist(), made.starts.tolist()
    ([2.0, 0.5, 1.0], [1, 4, 5], [0, 3])
    """
    rows, columns, values = questions.owners(), questions.ids, np.ones(len(questions.ids))
    is_known = (columns > 0) & (columns < size)
    if answers is not None:
        known = (answers.ids > 0) & (answers.ids < size)
        rows, columns = np.concatenate([rows, answers.owners()]), np.concatenate([columns, answers.ids + size])
        values = np.concatenate([values, np.ones(len(answers.ids)) if weights is None else weights])
        is_known = np.concatenate([is_known, known & (values[len(is_known) :] > 0)])
    cells, places = np.unique(rows[is_known] * (2 * size) + columns[is_known], return_inverse=True)
    starts = np.searchsorted(cells, np.arange(len(questions) + 1) * (2 * size))
    sums = np.bincount(places, values[is_known], minlength=len(cells)).astype(np.float64, copy=False)
    return WordCounts(sums, cells % (2 * size), starts.astype(np.int64), 2 * size)


def responsibilities(counts: WordCounts, words: Floats, gamma: Floats) -> tuple[Floats, Floats]:
    """Return ``n_w / Σ_z exp(Ψ(γ_z)) φ_zw`` of each count, and exp(Ψ(γ)).  # (C,), (N, K)

    The first times φ_zw and exp(Ψ(γ_z)) is n_w · r_wz, so that no array has a number for each count and topic.

    Args:
        counts: n.  # (N, 2V)
        words: φ and below it ψ.  # (2V, K)
        gamma: γ > 0.  # (N, K)
    """
    weights = np.exp(digamma(gamma))
    sums = np.empty(len(counts.values))
    for first, last in counts.pieces():
        places = slice(counts.starts[first], counts.starts[last])
        own = np.repeat(weights[first:last], np.diff(counts.starts[first : last + 1]), axis=0)
        np.einsum("ck,ck->c", own, words[counts.columns[places]], out=sums[places])
    return counts.values / np.maximum(sums, np.finfo(np.float64).tiny), weights


def first_gamma(counts: WordCounts, alpha: float, topics: int) -> Floats:
    """Return γ where each text is about all topics alike.  # (N, K)"""
    return np.repeat(alpha + counts.totals()[:, None] / topics, topics, axis=1)


_SERIES_FROM = 8.0
"""The terms of the series that are left out are below 1e-15 from here on."""


def digamma(values: Floats) -> Floats:
    """Return Ψ of numbers > 0: ``Ψ(x) = Ψ(x + 1) - 1/x`` until x is large, then Ψ's asymptotic series.

    Source: Abramowitz and Stegun 1964, 6.3.5 and 6.3.18. In NumPy, so that no search needs SciPy.

    >>> digamma(np.array([1.0, 0.5])).round(12).tolist()  # -γ and -γ - 2 ln 2, γ Euler's constant
    [-0.577215664902, -1.963510026021]
    """
    large, found = np.array(values, np.float64), np.zeros(np.shape(values))
    while (is_small := large < _SERIES_FROM).any():
        found -= np.divide(1.0, large, out=np.zeros_like(large), where=is_small)
        large += is_small
    square = 1.0 / (large * large)
    series = np.zeros_like(large)
    for factor in (-691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12):  # B_2n / 2n, the last first
        series = (series + factor) * square
    return found + np.log(large) - 0.5 / large - series


@dataclass(frozen=True, slots=True)
class TopicModel(QueryModel):
    """The words of candidates and their topics.

    Args:
        words: gives P_words(w|D) and P(w|C).
        topics: φ, and what θ is found with.
        share: λ in (0, 1], that of the model of words.

    Raises:
        SettingError: ``share`` is out of range.

    Example:
        The word 2, of which the candidate has none, in a collection of 10 words that has it once, half of P_words:
        P_words(2|D) = 0.05. In both topics together φ is 0.8 and 0, and a text of the word 1 is about the first by
        0.75. λ = 0.5: P(2|D) = 0.5 · 0.05 + 0.5 · 0.8 · 0.75 = 0.325.

        >>> from askalike.models.query_likelihood.likelihood import QueryLikelihood, Smoothing
        >>> from askalike.models.query_likelihood.terms import Collection
        >>> words = QueryLikelihood(Collection(np.array([0, 4, 1, 5])), Smoothing("jelinek-mercer", 0.5))
        >>> held = np.array([[0, 0], [0.2, 0], [0.8, 0], [0, 1]], np.float32)
        >>> model = TopicModel(words, Topics(held, held, alpha=0.5), share=0.5)
        >>> model.word_probabilities(np.array([2]), TermLists.of([[1]])).round(3).tolist()
        [[0.325]]
    """

    words: QueryModel
    topics: Topics
    share: float = 0.7

    def __post_init__(self) -> None:
        if not (isfinite(self.share) and 0 < self.share <= 1):
            raise SettingError(f"share is {self.share}, but expected 0 < share ≤ 1", "set share")

    def word_probabilities(
        self, words: Ids, candidates: TermLists, answers: TermLists | None = None, mixtures: Floats | None = None
    ) -> Floats:
        """Return P(w|D); the topics of a candidate are those of its answers too, where they are given.  # (T, N)

        Args:
            mixtures: θ of each candidate where it is known, as that of questions is before there is a query, from
                ``Topics.mixtures``; None infers it.  # (N, K)
        """
        mixtures = self.topics.mixtures(candidates, answers) if mixtures is None else mixtures
        about = self.topics.probabilities(words, mixtures)
        has_topics = self._known(candidates) > 0
        if answers is not None and self.topics.answer_weight:
            has_topics |= self._known(answers) > 0
        about = np.where(has_topics, about, self.background(words)[:, None])
        return np.asarray(
            self.share * self.words.word_probabilities(words, candidates, answers) + (1 - self.share) * about
        )

    def background(self, words: Ids) -> Floats:
        """Return P(w|C).  # (T,)"""
        return self.words.background(words)

    def _known(self, texts: TermLists) -> Floats:
        """Return how many words of each text were learned.  # (N,)"""
        return texts.sums(((texts.ids > 0) & (texts.ids < len(self.topics.questions))).astype(np.float64))
