"""The terms of a forum's questions, as a language model reads them, and their topics; kept in memory as they are asked
for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from askalike.forum.lru_cache import LruCache
from askalike.models.language.model import LanguageModel
from askalike.models.query_likelihood.terms import TermLists
from askalike.rank import Query
from askalike.types import Answer, Question

CACHE_BYTES: Final = 64 * 1024**2
"""Of terms that are kept, those asked for last: some 100,000 questions of 80 terms."""

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
_WithAnswer = tuple[Question, Answer | None]


class Candidates(NamedTuple):
    """What a language model reads of candidates.

    Args:
        questions: their terms.
        answers: those of the best answer of each, where the model reads answers.
        mixtures: θ, where the model has topics.  # (N, K)
    """

    questions: TermLists
    answers: TermLists | None
    mixtures: Floats | None


class ModelTerms:
    """Terms as ids; any number of threads may ask.

    Args:
        model: knows how texts become terms.
        answers: a question's answers, best first. They are asked for anew each time, since they may have changed where
            the question has not.
        size_bytes: of terms that are kept, and again of topics.
    """

    def __init__(
        self, model: LanguageModel, answers: Callable[[str], Sequence[Answer]], size_bytes: int = CACHE_BYTES
    ) -> None:
        self._model = model
        self._answers = answers
        self._kept: LruCache[Question, Ids] = LruCache(
            lambda questions: [model.question_ids(one) for one in questions], lambda ids: ids.nbytes, size_bytes
        )
        self._topics: LruCache[_WithAnswer, Floats] = LruCache(self._mixtures, lambda row: row.nbytes, size_bytes)

    def of_query(self, query: Query) -> Ids:
        """Return the terms of a query, read as a question of the forum is."""
        return self._model.question_ids(as_question(query))

    def of_candidates(self, found: Sequence[tuple[int, Question]]) -> Candidates:
        """Return what a query's likelihood is made of by questions, given with their keys; edited ones are read anew.

        Args:
            found: at least one.
        """
        texts, options = TermLists.of(self._kept.of_questions(found)), self._model.settings.options
        best: list[Answer | None] = [None] * len(found)
        if options.reads_answers:
            best = [next(iter(self._answers(question.id)), None) for _, question in found]
        answers = self._of_answers(best) if options.reads_answers else None
        if options.topic_learning is None:
            return Candidates(texts, answers, None)
        items = [(key, (question, answer)) for (key, question), answer in zip(found, best, strict=True)]
        return Candidates(texts, answers, np.stack(self._topics.of_questions(items)))

    def _of_answers(self, answers: Sequence[Answer | None]) -> TermLists:
        return TermLists.of(() if answer is None else self._model.answer_ids(answer) for answer in answers)

    def _mixtures(self, items: list[_WithAnswer]) -> list[Floats]:
        questions = TermLists.of(self._model.question_ids(question) for question, _ in items)
        found = self._model.learned.topics.mixtures(questions, self._of_answers([answer for _, answer in items]))
        return [row.copy() for row in found]  # so that none keeps the others alive


def as_question(query: Query) -> Question:
    """Return a query as a question that has no id."""
    return Question("", query.title, query.body, query.markup)
