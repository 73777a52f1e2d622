"""A model's folder, written whole or not at all, and checked in every respect when it is read.

What kind of model is in it does not matter here: settings are understood by the caller, arrays are left to it. The time
of writing is not in the folder, so that the same training gives the same bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import safetensors
import safetensors.numpy
from msgspec import Meta
from numpy.typing import NDArray

from askalike._version import __version__
from askalike.errors import (
    DamagedModelError,
    ModelError,
    ModelExistsError,
    ModelNotFoundError,
    ModelVersionError,
    SettingError,
)
from askalike.files import Owned, foreign_in, is_link, remove_owned, sync_folder, writing_whole
from askalike.settings import Finite, check_fields, read_settings

MAX_BYTES: Final[dict[str, int]] = {
    "manifest.json": 1 << 16,
    "config.json": 1 << 16,
    "vocabulary.txt": 1 << 28,
    "weights.safetensors": 1 << 32,
}
"""File → its largest size. A folder holds exactly these files."""

OWNED: Final = Owned("|".join(map(re.escape, MAX_BYTES)))


class ModelLayout:
    """Where things are in a model's folder.

    ::

        MODEL/
          weights.safetensors   the encoder's parameters and `embedding`; `counts`, how often each word occurred in the
                                training texts, where that is known
          vocabulary.txt        one word a line; its line is its id, and its row of `embedding`
          config.json           the encoder and how texts are read
          manifest.json         format, version, what it was trained on, dev scores, hashes of the other files

    ``replaced`` is where the model before this one stands while a new one takes its place.
    """

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        self.weights: Final = folder / "weights.safetensors"
        self.vocabulary: Final = folder / "vocabulary.txt"
        self.config: Final = folder / "config.json"
        self.manifest: Final = folder / "manifest.json"
        self.replaced: Final = folder.with_name(f".{folder.name}.replaced")


AGAIN: Final = "take the model from where it came, or train it again"
"""What to do where a file of a model is damaged."""

FORMAT: Final = 3
"""The format that this version writes."""

_HASHED = sorted(set(MAX_BYTES) - {"manifest.json"})
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A model's manifest.

    Args:
        format: number of the folder's format.
        version: of askalike, which wrote it.
        training_data: SHA-256 of what it was trained on, or "" when unknown.
        dev_scores: measure → its value on the development set, finite.
        files: name of each other file → its SHA-256.
    """

    format: Annotated[int, Meta(ge=1, le=1_000_000)]
    version: str
    training_data: str
    dev_scores: Mapping[str, Finite] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self, "model ")
        if self.training_data and not _DIGEST.fullmatch(self.training_data):
            raise SettingError(
                f"model training_data is {self.training_data[:80]!r}, but expected a SHA-256 in hexadecimal or nothing"
            )
        if self.files and not (sorted(self.files) == _HASHED and all(map(_DIGEST.fullmatch, self.files.values()))):
            raise SettingError(f"hashes for {sorted(self.files)}, but expected a SHA-256 for each of {_HASHED}")

    @classmethod
    def of_origin(cls, training_data: str, dev_scores: Mapping[str, float] | None = None) -> Manifest:
        """Return the manifest of a model that is not in a folder yet.

        Raises:
            SettingError: an origin that cannot be.
        """
        return cls(FORMAT, __version__, training_data, dict(dev_scores or {}))

    def to_bytes(self) -> bytes:
        """Return the file."""
        return json_bytes(asdict(self))

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """Return the manifest of a file. Its format may be any: only the caller knows which can be read.

        Raises:
            DamagedModelError: not what ``to_bytes`` writes.
        """
        try:
            manifest = read_settings(cls, json_object(data, "manifest.json"), "manifest.json")
        except SettingError as error:
            raise DamagedModelError(error.message, AGAIN) from error
        if not manifest.files:
            raise DamagedModelError(f"manifest.json has hashes for no file, but expected {', '.join(_HASHED)}", AGAIN)
        return manifest


