"""The writer of the candidate index: entries are put and removed, and a commit keeps them and then the mark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tantivy

from askalike.index.cursor import Mark
from askalike.index.words.faults import writing
from askalike.index.words.mark import write_mark


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """What is indexed of one question: terms of title and body, exact tags, moment of asking."""

    num: int
    title: Sequence[str]
    body: Sequence[str]
    tags: Sequence[str] = ()
    created_us: int | None = None


class LexicalWriter:
    """Adds, replaces and removes entries; nothing is seen or kept before ``commit``."""

    def __init__(self, inner: Any, folder: Path) -> None:
        self._inner = inner
        self._folder = folder

    def clear(self) -> None:
        """Delete the files that a killed writer left: their names would be taken again."""
        with writing(self._folder):
            self._inner.garbage_collect_files()

    def put(self, entry: IndexEntry) -> None:
        """Add an entry, or replace the one with its number.

        Raises:
            ForumError: the index cannot be written, as on a full disk.
        """
        self.remove(entry.num)
        document = tantivy.Document()
        document.add_unsigned("num", entry.num)
        document.add_text("key", str(entry.num))
        document.add_text("title", " ".join(entry.title))
        document.add_text("text", " ".join((*entry.title, *entry.body)))
        for tag in entry.tags:
            document.add_text("tag", tag.casefold())
        if entry.created_us is not None:
            document.add_integer("created_us", entry.created_us)
        with writing(self._folder):
            self._inner.add_document(document)

    def remove(self, num: int) -> None:
        """Remove the entry with this number; nothing happens when there is none."""
        with writing(self._folder):
            self._inner.delete_documents_by_term("key", str(num))

    def commit(self, mark: Mark) -> None:
        """Put everything so far on disk, then the mark; a crash between the two only means work done twice.

        Raises:
            ForumError: the index cannot be written, as on a full disk.
        """
        with writing(self._folder):
            self._inner.commit()
            write_mark(self._folder, mark)
