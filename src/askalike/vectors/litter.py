"""Names for the files of an index, and the clearing of those that a killed process left.

May import: nothing of askalike.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

__all__ = ["clear_litter", "file_name"]

_COMMITTED = ("*.segment", "*.dead", "*.graph", "*.tmp")


def file_name(generation: int, kind: str) -> str:
    """Return a name that no file has had: a killed process may have left one of the same commit."""
    return f"{generation:08d}-{secrets.token_hex(4)}.{kind}"


def clear_litter(folder: Path, patterns: Collection[str] = _COMMITTED, *, named: Collection[str] = ()) -> None:
    """Delete files of ours that are not ``named``; only who holds the lock of their writers may call this."""
    for pattern in patterns:
        for path in folder.glob(pattern):
            if path.name not in named:
                with suppress(PermissionError):  # Windows: a reader has it open; the next writer deletes it
                    path.unlink(missing_ok=True)
