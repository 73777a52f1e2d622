"""The question-answer topic model (QATM): what questions and their answers are about, each in its own language.

::

    θ_d ~ Dirichlet(α)                                     the topics of a question and of its answers: the same
    each word of the question: z ~ θ_d, w ~ φ_z            in the language of questions
    each word of the answers:  z ~ θ_d, w ~ ψ_z            in the language of answers

A text's topics are found by variational inference, with φ as it was learned:

::

    γ_z    = α + Σ_w n_w · r_wz,        r_wz ∝ exp(Ψ(γ_z)) · φ_zw,       Ψ the digamma function
    θ_z(d) = γ_z / Σ_z γ_z

n_w counts a word, r_wz is the share of topic z in it.

**Learning.** From questions with their answers, by variational expectation and maximisation.

::

    E    γ_dz = α + Σ_w n_dw r_dwz,    r_dwz ∝ exp(Ψ(γ_dz)) · φ_zw
    M    φ_zw = (η + Σ_d n_dw r_dwz) / Σ_w (…)             over the words of questions
         ψ_zw = (η + Σ_d n_dw r_dwz) / Σ_w (…)             over those of answers

Both γ and φ, ψ are the best for the r before them, so that no step makes the bound smaller:

::

    Σ_dw n_dw log Σ_z exp(E log θ_dz) φ_zw - Σ_d KL(q(θ_d) ‖ Dirichlet(α)) + η Σ_zw (log φ_zw + log ψ_zw)

**Votes.** SQATM-V, as far as it can be had, learns from all answers of a question, each as much as its votes say::

    v_a     = (1 + max(0, votes of a)) / Σ_{a' of the same question} (1 + max(0, votes of a'))
    n(d, w) = Σ_{a of d} v_a · tf(w, a)                                            for the words of answers

What the answers of a question say together counts as one answer, most of it that which people found good.

Source: Ji, Xu, Wang and He 2012 (CIKM) for the model, which adds topics to a translation-based language model; Zhang,
Wu, Wu, Li and Zhou 2014 (CIKM): questions and answers share topics and have a language each, the topics of an answer
also decide a signal of its quality, and votes can be that signal; Blei, Ng and Jordan 2003 (JMLR 3), sections 5.2, 5.3
and appendix A.4, for inference and learning.
Reading: the papers of 2012 and 2014 are from memory; Ji et al., as far as is known, infer by sampling. Das et al. 2016
name their two rows QATM-PR and TBLM_SQATM-V; what PR stands for is not in what could be read.
Differs: φ and ψ are the most probable ones under a Dirichlet of η + 1 in place of a distribution over them, and nothing
is sampled, so that a seed gives one model. In Zhang et al., as in supervised topic models (Blei and McAuliffe 2007),
the signal is drawn from the topics, by a regression that is learned with them. Here votes are weights: an answer that
was voted down or passed over hardly shapes the topics, but no topic is known to be one of good answers. The weights
above are a choice of ours, relative to the question's other answers, since forums vote in different measure; votes
below 0 count as 0. A candidate's topics are inferred from its question alone: the paper's labelled set has no answers.
gensim's ``LdaModel`` was weighed, over documents whose words of answers are other symbols than those of questions: it
has one distribution over both kinds in each topic, so that how long an answer is becomes a matter of topics; and a pass
over 37,812 pairs takes 23 s where it takes half a second here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack
from scipy.special import digamma

from askalike.papers.das2016.terms import Floats, Ids, TermLists

ALPHA: Final = 0.1
"""α: the smaller, the fewer topics in a text."""
ETA: Final = 0.01
"""η: the smaller, the fewer words in a topic."""
ITERATIONS: Final = 100
_INFERENCES: Final = 20
_COUNTS_AT_ONCE: Final = 8192
"""So many rows of topics fit into a processor's cache."""
_TINIEST: Final = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class Topics:
    """K topics in the language of questions.

    Args:
        words: φ, the probability of each word of a question in each topic; columns sum to 1.  # (V, K)

    Example:
        Two topics with a word each, α = 0.5: a text of the first word alone is about the first topic by
        (0.5 + 1) / (0.5 + 1 + 0.5) = 0.75; one without words is about both alike.

        >>> topics = Topics(np.array([[0, 0], [1, 0], [0, 1]], np.float32), alpha=0.5)
        >>> topics.mixtures(TermLists.of([[1], []])).tolist()
        [[0.75, 0.25], [0.5, 0.5]]
    """

    words: NDArray[np.float32]
    alpha: float = ALPHA

    def mixtures(self, texts: TermLists) -> Floats:
        """Return θ of each text: uniform for one without words that were learned.  # (N, K)

        Each text has as many rounds of inference, from all topics alike, so that it has the same topics among others
        as alone.
        """
        counts, words = texts.counts(len(self.words)), self.words.astype(np.float64)
        gamma = first_gamma(counts, self.alpha, words.shape[1])
        for _ in range(_INFERENCES):
            shared, weights = responsibilities(counts, words, gamma)
            gamma = self.alpha + weights * (shared @ words)
        return np.asarray(gamma / gamma.sum(axis=1, keepdims=True))

    def probabilities(self, words: Ids, mixtures: Floats) -> Floats:
        """Return ``Σ_z φ_zw θ_z(d)``, 0 for a word that was never learned.  # (T, N)

        Args:
            mixtures: θ.  # (N, K)
        """
        rows = self.words[np.maximum(words, 0)].astype(np.float64) * (words > 0)[:, None]
        return np.asarray(rows @ mixtures.T)


