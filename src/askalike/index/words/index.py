"""The word index: BM25 over titles and whole texts through tantivy, fed with the project's own terms.

Each entry is known by its question's number. The index remembers the last change of the store that it has seen (its
cursor), so that a gap after a crash is found and replayed. Applying a change twice does no harm. Beside its terms each
entry has what its question is compared by, see ``texts``.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import tantivy

from askalike.errors import DamagedForumError, ForumError
from askalike.files import Owned, foreign_in, is_link, remove_owned, replace_whole, sync_folder
from askalike.index.checked_file import NAME, POSTINGS, REBUILD
from askalike.index.cursor import CURSOR_FILE, Cursor, has_cursor, read_cursor_file
from askalike.index.words import sums
from askalike.index.words.faults import reading, writing
from askalike.index.words.postings import PostingsWriter, live_postings
from askalike.index.words.snapshot import State, WordSnapshot, in_step
from askalike.index.words.sums import ENTRIES
from askalike.index.words.texts import TEXTS_FILE, Texts, TextWriter
from askalike.types import Filters

WRITER_MEMORY_BYTES = 192 * 1024 * 1024

CHECKED_BYTES = 16 * 1024 * 1024
"""So much of the files, the small ones first, is compared with its sums when it is opened, in 15 ms."""


FORMAT: Final = 1

_ENTRIES = Owned(
    r"meta\.json|\.managed\.json|\.tantivy-(writer|meta)\.lock|\.tmp\w+|[0-9a-f]{32}(\.\d+)?\.[a-z]+(\.temp)?"
)
OWNED = Owned(
    rf"(mark|sums|postings)\.json(\.\d+\.tmp)?|texts\.sqlite(-wal|-shm|-journal)?|{NAME}\.{POSTINGS}",
    (("entries", _ENTRIES),),
)
"""What lies in the folder of an index: its own files, and those that tantivy writes."""


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """What is indexed of one question: terms of title and body, exact tags, moment of asking; as it is compared."""

    num: int
    title: Sequence[str]
    body: Sequence[str]
    tags: Sequence[str] = ()
    created_us: int | None = None
    text: bytes = b""


class WordWriter:
    """Adds, replaces and removes entries; nothing is seen or kept before ``commit``."""

    def __init__(self, inner: Any, folder: Path, texts: TextWriter, entries: Callable[[], int]) -> None:
        self._inner = inner
        self._folder = folder
        self._texts = texts
        self._entries = entries
        self._postings = PostingsWriter(folder, texts, is_filling=not _parsed(read_cursor_file(folder)).is_complete)
        self.has_uncommitted = False

    def clear(self) -> None:
        """Delete the files that a killed writer left: their names would be taken again."""
        with writing(self._folder):
            self._inner.garbage_collect_files()

    def put(self, entry: IndexEntry) -> None:
        """Add an entry, or replace the one with its number.

        Raises:
            ForumError: the index cannot be written, as on a full disk.
        """
        self._delete([entry.num])
        document = tantivy.Document()
        document.add_unsigned("num", entry.num)
        document.add_text("key", str(entry.num))
        document.add_text("title", " ".join(entry.title))
        document.add_text("text", " ".join((*entry.title, *entry.body)))
        document.add_text("since", self._postings.tag)
        for tag in entry.tags:
            document.add_text("tag", tag.casefold())
        if entry.created_us is not None:
            document.add_integer("created_us", entry.created_us)
        with writing(self._folder):
            self.has_uncommitted = True
            self._inner.add_document(document)
            self._postings.put(entry.num, entry.title, entry.body)
            if entry.text:
                self._texts.put(entry.num, entry.text)

    def remove(self, nums: Sequence[int]) -> None:
        """Remove the entries with these numbers; nothing happens where there is none."""
        self._delete(nums)
        with writing(self._folder):
            self._postings.remove(nums)

    def _delete(self, nums: Sequence[int]) -> None:
        with writing(self._folder):
            self.has_uncommitted = True
            for num in nums:
                self._inner.delete_documents_by_term("key", str(num))
            self._texts.remove(nums)

    def commit(self, cursor: Cursor) -> None:
        """Put everything so far on disk, then the cursor; a crash between the two only means work done twice.

        Raises:
            ForumError: the index cannot be written, as on a full disk.
        """
        with writing(self._folder):
            self._postings.before_entries(is_complete=cursor.is_complete)
            self._texts.commit()
            self._inner.commit()
            self.has_uncommitted = False
            self._postings.after_entries(self._entries, is_complete=cursor.is_complete)
            _write_cursor(self._folder, cursor)


class WordIndex(WordSnapshot):
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
            file = read_cursor_file(folder)
            cursor = _parsed(file)
            texts = Texts(folder)
            self._place = _identity(folder)
            self._open()
            self._live = live_postings(folder, texts, None)
            searcher, fields = self._index.searcher(), self._index.schema
            state = State(file, cursor, searcher, fields, sums.counted(folder), in_step(self._live, searcher, fields))
        super().__init__(folder, state, texts)

    def _open(self) -> None:
        self._index = tantivy.Index.open(str(self.folder / ENTRIES))
        if self._index.schema != schema():
            raise ValueError("it has the fields of another version")

    @classmethod
    def create(cls, folder: Path, *, applied: int, fingerprint: str) -> WordIndex:
        """Make an empty index in place of whatever is at ``folder``.

        Args:
            applied: the store's last change when the scan that fills the index begins.
            fingerprint: of the text settings.

        Raises:
            ForumError: it cannot be made there.
        """
        cls.remove(folder)
        with writing(folder):
            (folder / ENTRIES).mkdir(parents=True)
            tantivy.Index(schema(), str(folder / ENTRIES))
            TextWriter(folder).close()
            _write_cursor(folder, Cursor(applied, scanned=0, is_complete=False, fingerprint=fingerprint))
        return cls(folder)

    @staticmethod
    def remove(folder: Path) -> None:
        """Delete an index, whatever its state; nothing happens where there is none.

        Raises:
            ForumError: the folder is a link, or something in it is not of an index.
        """
        if left := remove_owned(folder, OWNED):
            what = "is a link" if left[0] == folder else "is not a file of the word index"
            raise ForumError(f"{left[0]} {what}, and would be deleted", "move it elsewhere, then reindex")

    @classmethod
    def put_in_place(cls, folder: Path) -> None:
        """Let the successor of an index take its place; the caller holds the lock of its writer.

        A process that is killed between the two steps leaves no index and a successor, which ``open_index`` puts in
        place then. Who has opened the index before goes on with the old one until its next look.

        Raises:
            ForumError: the folder is a link, holds something that is not of an index, or cannot be written.
        """
        if not cls.can_be_replaced(folder):
            cls.remove(folder)  # refuses it
        replaced = replaced_of(folder)
        cls.remove(replaced)
        with writing(folder):
            if folder.exists():
                folder.rename(replaced)
            successor_of(folder).rename(folder)
            sync_folder(folder.parent)
        cls.remove(replaced)

    @staticmethod
    def can_be_replaced(folder: Path) -> bool:
        """Return whether nothing in a folder but an index would be deleted."""
        return not is_link(folder) and not foreign_in(folder, OWNED)

    @staticmethod
    def exists(folder: Path) -> bool:
        """Return whether an index was begun at ``folder``, with all its parts."""
        return has_cursor(folder) and (folder / TEXTS_FILE).exists()

    def snapshot(self) -> WordSnapshot:
        """Return the state of the last look; what is committed after it is not seen there."""
        return WordSnapshot(self.folder, self._now, self._texts)

    def refresh(self) -> None:
        """See what another process (or this one) has committed since; cheap when nothing was.

        While another process builds the index anew, the complete one that was open before goes on answering.

        Raises:
            DamagedForumError, ForumError: it cannot be read; the state before goes on answering.
        """
        file = self._file()
        if self._is_taken(file):
            return
        with self._looking:
            file = self._file()  # another thread may have taken this one, or one after it
            if self._is_taken(file):
                return
            with reading(self.folder):
                cursor = _parsed(file)
            if cursor.is_complete or not self._now.cursor.is_complete:
                self._take(file, cursor)

    def reopen(self) -> None:
        """Take the index as it is on disk now, complete or not: what its writer must know.

        Raises:
            DamagedForumError: it has gone.
        """
        with self._looking:
            file = self._file()
            try:
                cursor = _parsed(file)
            except ValueError as error:
                raise DamagedForumError(
                    f"the word index in {self.folder} has gone: {error}", "open the forum again"
                ) from error
            self._take(file, cursor)

    def _is_taken(self, file: bytes | None) -> bool:
        """Return whether the state is that of a cursor's file, None while there is none."""
        return file is None or (file == self._now.file and _identity(self.folder) in (self._place, None))

    def numbers(self) -> list[int]:
        """Return the numbers of all entries, ascending; one that it holds twice is there twice.

        Raises:
            DamagedForumError: a file of the index is damaged, or has gone.
        """
        return self.all_admitted(Filters())

    @property
    def has_postings(self) -> bool:
        """Return whether postings answer, together with tantivy for what was written since they were made."""
        return self._now.live is not None

    @contextmanager
    def writing(self) -> Iterator[WordWriter]:
        """Give the writer; what it has committed stays, the rest is dropped at the end.

        What is merged then is waited for: a roll-back would give it up, and each writer would begin with it again.

        Raises:
            BusyForumError: another writer is open, in this process or another.
            DamagedForumError: a file of the index is damaged.
            ForumError: the index cannot be written.
        """
        with writing(self.folder):
            inner = self._index.writer(WRITER_MEMORY_BYTES, 1)
        writer = None
        try:
            with writing(self.folder):
                texts = TextWriter(self.folder)
            with closing(texts):
                writer = WordWriter(inner, self.folder, texts, self._count)
                writer.clear()
                yield writer
        finally:
            with writing(self.folder):
                if writer is not None and writer.has_uncommitted:
                    inner.rollback()
                inner.wait_merging_threads()
                sums.write_down(self.folder)
            self.reopen()

    def _take(self, file: bytes | None, cursor: Cursor) -> None:
        self._compare_sums()
        with reading(self.folder):
            place = _identity(self.folder)
            if place != self._place:  # a successor has taken its place
                self._open()
                self._place = place
        live = live_postings(self.folder, self._texts, self._live)
        self._live = live  # before what tantivy holds: see ``in_step``
        with reading(self.folder):
            self._index.reload()
            searcher, fields = self._index.searcher(), self._index.schema
            counted = sums.counted(self.folder)
        self._now = State(file, cursor, searcher, fields, counted, in_step(live, searcher, fields))

    def _count(self) -> int:
        """Return how many entries are committed."""
        self._index.reload()
        return int(self._index.searcher().num_docs)

    def _compare_sums(self) -> None:
        with reading(self.folder):
            fault = next(sums.faults(self.folder, self._looked_at, CHECKED_BYTES), None)
        if fault is not None and fault[0].exists():  # else a writer has merged it meanwhile, or no search will find it
            raise DamagedForumError(f"the word index cannot be read: {fault[0]} {fault[1]}", REBUILD)

    def _file(self) -> bytes | None:
        with reading(self.folder):
            return read_cursor_file(self.folder)


