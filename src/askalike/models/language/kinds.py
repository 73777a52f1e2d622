"""The language models that can be learned, by name: what can be chosen of each, and how it is made of what was learned.

What each learns it says itself, so that learning, saving and ranking need not know which it is; and which words of a
candidate each word of a query is matched with, so that a ranker can say its reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.language.likelihood import Collection, Method, QueryLikelihood, QueryModel, Smoothing, TermLists
from askalike.models.language.phrases import Heuristic, PhraseLearning, PhraseModel, PhraseTable, Segmentation
from askalike.models.language.topics import TopicLearning, TopicModel, Topics
from askalike.models.language.translation import Mixture, SelfTranslation, Translations, TransLM, word_translation
from askalike.settings import check_settings, read_stored

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

LEAST_ALIKE: Final = 0.5
"""Words that are less alike by their topics are not aligned."""


@dataclass(frozen=True, slots=True)
class WordAlignments:
    """For each of the T words of a query a piece of the candidate, and how well the two match.

    Args:
        starts, ends: first place of the piece in the candidate, and the place after its last.  # (T,)
        values: in [0, 1]; 0 where nothing is aligned with the word.  # (T,)
    """

    starts: Ids
    ends: Ids
    values: Floats

    @classmethod
    def none(cls, count: int) -> WordAlignments:
        """Return nothing for each of so many words."""
        return cls(np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count))

    @classmethod
    def best(cls, table: Floats) -> WordAlignments:
        """Return the single word with the largest number for each word of the query, the first of equal ones.

        Args:
            table: a row for each word of the query, a column for each place of the candidate.  # (T, U)

        >>> found = WordAlignments.best(np.array([[0.1, 0.5], [0.0, 0.0]]))
        >>> found.starts.tolist(), found.ends.tolist(), found.values.tolist()
        ([1, 0], [2, 1], [0.5, 0.0])
        """
        if not table.size:
            return cls.none(len(table))
        places = table.argmax(axis=1).astype(np.int64)
        return cls(places, places + 1, np.asarray(table.max(axis=1)))

    def or_else(self, other: WordAlignments) -> WordAlignments:
        """Return these, and another's where nothing is aligned with a word.

        >>> found = WordAlignments.best(np.array([[0.2], [0.0]])).or_else(WordAlignments.best(np.array([[0.9], [0.7]])))
        >>> found.values.tolist()
        [0.2, 0.7]
        """
        is_own = self.values > 0
        starts, ends = np.where(is_own, self.starts, other.starts), np.where(is_own, self.ends, other.ends)
        return WordAlignments(starts, ends, np.where(is_own, self.values, other.values))


def by_translations(translations: Translations, asked: Ids, theirs: Ids) -> WordAlignments:
    """Return for each word the one that translates into it best, by t(w|u)."""
    return WordAlignments.best(translations.table(asked, theirs))


def by_phrases(table: PhraseTable, asked: Ids, theirs: Ids) -> WordAlignments:
    """Return for each word the phrase of the candidate that best becomes a phrase of the query with the word in it.

    Args:
        asked: the query's terms in order.  # (T,)
        theirs: the candidate's.  # (U,)

    Example:
        P(1 2|3) = 0.5: 3 is aligned with 1 and with 2, and nothing with 4.

        >>> from askalike.models.language.phrases import PhraseBook
        >>> book = PhraseBook(np.array([1, 3, 1 * 5 + 2]), 5, 2)  # 1, 3 and 1 2
        >>> table = PhraseTable(book, np.array([0, 0, 0, 1]), np.array([1]), np.array([0.5], np.float32))
        >>> found = by_phrases(table, np.array([1, 2, 4]), np.array([4, 3]))
        >>> found.starts.tolist(), found.ends.tolist(), found.values.tolist()
        ([1, 1, 0], [2, 2, 0], [0.5, 0.5, 0.0])
    """
    best = WordAlignments.none(len(asked))
    held = table.book.numbers(TermLists.of([theirs]))  # (L, U)
    lengths, places = np.nonzero(held >= 0)
    numbers = held[lengths, places]
    weights = np.zeros(len(table.book))
    for length, row in enumerate(table.book.numbers(TermLists.of([asked])).tolist(), start=1):
        for start, number in enumerate(row):
            if number < 0 or not len(numbers):
                continue
            sources, values = table.row(number)
            weights[sources] = values
            likely = weights[numbers]
            weights[sources] = 0
            place = int(likely.argmax())
            covered = np.arange(start, start + length)
            covered = covered[best.values[covered] < likely[place]]
            best.starts[covered] = places[place]
            best.ends[covered] = places[place] + lengths[place] + 1
            best.values[covered] = likely[place]
    return best


def by_topics(topics: Topics, asked: Ids, theirs: Ids) -> WordAlignments:
    """Return for each word the one most alike by topics, the cosine of φ_1w … φ_Kw; nothing below ``LEAST_ALIKE``.

    Example:
        1 and 2 are of one topic, 3 of another.

        >>> held = np.array([[0, 0], [0.5, 0], [0.5, 0], [0, 1]], np.float32)
        >>> found = by_topics(Topics(held, held, alpha=0.5), np.array([1, 3]), np.array([-9, 2]))
        >>> found.starts.tolist(), found.values.tolist()
        ([1, 0], [1.0, 0.0])
    """
    table = _directions(topics, asked) @ _directions(topics, theirs).T
    return WordAlignments.best(np.where(table < LEAST_ALIKE, 0.0, np.minimum(table, 1.0)))


def _directions(topics: Topics, words: Ids) -> Floats:
    """Return φ of words at length 1, 0 for one that was never learned.  # (T, K)"""
    is_known = (words > 0) & (words < len(topics.questions))
    held = topics.questions[np.where(is_known, words, 0)].astype(np.float64) * is_known[:, None]
    return np.asarray(held / np.maximum(np.linalg.norm(held, axis=1, keepdims=True), np.finfo(np.float64).tiny))


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """What a language model has learned beside the counts of its terms; what a kind does not learn is empty.

    Args:
        translations: t(w|u).
        phrases: P(w|t).
        topics: φ and ψ.
    """

    translations: Translations = field(default_factory=Translations.none)
    phrases: PhraseTable = field(default_factory=PhraseTable.none)
    topics: Topics = field(default_factory=Topics.none)

    @classmethod
    def none(cls, size: int) -> Learned:
        """Return nothing learned of V terms."""
        return cls(Translations.none(size), PhraseTable.none(size))


