"""Files of a released data set by the names that its authors gave them."""

from __future__ import annotations

from pathlib import Path

from askalike.errors import FormatError
from askalike.read.files import member


def stored_file(folder: Path, name: str) -> Path | None:
    """Return the file of this name in a folder, plain or with ``.gz`` behind its name, or None.

    Raises:
        UnsafeInputError: it is a symbolic link that leads out of the folder.
    """
    return member(folder, name, f"{name}.gz")


def needed_file(folder: Path, name: str, hint: str) -> Path:
    """Return what ``stored_file`` finds.

    Raises:
        FormatError: it finds nothing.
        UnsafeInputError: it is a symbolic link that leads out of the folder.
    """
    found = stored_file(folder, name)
    if found is None:
        raise FormatError(f"{folder.name} lacks {name} (or {name}.gz)", hint)
    return found
