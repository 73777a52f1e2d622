"""A student: texts → vectors in its teacher's space, by a sum of rows and one linear layer.

::

    h = Σ_w row(w) + Σ_(v,w) row(v, w) + Σ_u mean_g row(g)     words w, frequent pairs v w, n-grams g of unknown words u
    v = (W h + b) / |W h + b|
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.errors import DamagedModelError, SettingError
from askalike.models.encoders.folder import Contents, Manifest, naming, read_model, write_folder
from askalike.models.encoders.settings import Precision
from askalike.models.encoders.vocabulary import Vocabulary
from askalike.models.encoders.weights import Packed
from askalike.models.student.settings import StudentSettings
from askalike.models.student.text_rows import RowReader, TextRows

Array = NDArray[np.float32]

TABLES: Final = ("words", "pairs", "buckets")
"""The tables whose rows are summed; ``output`` and ``bias`` stay float32."""

_PAIR_IDS: Final = "pair_ids"
_NO_PAIRS: Final = np.zeros((0, 2), dtype=np.int64)
_AGAIN: Final = "take the files of one model from where they came"


class Teacher(Protocol):
    """An encoder of texts that a student learns from."""

    @property
    def name(self) -> str:
        """Return ``kind:model@revision``."""

    @property
    def dimensions(self) -> int:
        """Return D."""

    def encode_query(self, texts: Sequence[str]) -> Array:
        """Return the vectors of queries, in their order.  # (N, D) float32"""

    def encode_document(self, texts: Sequence[str]) -> Array:
        """Return the vectors of documents, in their order.  # (N, D) float32"""