def responsibilities(counts: csr_array, words: Floats, gamma: Floats) -> tuple[csr_array, Floats]:
    """Return ``n_w / Σ_z exp(Ψ(γ_z)) φ_zw`` of each count, and exp(Ψ(γ)).  # (N, V), (N, K)

    The first times φ_zw and exp(Ψ(γ_z)) is n_w · r_wz, so that no array has a number for each count and topic.

    Args:
        counts: n.  # (N, V)
        words: φ.  # (V, K)
        gamma: γ > 0.  # (N, K)
    """
    weights = np.exp(digamma(gamma))
    sums = np.empty(counts.nnz)
    for first, last in _pieces(counts.indptr):
        places = slice(counts.indptr[first], counts.indptr[last])
        own = np.repeat(weights[first:last], np.diff(counts.indptr[first : last + 1]), axis=0)
        np.einsum("ck,ck->c", own, words[counts.indices[places]], out=sums[places])
    shared = csr_array((counts.data / np.maximum(sums, _TINIEST), counts.indices, counts.indptr), shape=counts.shape)
    return shared, weights


def _pieces(starts: NDArray[np.integer]) -> Iterator[tuple[int, int]]:
    """Yield first and last + 1 of so many texts as have about ``_COUNTS_AT_ONCE`` counts together."""
    cuts = np.flatnonzero(np.diff(starts[:-1] // _COUNTS_AT_ONCE)) + 1
    yield from pairwise([0, *cuts.tolist(), len(starts) - 1])


def first_gamma(counts: csr_array, alpha: float, topics: int) -> Floats:
    """Return γ where each text is about all topics alike.  # (N, K)"""
    return np.repeat(alpha + np.asarray(counts.sum(axis=1)).reshape(-1, 1) / topics, topics, axis=1)


def vote_weights(votes: NDArray[np.integer], questions: Ids) -> Floats:
    """Return v_a of each answer; those of a question sum to 1.  # (A,)

    Args:
        votes: of each answer, 0 where it is not known.  # (A,)
        questions: which question each answer is of, ≥ 0.  # (A,)

    Example:
        One question with 5 votes, 1 vote and 2 against: 6/9, 2/9 and 1/9; another with one answer.

        >>> vote_weights(np.array([5, 1, -2, 0]), np.array([0, 0, 0, 1])).round(4).tolist()
        [0.6667, 0.2222, 0.1111, 1.0]
    """
    own = 1.0 + np.maximum(votes, 0)
    return np.asarray(own / np.bincount(questions, weights=own)[questions])


def pair_counts(
    questions: TermLists, answers: TermLists, answered: Ids, votes: NDArray[np.integer], size: int
) -> csr_array:
    """Return how often each word occurs in each question, and then in its answers by their votes.  # (N, 2V)

    Args:
        answers: A texts.
        answered: which question each answer is of, from 0 to N - 1.  # (A,)
        votes: of each answer.  # (A,)
        size: V, ids of the vocabulary with 0.

    >>> arguments = TermLists.of([[1, 1, -5]]), TermLists.of([[1], [2]]), np.array([0, 0]), np.array([0, 2])
    >>> pair_counts(*arguments, 3).toarray().tolist()
    [[0.0, 2.0, 0.0, 0.0, 0.25, 0.75]]
    """
    weights = vote_weights(votes, answered)
    of_question = csr_array((weights, (answered, np.arange(len(answered)))), shape=(len(questions), len(answers)))
    return csr_array(hstack([questions.counts(size), of_question @ answers.counts(size)], format="csr"))


class TopicTraining:
    """The state of a training.

    Args:
        counts: n, of questions and then of answers.  # (N, 2V)
        topics: K ≥ 1.
        seed: what the topics begin with.
    """

    def __init__(self, counts: csr_array, topics: int, seed: int, alpha: float = ALPHA, eta: float = ETA) -> None:
        self._counts, self._alpha, self._eta = counts, alpha, eta
        # all topics nearly alike, so that what parts them first is what the texts part most
        chance = np.random.default_rng(seed).gamma(100, size=(counts.shape[1], topics))
        self.words = _normalised(chance)
        """φ and below it ψ.  # (2V, K)"""
        self.gamma = first_gamma(counts, alpha, topics)
        """γ.  # (N, K)"""

    def step(self) -> None:
        """Make γ, φ and ψ anew."""
        shared, weights = responsibilities(self._counts, self.words, self.gamma)
        self.gamma = self._alpha + weights * (shared @ self.words)
        self.words = _normalised(self._eta + self.words * (shared.T @ weights))

    def topics(self) -> Topics:
        """Return what has been learned so far in the language of questions."""
        return Topics(np.split(self.words.astype(np.float32), 2)[0], self._alpha)


def _normalised(words: Floats) -> Floats:
    """Return columns that sum to 1 in either language; the id 0 is no word."""
    either = words.reshape(2, len(words) // 2, -1)  # (2, V, K)
    either[:, 0] = 0
    either /= np.maximum(either.sum(axis=1, keepdims=True), _TINIEST)
    return either.reshape(words.shape)


def learn_topics(
    counts: csr_array,
    topics: int,
    seed: int,
    iterations: int = ITERATIONS,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Topics:
    """Return the topics that were learned; the same from the same.

    Args:
        counts: of questions and of their answers, see ``pair_counts``.  # (N, 2V)
        iterations: of expectation and maximisation, ≥ 1.

    Example:
        Questions of 1 or 2 with answers of 3 or 4: each topic is one of each.

        >>> questions, answers = TermLists.of([[1], [2]] * 3), TermLists.of([[3, 3], [4, 4]] * 3)
        >>> counts = pair_counts(questions, answers, np.arange(6), np.zeros(6, int), 5)
        >>> words = learn_topics(counts, topics=2, seed=0, iterations=50).words
        >>> sorted(words[[1, 2]].argmax(axis=1).tolist())
        [0, 1]
    """
    training = TopicTraining(counts, topics, seed)
    for done in range(1, iterations + 1):
        training.step()
        on_progress(done)
    return training.topics()
