"""Learning topics from questions with their answers, by variational expectation and maximisation.

::

    E    γ_dz = α + Σ_w n_dw r_dwz,    r_dwz ∝ exp(Ψ(γ_dz)) · φ_zw
    M    φ_zw = (η + Σ_d n_dw r_dwz) / Σ_w (…)             over the words of questions
         ψ_zw = (η + Σ_d n_dw r_dwz) / Σ_w (…)             over those of answers

Both γ and φ, ψ are the best for the r before them, so that no step makes the bound smaller:

::

    Σ_dw n_dw log Σ_z exp(E log θ_dz) φ_zw - Σ_d KL(q(θ_d) ‖ Dirichlet(α)) + η Σ_zw (log φ_zw + log ψ_zw)

Source: Ji, Xu, Wang and He 2012 (CIKM) for the model, from memory; Blei, Ng and Jordan 2003 (JMLR 3), section 5.3 and
appendix A.4, for its learning.
Differs: φ and ψ are the most probable ones under a Dirichlet of η + 1 in place of a distribution over them, and nothing
is sampled, so that a seed gives one model.
gensim's ``LdaModel`` was weighed, over documents whose words of answers are other symbols than those of questions: it
has one distribution over both kinds in each topic. A topic is then more of answers or more of questions (of 50 topics
of 37,812 pairs, words of questions are from 3 % to 71 %, and 23 % of all words), and how long an answer is becomes a
matter of topics; here either language has its own distribution. It also takes one document at a time, and a pass over
these pairs takes 23 s; here it takes half a second.

SQATM-V, as far as it can be had, learns from all answers of a question, each as much as its votes say::

    v_a     = (1 + max(0, votes of a)) / Σ_{a' of the same question} (1 + max(0, votes of a'))
    n(d, w) = Σ_{a of d} v_a · tf(w, a)                                            for the words of answers

What the answers of a question say together counts as one answer, most of it that which people found good.
TBLM_SQATM-V is then ``TopicModel`` with these topics, over a model of words.

Source: Zhang, Wu, Wu, Li and Zhou 2014 (CIKM), from memory: questions and answers share topics and have a language
each, the topics of an answer also decide a signal of its quality, and votes can be that signal.
Differs: there, as in supervised topic models (Blei and McAuliffe 2007), the signal is drawn from the topics, by a
regression that is learned with them. Here votes are weights that are given: an answer that was voted down or passed
over hardly shapes the topics, but no topic is known to be one of good answers. The weights above are a choice of ours,
relative to the question's other answers, since forums vote in different measure; votes below 0 count as 0. A ranker
infers a candidate's topics from its question and its best answer, not from all answers.
Reading: Das et al. 2016 and later papers write TBLM for the score; in Zhang et al. it is taken to be a topic-based
language model. Their equation is not in what could be read; ``TopicModel`` takes any model of words, query likelihood
or the translation-based language model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.query_likelihood.terms import TermLists
from askalike.models.topics.topics import Topics, WordCounts, digamma, first_gamma, pair_counts, responsibilities

if TYPE_CHECKING:  # of the extra train; no search needs it
    from scipy.sparse import csr_array


Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TopicLearning:
    """How topics are learned.

    Args:
        topics: K ≥ 1.
        alpha: α > 0: the smaller, the fewer topics in a text.
        eta: η > 0: the smaller, the fewer words in a topic.
        answer_weight: what a word of an answer counts beside one of a question, ≥ 0; 0 learns from questions alone.
        iterations: of expectation and maximisation, ≥ 1.
        seed: what the topics begin with.

    Raises:
        SettingError: a value is out of range.
    """

    topics: int = 50
    alpha: float = 0.1
    eta: float = 0.01
    answer_weight: float = 1.0
    iterations: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        numbers = (self.alpha, self.eta, self.answer_weight)
        if not (all(map(isfinite, numbers)) and self.alpha > 0 and self.eta > 0 and self.answer_weight >= 0):
            raise SettingError(
                f"alpha is {self.alpha}, eta {self.eta} and answer_weight {self.answer_weight}",
                "expected alpha > 0, eta > 0 and answer_weight ≥ 0",
            )
        if self.topics < 1 or self.iterations < 1 or self.seed < 0:
            raise SettingError(
                f"topics is {self.topics}, iterations {self.iterations} and seed {self.seed}",
                "expected topics ≥ 1, iterations ≥ 1 and seed ≥ 0",
            )


def learn_topics(
    questions: TermLists,
    answers: TermLists,
    size: int,
    settings: TopicLearning,
    weights: Floats | None = None,
    on_progress: Callable[[int, float], None] = lambda *_: None,
) -> Topics:
    """Return the topics that were learned; the same from the same.

    Args:
        questions: N texts.
        answers: those of each question, as one text, empty where it has none.
        size: V, ids of the vocabulary with 0.
        weights: how much each term of the answers counts beside the others, ≥ 0; None for 1.  # (M,)
        on_progress: called after each iteration with how many are done, and the bound per word before it.

    Raises:
        SettingError: there are not as many answers as questions, or not as many weights as terms of answers.

    Example:
        Questions of 1 or 2 with answers of 3 or 4: each topic is one of each.

        >>> questions, answers = TermLists.of([[1], [2]] * 3), TermLists.of([[3, 3], [4, 4]] * 3)
        >>> topics = learn_topics(questions, answers, 5, TopicLearning(topics=2, iterations=50))
        >>> of_one, of_three = topics.questions[1].argmax(), topics.answers[3].argmax()
        >>> bool(of_one == of_three), bool(topics.questions[2, of_one] < 0.01)
        (True, True)
    """
    if len(answers) != len(questions) or (weights is not None and len(weights) != len(answers.ids)):
        raise SettingError(
            f"{len(questions)} questions, {len(answers)} answers and weights for "
            f"{'no' if weights is None else len(weights)} of {len(answers.ids)} terms",
            "give one text of answers to each question, and one weight to each of its terms",
        )
    scaled = settings.answer_weight * (np.ones(len(answers.ids)) if weights is None else weights)
    training = TopicTraining(pair_counts(questions, answers, size, scaled), settings)
    for done in range(1, settings.iterations + 1):
        on_progress(done, training.step())
    return training.topics()


class TopicTraining:
    """The state of a training.

    Args:
        counts: n, of questions and then of answers.  # (N, 2V)
        settings: K, α, η, and the seed.
    """

    def __init__(self, counts: WordCounts, settings: TopicLearning) -> None:
        self._counts = counts
        self._settings = settings
        words, count = counts.width, settings.topics
        self._total = max(float(counts.values.sum()), np.finfo(np.float64).tiny)
        # all topics nearly alike, so that what parts them first is what the texts part most
        self._words = self._normalised(np.random.default_rng(settings.seed).gamma(100, size=(words, count)))  # (2V, K)
        self._gamma = first_gamma(counts, settings.alpha, count)  # (N, K)

    def step(self) -> float:
        """Make γ, φ and ψ anew, and return the bound per word before it."""
        values, weights = responsibilities(self._counts, self._words, self._gamma)
        bound = self._bound(values)
        shared = self._matrix(values)
        self._gamma = self._settings.alpha + weights * (shared @ self._words)
        self._words = self._normalised(self._settings.eta + self._words * (shared.T @ weights))
        return bound / self._total

    def topics(self) -> Topics:
        """Return what has been learned so far."""
        questions, answers = np.split(self._words.astype(np.float32), 2)
        return Topics(questions, answers, self._settings.alpha, self._settings.answer_weight)

    def _normalised(self, words: Floats) -> Floats:
        """Return columns that sum to 1 in either language; the id 0 is no word."""
        either = words.reshape(2, len(words) // 2, -1)  # (2, V, K)
        either[:, 0] = 0
        either /= np.maximum(either.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        return either.reshape(words.shape)

    def _matrix(self, values: Floats) -> csr_array:
        """Return a number for each count as a matrix.  # (N, 2V)"""
        from scipy.sparse import csr_array

        counts = self._counts
        return csr_array((values, counts.columns, counts.starts), shape=(len(self._gamma), counts.width))

    def _bound(self, shared: Floats) -> float:
        """Return the bound at γ, φ and ψ as they are.

        Args:
            shared: n_dw / Σ_z exp(E log θ_dz + log Σ_z' γ_dz') φ_zw, as ``responsibilities`` gives it.
        """
        from scipy.special import gammaln

        alpha, gamma = self._settings.alpha, self._gamma
        totals = gamma.sum(axis=1)
        likelihood = float(self._counts.values @ np.log(self._counts.values / shared))
        likelihood -= float(self._counts.totals() @ digamma(totals))  # E log θ = Ψ(γ) - Ψ(Σ γ)
        expected = digamma(gamma) - digamma(totals)[:, None]  # (N, K)
        divergence = gammaln(totals) - gammaln(gamma).sum(axis=1) + ((gamma - alpha) * expected).sum(axis=1)
        divergence -= gammaln(alpha * gamma.shape[1]) - gamma.shape[1] * gammaln(alpha)
        size = len(self._words) // 2
        held = np.concatenate([self._words[1:size], self._words[size + 1 :]])
        return likelihood - float(divergence.sum()) + self._settings.eta * float(np.log(held).sum())


