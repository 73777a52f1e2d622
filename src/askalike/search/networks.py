"""Networks as rankers of a forum: RAMN, and SCQA beside BM25. ::

    scqa(q, p)    = cos(v_q, v_p)
    t-scqa(q, p)  = α · cos(v_q, v_p) + (1 - α) · bm25(q, p) / max_p' bm25(q, p')          p' over the candidates

``dsqa`` and ``t-dsqa`` are the same by the vectors of a network whose sides share nothing.

Source: Das et al. 2016 (ACL), section 5, and section 6, equation 3.
Differs: the paper does not say how BM25 is brought beside a cosine, and Lucene's scores have no upper bound. Here it is
the share of the best candidate's, as in ``weighted_sum``: α then means the same for short and for long questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.models.ramn import RamnSettings, WordStates, compare, rank_factors, scores, word_matches
from askalike.search.pool import Pooled, Scored
from askalike.search.rankers import shares, weighted_sum
from askalike.search.settings import TextualSettings
from askalike.types import Explanation, Query, Question, WordEffect, WordMatch


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


Vector = NDArray[np.float32]


class VectorSource(Protocol):
    """What knows the vectors of texts, of length 1, or of zeros for a text of which nothing is known."""

    def of_query(self, query: Query) -> Vector:
        """Return the vector of a query.  # (D,)"""

    def of_questions(self, questions: Sequence[tuple[int, Question]]) -> Sequence[Vector]:
        """Return the vectors of the forum's questions, given with their keys, in their order."""

    def without_words(self, query: Query) -> tuple[Sequence[str], NDArray[np.float32]]:
        """Return distinct words of a query as they are read, and its vector without each.  # W words, (W, D)

        Of a long query the first words are enough.
        """


@dataclass(frozen=True, slots=True)
class SiameseReranker:
    """A ``rank.Reranker``; components of a hit are ``bm25``, ``cosine`` and, where BM25 counts, ``bm25_share``.

    Args:
        textual: how BM25 counts, None where it does not.
    """

    source: VectorSource
    textual: TextualSettings | None = None

    def scores(self, query: Query, found: Sequence[tuple[Pooled, Question]]) -> list[Scored]:
        """Return the scores above; for a query of which nothing is known, a cosine of 0 with everything."""
        asked = self.source.of_query(query)
        cosines = [0.0] * len(found)
        if asked.any():
            read = self.source.of_questions([(one.key, question) for one, question in found])
            cosines = (np.stack(read) @ asked).tolist()
        if self.textual is None:
            return [
                Scored(one.key, cosine, {**one.components, "cosine": cosine})
                for (one, _), cosine in zip(found, cosines, strict=True)
            ]
        relative = shares([one.components.get("bm25", 0.0) for one, _ in found])
        return [
            Scored(
                one.key,
                weighted_sum(cosine, share, self.textual.alpha),
                {**one.components, "cosine": cosine, "bm25_share": share},
            )
            for (one, _), cosine, share in zip(found, cosines, relative, strict=True)
        ]

    def explain(self, query: Query, questions: Sequence[Question]) -> list[Explanation]:
        """Return for each question how much higher its cosine is with each word of the query than without it. ::

            effect(w) = cos(v_q, v_p) - cos(v_{q without w}, v_p)

        A word is left out with all its repetitions; nothing can be said of a query of one word. Of BM25's part the
        matched words tell.
        """
        words, without = self.source.without_words(query)
        if len(words) < 2 or not questions:
            return [Explanation() for _ in questions]
        vectors = np.stack(self.source.of_questions([(-1 - row, one) for row, one in enumerate(questions)]))  # (N, D)
        effects = vectors @ (self.source.of_query(query)[:, None] - without.T)  # (N, W)
        return [Explanation(effects=tuple(map(WordEffect, words, row))) for row in effects.tolist()]
