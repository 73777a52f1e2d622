"""Opens the files of an input: plain or packed, cut into parts, inside the folder that was given, line by line."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, Final, cast

from askalike.errors import DamagedInputError, FormatError, InputError, UnsafeInputError
from askalike.files import is_there
from askalike.readers.frame import Limits, ReadContext

_BLOCK_BYTES = 1 << 18
_SNIFF_BYTES = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FETCH_AGAIN = "fetch the file again from where it came"
_PACKINGS: Final[Mapping[str, tuple[str, Callable[[IO[bytes]], IO[bytes]]]]] = {
    ".gz": ("gzip", lambda stored: cast("IO[bytes]", gzip.GzipFile(fileobj=stored))),
    ".bz2": ("bzip2", bz2.BZ2File),
}
"""Ending of a name → how the file is packed, and what unpacks it, block by block."""


class _Counted(io.RawIOBase):
    """A raw file that reports how many of its bytes have been read."""

    def __init__(self, file: IO[bytes], advance: Callable[[int], None]) -> None:
        self._file = file
        self._advance = advance

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        count = cast("io.FileIO", self._file).readinto(buffer)  # type: ignore[arg-type]
        if count:
            self._advance(count)
        return count or 0

    def close(self) -> None:
        self._file.close()
        super().close()


class _Capped(io.RawIOBase):
    """The unpacked bytes of a file, of which only so many are believed."""

    def __init__(self, unpacked: IO[bytes], path: Path, limits: Limits) -> None:
        self._unpacked = unpacked
        self._name, self._packed = path.name, path.stat().st_size
        self._limits = limits
        self._total = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        block = self._unpacked.read(_BLOCK_BYTES if size < 0 else size)
        self._total += len(block)
        self._limits.check_unpacked(self._name, self._total, self._packed)
        return block


def plain_suffix(path: Path) -> str:
    """Return a name's ending without ``.gz``, in lower case.

    >>> plain_suffix(Path("posts.CSV.gz")), plain_suffix(Path("posts"))
    ('.csv', '')
    """
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def _packing(path: Path) -> tuple[str, Callable[[IO[bytes]], IO[bytes]] | None]:
    return _PACKINGS.get(path.suffix.lower(), ("", None))


@contextmanager
def _damage_named(where: str, packing: str) -> Iterator[None]:
    try:
        yield
    except EOFError as error:
        raise DamagedInputError(f"{where}: the {packing} file ends too early", _FETCH_AGAIN) from error
    except (OSError, zlib.error) as error:
        if not packing:
            raise
        if "Not a gzipped file" in str(error):
            what = f"{where}: damaged gzip data (other bytes stand in it or behind it)"
            raise DamagedInputError(what, "unpack the file, and look at what it holds") from error
        raise DamagedInputError(f"{where}: damaged {packing} data ({error})", _FETCH_AGAIN) from error


@contextmanager
def open_bytes(path: Path, context: ReadContext) -> Iterator[BinaryIO]:
    """Open a file for bytes, unpacking ``.gz`` and ``.bz2``; progress counts the bytes as they are stored.

    Raises:
        InputError: the file is not there, may not be read, or is no file (opening a pipe could wait for ever).
        DamagedInputError: while reading: its packing is truncated or damaged.
        UnsafeInputError: while reading: it unpacks to more than ``limits`` allow.
    """
    if is_there(path) and not path.is_file() and not path.is_dir():
        raise InputError(f"{path} is a device, a pipe or a socket, expected a file", "save what it gives in a file")
    try:
        raw = path.open("rb", buffering=0)
    except (OSError, ValueError) as error:  # a path with a NUL is no value that it takes
        hint = "look at the path and its permissions"
        raise InputError(f"{path} cannot be opened: {getattr(error, 'strerror', error)}", hint) from error
    with io.BufferedReader(_Counted(raw, context.advance), _BLOCK_BYTES) as stream:
        packing, unpack = _packing(path)
        if unpack is not None:
            with unpack(cast("IO[bytes]", stream)) as unpacked, _damage_named(path.name, packing):
                yield cast("BinaryIO", _Capped(unpacked, path, context.options.limits))
        else:
            yield cast("BinaryIO", stream)


def read_blocks(path: Path, name: str, context: ReadContext) -> Iterator[bytes]:
    """Yield a file's bytes, unpacked, in blocks; the last may be short.

    Raises:
        DamagedInputError: the file is empty, or its packing is truncated or damaged; names file and line.
    """
    line, is_empty, packing = 1, True, _packing(path)[0]
    with open_bytes(path, context) as stream:
        while True:
            with _damage_named(f"{name}, line {line}", packing):
                block = stream.read(_BLOCK_BYTES)
            if not block:
                break
            is_empty = False
            line += block.count(b"\n")
            yield block
    if is_empty:
        raise DamagedInputError(f"{name} is empty", _FETCH_AGAIN)


def read_lines(path: Path, name: str, context: ReadContext) -> Iterator[tuple[int, bytes]]:
    """Yield (number, line) without the line's end; the first is 1, and a byte order mark before it is left out.

    Raises:
        DamagedInputError: the file is empty, a gzip stream is damaged, or a line is longer than ``limits.line_bytes``.
    """
    limit = context.options.limits.line_bytes
    number, rest, is_first = 0, b"", True
    for block in read_blocks(path, name, context):
        if is_first:
            block = block.removeprefix(_BYTE_ORDER_MARK)
            is_first = False
        lines = (rest + block).split(b"\n")
        rest = lines.pop()
        for line in lines:
            number += 1
            yield number, line
        if len(rest) > limit:
            raise DamagedInputError(
                f"{name}, line {number + 1}: a line longer than {limit:,} bytes",
                "no record may be so long: shorten or leave out that one; or the file is damaged",
            )
    if rest:
        yield number + 1, rest


def first_bytes(path: Path, count: int = _SNIFF_BYTES) -> bytes:
    """Return a file's first bytes, unpacked and without a byte order mark; b"" for whatever cannot be read."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as stream:
            _, unpack = _packing(path)
            file = stream if unpack is None else unpack(stream)
            first = b""
            with contextlib.suppress(OSError, EOFError, zlib.error):  # what came before the damage is returned
                while len(first) < count and (block := file.read1(count - len(first))):  # type: ignore[attr-defined]
                    first += block
            return first.removeprefix(_BYTE_ORDER_MARK)
    except OSError:
        return b""


