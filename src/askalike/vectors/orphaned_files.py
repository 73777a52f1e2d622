"""Names for the files of an index, and the clearing of those that a killed process left."""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from askalike.removal import Owned

_NAME: Final = r"\d{8,}-[0-9a-f]{8}"
_COMMITTED: Final = rf"{_NAME}\.(segment|dead|graph)|mark\.json\.\d+\.tmp"
BUILDING: Final = rf"{_NAME}\.building"

OWNED: Final = Owned(rf"{_COMMITTED}|{BUILDING}|mark\.json|(write|build)\.lock")
"""What lies in an index's folder."""


def file_name(generation: int, kind: str) -> str:
    """Return a name that no file has had: a killed process may have left one of the same commit."""
    return f"{generation:08d}-{secrets.token_hex(4)}.{kind}"


def clear_orphaned_files(folder: Path, pattern: str = _COMMITTED, *, named: Collection[str] = ()) -> None:
    """Delete files of ours that are not ``named``; only who holds the lock of their writers may call this."""
    for path in folder.iterdir():
        if path.name not in named and re.fullmatch(pattern, path.name):
            with suppress(PermissionError, IsADirectoryError):  # Windows: a reader has it open; the next writer tries
                path.unlink(missing_ok=True)
