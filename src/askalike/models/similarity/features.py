"""The similarity measures by name, and the matrix of all of them for a query and its candidates.

Enters: questions. Leaves: one row of similarities for each candidate. May import: types, text, and its own folder.

Source: Bär, Zesch and Gurevych 2013, "DKPro Similarity: An Open Source Framework for Text Similarity", table 1, for the
family; Lei et al. 2016 use it as the features of a ranking SVM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askalike.models.similarity.edit import jaro, jaro_winkler, levenshtein, monge_elkan
from askalike.models.similarity.embedding import WordVectors, vector_cosine
from askalike.models.similarity.overlap import containment, cosine, jaccard, length_ratio
from askalike.models.similarity.prepared import CHARACTER_SIZES, TFIDF_FIELDS, WORD_SIZES, PreparedText, Preparer
from askalike.models.similarity.profile import Profile, product_sums
from askalike.models.similarity.subsequence import longest_common_subsequence, longest_common_substring
from askalike.models.similarity.terms import FIELDS, MOST_WORDS
from askalike.models.similarity.tiling import greedy_string_tiling
from askalike.text.settings import TextSettings
from askalike.types import Question

__all__ = ["MEASURES", "Measure", "SimilarityFeatures"]

Score = Callable[[PreparedText, Sequence[PreparedText]], NDArray[np.float64]]
"""(query's text, the N candidates' texts) → N similarities, higher is more similar.  # (N,)"""


@dataclass(frozen=True, slots=True)
class Measure:
    """A similarity of two texts.

    Args:
        score: the similarities of one text with N others.
        fields: what of a question it is applied to; the same of both.
        needs_vectors: whether it is left out where there are no word vectors.
    """

    score: Score
    fields: tuple[str, ...] = FIELDS
    needs_vectors: bool = False


def _of_profiles(measure: Callable[[Profile, Sequence[Profile]], NDArray[np.float64]], name: str) -> Score:
    return lambda query, candidates: measure(query.profiles[name], [text.profiles[name] for text in candidates])


def _of_strings(measure: Callable[[str, Sequence[str]], NDArray[np.float64]]) -> Score:
    return lambda query, candidates: measure(query.string, [text.string for text in candidates])


def _of_stems(measure: Callable[[Sequence[int], Sequence[Sequence[int]]], NDArray[np.float64]]) -> Score:
    return lambda query, candidates: measure(query.numbers, [text.numbers for text in candidates])


def _of_vectors(name: str) -> Score:
    return lambda query, candidates: vector_cosine(query.vectors[name], [text.vectors[name] for text in candidates])


def _bm25(query: PreparedText, candidates: Sequence[PreparedText]) -> NDArray[np.float64]:
    return product_sums(query.profiles["bm25_query"], [text.profiles["bm25_document"] for text in candidates])


def _monge_elkan(query: PreparedText, candidates: Sequence[PreparedText]) -> NDArray[np.float64]:
    return monge_elkan(query.words, [text.words for text in candidates])


def _length_ratio(query: PreparedText, candidates: Sequence[PreparedText]) -> NDArray[np.float64]:
    return length_ratio(len(query.words), [len(text.words) for text in candidates])


_APART = ("title", "body")  # what depends on order is not asked of title and body joined

MEASURES: dict[str, Measure] = {
    **{
        f"{name}_{kind}_{size}": Measure(_of_profiles(measure, f"{kind}_{size}"))
        for kind in ("stems", "content")
        for size in WORD_SIZES
        for name, measure in (("jaccard", jaccard), ("containment", containment))
    },
    **{
        f"{name}_characters_{size}": Measure(_of_profiles(measure, f"characters_{size}"))
        for size in CHARACTER_SIZES
        for name, measure in (("jaccard", jaccard), ("cosine", cosine))
    },
    "subsequence_characters": Measure(_of_strings(longest_common_subsequence), _APART),
    "subsequence_stems": Measure(_of_stems(longest_common_subsequence), _APART),
    "substring_characters": Measure(_of_strings(longest_common_substring), _APART),
    "substring_stems": Measure(_of_stems(longest_common_substring), _APART),
    "tiling_stems": Measure(_of_stems(greedy_string_tiling), _APART),
    "levenshtein": Measure(_of_strings(levenshtein), _APART),
    "jaro": Measure(_of_strings(jaro), _APART),
    "jaro_winkler": Measure(_of_strings(jaro_winkler), _APART),
    "monge_elkan": Measure(_monge_elkan, ("title",)),
    **{name: Measure(_of_profiles(cosine, name), fields) for name, fields in TFIDF_FIELDS.items()},
    "bm25": Measure(_bm25),
    "embedding": Measure(_of_vectors("mean"), needs_vectors=True),
    "embedding_idf": Measure(_of_vectors("mean_idf"), needs_vectors=True),
    "length_ratio": Measure(_length_ratio, _APART),
}
"""name → measure. ``stems``: with stop words; ``content``: without. All are in [0, 1] but cosines of vectors, in
[-1, 1], and BM25, ≥ 0 and without a bound."""


class SimilarityFeatures:
    """Turns a query and its candidates into a matrix of similarities.

    Args:
        collection: whose statistics say how rare a term is.
        settings: how text becomes terms.
        word_vectors: word → vector, or None: then the embedding measures are left out.
        most_words: bodies are cut after this many words, but not for TF-IDF and BM25.

    Raises:
        SettingError: the collection is empty, or ``most_words`` is below 1.
    """

    def __init__(
        self,
        collection: Iterable[Question],
        settings: TextSettings,
        word_vectors: WordVectors | None = None,
        most_words: int = MOST_WORDS,
    ) -> None:
        self._preparer = Preparer(collection, settings, word_vectors, most_words)
        self._columns = [
            (field, name)
            for name, measure in MEASURES.items()
            if self._preparer.has_vectors or not measure.needs_vectors
            for field in measure.fields
        ]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the F columns, ``FIELD.MEASURE``."""
        return tuple(f"{field}.{name}" for field, name in self._columns)

    def matrix(self, query: Question, candidates: Sequence[Question]) -> NDArray[np.float64]:
        """Return the similarities of the query with each candidate, columns as in ``names``.  # (N, F)

        Raises:
            MissingExtraError: rapidfuzz is not installed.
        """
        asked = self._preparer.prepare(query)
        given = [self._preparer.prepare(candidate) for candidate in candidates]
        texts = {field: [prepared[field] for prepared in given] for field in FIELDS}
        matrix = np.empty((len(candidates), len(self._columns)))
        for column, (field, name) in enumerate(self._columns):
            matrix[:, column] = MEASURES[name].score(asked[field], texts[field])
        return matrix
