"""Vectors as codes of 16 bits: each row keeps its direction as whole numbers, its largest one being the type's.

The cosine needs no scale: ``cos(q, v) = q · codes / (‖q‖ ‖codes‖)``. A code is within half a step of what it stands
for, so that cosines are closer than from float16 in the same two bytes; and whole numbers become float32 in one vector
instruction, which float16 does not in NumPy (results/vector-search.json).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from askalike.errors import SettingError


def finite_vectors(vectors: ArrayLike, dimensions: int, what: str) -> NDArray[np.floating[Any]]:
    """Return ``vectors`` as a float array (N, D) after checking it.

    Args:
        what: what they are called in the message, for example "vector" or "query".

    Raises:
        SettingError: the shape is not (N, ``dimensions``), or a value is not a finite number.
    """
    array = np.asarray(vectors)
    if array.ndim != 2 or array.shape[1] != dimensions:
        raise SettingError(f"{what} array of shape {array.shape}, expected (number, {dimensions})")
    if array.dtype not in (np.float32, np.float64):
        if array.dtype.kind not in "fiu":
            raise SettingError(f"{what} array of type {array.dtype}, expected numbers")
        array = array.astype(np.float64)
    is_bad = ~np.isfinite(array).all(axis=1)
    if is_bad.any():
        raise SettingError(f"{what} {int(np.argmax(is_bad))} holds NaN or infinity, expected finite numbers")
    return array


def encode(vectors: NDArray[np.floating[Any]]) -> NDArray[np.int16]:
    """Return the codes: ``codes = round(32,767 · v / max|v|)``, a row of zeros for a vector of zeros.

    Args:
        vectors: (N, D) finite; their lengths do not matter.

    Returns:
        (N, D).

    >>> encode(np.array([[3.0, -4.0], [0.0, 0.0]])).tolist()
    [[24575, -32767], [0, 0]]
    """
    top = np.abs(vectors).max(axis=1, keepdims=True)
    top[top == 0] = 1
    codes: NDArray[np.int16] = np.rint(vectors / top * np.iinfo(np.int16).max).astype(np.int16)
    return codes


def inverse_norms(codes: NDArray[np.signedinteger[Any]]) -> NDArray[np.float64]:
    """Return ``1 / ‖codes‖`` of each row (N,), 0 for a row of zeros.

    >>> (inverse_norms(np.array([[3, 4], [0, 0]], np.int16)) * 5).tolist()
    [1.0, 0.0]
    """
    whole = codes.astype(np.float64)
    norms = np.sqrt((whole * whole).sum(axis=1))
    inverse: NDArray[np.float64] = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    return inverse


def decode(codes: NDArray[np.signedinteger[Any]]) -> NDArray[np.float32]:
    """Return the vectors of length 1 (or 0) that the codes stand for: (N, D) float32.

    >>> decode(np.array([[24575, -32767]], np.int16)).round(3).tolist()
    [[0.6000000238418579, -0.800000011920929]]
    """
    return (codes * inverse_norms(codes)[:, None]).astype(np.float32)
