"""The candidate index: BM25 over titles and whole texts through tantivy, fed with the project's own terms.

Each entry is known by the archive's internal number. The index remembers the last change of the archive that it has
seen (its mark), so that a gap after a crash is found and replayed. Applying a change twice does no harm.

Enters: query terms and filters. Leaves: (number, score), best first. May import: types, errors, mark.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tantivy

from askalike.errors import BusyForumError, DamagedForumError, ForumError
from askalike.lexical.mark import MARK_FILE, OWNED, read_mark, write_mark
from askalike.lexical.spelling import spelling_query
from askalike.lexical.writer import LexicalWriter, unwritten
from askalike.mark import Mark
from askalike.removal import remove_owned
from askalike.types import Filters

__all__ = ["FieldWeights", "LexicalIndex"]

WRITER_MEMORY_BYTES = 96 * 1024 * 1024
MOST_REMEMBERED = 100_000
"""Terms whose document frequency is kept until the index changes."""


@dataclass(frozen=True, slots=True)
class FieldWeights:
    """How much a match counts: ``score = title · BM25_title + text · BM25_text``, text being title and body joined.

    A word of the title counts in both. Joined text was better on every forum measured than a body of its own.
    """

    title: float = 0.25
    text: float = 1.0


class LexicalIndex:
    """BM25 (k1 = 1.2, b = 0.75) over two fields; one process writes, any number search.

    Lengths are kept in one byte (tantivy's and Lucene's way), and entries deleted since the last merge of their
    segment still count in document frequencies: scores can differ by a few percent from the exact formula.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._refreshing = threading.Lock()
        self._frequencies: dict[str, int] = {}
        try:
            self._seen = self._state()
            self._mark = read_mark(self._seen)
            self._index = tantivy.Index.open(str(folder / "entries"))
            self._index.reload()
            self._searcher = self._index.searcher()
        except (ValueError, OSError, KeyError, TypeError) as error:
            raise _unread(folder, error) from error
        self._schema = self._index.schema

    @classmethod
    def create(cls, folder: Path, *, applied: int, fingerprint: str) -> LexicalIndex:
        """Make an empty index in place of whatever is at ``folder``.

        Args:
            applied: the archive's last change when the scan that fills the index begins.
            fingerprint: of the text settings.
        """
        cls.remove(folder)
        (folder / "entries").mkdir(parents=True)
        tantivy.Index(_schema(), str(folder / "entries"))
        write_mark(folder, Mark(applied=applied, scanned=0, is_complete=False, fingerprint=fingerprint))
        return cls(folder)

    @staticmethod
    def remove(folder: Path) -> None:
        """Delete an index, whatever its state; nothing happens where there is none.

        Raises:
            ForumError: the folder is a link, or something in it is not of an index.
        """
        if left := remove_owned(folder, OWNED):
            what = "is a link" if left[0] == folder else "is not a file of the candidate index"
            raise ForumError(f"{left[0]} {what}, and would be deleted", "move it elsewhere, then reindex")

    @staticmethod
    def exists(folder: Path) -> bool:
        """Return whether an index was begun at ``folder``."""
        return (folder / MARK_FILE).is_file()

    @property
    def mark(self) -> Mark:
        """Return how far this index has come, as of the last look at the disk."""
        return self._mark

    @property
    def entries(self) -> int:
        """Return how many questions are in the index."""
        return int(self._searcher.num_docs)

    def refresh(self) -> None:
        """See what another process (or this one) has committed since; cheap when nothing was.

        While another process builds the index anew, the complete one that was open before goes on answering.
        """
        state = self._state()
        if state == self._seen:
            return
        with self._refreshing:
            if state in (self._seen, None):
                return
            if not self._mark.is_complete or read_mark(state).is_complete:
                self._take(state)

    def reopen(self) -> None:
        """Take the index as it is on disk now, complete or not: what its writer must know.

        Raises:
            DamagedForumError: it has gone.
        """
        with self._refreshing:
            try:
                self._take(self._state())
            except ValueError as error:
                raise DamagedForumError(
                    f"the candidate index in {self.folder} has gone: {error}", "open the forum again"
                ) from error

    def _take(self, state: bytes | None) -> None:
        mark = read_mark(state)
        self._index.reload()
        self._mark, self._searcher, self._frequencies = mark, self._index.searcher(), {}
        self._seen = state  # last: who sees it must find the rest done

    @contextmanager
    def writing(self) -> Iterator[LexicalWriter]:
        """Give the writer; what it has committed stays, the rest is dropped at the end.

        Raises:
            BusyForumError: another writer is open, in this process or another.
            ForumError: the index cannot be written.
        """
        try:
            inner = self._index.writer(WRITER_MEMORY_BYTES, 1)
        except ValueError as error:
            if "LockBusy" not in str(error):
                raise unwritten(self.folder, error) from error
            raise BusyForumError(
                f"the candidate index in {self.folder} is being written by another process",
                "wait until it has finished",
            ) from error
        try:
            writer = LexicalWriter(inner, self.folder)
            writer.clear()
            yield writer
        finally:
            inner.rollback()
            inner.wait_merging_threads()
            self.reopen()

    def search(
        self, weights: Mapping[str, float], fields: FieldWeights, limit: int, filters: Filters | None = None
    ) -> list[tuple[int, float]]:
        """Return the best entries: ``score = Σ_t weight(t) · (title · BM25_title(t) + text · BM25_text(t))``.

        Args:
            weights: term → weight > 0.
            limit: at most this many, ≥ 1.
            filters: tags and ``before`` are applied here; ``exclude_ids`` is the caller's, who knows ids.

        Returns:
            (internal number, score), by score descending, then number ascending.

        Raises:
            DamagedForumError: a file of the index is damaged, or has gone.
        """
        return self._found(self._filtered(self._scoring(weights, fields), filters), limit) if weights else []

    def misspelt(
        self, terms: Iterable[str], fields: FieldWeights, limit: int, filters: Filters | None = None
    ) -> list[tuple[int, float]]:
        """Return the entries that have terms spelled nearly as these, those with most of them first.

        Args:
            terms: that no entry has; short ones are near to nothing, and only the first few are looked for.

        Returns:
            (internal number, the sum of the fields' weights over near terms), in the order of ``search``.

        Raises:
            DamagedForumError: a file of the index is damaged, or has gone.
        """
        query = spelling_query(self._schema, terms, fields.title, fields.text)
        return [] if query is None else self._found(self._filtered(query, filters), limit)

    def scores(self, weights: Mapping[str, float], fields: FieldWeights, nums: Sequence[int]) -> dict[int, float]:
        """Return the scores that ``search`` gives to these entries; those that match no term are left out.

        Raises:
            DamagedForumError: a file of the index is damaged, or has gone.
        """
        if not weights or not nums:
            return {}
        clauses = [(tantivy.Occur.Must, self._scoring(weights, fields)), self._among(nums)]
        return dict(self._found(tantivy.Query.boolean_query(clauses), len(nums)))

    def admitted(self, nums: Sequence[int], filters: Filters) -> set[int]:
        """Return those of the entries that satisfy tags and ``before``.

        Raises:
            DamagedForumError: a file of the index is damaged, or has gone.
        """
        if not nums or not _has_condition(filters):
            return set(nums)
        query = tantivy.Query.boolean_query([self._among(nums), *self._filter_clauses(filters)])
        return {num for num, _ in self._found(query, len(nums))}

    def count_admitted(self, filters: Filters) -> int:
        """Return how many entries satisfy tags and ``before``; in 2 ms for 200,000.

        Raises:
            DamagedForumError: a file of the index is damaged, or has gone.
        """
        if not _has_condition(filters):
            return self.entries
        try:
            query = tantivy.Query.boolean_query(self._filter_clauses(filters))
            found: Any = self._searcher.search(query, 1, count=True)
        except (ValueError, OSError) as error:
            raise _unread(self.folder, error) from error
        return int(found.count or 0)

    def all_admitted(self, filters: Filters) -> list[int]:
        """Return every entry that satisfies tags and ``before``, ascending; in 4 ms for 20,000 of them.

        Raises:
            DamagedForumError: a file of the index is damaged, or has gone.
        """
        if not self.entries:
            return []
        conditions = self._filter_clauses(filters) or [(tantivy.Occur.Must, tantivy.Query.all_query())]
        found = self._found(tantivy.Query.boolean_query(conditions), self.entries)
        return sorted(num for num, _ in found)

    def document_frequency(self, term: str) -> int:
        """Return in how many entries the term occurs, in the title or the body.

        Raises:
            DamagedForumError: a file of the index is damaged, or has gone.
        """
        known = self._frequencies.get(term)
        if known is None:
            try:
                known = int(self._searcher.doc_freq("text", term))
            except (ValueError, OSError) as error:
                raise _unread(self.folder, error) from error
            if len(self._frequencies) < MOST_REMEMBERED:
                self._frequencies[term] = known
        return known

    def _found(self, query: Any, limit: int) -> list[tuple[int, float]]:
        """Return (internal number, score) of the best entries, by score descending, then number ascending."""
        searcher = self._searcher
        try:
            hits = searcher.search(query, limit, count=False).hits
            nums = searcher.fast_field_values("num", [address for _, address in hits])
        except (ValueError, OSError) as error:
            raise _unread(self.folder, error) from error
        ranked = [(int(num or 0), float(score)) for num, (score, _) in zip(nums, hits, strict=True)]
        return sorted(ranked, key=lambda hit: (-hit[1], hit[0]))

    def _filtered(self, query: Any, filters: Filters | None) -> Any:
        if filters is None or not _has_condition(filters):
            return query
        return tantivy.Query.boolean_query([(tantivy.Occur.Must, query), *self._filter_clauses(filters)])

    def _scoring(self, weights: Mapping[str, float], fields: FieldWeights) -> Any:
        clauses: list[tuple[Any, Any]] = []
        for term, weight in weights.items():
            for name, boost in (("title", fields.title), ("text", fields.text)):
                if boost:
                    found = tantivy.Query.term_query(self._schema, name, term, "freq")
                    clauses.append((tantivy.Occur.Should, tantivy.Query.boost_query(found, weight * boost)))
        return tantivy.Query.boolean_query(clauses)

    def _among(self, nums: Sequence[int]) -> tuple[Any, Any]:
        among = tantivy.Query.term_set_query(self._schema, "key", [str(num) for num in nums])
        return tantivy.Occur.Must, tantivy.Query.const_score_query(among, 0.0)

    def _filter_clauses(self, filters: Filters) -> list[tuple[Any, Any]]:
        conditions = [self._tag_clause(tag) for tag in filters.tags]
        if filters.before is not None:
            conditions.append(
                tantivy.Query.range_query(
                    self._schema,
                    "created_us",
                    tantivy.FieldType.Integer,
                    upper_bound=round(filters.before.timestamp() * 1_000_000),
                    include_upper=False,
                )
            )
        return [(tantivy.Occur.Must, tantivy.Query.const_score_query(condition, 0.0)) for condition in conditions]

    def _tag_clause(self, tag: str) -> Any:
        try:
            tag.encode()
        except UnicodeEncodeError:  # half a surrogate pair, as from a shell: no stored tag has one
            return tantivy.Query.empty_query()
        return tantivy.Query.term_query(self._schema, "tag", tag.casefold(), "basic")

    def _state(self) -> bytes | None:
        """Return the mark's file as it is now, None while there is none."""
        try:
            return (self.folder / MARK_FILE).read_bytes()
        except FileNotFoundError:
            return None


def _has_condition(filters: Filters) -> bool:
    return bool(filters.tags) or filters.before is not None


def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("num", stored=False, indexed=False, fast=True)
    builder.add_text_field("key", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("title", tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field("text", tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field("tag", tokenizer_name="raw", index_option="basic")
    builder.add_integer_field("created_us", stored=False, indexed=True, fast=True)
    return builder.build()


def _unread(folder: Path, error: Exception) -> DamagedForumError:
    return DamagedForumError(
        f"the candidate index in {folder} cannot be read: {error}", 'rebuild it with "askalike reindex FORUM"'
    )
