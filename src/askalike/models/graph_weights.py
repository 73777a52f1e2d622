"""The numbers of an ONNX graph: read from its bytes, and replaced in them by others of the same shapes.

The graph itself stays as it is: whoever gives numbers gives nothing that runs.

Source: onnx.proto, messages ModelProto, GraphProto and TensorProto (https://onnx.ai/onnx/repo-docs/IR.html).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from askalike.errors import DamagedModelError

Array = NDArray[np.float32]

_GRAPH: Final = 7
_INITIALIZER: Final = 5
_DIMS, _DATA_TYPE, _NAME, _RAW_DATA = 1, 2, 8, 9
_DTYPES: Final[Mapping[int, type[np.generic]]] = {1: np.float32, 2: np.uint8, 3: np.int8, 7: np.int64}
SCALES: Final = "_scales"


class Stored(NamedTuple):
    """Where the numbers of a constant lie in a graph's bytes."""

    dtype: type[np.generic]
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def is_weight(self) -> bool:
        """Return whether it is of weights or their scales; single and whole numbers say how the graph computes."""
        return self.dtype is np.int8 or (self.dtype is np.float32 and math.prod(self.shape) > 1)


def stored_numbers(graph: bytes) -> dict[str, Stored]:
    """Return where the numbers of each constant lie.

    Raises:
        DamagedModelError: the graph is no ONNX model, or has a constant that is stored in another way.
    """
    try:
        return dict(_constants(graph))
    except (IndexError, KeyError, UnicodeDecodeError) as error:
        raise DamagedModelError(f"the graph cannot be read: {error}", "install askalike again") from error


def numbers_of(graph: bytes) -> dict[str, NDArray[Any]]:
    """Return the constants of a graph, by their names."""
    return {
        name: np.frombuffer(graph[part.begin : part.end], part.dtype).reshape(part.shape)
        for name, part in stored_numbers(graph).items()
    }


def with_weights(graph: bytes, numbers: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the graph with other weights and scales.

    Raises:
        DamagedModelError: they are not of the names, types and shapes of the graph's, or not finite.
    """
    stored = {name: part for name, part in stored_numbers(graph).items() if part.is_weight}
    if numbers.keys() != stored.keys():
        names = ", ".join(sorted(numbers.keys() ^ stored.keys())[:5])
        raise DamagedModelError(f"the weights are not those of the graph: {names[:300]}", "")
    changed = bytearray(graph)
    for name, part in stored.items():
        values = numbers[name]
        if values.dtype != part.dtype or values.shape != part.shape:
            expected = f"{np.dtype(part.dtype)} {part.shape}"
            raise DamagedModelError(f"{name} is {values.dtype} {values.shape}, but expected {expected}", "")
        if not np.isfinite(values).all():
            raise DamagedModelError(f"{name} has numbers that are not finite", "")
        changed[part.begin : part.end] = values.tobytes()
    return bytes(changed)


def digest_without_numbers(graph: bytes) -> str:
    """Return the SHA-256 of everything in a graph but its constants' numbers, in hexadecimal."""
    digest, at = hashlib.sha256(), 0
    for part in sorted(stored_numbers(graph).values(), key=lambda part: part.begin):
        digest.update(graph[at : part.begin])
        at = part.end
    digest.update(graph[at:])
    return digest.hexdigest()


def in_float32(numbers: Mapping[str, NDArray[Any]]) -> dict[str, Array]:
    """Return the weights of a graph of ``transformer_graph`` as they were before they were brought to 8 bits.

    What has scales is multiplied by them.
    """
    weights: dict[str, Array] = {}
    for name, values in numbers.items():
        if values.dtype == np.int8:
            weights[name] = values * numbers[scales_of(name)]
        elif values.dtype == np.float32 and values.size > 1 and not name.endswith(SCALES):
            weights[name] = values.copy()
    return weights


def in_8_bits(weights: Mapping[str, Array], numbers: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return weights of ``in_float32`` as a graph has them, with a new scale for each row or column.

    Rounded up or down by chance, right on average: training moves most weights by less than half a step, and rounding
    to the nearest would take that back.

    Args:
        numbers: the graph's constants.
    """
    changed: dict[str, NDArray[Any]] = {}
    chance = np.random.default_rng(0)
    for name, values in weights.items():
        if numbers[name].dtype == np.int8:
            shape = numbers[scales_of(name)].shape
            axis = 1 if len(shape) == 2 else 0  # of word vectors (V, D) each row, of weights (D, D_out) each column
            largest = np.abs(values).max(axis=axis, keepdims=len(shape) == 2)
            scales = np.maximum(largest, np.float32(1e-20)) / np.float32(127)
            changed[scales_of(name)] = scales.astype(np.float32)
            steps = np.floor(values / scales + chance.random(values.shape, np.float32))
            changed[name] = np.clip(steps, -127, 127).astype(np.int8)
        else:
            changed[name] = values.astype(np.float32)
    return changed


def scales_of(name: str) -> str:
    """Return the name of a constant's scales.

    >>> scales_of("layer0_query_weight"), scales_of("words")
    ('layer0_query_scales', 'word_scales')
    """
    return "word_scales" if name == "words" else name.removesuffix("_weight") + SCALES


# -- protocol buffers ----------------------------------------------------------------------------------------------


def _constants(graph: bytes) -> Iterator[tuple[str, Stored]]:
    for number, begin, end in _fields(graph, 0, len(graph)):
        if number != _GRAPH:
            continue
        for inner, first, last in _fields(graph, begin, end):
            if inner == _INITIALIZER:
                yield _constant(graph, first, last)


def _constant(graph: bytes, begin: int, end: int) -> tuple[str, Stored]:
    shape, name, dtype, at = list[int](), "", 0, (0, 0)
    for number, first, last in _fields(graph, begin, end):
        if number == _DIMS:
            while first < last:
                size, first = _varint(graph, first)
                shape.append(size)
        elif number == _DATA_TYPE:
            dtype = _varint(graph, first)[0]
        elif number == _NAME:
            name = graph[first:last].decode()
        elif number == _RAW_DATA:
            at = first, last
    kind = _DTYPES[dtype]
    if at[1] - at[0] != math.prod(shape) * np.dtype(kind).itemsize:
        raise IndexError(f"{name} has {at[1] - at[0]} bytes, and its shape is {shape}")
    return name, Stored(kind, tuple(shape), *at)


def _fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the number of each field of a message, and where its content begins and ends."""
    while at < end:
        key, at = _varint(data, at)
        kind, begin = key & 7, at
        if kind == 0:
            at = _varint(data, at)[1]
        elif kind == 2:
            length, begin = _varint(data, at)
            at = begin + length
        else:
            at += {1: 8, 5: 4}[kind]
        if at > end:
            raise IndexError("a field ends behind its message")
        yield key >> 3, begin, at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
