"""The indexes of several machines: candidates from Milvus."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import islice
from operator import gt, neg
from types import MappingProxyType
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from askalike.errors import EngineError
from askalike.executors import Executor
from askalike.index.catchup import catch_up
from askalike.index.local import RENEWAL_TIMEOUT_S, Locked, QuestionStates, Records
from askalike.index.milvus.client import MOST_FOUND, Milvus, MilvusIndex, Rows, condition, has_one, listed, tag_key
from askalike.index.milvus.vectors import MilvusVectors
from askalike.index.milvus.words import USUAL_LENGTHS, Counts, Lengths, MilvusWords, packed_text, query_weights
from askalike.index.word_indexer import WordIndexer, entries_of, fingerprint
from askalike.index.words import FieldWeights
from askalike.progress import Progress
from askalike.search import Candidate
from askalike.search.engine import Needed, TermStatistics
from askalike.search.texts import Text, unpacked
from askalike.store import Store
from askalike.text.analyzer import Analyzer
from askalike.types import Filters

SAMPLE, LEAST_SAMPLE = 500, 20
"""Questions by which the mean lengths are known."""

MAX_LISTED = 2_000
"""Up to so many questions are named to the engine."""
FEW_EXCLUDED = 100
TIES = 1
"""Found beyond what is asked for, to see whether the last one shares its score with others."""

GROWTH = 16
"""So many times as much is asked for where that was not enough: three rounds reach all that the engine gives."""


class Awaited(Sequence[Candidate]):
    """What the engine is still looking for; it is waited for when it is first looked at.

    Raises:
        EngineError: of every method: the engine does not answer.
    """

    def __init__(self, answer: Callable[[], Sequence[Candidate]]) -> None:
        self._answer = answer

    def __len__(self) -> int:
        return len(self._answer())

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self._answer())

    @overload
    def __getitem__(self, place: int) -> Candidate: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Candidate]: ...
    def __getitem__(self, place: int | slice) -> Candidate | Sequence[Candidate]:
        return self._answer()[place]


@dataclass(slots=True)
class MilvusEngine(Records):
    """``search.Engine`` over a store and collections of Milvus; made for one search.

    What is written meanwhile may be seen by a later call of the same search and not by an earlier one. Vectors and
    words are those of one model and one analysis throughout, and are looked for at the same time.

    Args:
        states: what only the store knows of questions.
    """

    words: MilvusWords
    fields: FieldWeights
    vectors: MilvusVectors | None
    states: QuestionStates
    _size: int | None = None
    _known: dict[str, Counts] = field(default_factory=dict)
    _matched: list[int] = field(default_factory=list)
    _compared: tuple[bytes, Mapping[int, float]] = (b"", MappingProxyType({}))  # a vector, and cosines to it

    def statistics(self, terms: Collection[str]) -> TermStatistics:
        """Return how many questions can be found, and how many have each of these terms."""
        self._look_up(terms)
        frequencies = {
            term: known.texts for term in terms if (known := self._known.get(term)) is not None and known.texts
        }
        return TermStatistics(self._size or 0, frequencies)

    def lexical(
        self, weights: Mapping[str, float], limit: int, filters: Filters, settled: int | None = None
    ) -> list[Candidate]:
        """Return the questions of the greatest inner product with the query."""
        wanted = self._query_weights(weights)
        candidates = self._best(self.words, [wanted], limit, filters, settled)()[0] if wanted else []
        self._matched = [key for key, _ in candidates[: settled or limit]]
        return candidates

    def count(self, filters: Filters) -> int:
        """Return how many questions satisfy the filters."""
        milvus, name = self.words.milvus, self.words.collection
        if not (filters.has_states or filters.exclude_ids or filters.exclude_tags):
            return milvus.count(name, condition(filters))
        numbers = set(milvus.numbers(name, condition(filters))) - self._excluded(filters)
        if filters.has_states:
            numbers &= self._states(filters)
        for tag in filters.exclude_tags:
            numbers.difference_update(milvus.numbers(name, f'tags like "%,{tag_key(tag)},%"'))
        return len(numbers)

    def nearest(self, vectors: NDArray[np.float32], limit: int, filters: Filters) -> list[Sequence[Candidate]]:
        """Return the questions of the greatest cosine to each of several vectors, without waiting for them."""
        if self.vectors is None:
            return [[] for _ in vectors]
        is_plain = replace(filters, exclude_ids=frozenset()) == Filters() and len(filters.exclude_ids) <= FEW_EXCLUDED
        if len(vectors) == 1 and is_plain and vectors.any() and self.vectors.is_coded:
            return [Awaited(cache(self._proposed(self.vectors, vectors[0], limit, self._excluded(filters))))]
        searched = cache(self._best(self.vectors, list(vectors), limit, filters, is_ahead=True))
        return [Awaited(lambda place=place: searched()[place]) for place in range(len(vectors))]  # type: ignore[misc]

    def scores(
        self,
        weights: Mapping[str, float],
        unmatched: Sequence[int],
        vector: NDArray[np.float32] | None,
        far: Sequence[int],
        needed: Needed | None = None,
    ) -> tuple[dict[int, float], dict[int, float]]:
        """Return the inner products of some questions, and the cosines of others."""
        by_words: dict[int, float] = {}
        cosines: dict[int, float] = {}
        near: Callable[[], list[tuple[list[Candidate], bool]]] | None = None
        compared, known = self._compared
        if vector is not None and far and compared == vector.tobytes():
            cosines.update((num, known[num]) for num in far if num in known)
            far = [num for num in far if num not in known]
        if self.vectors is not None and vector is not None and far:
            near = self._begin(self.vectors, [vector], len(far), listed("num in", far), is_ahead=needed is None)
            if needed is not None:  # fewer are asked for then
                cosines.update(near()[0][0])
        unmatched = needed(cosines) if needed else unmatched
        wanted = self._query_weights(weights) if unmatched else {}
        if wanted:
            by_words.update(self._begin(self.words, [wanted], len(unmatched), listed("num in", unmatched))()[0][0])
        if near is not None and needed is None:
            cosines.update(near()[0][0])
        return by_words, cosines

    def texts(self, keys: Sequence[int]) -> dict[int, Text]:
        """Return the questions as they are compared, as far as the engine has kept them."""
        texts = ((num, unpacked(packed_text(written))) for num, written in self.words.texts(keys).items())
        return {num: text for num, text in texts if text is not None}

    def stored_vectors(self, keys: Sequence[int]) -> None:
        """Return nothing: reading many vectors from the engine takes longer than searching without them."""

    def _look_up(self, terms: Collection[str]) -> None:
        missing = set(terms).difference(self._known)
        if missing or self._size is None:
            self._size, counts = self.words.counts(missing)
            self._known.update(dict.fromkeys(missing, Counts(0, 0)))
            self._known.update(counts)

    def _query_weights(self, weights: Mapping[str, float]) -> dict[int, float]:
        self._look_up(weights)
        return query_weights(weights, self._known, self._size or 0, self.fields)

    def _proposed(
        self, index: MilvusVectors, vector: NDArray[np.float32], limit: int, excluded: Collection[int]
    ) -> Callable[[], list[Candidate]]:
        """Return what gives the nearest of those that codes propose, and of those that words have found meanwhile."""
        proposed = index.begin_proposing(vector, limit + len(excluded))

        def rest() -> list[Candidate]:
            among = list(dict.fromkeys([*proposed(), *self._matched]))
            wanted = len(among) if self._matched else min(len(among), limit + len(excluded) + TIES)
            candidates: Sequence[Candidate] = []
            while among:
                candidates = self._begin(index, [vector], wanted, listed("num in", among))()[0][0]
                if len(candidates) < wanted or wanted == len(among) or _is_settled(candidates, wanted - TIES):
                    break
                wanted = len(among)
            if self._matched:
                self._compared = vector.tobytes(), dict.fromkeys(among, 0.0) | dict(candidates)
            return [candidate for candidate in candidates if candidate[0] not in excluded][:limit]

        return rest

    def _best(
        self,
        index: MilvusIndex,
        queries: Sequence[Any],
        limit: int,
        filters: Filters,
        settled: int | None = None,
        *,
        is_ahead: bool = False,
    ) -> Callable[[], list[list[Candidate]]]:
        """Return what gives the best of an index for each query, of those that satisfy the filters, ties by number.

        Tags, dates and short lists are asked of the engine. What else is not wanted is dropped from what is found, of
        which more is asked for until there is enough; at the end those that are wanted are listed, however many.

        Args:
            settled: as ``lexical`` has it.
        """
        excluded = self._excluded(filters) if filters.exclude_ids else set()
        states = self._states(filters) if filters.has_states else None
        parts = list(filter(None, [condition(filters)]))
        dropped = excluded if len(excluded) <= FEW_EXCLUDED else set()  # cheaper than an expression over all rows
        if excluded and not dropped:
            parts.append(listed("num not in", excluded))
        if states is not None and len(states) <= MAX_LISTED:
            if not states - excluded:
                return lambda: [[] for _ in queries]
            parts.append(listed("num in", sorted(states)))
            states = None
        keys = {tag_key(tag) for tag in filters.exclude_tags}
        most = limit + TIES + len(dropped)
        if states is not None:
            most += math.ceil(1.5 * limit * max(self._total(), len(states)) / len(states)) + 10
        first = self._begin(index, queries, min(most, MOST_FOUND), " and ".join(parts), keys, is_ahead=is_ahead)

        def rest() -> list[list[Candidate]]:
            wanted, among, answers = min(most, MOST_FOUND), states, first()
            while True:
                kept = [candidates for candidates, _ in answers]
                if dropped or among is not None:
                    kept = [
                        [
                            candidate
                            for candidate in candidates
                            if candidate[0] not in dropped and (among is None or candidate[0] in among)
                        ]
                        for candidates in kept
                    ]
                is_enough = all(
                    is_all or (len(candidates) >= limit and _is_settled(candidates, settled or limit))
                    for candidates, (_, is_all) in zip(kept, answers, strict=True)
                )
                if is_enough or wanted == MOST_FOUND:
                    if is_enough or among is None:
                        return [candidates[:limit] for candidates in kept]
                    parts.append(listed("num in", sorted(among)))
                    among = None
                wanted = min(wanted * GROWTH, MOST_FOUND)
                answers = self._begin(index, queries, wanted, " and ".join(parts), keys)()

        return rest

    def _begin(
        self,
        index: MilvusIndex,
        queries: Sequence[Any],
        wanted: int,
        expression: str,
        keys: Collection[str] = (),
        *,
        is_ahead: bool = False,
    ) -> Callable[[], list[tuple[list[Candidate], bool]]]:
        """Return what gives, for each query, what a search finds without these tags, and whether that is all.

        Args:
            is_ahead: the engine is asked at once, and waited for later.
        """
        fields = ["tags"] if keys else []
        ask = index.milvus.begin_search if is_ahead else partial(partial, index.milvus.search)
        rows_of_queries = ask(index.collection, queries, wanted, expression, fields)

        def rest() -> list[tuple[list[Candidate], bool]]:
            answers: list[tuple[list[Candidate], bool]] = []
            for query, rows in zip(queries, rows_of_queries(), strict=True):
                candidates = _ranked(rows)
                if keys:
                    tags = dict(zip(rows.nums, rows.fields.get("tags", ()), strict=True))
                    candidates = [candidate for candidate in candidates if not has_one(tags[candidate[0]], keys)]
                if isinstance(query, np.ndarray) and not query.any():  # as far from one as from another
                    answers.append(([], True))
                else:
                    answers.append((candidates, len(rows.nums) < wanted))
            return answers

        return rest

    def _total(self) -> int:
        self._look_up(())
        return self._size or 0

    def _states(self, filters: Filters) -> frozenset[int]:
        return self.states.of(filters)


def _ranked(rows: Rows) -> list[Candidate]:
    """Return what was found with a score other than 0, best first, ties by number.

    >>> _ranked(Rows([3, 2, 1], [2.0, 2.0, 0.0], {}))
    [(2, 2.0), (3, 2.0)]
    """
    pairs: Iterable[tuple[int, float]] = zip(rows.nums, rows.scores, strict=True)
    if not all(map(gt, rows.scores, rows.scores[1:])):  # else they are in order
        pairs = ((num, -score) for score, num in sorted(zip(map(neg, rows.scores), rows.nums, strict=True)))
    if 0.0 in rows.scores:
        pairs = (pair for pair in pairs if pair[1])
    return list(pairs)


def _is_settled(candidates: Sequence[Candidate], limit: int) -> bool:
    """Return whether the best so many are known: the next one is not as good as the last of them.

    >>> _is_settled([(1, 2.0), (2, 1.0)], 1), _is_settled([(1, 1.0), (2, 1.0)], 1)
    (True, False)
    """
    return len(candidates) > limit and candidates[limit - 1][1] > candidates[limit][1]


class EngineWords:
    """The words of a forum in an engine; see ``index.local.Words``.

    The engine is looked at when it is first needed: a forum can be opened while it is away.
    """

    notice = ""

    def __init__(self, milvus: Milvus, store: Store, analyzer: Analyzer, executor: Executor, locked: Locked) -> None:
        self._store, self._analyzer, self._executor, self._locked = store, analyzer, executor, locked
        self._made_by = fingerprint(analyzer)
        self.index = MilvusWords(milvus, f"words_{self._made_by}", self._made_by, store.lock)

    def begin(self) -> None:
        """Look what is there, and begin what is not; see ``Words``."""
        self.index.reopen()
        if self._is_to_begin():
            with self._store.lock(self.index.name):  # another machine may have begun it meanwhile
                self.index.reopen()
                if self._is_to_begin():
                    self._begin(self.index)

    def _is_to_begin(self) -> bool:
        """Return whether there are no words, those of a newer store, or none by which mean lengths were known."""
        is_usable = self.index.exists and self._can_catch_up(self.index)
        return not is_usable or (self.index.is_unused and self._store.count_questions() >= LEAST_SAMPLE)

    def _can_catch_up(self, index: MilvusWords) -> bool:
        return index.cursor.can_catch_up(self._made_by, self._store.last_change())

    def _begin(self, index: MilvusWords) -> None:
        """Begin an index with the mean lengths of some of the questions."""
        last, size = self._store.last_change(), self._store.count_questions()
        every = max(1, size // SAMPLE)
        sample = list(islice(self._store.all_questions(), 0, SAMPLE * every, every))
        title, text = USUAL_LENGTHS
        if len(sample) >= LEAST_SAMPLE:
            entries = entries_of(self._analyzer, sample)
            title = max(1.0, sum(len(entry.title) for entry in entries) / len(entries))
            text = max(1.0, sum(len(entry.title) + len(entry.body) for entry in entries) / len(entries))
        index.begin(last, Lengths(title, text))

    def wants_renewal(self) -> bool:
        """Return whether counts or mean lengths have drifted; not while the engine is away."""
        try:
            self.index.refresh()
            return self.index.exists and self.index.cursor.is_complete and self.index.has_drifted
        except EngineError:
            return False

    def renew(self, progress: Progress) -> None:
        """Index all words anew; see ``Words``."""
        if not self.wants_renewal():
            return
        successor = self.index.successor()
        if not successor.exists or not self._can_catch_up(successor):
            self._begin(successor)
        indexer = WordIndexer(successor, self._analyzer, self._executor)
        catch_up(self._store, indexer, progress)
        with self._locked(RENEWAL_TIMEOUT_S), self._store.lock(self.index.name):
            catch_up(self._store, indexer, progress)  # what was written meanwhile
            self.index.reopen()
            self.index.take(successor)

    def indexer(self) -> WordIndexer:
        """Return what brings the index in step."""
        return WordIndexer(self.index, self._analyzer, self._executor)

    def engine(self, vectors: MilvusVectors | None, fields: FieldWeights, states: QuestionStates) -> MilvusEngine:
        """Return what a search asks; see ``Words``."""
        self.index.refresh()
        return MilvusEngine(self._store, self.index, fields, vectors, states)
