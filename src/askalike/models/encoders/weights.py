"""Arrays to and from the bytes of a safetensors file.

Enters: arrays, or bytes that may be hostile. Leaves: bytes, or arrays. May import: errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Final

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from askalike.errors import DamagedModelError

__all__ = ["from_bytes", "to_bytes"]

_TYPES: Final[dict[str, type[np.generic]]] = {"F32": np.float32, "F16": np.float16, "I8": np.int8, "I64": np.int64}
_MAX_HEADER_BYTES: Final = 1 << 16
_AGAIN: Final = "take the model from where it came"


def to_bytes(arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
    """Return the file of these arrays: the same bytes for the same arrays."""
    return safetensors.numpy.save({name: np.ascontiguousarray(arrays[name]) for name in sorted(arrays)})


def from_bytes(data: bytes) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of a file.

    Raises:
        DamagedModelError: not a safetensors file, a header that is too long, or an array of another type than
            float32, float16, int8 or int64.
    """
    length = int.from_bytes(data[:8], "little")
    if length > _MAX_HEADER_BYTES:
        raise DamagedModelError(
            f"weights.safetensors has a header of {length} bytes, but expected at most {_MAX_HEADER_BYTES}", _AGAIN
        )
    try:
        found = safetensors.deserialize(data)  # type: ignore[no-untyped-call]
    except (safetensors.SafetensorError, ValueError, OverflowError) as error:
        raise DamagedModelError(f"weights.safetensors cannot be read: {str(error)[:200]}", _AGAIN) from error
    arrays: dict[str, NDArray[np.generic]] = {}
    for name, entry in found:
        dtype, shape = _TYPES.get(entry["dtype"]), tuple(entry["shape"])
        if dtype is None or not prod(shape):
            what = f"{entry['dtype']} {shape} for {name[:40]!r}"
            raise DamagedModelError(f"weights.safetensors holds {what}, but expected {', '.join(_TYPES)}", _AGAIN)
        arrays[name] = np.frombuffer(entry["data"], dtype=dtype).reshape(shape)
    return arrays
