"""Language models as rankers of a forum: how likely each candidate makes the query."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from askalike.forum.terms import ModelTerms, as_question
from askalike.models.language.model import LanguageModel
from askalike.models.query_likelihood.terms import term_ids
from askalike.rank import Query
from askalike.rank.pool import Pooled
from askalike.rank.scored import Scored
from askalike.types import Answer, Explanation, Question, WordMatch


class LikelihoodReranker:
    """A ``rank.Reranker``; components of a hit are ``bm25`` and ``likelihood``, which is the score.

    Args:
        model: what was learned.
        answers: a question's answers, best first; asked for where the model reads them.
    """

    def __init__(self, model: LanguageModel, answers: Callable[[str], Sequence[Answer]]) -> None:
        self._model = model
        self._terms = ModelTerms(model, answers)

    def scores(self, query: Query, found: Sequence[tuple[Pooled, Question]]) -> list[Scored]:
        """Return how much likelier each candidate makes a word of the query than the forum as a whole does, > 0.

        A query without terms has none: nothing is like it.
        """
        asked = self._terms.of_query(query)
        if not len(asked):
            return [Scored(one.key, 0.0, one.components) for one, _ in found]
        candidates = self._terms.of_candidates([(one.key, question) for one, question in found])
        ratios = self._model.scorer.mean_ratios(asked, *candidates)
        return [
            Scored(one.key, ratio, {**one.components, "likelihood": ratio})
            for (one, _), ratio in zip(found, ratios.tolist(), strict=True)
        ]

    def explain(self, query: Query, questions: Sequence[Question]) -> list[Explanation]:
        """Return ``word_matches`` of each question."""
        return [Explanation(one.id, matches=self.word_matches(query, one)) for one in questions]

    def word_matches(self, query: Query, question: Question) -> tuple[WordMatch, ...]:
        """Return for each word of the query the words of the question that stand for it best, and how well.

        A word that the question has stands for itself, with 1; where the model knows nothing for a word, nothing does.
        How important a word is tells its rarity, ``log P(w|C)`` beside that of the query's rarest.
        """
        reader, vocabulary = self._model.reader, self._model.vocabulary
        words, theirs = reader.question(as_question(query)), reader.question(question)
        if not (words and theirs):
            return ()
        asked = term_ids(vocabulary, words)
        found, held = self._model.word_alignments(asked, term_ids(vocabulary, theirs)), set(theirs)
        pieces = zip(found.starts.tolist(), found.ends.tolist(), found.values.tolist(), strict=True)
        return tuple(
            WordMatch(word, word, 1.0, weight, is_missing=False)
            if word in held
            else WordMatch(word, " ".join(theirs[start:end]) if value else "", value, weight, is_missing=True)
            for word, (start, end, value), weight in zip(words, pieces, self._importance(asked).tolist(), strict=True)
        )

    def _importance(self, asked: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return 1 for the query's rarest word, and less for others.  # (T,)"""
        costs = np.log(self._model.collection.probabilities(asked))
        return np.asarray(costs / min(float(costs.min()), -1e-12))
