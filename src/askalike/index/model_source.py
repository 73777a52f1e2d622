"""Which model a forum is to be encoded with: its own, or the general one that the package carries."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from askalike.data import DEFAULT_MODEL_LANGUAGE, default_model
from askalike.errors import DamagedModelError, ModelError, SettingError
from askalike.files import remove_owned, sync_folder
from askalike.models.encoders.folder import OWNED, Manifest, ModelLayout, refuse_foreign
from askalike.models.encoders.settings import ModelSettings
from askalike.store import Layout

ENCODING_VERSION = 1
"""Raised whenever the same question and model give another vector than before, so that vectors are made anew."""

_MEND = "put a whole model there, or delete the folder"


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model's folder.

    Args:
        name: "own" or "general".
        fingerprint: of its content, and of how questions are encoded.
    """

    folder: Path
    name: str
    fingerprint: str


def wanted_model(layout: Layout, language: str) -> ModelSource | None:
    """Return the forum's own model, else the package's general one where it reads the forum's language, else None.

    Raises:
        ModelError: a model is there and its manifest cannot be read.
    """
    own = own_model(layout)
    if own is None and language == DEFAULT_MODEL_LANGUAGE and default_model() is not None:
        return general_model(language)
    return own


def own_model(layout: Layout) -> ModelSource | None:
    """Return the forum's own model, if it has one.

    Raises:
        ModelError: its manifest cannot be read.
    """
    own = ModelLayout(layout.model)
    folder = own.folder if own.folder.is_dir() else own.replaced  # replaced: see models.encoders.folder
    return ModelSource(folder, "own", fingerprint(folder)) if folder.is_dir() else None


def general_model(language: str) -> ModelSource:
    """Return the package's general model for a forum in this language.

    Raises:
        SettingError: the package carries none, or it reads another language.
        ModelError: its manifest cannot be read.
    """
    folder = default_model()
    if folder is None:
        raise SettingError(
            "the package contains no general model",
            "give a model's folder (./general for one so named), or train with --from nothing",
        )
    if language != DEFAULT_MODEL_LANGUAGE:
        raise SettingError(
            f"the general model reads {DEFAULT_MODEL_LANGUAGE}, and the forum is in {language}",
            'train one of its own with "askalike train FORUM --from nothing"',
        )
    return ModelSource(folder, "general", fingerprint(folder))


def remove_own_model(layout: Layout, language: str) -> None:
    """Take the forum's own model away, so that the general one is wanted; its vectors answer until others are made.

    Raises:
        SettingError: the package contains no general model, or it reads another language.
        ModelExistsError: its folder is a link, or holds something else too.
    """
    general_model(language)
    own = ModelLayout(layout.model)
    going = own.folder.with_name(f".{own.folder.name}.going")
    for folder in (own.folder, own.replaced, going):
        refuse_foreign(folder)
    remove_owned(going, OWNED)
    if own.folder.is_dir():
        remove_owned(own.replaced, OWNED)
        own.folder.rename(going)
    elif own.replaced.is_dir():
        own.replaced.rename(going)
    sync_folder(layout.folder)
    remove_owned(going, OWNED)


def fingerprint(folder: Path) -> str:
    """Return a short name of a model's content, by what its manifest says of its files; they are checked when read.

    A forum's text settings are no part of it: a model reads texts in its own way.

    Raises:
        ModelError: the manifest cannot be read.
    """
    path = ModelLayout(folder).manifest
    try:
        manifest = Manifest.from_bytes(path.read_bytes())
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}", _MEND) from error
    except DamagedModelError as error:
        raise DamagedModelError(f"{path}: {error.message}", _MEND) from error
    described = json.dumps([ENCODING_VERSION, sorted(manifest.files.items())])
    return hashlib.blake2b(described.encode(), digest_size=8).hexdigest()


def describe(folder: Path) -> str:
    """Return the kind and size of the model in a folder, as in "rcnn, 400 dimensions"."""
    try:
        settings = ModelSettings.from_json(json.loads(ModelLayout(folder).config.read_bytes()))
    except (OSError, ValueError, SettingError):
        return "cannot be read"
    return f"{settings.encoder.kind}, {settings.encoder.hidden_size} dimensions"
