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

**Learning.** From questions with their answers, by variational expectation and maximisation.

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

**Votes.** SQATM-V, as far as it can be had, learns from all answers of a question, each as much as its votes say::

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

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.language.likelihood import QueryModel, TermLists
from askalike.settings import check_settings

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

    Example:
        The word 2, of which the candidate has none, in a collection of 10 words that has it once, half of P_words:
        P_words(2|D) = 0.05. In both topics together φ is 0.8 and 0, and a text of the word 1 is about the first by
        0.75. λ = 0.5: P(2|D) = 0.5 · 0.05 + 0.5 · 0.8 · 0.75 = 0.325.

        >>> from askalike.models.language.likelihood import QueryLikelihood, Smoothing
        >>> from askalike.models.language.likelihood import Collection
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
        check_settings(self)

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


if TYPE_CHECKING:  # of the extra train; no search needs it
    from scipy.sparse import csr_array


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
    """

    topics: int = 50
    alpha: float = 0.1
    eta: float = 0.01
    answer_weight: float = 1.0
    iterations: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self)


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
