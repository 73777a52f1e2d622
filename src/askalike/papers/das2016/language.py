"""The language models: the likelihood of a query under a model of each candidate, by words, translations and topics.

::

    P(q|D) = Π_{w ∈ q} P(w|D)^tf(w, q)

    P(w|D) = (1 - s_D) · P_own(w|D) + s_D · P(w|C)          C: the collection that is searched
    s_D    = λ                    Jelinek-Mercer
    s_D    = μ / (|D| + μ)        Dirichlet: long texts are trusted more

What P_own is makes the difference between the models::

    LMIR                query likelihood             P_ml(w|D)
    translation         of words                     Σ_u t(w|u) P_ml(u|D)
    TransLM             words and translations       α · P_ml(w|D) + (1 - α) · Σ_u t(w|u) P_ml(u|D)
    phrases             see ``phrases``: α is its σ, the share of words that stay as they are
    topics, beside any  QATM, SQATM                  λ · P(w|D) + (1 - λ) · Σ_z φ_zw θ_z(D)

How well a word matches itself under the translation model is what t(w|w) was learned to be; it can be 1 in place of
that, so that a word of the query that a text has counts as in the text's own language model, and translations are
added; the sums over w are above 1 then. A candidate of which no word was learned has no topics; P(w|C) stands for them.

Source: Zhai and Lafferty 2004 (ACM TOIS 22:2), sections 2 and 3, table I, for LMIR; Jeon, Croft and Lee 2005 (CIKM),
the query's likelihood by word translation, after Berger and Lafferty 1999; Xue, Jeon and Croft 2008 (SIGIR), TransLM,
with t(w|u) of IBM's model 1, trained on all pairs (q, a) and (a, q) together, P_pool there; Wei and Croft 2006 (SIGIR),
for topics beside words. Das et al. 2016 (ACL), on its baselines: "trained using GIZA++ tool with the question and best
answer pair as the parallel corpus".
Reading: the equations of Jeon et al. and of Xue et al. are from memory. A language is translated into itself here, and
how likely a word stays itself decides much: learned from questions and answers t(w|w) is small, since an answer repeats
few words of its question. That Jeon et al. have t(w|w) = 1 is from memory too, and could not be looked up: both are
offered, and both stand in the table.
Differs: Jeon et al. pair questions whose answers are alike; all models that translate are trained on questions with
their answers here, as Das et al. do. TransLM has a third part, of the words of a candidate's answer, which no candidate
of the table has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from askalike.models.vocabulary import Vocabulary
from askalike.papers.das2016.phrases import PhraseTable, Segmentation, align, best_or_sum, count_phrases
from askalike.papers.das2016.terms import Floats, Ids, Parallel, TermLists, TermReader, term_ids
from askalike.papers.das2016.topics import Topics, learn_topics, pair_counts
from askalike.papers.das2016.translation import learn_translations
from askalike.types import Answer, Question

MIN_COUNT: Final = 2
MAX_SIZE: Final = 200_000
PAIR_TERMS: Final = 60
"""Of a question and of an answer only so many known terms are aligned, the first."""
ACCEPTED_VOTES: Final = 3
"""How many votes it counts that an answer was accepted."""

Method = Literal["dirichlet", "jelinek-mercer"]


@dataclass(frozen=True, slots=True)
class LanguageSettings:
    """A language model, but for what it has learned.

    Args:
        smoothing: ``dirichlet`` or ``jelinek-mercer``.
        weight: its μ > 0, in terms, or λ in (0, 1].
        own: α in [0, 1], the share of the candidate's own words: 1 is LMIR, 0 the word translation model.
        is_self_certain: t(w|w) is 1, not what was learned.
        longest: terms of the longest phrase that is translated; 0 translates words.
        segmentation: of phrases: ``best`` or ``sum``, over the ways to cut a query.
        topics: how many topics stand beside the words, 0 for none.
        share: λ in (0, 1], that of the words beside the topics.
        is_voted: topics are learned from all answers by votes (SQATM), not from the best alone (QATM).
        seed: of the topics.
    """

    smoothing: Method = "dirichlet"
    weight: float = 100.0
    own: float = 1.0
    is_self_certain: bool = False
    longest: int = 0
    segmentation: Segmentation = "best"
    topics: int = 0
    share: float = 1.0
    is_voted: bool = False
    seed: int = 0

    def collection_shares(self, lengths: Ids) -> Floats:
        """Return s_D, the collection's share in texts of these lengths.  # (N,)

        >>> LanguageSettings("dirichlet", 100.0).collection_shares(np.array([0, 100, 300])).tolist()
        [1.0, 0.5, 0.25]
        >>> LanguageSettings("jelinek-mercer", 0.2).collection_shares(np.array([0, 100])).tolist()
        [0.2, 0.2]
        """
        if self.smoothing == "jelinek-mercer":
            return np.full(len(lengths), self.weight)
        return np.asarray(self.weight / (lengths + self.weight))


@dataclass(frozen=True, slots=True, eq=False)
class Knowledge:
    """What was learned; what a model does not use is None.

    Args:
        translations: t(w|u), rows w.  # (V, V)
    """

    vocabulary: Vocabulary
    translations: csr_array | None = None
    phrases: PhraseTable | None = None
    topics: Topics | None = None


def collection_probabilities(counts: NDArray[np.int64], words: Ids) -> Floats:
    """Return ``P(w|C) = tf(w, C) / |C|``, where a term that the collection lacks counts as one.  # (T,)

    Differs: a term that was never seen would have the probability 0, and every text that lacks it the score -inf.

    Args:
        counts: how often each term occurs; at 0 all together that the vocabulary lacks.  # (V,)

    >>> collection_probabilities(np.array([1, 2, 2, 0]), np.array([-9, 1, 3])).tolist()
    [0.2, 0.4, 0.2]
    """
    known = np.where(words > 0, counts[np.maximum(words, 0)], 1)
    return np.asarray(np.maximum(known, 1) / max(1, int(counts.sum())))


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """A query of T distinct words beside N candidates, as far as it does not depend on settings.

    Args:
        query: its terms in order, with repetitions.  # (L,)
        words: the distinct ones, ascending.  # (T,)
        background: P(w|C).  # (T,)
        lengths: |D|.  # (N,)
        own: P_ml(w|D).  # (T, N)
        translated: Σ_u t(w|u) P_ml(u|D).  # (T, N)
        itself: t(w|w).  # (T,)
        phrases: of the phrase of each length at each place, see ``PhraseTable.shares``.  # (l, L, N)
        about: Σ_z φ_zw θ_z(D), P(w|C) for a candidate without topics.  # (T, N)
    """

    query: Ids
    words: Ids
    background: Floats
    lengths: Ids
    own: Floats
    translated: Floats
    itself: Floats
    phrases: Floats
    about: Floats

    @classmethod
    def of(cls, query: Ids, candidates: TermLists, collection: NDArray[np.int64], knowledge: Knowledge) -> Evidence:
        """Return the evidence by what was learned.

        Args:
            collection: how often each term occurs in the collection that is searched.  # (V,)
        """
        words, lengths = np.unique(query), candidates.lengths()
        counts = candidates.counts(len(knowledge.vocabulary))
        background = collection_probabilities(collection, words)
        own = candidates.frequencies(words) / np.maximum(lengths, 1)
        translated, itself, phrases = np.zeros_like(own), np.zeros(len(words)), np.zeros((0, len(query), len(lengths)))
        known = np.maximum(words, 0)  # a term that no vocabulary has takes the row of 0, which is empty
        if knowledge.translations is not None:
            translated = (knowledge.translations[known] @ counts.T).toarray() / np.maximum(lengths, 1)
            itself = knowledge.translations.diagonal()[known]
        if knowledge.phrases is not None:
            phrases = knowledge.phrases.shares(query, candidates)
        about = np.repeat(background[:, None], len(lengths), axis=1)
        if knowledge.topics is not None:
            has_topics = np.diff(counts.indptr) > 0
            probabilities = knowledge.topics.probabilities(words, knowledge.topics.mixtures(candidates))
            about = np.where(has_topics, probabilities, about)
        return cls(query, words, background, lengths, own, translated, itself, phrases, about)

    def word_probabilities(self, settings: LanguageSettings) -> Floats:
        """Return P(w|D), for all models but that of phrases; > 0.  # (T, N)

        Example:
            A text of the words 1, 1, 2 and a collection of 10 words, 4 of them 1; μ = 1, so that s_D = 1/4:
            P(1|D) = 3/4 · 2/3 + 1/4 · 4/10 = 0.6. With t(1|2) = 0.5, α = 0 and λ = 0.2, P(1|D) = 0.8 · (0.5 · 1/3) +
            0.2 · 0.4 = 0.2133; with t(1|1) = 1 it is 0.8 · (2/3 + 0.5 · 1/3) + 0.2 · 0.4 = 0.7467.

            >>> learned = Knowledge(Vocabulary(["a", "b"]), csr_array(([0.5], ([1], [2])), shape=(3, 3)))
            >>> arguments = np.array([1]), TermLists.of([[1, 1, 2]]), np.array([0, 4, 6])
            >>> evidence, translation = Evidence.of(*arguments, learned), ("jelinek-mercer", 0.2, 0.0)
            >>> models = ("dirichlet", 1.0), translation, (*translation, True)
            >>> [round(float(evidence.word_probabilities(LanguageSettings(*model))[0, 0]), 4) for model in models]
            [0.6, 0.2133, 0.7467]
        """
        translated = self.translated
        if settings.is_self_certain:
            translated = translated + (1 - self.itself)[:, None] * self.own
        own = settings.own * self.own + (1 - settings.own) * translated
        shares = settings.collection_shares(self.lengths)
        mixed = (1 - shares) * own + shares * self.background[:, None]
        return settings.share * mixed + (1 - settings.share) * self.about

    def log_likelihoods(self, settings: LanguageSettings) -> Floats:
        """Return log P(q|D) of each candidate; 0 for a query without terms.  # (N,)

        Example:
            The query 1 2, a candidate of the one word 3, and P(1 2|3) = 0.5; neither 1 nor 2 comes from 3 alone, and a
            collection of 10 words has each of them once. λ = 0.2 and σ = 0.5: together 0.8 · 0.5 · 0.5 = 0.2, one by
            one 0.2 · 0.1 each.

            >>> from askalike.papers.das2016.phrases import phrase_codes
            >>> codes = np.sort(phrase_codes(TermLists.of([[3], [1, 2]]), 2)[[0, 1], [0, 1]])
            >>> table = PhraseTable(codes, csr_array(([0.5], ([1], [0])), shape=(2, 2)), 2)
            >>> learned = Knowledge(Vocabulary(["a", "b", "c"]), phrases=table)
            >>> evidence = Evidence.of(np.array([1, 2]), TermLists.of([[3]]), np.array([0, 1, 1, 8]), learned)
            >>> for segmentation in ("best", "sum"):
            ...     settings = LanguageSettings("jelinek-mercer", 0.2, own=0.5, longest=2, segmentation=segmentation)
            ...     np.exp(evidence.log_likelihoods(settings)).round(4).tolist()
            [0.2]
            [0.2004]
        """
        if not len(self.query):
            return np.zeros(len(self.lengths))
        if not settings.longest:
            times = np.bincount(np.searchsorted(self.words, self.query))
            return np.asarray(times @ np.log(self.word_probabilities(settings)))
        places, count = np.searchsorted(self.words, self.query), len(self.query)
        shares = settings.collection_shares(self.lengths)
        own = settings.own * self.own[places] + (1 - settings.own) * self.phrases[0]
        with np.errstate(divide="ignore"):  # a phrase that nothing makes has P = 0
            logs = [np.log((1 - shares) * own + shares * self.background[places][:, None])]
            for length in range(2, min(settings.longest, count) + 1):
                longer = (1 - settings.own) * (1 - shares) * self.phrases[length - 1, : count - length + 1]
                logs.append(np.log(longer))
        return best_or_sum(logs, settings.segmentation)


@dataclass(frozen=True, slots=True, eq=False)
class AnsweredQuestions:
    """What is learned from, as numbers; the same learns the same.

    Args:
        questions: Q texts.
        answers: A texts, those of a question beside each other, best first.
        answered: which question each answer is of.  # (A,)
        votes: of each answer, an accepted one with ``ACCEPTED_VOTES`` more.  # (A,)
    """

    vocabulary: Vocabulary
    questions: TermLists
    answers: TermLists
    answered: Ids
    votes: Ids

    @classmethod
    def read(
        cls, questions: Sequence[Question], answers: Sequence[Answer], searched: Iterable[Question] = ()
    ) -> AnsweredQuestions:
        """Return questions with their answers over the terms of all texts.

        Args:
            answers: those of a question beside each other, best first.
            searched: questions of collections, whose terms are to be known too.
        """
        reader = TermReader()
        question_terms = [reader.question(question) for question in questions]
        replies = [reader.answer(answer) for answer in answers]
        counts: Counter[str] = Counter()
        for terms in (*question_terms, *replies, *map(reader.question, searched)):
            counts.update(terms)
        vocabulary = Vocabulary.from_counts(counts, min_count=MIN_COUNT, max_size=MAX_SIZE)
        rows = {question.id: row for row, question in enumerate(questions)}
        return cls(
            vocabulary,
            TermLists.of(term_ids(vocabulary, terms) for terms in question_terms),
            TermLists.of(term_ids(vocabulary, terms) for terms in replies),
            np.array([rows[answer.question_id] for answer in answers], np.int64),
            np.array([(answer.score or 0) + ACCEPTED_VOTES * answer.is_accepted for answer in answers], np.int64),
        )

    def best(self) -> Ids:
        """Return which answers are the first of their question.  # (≤ Q,)"""
        return np.flatnonzero(np.diff(self.answered, prepend=-1))

    def pairs(self) -> Parallel:
        """Return each question with its best answer."""
        rows = self.best().tolist()
        return Parallel.of(((self.questions[self.answered[row]], self.answers[row]) for row in rows), PAIR_TERMS)

    def translations(self) -> csr_array:
        """Return t(w|u) of questions with their best answers, both ways."""
        return learn_translations(self.pairs().both_ways(), len(self.vocabulary))

    def phrases(self, translations: csr_array, longest: int) -> PhraseTable:
        """Return P(w|t) of the same pairs."""
        return count_phrases(align(self.pairs(), translations), longest)

    def topics(self, count: int, seed: int, *, is_voted: bool) -> Topics:
        """Return topics of questions with their best answers, or with all by votes."""
        rows = np.arange(len(self.answered)) if is_voted else self.best()
        answers = TermLists.of(self.answers[row] for row in rows.tolist())
        votes, size = self.votes[rows] if is_voted else np.zeros(len(rows), np.int64), len(self.vocabulary)
        return learn_topics(pair_counts(self.questions, answers, self.answered[rows], votes, size), count, seed)


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A language model over one collection; it re-ranks a search's hits, as any object with ``score`` does.

    Args:
        collection: how often each term occurs in the questions that are searched.  # (V,)
    """

    settings: LanguageSettings
    knowledge: Knowledge
    collection: NDArray[np.int64]
    _reader: TermReader = field(default_factory=TermReader, repr=False)

    @classmethod
    def fit(
        cls,
        settings: LanguageSettings,
        questions: Sequence[Question],
        answers: Sequence[Answer],
        searched: Sequence[Question] = (),
    ) -> LanguageModel:
        """Return the model that is learned from questions and their answers; the same from the same.

        Args:
            answers: of any of the questions, those of a question beside each other, best first.
            searched: the collection; the questions themselves where none is given.
        """
        texts = AnsweredQuestions.read(questions, answers, searched)
        translations, phrases = None, None
        if settings.longest:
            phrases = texts.phrases(texts.translations(), settings.longest)
        elif settings.own < 1:
            translations = texts.translations()
        topics = texts.topics(settings.topics, settings.seed, is_voted=settings.is_voted) if settings.topics else None
        knowledge = Knowledge(texts.vocabulary, translations, phrases, topics)
        return cls(settings, knowledge, collection_counts(texts.vocabulary, searched or questions))

    def score(self, query: Question, questions: Sequence[Question]) -> Floats:
        """Return log P(q|D) of each question, higher is better.  # (N,)"""
        candidates = TermLists.of(self._ids(question) for question in questions)
        return Evidence.of(self._ids(query), candidates, self.collection, self.knowledge).log_likelihoods(self.settings)

    def _ids(self, question: Question) -> Ids:
        return term_ids(self.knowledge.vocabulary, self._reader.question(question))


def collection_counts(vocabulary: Vocabulary, questions: Iterable[Question]) -> NDArray[np.int64]:
    """Return how often each term occurs in questions; at 0 all together that the vocabulary lacks.  # (V,)"""
    reader = TermReader()
    ids = TermLists.of(term_ids(vocabulary, reader.question(question)) for question in questions).ids
    return np.bincount(np.maximum(ids, 0), minlength=len(vocabulary)).astype(np.int64)
