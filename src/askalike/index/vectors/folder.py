"""The folder of a vector index: its manifest, its files, each checked when it is opened, its locks.

The manifest says how far the index has come, and which files hold its entries. Its file is replaced whole and only
after every file that it names is on disk. So a process killed at any moment leaves the last commit, and files that no
manifest names are orphaned.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import filelock

from askalike.errors import BusyForumError
from askalike.files import FULL, Owned, held, replace_whole
from askalike.index.checked_file import NAME, FileEntry, unread, unwritable
from askalike.index.cursor import CURSOR_FILE, Cursor, read_cursor_file

FORMAT: Final = 3


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """A segment, the file of its tombstones where rows of it are dead, and that of its codes where it is large."""

    file: FileEntry
    dead: FileEntry | None = None
    codes: FileEntry | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the index consists of, in the file of its cursor.

    Args:
        identity: drawn when the index is made, so that one made anew at the same place is told apart.
        generation: how many commits wrote files.
        centres: the file of the centroids by which all codes are made, or None.
        trained_at: how many entries there were when they were learned.
    """

    cursor: Cursor
    dimensions: int
    identity: str
    generation: int = 0
    segments: tuple[SegmentEntry, ...] = ()
    centres: FileEntry | None = None
    trained_at: int = 0

    def names(self) -> set[str]:
        """Return the names of all files that count."""
        files = [entry for segment in self.segments for entry in (segment.file, segment.dead, segment.codes)]
        return {entry.name for entry in (*files, self.centres) if entry is not None}

    def write(self, folder: Path) -> None:
        """Make this manifest the index's, at once and for good."""
        content = asdict(self) | {"mark": self.cursor.to_json(FORMAT)}
        del content["cursor"]  # which has its format number in the file
        replace_whole(folder / CURSOR_FILE, json.dumps(content).encode())

    @classmethod
    def parse(cls, state: bytes | None) -> Manifest:
        """Return what the bytes of a manifest's file say.

        Raises:
            ValueError, KeyError, TypeError: they say nothing that can be used.
        """
        if state is None:
            raise ValueError(f"its file {CURSOR_FILE} is not there")
        found = json.loads(state)
        if not isinstance(found, dict):
            raise ValueError(f"{CURSOR_FILE} does not hold a cursor")
        manifest = cls(
            cursor=Cursor.from_json(found.get("mark"), FORMAT),
            dimensions=int(found["dimensions"]),
            identity=str(found["identity"]),
            generation=int(found["generation"]),
            segments=tuple(
                SegmentEntry(FileEntry(**entry["file"]), _file(entry["dead"]), _file(entry["codes"]))
                for entry in found["segments"]
            ),
            centres=_file(found["centres"]),
            trained_at=int(found["trained_at"]),
        )
        if manifest.dimensions < 1:
            raise ValueError(f"{CURSOR_FILE} says {manifest.dimensions} dimensions, expected at least 1")
        if manifest.centres is None and any(entry.codes for entry in manifest.segments):
            raise ValueError(f"{CURSOR_FILE} names codes, but no centroids")
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
def writing(folder: Path) -> Iterator[None]:
    """Tell failures of the system to write the index in a folder.

    Raises:
        ForumError: it cannot be written, as on a full disk.
    """
    try:
        yield
    except OSError as error:
        raise unwritable(f"the vector index in {folder}", error, is_full=error.errno in FULL) from error


def _file(entry: dict[str, Any] | None) -> FileEntry | None:
    return None if entry is None else FileEntry(**entry)


@contextmanager
def alone(folder: Path, patience_s: float = 0) -> Iterator[None]:
    """Hold the lock of who writes; the system frees it when the process dies.

    Args:
        patience_s: how long to wait for it.

    Raises:
        BusyForumError: it is held, in this process or another.
        ForumError: the system does not let it be taken.
    """
    with ExitStack() as locks:
        try:
            locks.enter_context(held(filelock.FileLock(folder / "write.lock", thread_local=False), patience_s))
        except filelock.Timeout as error:
            raise BusyForumError(
                f"the vector index in {folder} is being written by another process", "wait until it has finished"
            ) from error
        yield


_COMMITTED: Final = rf"{NAME}\.(segment|dead|codes|centres)|mark\.json\.\d+\.tmp"

OWNED: Final = Owned(rf"{_COMMITTED}|mark\.json|write\.lock")
"""What lies in an index's folder."""


def clear_orphaned_files(folder: Path, named: Collection[str]) -> None:
    """Delete files of ours that are not ``named``; only who holds the lock of writers may call this."""
    for path in folder.iterdir():
        if path.name not in named and re.fullmatch(_COMMITTED, path.name):
            with suppress(PermissionError, IsADirectoryError):  # Windows: a reader has it open; the next writer tries
                path.unlink(missing_ok=True)
