"""The mark: how far the vector index has come, and which files hold its entries.

The mark's file is replaced whole and only after every file that it names is on disk. So a process killed at any moment
leaves the last commit, and files that no mark names are orphaned_files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from askalike.errors import DamagedForumError, ForumError
from askalike.files import REFUSED, replace_whole
from askalike.index.cursor import Mark

FORMAT = 1
MARK_FILE = "mark.json"
REBUILD = 'rebuild it with "askalike reindex FORUM"'

_NAME = re.compile(r"\d{8,}-[0-9a-f]{8}\.(segment|dead|graph|building)")


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file that counts: its name in the folder, how many rows it holds, and the hash of its header."""

    name: str
    rows: int
    digest: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"it names a file {self.name!r} that no index writes")


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """A segment, and the file of its tombstones where rows of it are dead."""

    file: FileEntry
    dead: FileEntry | None = None


@dataclass(frozen=True, slots=True)
class Contents:
    """All that the mark's file says.

    Args:
        identity: drawn when the index is made, so that one made anew at the same place is told apart.
        generation: how many commits changed entries; each row remembers the one that brought it.
        graph: the neighbour graph's file, or None.
        graph_covers: the generation of the entries that the graph was built from.
    """

    mark: Mark
    dimensions: int
    identity: str
    generation: int = 0
    segments: tuple[SegmentEntry, ...] = ()
    graph: FileEntry | None = None
    graph_covers: int = 0

    def names(self) -> set[str]:
        """Return the names of all files that count."""
        files = [entry for segment in self.segments for entry in (segment.file, segment.dead)]
        return {entry.name for entry in (*files, self.graph) if entry is not None}

    def write(self, folder: Path) -> None:
        """Make these contents the index's, at once and for good."""
        replace_whole(folder / MARK_FILE, json.dumps({**asdict(self), "mark": self.mark.to_json(FORMAT)}).encode())

    @classmethod
    def parse(cls, state: bytes | None) -> Contents:
        """Return what the bytes of a mark's file say.

        Raises:
            ValueError, KeyError, TypeError: they say nothing that can be used.
        """
        if state is None:
            raise ValueError(f"its file {MARK_FILE} is not there")
        found = json.loads(state)
        if not isinstance(found, dict):
            raise ValueError(f"{MARK_FILE} does not hold a mark")
        contents = cls(
            mark=Mark.from_json(found.get("mark"), FORMAT),
            dimensions=int(found["dimensions"]),
            identity=str(found["identity"]),
            generation=int(found["generation"]),
            segments=tuple(
                SegmentEntry(FileEntry(**entry["file"]), _file(entry["dead"])) for entry in found["segments"]
            ),
            graph=_file(found["graph"]),
            graph_covers=int(found["graph_covers"]),
        )
        if contents.dimensions < 1:
            raise ValueError(f"{MARK_FILE} says {contents.dimensions} dimensions, expected at least 1")
        return contents


def read_state(folder: Path) -> bytes | None:
    """Return the mark's file as it is now, None while there is none.

    Raises:
        DamagedForumError, ForumError: it cannot be read.
    """
    path = folder / MARK_FILE
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unread(path, error) from error


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
