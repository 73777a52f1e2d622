"""RAMN as a ranker of a forum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.models.ramn import RamnSettings, WordStates, compare, rank_factors, scores, word_matches
from askalike.search.pool import Pooled, Scored
from askalike.types import Explanation, Query, Question, WordMatch


class StateSource(Protocol):
    """What knows the states of texts, and the corpus that they were learned from."""

    def of_query(self, query: Query) -> WordStates:
        """Return the words and states of a query."""

    def of_questions(self, questions: Sequence[tuple[int, Question]]) -> Sequence[WordStates]:
        """Return the words and states of the forum's questions, given with their keys, in their order."""

    def frequencies(self, words: Sequence[str]) -> NDArray[np.integer]:
        """Return how often each word occurred in the corpus.  # (T,)"""


@dataclass(frozen=True, slots=True)
class RamnReranker:
    """A ``rank.Reranker``; components of a hit are ``bm25`` and ``rank_factor``."""

    source: StateSource
    settings: RamnSettings = field(default_factory=RamnSettings)

    def scores(self, query: Query, found: Sequence[tuple[Pooled, Question]]) -> list[Scored]:
        """Return g(q, Q) per word of the query; none for a query without words, which nothing is like."""
        asked = self.source.of_query(query)
        if not asked.words:
            return [Scored(one.key, 0.0, one.components) for one, _ in found]
        read = self.source.of_questions([(one.key, question) for one, question in found])
        last = len(found) + 1
        ranks = np.array([one.ranks.get("lexical", last) for one, _ in found])
        settings = self.settings
        comparison = compare(
            asked, read, self.source.frequencies, settings.similarity, is_both_ways=settings.is_both_ways
        )
        factors = rank_factors(ranks, settings.alpha).tolist()
        return [
            Scored(one.key, score, {**one.components, "rank_factor": factor})
            for (one, _), score, factor in zip(
                found, scores(comparison, ranks, settings).tolist(), factors, strict=True
            )
        ]

    def explain(self, query: Query, questions: Sequence[Question]) -> list[Explanation]:
        """Return ``word_matches`` of each question."""
        return [Explanation(matches=self.word_matches(query, one)) for one in questions]

    def word_matches(self, query: Query, question: Question) -> tuple[WordMatch, ...]:
        """Return for each word of the query the match that its score takes, their cosine, and what missing it costs.

        The cost is -log f, as a share of that of the query's rarest word; a query's only word has f = 1: missing it
        costs nothing beside other candidates, and its importance is 0.
        """
        asked, (read,) = self.source.of_query(query), self.source.of_questions([(-1, question)])
        if not asked.words:
            return ()
        costs = np.log(compare(asked, [read], self.source.frequencies).importance)
        weights = costs / min(float(costs.min()), -1e-12) + 0.0  # the rarest has 1, the only word 0 (not -0)
        return word_matches(asked, read, weights, self.settings.similarity)
