"""What this user has agreed to: folders, addresses and databases that a forum's folder may name.

A forum's folder may come from anybody. What it names is read, called or sent a key only where this user has named just
that before: by a command (kept in ``encoders.json`` in the user's own settings) or in an environment variable.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

from askalike.files import replace_whole

FORMAT: Final = 1
_MOST_BYTES: Final = 1 << 16


def is_agreed(what: str, variable: str) -> bool:
    """Return whether this user has agreed to something, by a command or in the variable's list, parted by commas."""
    return what in {agreement.strip() for agreement in os.environ.get(variable, "").split(",")} | set(_agreed())


def agree(what: str) -> None:
    """Keep in the user's own settings that something may be used, whichever forum names it.

    Raises:
        OSError: it cannot be written.
    """
    path = agreed_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_whole(path, json.dumps(sorted({*_agreed(), what}), indent=1).encode(), is_narrow=True)


def read_named(path: Path, field: str) -> str:
    """Return what a file of a forum's folder names, such as a database.

    Raises:
        OSError, ValueError, RecursionError: it names nothing.
    """
    with path.open("rb") as file:
        content = json.loads(file.read(_MOST_BYTES))
    if not isinstance(content, dict) or content.get("format") != FORMAT or not isinstance(content.get(field), str):
        raise ValueError("it does not have the fields that are expected")
    return str(content[field])


def write_named(path: Path, field: str, name: str) -> None:
    """Agree to something, and write that a forum's folder names it.

    Raises:
        OSError: it cannot be written.
    """
    agree(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_whole(path, json.dumps({"format": FORMAT, field: name}).encode())


def agreed_file() -> Path:
    """Return the file of what this user has agreed to; it need not be there."""
    if os.name == "nt" and "APPDATA" in os.environ:
        return Path(os.environ["APPDATA"]) / "askalike" / "encoders.json"
    root = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(root) if root else Path("~/.config").expanduser()) / "askalike" / "encoders.json"


def _agreed() -> list[str]:
    try:
        agreements = json.loads(agreed_file().read_bytes())
    except (OSError, ValueError, RuntimeError):  # RuntimeError: there is no home
        return []
    return [agreement for agreement in agreements if isinstance(agreement, str)] if isinstance(agreements, list) else []
