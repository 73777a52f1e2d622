"""One state of the word index: what it holds, how far it has come, and the frequencies that were asked for.

Source: the edits are those of Damerau 1964 and Levenshtein 1966: a letter put in, left out, changed, or two neighbours
turned round.

It is replaced as a whole, and never changed: a search that began on one state ends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import tantivy
from numpy.typing import NDArray

from askalike.index.cursor import Cursor
from askalike.index.words.faults import reading
from askalike.index.words.postings import TITLE_WEIGHT, LivePostings, best, is_worth_it
from askalike.index.words.texts import Texts
from askalike.types import Filters

FEW: Final = 200
"""Up to so many entries are looked up one by one: 45 of 224,741 in half the time of a walk through their keys."""

MOST_REMEMBERED = 100_000
"""Terms whose document frequency is kept with a state."""


@dataclass(frozen=True, slots=True)
class FieldWeights:
    """How much a match counts: ``score = title · BM25_title + text · BM25_text``, text being title and body joined.

    A word of the title counts in both. Joined text was better on every forum measured than a body of its own.
    """

    title: float = TITLE_WEIGHT
    text: float = 1.0

    @property
    def are_of_postings(self) -> bool:
        """Return whether impacts are of these weights, but for a factor."""
        return self.text > 0 and self.title == TITLE_WEIGHT * self.text


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """What belongs together.

    Args:
        file: the bytes of the cursor's file that this state was found with.
        counted: how many entries tantivy's formulas count.
        live: postings that agree with the entries of the searcher, if there are such.
        frequencies: term → document frequency, as this searcher counts it.
    """

    file: bytes | None
    cursor: Cursor
    searcher: Any
    schema: Any
    counted: int
    live: LivePostings | None = None
    frequencies: dict[str, int] = field(default_factory=dict)


def in_step(live: LivePostings | None, searcher: Any, schema: Any) -> LivePostings | None:
    """Return postings if they and what was written since are all that a searcher finds, which may be newer."""
    if live is None:
        return None
    tagged = tantivy.Query.term_query(schema, "since", live.tag, "basic")
    tail = int(searcher.search(tagged, 1, count=True).count or 0)
    return replace(live, tail=tail) if live.alive + tail == searcher.num_docs else None


class WordSnapshot:
    """BM25 (k1 = 1.2, b = 0.75) over two fields, in one state of the index.

    Lengths are kept in one byte (tantivy's and Lucene's way), and entries deleted since the last merge of their
    segment still count in document frequencies: scores can differ by a few percent from the exact formula.

    Raises:
        DamagedForumError: of every method that reads: a file of the index is damaged, or has gone.
    """

    def __init__(self, folder: Path, state: State, texts: Texts) -> None:
        self.folder = folder
        self._now = state
        self._texts = texts
        self._scored: tuple[State, Mapping[str, float], FieldWeights, Any] | None = None
        self._summed: tuple[State, Mapping[str, float], FieldWeights, NDArray[np.float32]] | None = None

    @property
    def cursor(self) -> Cursor:
        """Return how far the index had come."""
        return self._now.cursor

    @property
    def entries(self) -> int:
        """Return how many questions are in the index."""
        return int(self._now.searcher.num_docs)

    @property
    def deleted(self) -> int:
        """Return how many entries are deleted and still count in document frequencies and mean lengths."""
        return self._now.counted - self.entries

    def texts(self, nums: Sequence[int]) -> dict[int, bytes]:
        """Return what entries are compared by, as far as it is there and can be read: that of the newest commit."""
        return self._texts.get(nums)

    def search(
        self,
        weights: Mapping[str, float],
        fields: FieldWeights,
        limit: int,
        filters: Filters | None = None,
        among: Sequence[int] | None = None,
    ) -> list[tuple[int, float]]:
        """Return the best entries: ``score = Σ_t weight(t) · (title · BM25_title(t) + text · BM25_text(t))``.

        Args:
            weights: term → weight > 0.
            limit: at most this many, ≥ 1.
            filters: tags and dates are applied here; the others are the caller's, who knows records.
            among: only these entries; None for all.

        Returns:
            (internal number, score), by score descending, then number ascending.
        """
        if not weights:
            return []
        live = self._live_for(fields)
        if live is None or among is not None or _has_condition(filters or Filters()):
            return self._found(self._filtered(self._scoring(weights, fields), filters, among), limit)
        sums = self._sums(live, weights, fields)
        rows = best(sums, limit)
        found = list(zip(live.postings.part.nums[rows].tolist(), sums[rows].tolist(), strict=True))
        if live.tail:
            since = tantivy.Query.term_query(self._now.schema, "since", live.tag, "basic")
            clauses = [(tantivy.Occur.Must, self._scoring(weights, fields))]
            clauses.append((tantivy.Occur.Must, tantivy.Query.const_score_query(since, 0.0)))
            found += self._found(tantivy.Query.boolean_query(clauses), limit)
            found.sort(key=lambda one: (-one[1], one[0]))
        return found[:limit]

    def scores(self, weights: Mapping[str, float], fields: FieldWeights, nums: Sequence[int]) -> dict[int, float]:
        """Return the scores that ``search`` gives to these entries; those that match no term are left out."""
        if not weights or not nums:
            return {}
        live, found, left = self._live_for(fields), {}, nums
        if live is not None:
            rows = live.postings.places(np.array(nums, np.int64))
            scores = self._sums(live, weights, fields)[rows].tolist()
            pairs = list(zip(nums, rows.tolist(), scores, strict=True))
            found = {num: score for num, row, score in pairs if row >= 0 and score > 0}
            left = [num for num in nums if num not in found] if live.tail else []
        return found | self._scores(weights, fields, left) if left else found

    def _scores(self, weights: Mapping[str, float], fields: FieldWeights, nums: Sequence[int]) -> dict[int, float]:
        clauses = [(tantivy.Occur.Must, self._scoring(weights, fields)), self._among(nums)]
        return dict(self._found(tantivy.Query.boolean_query(clauses), len(nums)))

    def admitted(self, nums: Sequence[int], filters: Filters) -> set[int]:
        """Return those of the entries that satisfy tags and dates."""
        if not nums or not _has_condition(filters):
            return set(nums)
        query = tantivy.Query.boolean_query([self._among(nums), *self._filter_clauses(filters)])
        return {num for num, _ in self._found(query, len(nums))}

    def count_admitted(self, filters: Filters) -> int:
        """Return how many entries satisfy tags and dates; in 2 ms for 200,000."""
        if not _has_condition(filters):
            return self.entries
        with reading(self.folder):
            query = tantivy.Query.boolean_query(self._filter_clauses(filters))
            found: Any = self._now.searcher.search(query, 1, count=True)
        return int(found.count or 0)

    def all_admitted(self, filters: Filters) -> list[int]:
        """Return every entry that satisfies tags and dates, ascending; in 4 ms for 20,000 of them."""
        if not self.entries:
            return []
        conditions = self._filter_clauses(filters) or [(tantivy.Occur.Must, tantivy.Query.all_query())]
        found = self._found(tantivy.Query.boolean_query(conditions), self.entries)
        return sorted(num for num, _ in found)

    def document_frequency(self, term: str) -> int:
        """Return in how many entries the term occurs, in the title or the body."""
        now = self._now
        known = now.frequencies.get(term)
        if known is None:
            with reading(self.folder):
                known = int(now.searcher.doc_freq("text", term))
            if len(now.frequencies) < MOST_REMEMBERED:
                now.frequencies[term] = known
        return known

    def document_frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        """Return the terms that occur → in how many entries; not remembered, since most may be no words at all."""
        known, count = self._now.frequencies, self._now.searcher.doc_freq
        with reading(self.folder):
            return {term: found for term in terms if (found := known.get(term) or int(count("text", term)))}

    def _found(self, query: Any, limit: int) -> list[tuple[int, float]]:
        """Return (internal number, score) of the best entries, by score descending, then number ascending."""
        searcher = self._now.searcher
        with reading(self.folder):
            hits = searcher.search(query, limit, count=False).hits
            nums = searcher.fast_field_values("num", [address for _, address in hits])
        ranked = sorted((-score, num or 0) for num, (score, _) in zip(nums, hits, strict=True))
        return [(num, -negated) for negated, num in ranked]

    def _live_for(self, fields: FieldWeights) -> LivePostings | None:
        """Return the postings where they can answer for these weights, and loading what they need is worth it."""
        live = self._now.live
        return live if live is not None and fields.are_of_postings and is_worth_it() else None

    def _sums(self, live: LivePostings, weights: Mapping[str, float], fields: FieldWeights) -> NDArray[np.float32]:
        """Return the score of every row of the postings, 0 for dead ones; a search asks for the same ones twice."""
        now, known = self._now, self._summed
        if known is not None and known[0] is now and known[1] is weights and known[2] is fields:
            return known[3]
        sums = live.postings.sums(weights, self.document_frequency, now.counted)
        if fields.text != 1:
            sums *= fields.text
        sums[live.dead] = 0
        self._summed = (now, weights, fields, sums)
        return sums

    def _filtered(self, query: Any, filters: Filters | None, among: Sequence[int] | None) -> Any:
        clauses = [] if filters is None else self._filter_clauses(filters)
        if among is not None:
            clauses.append(self._among(among))
        return tantivy.Query.boolean_query([(tantivy.Occur.Must, query), *clauses]) if clauses else query

    def _scoring(self, weights: Mapping[str, float], fields: FieldWeights) -> Any:
        """Return the query for some weights; a search asks for the same ones twice, and so gets the same one."""
        now, known = self._now, self._scored
        if known is not None and known[0] is now and known[1] is weights and known[2] is fields:
            return known[3]
        clauses: list[tuple[Any, Any]] = []
        for term, weight in weights.items():
            for name, boost in (("title", fields.title), ("text", fields.text)):
                if boost:
                    found = tantivy.Query.term_query(now.schema, name, term, "freq")
                    clauses.append((tantivy.Occur.Should, tantivy.Query.boost_query(found, weight * boost)))
        made = tantivy.Query.boolean_query(clauses)
        self._scored = (now, weights, fields, made)
        return made

    def _among(self, nums: Sequence[int]) -> tuple[Any, Any]:
        schema, keys = self._now.schema, [str(num) for num in nums]
        if len(keys) <= FEW:  # each is looked up; for more, the dictionary of all is walked once
            each = [(tantivy.Occur.Should, tantivy.Query.term_query(schema, "key", key, "basic")) for key in keys]
            among = tantivy.Query.boolean_query(each)
        else:
            among = tantivy.Query.term_set_query(schema, "key", keys)
        return tantivy.Occur.Must, tantivy.Query.const_score_query(among, 0.0)

    def _filter_clauses(self, filters: Filters) -> list[tuple[Any, Any]]:
        """Return what tags and dates ask for; nothing for filters that ask for neither."""
        conditions = [self._tag_clause(tag) for tag in filters.tags]
        if filters.exclude_tags:  # without those that have one: a query needs something to take away from
            without = [(tantivy.Occur.MustNot, self._tag_clause(tag)) for tag in filters.exclude_tags]
            everything = (tantivy.Occur.Must, tantivy.Query.all_query())
            conditions.append(tantivy.Query.boolean_query([everything, *without]))
        if filters.before is not None or filters.after is not None:
            conditions.append(
                tantivy.Query.range_query(
                    self._now.schema,
                    "created_us",
                    tantivy.FieldType.Integer,
                    lower_bound=_microseconds(filters.after),
                    upper_bound=_microseconds(filters.before),
                    include_upper=filters.before is None,
                )
            )
        return [(tantivy.Occur.Must, tantivy.Query.const_score_query(condition, 0.0)) for condition in conditions]

    def _tag_clause(self, tag: str) -> Any:
        try:
            tag.encode()
        except UnicodeEncodeError:  # half a surrogate pair, as from a shell: no stored tag has one
            return tantivy.Query.empty_query()
        return tantivy.Query.term_query(self._now.schema, "tag", tag.casefold(), "basic")


def _microseconds(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1_000_000)


def _has_condition(filters: Filters) -> bool:
    return bool(filters.tags or filters.exclude_tags or filters.before or filters.after)
