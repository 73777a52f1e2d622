"""Questions made ready to be compared: all that a measure needs and that takes only one of the two texts.

Enters: questions and the collection that they belong to. Leaves: ``PreparedText`` by field. May import: types, text,
lexical, and of its own folder terms, statistics, profile, embedding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from askalike.lexical import BM25, TfIdf
from askalike.lexical.bm25 import saturation
from askalike.models.similarity.embedding import WordVectors, known_vectors, mean_vector
from askalike.models.similarity.profile import Profile, character_symbols, ngram_profile
from askalike.models.similarity.statistics import Statistics
from askalike.models.similarity.terms import FIELDS, MOST_WORDS, FieldTerms, Splitter
from askalike.text.settings import TextSettings
from askalike.types import Question

__all__ = ["PreparedText", "Preparer"]

WORD_SIZES = (1, 2, 3)
CHARACTER_SIZES = (2, 3, 4)
TFIDF_FIELDS = {"tfidf_1": FIELDS, "tfidf_2": ("joined",), "tfidf_2_all": ("joined",)}
"""name in ``Statistics.tfidf`` → what of a question it is applied to."""

_REMEMBERED = 1024  # prepared questions, of about 100 kB each


@dataclass(frozen=True, slots=True, eq=False)
class PreparedText:
    """One field of a question.

    Args:
        words: as written, in one case.
        string: the words with one space between them.
        numbers: a number for each stem, the same for the same stem of every text of one ``Preparer``.
        profiles: name → n-grams and their weights: ``stems_N``, ``content_N``, ``characters_N``, the names of
            ``TFIDF_FIELDS`` where it lists the field, ``bm25_query``, ``bm25_document``.
        vectors: ``mean`` and ``mean_idf``, means of the words' vectors; empty where there are no word vectors.
    """

    words: Sequence[str]
    string: str
    numbers: Sequence[int]
    profiles: Mapping[str, Profile]
    vectors: Mapping[str, NDArray[np.float32]]


class Preparer:
    """Prepares the questions of one collection; the latest 1,024 are remembered.

    Args:
        collection: whose statistics say how rare a term is; questions outside it can be prepared too.
        settings: how text becomes terms.
        word_vectors: word → vector, or None for no embedding measures.
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
        self._splitter = Splitter(settings, most_words)
        self._statistics = Statistics.count([self._splitter.fields(question) for question in collection])
        self._word_vectors = word_vectors
        self._numbers: dict[str, int] = {}
        self.prepare = lru_cache(maxsize=_REMEMBERED)(self._prepare)

    @property
    def has_vectors(self) -> bool:
        """Whether there are word vectors."""
        return self._word_vectors is not None

    def _prepare(self, question: Question) -> dict[str, PreparedText]:
        """Return field → prepared text."""
        fields = self._splitter.fields(question)
        return {field: self._text(field, fields[field]) for field in FIELDS}

    def _text(self, field: str, terms: FieldTerms) -> PreparedText:
        string = " ".join(terms.words)
        numbers = self._number(terms.stems)
        symbols = {
            "stems": (np.array(numbers, dtype=np.uint64), WORD_SIZES),
            "content": (np.array(self._number(terms.content), dtype=np.uint64), WORD_SIZES),
            "characters": (character_symbols(string), CHARACTER_SIZES),
        }
        profiles = {
            f"{name}_{size}": ngram_profile(values, size) for name, (values, sizes) in symbols.items() for size in sizes
        }
        for name in TFIDF_FIELDS:
            if field in TFIDF_FIELDS[name]:
                asked = terms.whole_stems if name.endswith("_all") else terms.whole_content
                profiles[name] = _tfidf_profile(self._statistics.tfidf[name], asked)
        profiles |= self._bm25_profiles(self._statistics.bm25[field], terms.whole_content)
        return PreparedText(terms.words, string, numbers, profiles, self._vectors(terms.words))

    def _bm25_profiles(self, model: BM25, terms: Sequence[str]) -> dict[str, Profile]:
        """Return the two sides of BM25: the sum of the products over shared terms is its score."""
        times = Counter(terms)
        codes = np.array(self._number(times), dtype=np.uint64)
        order = np.argsort(codes)
        asked = [count * model.idf(term) for term, count in times.items()]
        average = model.statistics.average_length
        given = [saturation(count, len(terms), average, model.k1, model.b) for count in times.values()]
        return {
            "bm25_query": Profile(codes[order], np.array(asked, dtype=np.float64)[order]),
            "bm25_document": Profile(codes[order], np.array(given, dtype=np.float64)[order]),
        }

    def _vectors(self, words: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        if self._word_vectors is None:
            return {}
        known, rows = known_vectors(words, self._word_vectors)
        return {
            "mean": mean_vector(rows),
            "mean_idf": mean_vector(rows, [self._statistics.rarity(word) for word in known]),
        }

    def _number(self, terms: Iterable[str]) -> list[int]:
        known = self._numbers
        return [known.setdefault(term, len(known)) for term in terms]


def _tfidf_profile(model: TfIdf, terms: Sequence[str]) -> Profile:
    row = model.vectors([terms])
    order = np.argsort(row.indices)
    return Profile(row.indices[order].astype(np.uint64), row.data[order])
