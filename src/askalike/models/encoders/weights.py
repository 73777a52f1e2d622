"""A model's numbers: word vectors, the encoder's parameters, word counts, in the precision in which a model keeps them.

::

    float16   rounded to nearest: relative error ≤ 2⁻¹¹ down to 6·10⁻⁵
    int8      x ≈ q · s with s = max|row| / 127 and q = round(x / s): error ≤ s/2

Wherever numbers are used, they are float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.errors import DamagedModelError, SettingError
from askalike.models.encoders.settings import PRECISIONS, ModelSettings, Precision
from askalike.models.vocabulary import UNKNOWN, Vocabulary

_SCALE = ".scale"
_LEVELS = np.float32(127)


@dataclass(frozen=True, slots=True)
class Packed:
    """One array as it is stored.

    Args:
        values: float32, float16 or int8.
        scales: float32 (rows,), with int8 only.

    >>> packed = Packed.of(np.array([[1.27, -0.5], [0.0, 0.0]]), "int8")
    >>> packed.values.tolist(), [[round(float(value), 4) for value in row] for row in packed.unpacked()]
    ([[127, -50], [0, 0]], [[1.27, -0.5], [0.0, 0.0]])
    """

    values: NDArray[np.generic]
    scales: NDArray[np.float32] | None = None

    @classmethod
    def of(cls, array: NDArray[np.floating], precision: Precision) -> Packed:
        """Return ``array`` in this precision; under int8 an array of one dimension (a bias) stays float32.

        Raises:
            SettingError: an unknown precision, or a value that is not finite there.
        """
        if precision not in PRECISIONS:
            raise SettingError(f"precision {precision!r}, but expected one of: {', '.join(PRECISIONS)}")
        with np.errstate(over="ignore"):  # what becomes infinite is refused below
            if precision == "int8" and array.ndim > 1:
                packed = cls._in_levels(np.asarray(array, dtype=np.float32))
            else:
                kind = np.float16 if precision == "float16" else np.float32
                packed = cls(np.array(array, dtype=kind, order="C"))
        if not packed.is_finite():
            raise SettingError(
                f"an array of {array.size} numbers is not finite in {precision}",
                "train with a smaller learning rate, or store it as float32",
            )
        return packed

    @classmethod
    def _in_levels(cls, array: NDArray[np.float32]) -> Packed:
        scales = np.abs(array).max(axis=1) / _LEVELS
        steps = np.where(scales > 0, scales, np.float32(1))
        levels = np.clip(np.rint(np.nan_to_num(array / steps[:, None])), -_LEVELS, _LEVELS)
        return cls(levels.astype(np.int8), scales.astype(np.float32))

    def is_finite(self) -> bool:
        """Return whether every number is finite and every scale ≥ 0."""
        if self.scales is None:
            return bool(np.isfinite(self.unpacked()).all())
        return bool(np.isfinite(self.scales).all() and (self.scales >= 0).all())

    def rows(self, places: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return the rows at ``places`` (N,) as float32.  # (N, …)"""
        vectors = self.values[places].astype(np.float32)
        if self.scales is not None:
            vectors *= self.scales[places][:, None]
        return vectors

    def unpacked(self) -> NDArray[np.float32]:
        """Return all as float32; under float32 the stored array itself."""
        if self.scales is None:
            return self.values.astype(np.float32, copy=False)
        return self.rows(np.arange(len(self.values)))

    def arrays(self, name: str) -> dict[str, NDArray[np.generic]]:
        """Return what goes into the file: ``name``, and ``name.scale`` where there are scales."""
        return {name: self.values} | ({} if self.scales is None else {name + _SCALE: self.scales})

    @classmethod
    def taken_from(
        cls, arrays: Mapping[str, NDArray[np.generic]], name: str, shape: tuple[int, ...], precision: Precision
    ) -> Packed:
        """Return the array that the file keeps under ``name``.

        Raises:
            DamagedModelError: absent, of another shape or type, or not finite.
        """
        has_levels = precision == "int8" and len(shape) > 1
        kind = "int8" if has_levels else "float16" if precision == "float16" else "float32"
        expected = {name: (kind, shape)} | ({name + _SCALE: ("float32", shape[:1])} if has_levels else {})
        for key, (dtype, wanted) in expected.items():
            array = arrays.get(key)
            what = "nothing" if array is None else f"{array.dtype.name} {array.shape}"
            if array is None or (array.dtype.name, array.shape) != (dtype, wanted):
                raise DamagedModelError(
                    f"weights hold {what} for {key}, but expected {dtype} {wanted}",
                    "take the files of one model from where they came",
                )
        packed = cls(arrays[name], arrays[name + _SCALE].astype(np.float32) if has_levels else None)
        if not packed.is_finite():
            raise DamagedModelError(
                f"weights for {name} hold numbers that are not finite, or negative scales", "train the model again"
            )
        return packed


