"""What was learned of topics, and which topics a text is about: the question-answer topic model (QATM).

::

    θ_d ~ Dirichlet(α)                                     the topics of a question and of its answers: the same
    each word of the question: z ~ θ_d, w ~ φ_z            in the language of questions
    each word of the answers:  z ~ θ_d, w ~ ψ_z            in the language of answers

A text's topics are found by variational inference, with φ and ψ as they were learned:

::

    γ_z    = α + Σ_w n_w · r_wz,        r_wz ∝ exp(Ψ(γ_z)) · φ_zw,       Ψ the digamma function
    θ_z(d) = γ_z / Σ_z γ_z

n_w counts a word, r_wz is the share of topic z in it; ψ stands for φ in words of answers.

Enters: terms. Leaves: ``Topics``, θ. May import: lists.

Source: Ji, Xu, Wang and He 2012 (CIKM) for the model; Blei, Ng and Jordan 2003 (JMLR 3), section 5.2, for inference.
Reading: Ji et al. is told from memory, and infers by sampling, as far as is known; nothing that could be read says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from askalike.models.query_likelihood.lists import TermLists

if TYPE_CHECKING:  # SciPy takes long to import, and no search needs it
    from scipy.sparse import csr_array

__all__ = ["Topics", "pair_counts", "responsibilities"]

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

_WORDS_AT_ONCE = 8192
"""So many rows of topics fit into a processor's cache."""


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
        count = words.shape[1]
        gamma = np.repeat(self.alpha + counts.sum(axis=1)[:, None] / count, count, axis=1)  # (N, K)
        for _ in range(iterations):
            found, gamma_of = responsibilities(counts, words, gamma)
            gamma = self.alpha + gamma_of * (found @ words)
        return np.asarray(gamma / gamma.sum(axis=1, keepdims=True))

    def _occurring(self, counts: csr_array) -> tuple[csr_array, Floats]:
        """Return counts with a column for each word that occurs, and φ or ψ of those words.  # (N, W), (W, K)"""
        from scipy.sparse import csr_array

        size = len(self.questions)
        columns, places = np.unique(counts.indices, return_inverse=True)
        asked, told = columns[columns < size], columns[columns >= size] - size
        words = np.concatenate([self.questions[asked], self.answers[told]]).astype(np.float64)
        return csr_array((counts.data, places, counts.indptr), shape=(counts.shape[0], len(columns))), words

    def probabilities(self, words: Ids, mixtures: Floats) -> Floats:
        """Return ``Σ_z φ_zw θ_z(d)``, 0 for a word that was never learned.  # (T, N)

        Args:
            mixtures: θ.  # (N, K)
        """
        is_known = (words > 0) & (words < len(self.questions))
        held = self.questions[np.where(is_known, words, 0)].astype(np.float64) * is_known[:, None]
        return np.asarray(held @ mixtures.T)


def pair_counts(questions: TermLists, answers: TermLists | None, size: int, weights: Floats | None = None) -> csr_array:
    """Return how often each word occurs in each question, and then the same of its answers.  # (N, 2V)

    Args:
        answers: those of each question, as one text; None for none.
        size: V, ids of the vocabulary with 0; what the vocabulary lacks is left out.
        weights: how much each term of the answers counts, ≥ 0; None for 1.  # (M,)

    >>> pair_counts(TermLists.of([[1, 1, -5]]), TermLists.of([[1, 2]]), 3, np.array([0.5, 1.0])).toarray().tolist()
    [[0.0, 2.0, 0.0, 0.0, 0.5, 1.0]]
    """
    from scipy.sparse import coo_array, csr_array

    rows, columns, values = questions.owners(), questions.ids, np.ones(len(questions.ids))
    is_known = (columns > 0) & (columns < size)
    if answers is not None:
        known = (answers.ids > 0) & (answers.ids < size)
        rows, columns = np.concatenate([rows, answers.owners()]), np.concatenate([columns, answers.ids + size])
        values = np.concatenate([values, np.ones(len(answers.ids)) if weights is None else weights])
        is_known = np.concatenate([is_known, known & (values[len(is_known) :] > 0)])
    places = rows[is_known], columns[is_known]
    return csr_array(coo_array((values[is_known], places), shape=(len(questions), 2 * size)))


def responsibilities(counts: csr_array, words: Floats, gamma: Floats) -> tuple[csr_array, Floats]:
    """Return ``n_w / Σ_z exp(Ψ(γ_z)) φ_zw`` of each count, and exp(Ψ(γ)).  # (N, 2V), (N, K)

    The first times φ_zw and exp(Ψ(γ_z)) is n_w · r_wz, so that no array has a number for each count and topic.

    Args:
        counts: n.  # (N, 2V)
        words: φ and below it ψ.  # (2V, K)
        gamma: γ > 0.  # (N, K)
    """
    from scipy.sparse import csr_array
    from scipy.special import digamma

    weights = np.exp(digamma(gamma))
    sums = np.empty(len(counts.data))
    for first, last in _pieces(counts.indptr):
        places = slice(counts.indptr[first], counts.indptr[last])
        own = np.repeat(weights[first:last], np.diff(counts.indptr[first : last + 1]), axis=0)
        np.einsum("ck,ck->c", own, words[counts.indices[places]], out=sums[places])
    shared = counts.data / np.maximum(sums, np.finfo(np.float64).tiny)
    return csr_array((shared, counts.indices, counts.indptr), shape=counts.shape), weights


def _pieces(starts: NDArray[np.integer]) -> Iterator[tuple[int, int]]:
    """Yield first and last + 1 of so many rows as have about ``_WORDS_AT_ONCE`` numbers together."""
    cuts = np.flatnonzero(np.diff(starts[:-1] // _WORDS_AT_ONCE)) + 1
    bounds = [0, *cuts.tolist(), len(starts) - 1]
    yield from pairwise(bounds)
