"""Which encoder or model makes a forum's vectors: the one that was named, the forum's own, or the package's."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from askalike.data import GENERAL_LANGUAGE
from askalike.errors import DamagedModelError, ModelError, SettingError
from askalike.files import remove_file, remove_owned, replace_whole, sync_folder
from askalike.models.adapted import KIND as ADAPTED
from askalike.models.adapted import kind_of
from askalike.models.encoder_settings import EncoderSettings, bundled_settings, read_settings
from askalike.models.encoders.settings import ModelSettings
from askalike.models.folder import OWNED, Manifest, ModelLayout, refuse_foreign
from askalike.store import ForumLayout

MODEL_VERSION = 1
"""Raised whenever the same question and model give another vector than before, so that vectors are made anew."""

OWN_NAMES: Final = ("own", "adapted")
"""What a forum's own model is called: a network, and the bundled encoder as it was adapted."""

_MEND = "put a whole model there, or delete the folder"


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model's folder, or a text encoder.

    Args:
        folder: of the model; of the forum where a text encoder makes the vectors.
        name: as ``name_of`` gives it, or what the encoder calls itself.
        fingerprint: of its content, and of how questions are encoded.
        encoder: the text encoder, None for the forum's own model.
    """

    folder: Path
    name: str
    fingerprint: str
    encoder: EncoderSettings | None = None

    @property
    def shown(self) -> str:
        """Return its name with its kind and size."""
        return f"{self.name} ({describe(self.folder)})" if self.encoder is None else self.encoder.shown


def wanted_model(layout: ForumLayout, language: str) -> ModelSource | None:
    """Return the encoder that was named for the forum, else its own model, else the package's encoder where that reads
    the forum's language, else None.

    Raises:
        ModelError: a model is there and its manifest cannot be read.
        EncoderError: an encoder was named, and its settings cannot be read.
    """
    named = read_settings(layout.encoder)
    if named is None and (own := own_model(layout)) is not None:
        return own
    if named is None and language == GENERAL_LANGUAGE:
        named = bundled_settings()
    return None if named is None else ModelSource(layout.folder, named.name, named.fingerprint, named)


def own_model(layout: ForumLayout) -> ModelSource | None:
    """Return the forum's own model, if it has one.

    Raises:
        ModelError: its manifest cannot be read.
    """
    own = ModelLayout(layout.model)
    folder = own.folder if own.folder.is_dir() else own.replaced  # replaced: see models.folder
    return ModelSource(folder, name_of(folder), fingerprint(folder)) if folder.is_dir() else None


def name_of(folder: Path) -> str:
    """Return what the forum's model in a folder is called: "adapted" where it is the bundled encoder, else "own"."""
    return "adapted" if kind_of(folder) == ADAPTED else "own"


def name_encoder(layout: ForumLayout, settings: EncoderSettings) -> None:
    """Let the forum be encoded with a text encoder from now on; the vectors before answer until its own are made."""
    replace_whole(layout.encoder, settings.to_bytes())


def forget_encoder(layout: ForumLayout) -> None:
    """Let the forum be encoded with its own model or the general one again."""
    remove_file(layout.encoder)
    sync_folder(layout.folder)


def remove_own_model(layout: ForumLayout) -> None:
    """Take the forum's own model and encoder away; what answers now does until other vectors are made.

    Raises:
        ModelExistsError: its folder is a link, or holds something else too.
    """
    forget_encoder(layout)
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
    described = json.dumps([MODEL_VERSION, sorted(manifest.files.items())])
    return hashlib.blake2b(described.encode(), digest_size=8).hexdigest()


def describe(folder: Path) -> str:
    """Return the kind and size of the model in a folder, as in "rcnn, 400 dimensions"."""
    if kind_of(folder) == ADAPTED:
        return "the bundled encoder, trained on the forum"
    try:
        settings = ModelSettings.from_json(json.loads(ModelLayout(folder).config.read_bytes()))
    except (OSError, ValueError, SettingError):
        return "cannot be read"
    return f"{settings.encoder.kind}, {settings.encoder.hidden_size} dimensions"
