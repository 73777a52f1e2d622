"""Keeps the indexes in step with the archive: each change is applied once its write is durable.

An index that is missing, was prepared with other text settings, or is ahead of the archive (which was restored from an
older copy) is built anew from the archive; one that is behind gets the changes that it has not seen. A killed process
leaves a mark from which the next one goes on.

Enters: archive, analyzer, the folder of the index. Leaves: an index in step. May import: archive, lexical, text.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from askalike.archive import Archive
from askalike.archive.rows import to_microseconds
from askalike.forum.progress import Progress
from askalike.lexical import IndexEntry, LexicalIndex
from askalike.lexical.index import LexicalWriter
from askalike.text.analyzer import Analyzer
from askalike.types import Question

__all__ = ["catch_up", "fingerprint", "fitting_index", "open_index", "remove_index"]

ANALYSIS_VERSION = 2
"""Raised whenever the same question gives another index entry than before, so that indexes are built anew."""

SCAN_COMMIT = 50_000
CHANGE_BATCH = 5_000


def fingerprint(analyzer: Analyzer) -> str:
    """Return a short name of everything that decides which terms a text gives."""
    described = json.dumps([ANALYSIS_VERSION, analyzer.settings.to_json()], sort_keys=True)
    return hashlib.blake2b(described.encode(), digest_size=8).hexdigest()


def fitting_index(folder: Path, archive: Archive, analyzer: Analyzer) -> LexicalIndex | None:
    """Return the index if there is one that needs no more than catching up.

    Raises:
        DamagedForumError: there is an index, and it cannot be read.
    """
    if not LexicalIndex.exists(folder):
        return None
    index = LexicalIndex(folder)
    fits = index.mark.fingerprint == fingerprint(analyzer) and index.mark.applied <= archive.last_change()
    return index if fits else None


def open_index(folder: Path, archive: Archive, analyzer: Analyzer) -> LexicalIndex:
    """Open the index, or begin a new one where it cannot be brought in step; the caller holds the lock.

    Raises:
        DamagedForumError: there is an index, and it cannot be read.
    """
    index = fitting_index(folder, archive, analyzer)
    if index is not None:
        return index
    return LexicalIndex.create(folder, applied=archive.last_change(), fingerprint=fingerprint(analyzer))


def remove_index(folder: Path) -> None:
    """Delete the index; it is built anew at the next ``open_index``."""
    shutil.rmtree(folder, ignore_errors=True)


def catch_up(archive: Archive, index: LexicalIndex, analyzer: Analyzer, progress: Progress) -> int:
    """Bring the index in step with the archive; return how many entries were written or removed.

    Raises:
        BusyForumError: another process writes the index.
    """
    index.reopen()
    if index.mark.is_complete and index.mark.applied == archive.last_change():
        return 0
    with index.writing() as writer:
        done = 0
        if not index.mark.is_complete:
            done += _scan(archive, index, writer, analyzer, progress)
        return done + _replay(archive, index, writer, analyzer, progress)


def _scan(archive: Archive, index: LexicalIndex, writer: LexicalWriter, analyzer: Analyzer, progress: Progress) -> int:
    """Fill an index from nothing, going on after the last number that a killed process committed."""
    mark = index.mark
    if not mark.scanned:
        mark = replace(mark, applied=archive.last_change())  # what the scan sees need not be replayed after it
    total = archive.count_questions(mark.scanned)
    progress.start("indexing", total, "questions")
    done = 0
    questions = archive.all_questions(mark.scanned)
    while batch := list(islice(questions, SCAN_COMMIT)):
        for entry in _entries(batch, analyzer, progress):
            writer.put(entry)
        done += len(batch)
        writer.commit(replace(mark, scanned=batch[-1][0]))
    writer.commit(replace(mark, scanned=0, is_complete=True))
    index.reopen()
    return done


def _replay(
    archive: Archive, index: LexicalIndex, writer: LexicalWriter, analyzer: Analyzer, progress: Progress
) -> int:
    """Apply the changes that the index has not seen; each question is taken in its newest state."""
    mark = index.mark
    waiting = archive.count_question_changes(mark.applied)
    if waiting > CHANGE_BATCH:
        progress.start("indexing", waiting, "changes")
    done = 0
    last = archive.last_change()
    while changes := archive.question_changes(mark.applied, CHANGE_BATCH):
        nums = list(dict.fromkeys(change.num for change in changes))
        held = archive.questions_by_num(nums)
        for num in nums:
            if num not in held:
                writer.remove(num)
        for entry in _entries(held.items(), analyzer, None):
            writer.put(entry)
        done += len(nums)
        mark = replace(mark, applied=changes[-1].seq)
        if len(changes) == CHANGE_BATCH:
            writer.commit(mark)
            progress.advance(len(changes))
    if done or last > mark.applied:
        writer.commit(replace(mark, applied=max(last, mark.applied)))
    return done


def _entries(
    questions: Iterable[tuple[int, Question]], analyzer: Analyzer, progress: Progress | None
) -> Iterator[IndexEntry]:
    for done, (num, question) in enumerate(questions, start=1):
        prepared = analyzer.prepare(question.title, question.body, question.markup)
        yield IndexEntry(num, prepared.title, prepared.body, question.tags, to_microseconds(question.created))
        if progress is not None and done % 1000 == 0:
            progress.advance(1000)
