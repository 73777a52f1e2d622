"""A set of vectors: the vectors of a forum's questions by one model, and a copy of that model.

::

    vectors/
      current.json        which set answers; replaced in one step when another is complete
      encode.lock         held by the one process that makes or removes sets
      FINGERPRINT/
        model/            a copy of the model, so that its vectors answer until those of a new one are complete; the
                          set's name is this model's fingerprint, and with another model its vectors do not answer
        index/            a VectorIndex
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import filelock

from askalike.errors import DamagedForumError, DamagedModelError, ForumError, ModelError
from askalike.files import (
    Owned,
    foreign_in,
    is_link,
    remove_file,
    remove_owned,
    replace_whole,
    sync_folder,
    writing_whole,
)
from askalike.index.model_source import ModelSource, fingerprint
from askalike.index.states import KeptStates
from askalike.index.vectors import VectorIndex
from askalike.index.vectors import folder as orphaned_files
from askalike.index.vectors.folder import unread, writing
from askalike.models.encoders import folder as model_folder
from askalike.models.encoders.folder import MAX_BYTES
from askalike.models.encoders.model import Model

CURRENT_FILE = "current.json"
LOCK_FILE = "encode.lock"
FORMAT = 1
_SET = Owned(folders=(("model", model_folder.OWNED), ("index", orphaned_files.OWNED)))
OWNED = Owned(
    rf"{re.escape(CURRENT_FILE)}(\.\d+\.tmp)?|{re.escape(LOCK_FILE)}", ((r"[0-9a-f]{16}(\.\d+\.tmp)?", _SET),)
)
"""What lies in the folder of the sets."""
_TRIES = 3
_COPIED_AT_ONCE = 1 << 20
_REBUILD = 'rebuild the vectors with "askalike reindex FORUM"'


@dataclass(frozen=True, slots=True)
class Current:
    """Which set answers.

    Args:
        fingerprint: its folder's name.
        model: "own" or "general", as it was called when the set was made.
        switch: drawn anew at each switch, so that one to a set of the same name is noticed.
    """

    fingerprint: str
    model: str
    switch: str
    format: int = FORMAT

    def write(self, folder: Path) -> None:
        """Make this set the one that answers, at once and for good."""
        with writing(folder):
            replace_whole(folder / CURRENT_FILE, json.dumps(asdict(self)).encode())


def read_current(folder: Path) -> bytes | None:
    """Return the file that names the set which answers, None while there is none.

    Raises:
        DamagedForumError, ForumError: it cannot be read.
    """
    path = folder / CURRENT_FILE
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unread(path, error) from error


def parse_current(state: bytes, folder: Path) -> Current:
    """Return what the file's bytes say.

    Raises:
        DamagedForumError: nothing that can be used.
    """
    try:
        current = Current(**json.loads(state))
        if [type(value) for value in asdict(current).values()] != [str, str, str, int] or current.format != FORMAT:
            raise ValueError(f"it says {state[:200]!r}")
        if not current.fingerprint.isalnum():
            raise ValueError(f"{current.fingerprint[:80]!r} is no set's name")
    except (ValueError, TypeError, RecursionError) as error:
        raise DamagedForumError(f"{folder / CURRENT_FILE} cannot be read: {error}", _REBUILD) from error
    return current


class VectorSet:
    """One set; its model is read when it is first needed, where it is not given.

    Args:
        name: of the model, "own" or "general".

    Raises:
        DamagedForumError: its index cannot be read.
    """

    def __init__(self, folder: Path, name: str, model: Model | None = None) -> None:
        self.folder = folder
        self.name = name
        self.index = VectorIndex(folder / "index")
        self._loading = threading.Lock()
        self._model = model
        self._states: KeptStates | None = None

    @property
    def fingerprint(self) -> str:
        """Return what the set's model is known by."""
        return self.folder.name

    @property
    def model(self) -> Model:
        """Return the model.

        Raises:
            DamagedModelError: it cannot be read, or is not the one that made the vectors.
        """
        with self._loading:
            if self._model is None:
                try:
                    model = Model.load(self.folder / "model")
                except ModelError as error:
                    raise DamagedModelError(error.message, _REBUILD) from error
                if not has_its_model(self.folder):
                    raise DamagedModelError(f"the model in {self.folder} is not the one of its vectors", _REBUILD)
                self._model = model
            return self._model

    @property
    def states(self) -> KeptStates:
        """Return the states of words by the model, kept as they are asked for.

        Raises:
            DamagedModelError: as ``model``.
        """
        model = self.model
        with self._loading:
            if self._states is None:
                self._states = KeptStates(model)
            return self._states


