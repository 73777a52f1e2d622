"""The mark of an index that follows the archive: how far it has come through the archive's changes.

Each kind of index keeps its mark in its own file, beside its own format number, and replaces it whole after its own
commit; so an index is never ahead of its mark, and what a mark does not name is done again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

_TYPES = {"applied": int, "scanned": int, "is_complete": bool, "fingerprint": str, "format": int}


@dataclass(frozen=True, slots=True)
class Mark:
    """How far an index has come.

    Args:
        applied: every change of the archive up to this sequence number is in the index.
        scanned: while the index is built from nothing: entries up to this internal number are in it; 0 afterwards.
        is_complete: False while it is being built from nothing.
        fingerprint: of whatever made its entries: text settings, or a model.
    """

    applied: int
    scanned: int
    is_complete: bool
    fingerprint: str

    def to_json(self, form: int) -> dict[str, object]:
        """Return the mark as a file holds it, with the format number ``form`` of its index."""
        return {**asdict(self), "format": form}

    @classmethod
    def from_json(cls, found: object, form: int) -> Mark:
        """Return the mark that ``to_json`` described.

        Raises:
            ValueError: it is none, or one of another format than ``form``; the message goes on after "the index …".
        """
        if isinstance(found, Mapping) and found.get("format", form) != form:
            raise ValueError(f"it has format {found['format']}, expected {form}")
        if not isinstance(found, Mapping) or {name: type(value) for name, value in found.items()} != _TYPES:
            raise ValueError(f"its mark in mark.json is {str(found)[:200]}, expected {', '.join(_TYPES)}")
        return cls(**{name: value for name, value in found.items() if name != "format"})
