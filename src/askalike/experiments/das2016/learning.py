"""What the language models learn, each thing once: translations, phrases, topics; kept in folders of models.

::

    out/learned/translations/         t(w|u), that of all rows that translate
    out/learned/phrases-3/            P(w|t) of phrases of up to three terms, from these translations
    out/learned/qatm-50-seed0/        fifty topics of questions and best answers
    out/learned/sqatm-50-seed0/       the same of all answers by votes

The terms that are known are those of what is learned from and of the collections that are searched; the numbers come
from what is learned from alone.

Enters: pairs, collections, a folder. Leaves: ``Learned``. May import: encode's vocabulary, language, train's language
recipes, text, types, errors, its own folder.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

import filelock
import numpy as np

from askalike.errors import ModelError
from askalike.experiments.das2016.sets import DasData
from askalike.models.encoders.vocabulary import Vocabulary
from askalike.models.language.kinds import KINDS, Learned, Options, PhraseOptions, TopicOptions, TransLMOptions
from askalike.models.language.model import LanguageModel, LanguageSettings, TermReader
from askalike.models.query_likelihood.terms import Collection, Parallel, TermLists, term_ids
from askalike.models.topics.learning import TopicLearning, learn_voted_topics
from askalike.models.translation.ibm1 import Alignment, Translations, learn_translations
from askalike.models.translation.phrase_learning import PhraseLearning
from askalike.models.translation.phrases import PhraseTable
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.training.language import votes_of
from askalike.types import Question

__all__ = ["Learner", "Texts"]

ALIGNMENT: Final = Alignment()
MIN_COUNT: Final = 2
MAX_SIZE: Final = 200_000
PAIR_TERMS: Final = 60
ACCEPTED_VOTES: Final = 3


@dataclass(frozen=True, slots=True)
class Texts:
    """What is learned from, as numbers.

    Args:
        vocabulary: the known terms.
        questions: Q texts.
        answers: A texts, those of a question beside each other, best first.
        answered: which question each answer is of.  # (A,)
        votes: of each answer, an accepted one with ``ACCEPTED_VOTES`` more.  # (A,)
    """

    vocabulary: Vocabulary
    questions: TermLists
    answers: TermLists
    answered: np.ndarray[tuple[int], np.dtype[np.int64]]
    votes: np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass
class Learner:
    """Learns what is asked for, or finds it in its folder.

    Args:
        data: pairs to learn from, and collections.
        out: folder of all.
        notice: told what begins.
    """

    data: DasData
    out: Path
    notice: Callable[[str], None] = field(default=lambda _: None)

    @cached_property
    def reader(self) -> TermReader:
        """How every row reads texts: title and body, lower case, stems, no stop words."""
        return TermReader("title and body", Analyzer(TextSettings()))

    @cached_property
    def texts(self) -> Texts:
        """Everything that is learned from, read once."""
        self.notice("reading what is learned from")
        pairs, reader = self.data.pairs, self.reader
        asked = [reader.question(question) for question in pairs.questions]
        told = [reader.answer(answer) for answer in pairs.answers]
        counts: Counter[str] = Counter()
        for terms in (*asked, *told):
            counts.update(terms)
        for question in self._collected():
            counts.update(reader.question(question))
        vocabulary = Vocabulary.from_counts(counts, min_count=MIN_COUNT, max_size=MAX_SIZE)
        rows = {question.id: row for row, question in enumerate(pairs.questions)}
        return Texts(
            vocabulary,
            TermLists.of(term_ids(vocabulary, terms) for terms in asked),
            TermLists.of(term_ids(vocabulary, terms) for terms in told),
            np.array([rows[answer.question_id] for answer in pairs.answers], np.int64),
            np.array([votes_of(answer, ACCEPTED_VOTES) for answer in pairs.answers], np.int64),
        )

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of what decides everything that is learned."""
        settings = [asdict(ALIGNMENT), MIN_COUNT, MAX_SIZE, PAIR_TERMS, ACCEPTED_VOTES]
        known = [(question.id, question.title, question.body) for question in self._collected()]
        content = json.dumps([settings, self.data.pairs.digest(), known])
        return hashlib.sha256(content.encode()).hexdigest()

    def collection(self, questions: Sequence[Question]) -> Collection:
        """Return the counts of a collection that is searched: P(w|C)."""
        ids = (term_ids(self.texts.vocabulary, self.reader.question(question)) for question in questions)
        return Collection.count(TermLists.of(ids), len(self.texts.vocabulary))

    def translations(self) -> Translations:
        """Return t(w|u) of questions with their best answers, both ways."""
        return self._kept("translations", TransLMOptions(), self._translations).translations

    def phrases(self, learning: PhraseLearning) -> PhraseTable:
        """Return P(w|t) of the same pairs."""
        options = PhraseOptions(**asdict(learning))
        name = f"phrases-{learning.longest}"
        return self._kept(name, options, lambda: self._phrases(learning)).phrases

    def topics(self, kind: str, learning: TopicLearning) -> Learned:
        """Return topics of questions with their best answers (``qatm``), or with all by votes (``sqatm``)."""
        options = TopicOptions(**asdict(learning))
        name = f"{kind}-{learning.topics}-seed{learning.seed}"
        return self._kept(name, options, lambda: self._topics(kind, learning))

    def _collected(self) -> list[Question]:
        return [question for one in self.data.sets for question in one.dev.statistics]

    def _kept(self, name: str, options: Options, learn: Callable[[], Learned]) -> Learned:
        """Return what was learned before from the same, or learn and keep it."""
        folder = self.out / "learned" / name
        folder.parent.mkdir(parents=True, exist_ok=True)
        kind = next(kind for kind, made in KINDS.items() if type(options) is made)
        settings = LanguageSettings(kind, options)
        with filelock.FileLock(folder.parent / f"{name}.lock"):  # rows that run beside each other learn it once
            try:
                kept = LanguageModel.load(folder)
                if kept.origin.training_data == self.digest and kept.settings == settings:
                    return kept.learned
            except ModelError:
                pass  # nothing is there, or it is of an earlier version: it is learned anew
            texts = self.texts
            self.notice(f"learning {name}")
            learned = learn()
            none = Collection.count(TermLists.of([]), len(texts.vocabulary))
            LanguageModel.build(settings, texts.vocabulary, none, learned, training_data=self.digest).save(folder)
            return learned

    def _pairs(self) -> Parallel:
        texts = self.texts
        is_best = np.diff(texts.answered, prepend=-1) != 0
        asked = np.split(texts.questions.ids, texts.questions.starts[1:-1])
        told = np.split(texts.answers.ids, texts.answers.starts[1:-1])
        best = zip(texts.answered[is_best].tolist(), np.flatnonzero(is_best).tolist(), strict=True)
        return Parallel.of(((asked[question], told[answer]) for question, answer in best), PAIR_TERMS)

    def _translations(self) -> Learned:
        size = len(self.texts.vocabulary)
        return Learned(learn_translations(self._pairs().both_ways(), size, ALIGNMENT), PhraseTable.none(size))

    def _phrases(self, learning: PhraseLearning) -> Learned:
        size = len(self.texts.vocabulary)
        return Learned(Translations.none(size), learning.learned(self._pairs(), self.translations(), size))

    def _topics(self, kind: str, learning: TopicLearning) -> Learned:
        texts, size = self.texts, len(self.texts.vocabulary)
        answers, answered, votes = texts.answers, texts.answered, texts.votes
        if kind == "qatm":
            is_best = np.diff(answered, prepend=-1) != 0
            told = np.split(answers.ids, answers.starts[1:-1])
            answers = TermLists.of(told[place] for place in np.flatnonzero(is_best).tolist())
            answered, votes = answered[is_best], votes[is_best]
        topics = learn_voted_topics(texts.questions, answers, answered, votes, size, learning)
        return Learned(Translations.none(size), PhraseTable.none(size), topics)
