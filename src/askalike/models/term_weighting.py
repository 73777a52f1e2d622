"""BM25 and TF-IDF for given pairs of query and document: the exact formulas, without an index."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError

if TYPE_CHECKING:  # SciPy is loaded when it is first needed
    from scipy.sparse import csr_array


@dataclass(frozen=True, slots=True)
class CollectionStatistics:
    """Counts over the documents of a collection.

    Args:
        documents: N, how many.
        average_length: mean number of terms in a document.
        document_frequency: term → number of documents that it occurs in.
    """

    documents: int
    average_length: float
    document_frequency: Mapping[str, int]

    @classmethod
    def count(cls, documents: Iterable[Sequence[str]]) -> CollectionStatistics:
        """Count a collection.

        >>> counted = CollectionStatistics.count([["a", "b", "a"], ["b"]])
        >>> counted.documents, counted.average_length, dict(counted.document_frequency)
        (2, 2.0, {'a': 1, 'b': 2})

        Raises:
            SettingError: the collection is empty.
        """
        lengths: list[int] = []
        frequency: Counter[str] = Counter()
        for document in documents:
            lengths.append(len(document))
            frequency.update(dict.fromkeys(document, 1))
        if not lengths:
            raise SettingError("the collection has no document", "give at least one")
        return cls(len(lengths), sum(lengths) / len(lengths), frequency)


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

    def score(self, query: Sequence[str], document: Sequence[str]) -> float:
        """Return the score of one pair; a term that the query repeats counts as often as it occurs."""
        frequencies, known = Counter(document), self.statistics
        length, average = len(document), known.average_length
        return sum(
            times
            * inverse_document_frequency(known.documents, known.document_frequency.get(term, 0))
            * saturation(frequencies[term], length, average, self.k1, self.b)
            for term, times in Counter(query).items()
            if term in frequencies
        )

    def scores(self, query: Sequence[str], documents: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """Return the scores of one query against N documents.  # (N,)"""
        return np.array([self.score(query, document) for document in documents], dtype=np.float64)


def ngrams(terms: Sequence[str], longest: int) -> Iterator[str]:
    """Yield every n-gram for n = 1 … ``longest``, its terms joined by one space.

    >>> list(ngrams(["a", "b", "c"], 2))
    ['a', 'b', 'c', 'a b', 'b c']
    """
    for size in range(1, longest + 1):
        for start in range(len(terms) - size + 1):
            yield " ".join(terms[start : start + size])


class TfIdf:
    """A collection's n-grams and their weights ``tf(t, d) · (ln((1 + N) / (1 + df(t))) + 1)``, vectors of length 1.

    Args:
        documents: the collection, as lists of terms; n-grams that it lacks are ignored in scoring.
        longest: n-grams of up to this many terms, 1 to 3 in the published baselines.

    Raises:
        SettingError: the collection is empty or ``longest`` is below 1.
    """

    def __init__(self, documents: Iterable[Sequence[str]], *, longest: int = 1) -> None:
        if longest < 1:
            raise SettingError(f"n-grams of at most {longest} terms were asked for", "expected at least 1")
        self.longest = longest
        frequency: Counter[str] = Counter()
        number = 0
        for document in documents:
            number += 1
            frequency.update(set(ngrams(document, longest)))
        if not number:
            raise SettingError("the collection has no document", "give at least one")
        self.vocabulary = {gram: column for column, gram in enumerate(sorted(frequency))}
        counts = np.fromiter(
            (frequency[gram] for gram in self.vocabulary), dtype=np.float64, count=len(self.vocabulary)
        )
        self.idf = np.log((1.0 + number) / (1.0 + counts)) + 1.0  # (V,)

    def vectors(self, documents: Sequence[Sequence[str]]) -> csr_array:
        """Return one row of length 1 for each document, of zeros where it has no known n-gram.  # (N, V)"""
        from scipy.sparse import csr_array

        values: list[float] = []
        columns: list[int] = []
        starts = [0]
        for document in documents:
            row = {
                column: times * float(self.idf[column])
                for gram, times in Counter(ngrams(document, self.longest)).items()
                if (column := self.vocabulary.get(gram)) is not None
            }
            norm = math.sqrt(sum(value * value for value in row.values())) or 1.0
            columns.extend(row)
            values.extend(value / norm for value in row.values())
            starts.append(len(values))
        return csr_array((values, columns, starts), shape=(len(documents), len(self.vocabulary)), dtype=np.float64)

    def scores(self, query: Sequence[str], documents: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """Return the cosines of one query with N documents, in [0, 1].  # (N,)"""
        return np.asarray((self.vectors(documents) @ self.vectors([query]).T).toarray()).ravel()
