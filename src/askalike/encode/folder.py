"""A model's folder, written whole or not at all, and read with every check that needs no knowledge of what is in it.

Enters: a path; contents. Leaves: files; contents. May import: layout, manifest, weights, errors,
removal.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.durable import sync_folder, writing_whole
from askalike.encode import weights
from askalike.encode.layout import MAX_BYTES, OWNED, Layout
from askalike.encode.manifest import AGAIN, FORMAT, Manifest, digest, json_bytes, json_object
from askalike.errors import (
    DamagedModelError,
    ModelError,
    ModelExistsError,
    ModelNotFoundError,
    ModelVersionError,
)
from askalike.removal import foreign_in, is_link, remove_owned

__all__ = ["UPGRADES", "Contents", "read_folder", "refuse_foreign", "upgrade_1_to_2", "write_folder"]


@dataclass(frozen=True, slots=True)
class Contents:
    """What a folder holds, before its meaning is checked.

    Args:
        config: the object of ``config.json``.
        vocabulary: the bytes of ``vocabulary.txt``.
        arrays: those of ``weights.safetensors``.
    """

    config: Mapping[str, object]
    vocabulary: bytes
    arrays: Mapping[str, NDArray[np.generic]]


def upgrade_1_to_2(contents: Contents) -> Contents:
    """Return a model of format 1 as one of format 2, which can read stems and can say how often its words occurred.

    What a model of format 1 reads are words as they are written; of their frequencies it says nothing.
    """
    return replace(contents, config={**contents.config, "stems": ""})


UPGRADES: Final[dict[int, Callable[[Contents], Contents]]] = {1: upgrade_1_to_2}
"""Format → what makes it the next one. The files of an older model stay as they are."""

_TRIES: Final = 3


def write_folder(path: Path, contents: Contents, manifest: Manifest) -> Manifest:
    """Write a model; one that is already there stands until the new one is on disk.

    Args:
        manifest: without ``format`` and ``files``, which are set here.

    Returns:
        The manifest as written.

    Raises:
        ModelExistsError: there is something else than a model at ``path``.
        ModelError: it cannot be written, and what was there stands as it was.
    """
    layout = Layout(Path(os.path.realpath(path)))
    files = {
        layout.weights.name: weights.to_bytes(contents.arrays),
        layout.vocabulary.name: contents.vocabulary,
        layout.config.name: json_bytes(contents.config),
    }
    hashes = {name: digest(data) for name, data in files.items()}
    manifest = replace(manifest, format=FORMAT, files=hashes)
    files[layout.manifest.name] = manifest.to_bytes()
    for name, data in files.items():
        if len(data) > MAX_BYTES[name]:
            raise ModelError(f"{name} has {len(data)} bytes, but expected at most {MAX_BYTES[name]}", "keep less in it")
    _refuse_something_else(layout)
    try:
        layout.folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f".{layout.folder.name}.", dir=layout.folder.parent, ignore_cleanup_errors=True
        ) as temporary:
            complete = Path(temporary) / layout.folder.name
            complete.mkdir()
            for name, data in files.items():
                with writing_whole(complete / name) as file:
                    file.write(data)
            sync_folder(complete)
            _put_in_place(complete, layout)
    except OSError as error:
        raise ModelError(
            f"{layout.folder} cannot be written: {error.strerror or error}", "check the rights and the free space"
        ) from error
    return manifest


def read_folder(path: Path) -> tuple[Manifest, Contents]:
    """Read a model's folder.

    Raises:
        ModelNotFoundError: there is no model at ``path``.
        ModelVersionError: its format is newer, or so old that no upgrade is left.
        DamagedModelError: a file is missing, too many, too large, or not what the manifest says.
        ModelError: a file cannot be read.
    """
    for _ in range(_TRIES):
        identity = _identity(path)
        try:
            with naming(path):
                return _read(path)
        except ModelError:
            if _identity(path) == identity:
                raise  # and not because another process put a new model here meanwhile
    with naming(path):
        return _read(path)


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let what is said of damage name the model's folder and what to do."""
    try:
        yield
    except DamagedModelError as error:
        if str(path) in error.message:
            raise
        raise DamagedModelError(f"{path}: {error.message}", error.hint or AGAIN) from error


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _read(path: Path) -> tuple[Manifest, Contents]:
    layout = Layout(Path(os.path.realpath(path)))
    if not layout.folder.exists() and layout.replaced.is_dir():
        layout = Layout(layout.replaced)  # whoever replaced it was stopped between two renames
    if not layout.manifest.exists():
        raise ModelNotFoundError(f"there is no model at {path}", "name the folder that holds manifest.json")
    try:
        manifest = Manifest.from_bytes(_read_capped(layout.manifest))
        if manifest.format > FORMAT or not _can_upgrade(manifest.format):
            raise ModelVersionError(
                f"{path} has format {manifest.format}, written by askalike {manifest.version[:40]}, but this version "
                f"reads format {FORMAT}",
                "upgrade askalike" if manifest.format > FORMAT else "train the model again",
            )
        found = {entry.name for entry in layout.folder.iterdir()}
        if found != set(MAX_BYTES):
            wrong = ", ".join(sorted(found ^ set(MAX_BYTES))[:10])
            raise DamagedModelError(f"{path}: missing or not part of a model: {wrong[:300]}", AGAIN)
        files = {name: _read_capped(layout.folder / name) for name in manifest.files}
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}", "check the rights") from error
    for name, data in files.items():
        if digest(data) != manifest.files[name]:
            raise DamagedModelError(f"{path}: {name} is not what manifest.json says (SHA-256)", AGAIN)
    contents = Contents(
        config=json_object(files[layout.config.name], layout.config.name),
        vocabulary=files[layout.vocabulary.name],
        arrays=weights.from_bytes(files[layout.weights.name]),
    )
    for number in range(manifest.format, FORMAT):
        contents = UPGRADES[number](contents)
    return manifest, contents


