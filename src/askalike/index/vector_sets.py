"""The vectors of a forum: which set of them answers, and the making of another when the model changes.

::

    no set ──encode──▶ set of model A answers ──a new model──▶ A answers, B is made ──complete──▶ B answers, A is gone

Changes reach the set that answers as they reach the word index. What would take long is left to ``encode``: until
then questions are found by their words, and ``state`` says how many wait. Where no set answers yet, searches use what
the first one has so far, the newest questions. A process that is killed leaves either the old set answering or the new
one; making a set goes on from its cursor.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import filelock
import msgspec
import numpy as np
from numpy.typing import NDArray

from askalike.errors import (
    BusyForumError,
    DamagedForumError,
    EncoderError,
    ModelNotFoundError,
)
from askalike.executors import Executor, Numbered, Task
from askalike.executors.processes import Processes
from askalike.files import holding
from askalike.index.catchup import Indexer, Steps, catch_up, pending
from askalike.index.model_source import ModelSource, name_encoder, name_of, wanted_model
from askalike.index.vector_set import (
    Current,
    LocalVectorIndexes,
    VectorEntries,
    VectorEntryWriter,
    VectorIndexes,
    VectorSet,
    has_its_model,
    is_set,
    lock_of_makers,
    make_set,
    model_in,
    parse_current,
    read_current,
    remove_sets,
)
from askalike.models.encoder_settings import FILE as ENCODER_FILE
from askalike.models.encoder_settings import EncoderSettings, Kind, read_settings
from askalike.models.text_encoder import TextEncoder
from askalike.models.text_questions import TextQuestions, probed_encoder
from askalike.progress import Progress
from askalike.store import ForumLayout, Store
from askalike.text.settings import TextSettings
from askalike.types import Question


class Pace(NamedTuple):
    """How a forum is encoded by a kind of encoder.

    Args:
        at_once: questions that are encoded when a forum is opened or changed; more is left to ``encode``.
        steps: about a second of encoding on one core; who stops it loses the batch that is being encoded alone.
    """

    at_once: int
    steps: Steps


OWN_PACE: Final = Pace(2_000, Steps(batch=1_024, scan=8_192, changes=1_024))
"""By a forum's own model."""
OTHER_PACE: Final = Pace(64, Steps(batch=64, scan=64, changes=64))
PACES: Final[Mapping[Kind, Pace]] = {
    "general": Pace(256, Steps(batch=256, scan=256, changes=256)),  # a larger batch is sorted better by length
    "openai": OTHER_PACE._replace(at_once=0),  # no endpoint is called when a forum is opened or changed
}
"""By text encoders, other kinds as ``OTHER_PACE``."""

Locked = Callable[[], AbstractContextManager[None]]
"""Holds the lock of who writes the indexes that answer."""


EncodedVectors = tuple[list[int], NDArray[np.float32]]
"""Numbers of questions, and their vectors.  # (N,), (N, D)"""

PATIENCE_S = 10.0
"""How long to wait for another writer."""

_DECODER = msgspec.msgpack.Decoder(tuple[list[int], bytes])


def vector_indexer(
    vectors: VectorSet, text: TextSettings, executor: Executor | None = None
) -> Indexer[VectorEntryWriter, EncodedVectors]:
    """Return the index of a set, and what makes its vectors; an encoder that only this process has makes them here.

    Making them raises ModelError where the set's model cannot be read.
    """
    settings = vectors.settings
    module = "" if settings is not None and settings.kind == "python" else __name__
    encoder = "" if settings is None else settings.to_bytes().decode()
    order = json.dumps([str(vectors.folder.resolve()), encoder, vectors.languages, text.to_json()])

    def encode(questions: Numbered) -> EncodedVectors:
        read = encoded(questions, text, vectors.languages)
        if not read:  # no encoder is called for nothing
            return [], np.empty((0, 0), np.float32)
        return [num for num, _ in read], vectors.encode([question for _, question in read])

    def unpacked(packed: bytes) -> EncodedVectors:
        nums, content = _DECODER.decode(packed)
        return nums, np.frombuffer(content, "<f4").reshape(len(nums), vectors.dimensions)

    return Indexer(
        "encoding",
        vectors.index,
        partial(vectors.index.writing, PATIENCE_S),
        Task(encode, module, order, unpacked, has_threads=settings is not None),
        _put,
        pace_of(settings).steps,
        executor or Processes(),
        vectors.index.followed,
    )


