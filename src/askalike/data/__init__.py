"""The data that the package carries: a small forum of its own, for demonstration, as an example and for tests.

``homenet/questions.jsonl``: 252 questions about home networks and Linux at home, written for this project, with
answers and 60 duplicate marks between questions that share meaning more than words.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from askalike.errors import InputError

__all__ = ["bundled_forum"]


def bundled_forum() -> Path:
    """Return the path of the bundled forum's archive.

    Raises:
        InputError: the package was installed without its data, or inside a zip file.
    """
    path = Path(str(files("askalike.data") / "homenet" / "questions.jsonl"))
    if not path.is_file():
        raise InputError(f"the bundled forum is not at {path}", "install askalike again, unpacked")
    return path
