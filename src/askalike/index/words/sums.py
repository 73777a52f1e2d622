"""Checksums of the files of the word index: damage that tantivy would read without noticing it.

tantivy ends each of its files with a footer that holds the CRC-32 of the rest, and does not look at it. Two files may
also be whole and stand at each other's places. So a file beside the entries keeps the size and the sum of each, as they
were when their writer ended, since tantivy never changes a file. A file that a killed writer did not write down is
checked by its footer alone.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from askalike.files import REFUSED, replace_whole

SUMS_FILE: Final = "sums.json"
ENTRIES: Final = "entries"

_META: Final = "meta.json"
_PARTS: Final = ("fast", "fieldnorm", "idx", "pos", "store", "term")
_END: Final = struct.Struct("<II")
_MAGIC: Final = 1337
_MOST_FOOTER_BYTES: Final = 4096
_BLOCK: Final = 1 << 20

Sum = tuple[int, int, int]
"""Size in bytes, CRC-32 of all but the footer, and how many entries tantivy's list counts in the file."""


def entry_files(folder: Path) -> dict[str, int]:
    """Return the files that the index in a folder consists of, and how many entries are in each by tantivy's list.

    Raises:
        ValueError: tantivy's list of them cannot be read.
        OSError: it is not there.
    """
    try:
        segments = json.loads((folder / ENTRIES / _META).read_bytes())["segments"]
        found: dict[str, int] = {}
        for segment in segments:
            name, count, deletes = segment["segment_id"].replace("-", ""), int(segment["max_doc"]), segment["deletes"]
            found |= {f"{name}.{part}": count for part in _PARTS}
            if deletes is not None:
                found[f"{name}.{int(deletes['opstamp'])}.del"] = int(deletes["num_deleted_docs"])
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{ENTRIES}/{_META} does not list its files: {error!r}") from error
    return found


def counted(folder: Path) -> int:
    """Return how many entries tantivy counts in its formulas: also those deleted since their segment was merged.

    Raises:
        ValueError, OSError: as ``entry_files``.
    """
    return sum(count for name, count in entry_files(folder).items() if name.endswith(".idx"))


def written_down(folder: Path) -> dict[str, Sum]:
    """Return what was written down of files, nothing where no writer of this version was here.

    Raises:
        ValueError: the file is damaged.
        OSError: the system does not let it be read.
    """
    try:
        found = json.loads((folder / SUMS_FILE).read_bytes())
        return {str(name): (int(size), int(crc), int(count)) for name, (size, crc, count) in found["files"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, OSError) and error.errno in REFUSED:
            raise
        raise ValueError(f"{SUMS_FILE} cannot be read: {error!r}") from error


def write_down(folder: Path) -> None:
    """Keep the sums of the files that the index consists of now; only its writer may call this.

    Raises:
        ValueError: a file that was just written does not hold what was written.
        OSError: one cannot be read.
    """
    try:
        known = written_down(folder)
    except ValueError:  # each footer is looked at instead
        known = {}
    files = entry_files(folder).items()
    found = {name: known.get(name) or measured(folder / ENTRIES / name, count) for name, count in files}
    if found != known:
        replace_whole(folder / SUMS_FILE, json.dumps({"files": found}).encode())


def faults(
    folder: Path,
    looked_at: set[str] | None = None,
    most_bytes: int | None = None,
    read: Callable[[int], None] = lambda _: None,
) -> Iterator[tuple[Path, str]]:
    """Yield each file that does not hold what was written, and what is wrong.

    Args:
        looked_at: names that are passed over, to which those that were looked at are added.
        most_bytes: the small files first, and no more than this.
        read: told how many bytes were read.

    Raises:
        ValueError, OSError: it cannot be told which files there are.
    """
    seen = set() if looked_at is None else looked_at
    try:
        known = written_down(folder)
    except ValueError as error:
        yield folder / SUMS_FILE, str(error)
        known = {}
    files = entry_files(folder)
    paths = [folder / ENTRIES / name for name in files if name not in seen]
    left = most_bytes
    for path, size in sorted(((path, _size(path)) for path in paths), key=lambda one: one[1]):
        if left is not None:
            left -= size
            if left < 0:
                return
        fault = _fault(path, files[path.name], known.get(path.name))
        read(size)
        if fault and not path.exists() and path.name not in entry_files(folder):
            continue  # it was merged with others meanwhile
        if fault:
            yield path, fault
        else:
            seen.add(path.name)


def _fault(path: Path, count: int, expected: Sum | None) -> str:
    try:
        found = measured(path, count)
    except FileNotFoundError:
        return "is not there"
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in REFUSED:
            raise
        return str(error)
    if expected is not None and count != expected[2]:
        return f"holds {expected[2]:,} entries, and {_META} counts {count:,}"
    if expected is not None and found != expected:
        return f"is another file than was written: {found[0]:,} bytes, expected {expected[0]:,}, and another sum"
    return ""


def measured(path: Path, count: int) -> Sum:
    """Return size and sum of a file, read whole, and ``count``.

    Raises:
        ValueError: they are not those of its footer.
        OSError: it cannot be read.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - _END.size))
        end = file.read()
        length, magic = _END.unpack(end) if len(end) == _END.size else (0, 0)
        body = size - _END.size - length
        if magic != _MAGIC or length > _MOST_FOOTER_BYTES or body < 0:
            raise ValueError("does not end as a file of the word index does")
        file.seek(body)
        try:
            expected = json.loads(file.read(length))["crc"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError("does not end as a file of the word index does") from error
        file.seek(0)
        found = 0
        while body > 0 and (block := file.read(min(_BLOCK, body))):
            found = zlib.crc32(block, found)
            body -= len(block)
    if found != expected:
        raise ValueError("does not hold what was written: its sum differs")
    return size, found, count


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
