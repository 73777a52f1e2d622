"""A set of vectors: the vectors of a forum's questions by one model, and that model.

::

    vectors/
      current.json        which set answers; replaced in one step when another is complete
      encode.lock         held by the one process that makes or removes sets
      FINGERPRINT/
        model/            a copy of the model, so that its vectors answer until those of a new one are complete; the
                          set's name is this model's fingerprint, and with another model its vectors do not answer
        encoder.json      in its place where a text encoder makes the vectors: which, and how it is asked
        index/            a VectorIndex
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import filelock
import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import ArrayLike, NDArray

from askalike.data import GENERAL_CODE
from askalike.errors import DamagedForumError, DamagedModelError, EncoderError, ForumError, ModelError
from askalike.files import Owned, is_link, remove_file, remove_owned, replace_whole, sync_folder
from askalike.index.catchup import EntryWriter, Index
from askalike.index.checked_file import unread
from askalike.index.model_source import ModelSource, describe, fingerprint
from askalike.index.segments import OWNED as INDEX_FILES
from askalike.index.segments import writing
from askalike.index.vectors import VectorIndex
from askalike.models.adapted import AdaptedEncoder, load_model
from askalike.models.encoder_settings import FILE as ENCODER_FILE
from askalike.models.encoder_settings import EncoderSettings, read_settings
from askalike.models.encoders.model import Model
from askalike.models.folder import OWNED as MODEL_FILES
from askalike.models.folder import copy_folder
from askalike.models.text_encoder import TextEncoder
from askalike.models.text_questions import QuestionEncoder, TextQuestions, loaded, problem_of
from askalike.processes import one_blas_thread
from askalike.store.values import RecordKind
from askalike.types import Question

CURRENT_FILE = "current.json"
LOCK_FILE = "encode.lock"
_COPIES = Owned(MODEL_FILES.files, (("model", MODEL_FILES),))
_SET = Owned(
    rf"{re.escape(ENCODER_FILE)}(\.\d+\.tmp)?",
    (("model", MODEL_FILES), (r"\.model\..+", _COPIES), ("index", INDEX_FILES)),
)
OWNED = Owned(rf"{re.escape(CURRENT_FILE)}(\.\d+\.tmp)?|{re.escape(LOCK_FILE)}", ((r"[0-9a-f]{16}", _SET),))
"""What lies in the folder of the sets."""
_REBUILD = 'rebuild the vectors with "askalike reindex FORUM"'


class Current(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which set answers.

    Args:
        fingerprint: its folder's name.
        model: "own" or the encoder's name, as it was called when the set was made.
        switch: drawn anew at each switch, so that one to a set of the same name is noticed.
    """

    fingerprint: Annotated[str, Meta(pattern=r"^[0-9A-Za-z]+\Z")]
    model: str
    switch: str
    format: Literal[1] = 1

    def write(self, folder: Path) -> None:
        """Make this set the one that answers, at once and for good."""
        with writing(folder):
            replace_whole(folder / CURRENT_FILE, msgspec.json.encode(self))


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
        return msgspec.json.decode(state, type=Current)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise DamagedForumError(f"{folder / CURRENT_FILE} cannot be read: {error}", _REBUILD) from error


class VectorEntryWriter(EntryWriter, Protocol):
    """Writes the vectors of questions."""

    def put(
        self,
        nums: Sequence[int],
        vectors: NDArray[np.float32],
        questions: Mapping[int, Question],
    ) -> None:
        """Add vectors (n, D) of questions, or replace those with their numbers."""