def _put(writer: VectorEntryWriter, questions: Numbered, entries: EncodedVectors) -> None:
    """Write vectors, to an engine with what filters ask of their questions; what has none loses one it had."""
    if gone := {num for num, _ in questions}.difference(entries[0]):
        writer.remove(sorted(gone))
    if entries[0]:
        writer.put(*entries, dict(questions))


def encoded(questions: Numbered, text: TextSettings, by: Sequence[str]) -> Numbered:
    """Return those of the questions that an encoder of some languages encodes."""
    return [numbered for numbered in questions if text.is_encoded(numbered[1].language, by)]


def preparing(order: str) -> Callable[[Numbered], bytes]:
    """Return what makes packed vectors as a set has them, as ``executors.Task`` asks for it.

    Raises:
        DamagedModelError, EncoderError: the encoder cannot be had, or is another one here.
    """
    folder, encoder, by, stored = json.loads(order)
    text = TextSettings.from_json(stored)
    encode = _encoder_of(EncoderSettings.from_bytes(encoder.encode())) if encoder else model_in(Path(folder)).encode

    def packed(questions: Numbered) -> bytes:
        read = encoded(questions, text, by)
        vectors = encode([question for _, question in read]).astype("<f4").tobytes() if read else b""
        return msgspec.msgpack.encode(([num for num, _ in read], vectors))

    return packed


def _encoder_of(settings: EncoderSettings) -> Callable[[Sequence[Question]], NDArray[np.float32]]:
    """Return what encodes as the set's text encoder does."""
    encoder, here = probed_encoder(settings)
    if here.fingerprint != settings.fingerprint:
        raise EncoderError(
            f"{settings.written} is {here.name} on this machine, and the vectors are by {settings.name}",
            "put the same model on every machine",
        )
    return TextQuestions(encoder, settings).encode


@dataclass(frozen=True, slots=True)
class VectorsState:
    """How far the vectors have come.

    Args:
        model: what answers, such as "own (rcnn, 400 dimensions)"; "" where words alone do.
        entries: vectors in the set that answers.
        next_model: the model whose vectors are still to be made, or "".
        next_entries: vectors by the next model that are made already; they answer when all are.
        waiting: questions and changes that are still to be encoded, for the model that is wanted.
        problem: what keeps queries from being encoded, so that words alone answer, and what mends it; or "".
    """

    model: str = ""
    entries: int = 0
    next_model: str = ""
    waiting: int = 0
    next_entries: int = 0
    problem: str = ""

    @property
    def is_behind(self) -> bool:
        """Return whether anything is still to be encoded."""
        return bool(self.waiting)


