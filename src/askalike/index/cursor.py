"""The cursor of an index that follows a store's change log: how far it has come.

Each kind of index keeps its cursor in a file of its own, with its own format number, and replaces it whole after its
own commit; so a cursor is never ahead of its index, and what a cursor does not name is done again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

CURSOR_FILE: Final = "mark.json"
"""In the folder of each index."""

_TYPES: Final = {"applied": int, "scanned": int, "is_complete": bool, "fingerprint": str, "format": int}


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

    def to_json(self, form: int) -> dict[str, object]:
        """Return the cursor as a file holds it, with the format number ``form`` of its index."""
        return {**asdict(self), "format": form}

    @classmethod
    def from_json(cls, fields: object, form: int) -> Cursor:
        """Return the cursor that ``to_json`` described.

        Raises:
            ValueError: it is none, or one of another format than ``form``; the message goes on after "the index …".
        """
        if isinstance(fields, Mapping) and fields.get("format", form) != form:
            raise ValueError(f"it has format {fields['format']}, expected {form}")
        if not isinstance(fields, Mapping) or {name: type(value) for name, value in fields.items()} != _TYPES:
            raise ValueError(f"its cursor in {CURSOR_FILE} is {str(fields)[:200]}, expected {', '.join(_TYPES)}")
        return cls(**{name: value for name, value in fields.items() if name != "format"})


def read_cursor_file(folder: Path) -> bytes | None:
    """Return the file of an index's cursor as it is now, None while there is none; it may raise another OSError."""
    try:
        return (folder / CURSOR_FILE).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def has_cursor(folder: Path) -> bool:
    """Return whether an index was begun in a folder."""
    return (folder / CURSOR_FILE).exists()
