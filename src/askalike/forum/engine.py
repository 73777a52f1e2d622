"""The engine of one machine: records from the store, candidates from the lexical index and the vectors."""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from askalike.forum.settings import Neighbours
from askalike.index.vector_set import VectorSet
from askalike.index.vector_sets import has_faiss
from askalike.index.vectors import VectorSnapshot
from askalike.index.words import FieldWeights, WordSnapshot
from askalike.models.encoders.model import Model, WordStates
from askalike.processes import one_blas_thread
from askalike.search import Candidate, Query
from askalike.search.engine import DuplicateLinks, TermStatistics
from askalike.search.interaction import WeighedStates, rarities
from askalike.search.texts import Text, unpacked
from askalike.store import Store
from askalike.text.analyzer import Analyzer
from askalike.types import Answer, Filters, Question

FEW_SHARE = 0.2
"""Up to this share of the questions, those that satisfy a filter are listed first, in 7 ms of 200,000 at most; of
more, the nearest vectors are taken first and those that do not satisfy it are dropped."""


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """``search.Engine`` over a store and one state of its word index and, where there are some, of its vectors."""

    store: Store
    index: WordSnapshot
    fields: FieldWeights
    vectors: VectorSnapshot | None = None
    neighbours: Neighbours = "auto"

    def statistics(self, terms: Collection[str]) -> TermStatistics:
        """Return how many questions are in the index, and how many have each of these terms."""
        return TermStatistics(self.index.entries, self.index.document_frequencies(terms))

    def lexical(self, weights: Mapping[str, float], limit: int, filters: Filters) -> list[Candidate]:
        """Return the best entries of the lexical index."""
        excluded = self._excluded(filters) if filters.exclude_ids else set()
        found = self.index.search(weights, self.fields, limit + len(excluded), filters)
        return [Candidate(num, score) for num, score in found if num not in excluded][:limit]

    def misspelt(self, terms: Sequence[str], limit: int, filters: Filters) -> list[Candidate]:
        """Return the entries of the lexical index that have terms spelled nearly as these."""
        excluded = self._excluded(filters) if filters.exclude_ids else set()
        found = self.index.misspelt(terms, self.fields, limit + len(excluded), filters)
        return [Candidate(num, score) for num, score in found if num not in excluded][:limit]

    def scores(
        self,
        weights: Mapping[str, float],
        unmatched: Sequence[int],
        vector: NDArray[np.float32] | None,
        far: Sequence[int],
    ) -> tuple[dict[int, float], dict[int, float]]:
        """Return the lexical index's scores of some questions, and the cosines of others."""
        by_words = self.index.scores(weights, self.fields, unmatched)
        return by_words, {} if vector is None else self.cosines(vector, far)

    def nearest(self, vector: NDArray[np.float32], limit: int, filters: Filters) -> list[Candidate]:
        """Return the nearest vectors of those that satisfy the filters."""
        excluded = self._excluded(filters) if filters.exclude_ids else set()
        admitted = self.index.count_admitted(filters)
        total = self.index.entries
        if admitted == total:
            found = self._near(vector, limit, None, excluded)
        elif admitted <= FEW_SHARE * total:
            found = self._near(vector, limit, self.index.all_admitted(filters), excluded)
        else:
            enough = math.ceil(1.5 * limit * total / admitted) + 10
            near = self._near(vector, enough, None, excluded)
            kept = self.index.admitted([num for num, _ in near], filters)
            found = [(num, cosine) for num, cosine in near if num in kept][:limit]
            if len(found) < limit and len(near) == enough:  # those that satisfy it are far away
                found = self._near(vector, limit, self.index.all_admitted(filters), excluded)
        return [Candidate(num, cosine) for num, cosine in found]

    def cosines(self, vector: NDArray[np.float32], keys: Sequence[int]) -> dict[int, float]:
        """Return the cosines of these questions, by the same arithmetic as ``nearest``."""
        if self.vectors is None or not keys:
            return {}
        with one_blas_thread():
            return dict(self.vectors.search(vector[None], len(keys), keys)[0])

    def texts(self, keys: Sequence[int]) -> dict[int, Text]:
        """Return the questions as they are compared, as far as the word index has kept them."""
        found = ((num, unpacked(packed)) for num, packed in self.index.texts(keys).items())
        return {num: text for num, text in found if text is not None}

    def questions(self, keys: Sequence[int]) -> dict[int, Question]:
        """Return the questions with these internal numbers."""
        return self.store.questions_by_num(keys)

    def answers(self, ids: Sequence[str]) -> dict[str, list[Answer]]:
        """Return the answers of each of these questions, best first."""
        return self.store.answers_of(ids)

    def duplicate_links(self, ids: Sequence[str]) -> DuplicateLinks:
        """Return the duplicate links of these questions, and of all that they lead to."""
        targets = self.store.originals_of(ids)
        found = sorted({target for one in targets.values() for target in one})
        return DuplicateLinks(targets, self.store.questions_by_id(found) if found else {})

    def _excluded(self, filters: Filters) -> set[int]:
        return set(self.store.nums_by_id(filters.exclude_ids).values())

    def _near(
        self, vector: NDArray[np.float32], limit: int, allowed: Sequence[int] | None, excluded: set[int]
    ) -> list[tuple[int, float]]:
        index = self.vectors
        if index is None:
            return []
        is_graph = self.neighbours == "auto" and index.has_graph and has_faiss()
        with one_blas_thread():
            search = index.search_graph if is_graph else index.search
            return search(vector[None], limit, allowed, excluded)[0]


