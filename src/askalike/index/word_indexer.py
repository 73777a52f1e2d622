"""The word index as one that follows a store: questions become its terms, tags, moments and texts to compare."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from askalike.errors import DamagedForumError
from askalike.executors import Executor, Numbered, Task
from askalike.executors.processes import Processes
from askalike.files import IS_WINDOWS
from askalike.index.catchup import Steps
from askalike.index.milvus.words import USUAL_LENGTHS, Lengths, MilvusWords, MilvusWordWriter
from askalike.index.words import IndexEntry, WordIndex, WordWriter
from askalike.index.words.index import successor_of
from askalike.search.texts import reader_of
from askalike.store import Store
from askalike.store.rows import to_microseconds
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings

Words = WordWriter | MilvusWordWriter

ANALYSIS_VERSION = 3
"""Raised whenever the same question gives another index entry than before, so that indexes are built anew."""

STEPS = Steps(batch=1_000, scan=125_000, changes=5_000)
"""A commit ends a segment of tantivy's, and each segment looks every term of a query up anew: with two of them instead
of five, a search of 224,741 questions for title and body takes a quarter less."""

SAMPLE, LEAST_SAMPLE = 500, 20
"""Questions by which the mean lengths are known."""

_DECODER = msgspec.msgpack.Decoder(list[IndexEntry])


def fingerprint(analyzer: Analyzer) -> str:
    """Return a short name of everything that decides which terms a text gives."""
    described = json.dumps([ANALYSIS_VERSION, analyzer.settings.to_json()], sort_keys=True)
    return hashlib.blake2b(described.encode(), digest_size=8).hexdigest()


CAN_REPLACE: Final = not IS_WINDOWS
"""Whether a folder can be renamed whose files are open: where not, an index is made anew in its place."""


def fitting_index(folder: Path, log: Store, analyzer: Analyzer) -> WordIndex | None:
    """Return the index if there is one that needs no more than catching up.

    Raises:
        DamagedForumError: there is an index, and it cannot be read.
    """
    if not WordIndex.exists(folder):
        return None
    index = WordIndex(folder)
    return index if index.cursor.can_catch_up(fingerprint(analyzer), log.last_change()) else None


def open_index(folder: Path, log: Store, analyzer: Analyzer) -> WordIndex:
    """Open the index, or begin a new one where it cannot be brought in step; the caller holds the lock.

    Where a successor was begun, that is gone on with.

    Raises:
        DamagedForumError: there is an index, and it cannot be read.
    """
    index = fitting_index(folder, log, analyzer)
    if index is not None:
        return index
    if begun_successor(folder, log, analyzer) is not None:
        WordIndex.put_in_place(folder)
        return WordIndex(folder)
    return _begun(folder, log, analyzer)


def begun_successor(folder: Path, log: Store, analyzer: Analyzer) -> WordIndex | None:
    """Return the index that was begun to take the place of the one in a folder; one that is of no use is removed."""
    successor = successor_of(folder)
    with suppress(DamagedForumError):
        found = fitting_index(successor, log, analyzer)
        if found is not None:
            return found
    WordIndex.remove(successor)
    return None


def successor_index(folder: Path, log: Store, analyzer: Analyzer) -> WordIndex:
    """Open the index that is to take the place of the one in a folder, or begin it; the caller holds the lock."""
    return begun_successor(folder, log, analyzer) or _begun(successor_of(folder), log, analyzer)


def _begun(folder: Path, log: Store, analyzer: Analyzer) -> WordIndex:
    return WordIndex.create(folder, applied=log.last_change(), fingerprint=fingerprint(analyzer))


class WordIndexer:
    """A word index and the analyzer that prepares its entries."""

    phase = "indexing"

    def __init__(
        self,
        index: WordIndex | MilvusWords,
        analyzer: Analyzer,
        executor: Executor | None = None,
        steps: Steps | None = None,
    ) -> None:
        self.index = index
        self.analyzer = analyzer
        self.executor = executor or Processes()
        self.steps = steps or STEPS

    def writing(self) -> AbstractContextManager[Words]:
        """Give the index's writer; raise BusyForumError where another is open."""
        return self.index.writing()

    @property
    def task(self) -> Task[list[IndexEntry]]:
        """Return what makes the terms, tags and moments of questions, and each as it is compared."""
        order = json.dumps(self.analyzer.settings.to_json())
        return Task(partial(entries_of, self.analyzer), __name__, order, _DECODER.decode)

    def put(self, writer: Words, questions: Numbered, entries: Sequence[IndexEntry]) -> None:
        """Write entries."""
        for entry in entries:
            writer.put(entry)


def begin(index: MilvusWords, log: Store, analyzer: Analyzer) -> None:
    """Begin an index in an engine, with the mean lengths of some of the questions."""
    last, size = log.last_change(), log.count_questions()
    every = max(1, size // SAMPLE)
    sample = list(islice(log.all_questions(), 0, SAMPLE * every, every))
    title, text = USUAL_LENGTHS
    if len(sample) >= LEAST_SAMPLE:
        made = entries_of(analyzer, sample)
        title = max(1.0, sum(len(one.title) for one in made) / len(made))
        text = max(1.0, sum(len(one.title) + len(one.body) for one in made) / len(made))
    index.begin(last, Lengths(title, text))


def entries_of(analyzer: Analyzer, questions: Numbered) -> list[IndexEntry]:
    """Return what is indexed of questions."""
    found = []
    for num, question in questions:
        read = reader_of(analyzer.of(question.language)).read
        text, _, terms = read(question.title, question.body, question.markup, is_whole=True)
        if analyzer.settings.languages:
            text = text._replace(language=question.language)
        created = to_microseconds(question.created)
        found.append(IndexEntry(num, terms.title, terms.body, question.tags, created, text.packed()))
    return found


def preparing(order: str) -> Callable[[Numbered], bytes]:
    """Return what makes packed entries, as ``executors.Task`` asks for it."""
    analyzer = Analyzer(TextSettings.from_json(json.loads(order)))
    return lambda questions: msgspec.msgpack.encode(entries_of(analyzer, questions))
