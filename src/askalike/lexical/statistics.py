"""What a term-based scorer must know of a collection: its documents, their lengths, the frequencies of terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from askalike.errors import SettingError


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
        number = 0
        terms = 0
        frequency: Counter[str] = Counter()
        for document in documents:
            number += 1
            terms += len(document)
            frequency.update(dict.fromkeys(document, 1))
        if not number:
            raise SettingError("the collection has no document", "give at least one")
        return cls(number, terms / number, frequency)
