"""The writer: puts and removals are gathered; a commit writes them as one segment and merges what has become too many.

A segment is taken up when more than a quarter of it is dead. Then, the smallest first, every segment less than twice as
large as what is being written: sizes fall by half from segment to segment, so there are about log₂ N, and each entry
is written about log₂ N times in all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from askalike.errors import SettingError
from askalike.index.checked_file import FileEntry, file_name
from askalike.index.cursor import Cursor
from askalike.index.vectors.codes import decode, encode, finite_vectors
from askalike.index.vectors.folder import Manifest, SegmentEntry, clear_orphaned_files, writing
from askalike.index.vectors.nearest import UNCODED
from askalike.index.vectors.scan import SAMPLE, Quantiser, write_codes
from askalike.index.vectors.snapshot import Part, Rows, Snapshot, write_dead, write_segment

SMALL = 512
"""Below this, writing anew costs no more than the file does."""
OUTGROWN = 4
"""Centroids are learned anew when there are so many times as many entries as when they were."""


def segments_to_merge(sizes: Sequence[tuple[int, int]], arriving: int) -> list[int]:
    """Return the positions of the segments to write anew, ascending.

    Args:
        sizes: (rows alive, rows dead) of each segment.
        arriving: new rows of this commit.

    >>> segments_to_merge([(100_000, 0), (50_000, 0)], arriving=30_000)  # 50,000 < 2 · 30,000; 100,000 < 2 · 80,000
    [0, 1]
    >>> segments_to_merge([(100_000, 0), (300, 0)], arriving=1)
    [1]
    >>> segments_to_merge([(70, 30), (5_000, 0)], arriving=0)
    [0]
    """
    chosen = {position for position, (alive, dead) in enumerate(sizes) if 4 * dead > alive + dead}
    total = arriving + sum(sizes[position][0] for position in chosen)
    if total == 0:
        return sorted(chosen)
    rest = sorted((alive, position) for position, (alive, _) in enumerate(sizes) if position not in chosen)
    for alive, position in rest:
        if alive >= 2 * max(total, SMALL):
            break
        chosen.add(position)
        total += alive
    if arriving == 0 and len(chosen) == 1 and sizes[next(iter(chosen))][1] == 0:
        return []
    return sorted(chosen)


def _wants_codes(snapshot: Snapshot) -> bool:
    """Return whether a commit would make codes, were nothing written: of large segments that have none, or of all.

    While an index is filled its segments are merged again and again, and nobody asks it: codes are made at the end.
    """
    if not snapshot.manifest.cursor.is_complete:
        return False
    return any(map(_lacks_codes, snapshot.parts)) or _has_outgrown(snapshot)


def _lacks_codes(part: Part) -> bool:
    """Return whether a large segment has no codes."""
    return part.open > UNCODED and part.codes is None


def _has_outgrown(snapshot: Snapshot) -> bool:
    """Return whether the centroids were learned from so few entries that others may fit better by now."""
    return snapshot.quantiser is not None and snapshot.entries > OUTGROWN * snapshot.manifest.trained_at


class VectorWriter:
    """Adds, replaces and removes entries; nothing is seen or kept before ``commit``."""

    def __init__(self, folder: Path, snapshot: Snapshot) -> None:
        self._folder = folder
        self._snapshot = snapshot
        self._batches: list[tuple[NDArray[np.int16], NDArray[np.int8]]] = []  # of questions, and of their titles
        self._arriving: dict[int, tuple[int, int]] = {}  # number → (batch, position in it)
        self._leaving: set[int] = set()

    def put(
        self, nums: ArrayLike, vectors: ArrayLike, titles: ArrayLike | None = None, questions: object = None
    ) -> None:
        """Add entries, or replace those with their numbers.

        Args:
            nums: (n,) whole numbers, each once.
            vectors: (n, D); only their directions are kept. A vector of zeros is kept and never found.
            titles: (n, D), of the questions' titles; None where each title is the whole question.
            questions: not needed: the word index knows what filters ask of them.

        Raises:
            SettingError: counts or dimensions do not fit, a number is given twice, a value is NaN or infinite.
        """
        numbers = whole_numbers(nums)
        array = finite_vectors(vectors, self._snapshot.dimensions, "vector")
        of_titles = array if titles is None else finite_vectors(titles, self._snapshot.dimensions, "title's vector")
        for what, rows in (("vectors", array), ("titles", of_titles)):
            if len(numbers) != len(rows):
                raise SettingError(f"{len(numbers)} numbers but {len(rows)} {what}, expected as many")
        if len(np.unique(numbers)) != len(numbers):
            raise SettingError("a number is given twice in one put, expected each once")
        batch = len(self._batches)
        self._batches.append((encode(array, np.int16), encode(of_titles, np.int8)))
        self._arriving.update((num, (batch, position)) for position, num in enumerate(numbers.tolist()))

    def remove(self, nums: ArrayLike) -> None:
        """Remove the entries with these numbers; nothing happens where there is none."""
        for num in whole_numbers(nums).tolist():
            self._arriving.pop(num, None)
            self._leaving.add(num)

    def commit(self, cursor: Cursor) -> None:
        """Put everything so far on disk, then the cursor; a crash before the end leaves the last commit.

        Raises:
            ForumError: the index cannot be written, as on a full disk; the last commit stays.
        """
        with writing(self._folder):
            self._commit(cursor)

    def _commit(self, cursor: Cursor) -> None:
        touched = self._snapshot.locate(np.array([*self._leaving, *self._arriving], np.int64))
        touched = np.unique(touched[touched >= 0])
        is_filled = cursor.is_complete and not self._snapshot.manifest.cursor.is_complete
        manifest = replace(self._snapshot.manifest, cursor=cursor)
        if len(touched) or self._arriving or (is_filled and len(self._snapshot.parts) > 1):
            manifest = self._write(touched, manifest, is_filled=is_filled)
        snapshot = Snapshot.read(self._folder, manifest, self._snapshot)
        if _wants_codes(snapshot):
            manifest = self._write_codes(snapshot)
            snapshot = Snapshot.read(self._folder, manifest, snapshot)
        manifest.write(self._folder)
        self._snapshot = snapshot
        self._batches, self._arriving, self._leaving = [], {}, set()
        clear_orphaned_files(self._folder, manifest.names())

    def _write(self, touched: NDArray[np.int64], manifest: Manifest, *, is_filled: bool) -> Manifest:
        """Write segments and tombstones, and return a manifest that names them.

        Args:
            is_filled: all entries become one segment: each costs every search of its codes as much as 50,000 entries.
        """
        parts, generation = self._snapshot.parts, manifest.generation + 1
        dead = [
            np.union1d(part.dead, touched[(touched >= part.start) & (touched < part.start + part.size)] - part.start)
            for part in parts
        ]
        sizes = [(part.size - len(gone), len(gone)) for part, gone in zip(parts, dead, strict=True)]
        merged = list(range(len(parts))) if is_filled else segments_to_merge(sizes, len(self._arriving))
        entries: list[SegmentEntry] = []
        for position, old in enumerate(manifest.segments):
            if position not in merged:
                is_same = len(dead[position]) == len(parts[position].dead)
                entries.append(old if is_same else replace(old, dead=self._write_dead(dead[position], generation)))
        taken = [self._new_rows()] if self._arriving else []
        for position in merged:
            rows = parts[position].segment.rows
            taken.append((rows, np.setdiff1d(np.arange(len(rows.nums)), dead[position], assume_unique=True)))
        if any(len(chosen) for _, chosen in taken):
            path = self._folder / file_name(generation, "segment")
            entries.append(SegmentEntry(write_segment(path, manifest.dimensions, taken)))
        return replace(manifest, generation=generation, segments=tuple(entries))

    def _write_codes(self, snapshot: Snapshot) -> Manifest:
        """Write the codes that are missing, with centroids learned anew where there are none or the old ones are."""
        manifest, quantiser = snapshot.manifest, snapshot.quantiser
        is_new = quantiser is None or _has_outgrown(snapshot)
        generation = manifest.generation + 1
        if quantiser is None or is_new:
            entries = np.concatenate([np.flatnonzero(part.is_found) + part.start for part in snapshot.parts])
            sample = entries[np.linspace(0, len(entries) - 1, min(SAMPLE, len(entries))).astype(np.int64)]
            quantiser = Quantiser.train(decode(snapshot.codes(sample)))
            centres = quantiser.write(self._folder / file_name(generation, "centres"))
            manifest = replace(manifest, centres=centres, trained_at=snapshot.entries)
        written = []
        for entry, part in zip(manifest.segments, snapshot.parts, strict=True):
            if _lacks_codes(part) or (part.open > UNCODED and is_new):
                path = self._folder / file_name(generation, "codes")
                written.append(replace(entry, codes=write_codes(path, quantiser, part.segment.rows.codes)))
            else:
                written.append(entry)
        return replace(manifest, generation=generation, segments=tuple(written))

    def _write_dead(self, dead: NDArray[np.int64], generation: int) -> FileEntry:
        return write_dead(self._folder / file_name(generation, "dead"), dead)

    def _new_rows(self) -> tuple[Rows, NDArray[np.int64]]:
        nums = np.fromiter(self._arriving, np.int64, len(self._arriving))
        starts = np.cumsum([0, *(len(codes) for codes, _ in self._batches)])
        taken = np.array([starts[batch] + position for batch, position in self._arriving.values()], np.int64)
        codes, titles = (np.concatenate(columns)[taken] for columns in zip(*self._batches, strict=True))
        return Rows(nums, codes, titles), np.arange(len(nums))


def whole_numbers(nums: ArrayLike | Iterable[int]) -> NDArray[np.int64]:
    """Return numbers of entries as an array (n,).

    Raises:
        SettingError: they are no whole numbers.
    """
    array = np.asarray(nums if isinstance(nums, np.ndarray) else list(nums))  # type: ignore[arg-type]
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise SettingError(f"numbers of type {array.dtype} and shape {array.shape}, expected a row of whole numbers")
    return array.astype(np.int64)
