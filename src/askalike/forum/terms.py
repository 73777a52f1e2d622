"""The terms of a forum's questions, as a language model reads them; kept in memory as they are asked for.

Enters: queries, questions. Leaves: term ids. May import: language, rank, types, its own folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.forum.kept import Kept
from askalike.language.lists import TermLists
from askalike.language.model import LanguageModel
from askalike.rank import Query
from askalike.types import Answer, Question

__all__ = ["ModelTerms", "as_question"]

CACHE_BYTES: Final = 64 * 1024**2
"""Of terms that are kept, those asked for last: some 100,000 questions of 80 terms."""

Ids = NDArray[np.int64]


class ModelTerms:
    """Terms as ids; any number of threads may ask.

    Args:
        model: knows how texts become terms.
        answers: a question's answers, best first. They are asked for anew each time, since they may have changed where
            the question has not.
        size_bytes: terms that are kept.
    """

    def __init__(
        self, model: LanguageModel, answers: Callable[[str], Sequence[Answer]], size_bytes: int = CACHE_BYTES
    ) -> None:
        self._model = model
        self._answers = answers
        self._kept: Kept[Ids] = Kept(
            lambda questions: [model.question_ids(one) for one in questions], lambda ids: ids.nbytes, size_bytes
        )

    def of_query(self, query: Query) -> Ids:
        """Return the terms of a query, read as a question of the forum is."""
        return self._model.question_ids(as_question(query))

    def of_questions(self, questions: Sequence[tuple[int, Question]]) -> TermLists:
        """Return the terms of questions, given with their keys; an edited one is read anew."""
        return TermLists.of(self._kept.of_questions(questions))

    def of_best_answers(self, questions: Sequence[Question]) -> TermLists:
        """Return the terms of each question's best answer, nothing where it has none."""
        best = (self._answers(question.id)[:1] for question in questions)
        return TermLists.of(self._model.answer_ids(found[0]) if found else () for found in best)


def as_question(query: Query) -> Question:
    """Return a query as a question that has no id."""
    return Question("", query.title, query.body, query.markup)
