"""The names of the files in a model's folder, and how large each may be, in one frozen place.

Enters: the folder's path. Leaves: paths. May import: nothing of askalike.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["MAX_BYTES", "Layout"]

MAX_BYTES: Final[dict[str, int]] = {
    "manifest.json": 1 << 16,
    "config.json": 1 << 16,
    "vocabulary.txt": 1 << 28,
    "weights.safetensors": 1 << 32,
}
"""File → its largest size. A folder holds exactly these files."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things are in a model's folder.

    ::

        MODEL/
          weights.safetensors   the encoder's parameters and `embedding`, in the precision that config.json names;
                                `counts`, how often each word occurred in the training texts, where that is known
          vocabulary.txt        one word a line; its line is its id, and its row of `embedding`
          config.json           the encoder and how texts are read
          manifest.json         format, version, what it was trained on, dev scores, hashes of the other files
    """

    folder: Path

    @property
    def weights(self) -> Path:
        """Return the safetensors file."""
        return self.folder / "weights.safetensors"

    @property
    def vocabulary(self) -> Path:
        """Return the list of words."""
        return self.folder / "vocabulary.txt"

    @property
    def config(self) -> Path:
        """Return the settings."""
        return self.folder / "config.json"

    @property
    def manifest(self) -> Path:
        """Return the manifest."""
        return self.folder / "manifest.json"

    @property
    def replaced(self) -> Path:
        """Return where the model before this one stands while a new one takes its place."""
        return self.folder.with_name(f".{self.folder.name}.replaced")