class Vectors:
    """The sets of vectors in a forum's folder; any thread may ask, one process at a time makes a set.

    All is encoded that the forum's model or encoder reads.
    """

    def __init__(
        self,
        layout: ForumLayout,
        log: Store,
        text: TextSettings,
        indexes: VectorIndexes | None = None,
        executor: Executor | None = None,
    ) -> None:
        self._executor = executor
        self._indexes: VectorIndexes = indexes or LocalVectorIndexes()
        self._layout = layout
        self._folder = layout.vectors
        self._log = log
        self._text, self._language = text, text.model_language
        self._opening = threading.Lock()
        self._seen: bytes | None = None
        self._answering: VectorSet | None = None
        self._object: tuple[str, TextEncoder] | None = None
        self._first: VectorSet | None = None

    def use_encoder(self, settings: EncoderSettings, encoder: TextEncoder, *, is_named: bool = True) -> None:
        """Let the forum be encoded with a text encoder, which is there already.

        Args:
            is_named: False where the forum names it already.
        """
        if is_named:
            name_encoder(self._layout, settings)
        with self._opening:
            self._object = (settings.fingerprint, encoder)
            self._seen = None  # the set that answers may be its own

    def _encoder(self, fingerprint: str) -> TextEncoder | None:
        return self._object[1] if self._object is not None and self._object[0] == fingerprint else None

    @property
    def can_encode(self) -> bool:
        """Return whether there is a model or an encoder to encode with.

        Raises:
            ModelError, EncoderError: as ``wanted_model``.
        """
        return wanted_model(self._layout, self._language) is not None

    def answering(self) -> VectorSet | None:
        """Return the set that answers, as it is on disk now; None where words alone do.

        Raises:
            DamagedForumError: its files are damaged.
        """
        state = read_current(self._folder)
        if state != self._seen:
            with self._opening:
                if state != self._seen:
                    self._answering = None if state is None else self._open(state)
                    self._seen = state
        answering = self._answering
        if answering is not None:
            answering.index.refresh()
            if not answering.index.cursor.is_complete:  # an engine has lost it
                with self._opening:
                    self._answering, self._seen = None, None
                return None
        return answering

    def answering_or_first(self) -> VectorSet | None:
        """Return the set that searches use: the one that answers, or the first while it is made, if it has vectors.

        Raises:
            DamagedForumError: the files of the set that answers are damaged.
        """
        if (answering := self.answering()) is not None:
            self._first = None
            return answering
        try:
            first = self._first
            if first is None or not first.folder.is_dir():
                first = self._first = self._begun_first()
            if first is None:
                return None
            first.index.refresh()
        except (DamagedForumError, EncoderError):  # it may be removed just now; who makes it says what is wrong
            return None
        return first if first.index.entries else None

    def _begun_first(self) -> VectorSet | None:
        """Return the set that was begun last, if its vectors are of questions that are there."""
        places = [path for path in self._folder.iterdir() if is_set(path)] if self._folder.is_dir() else []
        for place in sorted(places, key=lambda path: path.stat().st_mtime, reverse=True):
            if self._indexes.exists(place) and has_its_model(place):
                settings = read_settings(place / ENCODER_FILE)
                name = name_of(place / "model") if settings is None else settings.name
                vectors = VectorSet(place, name, encoder=self._encoder(place.name), indexes=self._indexes)
                is_of_store = vectors.index.cursor.can_catch_up(place.name, self._log.last_change())
                return vectors if is_of_store else None
        return None

    def _open(self, state: bytes) -> VectorSet | None:
        """Open the set that the file names.

        None where it belongs to a newer archive than this, is not complete, or has another model than its own.
        """
        current = parse_current(state, self._folder)
        place = self._folder / current.fingerprint
        try:
            encoder = self._encoder(current.fingerprint)
            vectors = VectorSet(place, current.model, encoder=encoder, indexes=self._indexes)
            cursor, last = vectors.index.cursor, self._log.last_change()
            if cursor.is_complete and cursor.can_catch_up(current.fingerprint, last) and has_its_model(place):
                return vectors
        except EncoderError:
            pass  # its settings are damaged: as another model than its own
        except DamagedForumError:
            if read_current(self._folder) == state:
                raise
        newer = read_current(self._folder)
        return None if newer in (None, state) else self._open(newer)  # it was removed while it was opened

    def follow(self, progress: Progress) -> None:
        """Bring the set that answers in step, or make one, where that is soon done; the caller holds the lock.

        What an encoder that cannot be had would encode waits, and ``state`` says why.

        Raises:
            ModelError, DamagedForumError: a model or a set cannot be read.
        """
        answering = self.answering()
        if answering is not None and self._waiting(answering.index) <= pace_of(answering.settings).at_once:
            with suppress(EncoderError):
                catch_up(self._log, vector_indexer(answering, self._text, self._executor), progress)
        with suppress(EncoderError):
            source = wanted_model(self._layout, self._language)
            if source is None or (answering is not None and answering.fingerprint == source.fingerprint):
                return
            if not self._log.count_questions():  # what is loaded first is encoded newest first
                return
            if self._waiting(self._begun(source)) <= pace_of(source.encoder).at_once:
                with self._making(is_waiting=False) as is_ours:
                    if is_ours:
                        self._make(source, progress, _no_lock)

    def encode(self, progress: Progress, locked: Locked) -> None:
        """Encode all that waits, however long it takes; switch to the wanted model's vectors when they are complete.

        Args:
            locked: taken for moments, so that others may write meanwhile.

        Raises:
            BusyForumError: another process is at it.
            ModelNotFoundError: there is no model.
            ModelError, DamagedForumError: a model or a set cannot be read.
            EncoderError: the encoder cannot be had, or does not answer any more; what was encoded is kept.
        """
        source = wanted_model(self._layout, self._language)
        if source is None:
            raise ModelNotFoundError(
                f"the forum at {self._layout.folder} has no model, and the package contains none for {self._language}",
                'train one with "askalike train FORUM", or give one with "askalike encode FORUM --model FOLDER"',
            )
        with self._making(is_waiting=True):
            answering = self.answering()
            if answering is not None and answering.settings is None and source.encoder is not None:
                self._finish_changes(answering, progress, locked)  # it answers until the others are made
            if answering is None or answering.fingerprint != source.fingerprint:
                answering = self._make(source, progress, locked)
            else:
                if answering.settings != source.encoder:  # the same encoder lies elsewhere now
                    answering = self._new_set(source, is_new=False)
                    self._seen = None
                self._finish_changes(answering, progress, locked)
                self._remove_sets([source.fingerprint])

    def state(self) -> VectorsState:
        """Return what answers, and what waits.

        Raises:
            ModelError, DamagedForumError: a model or a set cannot be read.
        """
        answering = self.answering()
        problem = None if answering is None else answering.problem
        try:
            source = wanted_model(self._layout, self._language)
        except EncoderError as error:
            source, problem = None, problem or error
        state = self._state(source, answering)
        return state if problem is None else replace(state, problem=str(problem))

    def _state(self, source: ModelSource | None, answering: VectorSet | None) -> VectorsState:
        is_wanted = source is None or (answering is not None and source.fingerprint == answering.fingerprint)
        begun = None if source is None or is_wanted else self._begun(source)
        next_entries = 0 if begun is None else begun.entries
        if answering is None:
            waiting = 0 if source is None else self._waiting(begun)
            return VectorsState(next_model=source.shown if source else "", waiting=waiting, next_entries=next_entries)
        index = answering.index
        return VectorsState(
            model=answering.shown,
            entries=index.entries,
            next_model="" if is_wanted or source is None else source.shown,
            waiting=self._waiting(index if is_wanted else begun),
            next_entries=next_entries,
        )

    def _begun(self, source: ModelSource) -> VectorEntries | None:
        """Return the index of the set for this model, if one was begun that can be gone on with."""
        place = self._folder / source.fingerprint
        is_known = self._indexes.is_shared or has_its_model(place)
        if not is_known or not self._indexes.exists(place):
            return None
        index = self._indexes.open(place)
        return index if index.cursor.can_catch_up(source.fingerprint, self._log.last_change()) else None

    def _waiting(self, index: VectorEntries | None) -> int:
        """Return how many questions are to be encoded until the index is in step."""
        return self._log.count_questions() if index is None else pending(index.cursor, self._log, index.followed)

    def _new_set(self, source: ModelSource, *, is_new: bool) -> VectorSet:
        encoder = self._encoder(source.fingerprint)
        last = self._log.last_change()
        return make_set(
            self._folder,
            source,
            last,
            is_new=is_new,
            encoder=encoder,
            indexes=self._indexes,
        )

    def _make(self, source: ModelSource, progress: Progress, locked: Locked) -> VectorSet:
        """Make the set for a model, going on with one that was begun, and switch to it."""
        vectors = self._new_set(source, is_new=self._begun(source) is None)
        indexer = vector_indexer(vectors, self._text, self._executor)
        catch_up(self._log, indexer, progress)
        with locked():
            catch_up(self._log, indexer, progress)  # what was written meanwhile
            Current(source.fingerprint, source.name, secrets.token_hex(8)).write(self._folder)
        self._remove_sets([source.fingerprint])
        return vectors

    def _remove_sets(self, kept: Sequence[str]) -> None:
        remove_sets(self._folder, kept)
        self._indexes.sweep(kept)

    def _finish_changes(self, answering: VectorSet, progress: Progress, locked: Locked) -> None:
        """Encode changes some at a time, so that who writes one question need not wait for all."""
        indexer = vector_indexer(answering, self._text, self._executor)
        waiting = self._waiting(answering.index)
        if waiting > indexer.steps.changes:
            progress.start(indexer.phase, waiting, "changes")
        while waiting:
            with locked():
                catch_up(self._log, indexer, progress, indexer.steps.changes)
            waiting = self._waiting(answering.index)

    @contextmanager
    def _making(self, *, is_waiting: bool) -> Iterator[bool]:
        """Hold the lock of makers; gives False, or raises, where another process holds it.

        Raises:
            BusyForumError: another process holds it, and ``is_waiting``.
        """
        busy = BusyForumError(f"another process is encoding {self._layout.folder}", "wait until it has finished")
        with ExitStack() as locks:
            try:
                locks.enter_context(holding(lock_of_makers(self._folder), 0, busy if is_waiting else None))
                is_ours = True
            except filelock.Timeout:
                is_ours = False
            yield is_ours


@contextmanager
def _no_lock() -> Iterator[None]:
    """Hold nothing: the caller holds the lock already."""
    yield


def pace_of(settings: EncoderSettings | None) -> Pace:
    """Return how fast a forum is encoded: by an encoder, or by the forum's own model where there is none."""
    return OWN_PACE if settings is None else PACES.get(settings.kind, OTHER_PACE)
