"""The folder of a vector index: its manifest, its files, each checked when it is opened, its locks.

The manifest says how far the index has come, and which files hold its entries. Its file is replaced whole and only
after every file that it names is on disk. So a process killed at any moment leaves the last commit, and files that no
manifest names are orphaned.

::

    magic 8s | kind 8s | format u32 | dimensions u32 | rows u64 | front bytes u64 | payload bytes u64
             | crc32 of the front u32 | crc32 of the payload u32 | zeros                       (64 bytes)
    front    | zeros up to a multiple of 64
    payload

All numbers are little-endian. The manifest keeps the header's hash, so that a file of another index, another commit or
another size is noticed before anything in it is used. The payload (the vectors) is mapped into memory, not read; its
sum is compared when asked, and at each opening of a small file.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import struct
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import filelock
import numpy as np
from numpy.typing import NDArray

from askalike.errors import BusyForumError, DamagedForumError, ForumError
from askalike.files import REFUSED, Owned, replace_whole, writing_whole
from askalike.index.cursor import CURSOR_FILE, Cursor, read_cursor_file

FORMAT: Final = 2
REBUILD: Final = 'rebuild it with "askalike reindex FORUM"'

_NAME: Final = r"\d{8,}-[0-9a-f]{8}"
_FILE: Final = re.compile(rf"{_NAME}\.(segment|dead|codes|centres)")


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file that counts: its name in the folder, how many rows it holds, and the hash of its header."""

    name: str
    rows: int
    digest: str

    def __post_init__(self) -> None:
        if not _FILE.fullmatch(self.name):
            raise ValueError(f"it names a file {self.name!r} that no index writes")


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
        if isinstance(found.get("mark"), dict) and found["mark"].get("format") == 1:
            found = _upgrade_1_to_2(found)
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