def has_its_model(place: Path) -> bool:
    """Return whether the model in a set's folder is the one that its vectors are made by, as its manifest tells."""
    try:
        return fingerprint(place / "model") == place.name
    except ModelError:
        return False


def lock_of_makers(folder: Path) -> filelock.FileLock:
    """Return the lock of who makes or removes sets; whoever takes the index's lock too takes this one first.

    Raises:
        ForumError: the folder of the sets, or something in it that has a set's name, is a link.
    """
    for path in (folder, *(folder.iterdir() if folder.is_dir() else ())):
        if is_link(path) and (path == folder or OWNED.folder(path.name)):
            raise ForumError(
                f"{path} is a link, and vectors are neither made nor deleted through one",
                "put a folder in its place; to keep a forum on another disk, let the whole forum be a link",
            )
    with writing(folder):
        folder.mkdir(exist_ok=True)
    return filelock.FileLock(folder / LOCK_FILE, thread_local=False)


def make_set(folder: Path, source: ModelSource, last_change: int, *, is_new: bool) -> VectorSet:
    """Begin a set for a model, or open the one that was begun; the caller holds the lock of makers.

    Args:
        folder: of all sets.
        last_change: the archive's last change.
        is_new: begin its index anew, whatever is there.

    Raises:
        ModelError: the model cannot be read, or changed while it was copied.
        DamagedForumError: what is there cannot be read.
    """
    place = folder / source.fingerprint
    if not has_its_model(place):
        Model.load(source.folder)  # what is damaged is not copied
        with writing(place):
            _copy_model(source, place)
    index = place / "index"
    model = Model.load(place / "model")
    if is_new or not VectorIndex.exists(index):
        VectorIndex.create(index, model.dimensions, applied=last_change, fingerprint=source.fingerprint)
    return VectorSet(place, source.name, model)


def remove_sets(folder: Path, kept: Iterable[str]) -> None:
    """Delete all sets but those kept, and what killed makers left; the caller holds the lock of makers.

    Folders and files with other names than a set's are none of ours and stay.
    """
    names = set(kept)
    for path in folder.iterdir() if folder.is_dir() else ():
        owned = OWNED.folder(path.name)
        if owned is not None and path.name not in names:
            remove_owned(path, owned)  # who still reads it on Windows keeps it until the next time


def forget_sets(folder: Path) -> None:
    """Delete every set, whatever its state; the caller holds the locks of makers and of the index.

    Sets hold the locks of their writers, who need one of these two; the lock of makers stays, since it is held.
    """
    with writing(folder):
        remove_file(folder / CURRENT_FILE)  # first: it must not name what has gone
        sync_folder(folder)
        remove_sets(folder, ())


def _copy_model(source: ModelSource, place: Path) -> None:
    """Put a copy of the model into a new set, whole or not at all; what is written over the model leaves it alone."""
    temporary = place.with_name(f"{place.name}.{os.getpid()}.tmp")
    for _ in range(_TRIES):
        remove_owned(temporary, _SET)
        (temporary / "model").mkdir(parents=True)
        try:
            for name in MAX_BYTES:
                _copy(source.folder / name, temporary / "model" / name)
        except FileNotFoundError:
            continue  # another process is putting a new model there
        if fingerprint(temporary / "model") == source.fingerprint:
            sync_folder(temporary / "model")
            remove_owned(place, _SET)
            if (place / "model").exists():
                foreign = foreign_in(place / "model", model_folder.OWNED)
                raise ForumError(f"{[*foreign, place][0]} is in the way of the forum's vectors", "move it elsewhere")
            place.mkdir(exist_ok=True)
            (temporary / "model").rename(place / "model")
            temporary.rmdir()
            sync_folder(place)
            sync_folder(place.parent)
            return
    remove_owned(temporary, _SET)
    raise ModelError(f"the model in {source.folder} changed while it was copied", "try again")


def _copy(origin: Path, target: Path) -> None:
    with origin.open("rb") as content, writing_whole(target) as file:
        shutil.copyfileobj(content, file, _COPIED_AT_ONCE)
