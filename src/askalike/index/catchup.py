"""Keeps an index in step with the archive: each change is applied once its write is durable.

The same for every kind of index: one that is built from nothing scans the archive, and one that is behind gets the
changes that it has not seen. A killed process leaves a mark from which the next one goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

from askalike.index.cursor import Mark
from askalike.progress import Progress
from askalike.store import ChangeLog
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

    def put(self, questions: Sequence[tuple[int, Question]]) -> None:
        """Add the questions under their internal numbers, or replace what has these numbers."""

    def remove(self, num: int) -> None:
        """Remove the entry with this number; nothing happens when there is none."""

    def commit(self, mark: Mark) -> None:
        """Put everything so far on disk, then the mark."""


class Follower(Protocol):
    """An index that follows the archive, together with what makes its entries from questions."""

    @property
    def phase(self) -> str:
        """Return what its work is called."""

    @property
    def steps(self) -> Steps:
        """Return how many questions it takes at a time."""

    @property
    def mark(self) -> Mark:
        """Return how far it has come, as of the last look at the disk."""

    def reopen(self) -> None:
        """Take the index as it is on disk now, complete or not."""

    def writing(self) -> AbstractContextManager[EntryWriter]:
        """Give the writer; what it has committed stays, the rest is dropped at the end."""


def fits(mark: Mark, fingerprint: str, log: ChangeLog) -> bool:
    """Return whether an index needs no more than catching up: made the same way, and not ahead of the log.

    One that is ahead belongs to an archive that was since restored from an older copy.
    """
    return mark.fingerprint == fingerprint and mark.applied <= log.last_change()


def catch_up(log: ChangeLog, index: Follower, progress: Progress, most_changes: int | None = None) -> int:
    """Bring the index in step with the archive; return how many entries were written or removed.

    Args:
        most_changes: stop after so many changes; the rest is left to another call.

    Raises:
        BusyForumError: another process writes the index.
    """
    index.reopen()
    if index.mark.is_complete and index.mark.applied == log.last_change():
        return 0
    with index.writing() as writer:
        done = 0
        if not index.mark.is_complete:
            done += _scan(log, index, writer, progress)
        return done + _replay(log, index, writer, progress, most_changes)


def _scan(log: ChangeLog, index: Follower, writer: EntryWriter, progress: Progress) -> int:
    """Fill an index from nothing, going on after the last number that a killed process committed."""
    mark = index.mark
    if not mark.scanned:
        mark = replace(mark, applied=log.last_change())  # what the scan sees need not be replayed after it
    progress.start(index.phase, log.count_questions(mark.scanned), "questions")
    done = uncommitted = 0
    questions = log.all_questions(mark.scanned)
    while batch := list(islice(questions, index.steps.batch)):
        writer.put(batch)
        progress.advance(len(batch))
        done += len(batch)
        uncommitted += len(batch)
        if uncommitted >= index.steps.scan:
            writer.commit(replace(mark, scanned=batch[-1][0]))
            uncommitted = 0
    writer.commit(replace(mark, scanned=0, is_complete=True))
    index.reopen()
    return done


def _replay(log: ChangeLog, index: Follower, writer: EntryWriter, progress: Progress, most_changes: int | None) -> int:
    """Apply the changes that the index has not seen; each question is taken in its newest state."""
    mark, step = index.mark, index.steps.changes
    last = log.last_change()  # before counting: no change up to it may be passed over
    left = waiting = log.count_changes(mark.applied)
    if most_changes is not None:
        left = min(waiting, most_changes)
    elif waiting > step:
        progress.start(index.phase, waiting, "changes")
    done = 0
    while left > 0 and (changes := log.changes(mark.applied, min(step, left))):
        nums = list(dict.fromkeys(change.num for change in changes))
        held = log.questions_by_num(nums)
        for num in nums:
            if num not in held:
                writer.remove(num)
        writer.put(list(held.items()))
        done += len(nums)
        left -= len(changes)
        mark = replace(mark, applied=changes[-1].seq)
        if len(changes) == step or left <= 0:
            writer.commit(mark)
            progress.advance(len(changes))
    if last > mark.applied and (most_changes is None or most_changes >= waiting):
        writer.commit(replace(mark, applied=last))  # changes of answers and links, which need no work
    return done
