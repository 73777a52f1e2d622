"""The engine of several machines: records from the store, candidates from Milvus."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askalike.forum.engine import MOST_LISTED, QuestionStates, Records
from askalike.index.milvus.client import MOST_FOUND, MilvusIndex
from askalike.index.milvus.conditions import condition, has_one, listed, tag_key
from askalike.index.milvus.vectors import MilvusVectors
from askalike.index.milvus.words import Counts, MilvusWords, asked, packed_text
from askalike.index.words import FieldWeights
from askalike.search import Candidate
from askalike.search.engine import Needed, TermStatistics
from askalike.search.texts import Text, unpacked
from askalike.types import Filters

MOST_TEXTS = 200
"""Up to so many are taken along with what is found, to be compared."""
FEW_EXCLUDED = 100
TIES = 1
"""Found beyond what is asked for, to see whether the last one shares its score with others."""

GROWTH = 16
"""So many times as much is asked for where that was not enough: three rounds reach all that the engine gives."""


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
    _size: int | None = None
    _known: dict[str, Counts] = field(default_factory=dict)
    _texts: dict[int, str] = field(default_factory=dict)

    def statistics(self, terms: Collection[str]) -> TermStatistics:
        """Return how many questions can be found, and how many have each of these terms."""
        self._look_up(terms)
        found = {term: known.texts for term in terms if (known := self._known.get(term)) is not None and known.texts}
        return TermStatistics(self._size or 0, found)

    def lexical(self, weights: Mapping[str, float], limit: int, filters: Filters) -> list[Candidate]:
        """Return the questions of the greatest inner product with the query."""
        wanted = self._asked(weights)
        return self._best(self.words, [wanted], limit, filters)[0] if wanted else []

    def misspelt(self, terms: Sequence[str], limit: int, filters: Filters) -> list[Candidate]:
        """Return the questions with terms spelled nearly as these; more often, and in shorter texts, counts more."""
        near = self.words.near(terms)
        if not near:
            return []
        rarest = {term: Counts(min(known.titles, 1), 1) for term, known in near.items()}  # as much for each
        wanted = asked(dict.fromkeys(near, 1.0), rarest, 1, self.fields)
        return self._best(self.words, [wanted], limit, filters)[0]

    def count(self, filters: Filters) -> int:
        """Return how many questions satisfy the filters."""
        milvus, name = self.words.milvus, self.words.collection
        if not (filters.has_states or filters.exclude_ids or filters.exclude_tags):
            return milvus.count(name, condition(filters))
        found = set(milvus.numbers(name, condition(filters))) - self._excluded(filters)
        if filters.has_states:
            found &= self._states(filters)
        for tag in filters.exclude_tags:
            found.difference_update(milvus.numbers(name, f'tags like "%,{tag_key(tag)},%"'))
        return len(found)

    def nearest(self, vectors: NDArray[np.float32], limit: int, filters: Filters) -> list[list[Candidate]]:
        """Return the questions of the greatest cosine to each of several vectors."""
        if self.vectors is None:
            return [[] for _ in vectors]
        return self._best(self.vectors, list(vectors), limit, filters)

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
        if self.vectors is not None and vector is not None and far:
            cosines.update(self.vectors.cosines(vector, far))
        unmatched = needed(cosines) if needed else unmatched
        wanted = self._asked(weights) if unmatched else {}
        if wanted:  # with their texts, which are asked for next
            for row in self.words.milvus.get(self.words.collection, unmatched, ["words", "text"]):
                self._texts[int(row["num"])] = row["text"]
                score = sum(value * wanted.get(dimension, 0.0) for dimension, value in row["words"].items())
                if score:
                    by_words[int(row["num"])] = score
        return by_words, cosines

    def texts(self, keys: Sequence[int]) -> dict[int, Text]:
        """Return the questions as they are compared, as far as the engine has kept them."""
        missing = [key for key in keys if key not in self._texts]
        if missing:
            rows = self.words.milvus.get(self.words.collection, missing, ["text"])
            self._texts.update((int(row["num"]), row["text"]) for row in rows)
        found = ((key, unpacked(packed_text(self._texts.get(key, "")))) for key in keys)
        return {key: text for key, text in found if text is not None}

    def _look_up(self, terms: Collection[str]) -> None:
        missing = set(terms).difference(self._known)
        if missing or self._size is None:
            self._size, found = self.words.counts(missing)
            self._known.update(dict.fromkeys(missing, Counts(0, 0)))
            self._known.update(found)

    def _asked(self, weights: Mapping[str, float]) -> dict[int, float]:
        self._look_up(weights)
        return asked(weights, self._known, self._size or 0, self.fields)

    def _best(self, index: MilvusIndex, queries: Sequence[Any], limit: int, filters: Filters) -> list[list[Candidate]]:
        """Return the best of an index for each query, of those that satisfy the filters, ties by number.

        Tags, dates and short lists are asked of the engine. What else is not wanted is dropped from what is found, of
        which more is asked for until there is enough; at the end those that are wanted are listed, however many.
        """
        excluded = self._excluded(filters) if filters.exclude_ids else set()
        states = self._states(filters) if filters.has_states else None
        parts = list(filter(None, [condition(filters)]))
        dropped = excluded if len(excluded) <= FEW_EXCLUDED else set()  # cheaper than an expression over all rows
        if excluded and not dropped:
            parts.append(listed("num not in", excluded))
        if states is not None and len(states) <= MOST_LISTED:
            if not states - excluded:
                return [[] for _ in queries]
            parts.append(listed("num in", sorted(states)))
            states = None
        keys = {tag_key(tag) for tag in filters.exclude_tags}
        wanted = limit + TIES + len(dropped)
        if states is not None:
            wanted += math.ceil(1.5 * limit * max(self._total(), len(states)) / len(states)) + 10
        while True:
            wanted = min(wanted, MOST_FOUND)
            found = self._found(index, queries, wanted, " and ".join(parts), keys)
            kept = [
                [one for one in some if one.key not in dropped and (states is None or one.key in states)]
                for some, _ in found
            ]
            is_enough = all(is_all or _is_settled(some, limit) for some, (_, is_all) in zip(kept, found, strict=True))
            if is_enough or wanted == MOST_FOUND:
                if is_enough or states is None:
                    return [some[:limit] for some in kept]
                parts.append(listed("num in", sorted(states)))
                states = None
            wanted *= GROWTH

    def _found(
        self, index: MilvusIndex, queries: Sequence[Any], wanted: int, expression: str, keys: Collection[str]
    ) -> list[tuple[list[Candidate], bool]]:
        """Return for each query what a search finds without these tags, and whether it is all that there is."""
        is_words = index is self.words
        fields = [*(("text",) if is_words and wanted <= MOST_TEXTS else ()), *(("tags",) if keys else ())]
        answers = index.milvus.search(index.collection, queries, wanted, expression, fields)
        if "text" in fields:
            self._texts.update((int(row["id"]), row["entity"]["text"]) for rows in answers for row in rows)
        found: list[tuple[list[Candidate], bool]] = []
        for query, rows in zip(queries, answers, strict=True):
            some = [
                Candidate(int(row["id"]), float(row["distance"]))
                for row in rows
                if row["distance"] and not (keys and has_one(row["entity"]["tags"], keys))
            ]
            if isinstance(query, np.ndarray) and not query.any():  # as far from one as from another
                found.append(([], True))
            else:
                found.append((sorted(some, key=lambda one: (-one.score, one.key)), len(rows) < wanted))
        return found

    def _total(self) -> int:
        self._look_up(())
        return self._size or 0

    def _states(self, filters: Filters) -> frozenset[int]:
        return self.states.of(filters)


def _is_settled(found: Sequence[Candidate], limit: int) -> bool:
    """Return whether the best so many are known: the next one is not as good as the last of them.

    >>> _is_settled([Candidate(1, 2.0), Candidate(2, 1.0)], 1), _is_settled([Candidate(1, 1.0), Candidate(2, 1.0)], 1)
    (True, False)
    """
    return len(found) > limit and found[limit - 1].score > found[limit].score
