"""The data that the package carries: a small forum of its own, for demonstration, as an example and for tests; and
the general model, where the package was built with it.

``homenet/questions.jsonl``: 252 questions about home networks and Linux at home, written for this project, with
answers and 60 duplicate links between questions that share meaning more than words.
``models/general/``: the model that encodes a forum's questions until the forum has one of its own.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from askalike.errors import InputError

__all__ = ["DEFAULT_MODEL_CODE", "DEFAULT_MODEL_LANGUAGE", "bundled_forum", "default_model"]

DEFAULT_MODEL_LANGUAGE, DEFAULT_MODEL_CODE = "english", "en"
"""The language that the general model reads; words of others are unknown to it, and all such questions look alike."""


def bundled_forum() -> Path:
    """Return the path of the bundled forum's archive.

    Raises:
        InputError: the package was installed without its data, or inside a zip file.
    """
    path = Path(str(files("askalike.data") / "homenet" / "questions.jsonl"))
    if not path.is_file():
        raise InputError(f"the bundled forum is not at {path}", "install askalike again, unpacked")
    return path


def default_model() -> Path | None:
    """Return the folder of the general model, or None where the package carries none."""
    path = Path(str(files("askalike.data") / "models" / "general"))
    return path if (path / "manifest.json").is_file() else None