class EncoderWords:
    """``search.features.WordTable`` over the model of a set of vectors; what is asked of it reads the model.

    Raises:
        ModelError: the model cannot be read.
    """

    def __init__(self, vectors: VectorSet) -> None:
        self._vectors = vectors

    def ids(self, words: Iterable[str]) -> list[int]:
        """Return the id of each word as it is written, 1 for the most frequent, 0 for one without a vector."""
        return self._vectors.model.word_ids(words)

    def rows(self, ids: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return the vectors of these words at length 1.  # (N, D)"""
        return self._vectors.model.word_vectors(ids)

    def __len__(self) -> int:
        """Return how many ids there are."""
        return len(self._vectors.model.vocabulary)


class TextQueryEncoder:
    """``search.Encoder`` through the text encoder of a set of vectors; it knows nothing of single words.

    Args:
        analyzer: the forum's; a query that it makes no term of says nothing.
    """

    def __init__(self, vectors: VectorSet, analyzer: Analyzer) -> None:
        self._vectors = vectors
        self._analyzer = analyzer

    def encode(self, query: Query) -> NDArray[np.float32]:
        """Return the vector (D,) of the query, zeros where it has no informative word.

        Raises:
            EncoderError: the encoder cannot be had, does not answer, or gave something else than vectors.
        """
        prepared = self._analyzer.prepare(query.title, query.body, query.markup)
        if not (prepared.title or prepared.body):
            return np.zeros(self._vectors.dimensions, dtype=np.float32)
        return self._vectors.texts.encode_query(Question("", query.title, query.body, query.markup))


class GeneralWords:
    """``search.correction.Speller`` by the words of the general model, read when they are first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reading = threading.Lock()
        self._model: Model | None = None

    def rank(self, word: str) -> int | None:
        """Return the place of a word among those that the model has vectors for, most frequent first.

        Raises:
            ModelError: the model cannot be read.
        """
        with self._reading:
            if self._model is None:
                self._model = Model.load(self._folder)
        return self._model.rank(word)


@dataclass(frozen=True)
class QueryEncoder:
    """``search.WordEncoder`` and ``search.correction.Speller`` through the model of a set of vectors.

    Args:
        analyzer: the forum's; a word that it makes no term of (a stop word) tells nothing.
    """

    vectors: VectorSet
    analyzer: Analyzer

    def encode(self, query: Query) -> NDArray[np.float32]:
        """Return the vector (D,) of the query, read as a question of the forum is; zeros where the model knows no
        informative word of it, since such a query would be as near to one question as to another.

        Raises:
            ModelError: the model cannot be read.
        """
        model = self.vectors.model
        asked = Question("", query.title, query.body, query.markup)
        title = Question("", query.title)  # mostly enough to see that something is known
        if not any(any(map(self.analyzer.terms, model.known_words(one))) for one in (title, asked)):
            return np.zeros(model.dimensions, dtype=np.float32)
        with one_blas_thread():
            vector: NDArray[np.float32] = model.encode([asked])[0]
        return vector

    def states(self, query: Query) -> WeighedStates:
        """Return the query word by word.

        Raises:
            ModelError: the model cannot be read.
        """
        return self._weighed(self.vectors.states.of_query(query))

    def states_of(self, questions: Sequence[tuple[int, Question]]) -> list[WeighedStates]:
        """Return the forum's questions word by word, given with their keys.

        Raises:
            ModelError: the model cannot be read.
        """
        return list(map(self._weighed, self.vectors.states.of_questions(questions)))

    def _weighed(self, found: WordStates) -> WeighedStates:
        size = len(self.vectors.model.vocabulary)
        return WeighedStates(found.words, found.states, rarities(found.ids, size))

    def rank(self, word: str) -> int | None:
        """Return the place of a word among those that the model has vectors for, most frequent first.

        Raises:
            ModelError: the model cannot be read.
        """
        return self.vectors.model.rank(word)

    def word_weights(self, text: str) -> list[tuple[str, float]]:
        """Return how much of each word the model lets in.

        Raises:
            ModelError: the model cannot be read.
        """
        with one_blas_thread():
            return self.vectors.model.word_weights(text)
