"""The engine of one machine: records from the store, candidates from the lexical index and the vectors."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from string import ascii_lowercase
from typing import ClassVar, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.data import DEFAULT_MODEL_CODE
from askalike.index.vector_set import VectorSet
from askalike.index.vectors import VectorSnapshot
from askalike.index.words import FieldWeights, WordSnapshot
from askalike.models.encoders.model import Model
from askalike.processes import one_blas_thread
from askalike.search import Candidate, Query
from askalike.search.engine import DuplicateLinks, Needed, TermStatistics
from askalike.search.features import rarities
from askalike.search.texts import Text, unpacked
from askalike.store import Store
from askalike.text.analyzer import Analyzer
from askalike.text.markup import readable
from askalike.text.tokens import words
from askalike.types import Answer, Filters, Question

FEW_SHARE = 0.2
"""Up to this share of the questions, those that satisfy a filter are listed first, in 7 ms of 200,000 at most; of
more, the nearest vectors are taken first and those that do not satisfy it are dropped."""


MOST_LISTED = 2_000
"""Up to so many questions are named to the word index."""


MOST_STATES = 100
"""So many combinations of these are remembered."""


LEAST_READ: Final = 2_000
MOST_READ: Final = 5_000
LEAST_HAVING: Final = 2
MOST_LETTERS: Final = 48
RECOUNTED: Final = 1_000
"""Changes until the words of a language are counted anew."""
_READ_TOGETHER: Final = 500


class QuestionStates:
    """Which questions of a store are answered, closed or in a language; looked up anew when the store has changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: tuple[int, dict[tuple[bool | None, bool | None, tuple[str, ...]], frozenset[int]]] = (-1, {})

    def of(self, filters: Filters) -> frozenset[int]:
        """Return the numbers of those that are as filters ask for."""
        last = self._store.last_change()
        if self._known[0] != last:
            self._known = (last, {})
        known, key = self._known[1], (filters.is_answered, filters.is_closed, filters.languages)
        if key not in known:
            if len(known) >= MOST_STATES:
                known.clear()
            answered, closed, languages = key
            found = self._store.numbers(is_answered=answered, is_closed=closed, languages=languages)
            known[key] = frozenset(found)
        return known[key]


@dataclass(slots=True)
class Records:
    """``search.engine.RecordSource`` over a store."""

    store: Store

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


@dataclass(slots=True)
class LocalEngine(Records):
    """``search.Engine`` over a store and one state of its word index and, where there are some, of its vectors."""

    is_distant: ClassVar[bool] = False

    index: WordSnapshot
    fields: FieldWeights
    vectors: VectorSnapshot | None = None
    states: QuestionStates | None = None

    def statistics(self, terms: Collection[str]) -> TermStatistics:
        """Return how many questions are in the index, and how many have each of these terms."""
        return TermStatistics(self.index.entries, self.index.document_frequencies(terms))

    def expect(self, terms: Collection[str]) -> None:
        """Do nothing: looking up takes no time."""

    def lexical(
        self, weights: Mapping[str, float], limit: int, filters: Filters, settled: int | None = None
    ) -> list[Candidate]:
        """Return the best entries of the lexical index."""
        return self._by_words(partial(self.index.search, weights, self.fields), limit, filters)

    def scores(
        self,
        weights: Mapping[str, float],
        unmatched: Sequence[int],
        vector: NDArray[np.float32] | None,
        far: Sequence[int],
        needed: Needed | None = None,
    ) -> tuple[dict[int, float], dict[int, float]]:
        """Return the lexical index's scores of some questions, and the cosines of others."""
        cosines: dict[int, float] = {}
        if self.vectors is not None and vector is not None and far:
            cosines.update(self.vectors.cosines(vector, far))
        return self.index.scores(weights, self.fields, needed(cosines) if needed else unmatched), cosines

    def nearest(self, vectors: NDArray[np.float32], limit: int, filters: Filters) -> list[list[Candidate]]:
        """Return the nearest vectors to each of several, of those that satisfy the filters."""
        if self.vectors is None:
            return [[] for _ in vectors]
        excluded = self._excluded(filters) if filters.exclude_ids else set()
        admitted = self.index.count_admitted(filters)
        total = self.index.entries
        allowed: list[int] | None = None
        if filters.has_states:
            states = self._states(filters)
            allowed = list(states if admitted == total else states.intersection(self.index.all_admitted(filters)))
        elif admitted <= FEW_SHARE * total and admitted < total:
            allowed = self.index.all_admitted(filters)
        is_thinned = allowed is None and admitted < total  # the nearest are taken, and those dropped that do not fit
        wanted = math.ceil(1.5 * limit * total / admitted) + 10 if is_thinned else limit
        with one_blas_thread():
            found = self.vectors.search(vectors, wanted, allowed, excluded)
            for place, near in enumerate(found):
                if is_thinned:
                    kept = self.index.admitted([num for num, _ in near], filters)
                    found[place] = [one for one in near if one[0] in kept][:limit]
                    if len(found[place]) < limit and len(near) == wanted:  # those that satisfy it are far away
                        allowed = allowed or self.index.all_admitted(filters)
                        [found[place]] = self.vectors.search(vectors[place, None], limit, allowed, excluded)
        return found

    def count(self, filters: Filters) -> int:
        """Return how many questions satisfy the filters."""
        if filters.exclude_ids or filters.has_states:
            found = set(self.index.all_admitted(filters)) - self._excluded(filters)
            return len(found & self._states(filters) if filters.has_states else found)
        return self.index.count_admitted(filters)

    def texts(self, keys: Sequence[int]) -> dict[int, Text]:
        """Return the questions as they are compared, as far as the word index has kept them."""
        found = ((num, unpacked(packed)) for num, packed in self.index.texts(keys).items())
        return {num: text for num, text in found if text is not None}

    def _by_words(
        self, search: Callable[[int, Filters, list[int] | None], list[tuple[int, float]]], limit: int, filters: Filters
    ) -> list[Candidate]:
        """Return the best that a search of the word index finds for these filters, however few satisfy them.

        What only the store knows is looked up beforehand where few satisfy it, and otherwise taken away from what is
        found, of which more is asked for until there is enough.
        """
        excluded = self._excluded(filters) if filters.exclude_ids else set()
        states = self._states(filters) if filters.has_states else None
        if states is not None and len(states) <= MOST_LISTED:
            listed = sorted(states - excluded)
            return search(limit, filters, listed) if listed else []
        wanted = limit + len(excluded)
        while True:
            found = search(wanted, filters, None)
            kept = [one for one in found if one[0] not in excluded] if excluded else found
            kept = kept if states is None else [one for one in kept if one[0] in states]
            if len(kept) >= limit or len(found) < wanted:
                return kept[:limit]
            wanted *= 4

    def _states(self, filters: Filters) -> frozenset[int]:
        """Return the questions that are (not) answered or closed as asked for."""
        return (self.states or QuestionStates(self.store)).of(filters)