@dataclass(frozen=True, slots=True)
class LikelihoodOptions:
    """Query likelihood, LMIR; and what is so of every kind that says nothing else.

    Args:
        smoothing: ``dirichlet`` or ``jelinek-mercer``.
        weight: its μ or λ.
    """

    is_aligned: ClassVar[bool] = False
    """Whether words of questions and of best answers are aligned by IBM's model 1."""

    smoothing: Method = "dirichlet"
    weight: float = 100.0

    def __post_init__(self) -> None:
        """Check the values, and those that go together by what is made of them."""
        check_settings(self)
        self.model(Collection.none(), Learned())

    @property
    def reads_answers(self) -> bool:
        """Whether a candidate's best answer is part of it."""
        return False

    @property
    def phrase_learning(self) -> PhraseLearning | None:
        """How phrases are learned; None where they are not."""
        return None

    @property
    def topic_learning(self) -> TopicLearning | None:
        """How topics are learned; None where they are not."""
        return None

    @property
    def most_answers(self) -> int:
        """How many answers of a question are learned from, the best."""
        return 1

    @property
    def accepted_votes(self) -> int:
        """How many votes it counts that an answer was accepted."""
        return 0

    def model(self, collection: Collection, learned: Learned) -> QueryModel:
        """Return the model of what was counted and learned."""
        return QueryLikelihood(collection, Smoothing(self.smoothing, self.weight))

    def word_alignments(self, learned: Learned, asked: Ids, theirs: Ids) -> WordAlignments:
        """Return what of a candidate each word of a query is matched with, beside itself.

        By phrases where they are learned; otherwise by translations, and where nothing translates, by topics.
        """
        if self.phrase_learning:
            return by_phrases(learned.phrases, asked, theirs)
        found = WordAlignments.none(len(asked))
        if self.is_aligned:
            found = by_translations(learned.translations, asked, theirs)
        return found.or_else(by_topics(learned.topics, asked, theirs)) if self.topic_learning else found


@dataclass(frozen=True, slots=True)
class TranslationOptions(LikelihoodOptions):
    """The word translation model.

    Args:
        kept: σ in [0, 1), the share of words that stay as they are.
        self_translation: what t(w|w) is: ``learned``, or ``certain``, which is 1.
    """

    is_aligned: ClassVar[bool] = True

    smoothing: Method = "jelinek-mercer"
    weight: float = 0.2
    kept: float = 0.0
    self_translation: SelfTranslation = "learned"

    def model(self, collection: Collection, learned: Learned) -> QueryModel:
        """Return the model."""
        smoothing = Smoothing(self.smoothing, self.weight)
        return word_translation(collection, learned.translations, smoothing, self.kept, self.self_translation)


@dataclass(frozen=True, slots=True)
class TransLMOptions(LikelihoodOptions):
    """TransLM; the weights of its three parts are brought to sum to 1.

    Args:
        words: α ≥ 0, of the question's own words.
        translations: β ≥ 0, of what they translate into.
        answer: γ ≥ 0, of the best answer's words; 0 reads no answers.
    """

    is_aligned: ClassVar[bool] = True

    words: float = 0.6
    translations: float = 0.4
    answer: float = 0.0

    @property
    def reads_answers(self) -> bool:
        """Whether a candidate's best answer is part of it."""
        return self.answer > 0

    def model(self, collection: Collection, learned: Learned) -> QueryModel:
        """Return the model."""
        mixture = Mixture(self.words, self.translations, self.answer)
        return TransLM(collection, learned.translations, Smoothing(self.smoothing, self.weight), mixture)


