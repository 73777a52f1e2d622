"""The indexes of one machine: candidates from the word index and the vectors in a forum's folder."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.errors import BusyForumError, ForumError
from askalike.executors import Executor
from askalike.index.catchup import Indexer
from askalike.index.vectors import VectorSnapshot
from askalike.index.word_indexer import INDEXED_KINDS, WordEntries, WordEntryWriter, fingerprint, word_indexer
from askalike.index.words import FieldWeights, IndexEntry, WordIndex, WordSnapshot
from askalike.processes import one_blas_thread
from askalike.search import Candidate
from askalike.search.engine import DuplicateLinks, Engine, TermStatistics
from askalike.search.texts import Text, unpacked
from askalike.store import ForumLayout, Store
from askalike.text.analyzer import Analyzer
from askalike.types import Answer, Filters, Question

FEW_SHARE = 0.2
"""Up to this share of the questions, those that satisfy a filter are listed first, in 7 ms of 200,000 at most; of
more, the nearest vectors are taken first and those that do not satisfy it are dropped."""


MAX_STATES: Final = 100
"""Combinations of states whose questions are remembered."""
MAX_CHANGES: Final = 500
"""After more changes all is looked up anew."""

_States = tuple[bool | None, bool | None, tuple[str, ...]]
"""Whether questions are answered, whether closed, and their languages."""


class QuestionStates:
    """Which questions of a store are answered, closed or in a language; of changed questions alone it is read anew."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: tuple[int, dict[_States, frozenset[int]]] = (-1, {})

    def numbers(self, filters: Filters) -> frozenset[int]:
        """Return the numbers of those that are as filters ask for."""
        last, known = self._store.last_change(), self._known
        if known[0] != last:
            known = self._known = (last, self._brought_forward(*known))
        key = (filters.is_answered, filters.is_closed, filters.languages)
        numbers = known[1].get(key)
        if numbers is None:
            if len(known[1]) >= MAX_STATES:
                known[1].clear()
            numbers = known[1][key] = frozenset(self._numbers(key))
        return numbers

    def _brought_forward(self, before: int, known: dict[_States, frozenset[int]]) -> dict[_States, frozenset[int]]:
        """Return what is known with what has changed since."""
        if not known:
            return {}
        changes = self._store.changes(before, MAX_CHANGES, INDEXED_KINDS)
        if len(changes) == MAX_CHANGES:
            return {}
        changed = sorted({change.num for change in changes})
        if not changed:
            return known
        return {key: numbers.difference(changed).union(self._numbers(key, changed)) for key, numbers in known.items()}

    def _numbers(self, key: _States, among: Sequence[int] | None = None) -> list[int]:
        answered, closed, languages = key
        return self._store.numbers(is_answered=answered, is_closed=closed, languages=languages, among=among)


@dataclass(slots=True)
class Records:
    """The records of an engine, from a store."""

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
        originals = sorted({target for of_question in targets.values() for target in of_question})
        return DuplicateLinks(targets, self.store.questions_by_id(originals) if originals else {})

    def _excluded(self, filters: Filters) -> set[int]:
        return set(self.store.nums_by_id(filters.exclude_ids).values()) if filters.exclude_ids else set()


