"""BM25 for given pairs of query and document: the exact formula, without an index."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.lexical.statistics import CollectionStatistics


def inverse_document_frequency(documents: int, frequency: int) -> float:
    """Return ``ln(1 + (N - df + 0.5) / (df + 0.5))``, which is > 0.

    >>> round(inverse_document_frequency(documents=10, frequency=2), 4)
    1.4816
    """
    return math.log(1.0 + (documents - frequency + 0.5) / (frequency + 0.5))


def saturation(frequency: float, length: float, average_length: float, k1: float, b: float) -> float:
    """Return ``tf (k1 + 1) / (tf + k1 (1 - b + b · length / average_length))``, in [0, k1 + 1).

    >>> saturation(frequency=2, length=10, average_length=10, k1=1.2, b=0.75)
    1.375
    """
    if not frequency:
        return 0.0
    ratio = length / average_length if average_length else 1.0
    return frequency * (k1 + 1.0) / (frequency + k1 * (1.0 - b + b * ratio))


class BM25:
    """Scores pairs: ``Σ_{t ∈ q} qtf(t) · idf(t) · saturation(tf(t, d), |d|)``.

    Args:
        statistics: of the collection that the documents belong to; a term that it has not seen has df = 0.
        k1: how slowly repeated terms stop counting, ≥ 0.
        b: how much long documents are held back, in [0, 1].

    Raises:
        SettingError: k1 or b is out of range.
    """

    def __init__(self, statistics: CollectionStatistics, *, k1: float = 1.2, b: float = 0.75) -> None:
        if k1 < 0 or not 0 <= b <= 1:
            raise SettingError(f"k1 is {k1} and b is {b}", "expected k1 ≥ 0 and b from 0 to 1")
        self.statistics = statistics
        self.k1 = k1
        self.b = b

    def idf(self, term: str) -> float:
        """Return the term's inverse document frequency in the collection."""
        return inverse_document_frequency(self.statistics.documents, self.statistics.document_frequency.get(term, 0))

    def score(self, query: Sequence[str], document: Sequence[str]) -> float:
        """Return the score of one pair; a term that the query repeats counts as often as it occurs."""
        frequencies = Counter(document)
        length, average = len(document), self.statistics.average_length
        return sum(
            times * self.idf(term) * saturation(frequencies[term], length, average, self.k1, self.b)
            for term, times in Counter(query).items()
            if term in frequencies
        )

    def scores(self, query: Sequence[str], documents: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """Return the scores of one query against N documents.  # (N,)"""
        return np.array([self.score(query, document) for document in documents], dtype=np.float64)
