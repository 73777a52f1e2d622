"""Rankers that learn from a forum: they put in a new order what the search by words has found.

A reranker is a folder in the forum that ``askalike train`` fills, a class that scores candidates, and a row in
``RERANKERS``. Its candidates are the best of the search by words, as many as ``JoinSettings.depth`` says or more, and
as many that have words spelled nearly as those that no question has, where it is one of ``BY_LETTERS``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from askalike.search.pool import Pool, Pooled, Scored
from askalike.types import Explanation, Query, Question

RERANKERS: Final[Mapping[str, str]] = {
    "ramn": "attentive matching of words by their states, learned from texts alone",
    "lmir": "the query's likelihood by a candidate's words",
    "translation": "the query's likelihood by what a candidate's words translate into, learned from best answers",
    "translm": "the query's likelihood by a candidate's words and by what they translate into",
    "phrase": "the query's likelihood by what a candidate's phrases become, learned from best answers",
    "qatm": "the query's likelihood by a candidate's words and by its topics, learned from best answers",
    "sqatm": "translm beside a candidate's topics, learned from all answers by their votes",
    "scqa": "nearness by a siamese network over letter trigrams, learned from best answers",
    "t-scqa": "scqa beside BM25",
    "dsqa": "as scqa, by a network whose two sides share nothing",
    "t-dsqa": "dsqa beside BM25",
}
"""Name → what it does, in a few words."""

BY_LETTERS: Final = frozenset({"scqa", "t-scqa", "dsqa", "t-dsqa"})
"""Those to which a misspelt word is near the one that was meant: what is spelled alike are candidates for them too."""

_WITH: Final[Mapping[str, str]] = {"t-scqa": "scqa", "t-dsqa": "dsqa"}


def learned_as(name: str) -> str:
    """Return the ranker in whose folder a ranker finds what it has learned.

    >>> learned_as("t-scqa"), learned_as("ramn")
    ('scqa', 'ramn')
    """
    return _WITH.get(name, name)


def learned_with(name: str) -> list[str]:
    """Return the rankers that use what is learned by one of them.

    >>> learned_with("scqa")
    ['scqa', 't-scqa']
    """
    return [one for one in RERANKERS if learned_as(one) == name]


class Reranker(Protocol):
    """A ranker with what it has learned; any number of threads may ask it."""

    def scores(self, query: Query, found: Sequence[tuple[Pooled, Question]]) -> list[Scored]:
        """Return each candidate's score, in their order; higher is better, and one of 0 or less is no hit.

        Args:
            found: at least one; the pool's components and ranks, and the question.
        """

    def explain(self, query: Query, questions: Sequence[Question]) -> list[Explanation]:
        """Return what each word of the query was to a question, for each; no words where the ranker cannot say."""


def rerank(reranker: Reranker, pool: Pool) -> list[Scored]:
    """Return the scores of a pool's candidates; those that have gone meanwhile are left out."""
    questions = pool.engine.questions([one.key for one in pool.candidates])
    found = [(one, questions[one.key]) for one in pool.candidates if one.key in questions]
    return reranker.scores(pool.asked.query, found) if found else []
