"""The candidate index as one that follows the archive: questions become its terms, tags and moments."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from askalike.index.catchup import Steps, fits
from askalike.index.cursor import Mark
from askalike.index.words import IndexEntry, LexicalIndex, LexicalWriter
from askalike.store import ChangeLog
from askalike.store.rows import to_microseconds
from askalike.text.analyzer import Analyzer
from askalike.types import Question

ANALYSIS_VERSION = 2
"""Raised whenever the same question gives another index entry than before, so that indexes are built anew."""

STEPS = Steps(batch=1_000, scan=50_000, changes=5_000)


def fingerprint(analyzer: Analyzer) -> str:
    """Return a short name of everything that decides which terms a text gives."""
    described = json.dumps([ANALYSIS_VERSION, analyzer.settings.to_json()], sort_keys=True)
    return hashlib.blake2b(described.encode(), digest_size=8).hexdigest()


def fitting_index(folder: Path, log: ChangeLog, analyzer: Analyzer) -> LexicalIndex | None:
    """Return the index if there is one that needs no more than catching up.

    Raises:
        DamagedForumError: there is an index, and it cannot be read.
    """
    if not LexicalIndex.exists(folder):
        return None
    index = LexicalIndex(folder)
    return index if fits(index.mark, fingerprint(analyzer), log) else None


def open_index(folder: Path, log: ChangeLog, analyzer: Analyzer) -> LexicalIndex:
    """Open the index, or begin a new one where it cannot be brought in step; the caller holds the lock.

    Raises:
        DamagedForumError: there is an index, and it cannot be read.
    """
    index = fitting_index(folder, log, analyzer)
    if index is not None:
        return index
    return LexicalIndex.create(folder, applied=log.last_change(), fingerprint=fingerprint(analyzer))


class WordIndexer:
    """A candidate index and the analyzer that prepares its entries."""

    phase = "indexing"

    def __init__(self, index: LexicalIndex, analyzer: Analyzer, steps: Steps = STEPS) -> None:
        self.index = index
        self.analyzer = analyzer
        self.steps = steps

    @property
    def mark(self) -> Mark:
        """Return how far the index has come."""
        return self.index.mark

    def reopen(self) -> None:
        """Take the index as it is on disk now."""
        self.index.reopen()

    @contextmanager
    def writing(self) -> Iterator[_WordWriter]:
        """Give the writer.

        Raises:
            BusyForumError: another writer is open, in this process or another.
        """
        with self.index.writing() as writer:
            yield _WordWriter(writer, self.analyzer)


class _WordWriter:
    def __init__(self, writer: LexicalWriter, analyzer: Analyzer) -> None:
        self._writer = writer
        self._analyzer = analyzer

    def put(self, questions: Sequence[tuple[int, Question]]) -> None:
        for num, question in questions:
            prepared = self._analyzer.prepare(question.title, question.body, question.markup)
            created = to_microseconds(question.created)
            self._writer.put(IndexEntry(num, prepared.title, prepared.body, question.tags, created))

    def remove(self, num: int) -> None:
        self._writer.remove(num)

    def commit(self, mark: Mark) -> None:
        self._writer.commit(mark)
