"""Words of questions in Milvus: BM25 over title and text as the inner product of two sparse vectors.

``score(q, d) = Σ_t w(t) · Σ_f boost_f · idf_f(t) · tf·(k1 + 1) / (tf + k1·(1 − b + b·|d|_f / avg_f))``, where the last
factor is the document's side, stored, and the others are the query's, so that no score depends on shards. A term is a
place below 2³¹ by its hash, and has a dimension for each field: of a million terms some 200 share their place.

Source: Robertson, Zaragoza 2009, "The Probabilistic Relevance Framework", equation 3.15; idf as Lucene has it.

Each row of a question has one more dimension, by which it is found with its text: Milvus Lite takes four times as long
to give rows by their numbers. It weighs so little that no score differs where a term shares it.

Document frequencies are rows of their own, one for a term, changed with each write. The row of a term has a dimension
that no other row has, by which it is looked up. The mean lengths stay those of the beginning, the same for all
questions. What departs from the truth is bounded: where a killed writer may have counted a tenth of the questions
twice, or the mean length of what was written is a quarter off, all is asked for anew.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from askalike.index.cursor import Cursor
from askalike.index.milvus.client import (
    FORMAT,
    MOST_BYTES,
    MOST_FOUND,
    ROWS_TOGETHER,
    MilvusIndex,
    Rows,
    fields_of,
    generation,
    number_field,
    sparse,
    text_field,
)
from askalike.index.postings import idf, saturated
from askalike.index.words import FieldWeights, IndexEntry

PLACES: Final = (1 << 31) - 1
COUNTED: Final = ("term", "titles", "texts")
"""The fields of a term's row."""
SIZE: Final = -1
"""The row of ``terms`` that counts the questions."""
USUAL_LENGTHS: Final = (6.0, 60.0)
"""Terms of a title and of a whole text, before there are any."""
MOST_DISTINCT: Final = 10_000
"""Terms of one question that are indexed; Milvus Lite takes a minute for a question of 300,000."""
DRIFT_SHARE, DRIFT_LEAST = 0.1, 100
LENGTHS_OFF: Final = 1.25
LONGEST_TERM: Final = 100
MARK: Final = 1e-9
"""The weight of the dimension by which a question is found."""
SPARE: Final = 10
"""So many others may have one of the dimensions of some questions; then they are read from the store."""


class Counts(NamedTuple):
    """In how many questions a term is."""

    titles: int
    texts: int


@dataclass(frozen=True, slots=True)
class Lengths:
    """Mean numbers of terms."""

    title: float
    text: float


def place(term: str) -> int:
    """Return a term's place, below 2³¹ − 1."""
    return _place(term) if len(term) <= LONGEST_TERM else _place.__wrapped__(term)


@lru_cache(maxsize=100_000)
def _place(term: str) -> int:
    return int.from_bytes(hashlib.blake2b(term.encode(errors="surrogatepass"), digest_size=8).digest()) % PLACES


def mark(num: int) -> int:
    """Return the dimension by which a question is found; a term has it by chance, once in 2³¹."""
    return 2 * _place.__wrapped__(f"\x00{num}")


def document(title: Sequence[str], text: Sequence[str], lengths: Lengths) -> dict[int, float]:
    """Return the sparse vector of a question; ``text`` is title and body joined."""
    values = {}
    for field, terms, mean in ((0, title, lengths.title), (1, text, lengths.text)):
        for term, times in list(Counter(terms).items())[:MOST_DISTINCT]:
            values[2 * place(term) + field] = float(saturated(times, len(terms), mean))
    return values


def query_weights(
    weights: Mapping[str, float], counts: Mapping[str, Counts], size: int, fields: FieldWeights
) -> dict[int, float]:
    """Return the sparse vector of a query."""
    values = {}
    for term, weight in weights.items():
        known = counts.get(term, Counts(0, 0))
        for field, boost, frequency in ((0, fields.title, known.titles), (1, fields.text, known.texts)):
            if frequency and boost and weight:
                values[2 * place(term) + field] = weight * boost * float(idf(max(size, frequency), frequency))
    return values


