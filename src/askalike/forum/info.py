"""What a forum tells about itself."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from askalike.forum.indexes import Indexes
from askalike.index.vector_sets import VectorsState
from askalike.store import Counts, Store

MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class Info:
    """What ``askalike info`` shows.

    Args:
        behind: changes that the index has not seen; 0 when it is in step.
        vectors: which model answers, and what is still to be encoded.
        unreadable_dates: the first questions and answers with a date outside the years 1 to 9999, such as
            "question 'q7'"; they are read as if it were not known, and putting them again heals them.
    """

    path: str
    language: str
    counts: Counts
    indexed: int
    behind: int
    size_bytes: int
    vectors: VectorsState = field(default_factory=VectorsState)
    unreadable_dates: tuple[str, ...] = ()


def forum_info(path: Path, store: Store, indexes: Indexes, language: str) -> Info:
    """Return what a forum holds and whether its indexes are in step.

    Raises:
        ModelError, DamagedForumError: a model or a set of vectors cannot be read.
    """
    behind = indexes.behind()  # looks at the index anew
    counts = store.counts()
    return Info(
        path=str(path),
        language=language,
        counts=counts,
        indexed=indexes.lexical.entries,
        behind=behind,
        size_bytes=size_bytes(path),
        vectors=indexes.state(),
        unreadable_dates=tuple(islice(store.unreadable_dates(), MOST_NAMED)) if counts.unreadable_dates else (),
    )


def size_bytes(folder: Path) -> int:
    """Return how much the folder's files hold; files may come and go meanwhile."""
    size = 0
    for file in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            if file.is_file():
                size += file.stat().st_size
    return size
