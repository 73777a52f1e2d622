"""Files of an index that are checked when they are opened, and mapped into memory.

::

    magic 8s | kind 8s | format u32 | dimensions u32 | rows u64 | front bytes u64 | payload bytes u64
             | crc32 of the front u32 | crc32 of the payload u32 | zeros                       (64 bytes)
    front    | zeros up to a multiple of 64
    payload

All numbers are little-endian. A manifest keeps the header's hash, so that a file of another index, another commit or
another size is noticed before anything in it is used. The payload (vectors, postings) is mapped, not read; its sum is
compared when asked, and at each opening of a small file.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from askalike.errors import DamagedForumError, DiskFullError, ForumError
from askalike.files import REFUSED, shortage, writing_whole

REBUILD: Final = 'rebuild it with "askalike reindex FORUM"'
NAME: Final = r"\d{8,}-[0-9a-f]{8}"
"""What files are called, before the kind."""

KINDS: Final = "words|segment|dead|codes"
FILE: Final = re.compile(rf"{NAME}\.({KINDS})")


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file that counts: its name in the folder, how many rows it holds, and the hash of its header."""

    name: str
    rows: int
    digest: str

    def __post_init__(self) -> None:
        if not FILE.fullmatch(self.name):
            raise ValueError(f"it names a file {self.name!r} that no index writes")


def unread(path: Path, error: OSError) -> ForumError:
    """Return the error of a file that cannot be opened: is it damaged, or does the system not let it be read?"""
    if short := shortage(f"the index cannot be read: {path}", error.errno or 0):
        return short
    if error.errno in REFUSED:
        message = f"the index cannot be read: {path}: {error.strerror}"
        return ForumError(message, "check the rights of the forum's folder")
    return damage(path, f"cannot be opened: {error}")


def unwritable(index: str, error: Exception, *, is_full: bool) -> ForumError:
    """Return the error of an index that cannot be written: is its disk full, or does the system not let it?

    Args:
        index: its kind and folder.
    """
    if is_full:
        hint = "nothing is lost: free space, and the next command or write goes on with it"
        return DiskFullError(f"{index} cannot be written: its disk is full", hint)
    if isinstance(error, OSError) and (short := shortage(f"{index} cannot be written", error.errno or 0)):
        return short
    named = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else error
    hint = "nothing is lost: free space or fix the folder's rights, and the next command goes on with it"
    return ForumError(f"{index} cannot be written: {named}", hint)


def damage(path: Path, what: str) -> DamagedForumError:
    """Return the error that names a damaged file and what to do."""
    return DamagedForumError(f"the index cannot be read: {path} {what}", REBUILD)


def file_name(generation: int, kind: str) -> str:
    """Return a name that no file has had: a killed process may have left one of the same commit."""
    return f"{generation:08d}-{secrets.token_hex(4)}.{kind}"


_MAGIC = b"askalike"
_HEADER = struct.Struct("<8s8sIIQQQII")
_ALIGNMENT = 64

FILE_FORMAT: Final = 2


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file that was opened and whose header and front are sound.

    Args:
        front: all of it, in memory.
        payload: (bytes,) uint8, mapped from the file.
    """

    path: Path
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
            raise damage(self.path, "does not hold what was written: its sum differs")


def write_file(
    path: Path,
    kind: str,
    dimensions: int,
    rows: int,
    front: Iterable[NDArray[Any]],
    payload: Iterable[NDArray[Any]],
    *,
    is_narrow: bool = False,
) -> FileEntry:
    """Write a new file, block after block; return what the manifest must say of it.

    Args:
        front: arrays that are read whenever the file is opened.
        payload: contiguous arrays, written one after the other.
        is_narrow: only its owner may read it.
    """
    head = b"".join(array.tobytes() for array in front)
    size = total = 0
    with writing_whole(path, is_narrow=is_narrow) as file:
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
            if form != FILE_FORMAT:
                raise damage(path, f"has format {form}, expected {FILE_FORMAT}")
            if _digest(header) != entry.digest or rows != entry.rows:
                raise damage(path, f"is not the file that the manifest names: {rows} rows, expected {entry.rows}")
            start = _ALIGNMENT + front_bytes + -front_bytes % _ALIGNMENT
            size = path.stat().st_size
            if size != start + payload_bytes:
                raise damage(path, f"has {size:,} bytes, expected {start + payload_bytes:,}")
            front = file.read(start - _ALIGNMENT)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unread(path, error) from error
    front, padding = front[:front_bytes], front[front_bytes:]
    if zlib.crc32(front) != front_sum or any(padding):
        raise damage(path, "does not hold what was written: the sum of its numbers differs")
    return CheckedFile(path, dimensions, front, _map(path, start, payload_bytes), payload_sum)


def _map(path: Path, start: int, size: int) -> NDArray[np.uint8]:
    if size == 0:  # nothing cannot be mapped
        return np.zeros(0, np.uint8)
    return np.memmap(path, np.uint8, "r", start, (size,)).view(np.ndarray)


def _digest(header: bytes) -> str:
    return hashlib.blake2b(header, digest_size=16).hexdigest()