class MilvusWords(MilvusIndex):
    """The words of a forum by one analysis."""

    def begin(self, applied: int, lengths: Lengths) -> None:
        """Make empty collections; in the row of this index they take the place of those before."""
        entries, terms = (generation(kind, self._fingerprint) for kind in ("words", "terms"))
        fields = [text_field("tags"), number_field("created_us"), text_field("text")]
        self.milvus.create(entries, fields, sparse("words"))
        counted = [text_field("term"), number_field("titles"), number_field("texts")]
        self.milvus.create(terms, counted, sparse("place"))
        self._begin(
            applied,
            [entries, terms],
            lengths=[lengths.title, lengths.text],
            open=0,
            drift=0,
            seen=[0, 0, 0],
        )

    def successor(self) -> MilvusWords:
        """Return an index that is filled beside this one."""
        index = MilvusWords(self.milvus, f"next_{self.name}", self._fingerprint, self._alone)
        index.reopen()
        return index

    def take(self, successor: MilvusWords) -> None:
        """Let the successor answer: one row is replaced, and who searches sees either."""
        before = self._held()["collections"]
        self._row = dict(successor._held())
        self.milvus.keep_row(self.name, self._row)
        self.milvus.forget_row(successor.name)
        self.milvus.drop_later(before)

    @property
    def terms(self) -> str:
        """Return the name of the collection of terms."""
        return str(self._held()["collections"][1])

    @property
    def lengths(self) -> Lengths:
        """Return the mean lengths that its entries are made by."""
        return Lengths(*self._held()["lengths"])

    @property
    def is_unused(self) -> bool:
        """Return whether nothing was ever written."""
        row = self._held()
        return not row["seen"][0] and not row["open"]

    @property
    def has_drifted(self) -> bool:
        """Return whether its counts or lengths may be so far from the truth that it should be made anew."""
        row = self._held()
        seen, title, text = row["seen"]
        if row["drift"] > DRIFT_LEAST and row["drift"] > DRIFT_SHARE * self.entries:
            return True
        if seen < DRIFT_LEAST:
            return False
        pairs = ((title / seen, self.lengths.title), (text / seen, self.lengths.text))
        return any(not 1 / LENGTHS_OFF < max(now, 1.0) / mean < LENGTHS_OFF for now, mean in pairs)

    @contextmanager
    def writing(self) -> Iterator[MilvusWordWriter]:
        """Give the writer, while no other machine has it; what it has not committed is written again."""
        with self._alone(self.name):
            self.reopen()
            row = self._held()
            if row["open"]:  # a killed writer may have counted these
                self._keep(drift=row["drift"] + row["open"], open=0)
            yield MilvusWordWriter(self)

    def open_rows(self, size: int) -> None:
        """Note that so many more rows are written whose terms are not counted yet."""
        self._keep(open=self._held()["open"] + size)

    def commit(self, cursor: Cursor, seen: Sequence[int]) -> None:
        """Write the cursor, after everything that it covers."""
        if cursor.is_complete and not self.cursor.is_complete:
            self.milvus.flush(self.collection)
            self.milvus.flush(self.terms)
        total = [now + more for now, more in zip(self._held()["seen"], seen, strict=True)]
        self._keep(cursor=cursor.to_json(FORMAT), open=0, seen=total, entries=self.count())

    def counts(self, terms: Iterable[str]) -> tuple[int, dict[str, Counts]]:
        """Return how many questions there are, and how many have each of these terms, of those that occur."""
        places = {place(term): term for term in terms}
        return _counted(places, self.rows([SIZE, *places]))

    def rows(self, places: Sequence[int]) -> dict[int, Mapping[str, Any]]:
        """Return the rows of terms by their places, those that are there.

        They are searched for by the dimension that each has alone: Milvus Lite takes a millisecond for each row that is
        asked for by its number, in a collection whose rows were often replaced.
        """
        rows_by_place: dict[int, Mapping[str, Any]] = {}
        for part in _parts(places):
            [rows] = self.milvus.search(*self._own_rows(part))
            rows_by_place.update(_each(rows))
        return rows_by_place

    def _own_rows(self, places: Sequence[int]) -> tuple[str, list[dict[int, float]], int, str, Sequence[str]]:
        """Return what is searched for to read the rows of terms."""
        return self.terms, [dict.fromkeys(map(_own, places), 1.0)], len(places), "", COUNTED

    def texts(self, nums: Sequence[int]) -> dict[int, str]:
        """Return what these questions are compared by, of those that are found."""
        texts: dict[int, str] = {}
        for part in _parts(nums):
            wanted, among = {mark(num): 1.0 for num in part}, set(part)
            [rows] = self.milvus.search(self.collection, [wanted], len(part) + SPARE, "", ("text",))
            pairs = zip(rows.nums, rows.fields.get("text", ()), strict=True)
            texts.update((num, text) for num, text in pairs if num in among)
        return texts


def _each(rows: Rows) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the place and the fields of each row of counts."""
    columns = (rows.fields.get(name, ()) for name in COUNTED)
    named = (dict(zip(COUNTED, values, strict=True)) for values in zip(*columns, strict=True))
    return zip(rows.nums, named, strict=True)


def _counted(places: Mapping[int, str], rows: Mapping[int, Mapping[str, Any]]) -> tuple[int, dict[str, Counts]]:
    """Return the number of questions, and the counts of the terms at these places, of those that occur."""
    size, counts = 0, {}
    for num, row in rows.items():
        if num == SIZE:
            size = int(row["texts"])
        elif row["term"] == shown(places[num]):  # another term may have the same place
            counts[places[num]] = Counts(int(row["titles"]), int(row["texts"]))
    return size, counts


def _parts(nums: Sequence[int]) -> Iterator[Sequence[int]]:
    together = MOST_FOUND - SPARE
    for start in range(0, len(nums), together):
        yield nums[start : start + together]


def _own(number: int) -> int:
    """Return the dimension that the row of a term has alone, by the term's place."""
    return 2 * PLACES if number == SIZE else 2 * number + 1