class Student:
    """A trained student. It does not change, and any number of threads may use it at once.

    A text of which nothing is known has the zero vector.

    Args:
        settings: sizes and origin.
        vocabulary: the words with rows, most frequent first.
        pair_ids: ids of the two words of each pair.  # (P, 2)
        arrays: with the names and shapes of ``settings.shapes()``.
        origin: what it was trained on, and its scores.
        teacher: encodes documents where it is given; without it the student does.

    Raises:
        SettingError: sizes that do not fit each other, numbers that are not finite, or another teacher than its own.
    """

    def __init__(
        self,
        settings: StudentSettings,
        vocabulary: Vocabulary,
        pair_ids: NDArray[np.int64],
        arrays: Mapping[str, Packed],
        origin: Manifest,
        teacher: Teacher | None = None,
    ) -> None:
        if len(vocabulary.words) != settings.words or len(pair_ids) != settings.pairs:
            raise SettingError(
                f"{len(vocabulary.words)} words and {len(pair_ids)} pairs, but the settings have {settings.words} and "
                f"{settings.pairs}",
                _AGAIN,
            )
        found = {name: packed.values.shape for name, packed in arrays.items()}
        if found != settings.shapes():
            raise SettingError(f"student arrays {found}, but expected {settings.shapes()}", _AGAIN)
        if teacher is not None and (teacher.name, teacher.dimensions) != (settings.teacher, settings.dimensions):
            raise SettingError(
                f"the encoder {teacher.name} with {teacher.dimensions} dimensions is not the teacher of this student, "
                f"{settings.teacher} with {settings.dimensions}",
                "give its own teacher, or train a student of this one",
            )
        self.settings: Final = settings
        self.vocabulary: Final = vocabulary
        self.origin: Final = origin
        self._pair_ids = pair_ids
        self._arrays = dict(arrays)
        self._reader = RowReader(vocabulary, pair_ids, settings.buckets, settings.word_limit)
        self._output = arrays["output"].unpacked()  # (D, d)
        self._bias = arrays["bias"].unpacked()  # (D,)
        self._teacher = teacher

    @classmethod
    def build(
        cls,
        settings: StudentSettings,
        vocabulary: Vocabulary,
        pair_ids: NDArray[np.int64],
        arrays: Mapping[str, NDArray[np.floating]],
        *,
        training_data: str = "",
        dev_scores: Mapping[str, float] | None = None,
    ) -> Student:
        """Return the student of trained numbers, its tables rounded to the settings' precision.

        Raises:
            SettingError: as the class.
        """
        packed = {name: Packed.of(array, _precision(settings, name)) for name, array in arrays.items()}
        return cls(settings, vocabulary, pair_ids, packed, Manifest.of_origin(training_data, dev_scores))

    @classmethod
    def load(cls, path: Path | str, teacher: Teacher | None = None) -> Student:
        """Return the student in a folder; nothing of it is run, and every file is checked.

        Raises:
            ModelNotFoundError: there is no model at ``path``.
            ModelVersionError: it was written by an incompatible version.
            DamagedModelError: a file is damaged, missing, or does not fit the others.
            SettingError: ``teacher`` is another than the student's own.
        """
        stored = read_model(Path(path), StudentSettings.from_json)
        settings, arrays = stored.settings, dict(stored.arrays)
        with naming(Path(path)):
            pair_ids = _pair_ids(arrays, settings)
            packed = {
                name: Packed.taken_from(arrays, name, shape, _precision(settings, name))
                for name, shape in settings.shapes().items()
            }
            known = {key for name, one in packed.items() for key in one.arrays(name)}
            if extra := sorted(set(arrays) - known):
                raise DamagedModelError(
                    f"weights.safetensors holds more than the model needs: {', '.join(extra)[:200]}", _AGAIN
                )
            try:
                alone = cls(settings, stored.vocabulary, pair_ids, packed, stored.manifest)
            except SettingError as error:
                raise DamagedModelError(error.message, error.hint) from error
        if teacher is None:
            return alone
        return cls(settings, stored.vocabulary, pair_ids, packed, stored.manifest, teacher)

    def save(self, path: Path | str) -> None:
        """Write the student's folder: whole or not at all. The same student gives the same bytes.

        Raises:
            ModelExistsError: there is something else than a model at ``path``.
            ModelError: it cannot be written.
        """
        arrays = self._stored()
        write_folder(Path(path), Contents(self.settings.to_json(), self.vocabulary.to_bytes(), arrays), self.origin)

    @cached_property
    def name(self) -> str:
        """Return ``student:TEACHER@REVISION``, ``+teacher`` behind it where the teacher encodes documents."""
        digest = hashlib.sha256(repr(self.settings).encode())
        digest.update(self.vocabulary.to_bytes())
        for name, array in sorted(self._stored().items()):
            digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
        return f"student:{self.settings.teacher}@{digest.hexdigest()[:12]}" + ("+teacher" if self._teacher else "")

    @property
    def dimensions(self) -> int:
        """Return D, the teacher's."""
        return self.settings.dimensions

    @property
    def pair_ids(self) -> NDArray[np.int64]:
        """Return the ids of the two words of each pair; not to be changed.  # (P, 2)"""
        return self._pair_ids

    def arrays(self) -> dict[str, Array]:
        """Return the tables and the layer, to go on training from; not to be changed."""
        return {name: packed.unpacked() for name, packed in self._arrays.items()}

    def encode_query(self, texts: Sequence[str]) -> Array:
        """Return the vectors of queries, in their order.  # (N, D) float32"""
        found = [self._reader.read(text) for text in texts]
        sums = np.zeros((len(texts), self.settings.row_size), dtype=np.float32)  # (N, d)
        for place, rows in enumerate(found):
            sums[place] = self._sum(rows)
        vectors = sums @ self._output.T + self._bias  # (N, D)
        vectors[[not rows for rows in found]] = 0
        lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))[:, None]
        np.divide(vectors, lengths, out=vectors, where=lengths > 0)
        return vectors

    def encode_document(self, texts: Sequence[str]) -> Array:
        """Return the vectors of documents, in their order: the teacher's where it was given.  # (N, D) float32"""
        return self.encode_query(texts) if self._teacher is None else self._teacher.encode_document(texts)

    def _sum(self, rows: TextRows) -> Array:
        total = self._arrays["words"].rows(np.array(rows.words, dtype=np.intp)).sum(axis=0)  # (d,)
        if rows.pairs:
            total += self._arrays["pairs"].rows(np.array(rows.pairs, dtype=np.intp)).sum(axis=0)
        for grams in rows.unknown:
            total += self._arrays["buckets"].rows(np.array(grams, dtype=np.intp)).mean(axis=0)
        found: Array = total
        return found

    def _stored(self) -> dict[str, NDArray[np.generic]]:
        found = {key: array for name, packed in self._arrays.items() for key, array in packed.arrays(name).items()}
        return found | ({_PAIR_IDS: self._pair_ids} if len(self._pair_ids) else {})


def _precision(settings: StudentSettings, name: str) -> Precision:
    return settings.precision if name in TABLES else "float32"


def _pair_ids(arrays: dict[str, NDArray[np.generic]], settings: StudentSettings) -> NDArray[np.int64]:
    """Take the ids of pairs out of a file's arrays."""
    if not settings.pairs:
        return _NO_PAIRS
    found = arrays.pop(_PAIR_IDS, None)
    if found is None or found.dtype != np.int64 or found.shape != (settings.pairs, 2):
        what = "nothing" if found is None else f"{found.dtype.name} {found.shape}"
        raise DamagedModelError(
            f"weights hold {what} for {_PAIR_IDS}, but expected int64 ({settings.pairs}, 2)", _AGAIN
        )
    return found.astype(np.int64)
