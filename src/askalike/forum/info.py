"""What a forum tells about itself.

Enters: a folder. Leaves: ``Info``. May import: archive.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from askalike.archive import Counts

__all__ = ["Info", "size_bytes"]


@dataclass(frozen=True, slots=True)
class Info:
    """What ``askalike info`` shows.

    Args:
        behind: changes that the index has not seen; 0 when it is in step.
    """

    path: str
    language: str
    counts: Counts
    indexed: int
    behind: int
    size_bytes: int


def size_bytes(folder: Path) -> int:
    """Return how much the folder's files hold; an index may replace its files while they are counted."""
    total = 0
    for file in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            total += file.stat().st_size if file.is_file() else 0
    return total
