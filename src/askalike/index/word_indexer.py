"""The word index as one that follows a store: questions become its terms, tags, moments and texts to compare."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Protocol

import msgspec

from askalike.executors import Executor, Numbered, Task
from askalike.executors.processes import Processes
from askalike.index.catchup import EntryWriter, Index, Steps
from askalike.index.words import IndexEntry
from askalike.search.texts import reader_of
from askalike.store.rows import to_microseconds
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings

ANALYSIS_VERSION = 5
"""Raised whenever the same question gives another index entry than before, so that indexes are built anew."""

STEPS = Steps(batch=1_000, scan=50_000, changes=5_000)

_DECODER = msgspec.msgpack.Decoder(list[IndexEntry])


def fingerprint(analyzer: Analyzer) -> str:
    """Return a short name of everything that decides which terms a text gives."""
    described = json.dumps([ANALYSIS_VERSION, analyzer.settings.to_json()], sort_keys=True)
    return hashlib.blake2b(described.encode(), digest_size=8).hexdigest()


class WordEntryWriter(EntryWriter, Protocol):
    """Writes the words of questions."""

    def put(self, entry: IndexEntry) -> None:
        """Add an entry, or replace the one with its number."""


class WordEntries(Index, Protocol):
    """The words of questions, as an index."""

    def writing(self) -> AbstractContextManager[WordEntryWriter]:
        """Give the writer; raise BusyForumError where another is open."""


class WordIndexer:
    """A word index and the analyzer that prepares its entries."""

    phase = "indexing"

    def __init__(
        self,
        index: WordEntries,
        analyzer: Analyzer,
        executor: Executor | None = None,
        steps: Steps | None = None,
    ) -> None:
        self.index = index
        self.analyzer = analyzer
        self.executor = executor or Processes()
        self.steps = steps or STEPS

    def writing(self) -> AbstractContextManager[WordEntryWriter]:
        """Give the index's writer; raise BusyForumError where another is open."""
        return self.index.writing()

    @property
    def task(self) -> Task[list[IndexEntry]]:
        """Return what makes the terms, tags and moments of questions, and each as it is compared."""
        order = json.dumps(self.analyzer.settings.to_json())
        return Task(partial(entries_of, self.analyzer), __name__, order, _DECODER.decode)

    def put(self, writer: WordEntryWriter, questions: Numbered, entries: Sequence[IndexEntry]) -> None:
        """Write entries."""
        for entry in entries:
            writer.put(entry)


def entries_of(analyzer: Analyzer, questions: Numbered) -> list[IndexEntry]:
    """Return what is indexed of questions."""
    entries = []
    for num, question in questions:
        read = reader_of(analyzer.of(question.language)).read
        text, _, terms = read(question.title, question.body, question.markup, is_whole=True)
        if analyzer.settings.languages:
            text = text._replace(language=question.language)
        created = to_microseconds(question.created)
        entries.append(IndexEntry(num, terms.title, terms.body, question.tags, created, text.packed()))
    return entries


def preparing(order: str) -> Callable[[Numbered], bytes]:
    """Return what makes packed entries, as ``executors.Task`` asks for it."""
    analyzer = Analyzer(TextSettings.from_json(json.loads(order)))
    return lambda questions: msgspec.msgpack.encode(entries_of(analyzer, questions))
