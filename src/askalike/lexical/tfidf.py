"""TF-IDF cosine over word n-grams, for given pairs and for whole collections."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError

if TYPE_CHECKING:  # SciPy takes long to import, and no search needs it
    from scipy.sparse import csr_array


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
        is_sublinear: ``1 + ln tf`` in place of ``tf``.

    Raises:
        SettingError: the collection is empty or ``longest`` is below 1.
    """

    def __init__(self, documents: Iterable[Sequence[str]], *, longest: int = 1, is_sublinear: bool = False) -> None:
        if longest < 1:
            raise SettingError(f"n-grams of at most {longest} terms were asked for", "expected at least 1")
        self.longest = longest
        self.is_sublinear = is_sublinear
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
                column: self._damp(times) * float(self.idf[column])
                for gram, times in Counter(ngrams(document, self.longest)).items()
                if (column := self.vocabulary.get(gram)) is not None
            }
            norm = math.sqrt(sum(value * value for value in row.values())) or 1.0
            columns.extend(row)
            values.extend(value / norm for value in row.values())
            starts.append(len(values))
        parts = (
            np.array(values, dtype=np.float64),
            np.array(columns, dtype=np.int32),
            np.array(starts, dtype=np.int64),
        )
        return csr_array(parts, shape=(len(documents), len(self.vocabulary)))

    def scores(self, query: Sequence[str], documents: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """Return the cosines of one query with N documents, in [0, 1].  # (N,)"""
        both = self.vectors([query, *documents])
        return np.asarray((both[1:] @ both[[0]].T).toarray(), dtype=np.float64).ravel()

    def _damp(self, times: int) -> float:
        return 1.0 + math.log(times) if self.is_sublinear else float(times)