def _upgrade_1_to_2(found: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest of format 1 as one of format 2: its neighbour graph goes, codes are still to be made."""
    return {
        "mark": found["mark"] | {"format": 2},
        **{key: found[key] for key in ("dimensions", "identity", "generation")},
        "segments": [entry | {"codes": None} for entry in found["segments"]],
        "centres": None,
        "trained_at": 0,
    }


def read_manifest_file(folder: Path) -> bytes | None:
    """Return the manifest's file as it is now, None while there is none.

    Raises:
        DamagedForumError, ForumError: it cannot be read.
    """
    try:
        return read_cursor_file(folder)
    except OSError as error:
        raise unread(folder / CURSOR_FILE, error) from error


def unread(path: Path, error: OSError) -> ForumError:
    """Return the error of a file that cannot be opened: is it damaged, or does the system not let it be read?"""
    if error.errno in REFUSED:
        told = f"the vector index cannot be read: {path}: {error.strerror}"
        return ForumError(told, "check the rights of the forum's folder")
    return damage(path, f"cannot be opened: {error}")


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Tell failures of the system to write the index in a folder.

    Raises:
        ForumError: it cannot be written, as on a full disk.
    """
    try:
        yield
    except OSError as error:
        raise ForumError(
            f"the vector index in {folder} cannot be written: {error.filename or folder}: {error.strerror or error}",
            "nothing is lost: free space or fix the folder's rights, and the next command goes on with it",
        ) from error


def damage(path: Path, what: str) -> DamagedForumError:
    """Return the error that names a damaged file and what to do."""
    return DamagedForumError(f"the vector index cannot be read: {path} {what}", REBUILD)


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
    lock = filelock.FileLock(folder / "write.lock", thread_local=False)
    try:
        lock.acquire(timeout=patience_s)
    except filelock.Timeout as error:
        raise BusyForumError(
            f"the vector index in {folder} is being written by another process", "wait until it has finished"
        ) from error
    except (OSError, NotImplementedError) as error:
        raise ForumError(
            f"{lock.lock_file} cannot be locked: {error}", "check the rights of the forum's folder"
        ) from error
    try:
        yield
    finally:
        lock.release()


_COMMITTED: Final = rf"{_NAME}\.(segment|dead|codes|centres|graph|building)|mark\.json\.\d+\.tmp"
"""Graphs were kept by format 1, whose manifest names them."""

OWNED: Final = Owned(rf"{_COMMITTED}|mark\.json|(write|build)\.lock")
"""What lies in an index's folder."""


def file_name(generation: int, kind: str) -> str:
    """Return a name that no file has had: a killed process may have left one of the same commit."""
    return f"{generation:08d}-{secrets.token_hex(4)}.{kind}"


def clear_orphaned_files(folder: Path, named: Collection[str]) -> None:
    """Delete files of ours that are not ``named``; only who holds the lock of writers may call this."""
    for path in folder.iterdir():
        if path.name not in named and re.fullmatch(_COMMITTED, path.name):
            with suppress(PermissionError, IsADirectoryError):  # Windows: a reader has it open; the next writer tries
                path.unlink(missing_ok=True)


_MAGIC = b"askalike"
_HEADER = struct.Struct("<8s8sIIQQQII")
_ALIGNMENT = 64

FILE_FORMAT: Final = 2
READ_FORMATS: Final = (1, 2)
"""A segment of format 1 also says which commit brought each row."""


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file that was opened and whose header and front are sound.

    Args:
        form: the number of its format.
        front: all of it, in memory.
        payload: (bytes,) uint8, mapped from the file.
    """

    path: Path
    form: int
    dimensions: int
    front: bytes
    payload: NDArray[np.uint8]
    payload_sum: int

    def check_payload(self) -> None:
        """Read the payload and compare its sum.

        Raises:
            DamagedForumError: it is not what was written.
        """
        if zlib.crc32(self.payload.data) != self.payload_sum:
            raise damage(self.path, "does not hold what was written: the sum of its vectors differs")


def write_file(
    path: Path,
    kind: str,
    dimensions: int,
    rows: int,
    front: Iterable[NDArray[Any]],
    payload: Iterable[NDArray[Any]],
) -> FileEntry:
    """Write a new file, block after block; return what the manifest must say of it.

    Args:
        front: arrays that are read whenever the file is opened.
        payload: contiguous arrays, written one after the other.
    """
    head = b"".join(array.tobytes() for array in front)
    size = total = 0
    with writing_whole(path) as file:
        file.write(bytes(_ALIGNMENT))
        file.write(head + bytes(-len(head) % _ALIGNMENT))
        for block in payload:
            file.write(block.data)
            total = zlib.crc32(block.data, total)
            size += block.nbytes
        fields = (FILE_FORMAT, dimensions, rows, len(head), size, zlib.crc32(head), total)
        header = _HEADER.pack(_MAGIC, kind.encode(), *fields).ljust(_ALIGNMENT, b"\0")
        file.seek(0)
        file.write(header)
    return FileEntry(path.name, rows, _digest(header))


def read_file(path: Path, kind: str, entry: FileEntry) -> CheckedFile:
    """Open a file that the manifest names.

    Raises:
        FileNotFoundError: it is not there: perhaps the manifest is old by now.
        DamagedForumError: it is not the file that was written.
    """
    try:
        with path.open("rb") as file:
            header = file.read(_ALIGNMENT)
            if len(header) < _ALIGNMENT:
                raise damage(path, f"is cut off: {len(header)} bytes, expected at least {_ALIGNMENT}")
            magic, kind_found, form, dimensions, rows, front_bytes, payload_bytes, front_sum, payload_sum = (
                _HEADER.unpack_from(header)
            )
            if magic != _MAGIC or kind_found.rstrip(b"\0") != kind.encode():
                raise damage(path, f"is not a {kind} file of askalike")
            if form not in READ_FORMATS:
                raise damage(path, f"has format {form}, expected {FILE_FORMAT}")
            if _digest(header) != entry.digest or rows != entry.rows:
                raise damage(path, f"is not the file that the manifest names: {rows} rows, expected {entry.rows}")
            start = _ALIGNMENT + front_bytes + -front_bytes % _ALIGNMENT
            size = path.stat().st_size
            if size != start + payload_bytes:
                raise damage(path, f"has {size:,} bytes, expected {start + payload_bytes:,}")
            front = file.read(front_bytes)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unread(path, error) from error
    if zlib.crc32(front) != front_sum:
        raise damage(path, "does not hold what was written: the sum of its numbers differs")
    return CheckedFile(path, form, dimensions, front, _map(path, start, payload_bytes), payload_sum)


def _map(path: Path, start: int, size: int) -> NDArray[np.uint8]:
    if size == 0:  # nothing cannot be mapped
        return np.zeros(0, np.uint8)
    return np.memmap(path, np.uint8, "r", start, (size,)).view(np.ndarray)


def _digest(header: bytes) -> str:
    return hashlib.blake2b(header, digest_size=16).hexdigest()