@dataclass(slots=True)
class LocalEngine(Records):
    """``search.Engine`` over a store and one state of its word index and, where there are some, of its vectors."""

    index: WordSnapshot
    fields: FieldWeights
    vectors: VectorSnapshot | None = None
    states: QuestionStates | None = None

    def statistics(self, terms: Collection[str]) -> TermStatistics:
        """Return how many questions are in the index, and how many have each of these terms."""
        return TermStatistics(self.index.entries, self.index.document_frequencies(terms))

    def without_answers(self) -> LocalEngine:
        """Return what finds questions by their titles and bodies alone."""
        return replace(self, fields=replace(self.fields, answers=0.0))

    def lexical(self, weights: Mapping[str, float], limit: int, filters: Filters) -> list[Candidate]:
        """Return the best entries of the lexical index."""
        states = self._states(filters) if filters.has_states else None
        return self.index.search(weights, self.fields, limit, filters, self._excluded(filters), states)

    def lexical_scores(self, weights: Mapping[str, float], keys: Sequence[int]) -> dict[int, float]:
        """Return the lexical index's scores of some questions."""
        return self.index.scores(weights, self.fields, keys)

    def cosines(self, vector: NDArray[np.float32], keys: Sequence[int]) -> dict[int, float]:
        """Return the cosines of some questions."""
        return {} if self.vectors is None else dict(self.vectors.cosines(vector, keys))

    def nearest(self, vectors: NDArray[np.float32], limit: int, filters: Filters) -> list[list[Candidate]]:
        """Return the nearest vectors to each of several, of those that satisfy the filters."""
        if self.vectors is None:
            return [[] for _ in vectors]
        excluded = self._excluded(filters)
        admitted, total = self.index.count_admitted(filters), self.index.entries
        allowed: list[int] | None = None
        if filters.has_states:
            states = self._states(filters)
            allowed = list(states if admitted == total else states.intersection(self.index.all_admitted(filters)))
        elif admitted <= FEW_SHARE * total and admitted < total:
            allowed = self.index.all_admitted(filters)
        is_thinned = allowed is None and admitted < total  # the nearest are taken, and those dropped that do not fit
        wanted = math.ceil(1.5 * limit * total / admitted) + 10 if is_thinned else limit
        with one_blas_thread():
            neighbours = self.vectors.search(vectors, wanted, allowed, excluded)
            for place, near in enumerate(neighbours if is_thinned else ()):
                fitting = self.index.admitted([num for num, _ in near], filters)
                neighbours[place] = [(num, cosine) for num, cosine in near if num in fitting][:limit]
                if len(neighbours[place]) < limit and len(near) == wanted:  # those that satisfy it are far away
                    allowed = allowed or self.index.all_admitted(filters)
                    [neighbours[place]] = self.vectors.search(vectors[place, None], limit, allowed, excluded)
        return neighbours

    def count(self, filters: Filters) -> int:
        """Return how many questions satisfy the filters."""
        if filters.exclude_ids or filters.has_states:
            admitted = set(self.index.all_admitted(filters)) - self._excluded(filters)
            return len(admitted & self._states(filters) if filters.has_states else admitted)
        return self.index.count_admitted(filters)

    def texts(self, keys: Sequence[int]) -> dict[int, Text]:
        """Return the questions as they are compared, as far as the word index has kept them."""
        texts = ((num, unpacked(packed)) for num, packed in self.index.texts(keys).items())
        return {num: text for num, text in texts if text is not None}

    def stored_vectors(self, keys: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
        """Return those of these questions that have a vector, and the vectors; None without vectors."""
        return None if self.vectors is None else self.vectors.vectors(keys)

    def _states(self, filters: Filters) -> frozenset[int]:
        """Return the questions that are (not) answered or closed as asked for."""
        return (self.states or QuestionStates(self.store)).numbers(filters)


LOCK_TIMEOUT_S = 10.0
RENEWAL_TIMEOUT_S = 600.0
"""How long a process that encodes waits for another that indexes: its own work of minutes would be lost."""

Locked = Callable[[float, BusyForumError], AbstractContextManager[None]]
"""Holds the lock of who writes the indexes that answer, and waits for it for so long; see ``files.holding``."""


class Words(Protocol):
    """The word index of a forum: where it lies, and how it is begun."""

    @property
    def index(self) -> WordEntries:
        """Return what answers."""

    def ensure_begun(self) -> None:
        """See what is there, and begin an index where none is; the caller holds the lock, and brings it in step."""

    def indexer(self) -> Indexer[WordEntryWriter, list[IndexEntry]]:
        """Return what brings the index that answers in step with the store."""

    def engine(self, vectors: Any, fields: FieldWeights, states: QuestionStates) -> Engine:
        """Return what a search asks, over one state of words and vectors.

        Raises:
            ForumError: texts are read in another way than the index was made: no term would meet its like.
        """

    @property
    def notice(self) -> str:
        """Return what searches have to say of the index, "" mostly."""


class LocalWords:
    """The word index in a forum's folder; see ``Words``.

    Raises:
        BusyForumError: there is none yet, and another process has been making one for too long.
    """

    def __init__(
        self, layout: ForumLayout, store: Store, analyzer: Analyzer, executor: Executor, locked: Locked
    ) -> None:
        self._layout, self._store, self._analyzer = layout, store, analyzer
        self._executor, self._locked = executor, locked
        self._made_by = fingerprint(analyzer)
        self.index = self._opened()

    def _opened(self) -> WordIndex:
        """Open the index; only one that has to be made first waits for another process that is making it."""
        index = fitting_index(self._layout.lexical, self._store, self._analyzer)
        if index is not None:
            return index
        busy = BusyForumError(f"another process is indexing {self._layout.folder}", "wait until it has finished")
        with self._locked(LOCK_TIMEOUT_S, busy):
            return open_index(self._layout.lexical, self._store, self._analyzer)

    def ensure_begun(self) -> None:
        """See what is there, and begin an index where it was deleted; see ``Words``."""
        if not WordIndex.exists(self.index.folder):  # it was deleted since
            begin_index(self.index.folder, self._store, self._analyzer)
        self.index.refresh()
        self._check_analysis(self.index)

    def indexer(self) -> Indexer[WordEntryWriter, list[IndexEntry]]:
        """Return what brings the index in step."""
        return word_indexer(self.index, self._analyzer, self._executor)

    def engine(self, vectors: VectorSnapshot | None, fields: FieldWeights, states: QuestionStates) -> LocalEngine:
        """Return what a search asks; see ``Words``."""
        self.index.refresh()
        words = self.index.snapshot()
        self._check_analysis(words)
        return LocalEngine(self._store, words, fields, vectors, states)

    @property
    def notice(self) -> str:
        """Return how far indexing is where it is not finished."""
        if self.index.cursor.is_complete:
            return ""
        return f"indexing is not finished: {self.index.entries:,} of {self._store.count_questions():,} questions"

    def _check_analysis(self, words: WordSnapshot) -> None:
        if words.cursor.fingerprint != self._made_by:
            raise ForumError(
                f"another process has changed how the texts of the forum at {self._layout.folder} are read",
                "open the forum again, or restart what serves it",
            )


def fitting_index(folder: Path, log: Store, analyzer: Analyzer) -> WordIndex | None:
    """Return the index if there is one that needs no more than catching up.

    Raises:
        DamagedForumError: there is an index, and it cannot be read.
    """
    if not WordIndex.exists(folder):
        return None
    index = WordIndex(folder)
    return index if index.cursor.can_catch_up(fingerprint(analyzer), log.last_change()) else None


def open_index(folder: Path, log: Store, analyzer: Analyzer) -> WordIndex:
    """Open the index, or begin a new one where it cannot be brought in step; the caller holds the lock.

    Raises:
        DamagedForumError: there is an index, and it cannot be read.
    """
    index = fitting_index(folder, log, analyzer)
    if index is not None:
        return index
    return begin_index(folder, log, analyzer)


def begin_index(folder: Path, log: Store, analyzer: Analyzer) -> WordIndex:
    """Begin the index anew, empty; the caller holds the lock. Who has a complete one open goes on with it meanwhile.

    Raises:
        ForumError: something is in the way that is not of an index, or it cannot be written there.
    """
    return WordIndex.create(folder, applied=log.last_change(), fingerprint=fingerprint(analyzer))
