"""The similarity measures by name, and the matrix of all of them for a query and its candidates.

Source: Bär, Zesch and Gurevych 2013, "DKPro Similarity: An Open Source Framework for Text Similarity", table 1, for the
family; Lei et al. 2016 use it as the features of a ranking SVM.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import add
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.similarity.measures import (
    Profile,
    WordVectors,
    character_symbols,
    containment,
    cosine,
    greedy_string_tiling,
    jaccard,
    jaro,
    jaro_winkler,
    known_vectors,
    length_ratio,
    levenshtein,
    longest_common_subsequence,
    longest_common_substring,
    mean_vector,
    monge_elkan,
    ngram_profile,
    product_sums,
    vector_cosine,
)
from askalike.models.term_weighting import BM25, CollectionStatistics, TfIdf, inverse_document_frequency, saturation
from askalike.text.analyzer import Analyzer
from askalike.text.markup import readable
from askalike.text.settings import TextSettings
from askalike.text.tokens import words
from askalike.types import Question

FIELDS = ("title", "body", "joined")

MOST_WORDS = 100
"""Bodies are cut after this many words, as the encoders cut them, for all but TF-IDF and BM25."""


class FieldTerms(NamedTuple):
    """The words of one field: as written, in one case, then stems with stop words and without; and all stems of both.

    The first three are of the beginning, ``most_words`` long.
    """

    words: list[str]
    stems: list[str]
    content: list[str]
    whole_stems: list[str]
    whole_content: list[str]


WORD_SIZES = (1, 2, 3)
CHARACTER_SIZES = (2, 3, 4)
TFIDF_FIELDS = {"tfidf_1": FIELDS, "tfidf_2": ("joined",), "tfidf_2_all": ("joined",)}
"""``tfidf_N``: of stems up to N-grams without stop words; ``_all``: with them. Name → what it is applied to."""

_REMEMBERED = 1024  # prepared questions, of about 100 kB each


@dataclass(frozen=True, slots=True, eq=False)
class PreparedText:
    """One field of a question.

    Args:
        words: as written, in one case.
        string: the words with one space between them.
        numbers: a number for each stem, the same for the same stem of every text of one collection.
        profiles: name → n-grams and their weights: ``stems_N``, ``content_N``, ``characters_N``, the names of
            ``TFIDF_FIELDS`` where it lists the field, ``bm25_query``, ``bm25_document``.
        vectors: ``mean`` and ``mean_idf``, means of the words' vectors; empty where there are no word vectors.
    """

    words: Sequence[str]
    string: str
    numbers: Sequence[int]
    profiles: Mapping[str, Profile]
    vectors: Mapping[str, NDArray[np.float32]]


Score = Callable[[PreparedText, Sequence[PreparedText]], NDArray[np.float64]]
"""(query's text, the N candidates' texts) → N similarities, higher is more similar.  # (N,)"""


@dataclass(frozen=True, slots=True)
class Feature:
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

FEATURES: dict[str, Feature] = {
    **{
        f"{name}_{kind}_{size}": Feature(_of_profiles(measure, f"{kind}_{size}"))
        for kind in ("stems", "content")
        for size in WORD_SIZES
        for name, measure in (("jaccard", jaccard), ("containment", containment))
    },
    **{
        f"{name}_characters_{size}": Feature(_of_profiles(measure, f"characters_{size}"))
        for size in CHARACTER_SIZES
        for name, measure in (("jaccard", jaccard), ("cosine", cosine))
    },
    "subsequence_characters": Feature(_of_strings(longest_common_subsequence), _APART),
    "subsequence_stems": Feature(_of_stems(longest_common_subsequence), _APART),
    "substring_characters": Feature(_of_strings(longest_common_substring), _APART),
    "substring_stems": Feature(_of_stems(longest_common_substring), _APART),
    "tiling_stems": Feature(_of_stems(greedy_string_tiling), _APART),
    "levenshtein": Feature(_of_strings(levenshtein), _APART),
    "jaro": Feature(_of_strings(jaro), _APART),
    "jaro_winkler": Feature(_of_strings(jaro_winkler), _APART),
    "monge_elkan": Feature(_monge_elkan, ("title",)),
    **{name: Feature(_of_profiles(cosine, name), fields) for name, fields in TFIDF_FIELDS.items()},
    "bm25": Feature(_bm25),
    "embedding": Feature(_of_vectors("mean"), needs_vectors=True),
    "embedding_idf": Feature(_of_vectors("mean_idf"), needs_vectors=True),
    "length_ratio": Feature(_length_ratio, _APART),
}
"""name → measure. ``stems``: with stop words; ``content``: without. All are in [0, 1] but cosines of vectors, in
[-1, 1], and BM25, ≥ 0 and without a bound."""