def member(folder: Path, *names: str) -> Path | None:
    """Return the first of the named files that a folder holds, or None.

    Raises:
        UnsafeInputError: it is a symbolic link that leads out of the folder.
        DamagedInputError: it is a symbolic link that leads nowhere.
    """
    for name in names:
        path = folder / name
        if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
            raise UnsafeInputError(
                f"{path} is a symbolic link that leads out of the folder", "copy the file there, or give its own path"
            )
        if path.is_symlink() and not path.exists():
            raise DamagedInputError(f"{path} is a symbolic link that leads nowhere", "mend the link, or remove it")
        if path.is_file():
            return path
    return None


def folder_members(folder: Path, *suffixes: str) -> list[Path]:
    """Return a folder's files with one of these endings (``.gz`` apart), by name; subfolders are not entered.

    Raises:
        UnsafeInputError: one is a symbolic link that leads out of the folder.
        DamagedInputError: one is a symbolic link that leads nowhere.
    """
    names = sorted(path.name for path in folder.iterdir() if plain_suffix(path) in suffixes)
    return [path for path in (member(folder, name) for name in names) if path is not None]


def decoded_lines(path: Path, name: str, context: ReadContext) -> Iterator[tuple[int, str]]:
    """Yield what ``read_lines`` yields, as text.

    Raises:
        DamagedInputError: empty, truncated, not UTF-8, or a line too long; names file and line.
    """
    for number, line in read_lines(path, name, context):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            what = f"{name}, line {number}: not UTF-8 at byte {error.start + 1} of the line"
            is_wide = number == 1 and line.startswith((b"\xff\xfe", b"\xfe\xff"))
            iconv = f"iconv -f {'utf-16' if is_wide else 'latin1'} -t utf-8 OLD > NEW"
            raise DamagedInputError(what, f"convert the file to UTF-8, as with: {iconv}") from error
        yield number, text


def text_lines(path: Path, name: str, context: ReadContext) -> Iterator[tuple[int, str]]:
    """Yield (number, line) of every line that is not blank; a carriage return at its end is dropped.

    Raises:
        DamagedInputError: as ``decoded_lines``.
    """
    for number, line in decoded_lines(path, name, context):
        if line and not line.isspace():
            yield number, line.removesuffix("\r")


def stored_file(folder: Path, name: str) -> Path | None:
    """Return the file of this name in a folder, plain or with ``.gz`` behind its name, or None.

    Raises:
        UnsafeInputError: it is a symbolic link that leads out of the folder.
    """
    return member(folder, name, f"{name}.gz")


def file_named(path: Path, name: str) -> Path | None:
    """Return the file of this name, plain or packed, that a path is or that its folder holds, or None."""
    if path.is_dir():
        return stored_file(path, name)
    return path if path.is_file() and path.name in (name, f"{name}.gz") else None


def needed_file(folder: Path, name: str, hint: str) -> Path:
    """Return what ``stored_file`` finds.

    Raises:
        FormatError: it finds nothing.
        UnsafeInputError: it is a symbolic link that leads out of the folder.
    """
    file = stored_file(folder, name)
    if file is None:
        raise FormatError(f"{folder.name} lacks {name} (or {name}.gz)", hint)
    return file
