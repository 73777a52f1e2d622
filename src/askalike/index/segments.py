"""How an index lies on disk: segments, which never change; a mask of what is gone of each; a manifest that names both.

The first segment holds nearly all entries, and what was written since is the small tail. A commit writes one new
segment of what arrives and of the segments that have become too many, and then replaces the manifest, whole. So a
process that is killed at any moment leaves the last commit, and files that no manifest names, which the next writer
deletes. Whoever reads keeps the files that it has mapped, and sees one commit from beginning to end.

The manifest is also the cursor: it says up to which change of the store the entries go. A gap after a crash is found by
it and replayed; applying a change twice does no harm. Damage is found by checksums, and mended by building anew.

A *row* is a position in the segments laid end to end.
"""

from __future__ import annotations

import re
import secrets
import threading
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, Protocol, Self, TypeVar

import filelock
import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from askalike.errors import BusyForumError, DamagedForumError, SettingError
from askalike.files import FULL, Owned, holding, replace_whole
from askalike.index.checked_file import (
    KINDS,
    NAME,
    REBUILD,
    FileEntry,
    damage,
    file_name,
    read_file,
    unread,
    unwritable,
    write_file,
)
from askalike.index.cursor import CURSOR_FILE, Cursor, has_cursor, read_cursor_file

FORMAT: Final = 5
LOCK_FILE: Final = "write.lock"
SMALL: Final = 512
"""Below this, writing anew costs no more than the file does."""

