"""The candidate index: BM25 over titles and whole texts through tantivy, fed with the project's own terms.

Each entry is known by the archive's internal number. The index remembers the last change of the archive that it has
seen (its mark), so that a gap after a crash is found and replayed. Applying a change twice does no harm.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tantivy

from askalike.errors import DamagedForumError, ForumError
from askalike.files import remove_owned
from askalike.index.cursor import Mark
from askalike.index.words import sums
from askalike.index.words.faults import REBUILD, reading, writing
from askalike.index.words.mark import MARK_FILE, OWNED, read_mark, write_mark
from askalike.index.words.snapshot import LexicalSnapshot, State
from askalike.index.words.sums import ENTRIES
from askalike.index.words.writer import LexicalWriter
from askalike.types import Filters

WRITER_MEMORY_BYTES = 96 * 1024 * 1024

CHECKED_BYTES = 16 * 1024 * 1024
"""So much of the files, the small ones first, is compared with its sums when it is opened, in 15 ms."""


class LexicalIndex(LexicalSnapshot):
    """The index as it is on disk: each look replaces the state that searches see; one process writes, any number read.

    Raises:
        DamagedForumError: it cannot be read, or a file of it is damaged.
        ForumError: the system does not let it be read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder  # which comparing sums needs
        self._looking = threading.Lock()
        self._looked_at: set[str] = set()
        self._compare_sums()  # before tantivy reads what it would panic at
        with reading(folder):
            file = (folder / MARK_FILE).read_bytes()
            mark = read_mark(file)
            self._index = tantivy.Index.open(str(folder / ENTRIES))
            state = State(file, mark, self._index.searcher(), self._index.schema)
        super().__init__(folder, state)

    @classmethod
    def create(cls, folder: Path, *, applied: int, fingerprint: str) -> LexicalIndex:
        """Make an empty index in place of whatever is at ``folder``.

        Args:
            applied: the archive's last change when the scan that fills the index begins.
            fingerprint: of the text settings.

        Raises:
            ForumError: it cannot be made there.
        """
        cls.remove(folder)
        with writing(folder):
            (folder / ENTRIES).mkdir(parents=True)
            tantivy.Index(schema(), str(folder / ENTRIES))
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
        return (folder / MARK_FILE).exists()

    def snapshot(self) -> LexicalSnapshot:
        """Return the state of the last look; what is committed after it is not seen there."""
        return LexicalSnapshot(self.folder, self._now)

    def refresh(self) -> None:
        """See what another process (or this one) has committed since; cheap when nothing was.

        While another process builds the index anew, the complete one that was open before goes on answering.

        Raises:
            DamagedForumError, ForumError: it cannot be read; the state before goes on answering.
        """
        file = self._file()
        if file in (self._now.file, None):
            return
        with self._looking:
            file = self._file()  # another thread may have taken this one, or one after it
            if file in (self._now.file, None):
                return
            with reading(self.folder):
                mark = read_mark(file)
            if mark.is_complete or not self._now.mark.is_complete:
                self._take(file, mark)

    def reopen(self) -> None:
        """Take the index as it is on disk now, complete or not: what its writer must know.

        Raises:
            DamagedForumError: it has gone.
        """
        with self._looking:
            file = self._file()
            try:
                mark = read_mark(file)
            except ValueError as error:
                raise DamagedForumError(
                    f"the candidate index in {self.folder} has gone: {error}", "open the forum again"
                ) from error
            self._take(file, mark)

    def has_schema(self, expected: Any) -> bool:
        """Return whether its entries have these fields."""
        with reading(self.folder):
            return bool(self._index.schema == expected)

    def numbers(self) -> list[int]:
        """Return the numbers of all entries, ascending; one that it holds twice is there twice.

        Raises:
            DamagedForumError: a file of the index is damaged, or has gone.
        """
        return self.all_admitted(Filters())

    def probe(self) -> None:
        """Look for an entry as a search does, in a millisecond.

        Raises:
            DamagedForumError, ForumError: no search would be answered.
        """
        self.refresh()
        with reading(self.folder):
            searcher = self._now.searcher
            hits = searcher.search(tantivy.Query.all_query(), 1, count=False).hits
            searcher.fast_field_values("num", [address for _, address in hits])
            searcher.doc_freq("text", "the")

    @contextmanager
    def writing(self) -> Iterator[LexicalWriter]:
        """Give the writer; what it has committed stays, the rest is dropped at the end.

        Raises:
            BusyForumError: another writer is open, in this process or another.
            DamagedForumError: a file of the index is damaged.
            ForumError: the index cannot be written.
        """
        with writing(self.folder):
            inner = self._index.writer(WRITER_MEMORY_BYTES, 1)
        try:
            writer = LexicalWriter(inner, self.folder)
            writer.clear()
            yield writer
        finally:
            with writing(self.folder):
                inner.rollback()
                inner.wait_merging_threads()
                sums.write_down(self.folder)
            self.reopen()

    def _take(self, file: bytes | None, mark: Mark) -> None:
        self._compare_sums()
        with reading(self.folder):
            self._index.reload()
            searcher = self._index.searcher()
        self._now = State(file or b"", mark, searcher, self._now.schema)

    def _compare_sums(self) -> None:
        with reading(self.folder):
            fault = next(sums.faults(self.folder, self._looked_at, CHECKED_BYTES), None)
        if fault is not None and fault[0].exists():  # else a writer has merged it meanwhile, or no search will find it
            raise DamagedForumError(f"the candidate index cannot be read: {fault[0]} {fault[1]}", REBUILD)

    def _file(self) -> bytes | None:
        """Return the mark's file as it is now, None while there is none."""
        with reading(self.folder):
            try:
                return (self.folder / MARK_FILE).read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                return None


def schema() -> Any:
    """Return the fields of an entry, as tantivy has them."""
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("num", stored=False, indexed=False, fast=True)
    builder.add_text_field("key", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("title", tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field("text", tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field("tag", tokenizer_name="raw", index_option="basic")
    builder.add_integer_field("created_us", stored=False, indexed=True, fast=True)
    return builder.build()
