"""Sentence transformers as ONNX graphs, built from a folder's weights.

Equations of a layer, ``X`` the states (T, D) of T pieces, ``M`` the bias of masked and relative positions::

    A = softmax(Q Kᵀ / √(D/H) + M) V          Q, K, V = X W + b, for each of H heads
    X' = norm(X + A W_o + b_o)
    X'' = norm(X' + W_2 act(W_1 X' + b_1) + b_2)

Source: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers", 2019; Song et al., "MPNet", 2020.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError, optional_module
from askalike.models.transformer_folder import Array, TransformerFolder, layer_names, types_of

Precision = Literal["float32", "int8"]


def serialized_graph(
    folder: TransformerFolder, precision: Precision, largest: Mapping[str, Array] = MappingProxyType({})
) -> bytes:
    """Return the transformer as an ONNX model.

    Args:
        largest: in 8 bits, what ``largest_inputs`` returns: inputs and weights are balanced by it.

    Raises:
        SettingError: there is no such precision.
        MissingExtraError: the package onnx is not installed.
    """
    if precision not in ("float32", "int8"):
        raise SettingError(f"there is no precision {precision!r}", "expected float32 or int8")
    onnx = _onnx()
    graph = _Graph(folder, onnx) if precision == "float32" else _EightBitGraph(folder, onnx, largest)
    data: bytes = graph.model().SerializeToString()
    return data


def largest_inputs(
    folder: TransformerFolder, texts: Iterable[Sequence[int]], session: Callable[[bytes], Any]
) -> dict[str, Array]:
    """Return the largest number of each column of the inputs that meet weights, by the inputs' names.  # (D,)

    Args:
        texts: the pieces of sample texts.
        session: gives what runs a graph.
    """
    graph = _Graph(folder, _onnx())
    model = graph.model(shows_inputs=True)
    network, names = session(model.SerializeToString()), graph.linear_inputs
    largest: dict[str, Array] = {}
    for ids in texts:
        positions = np.arange(len(ids)) + folder.shape.first_position
        inputs = {"ids": np.array([ids]), "positions": positions, "bias": np.zeros((1, 1, 1, len(ids)), np.float32)}
        for name, states in zip(names, network.run(names, inputs), strict=True):
            highest = np.abs(states).max(axis=(0, 1))
            largest[name] = np.maximum(highest, largest.get(name, highest))
    return largest


def _onnx() -> Any:
    missing = "the package onnx is not installed, which reads sentence transformers"
    return optional_module("onnx", missing, "transformers")


class _Graph:
    """The transformer as an ONNX graph; ids (B, T), positions (T,), bias (B, 1 or H, 1 or T, T) → states (B, T, D)."""

    def __init__(self, folder: TransformerFolder, onnx: Any) -> None:
        self._onnx = onnx
        self._weights, self._shape = folder.weights, folder.shape
        self._types = types_of(folder)
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._readers: dict[str, list[str]] = {}

    @property
    def linear_inputs(self) -> list[str]:
        """Return the names of the states that meet weights, once the model is built."""
        return list(self._readers)

    def model(self, *, shows_inputs: bool = False) -> Any:
        """Return the ONNX model.

        Args:
            shows_inputs: ``linear_inputs`` are outputs too.
        """
        onnx, shape = self._onnx, self._shape
        self._constant("split", np.array([0, 0, shape.heads, shape.hidden_size // shape.heads]))
        self._constant("join", np.array([0, 0, shape.hidden_size]))
        states = self._embedded()
        for layer in range(shape.layers):
            states = self._layer(states, layer)
        self._add("Identity", [states], "states")
        float32, int64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
        value = onnx.helper.make_tensor_value_info
        types = [] if self._types is None else [value("types", int64, ["B", "T"])]
        shown = [value(name, float32, None) for name in self.linear_inputs] if shows_inputs else []
        graph = onnx.helper.make_graph(
            self._nodes,
            "transformer",
            [
                value("ids", int64, ["B", "T"]),
                value("positions", int64, ["T"]),
                value("bias", float32, ["B", "H", "Q", "T"]),
                *types,
            ],
            [value("states", float32, ["B", "T", shape.hidden_size]), *shown],
            self._constants,
        )
        operators = [onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid("com.microsoft", 1)]
        return onnx.helper.make_model(graph, opset_imports=operators, ir_version=10)

    def _embedded(self) -> str:
        weights = self._weights
        types = weights.get("embeddings.token_type_embeddings.weight")
        places = weights["embeddings.position_embeddings.weight"]
        self._constant("places", places if types is None or self._types is not None else places + types[0])
        self._gather_words(weights["embeddings.word_embeddings.weight"])
        self._add("Gather", ["places", "positions"], "of_places")
        summed = self._add("Add", ["of_words", "of_places"], "summed")
        if self._types is not None:
            self._constant("kinds", self._types)
            summed = self._add("Add", [summed, self._add("Gather", ["kinds", "types"], "of_types")], "summed_types")
        return self._norm(summed, "embeddings.LayerNorm", "embedded")

    def _gather_words(self, vectors: Array) -> None:
        self._constant("words", vectors)
        self._add("Gather", ["words", "ids"], "of_words")

    def _layer(self, states: str, layer: int) -> str:
        names, at = layer_names(self._shape, layer), f"layer{layer}_"
        scale = 1 / math.sqrt(self._shape.hidden_size // self._shape.heads)
        heads = []
        self._readers[states] = [names[part] for part in ("query", "key", "value")]
        for part in ("query", "key", "value"):
            rows = self._linear(states, names[part], at + part, scale if part == "query" else 1.0)
            split = self._add("Reshape", [rows, "split"], f"{at}{part}_split")
            order = [0, 2, 3, 1] if part == "key" else [0, 2, 1, 3]
            heads.append(self._add("Transpose", [split], f"{at}{part}_heads", perm=order))
        scores = self._add("MatMul", heads[:2], at + "products")
        scores = self._add("Add", [scores, "bias"], at + "biased")
        shares = self._add("Softmax", [scores], at + "shares", axis=-1)
        joined = self._add("MatMul", [shares, heads[2]], at + "attended")
        joined = self._add("Transpose", [joined], at + "attended_rows", perm=[0, 2, 1, 3])
        joined = self._add("Reshape", [joined, "join"], at + "attended_joined")
        self._readers[joined] = [names["joined"]]
        joined = self._linear(joined, names["joined"], at + "joined")
        states = self._norm(self._add("Add", [joined, states], at + "sum"), names["joined_norm"], at + "norm")
        self._readers[states] = [names["inner"]]
        inner = self._activated(self._linear(states, names["inner"], at + "inner"), at)
        self._readers[inner] = [names["outer"]]
        outer = self._linear(inner, names["outer"], at + "outer")
        return self._norm(self._add("Add", [outer, states], at + "outer_sum"), names["outer_norm"], at + "states")

    def _activated(self, name: str, at: str) -> str:
        if self._shape.activation == "relu":
            return self._add("Relu", [name], at + "active")
        kind = "tanh" if self._shape.activation == "gelu-tanh" else "none"
        return self._add("Gelu", [name], at + "active", approximate=kind)

    def _linear(self, name: str, weights: str, result: str, scale: float = 1.0) -> str:
        weight = self._constant(f"{result}_weight", self._weights[f"{weights}.weight"].T * np.float32(scale))
        bias = self._constant(f"{result}_bias", self._weights[f"{weights}.bias"] * np.float32(scale))
        product = self._add("MatMul", [name, weight], f"{result}_product")
        return self._add("Add", [product, bias], result)

    def _norm(self, name: str, weights: str, result: str) -> str:
        weight = self._constant(f"{result}_weight", self._weights[f"{weights}.weight"])
        bias = self._constant(f"{result}_bias", self._weights[f"{weights}.bias"])
        return self._add("LayerNormalization", [name, weight, bias], result, axis=-1, epsilon=self._shape.epsilon)

    def _constant(self, name: str, values: NDArray[Any]) -> str:
        self._constants.append(self._onnx.numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def _add(self, kind: str, inputs: Sequence[str], result: str, **settings: Any) -> str:
        self._nodes.append(self._onnx.helper.make_node(kind, list(inputs), [result], **settings))
        return result


_ZERO: Final = np.uint8(128)
_STEPS: Final = np.float32(127)
_LEAST: Final = np.float32(1e-5)


class _EightBitGraph(_Graph):
    """The same with word vectors, and with the products of states and weights, in 8 bits.

    A word's vector has one scale. Weights have a scale for each output, states one for each piece, the largest of its
    numbers: no vector depends on what else is encoded with it. ::

        m_t = max_j |x_tj|,   q_tj = round(127 x_tj / m_t),   x W ≈ m_t s_o Σ_j q_tj w_jo / 127

    A column of x with far larger numbers than the others would leave these few steps. Where the largest numbers of the
    columns are known, columns are balanced: x_j / b_j meets b_j W_j with ``b_j = √(max |x_j| / max |W_j|)``.

    Source: Xiao et al., "SmoothQuant", ICML 2023, equation 4 with α = ½.
    """

    def __init__(self, folder: TransformerFolder, onnx: Any, largest: Mapping[str, Array]) -> None:
        super().__init__(folder, onnx)
        self._largest = largest
        self._in_eight_bits: set[str] = set()

    def _gather_words(self, vectors: Array) -> None:
        scales = np.maximum(np.abs(vectors).max(axis=1, keepdims=True), np.float32(1e-20)) / _STEPS  # (V, 1)
        self._constant("words", np.round(vectors / scales).astype(np.int8))
        self._constant("word_scales", scales)
        rows = self._add("Cast", [self._add("Gather", ["words", "ids"], "word_rows")], "word_steps", to=1)
        self._add("Mul", [rows, self._add("Gather", ["word_scales", "ids"], "scales_of_words")], "of_words")

    def _linear(self, name: str, weights: str, result: str, scale: float = 1.0) -> str:
        values = self._weights[f"{weights}.weight"].T * self._balance(name)[:, None] * np.float32(scale)
        scales = np.maximum(np.abs(values).max(axis=0), np.float32(1e-20)) / _STEPS
        weight = self._constant(f"{result}_weight", np.round(values / scales).astype(np.int8))
        steps = self._constant(f"{result}_scales", scales)
        bias = self._constant(f"{result}_bias", self._weights[f"{weights}.bias"] * np.float32(scale))
        largest, states = self._rounded(name)
        inputs = [states, weight, "step", steps, "zero"]
        product = self._add("MatMulIntegerToFloat", inputs, f"{result}_product", domain="com.microsoft")
        return self._add("Add", [self._add("Mul", [product, largest], f"{result}_scaled"), bias], result)

    def _balance(self, name: str) -> Array:
        """Return b of an input's columns, ones where their largest numbers are not known."""
        columns = [np.abs(self._weights[f"{reader}.weight"]).max(axis=0) for reader in self._readers[name]]
        if name not in self._largest:
            return np.ones_like(columns[0])
        weighed = np.maximum(np.max(columns, axis=0), _LEAST)
        balance: Array = np.sqrt(np.maximum(self._largest[name], _LEAST) / weighed)
        return balance

    def _rounded(self, name: str) -> tuple[str, str]:
        """Return the largest number of each piece, and its numbers in 8 bits; result once for several products."""
        largest, states = f"{name}_largest", f"{name}_rounded"
        if name not in self._in_eight_bits:
            if not self._in_eight_bits:
                for constant, value in (("step", 1 / _STEPS), ("zero", _ZERO), ("least", np.float32(1e-20))):
                    self._constant(constant, np.array(value))
                self._constant("last", np.array([-1]))
            self._in_eight_bits.add(name)
            if name in self._largest:
                inverse = self._constant(f"{name}_inverse", 1 / self._balance(name))
                name = self._add("Mul", [name, inverse], f"{name}_balanced")
            highest = self._add("ReduceMax", [name, "last"], f"{name}_highest", keepdims=1)
            lowest = self._add("ReduceMin", [name, "last"], f"{name}_lowest", keepdims=1)
            self._add("Max", [highest, self._add("Neg", [lowest], f"{name}_depth"), "least"], largest)
            shares = self._add("Div", [name, largest], f"{name}_shares")
            self._add("QuantizeLinear", [shares, "step", "zero"], states)
        return largest, states