@dataclass(frozen=True, slots=True)
class PhraseOptions(LikelihoodOptions):
    """The phrase-based translation model.

    Args:
        kept: σ in [0, 1], the share of words that stay as they are.
        segmentation: ``best`` or ``sum``, over the ways to cut a query into phrases.
        heuristic, longest, least: how phrases are learned, see ``PhraseLearning``.
    """

    is_aligned: ClassVar[bool] = True

    smoothing: Method = "jelinek-mercer"
    weight: float = 0.2
    kept: float = 0.5
    segmentation: Segmentation = "best"
    heuristic: Heuristic = "grow-diag-final"
    longest: int = 3
    least: int = 2

    @property
    def phrase_learning(self) -> PhraseLearning:
        """How phrases are learned."""
        return PhraseLearning(self.heuristic, self.longest, self.least)

    def model(self, collection: Collection, learned: Learned) -> QueryModel:
        """Return the model."""
        smoothing = Smoothing(self.smoothing, self.weight)
        return PhraseModel(collection, learned.phrases, smoothing, self.kept, self.segmentation)


@dataclass(frozen=True, slots=True)
class TopicOptions(LikelihoodOptions):
    """Query likelihood beside the topics of questions and their answers, QATM.

    Args:
        share: in (0, 1], that of the words beside the topics.
        topics, alpha, eta, answer_weight, iterations, seed: how topics are learned, see ``TopicLearning``; with an
            ``answer_weight`` of 0 no answers are read.
    """

    smoothing: Method = "jelinek-mercer"
    weight: float = 0.7
    share: float = 0.7
    topics: int = 50
    alpha: float = 0.1
    eta: float = 0.01
    answer_weight: float = 1.0
    iterations: int = 100
    seed: int = 0

    @property
    def reads_answers(self) -> bool:
        """Whether a candidate's best answer is part of it: it tells what the candidate is about."""
        return self.answer_weight > 0

    @property
    def topic_learning(self) -> TopicLearning:
        """How topics are learned."""
        return TopicLearning(self.topics, self.alpha, self.eta, self.answer_weight, self.iterations, self.seed)

    def model(self, collection: Collection, learned: Learned) -> QueryModel:
        """Return the model."""
        words = QueryLikelihood(collection, Smoothing(self.smoothing, self.weight))
        return TopicModel(words, learned.topics, self.share)


@dataclass(frozen=True, slots=True)
class VotedTopicOptions(TopicOptions):
    """TransLM beside the topics of questions and of all their answers by votes: TBLM_SQATM-V, see ``topics.learning``.

    Args:
        share: in (0, 1], that of TransLM beside the topics.
        answer_weight: and the other settings of topics, as those of ``TopicOptions``; with ``answer`` and this of 0 a
            candidate's answer is not read.
        words, translations, answer: α, β, γ ≥ 0 of TransLM.
        most_answers: topics are learned from so many answers of a question, the best, ≥ 1.
        accepted_votes: how many votes it counts that an answer was accepted, ≥ 0.
    """

    is_aligned: ClassVar[bool] = True

    weight: float = 0.5
    words: float = 0.6
    translations: float = 0.4
    answer: float = 0.0
    most_answers: int = 10
    accepted_votes: int = 3

    @property
    def reads_answers(self) -> bool:
        """Whether a candidate's best answer is part of it."""
        return self.answer > 0 or self.answer_weight > 0

    def model(self, collection: Collection, learned: Learned) -> QueryModel:
        """Return the model."""
        mixture = Mixture(self.words, self.translations, self.answer)
        words = TransLM(collection, learned.translations, Smoothing(self.smoothing, self.weight), mixture)
        return TopicModel(words, learned.topics, self.share)


Options = LikelihoodOptions

KINDS: Final[Mapping[str, type[Options]]] = {
    "lmir": LikelihoodOptions,
    "translation": TranslationOptions,
    "translm": TransLMOptions,
    "phrase": PhraseOptions,
    "qatm": TopicOptions,
    "sqatm": VotedTopicOptions,
}
"""Name → its options."""

_ADDED: Final[Mapping[str, Mapping[str, object]]] = {"translation": {"self_translation": "learned"}}
"""Kind → options that models of earlier versions lack, with what they were."""


def options_of(kind: str, stored: Mapping[str, object]) -> Options:
    """Return options that were stored, all of them.

    >>> options_of("lmir", {"smoothing": "dirichlet", "weight": 10.0}).weight
    10.0

    Raises:
        SettingError: there is no such kind, a name is missing or too many, or a value cannot be used.
    """
    if kind not in KINDS:
        raise SettingError(f"there is no language model {kind!r}", f"expected one of {', '.join(KINDS)}")
    return read_stored(KINDS[kind], {**_ADDED.get(kind, {}), **stored}, f"options of {kind}")
