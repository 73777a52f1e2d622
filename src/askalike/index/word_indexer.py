"""The word index as one that follows a store: questions and their best answers become its terms, tags, moments and
texts to compare."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Protocol

import msgspec

from askalike.executors import Executor, Numbered, Task
from askalike.executors.processes import Processes
from askalike.index.catchup import EntryWriter, Index, Indexer, Steps
from askalike.index.words import IndexEntry
from askalike.search.texts import ANSWER_CHARACTERS, MOST_ANSWERS, beginning, reader_of
from askalike.store import Store
from askalike.store.rows import to_microseconds
from askalike.store.values import STORED_KINDS, RecordKind
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.types import Question

ANALYSIS_VERSION = 6
"""Raised whenever the same question gives another index entry than before, so that indexes are built anew."""

INDEXED_KINDS: tuple[RecordKind, ...] = (*STORED_KINDS, "answer")
"""The kinds of changes that the word index follows."""

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


def word_indexer(
    index: WordEntries, analyzer: Analyzer, executor: Executor | None = None, steps: Steps = STEPS
) -> Indexer[WordEntryWriter, list[IndexEntry]]:
    """Return a word index and what makes the terms, tags and moments of questions, and each as it is compared."""
    order = json.dumps(analyzer.settings.to_json())
    task = Task(partial(entries_of, analyzer), __name__, order, _DECODER.decode)
    return Indexer(
        "indexing", index, index.writing, task, _put, steps, executor or Processes(), INDEXED_KINDS, with_answers
    )


def _put(writer: WordEntryWriter, _: Numbered, entries: Sequence[IndexEntry]) -> None:
    for entry in entries:
        writer.put(entry)


def with_answers(log: Store, questions: Numbered) -> Numbered:
    """Return questions, each followed by the beginnings of its best answers, as bodies under its number."""
    answers = log.answers_of([question.id for _, question in questions])
    posts: list[tuple[int, Question]] = []
    for num, question in questions:
        posts.append((num, question))
        for answer in answers.get(question.id, ())[:MOST_ANSWERS]:
            body = beginning(answer.body, ANSWER_CHARACTERS)
            posts.append((num, Question(question.id, "", body, answer.markup)))
    return posts


def entries_of(analyzer: Analyzer, posts: Numbered) -> list[IndexEntry]:
    """Return what is indexed of questions, each followed by its answers."""
    entries = []
    for num, of_question in groupby(posts, key=itemgetter(0)):
        question, *answers = (post for _, post in of_question)
        reader = reader_of(analyzer.of(question.language))
        text, _, terms = reader.read(question.title, question.body, question.markup, is_whole=True)
        if analyzer.settings.languages:
            text = text._replace(language=question.language)
        answered = [term for answer in answers for term in reader.terms_of(answer.body, answer.markup)]
        text = reader.with_answers(text, answered)
        created = to_microseconds(question.created)
        entries.append(IndexEntry(num, terms.title, terms.body, question.tags, created, text.packed(), answered))
    return entries


def preparing(order: str) -> Callable[[Numbered], bytes]:
    """Return what makes packed entries, as ``executors.Task`` asks for it."""
    analyzer = Analyzer(TextSettings.from_json(json.loads(order)))
    return lambda questions: msgspec.msgpack.encode(entries_of(analyzer, questions))
