"""The cursor of an index that follows a store's change log: how far it has come.

An index in a forum's folder keeps it in its manifest (``segments``), one in Milvus in a row there. It is replaced whole
after the entries that it speaks of were written: it is never ahead of them, and what it does not name is done again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

CURSOR_FILE: Final = "mark.json"
"""The manifest, in the folder of each index."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far an index has come.

    Args:
        applied: every change of the store up to this sequence number is in the index.
        scanned: while the index is built from nothing, newest first: entries from this number on are in it; 0 before
            the first, and afterwards.
        is_complete: False while it is being built from nothing.
        fingerprint: of whatever made its entries: text settings, or a model.
    """

    applied: int
    scanned: int
    is_complete: bool
    fingerprint: str

    def can_catch_up(self, fingerprint: str, last_change: int) -> bool:
        """Return whether its index needs no more than catching up: made the same way, and not ahead of the store.

        One that is ahead belongs to a store that was since restored from an older copy.
        """
        return self.fingerprint == fingerprint and self.applied <= last_change


def read_cursor_file(folder: Path) -> bytes | None:
    """Return the file of an index's cursor as it is now, None while there is none; it may raise another OSError."""
    try:
        return (folder / CURSOR_FILE).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def has_cursor(folder: Path) -> bool:
    """Return whether an index was begun in a folder."""
    return (folder / CURSOR_FILE).exists()
