"""The mark of an index: how far it has come through the archive's changes, in a file of its own beside the entries.

Enters: a folder, or a file's bytes. Leaves: ``Mark``. May import: durable.
"""

from __future__ import annotations

import json
from dataclasses import asdict, astuple, dataclass
from pathlib import Path

from askalike.durable import replace_whole

__all__ = ["FORMAT", "MARK_FILE", "Mark", "read_mark", "write_mark"]

FORMAT = 1
MARK_FILE = "mark.json"


@dataclass(frozen=True, slots=True)
class Mark:
    """How far an index has come.

    Args:
        applied: every change of the archive up to this sequence number is in the index.
        scanned: while the index is built from nothing: entries up to this internal number are in it; 0 afterwards.
        is_complete: False while it is being built from nothing.
        fingerprint: of the text settings that the entries were prepared with.
        format: of the index itself.
    """

    applied: int
    scanned: int
    is_complete: bool
    fingerprint: str
    format: int = FORMAT


def read_mark(state: bytes | None) -> Mark:
    """Return the mark that a file's bytes hold, None standing for no file.

    Raises:
        ValueError: there is none, it was written by another version, or it is damaged.
    """
    if state is None:
        raise ValueError(f"its file {MARK_FILE} is not there")
    try:
        mark = Mark(**json.loads(state))
    except (TypeError, RecursionError) as error:
        raise ValueError(f"its file {MARK_FILE} is none: {error}") from error
    if [type(value) for value in astuple(mark)] != [int, int, bool, str, int]:
        raise ValueError(f"its file {MARK_FILE} holds {str(mark)[:200]}")
    if mark.format != FORMAT:
        raise ValueError(f"it has format {mark.format}, expected {FORMAT}")
    return mark


def write_mark(folder: Path, mark: Mark) -> None:
    """Put the mark on disk, durably and in one step."""
    replace_whole(folder / MARK_FILE, json.dumps(asdict(mark)).encode())