Ids = NDArray[np.int64]


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


def learn_voted_topics(
    questions: TermLists,
    answers: TermLists,
    answered: Ids,
    votes: NDArray[np.integer],
    size: int,
    settings: TopicLearning,
    on_progress: Callable[[int, float], None] = lambda *_: None,
) -> Topics:
    """Return the topics of questions with all of their answers; the same from the same, in any order of the answers.

    Args:
        questions: N texts.
        answers: A texts.
        answered: which question each answer is of, from 0 to N - 1.  # (A,)
        votes: of each answer.  # (A,)
        size: V, ids of the vocabulary with 0.
        on_progress: as in ``learn_topics``.

    Raises:
        SettingError: there are not as many votes or questions as answers, or a question that is not there.
    """
    if not len(answers) == len(answered) == len(votes):
        raise SettingError(
            f"{len(answers)} answers to {len(answered)} questions with {len(votes)} votes", "give one of each"
        )
    if len(answered) and not 0 <= answered.min() <= answered.max() < len(questions):
        raise SettingError(
            f"answers to questions {answered.min()} to {answered.max()} of {len(questions)}", "expected 0 ≤ number < N"
        )
    order = np.argsort(answered, kind="stable")
    texts = np.split(answers.ids, answers.starts[1:-1]) if len(answers) else []
    together = TermLists(
        np.concatenate([np.zeros(0, np.int64), *(texts[place] for place in order.tolist())]),
        np.concatenate([[0], np.cumsum(np.bincount(answered, answers.lengths(), len(questions)))]).astype(np.int64),
    )
    weights = np.repeat(vote_weights(votes, answered)[order], answers.lengths()[order])
    return learn_topics(questions, together, size, settings, weights, on_progress)
