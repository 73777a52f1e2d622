"""What the measures must know of a collection: how rare its terms are, in titles, in bodies and in both.

Enters: the terms of questions. Leaves: ``Statistics``. May import: lexical.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from askalike.lexical import BM25, CollectionStatistics, TfIdf
from askalike.lexical.bm25 import inverse_document_frequency
from askalike.models.similarity.terms import FIELDS, FieldTerms

__all__ = ["Statistics"]


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts of a collection, put into the models that use them.

    Args:
        bm25: field → BM25 over its stems without stop words.
        tfidf: name → TF-IDF over the stems of title and body: ``tfidf_N`` up to N-grams without stop words,
            ``tfidf_N_all`` with them.
        words: in how many questions a word occurs, as it is written.
    """

    bm25: Mapping[str, BM25]
    tfidf: Mapping[str, TfIdf]
    words: CollectionStatistics

    @classmethod
    def count(cls, questions: Sequence[Mapping[str, FieldTerms]]) -> Statistics:
        """Count a collection.

        Args:
            questions: for each question, field → its terms.

        Raises:
            SettingError: the collection is empty.
        """
        joined = [fields["joined"] for fields in questions]
        content = [terms.whole_content for terms in joined]
        return cls(
            bm25={
                field: BM25(CollectionStatistics.count([fields[field].whole_content for fields in questions]))
                for field in FIELDS
            },
            tfidf={
                "tfidf_1": TfIdf(content),
                "tfidf_2": TfIdf(content, longest=2),
                "tfidf_2_all": TfIdf([terms.whole_stems for terms in joined], longest=2),
            },
            words=CollectionStatistics.count([terms.words for terms in joined]),
        )

    def rarity(self, word: str) -> float:
        """Return the inverse document frequency of a word as it is written, > 0."""
        return inverse_document_frequency(self.words.documents, self.words.document_frequency.get(word, 0))