def digest(data: bytes) -> str:
    """Return the SHA-256 of ``data`` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def json_bytes(value: Mapping[str, object]) -> bytes:
    """Return ``value`` as JSON: sorted, so that equal values are equal bytes."""
    return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode()


def json_object(data: bytes, name: str) -> dict[str, object]:
    """Return the JSON object in ``data``.

    Raises:
        DamagedModelError: it is not one.
    """
    try:
        content = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
        raise DamagedModelError(f"{name} is not JSON: {reason}", AGAIN) from error
    if not isinstance(content, dict):
        raise DamagedModelError(f"{name} holds no JSON object", AGAIN)
    return content


_TYPES: Final[dict[str, type[np.generic]]] = {"F32": np.float32, "F16": np.float16, "I8": np.int8, "I64": np.int64}
_MAX_HEADER_BYTES: Final = 1 << 16


def to_safetensors(arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
    """Return the bytes of a safetensors file: the same for the same arrays."""
    return safetensors.numpy.save({name: np.ascontiguousarray(arrays[name]) for name in sorted(arrays)})


def from_safetensors(data: bytes) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of a safetensors file, which may be hostile.

    Raises:
        DamagedModelError: not a safetensors file, a header that is too long, or an array of another type than
            float32, float16, int8 or int64.
    """
    length = int.from_bytes(data[:8], "little")
    if length > _MAX_HEADER_BYTES:
        raise DamagedModelError(
            f"weights.safetensors has a header of {length} bytes, but expected at most {_MAX_HEADER_BYTES}", AGAIN
        )
    try:
        tensors = safetensors.deserialize(data)  # type: ignore[no-untyped-call]
    except (safetensors.SafetensorError, ValueError, OverflowError) as error:
        raise DamagedModelError(f"weights.safetensors cannot be read: {str(error)[:200]}", AGAIN) from error
    arrays: dict[str, NDArray[np.generic]] = {}
    for name, entry in tensors:
        dtype, shape = _TYPES.get(entry["dtype"]), tuple(entry["shape"])
        if dtype is None or not prod(shape):
            what = f"{entry['dtype']} {shape} for {name[:40]!r}"
            raise DamagedModelError(f"weights.safetensors holds {what}, but expected {', '.join(_TYPES)}", AGAIN)
        arrays[name] = np.frombuffer(entry["data"], dtype=dtype).reshape(shape)
    return arrays


@dataclass(frozen=True, slots=True)
class Contents:
    """What a folder holds, before its meaning is checked."""

    config: Mapping[str, object]
    vocabulary: bytes
    arrays: Mapping[str, NDArray[np.generic]]


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
    files = {
        "weights.safetensors": to_safetensors(contents.arrays),
        "vocabulary.txt": contents.vocabulary,
        "config.json": json_bytes(contents.config),
    }
    manifest = replace(manifest, format=FORMAT, files={name: digest(data) for name, data in files.items()})
    _write_files(path, {**files, "manifest.json": manifest.to_bytes()})
    return manifest


def copy_folder(origin: Path, path: Path) -> None:
    """Write a copy of a model, as ``write_folder``; what is damaged is not copied.

    Raises:
        ModelError: as ``read_folder`` and ``write_folder``.
    """
    manifest, files = _read_settled(origin)
    _write_files(path, {**files, "manifest.json": manifest.to_bytes()})


def _write_files(path: Path, files: Mapping[str, bytes]) -> None:
    layout = ModelLayout(Path(os.path.realpath(path)))
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


def read_folder(path: Path) -> tuple[Manifest, Contents]:
    """Read a model's folder.

    Raises:
        ModelNotFoundError: there is no model at ``path``.
        ModelVersionError: it has another format.
        DamagedModelError: a file is missing, too many, too large, or not what the manifest says.
        ModelError: a file cannot be read.
    """
    manifest, files = _read_settled(path)
    with naming(path):
        config = json_object(files["config.json"], "config.json")
        return manifest, Contents(config, files["vocabulary.txt"], from_safetensors(files["weights.safetensors"]))


def _read_settled(path: Path) -> tuple[Manifest, dict[str, bytes]]:
    """Return the manifest and the other files, again where another process put a new model here meanwhile."""
    for _ in range(_TRIES):
        identity = _identity(path)
        try:
            with naming(path):
                return _read(path)
        except ModelError:
            if _identity(path) == identity:
                raise
    with naming(path):
        return _read(path)


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let what is said of damage name the model's folder and what to do; settings that cannot be used are damage."""
    try:
        yield
    except SettingError as error:
        raise DamagedModelError(f"{path}: config.json: {error.message}", error.hint) from error
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


def _read(path: Path) -> tuple[Manifest, dict[str, bytes]]:
    layout = ModelLayout(Path(os.path.realpath(path)))
    if not layout.folder.exists() and layout.replaced.is_dir():
        layout = ModelLayout(layout.replaced)  # whoever replaced it was stopped between two renames
    if not layout.manifest.exists():
        raise ModelNotFoundError(
            f"there is no model at {path}",
            "name a folder with manifest.json (a model that askalike trained) or config.json (a sentence transformer)",
        )
    try:
        manifest = Manifest.from_bytes(_read_capped(layout.manifest))
        if manifest.format != FORMAT:
            raise ModelVersionError(
                f"{path} has format {manifest.format}, written by askalike {manifest.version[:40]}, expected {FORMAT}",
                "train the model again",
            )
        present = {entry.name for entry in layout.folder.iterdir()}
        if present != set(MAX_BYTES):
            wrong = ", ".join(sorted(present ^ set(MAX_BYTES))[:10])
            raise DamagedModelError(f"{path}: missing or not part of a model: {wrong[:300]}", AGAIN)
        files = {name: _read_capped(layout.folder / name) for name in manifest.files}
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}", "check the rights") from error
    for name, data in files.items():
        if digest(data) != manifest.files[name]:
            raise DamagedModelError(f"{path}: {name} is not what manifest.json says (SHA-256)", AGAIN)
    return manifest, files


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


def _refuse_something_else(layout: ModelLayout) -> None:
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


def _put_in_place(complete: Path, layout: ModelLayout) -> None:
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
