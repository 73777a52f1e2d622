"""The indexes of several machines: candidates from Milvus."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from askalike.executors import Executor
from askalike.index.catchup import Indexer
from askalike.index.local import Locked, QuestionStates, Records
from askalike.index.milvus.client import Milvus, condition, has_tag, listed
from askalike.index.milvus.vectors import MilvusVectors
from askalike.index.milvus.words import MilvusWords
from askalike.index.word_indexer import WordEntryWriter, fingerprint, word_indexer
from askalike.index.words import FieldWeights, IndexEntry
from askalike.search import Candidate
from askalike.search.engine import TermStatistics
from askalike.search.texts import Text, unpacked
from askalike.store import Store
from askalike.text.analyzer import Analyzer
from askalike.types import Filters


@dataclass(slots=True)
class MilvusEngine(Records):
    """``search.Engine`` over a store and collections of Milvus; made for one search.

    What is written meanwhile may be seen by a later call of the same search and not by an earlier one. Vectors and
    words are those of one model and one analysis throughout.

    Args:
        states: what only the store knows of questions.
    """

    words: MilvusWords
    fields: FieldWeights
    vectors: MilvusVectors | None
    states: QuestionStates

    def statistics(self, terms: Collection[str]) -> TermStatistics:
        """Return how many questions can be found, and how many have each of these terms."""
        return TermStatistics(self.words.entries, self.words.frequencies(terms))

    def without_answers(self) -> MilvusEngine:
        """Return what finds questions by their titles and bodies alone."""
        return replace(self, fields=replace(self.fields, answers=0.0))

    def lexical(self, weights: Mapping[str, float], limit: int, filters: Filters) -> list[Candidate]:
        """Return the questions that match weighted terms best; which of equally good ones is Milvus' to choose."""
        return self.words.best(weights, self.fields, limit, self._expression(filters))

    def nearest(self, vectors: NDArray[np.float32], limit: int, filters: Filters) -> list[list[Candidate]]:
        """Return the questions of the greatest cosine to each of several vectors."""
        if self.vectors is None:
            return [[] for _ in vectors]
        return self.vectors.nearest(vectors, limit, self._expression(filters))

    def count(self, filters: Filters) -> int:
        """Return how many questions satisfy the filters."""
        return self.words.milvus.count(self.words.collection, self._expression(filters))

    def lexical_scores(self, weights: Mapping[str, float], keys: Sequence[int]) -> dict[int, float]:
        """Return the scores of some questions by words."""
        return dict(self.words.best(weights, self.fields, len(keys), listed("num in", keys))) if keys else {}

    def cosines(self, vector: NDArray[np.float32], keys: Sequence[int]) -> dict[int, float]:
        """Return the cosines of some questions."""
        if self.vectors is None:
            return {}
        nums, rows = self.vectors.vectors(keys)
        return dict(zip(nums.tolist(), (rows @ vector).tolist(), strict=True))

    def texts(self, keys: Sequence[int]) -> dict[int, Text]:
        """Return the questions as they are compared, as far as the engine has kept them."""
        texts = ((num, unpacked(packed)) for num, packed in self.words.texts(keys).items())
        return {num: text for num, text in texts if text is not None}

    def stored_vectors(self, keys: Sequence[int]) -> None:
        """Return nothing: reading many vectors from the engine takes longer than searching without them."""

    def _expression(self, filters: Filters) -> str:
        """Return what filters ask for as Milvus reads it.

        What Milvus does not know or cannot say is named by numbers: of those that are as asked for and the others, the
        fewer.
        """
        parts = condition(filters)
        excluded = self._excluded(filters)
        for tag in filters.exclude_tags:
            excluded.update(self.words.milvus.numbers(self.words.collection, has_tag(tag)))
        if filters.has_states:
            wanted = self.states.numbers(filters)
            others = self.states.numbers(Filters()) - wanted
            if len(wanted) <= len(others):
                parts.append(listed("num in", sorted(wanted - excluded)))
                excluded = set()
            else:
                excluded |= others
        if excluded:
            parts.append(listed("num not in", sorted(excluded)))
        return " and ".join(parts)


class EngineWords:
    """The words of a forum in an engine; see ``index.local.Words``.

    The engine is looked at when it is first needed: a forum can be opened while it is away.
    """

    notice = ""

    def __init__(self, milvus: Milvus, store: Store, analyzer: Analyzer, executor: Executor, locked: Locked) -> None:
        self._store, self._analyzer, self._executor = store, analyzer, executor
        made_by = fingerprint(analyzer)
        self._made_by = made_by
        self.index = MilvusWords(milvus, f"words_{made_by}", made_by, store.lock)

    def ensure_begun(self) -> None:
        """See what is there, and begin an index where none can be used; see ``Words``."""
        self.index.reopen()
        if not self._is_usable():
            with self._store.lock(self.index.name):  # another machine may have begun it meanwhile
                self.index.reopen()
                if not self._is_usable():
                    self.index.begin(self._store.last_change())

    def _is_usable(self) -> bool:
        return self.index.exists and self.index.cursor.can_catch_up(self._made_by, self._store.last_change())

    def indexer(self) -> Indexer[WordEntryWriter, list[IndexEntry]]:
        """Return what brings the index in step."""
        return word_indexer(self.index, self._analyzer, self._executor)

    def engine(self, vectors: MilvusVectors | None, fields: FieldWeights, states: QuestionStates) -> MilvusEngine:
        """Return what a search asks; see ``Words``."""
        self.index.refresh()
        return MilvusEngine(self._store, self.index, fields, vectors, states)
