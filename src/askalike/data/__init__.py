"""The data that the package carries: a small forum of its own, for demonstration, as an example and for tests; and
the encoder, where the package was built with it.

``homenet/questions.jsonl``: 252 questions about home networks and Linux at home, written for this project, with
answers and 60 duplicate links between questions that share meaning more than words.
``models/general/``: what encodes a forum's questions unless another encoder is named; see ``models.general``.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from askalike.errors import InputError

__all__ = ["GENERAL_CODE", "GENERAL_LANGUAGE", "bundled_forum", "general_folder", "general_words"]

GENERAL_LANGUAGE, GENERAL_CODE = "english", "en"
"""The language that the bundled encoder reads; questions in others lie near each other whatever they ask."""


def bundled_forum() -> Path:
    """Return the path of the bundled forum's archive.

    Raises:
        InputError: the package was installed without its data, or inside a zip file.
    """
    path = Path(str(files("askalike.data") / "homenet" / "questions.jsonl"))
    if not path.is_file():
        raise InputError(f"the bundled forum is not at {path}", "install askalike again, unpacked")
    return path


def general_folder() -> Path | None:
    """Return the folder of the bundled encoder, or None where the package carries none."""
    path = Path(str(files("askalike.data") / "models" / "general"))
    return path if (path / "manifest.json").is_file() else None


@cache
def general_words() -> tuple[str, ...]:
    """Return the whole words that the bundled encoder knows, most frequent first; none where the package has none."""
    folder = general_folder()
    pieces = [] if folder is None else (folder / "vocabulary.txt").read_text(encoding="utf-8").splitlines()
    return tuple(piece for piece in pieces if piece.isascii() and piece.isalpha())