_COMMITTED: Final = rf"{NAME}\.({KINDS})|{re.escape(CURSOR_FILE)}\.\d+\.tmp"
OWNED: Final = Owned(rf"{_COMMITTED}|{re.escape(CURSOR_FILE)}|{re.escape(LOCK_FILE)}")
"""What lies in an index's folder."""


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """A segment, the file of its mask where rows of it are gone, and that of its codes where it has some."""

    file: FileEntry
    dead: FileEntry | None = None
    codes: FileEntry | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an index consists of, in the file of its cursor.

    Args:
        identity: drawn when the index is made, so that one made anew at the same place is told apart.
        generation: how many commits wrote files.
        means: of words: the mean lengths of fields by which entries are scored.
        dimensions: of vectors, D; 0 for words.
    """

    format: int
    cursor: Cursor
    identity: str
    generation: int = 0
    segments: tuple[SegmentEntry, ...] = ()
    means: tuple[float, ...] = ()
    dimensions: int = 0

    def names(self) -> set[str]:
        """Return the names of all files that count."""
        files = [entry for segment in self.segments for entry in (segment.file, segment.dead, segment.codes)]
        return {entry.name for entry in files if entry is not None}

    def write(self, folder: Path) -> None:
        """Make this manifest the index's, at once and for good."""
        replace_whole(folder / CURSOR_FILE, msgspec.json.encode(self))

    @classmethod
    def parse(cls, content: bytes | None) -> Manifest:
        """Return what the bytes of a manifest's file say.

        Raises:
            ValueError: they say nothing that can be used.
        """
        if content is None:
            raise ValueError(f"its file {CURSOR_FILE} is not there")
        try:
            manifest = msgspec.json.decode(content, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError(f"its file {CURSOR_FILE} holds no manifest: {error}") from error
        if manifest.format != FORMAT:
            raise ValueError(f"it has format {manifest.format}, expected {FORMAT}")
        return manifest


def read_manifest_file(folder: Path) -> bytes | None:
    """Return the manifest's file as it is now, None while there is none.

    Raises:
        DamagedForumError, ForumError: it cannot be read.
    """
    try:
        return read_cursor_file(folder)
    except OSError as error:
        raise unread(folder / CURSOR_FILE, error) from error


@contextmanager
def writing(folder: Path, kind: str = "vector") -> Iterator[None]:
    """Tell failures of the system to write an index in a folder.

    Raises:
        ForumError: it cannot be written, as on a full disk.
    """
    try:
        yield
    except OSError as error:
        raise unwritable(f"the {kind} index in {folder}", error, is_full=error.errno in FULL) from error


def alone(folder: Path, kind: str, patience_s: float = 0) -> AbstractContextManager[None]:
    """Hold the lock of who writes; the system frees it when the process dies.

    Args:
        patience_s: how long to wait for it.

    Raises:
        BusyForumError: it is held, in this process or another.
        ForumError: the system does not let it be taken.
    """
    what = f"the {kind} index in {folder} is being written by another process"
    busy = BusyForumError(what, "wait until it has finished")
    return holding(filelock.FileLock(folder / LOCK_FILE, thread_local=False), patience_s, busy)


def clear_orphaned_files(folder: Path, named: Collection[str]) -> None:
    """Delete files of ours that are not ``named``; only who holds the lock of writers may call this."""
    for path in folder.iterdir():
        if path.name not in named and re.fullmatch(_COMMITTED, path.name):
            with suppress(PermissionError, IsADirectoryError):  # Windows: a reader has it open; the next writer tries
                path.unlink(missing_ok=True)


# -- what is gone --------------------------------------------------------------------------------------------------


def write_dead(path: Path, dead: NDArray[np.int64]) -> FileEntry:
    """Write the positions (ascending) of a segment's rows that are gone."""
    return write_file(path, "dead", 0, len(dead), [dead.astype("<i8")], [])


def read_dead(folder: Path, entry: FileEntry | None, rows: int) -> NDArray[np.int64]:
    """Return the positions of a segment's rows that are gone, ascending.

    Raises:
        FileNotFoundError: the file is not there.
        DamagedForumError: it is not what was written.
    """
    if entry is None:
        return np.zeros(0, np.int64)
    stored = read_file(folder / entry.name, "dead", entry)
    if len(stored.front) != 8 * entry.rows or len(stored.payload):
        raise damage(stored.path, f"does not have the size of {entry.rows} rows")
    dead: NDArray[np.int64] = np.frombuffer(stored.front, "<i8")
    if (dead[1:] <= dead[:-1]).any() or dead[:1].min(initial=0) < 0 or dead[-1:].max(initial=0) >= rows:
        raise damage(stored.path, f"holds positions outside 0 … {rows - 1} or out of order")
    return dead


# -- the entries of one commit ----------------------------------------------------------------------------------------


class Segment(Protocol):
    """Entries side by side, as they are on disk."""

    @property
    def nums(self) -> NDArray[np.int64]:
        """Return the numbers of the entries, ascending.  # (N,)"""

    def check(self) -> None:
        """Read all of it, and raise DamagedForumError where it is not what was written."""


_Segment = TypeVar("_Segment", bound=Segment)


@dataclass(frozen=True, eq=False)
class Part(Generic[_Segment]):
    """A segment in one commit.

    Args:
        dead: (n,) int64 ascending positions of its rows that are gone.
        start: its first row.
    """

    segment: _Segment
    dead: NDArray[np.int64]
    start: int

    @property
    def size(self) -> int:
        """Return how many rows it has, those that are gone too."""
        return len(self.segment.nums)

    @cached_property
    def is_alive(self) -> NDArray[np.bool_]:
        """Whether each row (size,) is an entry."""
        alive = np.ones(self.size, np.bool_)
        alive[self.dead] = False
        return alive


_Part = TypeVar("_Part", bound=Part[Any])


class Commit(Generic[_Part]):
    """The entries of one commit.

    Args:
        parts: in the order of their rows.
        manifest: that names them.
        content: the bytes of the manifest's file.
    """

    def __init__(self, parts: Sequence[_Part], manifest: Manifest, content: bytes | None) -> None:
        self.parts = tuple(parts)
        self.manifest = manifest
        self.content = content
        self.size = sum(part.size for part in self.parts)
        self.entries = self.size - sum(len(part.dead) for part in self.parts)

    @classmethod
    def read(cls, folder: Path, manifest: Manifest, content: bytes | None, before: Self | None) -> Self:
        """Open what the manifest names; what ``before`` holds already is not opened again.

        Raises:
            FileNotFoundError: a file is not there: perhaps the manifest is old by now.
            DamagedForumError: a file is not what was written.
        """
        known: dict[SegmentEntry, _Part] = {}
        if before is not None:
            known = dict(zip(before.manifest.segments, before.parts, strict=True))
        segments = {entry.file: part.segment for entry, part in known.items()}
        parts: list[_Part] = []
        start = 0
        for entry in manifest.segments:
            part = known.get(entry)
            if part is None:
                segment = segments.get(entry.file) or cls._segment(folder, entry.file, manifest)
                dead = read_dead(folder, entry.dead, entry.file.rows)
                part = cls._part(segment, dead, start)
            parts.append(part if part.start == start else replace(part, start=start))
            start += entry.file.rows
        return cls(parts, manifest, content)

    @classmethod
    def _segment(cls, folder: Path, entry: FileEntry, manifest: Manifest) -> Any:
        """Open a segment that the manifest names."""
        raise NotImplementedError

    @classmethod
    def _part(cls, segment: Any, dead: NDArray[np.int64], start: int) -> Any:
        return Part(segment, dead, start)

    def locate(self, nums: ArrayLike) -> NDArray[np.int64]:
        """Return the row of the entry with each number, -1 where there is none.

        Args:
            nums: (n,) whole numbers, in any order.
        """
        wanted = np.asarray(nums, np.int64)
        rows = np.full(len(wanted), -1, np.int64)
        for part in self.parts:
            own, dead = part.segment.nums, part.dead
            at = np.minimum(np.searchsorted(own, wanted), len(own) - 1)
            is_here = own[at] == wanted
            if len(dead):
                is_here &= dead[np.minimum(np.searchsorted(dead, at), len(dead) - 1)] != at
            rows[is_here] = at[is_here] + part.start
        return rows

    def numbers(self) -> NDArray[np.int64]:
        """Return the numbers of all entries, ascending; one that is held twice is there twice."""
        alive = [part.segment.nums[part.is_alive] for part in self.parts]
        return np.sort(np.concatenate([*alive, np.zeros(0, np.int64)]))


_Commit = TypeVar("_Commit", bound=Commit[Any])


# -- writing ----------------------------------------------------------------------------------------------------------


def segments_to_merge(sizes: Sequence[tuple[int, int]], arriving: int, small: int) -> list[int]:
    """Return the positions of the segments to write anew, ascending.

    A segment is taken up when more than a quarter of it is gone. Then, the smallest first, every segment less than
    twice as large as what is being written: sizes fall by half from segment to segment, so there are about log₂ N, and
    each entry is written about log₂ N times in all.

    Args:
        sizes: (rows alive, rows gone) of each segment.
        arriving: new rows of this commit.
        small: so many rows cost no more than a file does.

    >>> segments_to_merge([(100_000, 0), (50_000, 0)], 30_000, 512)  # 50,000 < 2 · 30,000; 100,000 < 2 · 80,000
    [0, 1]
    >>> segments_to_merge([(100_000, 0), (300, 0)], 1, 512)
    [1]
    >>> segments_to_merge([(70, 30), (5_000, 0)], 0, 512)
    [0]
    """
    chosen = {position for position, (alive, dead) in enumerate(sizes) if 4 * dead > alive + dead}
    total = arriving + sum(sizes[position][0] for position in chosen)
    if total == 0:
        return sorted(chosen)
    rest = sorted((alive, position) for position, (alive, _) in enumerate(sizes) if position not in chosen)
    for alive, position in rest:
        if alive >= 2 * max(total, small):
            break
        chosen.add(position)
        total += alive
    if arriving == 0 and len(chosen) == 1 and sizes[next(iter(chosen))][1] == 0:
        return []
    return sorted(chosen)


Chosen = tuple[_Segment, NDArray[np.int64]]
"""A segment, and the positions of its rows that are taken, ascending."""


class SegmentWriter(Generic[_Commit]):
    """Adds, replaces and removes entries; nothing is seen or kept before ``commit``."""

    kind: ClassVar[str]
    suffix: ClassVar[str]

    def __init__(self, folder: Path, commit: _Commit) -> None:
        self._folder = folder
        self._now = commit
        self._leaving: set[int] = set()

    @abstractmethod
    def _arriving(self) -> list[Chosen[Any]]:
        """Return the entries that were put, each number once."""

    @abstractmethod
    def _drop(self, num: int) -> None:
        """Forget an entry that was put."""

    @abstractmethod
    def _forget(self) -> None:
        """Forget all entries that were put: they are on disk."""

    @abstractmethod
    def _write_segment(self, path: Path, chosen: Sequence[Chosen[Any]], manifest: Manifest) -> FileEntry:
        """Write chosen rows as one new segment, ordered by number."""

    def _prepared(self, manifest: Manifest, chosen: Sequence[Chosen[Any]], *, is_whole: bool) -> Manifest:
        """Return the manifest with what chosen rows are written by; ``is_whole``: they are all entries."""
        return manifest

    def _to_merge(self, dead: Sequence[NDArray[np.int64]], arriving: Sequence[Chosen[Any]]) -> list[int]:
        """Return the positions of the segments to write anew, given what is gone of each, and what arrives."""
        sizes = [(part.size - len(gone), len(gone)) for part, gone in zip(self._now.parts, dead, strict=True)]
        return segments_to_merge(sizes, sum(len(taken) for _, taken in arriving), SMALL)

    def _completed(self, manifest: Manifest) -> Manifest:
        """Return the manifest after what a kind of index adds to its segments."""
        return manifest

    def remove(self, nums: ArrayLike | Iterable[int]) -> None:
        """Remove the entries with these numbers; nothing happens where there is none."""
        for num in whole_numbers(nums).tolist():
            self._drop(num)
            self._leaving.add(num)

    def commit(self, cursor: Cursor) -> None:
        """Put everything so far on disk, then the cursor; a crash before the end leaves the last commit.

        Raises:
            DamagedForumError: a segment that is to be merged is damaged; the last commit stays.
            ForumError: the index cannot be written, as on a full disk; the last commit stays.
        """
        with writing(self._folder, self.kind):
            manifest = self._completed(self._with_changes(cursor))
            manifest.write(self._folder)
            self._now = type(self._now).read(self._folder, manifest, None, self._now)
            self._leaving = set()
            self._forget()
            clear_orphaned_files(self._folder, manifest.names())

    def _with_changes(self, cursor: Cursor) -> Manifest:
        """Write segments and masks, and return a manifest that names them.

        While an index is filled nobody asks it, and nothing is merged; at the end all becomes one segment.
        """
        now, arriving = self._now, self._arriving()
        before = now.manifest
        manifest = replace(before, cursor=cursor)
        arrived = [segment.nums[taken] for segment, taken in arriving]
        touched = now.locate(np.concatenate([np.fromiter(self._leaving, np.int64, len(self._leaving)), *arrived]))
        touched = np.unique(touched[touched >= 0])
        is_filled = cursor.is_complete and not before.cursor.is_complete
        is_whole = len(now.parts) <= 1 and now.entries == now.size
        if not (len(touched) or arriving or (is_filled and not is_whole)):
            return manifest
        dead = [
            np.union1d(part.dead, touched[(touched >= part.start) & (touched < part.start + part.size)] - part.start)
            for part in now.parts
        ]
        merged: list[int] = []
        if cursor.is_complete:
            merged = list(range(len(dead))) if is_filled else self._to_merge(dead, arriving)
        generation, entries = before.generation + 1, []
        for position, (entry, part, gone) in enumerate(zip(before.segments, now.parts, dead, strict=True)):
            if position not in merged:
                is_same = len(gone) == len(part.dead)
                path = self._folder / file_name(generation, "dead")
                entries.append(entry if is_same else replace(entry, dead=write_dead(path, gone)))
        chosen: list[Chosen[Any]] = []
        for position in merged:
            segment = now.parts[position].segment
            segment.check()  # else damage would get a new sum
            rows = np.setdiff1d(np.arange(len(segment.nums)), dead[position], assume_unique=True)
            chosen.append((segment, rows))
        chosen += arriving
        manifest = self._prepared(manifest, chosen, is_whole=not entries)
        if any(len(taken) for _, taken in chosen):
            path = self._folder / file_name(generation, self.suffix)
            entries.append(SegmentEntry(self._write_segment(path, chosen, manifest)))
        return replace(manifest, generation=generation, segments=tuple(entries))


_Writer = TypeVar("_Writer", bound=SegmentWriter[Any])


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


# -- the index --------------------------------------------------------------------------------------------------------


class SegmentedIndex(Generic[_Commit, _Writer]):
    """An index as it is on disk; one process writes, any number read.

    Raises:
        DamagedForumError: it cannot be read.
        ForumError: the system does not let it be read.
    """

    kind: ClassVar[str]
    _commits: ClassVar[Any]
    _writers: ClassVar[Any]

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._refreshing = threading.Lock()
        self._now: _Commit = self._open(None)

    @classmethod
    def _create(cls, folder: Path, *, applied: int, fingerprint: str, dimensions: int = 0) -> Self:
        with writing(folder, cls.kind):
            folder.mkdir(parents=True, exist_ok=True)
        with alone(folder, cls.kind), writing(folder, cls.kind):
            cursor = Cursor(applied=applied, scanned=0, is_complete=False, fingerprint=fingerprint)
            manifest = Manifest(FORMAT, cursor, secrets.token_hex(8), dimensions=dimensions)
            manifest.write(folder)
            clear_orphaned_files(folder, manifest.names())
        return cls(folder)

    @staticmethod
    def exists(folder: Path) -> bool:
        """Return whether an index was begun at ``folder``."""
        return has_cursor(folder)

    def refresh(self) -> None:
        """See what another process (or this one) has committed since; cheap when nothing was.

        While another process builds the index anew, the complete one that was open before goes on answering.

        Raises:
            DamagedForumError, ForumError: it cannot be read; the commit before goes on answering.
        """
        if read_manifest_file(self.folder) in (self._now.content, None):
            return
        with self._refreshing:
            if read_manifest_file(self.folder) in (self._now.content, None):  # another thread may have taken it
                return
            opened = self._open(self._now)
            if opened.manifest.cursor.is_complete or not self._now.manifest.cursor.is_complete:
                self._now = opened

    def reopen(self) -> None:
        """Take the index as it is on disk now, complete or not: what its writer must know.

        Raises:
            DamagedForumError: it cannot be read, or has gone.
        """
        with self._refreshing:
            self._now = self._open(self._now)

    @contextmanager
    def writing(self, patience_s: float = 0) -> Iterator[_Writer]:
        """Give the writer; what it has committed stays, the rest is dropped at the end.

        Args:
            patience_s: how long to wait for another writer.

        Raises:
            BusyForumError: another writer is open, in this process or another.
        """
        with alone(self.folder, self.kind, patience_s):
            self.reopen()
            with writing(self.folder, self.kind):
                clear_orphaned_files(self.folder, self._now.manifest.names())
            try:
                yield self._writers(self.folder, self._now)
            finally:
                self.reopen()

    def _open(self, before: _Commit | None) -> _Commit:
        """Open what the manifest names; look again where a writer has replaced it under our eyes."""
        while True:
            content = read_manifest_file(self.folder)
            if before is not None and before.content == content is not None:
                return before
            try:
                manifest = Manifest.parse(content)
                commit: _Commit = self._commits.read(self.folder, manifest, content, before)
                return commit
            except FileNotFoundError as error:
                if read_manifest_file(self.folder) == content:
                    raise damage(Path(str(error.filename)), "is not there, and the manifest names it") from error
            except OSError as error:
                raise unread(self.folder, error) from error
            except ValueError as error:
                raise DamagedForumError(
                    f"the {self.kind} index in {self.folder} cannot be read: {error}", REBUILD
                ) from error
