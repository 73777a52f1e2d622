"""A model's folder as every sort of model reads it: its settings understood, its words, its arrays still unlooked at.

Enters: a path, how settings are read. Leaves: ``Stored``. May import: folder, manifest, vocabulary, errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from askalike.errors import DamagedModelError, SettingError
from askalike.models.encoders.folder import naming, read_folder
from askalike.models.encoders.manifest import Manifest
from askalike.models.encoders.vocabulary import Vocabulary

__all__ = ["Stored", "read_model"]

_Settings = TypeVar("_Settings")


@dataclass(frozen=True, slots=True)
class Stored(Generic[_Settings]):
    """What a folder holds.

    Args:
        arrays: those of ``weights.safetensors``, which the sort of model has to look at.
    """

    manifest: Manifest
    settings: _Settings
    vocabulary: Vocabulary
    arrays: Mapping[str, NDArray[np.generic]]


def read_model(path: Path, settings_of: Callable[[Mapping[str, object]], _Settings]) -> Stored[_Settings]:
    """Return what is in a model's folder; nothing of it is run, and every file is checked.

    Args:
        settings_of: understands ``config.json``, or raises SettingError.

    Raises:
        ModelNotFoundError: there is no model at ``path``.
        ModelVersionError: it was written by an incompatible version.
        DamagedModelError: a file is damaged or missing, or it is another sort of model.
    """
    manifest, contents = read_folder(path)
    with naming(path):
        try:
            settings = settings_of(contents.config)
        except SettingError as error:
            raise DamagedModelError(f"config.json: {error.message}", error.hint) from error
        return Stored(manifest, settings, Vocabulary.from_bytes(contents.vocabulary), contents.arrays)