class VectorEntries(Index, Protocol):
    """The vectors of questions, as an index."""

    @property
    def dimensions(self) -> int:
        """Return D."""

    @property
    def followed(self) -> Sequence[RecordKind]:
        """Return the kinds of changes that it follows."""

    def snapshot(self) -> Any:
        """Return one state of it, for the engine of the same kind."""

    def vectors(self, nums: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return those of the numbers that are there, in the order given, and their vectors (n, D) of length 1."""

    def numbers(self) -> NDArray[np.int64]:
        """Return the numbers of all entries, ascending."""

    def check(self) -> None:
        """Raise DamagedForumError where it does not hold what was written, so far as that is this machine's to know."""

    def writing(self, patience_s: float = 0) -> AbstractContextManager[VectorEntryWriter]:
        """Give the writer; raise BusyForumError where another is open for longer."""


class VectorIndexes(Protocol):
    """Where the vectors of sets are, each known by its set's folder."""

    is_shared: bool
    """Whether other machines write there too, so that a set may have vectors and no model here."""

    def exists(self, place: Path) -> bool:
        """Return whether the set's index was begun."""

    def open(self, place: Path) -> VectorEntries:
        """Return the set's index."""

    def create(self, place: Path, dimensions: int, *, applied: int, fingerprint: str) -> object:
        """Make an empty index in place of whatever is there."""

    def sweep(self, kept: Sequence[str]) -> None:
        """Remove what lies outside the sets' folders and nobody uses, but the vectors of these sets."""


class LocalVectorIndexes:
    """The indexes of sets in the sets' own folders."""

    is_shared = False

    def sweep(self, kept: Sequence[str]) -> None:
        """Do nothing: an index goes with its set's folder."""

    def exists(self, place: Path) -> bool:
        """Return whether the set's index was begun."""
        return VectorIndex.exists(place / "index")

    def open(self, place: Path) -> VectorIndex:
        """Return the set's index."""
        return VectorIndex(place / "index")

    def create(self, place: Path, dimensions: int, *, applied: int, fingerprint: str) -> object:
        """Make an empty index in place of whatever is there."""
        return VectorIndex.create(place / "index", dimensions, applied=applied, fingerprint=fingerprint)


def languages_read(settings: EncoderSettings | None) -> tuple[str, ...]:
    """Return the codes of the languages that a set's encoder reads; () for all of a forum's."""
    return (GENERAL_CODE,) if settings is not None and settings.kind == "general" else ()


class VectorSet:
    """One set; its model or encoder is read when it is first needed, where it is not given.

    Args:
        name: "own", or that of the encoder.
        model: the forum's own model, where it is read already.
        encoder: the text encoder, where it is there already; taken only if its vectors are of one.
        indexes: where its vectors are; None for its folder.

    Raises:
        DamagedForumError: its index cannot be read.
        EncoderError: its encoder's settings cannot be read.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        model: Model | AdaptedEncoder | None = None,
        encoder: TextEncoder | None = None,
        indexes: VectorIndexes | None = None,
    ) -> None:
        self.folder = folder
        self.name = name
        self.settings: EncoderSettings | None = read_settings(folder / ENCODER_FILE)
        self._object = encoder
        self.index = (indexes or LocalVectorIndexes()).open(folder)
        if (
            self.settings is not None
            and self.index.cursor.is_complete
            and self.settings.dimensions != self.index.dimensions
        ):
            raise DamagedForumError(
                f"{folder} holds vectors of {self.index.dimensions} dimensions, and its encoder gives"
                f" {self.settings.dimensions}",
                _REBUILD,
            )
        self._loading = threading.Lock()
        self._encoder: QuestionEncoder | None = model

    @property
    def fingerprint(self) -> str:
        """Return what the set's model is known by."""
        return self.folder.name

    @property
    def shown(self) -> str:
        """Return the name of the model or encoder, with its kind and size."""
        return f"{self.name} ({describe(self.folder / 'model')})" if self.settings is None else self.settings.shown

    @property
    def dimensions(self) -> int:
        """Return D.

        Raises:
            DamagedModelError: as ``encoder``.
        """
        return self.encoder.dimensions if self.settings is None else self.settings.dimensions

    @property
    def problem(self) -> EncoderError | None:
        """Return what keeps the encoder of the vectors from being used, as far as a look at it tells."""
        return None if self.settings is None or self._object is not None else problem_of(self.settings)

    @property
    def languages(self) -> tuple[str, ...]:
        """Return the codes of the languages whose questions are encoded; () for all of the forum's."""
        return languages_read(self.settings)

    @property
    def encoder(self) -> QuestionEncoder:
        """Return what makes the vectors.

        Raises:
            DamagedModelError: the model cannot be read, or is not the one that made the vectors.
            EncoderError: the text encoder cannot be had, or is another one than it was.
        """
        with self._loading:
            if self._encoder is None:
                if self.settings is None:
                    self._encoder = model_in(self.folder)
                else:
                    self._encoder = TextQuestions(self._object or loaded(self.settings), self.settings)
            return self._encoder

    def encode(self, questions: Sequence[Question]) -> NDArray[np.float32]:
        """Return the vectors of questions, as they are stored.  # (N, D)

        Raises:
            ModelError: the model cannot be read.
            EncoderError: the encoder cannot be had, does not answer, or gave something else than vectors.
        """
        with one_blas_thread():
            return self.encoder.encode(questions)

    def encode_queries(self, questions: Sequence[Question]) -> NDArray[np.float32]:
        """Return the vectors of what is searched for; see ``encode``.  # (N, D)"""
        with one_blas_thread():
            return self.encoder.encode_queries(questions)

    def reads(self, text: str) -> bool:
        """Return whether the encoder knows a text's language; the forum's own model was trained on it.

        Raises:
            EncoderError: the encoder cannot be had.
        """
        encoder = self.encoder
        return not isinstance(encoder, TextQuestions) or encoder.reads(text)

    def known_words(self, question: Question) -> list[str] | None:
        """Return the words of a question that the forum's own model knows; None where a text encoder reads it."""
        encoder = self.encoder
        return encoder.known_words(question) if isinstance(encoder, Model | AdaptedEncoder) else None


def is_set(path: Path) -> bool:
    """Return whether a path is the folder of a set, whole or not."""
    return re.fullmatch(r"[0-9a-f]{16}", path.name) is not None and path.is_dir() and not is_link(path)


def model_in(place: Path) -> Model | AdaptedEncoder:
    """Return the model of a set.

    Raises:
        DamagedModelError: it cannot be read, or is not the one that made the vectors.
    """
    try:
        model = load_model(place / "model")
    except ModelError as error:
        raise DamagedModelError(error.message, _REBUILD) from error
    if not has_its_model(place):
        raise DamagedModelError(f"the model in {place / 'model'} is not the one of its vectors", _REBUILD)
    return model


def has_its_model(place: Path) -> bool:
    """Return whether the model or encoder in a set's folder is the one that its vectors are made by, as it says."""
    try:
        named = read_settings(place / ENCODER_FILE)
        if named is not None:
            return named.fingerprint == place.name
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


def make_set(
    folder: Path,
    source: ModelSource,
    last_change: int,
    *,
    is_new: bool,
    encoder: TextEncoder | None = None,
    indexes: VectorIndexes | None = None,
) -> VectorSet:
    """Begin a set for a model or encoder, or open the one that was begun; the caller holds the lock of makers.

    Args:
        folder: of all sets.
        last_change: the archive's last change.
        is_new: begin its index anew, whatever is there.
        encoder: the source's, where it is there already.

    Raises:
        ModelError: the model cannot be read, or changed while it was copied.
        DamagedForumError: what is there cannot be read.
    """
    place = folder / source.fingerprint
    indexes = indexes or LocalVectorIndexes()
    model: Model | AdaptedEncoder | None = None
    if source.encoder is None:
        model = load_model(source.folder)  # what is damaged is not copied
        copy_model(source, place)
        dimensions = model.dimensions
    else:
        dimensions = source.encoder.dimensions
        with writing(place):
            place.mkdir(exist_ok=True)
            is_same = has_its_model(place) and read_settings(place / ENCODER_FILE) == source.encoder
            if not is_same:  # it may lie elsewhere now
                replace_whole(place / ENCODER_FILE, source.encoder.to_bytes())
            sync_folder(place.parent)
    if is_new or not indexes.exists(place):
        indexes.create(place, dimensions, applied=last_change, fingerprint=source.fingerprint)
    return VectorSet(place, source.name, model, encoder=encoder, indexes=indexes)


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


def copy_model(source: ModelSource, place: Path) -> None:
    """Put a copy of the model into a set, whole or not at all; what is written over the model leaves it alone.

    The caller holds the lock of makers.

    Raises:
        ModelError: the model cannot be read, changed while it was copied, or cannot be written.
        ForumError: the set's folder cannot be made.
    """
    if has_its_model(place):
        return
    with writing(place):
        place.mkdir(exist_ok=True)
        for path in place.glob(".model.*"):  # of a copy that was killed
            remove_owned(path, _COPIES)
        copy_folder(source.folder, place / "model")
        sync_folder(place.parent)
    if fingerprint(place / "model") != source.fingerprint:
        raise ModelError(f"the model in {source.folder} changed while it was copied", "try again")