def _parsed(file: bytes | None) -> Cursor:
    """Return the cursor that the file's bytes hold, None standing for no file.

    Raises:
        ValueError: there is none, it was written by another version, or it is damaged.
    """
    if file is None:
        raise ValueError(f"its file {CURSOR_FILE} is not there")
    try:
        return Cursor.from_json(json.loads(file), FORMAT)
    except RecursionError as error:
        raise ValueError(f"its file {CURSOR_FILE} is none: {error}") from error


def _write_cursor(folder: Path, cursor: Cursor) -> None:
    replace_whole(folder / CURSOR_FILE, json.dumps(cursor.to_json(FORMAT)).encode())


def successor_of(folder: Path) -> Path:
    """Return where an index is made that is to take the place of the one in a folder."""
    return folder.with_name(f"{folder.name}.next")


def replaced_of(folder: Path) -> Path:
    """Return where an index is whose place a successor has taken, until it is removed."""
    return folder.with_name(f"{folder.name}.replaced")


def _identity(folder: Path) -> tuple[int, int] | None:
    """Return what tells the entries in a folder from those that take their place; None where there are none."""
    try:
        found = (folder / ENTRIES).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def schema() -> Any:
    """Return the fields of an entry, as tantivy has them; "since" tells those written since postings were made."""
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("num", stored=False, indexed=False, fast=True)
    builder.add_text_field("key", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("title", tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field("text", tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field("since", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("tag", tokenizer_name="raw", index_option="basic")
    builder.add_integer_field("created_us", stored=False, indexed=True, fast=True)
    return builder.build()
