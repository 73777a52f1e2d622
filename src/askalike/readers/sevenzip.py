"""Unpacks the wanted members of a ``.7z`` archive into a private temporary folder, and believes nothing that it says.

The names inside the archive never touch the disk: the files are made here, under the wanted names. The list of members
is checked before anything is unpacked (number, names, links, sizes, ratio), and the bytes are counted while they are
written, because the list may lie.
"""

from __future__ import annotations

import errno
import lzma
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

import py7zr
from py7zr.exceptions import ArchiveError, CrcError, PasswordRequired, UnsupportedCompressionMethodError
from py7zr.io import Py7zIO, WriterFactory

from askalike.errors import AskalikeError, DamagedInputError, FormatError, InputError, UnsafeInputError
from askalike.readers.frame import Limits, ReadContext

_HARM = "the archive is damaged or made to harm; fetch it again from where it came"
_DAMAGE = (
    ArchiveError,
    CrcError,
    lzma.LZMAError,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    AssertionError,
    RuntimeError,
    MemoryError,
    OverflowError,
)
"""What py7zr is known to raise on an archive that is cut off or changed; it checks little before it computes."""


def wanted_sizes(path: Path, wanted: frozenset[str], limits: Limits) -> dict[str, int]:
    """Return the wanted members that an archive holds, by the name inside it, with their unpacked sizes in bytes.

    Raises:
        UnsafeInputError: too many members, too large, too well packed, a link, or a name that leads outside.
        DamagedInputError: the list of members cannot be read.
        FormatError: the archive needs a password.
    """
    with _damage_named(path), path.open("rb") as stream, py7zr.SevenZipFile(stream) as archive:
        return _checked(path, archive, wanted, limits)


@contextmanager
def unpacked(path: Path, wanted: frozenset[str], context: ReadContext) -> Iterator[Path]:
    """Give a folder that holds the wanted members under their last names; it is removed at the end.

    Progress counts the unpacked bytes as they are written.

    Raises:
        UnsafeInputError, DamagedInputError, FormatError: as ``wanted_sizes``.
    """
    with tempfile.TemporaryDirectory(prefix="askalike-") as name:
        folder = Path(name)
        with _damage_named(path), path.open("rb") as stream, py7zr.SevenZipFile(stream) as archive:
            sizes = _checked(path, archive, wanted, context.options.limits)
            sinks = _Sinks(folder, sum(sizes.values()), context.advance)
            try:
                archive.extract(path=folder, targets=list(sizes), factory=sinks)
            finally:
                sinks.close()
        yield folder


def _checked(path: Path, archive: py7zr.SevenZipFile, wanted: frozenset[str], limits: Limits) -> dict[str, int]:
    members = archive.list()
    if len(members) > limits.archive_members:
        raise UnsafeInputError(f"{path.name} lists {len(members):,} members, at most {limits.archive_members:,}", _HARM)
    sizes: dict[str, int] = {}
    for item in members:
        name = PurePosixPath(item.filename.replace("\\", "/"))
        if name.is_absolute() or ".." in name.parts or ":" in name.parts[0] or "\x00" in item.filename:
            raise UnsafeInputError(f"{path.name} has a member named {item.filename!r}, which leads outside", _HARM)
        if item.is_symlink:
            raise UnsafeInputError(f"{path.name} has a symbolic link, {item.filename!r}", _HARM)
        if item.is_file and name.name in wanted:
            if any(PurePosixPath(other).name == name.name for other in sizes):
                raise FormatError(
                    f"{path.name} holds more than one {name.name}", "unpack it and give one site's folder"
                )
            sizes[item.filename] = item.uncompressed
    limits.check_unpacked(path.name, sum(sizes.values()), path.stat().st_size)
    return sizes


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    try:
        yield
    except AskalikeError:
        raise
    except PasswordRequired as error:
        raise FormatError(f"{path.name} needs a password", "unpack it and give the folder") from error
    except UnsupportedCompressionMethodError as error:
        hint = "unpack it with 7-Zip and give the folder"
        raise FormatError(f"{path.name} is packed by a method that is not known here", hint) from error
    except _DAMAGE as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = f"make room in {tempfile.gettempdir()}, or set TMPDIR to a folder that has room"
            raise InputError(f"{path.name} cannot be unpacked: the disk is full", hint) from error
        raise DamagedInputError(
            f"{path.name}: the archive is truncated or damaged ({type(error).__name__}: {error})",
            "fetch it again from where it came",
        ) from error


class _Sink(Py7zIO):
    """One file under way, which refuses more bytes than the archive's list promised."""

    def __init__(self, file: IO[bytes], sinks: _Sinks) -> None:
        self._file = file
        self._sinks = sinks

    def write(self, s: bytes | bytearray) -> int:
        self._sinks.count(len(s))
        return self._file.write(s)

    def read(self, size: int | None = None) -> bytes:
        return self._file.read(-1 if size is None else size)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def flush(self) -> None:
        self._file.flush()

    def size(self) -> int:
        return self._file.tell()


class _Sinks(WriterFactory):
    """Makes the files in the private folder, by the last part of the member's name."""

    def __init__(self, folder: Path, promised_bytes: int, advance: Callable[[int], None]) -> None:
        self._folder = folder
        self._left = promised_bytes
        self._advance = advance
        self._files: list[IO[bytes]] = []

    def create(self, filename: str) -> Py7zIO:
        file = (self._folder / Path(filename).name).open("x+b")
        self._files.append(file)
        return _Sink(file, self)

    def count(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise UnsafeInputError("the archive unpacks to more bytes than its list of members says", _HARM)
        self._advance(size)

    def close(self) -> None:
        for file in self._files:
            file.close()
