"""Arrays in the precision in which a model keeps them, on disk and in memory; float32 wherever they are used.

Enters: float arrays. Leaves: stored arrays, and float32 again. May import: errors.

::

    float16   rounded to nearest: relative error ≤ 2⁻¹¹ down to 6·10⁻⁵
    int8      x ≈ q · s with s = max|row| / 127 and q = round(x / s): error ≤ s/2
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from askalike.errors import DamagedModelError, SettingError

__all__ = ["PRECISIONS", "Packed", "Precision"]

Precision = Literal["float32", "float16", "int8"]
PRECISIONS: Final[tuple[Precision, ...]] = get_args(Precision)

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
        found = self.values[places].astype(np.float32)
        if self.scales is not None:
            found *= self.scales[places][:, None]
        return found

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
            found = arrays.get(key)
            what = "nothing" if found is None else f"{found.dtype.name} {found.shape}"
            if found is None or (found.dtype.name, found.shape) != (dtype, wanted):
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
