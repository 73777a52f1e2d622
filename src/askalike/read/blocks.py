"""Files that were cut into parts, or packed with bzip2, as one run of unpacked blocks."""

from __future__ import annotations

import bz2
from collections.abc import Iterator, Sequence
from pathlib import Path

from askalike.errors import DamagedInputError
from askalike.read.files import read_blocks
from askalike.read.frame import Limits, ReadContext

_BLOCK_BYTES = 1 << 18
_FETCH_AGAIN = "fetch the file again from where it came"


class BlockStream:
    """Blocks as something to read from: every call returns the next block, whatever size is asked for."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks

    def read(self, size: int = -1) -> bytes:
        """Return the next block, b"" at the end."""
        return next(self._blocks, b"")


def joined_blocks(paths: Sequence[Path], context: ReadContext) -> Iterator[bytes]:
    """Yield the unpacked bytes of all files, one after the other.

    Raises:
        DamagedInputError: a file is empty, or its packing is damaged or ends too early; names the file.
        UnsafeInputError: a file unpacks to more than ``limits`` allow.
    """
    for path in paths:
        blocks = read_blocks(path, path.name, context)
        yield from _unpack_bzip2(blocks, path, context.options.limits) if path.suffix.lower() == ".bz2" else blocks


def first_bzip2_bytes(path: Path, count: int = 1 << 14) -> bytes:
    """Return the first unpacked bytes of a bzip2 file; b"" for whatever cannot be read."""
    try:
        with bz2.BZ2File(path) as stream:
            return stream.read(count)
    except (OSError, EOFError):
        return b""


def _unpack_bzip2(blocks: Iterator[bytes], path: Path, limits: Limits) -> Iterator[bytes]:
    """Unpack all streams of a bzip2 file (parallel packers write many), never more than a block at a time."""
    unpacker = bz2.BZ2Decompressor()
    name, packed, total = path.name, path.stat().st_size, 0
    for block in blocks:
        while block or not (unpacker.needs_input or unpacker.eof):
            if unpacker.eof:
                unpacker = bz2.BZ2Decompressor()
            try:
                unpacked = unpacker.decompress(block, _BLOCK_BYTES)
            except OSError as error:
                raise DamagedInputError(f"{name}: damaged bzip2 data ({error})", _FETCH_AGAIN) from error
            block = unpacker.unused_data if unpacker.eof else b""
            if unpacked:
                total += len(unpacked)
                limits.check_unpacked(name, total, packed)
                yield unpacked
    if not unpacker.eof:
        raise DamagedInputError(f"{name}: the bzip2 file ends too early", _FETCH_AGAIN)
