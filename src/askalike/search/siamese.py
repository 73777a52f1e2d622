"""SCQA, and SCQA beside BM25 (T-SCQA), as rankers of a forum. ::

    scqa(q, p)    = cos(v_q, v_p)
    t-scqa(q, p)  = α · cos(v_q, v_p) + (1 - α) · bm25(q, p) / max_p' bm25(q, p')          p' over the candidates

``dsqa`` and ``t-dsqa`` are the same by the vectors of a network whose sides share nothing.

Source: Das et al. 2016 (ACL), section 5, and section 6, equation 3.
Differs: the paper does not say how BM25 is brought beside a cosine, and Lucene's scores have no upper bound. Here it is
the share of the best candidate's, as in ``weighted_sum``: α then means the same for short and for long questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.search.pool import Pooled, Scored
from askalike.search.rankers import shares, weighted_sum
from askalike.search.settings import TextualSettings
from askalike.types import Explanation, Query, Question, WordEffect

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
