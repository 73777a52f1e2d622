"""Words of questions in Milvus: its own BM25 function over our terms.

The terms of a title, those of title and body, and those of the best answers are texts with spaces between them; Milvus
splits them at the spaces and counts. A term of a query that weighs twice as much as another is asked for twice. The
best by the whole text and by answers are scored by the other fields too, since Milvus' hybrid search sums no scores as
they are. In how many questions a term is, which Milvus does not tell, is kept in rows of its own.

Source: Robertson, Zaragoza 2009, "The Probabilistic Relevance Framework", equation 3.15.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from askalike.index.cursor import Cursor
from askalike.index.milvus.client import (
    MAX_BYTES,
    NOTHING,
    MilvusIndex,
    add_conditions,
    add_field,
    add_terms,
    add_vector,
    fields_of,
    listed,
)
from askalike.index.postings import K1, B
from askalike.index.words import FieldWeights, IndexEntry

UNIT: Final = 0.5
"""The least weight of a term in a query; the others are rounded to multiples."""
DEEPER: Final = 2
"""So many times more are found by their texts as are wanted by both."""
TITLE, TERMS, ANSWERS = "title", "terms", "answers"
"""The fields of the terms of a title, of a whole question, and of its best answers."""
_COUNTED: Final = [TERMS, ANSWERS]
COUNTED_TOGETHER: Final = 5_000
"""Entries whose terms are counted in one step."""


def term_key(term: str) -> int:
    """Return the number that the row of a term has."""
    digest = hashlib.blake2b(term.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) >> 1


def text_of(terms: Sequence[str]) -> str:
    """Return terms as Milvus reads them, as many as a row holds.

    >>> text_of(["wifi", "router"])
    'wifi router'
    """
    text = " ".join(terms)
    if len(text.encode(errors="replace")) <= MAX_BYTES:
        return text
    return text.encode(errors="replace")[:MAX_BYTES].decode(errors="ignore").rpartition(" ")[0]


def query_of(weights: Mapping[str, float]) -> str:
    """Return the terms of a query, each as often as it weighs.

    >>> query_of({"wifi": 1.0, "drop": 0.5, "often": 0.1})
    'wifi wifi drop'
    """
    return " ".join(term for term, weight in weights.items() for _ in range(round(weight / UNIT)))


class MilvusWords(MilvusIndex):
    """The words of a forum by one analysis."""

    def begin(self, applied: int) -> None:
        """Make empty collections, in place of whatever was there."""
        entries = self.milvus.schema("num", "INT64")
        add_conditions(entries[0])
        add_field(entries[0], "text", "VARCHAR", max_length=65_535)
        for field in (TITLE, TERMS, ANSWERS):
            add_terms(*entries, field, K1, B)
        counts = self.milvus.schema("num", "INT64")
        for field in (TERMS, ANSWERS):
            add_field(counts[0], field, "INT64")
        add_vector(*counts, **NOTHING)
        names = (f"{kind}_{self._fingerprint}" for kind in ("words", "terms"))
        self._begin(applied, dict(zip(names, (entries, counts), strict=True)))

    @property
    def terms(self) -> str:
        """Return the name of the collection of terms."""
        return str(self._content["collections"][1])

    @contextmanager
    def writing(self) -> Iterator[MilvusWordWriter]:
        """Give the writer, while no other machine has it; what it has not committed is written again."""
        with self._alone(self.name):
            self.reopen()
            yield MilvusWordWriter(self)

    def frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        """Return in how many questions each of these terms is, of those that occur; of what none has, in their answers.

        A writer that was killed may have counted some questions twice.
        """
        keys = {term_key(term): term for term in terms}
        rows = self.milvus.get(self.terms, list(keys), [TERMS, ANSWERS])
        return {keys[row["num"]]: row[TERMS] or row[ANSWERS] for row in rows}

    def best(
        self, weights: Mapping[str, float], fields: FieldWeights, limit: int, expression: str
    ) -> list[tuple[int, float]]:
        """Return the questions that match weighted terms best, with their scores, descending; ties by number."""
        query = query_of(weights)
        if not query:
            return []
        weight_of = {TERMS: fields.text, TITLE: fields.title, ANSWERS: fields.answers}
        of_field = {  # a word of a title is in the text
            field: dict(self.milvus.search(self.collection, f"{field}_bm25", [query], DEEPER * limit, expression)[0])
            for field in ((TERMS, ANSWERS) if fields.answers else (TERMS,))
        }
        nums = set[int]().union(*of_field.values())
        scores = dict.fromkeys(nums, 0.0)
        for field, weight in weight_of.items():
            if not weight:
                continue
            known = of_field.get(field, {})
            is_whole = field in of_field and len(known) < DEEPER * limit
            if unknown := [] if is_whole else sorted(nums - known.keys()):
                among = listed("num in", unknown)
                known |= dict(self.milvus.search(self.collection, f"{field}_bm25", [query], len(unknown), among)[0])
            for num, score in known.items():
                scores[num] += UNIT * weight * score
        best = sorted((-score, num) for num, score in scores.items() if score > 0)
        return [(num, -score) for score, num in best[:limit]]

    def texts(self, nums: Sequence[int]) -> dict[int, bytes]:
        """Return what these questions are compared by, as far as it is there."""
        texts: dict[int, bytes] = {}
        for row in self.milvus.get(self.collection, nums, ["text"]):
            try:
                texts[row["num"]] = base64.b64decode(row["text"], validate=True)
            except binascii.Error:
                continue
        return texts


class MilvusWordWriter:
    """Adds, replaces and removes entries, some thousand at a time: their terms are counted, then they are sent.

    In this order a writer that is killed leaves no term uncounted.
    """

    def __init__(self, index: MilvusWords) -> None:
        self._index = index
        self._rows: dict[int, dict[str, Any]] = {}

    def put(self, entry: IndexEntry) -> None:
        """Add an entry, or replace the one with its number."""
        packed = base64.b64encode(entry.text).decode()
        self._rows[entry.num] = {
            "num": entry.num,
            **fields_of(entry.tags, entry.created_us),
            "text": packed if len(packed) <= MAX_BYTES else "",
            TITLE: text_of(entry.title),
            TERMS: text_of((*entry.title, *entry.body)),
            ANSWERS: text_of(entry.answers),
        }
        if len(self._rows) >= COUNTED_TOGETHER:
            self._send()

    def remove(self, nums: Sequence[int]) -> None:
        """Remove the entries with these numbers."""
        self._send()
        if nums:
            self._count(nums)
            self._index.milvus.delete(self._index.collection, nums)

    def commit(self, cursor: Cursor) -> None:
        """Send what is left, and write the cursor."""
        self._send()
        self._index.commit(cursor)

    def _send(self) -> None:
        if self._rows:
            self._count(list(self._rows))
            self._index.milvus.upsert(self._index.collection, self._rows.values())
            self._rows.clear()

    def _count(self, nums: Sequence[int]) -> None:
        """Count the terms of the entries that are to be sent, and no longer those of what is there of these numbers."""
        milvus, index = self._index.milvus, self._index
        change: Counter[tuple[int, str]] = Counter()
        for rows, times in ((self._rows.values(), 1), (milvus.get(index.collection, nums, _COUNTED), -1)):
            for row in rows:
                for field in _COUNTED:
                    for term in set(row[field].split()):
                        change[term_key(term), field] += times
        keys = list({key for (key, _), difference in change.items() if difference})
        known = {row["num"]: row for row in milvus.get(index.terms, keys, _COUNTED)}
        counts = {
            key: {field: known.get(key, {}).get(field, 0) + change[key, field] for field in _COUNTED} for key in keys
        }
        left = {key: of_fields for key, of_fields in counts.items() if max(of_fields.values()) > 0}
        milvus.upsert(index.terms, ({"num": key, **row, NOTHING["name"]: [0.0, 0.0]} for key, row in left.items()))
        milvus.delete(index.terms, list(counts.keys() - left.keys()))