def _can_upgrade(number: int) -> bool:
    return all(step in UPGRADES for step in range(number, FORMAT))


def _read_capped(path: Path) -> bytes:
    """Return a file's bytes; pipes, folders and files beyond their cap are refused unread."""
    limit = MAX_BYTES[path.name]
    if path.exists() and not path.is_file():
        raise DamagedModelError(f"{path} is not a file", AGAIN)
    with path.open("rb") as file:
        data = file.read(limit + 1) if path.stat().st_size <= limit else None
    if data is None or len(data) > limit:
        raise DamagedModelError(f"{path} is larger than {limit} bytes", AGAIN)
    return data


def _refuse_something_else(layout: Layout) -> None:
    if not layout.folder.exists():
        return
    if not layout.folder.is_dir() or (not layout.manifest.exists() and any(layout.folder.iterdir())):
        raise ModelExistsError(f"{layout.folder} is there and is not a model", "name another path")
    refuse_foreign(layout.folder)
    refuse_foreign(layout.replaced)


def refuse_foreign(folder: Path) -> None:
    """Let no model be replaced or removed together with what is not a part of it.

    Raises:
        ModelExistsError: the folder is a link, or holds something else.
    """
    foreign = [folder] if is_link(folder) else foreign_in(folder, OWNED)
    if foreign:
        what = "is a link" if foreign[0] == folder else "is not part of a model"
        raise ModelExistsError(f"{foreign[0]} {what}, and would be deleted", "move it elsewhere")


def _put_in_place(complete: Path, layout: Layout) -> None:
    """Rename ``complete`` to the model's path. At every moment one whole model can be read there or beside it."""
    parent = layout.folder.parent
    if not layout.folder.exists():
        complete.rename(layout.folder)
        sync_folder(parent)
        remove_owned(layout.replaced, OWNED)
        return
    remove_owned(layout.replaced, OWNED)
    layout.folder.rename(layout.replaced)
    try:
        complete.rename(layout.folder)
    except OSError:
        layout.replaced.rename(layout.folder)
        raise
    sync_folder(parent)
    remove_owned(layout.replaced, OWNED)