def arrays_of(packed: Mapping[str, Packed]) -> dict[str, NDArray[np.generic]]:
    """Return what goes into the file for arrays by name."""
    return {key: array for name, weight in packed.items() for key, array in weight.arrays(name).items()}


def packed_of(
    arrays: Mapping[str, NDArray[np.generic]],
    shapes: Mapping[str, tuple[int, ...]],
    precision_of: Callable[[str], Precision],
) -> dict[str, Packed]:
    """Return the arrays of a file by name; it holds these and no others.

    Raises:
        DamagedModelError: an array is absent, too many, of another shape or type, or not finite.
    """
    weights = {name: Packed.taken_from(arrays, name, shape, precision_of(name)) for name, shape in shapes.items()}
    if extra := sorted(set(arrays) - set(arrays_of(weights))):
        raise DamagedModelError(
            f"weights.safetensors holds more than the model needs: {', '.join(extra)[:200]}", _AGAIN
        )
    return weights


_EMBEDDING: Final = "embedding"
_COUNTS: Final = "counts"
_AGAIN: Final = "take the files of one model from where they came"


@dataclass(frozen=True, slots=True)
class ModelWeights:
    """What was learned, and counted.

    Args:
        embedding: word vectors (V, D_in), row 0 for unknown words, in the settings' precision.
        parameters: the encoder's, with the names and shapes of ``EncoderConfig.shapes()``, in the settings' precision.
        counts: how often each word occurred in the texts that were learned from, or None where that is not known; at 0
            all words outside the vocabulary together.  # (V,) int64
    """

    embedding: Packed
    parameters: Mapping[str, Packed]
    counts: NDArray[np.int64] | None = None

    @classmethod
    def rounded(
        cls,
        settings: ModelSettings,
        vocabulary: Vocabulary,
        embedding: NDArray[np.floating],
        parameters: Mapping[str, NDArray[np.floating]],
        counts: NDArray[np.int64] | None,
    ) -> ModelWeights:
        """Return trained numbers, rounded to the settings' precision.

        Raises:
            SettingError: shapes or numbers that do not fit.
        """
        expected = (len(vocabulary), settings.encoder.input_size)
        if embedding.shape != expected:
            raise SettingError(
                f"embedding of shape {embedding.shape}, but expected {expected}",
                "give one row for unknown words, then one for each word",
            )
        if settings.unknown != "vector" and embedding[UNKNOWN].any():
            raise SettingError("unknown words are to be zero, but row 0 of the embedding is not", "set it to zero")
        if fault := _fault_of_counts(counts, vocabulary):
            raise SettingError(fault, "give one number for unknown words, then one for each word")
        packed = {name: Packed.of(array, settings.encoder_precision) for name, array in parameters.items()}
        return cls(
            Packed.of(embedding, settings.embedding_precision), packed, None if counts is None else counts.copy()
        )

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return what goes into the file."""
        arrays = arrays_of({**self.parameters, _EMBEDDING: self.embedding})
        return arrays if self.counts is None else {**arrays, _COUNTS: self.counts}

    @classmethod
    def taken_from(
        cls, arrays: Mapping[str, NDArray[np.generic]], settings: ModelSettings, vocabulary: Vocabulary
    ) -> ModelWeights:
        """Return the numbers of a file.

        Raises:
            DamagedModelError: an array is absent, too many, or does not fit settings and vocabulary.
        """
        stored = arrays.get(_EMBEDDING)
        if stored is not None and stored.ndim == 2 and len(stored) != len(vocabulary):
            raise DamagedModelError(
                f"{len(vocabulary.words)} words in vocabulary.txt but {len(stored) - 1} vectors of words in "
                "weights.safetensors",
                _AGAIN,
            )
        shapes = {_EMBEDDING: (len(vocabulary), settings.encoder.input_size), **settings.encoder.shapes()}
        precisions = {_EMBEDDING: settings.embedding_precision}
        counts = arrays.get(_COUNTS)
        if fault := _fault_of_counts(counts, vocabulary):
            raise DamagedModelError(f"weights hold {fault}", _AGAIN)
        others = {name: array for name, array in arrays.items() if name != _COUNTS}
        parameters = packed_of(others, shapes, lambda name: precisions.get(name, settings.encoder_precision))
        embedding = parameters.pop(_EMBEDDING)
        if settings.unknown != "vector" and embedding.rows(np.array([UNKNOWN])).any():
            raise DamagedModelError("unknown words are to be zero, but their vector is not", "train the model again")
        return cls(embedding, parameters, None if counts is None else counts.astype(np.int64))


def _fault_of_counts(counts: NDArray[np.generic] | None, vocabulary: Vocabulary) -> str:
    """Return what is wrong with the counts of words, or nothing."""
    if counts is None:
        return ""
    if counts.dtype != np.int64 or counts.shape != (len(vocabulary),):
        return f"counts of words {counts.dtype.name} {counts.shape}, but expected int64 ({len(vocabulary)},)"
    if counts.min() < 0:
        return f"counts of words down to {counts.min()}, but expected numbers ≥ 0"
    return ""