class HasModel(Protocol):
    """What has a model, which is read when it is first asked for, such as a set of vectors."""

    @property
    def model(self) -> Model:
        """Return the model."""


class EncoderWords:
    """``search.features.WordTable`` over the model of a set of vectors; what is asked of it reads the model.

    Raises:
        ModelError: the model cannot be read.
    """

    def __init__(self, vectors: HasModel) -> None:
        self._vectors = vectors

    def ids(self, words: Sequence[str]) -> NDArray[np.intp]:
        """Return the id of each word as it is written, 1 for the most frequent, 0 for one without a vector.  # (N,)"""
        return self._vectors.model.word_ids(words)

    def rows(self, ids: NDArray[np.intp]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the vectors of these words at length 1, and how much each counts.  # (N, D), (N,)"""
        model = self._vectors.model
        return model.word_vectors(ids), rarities(ids, len(model.vocabulary)).astype(np.float32)


class TextQueryEncoder:
    """``search.Encoder`` through the text encoder of a set of vectors; it knows no single words.

    Args:
        analyzer: the forum's; a query that it makes no term of says nothing.
    """

    def __init__(self, vectors: VectorSet, analyzer: Analyzer) -> None:
        self._vectors = vectors
        self._analyzer = analyzer

    def encode(self, queries: Sequence[Query]) -> NDArray[np.float32]:
        """Return the vectors (N, D) of queries, zeros where one has no informative word.

        Raises:
            EncoderError: the encoder cannot be had, does not answer, or gave something else than vectors.
        """
        found = np.zeros((len(queries), self._vectors.dimensions), dtype=np.float32)
        said = [
            place
            for place, one in enumerate(queries)
            if self._analyzer.settings.is_encoded(one.language, self._vectors.languages) and self._has_terms(one)
        ]
        if said:
            asked = [Question("", one.title, one.body, one.markup) for one in map(queries.__getitem__, said)]
            found[said] = self._vectors.texts.encode_queries(asked)
        return found

    def _has_terms(self, query: Query) -> bool:
        prepared = self._analyzer.of(query.language).prepare(query.title, query.body, query.markup)
        return bool(prepared.title or prepared.body)


class GeneralWords:
    """``search.correction.Speller`` by the words of the general model, read when they are first needed."""

    letters: ClassVar[str] = ascii_lowercase
    is_well_read: ClassVar[bool] = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reading = threading.Lock()
        self._model: Model | None = None

    @staticmethod
    def reads(language: str) -> bool:
        """Return whether a language, given by its code, is that of the model; "" is the forum's one."""
        return language in ("", DEFAULT_MODEL_CODE)

    def rank(self, word: str) -> int | None:
        """Return the place of a word among those that the model has vectors for, most frequent first.

        Raises:
            ModelError: the model cannot be read.
        """
        with self._reading:
            if self._model is None:
                self._model = Model.load(self._folder)
        return self._model.rank(word)


class LanguageWords:
    """``search.correction.Speller`` by the words of a forum's own questions in a language, counted when first needed.

    A word is one that at least ``LEAST_HAVING`` of up to ``MOST_READ`` questions have, or of as many in the forum's
    other languages: names are the same in all. Where fewer than ``LEAST_READ`` are in the language, every word is taken
    to be right: too many of them have been written by nobody yet.

    Args:
        language: its code; "" for a forum in one.
    """

    is_well_read: ClassVar[bool] = False

    def __init__(self, store: Store, language: str) -> None:
        self._store, self._language = store, language
        self._guard = threading.Lock()
        self._read: tuple[int, dict[str, int] | None, str] = (-1, None, "")

    def rank(self, word: str) -> int | None:
        """Return the place of a word among those that questions have, most frequent first; None for any other."""
        ranks = self._words()[1]
        return 0 if ranks is None else ranks.get(word)

    @property
    def letters(self) -> str:
        """Return what the words are made of."""
        return self._words()[2]

    def _words(self) -> tuple[int, dict[str, int] | None, str]:
        now = self._store.last_change() // RECOUNTED
        with self._guard:
            if self._read[0] != now:
                self._read = (now, *self._counted())
            return self._read

    def _counted(self) -> tuple[dict[str, int] | None, str]:
        numbers = self._store.numbers(languages=(self._language,) if self._language else ())
        if len(numbers) < LEAST_READ:
            return None, ""
        known = self._known(numbers)
        letters = Counter(letter for word in known for letter in word)
        usual = "".join(letter for letter, _ in letters.most_common(MOST_LETTERS))
        others = self._known(sorted(set(self._store.numbers()).difference(numbers))) if self._language else []
        return {word: rank for rank, word in enumerate(dict.fromkeys([*known, *others]))}, usual

    def _known(self, numbers: Sequence[int]) -> list[str]:
        """Return the words that enough of some questions have, most frequent first."""
        chosen = numbers[:: math.ceil(len(numbers) / MOST_READ) or 1]
        counts: Counter[str] = Counter()
        for start in range(0, len(chosen), _READ_TOGETHER):
            for one in self._store.questions_by_num(chosen[start : start + _READ_TOGETHER]).values():
                text = f"{one.title}\n{readable(one.body, one.markup, with_code=False)}"
                counts.update({word for word in words(text) if word.isalpha()})
        return [word for word, count in counts.most_common() if count >= LEAST_HAVING]


@dataclass(frozen=True)
class QueryEncoder:
    """``search.WordEncoder`` and ``search.correction.Speller`` through the model of a set of vectors.

    Args:
        analyzer: the forum's; a word that it makes no term of (a stop word) tells nothing.

    Raises:
        ModelError: of every method: the model cannot be read.
    """

    vectors: VectorSet
    analyzer: Analyzer
    letters: ClassVar[str] = ascii_lowercase
    is_well_read: ClassVar[bool] = True

    def encode(self, queries: Sequence[Query]) -> NDArray[np.float32]:
        """Return the vectors (N, D) of queries, read as questions of the forum are; zeros where the model knows no
        informative word of one, since such a query would be as near to one question as to another.
        """
        model = self.vectors.model
        found = np.zeros((len(queries), model.dimensions), dtype=np.float32)
        asked = [Question("", one.title, one.body, one.markup) for one in queries]
        terms = [self.analyzer.of(one.language).terms for one in queries]
        known = [
            place
            for place, one in enumerate(asked)  # the title is mostly enough to see that something is known
            if self.analyzer.settings.is_encoded(queries[place].language, self.vectors.languages)
            and any(any(map(terms[place], model.known_words(part))) for part in (Question("", one.title), one))
        ]
        if known:
            with one_blas_thread():
                found[known] = model.encode([asked[place] for place in known])
        return found

    def reads(self, language: str) -> bool:
        """Return whether the model reads one of the forum's languages, given by its code."""
        return self.analyzer.settings.is_encoded(language, self.vectors.languages)

    def rank(self, word: str) -> int | None:
        """Return the place of a word among those that the model has vectors for, most frequent first."""
        return self.vectors.model.rank(word)

    def word_weights(self, text: str) -> list[tuple[str, float]]:
        """Return how much of each word the model lets in."""
        with one_blas_thread():
            return self.vectors.model.word_weights(text)