class SimilarityFeatures:
    """Turns a query and its candidates into a matrix of similarities; the latest 1,024 questions are remembered.

    Args:
        collection: whose statistics say how rare a term is; questions outside it can be compared too.
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
        if most_words < 1:
            raise SettingError(f"bodies are cut after {most_words} words", "expected at least 1")
        self._settings, self._most_words, self._word_vectors = settings, most_words, word_vectors
        self._all = Analyzer(replace(settings, stop_words=False))
        self._content = Analyzer(replace(settings, stop_words=True))
        self._numbers: dict[str, int] = {}
        self._columns = [
            (field, name)
            for name, measure in FEATURES.items()
            if word_vectors is not None or not measure.needs_vectors
            for field in measure.fields
        ]
        questions = [self._fields(question) for question in collection]
        joined = [fields["joined"] for fields in questions]
        content = [terms.whole_content for terms in joined]
        self._bm25 = {
            field: BM25(CollectionStatistics.count([fields[field].whole_content for fields in questions]))
            for field in FIELDS
        }
        self._tfidf = {
            "tfidf_1": TfIdf(content),
            "tfidf_2": TfIdf(content, longest=2),
            "tfidf_2_all": TfIdf([terms.whole_stems for terms in joined], longest=2),
        }
        self._words = CollectionStatistics.count([terms.words for terms in joined])
        self._prepare = lru_cache(maxsize=_REMEMBERED)(self._prepared)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the F columns, ``FIELD.MEASURE``."""
        return tuple(f"{field}.{name}" for field, name in self._columns)

    def matrix(self, query: Question, candidates: Sequence[Question]) -> NDArray[np.float64]:
        """Return the similarities of the query with each candidate, columns as in ``names``.  # (N, F)

        Raises:
            MissingExtraError: rapidfuzz is not installed.
        """
        asked = self._prepare(query)
        given = [self._prepare(candidate) for candidate in candidates]
        texts = {field: [prepared[field] for prepared in given] for field in FIELDS}
        matrix = np.empty((len(candidates), len(self._columns)))
        for column, (field, name) in enumerate(self._columns):
            matrix[:, column] = FEATURES[name].score(asked[field], texts[field])
        return matrix

    def _prepared(self, question: Question) -> dict[str, PreparedText]:
        """Return field → all that a measure needs and that takes only this one question."""
        fields = self._fields(question)
        return {field: self._text(field, fields[field]) for field in FIELDS}

    def _fields(self, question: Question) -> dict[str, FieldTerms]:
        title = self._terms(question.title)
        body = self._terms(readable(question.body, question.markup, with_code=self._settings.with_code))
        return {"title": title, "body": body, "joined": FieldTerms(*map(add, title, body))}

    def _terms(self, text: str) -> FieldTerms:
        pieces = text.split()
        whole, beginning = " ".join(pieces), " ".join(pieces[: self._most_words])
        return FieldTerms(
            words=words(beginning),
            stems=self._all.terms(beginning),
            content=self._content.terms(beginning),
            whole_stems=self._all.terms(whole),
            whole_content=self._content.terms(whole),
        )

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
                profiles[name] = _tfidf_profile(self._tfidf[name], asked)
        profiles |= self._bm25_profiles(self._bm25[field], terms.whole_content)
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
            "mean_idf": mean_vector(rows, [self._rarity(word) for word in known]),
        }

    def _rarity(self, word: str) -> float:
        """Return the inverse document frequency of a word as it is written, > 0."""
        return inverse_document_frequency(self._words.documents, self._words.document_frequency.get(word, 0))

    def _number(self, terms: Iterable[str]) -> list[int]:
        known = self._numbers
        return [known.setdefault(term, len(known)) for term in terms]


def _tfidf_profile(model: TfIdf, terms: Sequence[str]) -> Profile:
    row = model.vectors([terms])
    order = np.argsort(row.columns)
    return Profile(row.columns[order].astype(np.uint64), row.values[order])