def packed_text(written: str) -> bytes:
    """Return what an entry is compared by; nothing where it is not there, so that the question itself is read."""
    try:
        return base64.b64decode(written, validate=True)
    except binascii.Error:
        return b""


def shown(term: str) -> str:
    """Return a term as its row has it; one of a hundred letters is known by its place alone."""
    return term if len(term) <= LONGEST_TERM else ""


class MilvusWordWriter:
    """Adds, replaces and removes entries; they are sent some hundred at a time, and counted before the cursor."""

    def __init__(self, index: MilvusWords) -> None:
        self._index = index
        self._rows: dict[int, dict[str, Any]] = {}
        self._deltas: dict[int, list[int]] = {}
        self._terms: dict[int, str] = {}
        self._seen = [0, 0, 0]
        self._lengths = index.lengths
        self._is_new = not index.cursor.is_complete and not index.count()
        self._changed = 0

    def put(self, entry: IndexEntry) -> None:
        """Add an entry, or replace the one with its number."""
        title, text = list(entry.title), [*entry.title, *entry.body]
        packed = base64.b64encode(entry.text).decode()
        self._rows[entry.num] = {
            "num": entry.num,
            **fields_of(entry.tags, entry.created_us),
            "text": packed if len(packed) <= MOST_BYTES else "",
            "words": {mark(entry.num): MARK, **document(title, text, self._lengths)},
        }
        for term in text:
            self._terms[place(term)] = term
        for at, more in enumerate((1, len(title), len(text))):
            self._seen[at] += more
        if len(self._rows) >= ROWS_TOGETHER:
            self._send()

    def remove(self, nums: Sequence[int]) -> None:
        """Remove the entries with these numbers."""
        if not nums:
            return
        self._send()
        self._index.open_rows(len(nums))
        self._count_away(nums)
        self._index.milvus.delete(self._index.collection, nums)

    def commit(self, cursor: Cursor) -> None:
        """Send what is left, count its terms, and write the cursor."""
        self._send()
        if self._changed:
            self._count()
        self._index.commit(cursor, self._seen)
        self._seen = [0, 0, 0]
        self._is_new = self._is_new and not cursor.is_complete

    def _send(self) -> None:
        rows, self._rows = self._rows, {}
        if not rows:
            return
        self._index.open_rows(len(rows))
        if not self._is_new:
            self._count_away(list(rows))
        for row in rows.values():
            self._add(row["words"], 1)
        self._index.milvus.upsert(self._index.collection, rows.values())
        self._changed += len(rows)

    def _count_away(self, nums: Sequence[int]) -> None:
        """Take away the terms of what entries were."""
        if not self._index.count():  # Milvus Lite gives no vectors of an empty collection, but an error
            return
        for row in self._index.milvus.get(self._index.collection, nums, ["words"]):
            self._add(row["words"], -1)
            self._changed += 1

    def _add(self, words: Mapping[int, float], times: int) -> None:
        for dimension, weight in words.items():
            number, field = divmod(dimension, 2)
            if weight > 2 * MARK:  # it is a term's
                self._deltas.setdefault(number, [0, 0])[field] += times

    def _count(self) -> None:
        deltas = {number: delta for number, delta in self._deltas.items() if any(delta)}
        milvus, terms = self._index.milvus, self._index.terms
        known: dict[int, Mapping[str, Any]] = {}
        if not self._is_new or milvus.count(terms):
            known = self._index.rows(list(deltas))
        size = {"titles": 0, "texts": self._index.count()}
        changed = [{"num": SIZE, "term": "", **size, "place": {_own(SIZE): 1.0}}]
        gone = []
        for number, (titles, texts) in deltas.items():
            row = known.get(number, {"term": shown(self._terms.get(number, "")), "titles": 0, "texts": 0})
            term = str(row["term"])
            counted = Counts(max(0, row["titles"] + titles), max(0, row["texts"] + texts))
            if counted.texts:
                changed.append({"num": number, "term": term, **counted._asdict(), "place": {_own(number): 1.0}})
            elif number in known:
                gone.append(number)
        milvus.upsert(terms, changed)
        if gone:
            milvus.delete(terms, gone)
        self._deltas.clear()
        self._terms.clear()
        self._changed = 0
