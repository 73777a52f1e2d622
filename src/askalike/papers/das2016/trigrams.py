"""A control for the networks: the cosine of what they read, the counts of letter trigrams, without a network.

::

    v(t)      = tf(t) · idf(t)                      idf(t) = ln((1 + N) / (1 + df(t))) + 1, or 1
    cos(q, d) = Σ_t v_q(t) v_d(t) / (|v_q| |v_d|)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.evaluation.forum.scorers import rerank
from askalike.models.siamese.trigram_texts import SiameseReader
from askalike.papers.das2016.data import DasData
from askalike.papers.harness import Answered
from askalike.text.settings import TextSettings
from askalike.types import Question


class TrigramCosine:
    """A ``PairScorer``: the cosine of two questions' trigrams, title and body joined as the networks read them.

    Args:
        collection: questions that document frequencies are counted in; None for counts without idf.

    Example:
        ``aa`` is #aa, aa#; ``ab`` is #ab, ab#; so ``aa ab`` and ``aa`` share two of four: 2 / (√4 · √2).

        >>> one, other = Question("q", "aa ab"), Question("d", "aa")
        >>> TrigramCosine().scores(one, [other]).round(4).tolist()
        [0.7071]
        >>> TrigramCosine([other]).scores(one, [other]).round(4).tolist()  # idf 1 and ln 2 + 1: √2 / √(2 + 2 · 1.6931²)
        [0.5085]
    """

    def __init__(self, collection: Iterable[Question] | None = None) -> None:
        self._reader: Final = SiameseReader(TextSettings(), "joined")
        self._known: dict[Question, Mapping[str, float]] = {}
        counted: Counter[str] = Counter()
        documents = 0
        for question in collection or ():
            counted.update(set(self._reader.question(question)))
            documents += 1
        self._counted = None if collection is None else counted
        self._documents = documents

    def scores(self, query: Question, candidates: Sequence[Question]) -> NDArray[np.float64]:
        """Return one cosine for each candidate, in [0, 1].  # (N,)"""
        own = self._vector(query)
        found = (self._vector(candidate) for candidate in candidates)
        return np.array([sum(value * one.get(name, 0.0) for name, value in own.items()) for one in found])

    def _vector(self, question: Question) -> Mapping[str, float]:
        if question not in self._known:
            counts = Counter(self._reader.question(question))
            values = {name: times * self._idf(name) for name, times in counts.items()}
            norm = math.sqrt(sum(value * value for value in values.values())) or 1.0
            self._known[question] = {name: value / norm for name, value in values.items()}
        return self._known[question]

    def _idf(self, trigram: str) -> float:
        if self._counted is None:
            return 1.0
        return math.log((1 + self._documents) / (1 + self._counted[trigram])) + 1


def trigram_answers(data: DasData, *, has_idf: bool) -> Answered:
    """Return the runs of all tasks.

    Args:
        has_idf: weigh trigrams by the document frequencies of each set's collection.
    """
    found = Answered()
    for one in data.sets:
        scorer = TrigramCosine(one.dev.statistics if has_idf else None)
        found.runs |= {task.name: rerank(task.given, scorer, task.queries, task.documents) for task in one.tasks()}
    return found
