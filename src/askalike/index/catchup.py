"""Keeps an index in step with a store: each change is applied once its write is durable.

The same for every kind of index: one that is built from nothing scans the store, and one that is behind gets the
changes that it has not seen. A killed process leaves a cursor from which the next one goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Generic, Protocol, TypeVar

from askalike.executors import Executor, Numbered, Task
from askalike.index.cursor import Cursor
from askalike.progress import Progress
from askalike.store import Store
from askalike.store.values import COMPARED_KINDS, RecordKind
from askalike.types import Question


@dataclass(frozen=True, slots=True)
class Steps:
    """How many questions an index takes at a time.

    Args:
        batch: prepared together, between two steps of the progress.
        scan: entries between two commits while it is built from nothing.
        changes: changes between two commits while it catches up.
    """

    batch: int
    scan: int
    changes: int


class EntryWriter(Protocol):
    """Adds, replaces and removes entries; nothing is seen or kept before ``commit``."""

    def remove(self, nums: Sequence[int]) -> None:
        """Remove the entries with these numbers; nothing happens where there is none."""

    def commit(self, cursor: Cursor) -> None:
        """Keep everything so far for good, then the cursor."""


class Index(Protocol):
    """The entries of an index, in files of this machine or in an engine."""

    @property
    def cursor(self) -> Cursor:
        """Return how far it has come, as of the last look."""

    @property
    def entries(self) -> int:
        """Return how many entries it has."""

    def refresh(self) -> None:
        """See what was committed since the last look; a complete index answers until another is complete."""

    def reopen(self) -> None:
        """Take the index as it is now, complete or not."""


_Writer = TypeVar("_Writer", bound=EntryWriter)
_Entries = TypeVar("_Entries")


@dataclass(frozen=True)
class Indexer(Generic[_Writer, _Entries]):
    """An index that follows a store, together with what makes its entries from questions.

    Args:
        phase: what its work is called.
        writing: gives the index's writer; what it has committed stays, the rest is dropped at the end.
        task: makes entries of what ``read`` returns; this takes most of the time, and depends on nothing else.
        put: adds what was made of questions under their numbers, or replaces what has these numbers.
        executor: who runs the task.
        kinds: of records whose changes it follows.
        read: returns what the task is given of questions.
    """

    phase: str
    index: Index
    writing: Callable[[], AbstractContextManager[_Writer]]
    task: Task[_Entries]
    put: Callable[[_Writer, Numbered, _Entries], None]
    steps: Steps
    executor: Executor
    kinds: Sequence[RecordKind] = COMPARED_KINDS
    read: Callable[[Store, Numbered], Numbered] = lambda _, questions: questions


def pending(cursor: Cursor, log: Store, kinds: Sequence[RecordKind] = COMPARED_KINDS) -> int:
    """Return how many questions or changes of these kinds an index has not seen."""
    changes = log.count_changes(cursor.applied, kinds)
    return changes if cursor.is_complete else max(changes, log.count_questions(cursor.scanned))


def catch_up(
    log: Store, indexer: Indexer[_Writer, _Entries], progress: Progress, most_changes: int | None = None
) -> int:
    """Bring the index in step with the store; return how many entries were written or removed.

    Args:
        most_changes: stop after so many changes; the rest is left to another call.

    Raises:
        BusyForumError: another process writes the index.
    """
    indexer.index.reopen()
    if indexer.index.cursor.is_complete and indexer.index.cursor.applied == log.last_change():
        return 0
    with indexer.writing() as writer:
        done = 0
        if not indexer.index.cursor.is_complete:
            done += _scan(log, indexer, writer, progress)
        return done + _replay(log, indexer, writer, progress, most_changes)


def _scan(log: Store, indexer: Indexer[_Writer, _Entries], writer: _Writer, progress: Progress) -> int:
    """Fill an index from nothing, newest first, going on after the last number that a killed process committed."""
    cursor = indexer.index.cursor
    if not cursor.scanned and not indexer.index.entries:  # a killed process may have kept entries, but no cursor
        cursor = replace(cursor, applied=log.last_change())  # what the scan sees need not be replayed after it
    total = log.count_questions(cursor.scanned)
    progress.start(indexer.phase, total, "questions")
    done = uncommitted = 0
    in_batches = _in_batches(log.newest_questions(cursor.scanned), indexer.steps.batch)
    batches = ((batch, indexer.read(log, batch)) for batch in in_batches)
    for batch, _, entries in indexer.executor.map(indexer.task, batches, total):
        indexer.put(writer, batch, entries)
        progress.advance(len(batch))
        done += len(batch)
        uncommitted += len(batch)
        if uncommitted >= indexer.steps.scan:
            writer.commit(replace(cursor, scanned=batch[-1][0]))
            uncommitted = 0
    writer.commit(replace(cursor, scanned=0, is_complete=True))
    indexer.index.reopen()
    return done


def _in_batches(questions: Iterator[tuple[int, Question]], size: int) -> Iterator[Numbered]:
    while batch := list(islice(questions, size)):
        yield batch


def _replay(
    log: Store, indexer: Indexer[_Writer, _Entries], writer: _Writer, progress: Progress, most_changes: int | None
) -> int:
    """Apply the changes that the index has not seen; each question is taken in its newest state."""
    cursor, step = indexer.index.cursor, indexer.steps.changes
    last = log.last_change()  # before counting: no change up to it may be passed over
    left = waiting = log.count_changes(cursor.applied, indexer.kinds)
    if most_changes is not None:
        left = min(waiting, most_changes)
    elif waiting > step:
        progress.start(indexer.phase, waiting, "changes")
    done = 0
    steps = _steps(log, cursor.applied, left, indexer.steps, indexer.kinds)
    read = ((step, indexer.read(log, step.questions)) for step in steps)
    for step_done, _, entries in indexer.executor.map(indexer.task, read, left):
        batch = step_done.questions
        writer.remove(step_done.gone)
        if batch:
            indexer.put(writer, batch, entries)
        done += len(step_done.gone) + len(batch)
        if step_done.changes:
            cursor = replace(cursor, applied=step_done.applied)
            left -= step_done.changes
            if step_done.changes == step or left <= 0:
                writer.commit(cursor)
                progress.advance(step_done.changes)
    if most_changes is None or most_changes >= waiting:
        writer.commit(replace(cursor, applied=max(last, cursor.applied)))  # past changes that need no work
    return done


@dataclass(frozen=True, slots=True)
class _Step:
    """Changes whose newest questions are in this batch and in those before it.

    Args:
        questions: in their newest state.
        gone: numbers of questions that are there no longer.
        changes: how many, 0 where the next batch belongs to them too.
        applied: the last of them.
    """

    questions: Numbered
    gone: Sequence[int]
    changes: int
    applied: int


def _steps(log: Store, applied: int, left: int, steps: Steps, kinds: Sequence[RecordKind]) -> Iterator[_Step]:
    """Yield the questions of ``left`` changes after ``applied``, in batches."""
    while left > 0 and (changes := log.changes(applied, min(steps.changes, left), kinds)):
        nums = list(dict.fromkeys(change.num for change in changes))
        questions = log.questions_by_num(nums)
        left -= len(changes)
        applied = changes[-1].seq
        batches = list(_in_batches(iter(questions.items()), steps.batch))
        for batch in batches[:-1]:
            yield _Step(batch, (), 0, applied)
        gone = [num for num in nums if num not in questions]
        yield _Step(batches[-1] if batches else [], gone, len(changes), applied)
