"""A transformer in ONNX Runtime: texts → vectors.

Source: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers", 2019; Song et al., "MPNet", 2020
(relative positions); Reimers and Gurevych, "Sentence-BERT", 2019 (pooling).
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from askalike.errors import DamagedModelError, MissingExtraError, SettingError
from askalike.files import replace_whole
from askalike.models.transformer.folder import Array, Dense, Pooling, TransformerFolder, layer_names, read_folder

Precision = Literal["float32", "int8"]

PIECES_A_BATCH: Final = 1024
"""Padded pieces that run together. Small batches stay in the processor's cache: of 137 pieces a text, 8 texts together
are 1.6 times as fast as 64."""

GRAPH_VERSION: Final = 1
"""Raised whenever the same folder gives another graph than before, so that none that was kept is taken."""

MASKED: Final = np.float32(-1e9)


class Transformer:
    """A sentence transformer: every text is a vector of length 1, the dot product of two is their cosine.

    Equations of a layer, ``X`` the states (T, D) of T pieces, ``M`` the bias of masked and relative positions::

        A = softmax(Q Kᵀ / √(D/H) + M) V          Q, K, V = X W + b, for each of H heads
        X' = norm(X + A W_o + b_o)
        X'' = norm(X' + W_2 act(W_1 X' + b_1) + b_2)

    Args:
        folder: as ``read_folder`` returns it.
        precision: ``int8`` multiplies 8-bit weights and states (twice as fast, cosine .99 to float32).
        threads: of one batch.

    Raises:
        MissingExtraError: ONNX Runtime, onnx or tokenizers is not installed.
        DamagedModelError: the tokenizer cannot be read, or does not fit the word vectors.
    """

    def __init__(self, folder: TransformerFolder, *, precision: Precision = "float32", threads: int = 1) -> None:
        if precision not in ("float32", "int8"):
            raise SettingError(f"there is no precision {precision!r}", "expected float32 or int8")
        self._folder = folder
        self._network = _Network(folder, precision, threads)
        self.name = f"sentence-transformers:{folder.path.name}@{folder.digest[:12]}" + (
            "" if precision == "float32" else f"+{precision}"
        )
        width = folder.shape.hidden_size * len(folder.pooling)
        self.dimensions = folder.dense[-1].weight.shape[0] if folder.dense else width

    @classmethod
    def load(cls, path: str | Path, *, precision: Precision = "float32", threads: int = 1) -> Transformer:
        """Read a folder of the sentence-transformers kind.

        Raises:
            ModelError, MissingExtraError: as ``read_folder`` and the class.
        """
        return cls(read_folder(Path(path)), precision=precision, threads=threads)

    def encode_query(self, texts: Sequence[str]) -> Array:
        """Return the vectors of queries, in their order.  # (N, D) float32"""
        return self._encode(texts, self._folder.prompts.get("query", ""))

    def encode_document(self, texts: Sequence[str]) -> Array:
        """Return the vectors of documents, in their order.  # (N, D) float32"""
        prompts = self._folder.prompts
        return self._encode(texts, prompts.get("document", prompts.get("passage", "")))

    def _encode(self, texts: Sequence[str], prompt: str) -> Array:
        found = np.zeros((len(texts), self.dimensions), dtype=np.float32)  # (N, D)
        for places, states, mask in self._network.states([prompt + text for text in texts]):
            vectors = np.concatenate([POOLINGS[one](states, mask) for one in self._folder.pooling], axis=1)  # (B, D)
            for layer in self._folder.dense:
                vectors = _dense(layer, vectors)
            found[places] = normalised(vectors)
        return found


class CrossEncoder:
    """A model that reads two texts together and gives one number: higher where they fit better.

    Args:
        folder: as ``read_folder(…, is_of_pairs=True)`` returns it.
        precision, threads: as ``Transformer``.

    Raises:
        MissingExtraError, DamagedModelError: as ``Transformer``.
    """

    def __init__(self, folder: TransformerFolder, *, precision: Precision = "float32", threads: int = 1) -> None:
        assert folder.head is not None
        self.name = f"cross-encoder:{folder.path.name}@{folder.digest[:12]}"
        self._head = folder.head
        self._network = _Network(folder, precision, threads)

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return a number for each text, as sentence-transformers' ``CrossEncoder.predict`` does."""
        head, found = self._head, np.zeros(len(texts))
        for places, states, _ in self._network.states([(query, text) for text in texts]):
            inner = states[:, 0] @ head.weight.T + head.bias  # (B, D)
            inner = np.maximum(inner, 0) if head.is_relu else np.tanh(inner)
            found[places] = inner @ head.out + head.constant
        return (1 / (1 + np.exp(-found)) if head.is_probability else found).tolist()  # type: ignore[no-any-return]


class _Network:
    """Texts, or pairs of texts, → the states of their pieces.

    Raises:
        SettingError, MissingExtraError, DamagedModelError: as ``Transformer``.
    """

    def __init__(self, folder: TransformerFolder, precision: Precision, threads: int) -> None:
        self._first_position = folder.shape.first_position
        self._types = types_of(folder)
        self._tokenizer = _tokenizer(folder)
        self._session = _session(folder, precision, threads)
        self._bias = _RelativeBias(folder) if folder.shape.family == "mpnet" else None

    def states(
        self, texts: Sequence[str] | Sequence[tuple[str, str]]
    ) -> Iterator[tuple[list[int], Array, NDArray[np.bool_]]]:
        """Yield places of texts, the states of their pieces (B, T, D), and which of them are pieces (B, T)."""
        read = self._tokenizer.encode_batch(texts)
        for places in _batches([len(one.ids) for one in read]):
            part = [read[place] for place in places]
            longest = max(len(one.ids) for one in part)
            ids = np.zeros((len(part), longest), dtype=np.int64)  # (B, T)
            types = np.zeros_like(ids)  # (B, T)
            mask = np.zeros((len(part), longest), dtype=bool)  # (B, T)
            for row, one in enumerate(part):
                ids[row, : len(one.ids)] = one.ids
                types[row, : len(one.ids)] = one.type_ids
                mask[row, : len(one.ids)] = True
            bias = np.where(mask, np.float32(0), MASKED)[:, None, None, :]  # (B, 1, 1, T)
            if self._bias is not None:
                bias = bias + self._bias.of(longest)  # (B, H, T, T)
            given = {"ids": ids, "positions": np.arange(longest) + self._first_position, "bias": bias}
            if self._types is not None:
                given["types"] = np.minimum(types, len(self._types) - 1)
            yield places, self._session.run(None, given)[0], mask


def types_of(folder: TransformerFolder) -> Array | None:
    """Return what tells the first text of a pair from the second, where the model reads pairs.  # (2, D)"""
    return None if folder.head is None else folder.weights.get("embeddings.token_type_embeddings.weight")


def normalised(vectors: Array) -> Array:
    """Return vectors at length 1; those without a direction stay zeros.  # (N, D)"""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    found: Array = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return found


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the places of texts that run together: of like length, longest first, at most so many padded pieces."""
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    start = 0
    while start < len(order):
        count = max(1, PIECES_A_BATCH // max(1, lengths[order[start]]))
        yield order[start : start + count]
        start += count


def _mean(states: Array, mask: NDArray[np.bool_]) -> Array:
    weights = mask[..., None].astype(np.float32)
    total: Array = (states * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-9)
    return total


def _mean_by_root(states: Array, mask: NDArray[np.bool_]) -> Array:
    counts = mask.sum(axis=1, keepdims=True).astype(np.float32)
    found: Array = _mean(states, mask) * np.sqrt(counts)
    return found


def _maximum(states: Array, mask: NDArray[np.bool_]) -> Array:
    found: Array = np.where(mask[..., None], states, MASKED).max(axis=1)
    return found


def _last(states: Array, mask: NDArray[np.bool_]) -> Array:
    found: Array = states[np.arange(len(states)), mask.sum(axis=1) - 1]
    return found


POOLINGS: Final[Mapping[Pooling, Callable[[Array, NDArray[np.bool_]], Array]]] = {
    "mean": _mean,
    "cls": lambda states, _: states[:, 0],
    "max": _maximum,
    "mean_sqrt_len_tokens": _mean_by_root,
    "lasttoken": _last,
}
"""Name → from states (B, T, D) and which of them are pieces (B, T) to vectors (B, D)."""


def _dense(layer: Dense, vectors: Array) -> Array:
    found = vectors @ layer.weight.T
    if layer.bias is not None:
        found = found + layer.bias
    return np.tanh(found) if layer.is_tanh else found


class _RelativeBias:
    """What MPNet adds to the attention between two positions, by their distance.

    Distances share 32 buckets for each direction's half: one each below 8, wider ones up to 128 and beyond.
    """

    def __init__(self, folder: TransformerFolder) -> None:
        self._table = folder.weights["encoder.relative_attention_bias.weight"]  # (buckets, H)
        self._made: dict[int, Array] = {}

    def of(self, length: int) -> Array:
        """Return the bias for texts of so many pieces.  # (1, H, T, T)"""
        if length not in self._made:
            if len(self._made) >= 16:
                self._made.clear()
            places = np.arange(length)
            buckets = relative_buckets(places[None, :] - places[:, None], len(self._table))
            self._made[length] = np.ascontiguousarray(self._table[buckets].transpose(2, 0, 1)[None])
        return self._made[length]


def relative_buckets(distances: NDArray[np.int64], buckets: int, most: int = 128) -> NDArray[np.int64]:
    """Return the bucket of each distance (key's place less query's).

    >>> relative_buckets(np.array([0, -1, 1, -200, 200]), 32).tolist()
    [0, 1, 17, 15, 31]
    """
    half = buckets // 2
    exact = half // 2
    far = np.abs(distances)
    with np.errstate(divide="ignore"):
        wide = exact + (np.log(far / exact) / math.log(most / exact) * (half - exact)).clip(0, half).astype(np.int64)
    found: NDArray[np.int64] = np.where(far < exact, far, np.minimum(wide, half - 1)) + half * (distances > 0)
    return found


def _tokenizer(folder: TransformerFolder) -> Any:
    try:
        import tokenizers
    except ImportError as error:
        raise _missing("tokenizers") from error
    try:
        found = tokenizers.Tokenizer.from_str(folder.tokenizer)
    except Exception as error:  # tokenizers raises nothing more precise
        raise DamagedModelError(
            f"tokenizer.json of {folder.path} cannot be read: {error}", "take the folder again from where it came"
        ) from error
    rows = len(folder.weights["embeddings.word_embeddings.weight"])
    if not 0 < found.get_vocab_size() <= rows:
        raise DamagedModelError(
            f"tokenizer.json of {folder.path} has {found.get_vocab_size()} pieces, but there are {rows} word vectors",
            "take the files of one model",
        )
    found.enable_truncation(folder.max_pieces)
    found.no_padding()
    return found


def _missing(name: str) -> MissingExtraError:
    return MissingExtraError(f"the package {name} is not installed, which runs sentence transformers", "transformers")


def _session(folder: TransformerFolder, precision: Precision, threads: int) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise _missing("onnxruntime") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.enable_cpu_mem_arena = False  # texts differ in length, and the arena keeps the largest of each
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")

    def session(graph: bytes) -> Any:
        return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    if precision == "float32":
        return session(_Graph(folder).model().SerializeToString())
    kept = cache_folder() / f"{folder.digest[:32]}-int8-{GRAPH_VERSION}-{onnxruntime.__version__}.onnx"
    with contextlib.suppress(OSError):  # it is not there
        digest, graph = _divided(kept.read_bytes())
        if hashlib.sha256(graph).digest() == digest:
            return session(graph)
    graph = _quantised(_Graph(folder).model()).SerializeToString()
    with contextlib.suppress(OSError):  # a cache that cannot be written costs a second and a half each time
        kept.parent.mkdir(parents=True, exist_ok=True)
        replace_whole(kept, hashlib.sha256(graph).digest() + graph, is_narrow=True)
    return session(graph)


def _divided(content: bytes) -> tuple[bytes, bytes]:
    """Return what a kept file begins with, the digest of the rest, and the rest."""
    return content[:32], content[32:]


def cache_folder() -> Path:
    """Return where this user keeps what can be made anew at any time; it need not be there."""
    if os.name == "nt" and "LOCALAPPDATA" in os.environ:
        return Path(os.environ["LOCALAPPDATA"]) / "askalike" / "cache"
    root = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(root) if root else Path("~/.cache").expanduser()) / "askalike"


def _quantised(graph: Any) -> Any:
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    logger = logging.getLogger()
    level = logger.level
    logger.setLevel(logging.ERROR)  # it advises a step that does nothing for these graphs
    try:
        with tempfile.TemporaryDirectory(prefix="askalike-int8-") as place:
            file = Path(place) / "model.onnx"
            quantize_dynamic(
                graph,
                file,
                weight_type=QuantType.QInt8,
                per_channel=True,
                op_types_to_quantize=["MatMul"],
                extra_options={"MatMulConstBOnly": True},
            )
            return onnx.load(file)
    finally:
        logger.setLevel(level)


class _Graph:
    """The transformer as an ONNX graph; ids (B, T), positions (T,), bias (B, 1 or H, 1 or T, T) → states (B, T, D)."""

    def __init__(self, folder: TransformerFolder) -> None:
        try:
            import onnx
        except ImportError as error:
            raise _missing("onnx") from error
        self._onnx = onnx
        self._weights, self._shape = folder.weights, folder.shape
        self._types = types_of(folder)
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def model(self) -> Any:
        """Return the ONNX model."""
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
        graph = onnx.helper.make_graph(
            self._nodes,
            "transformer",
            [
                value("ids", int64, ["B", "T"]),
                value("positions", int64, ["T"]),
                value("bias", float32, ["B", "H", "Q", "T"]),
                *types,
            ],
            [value("states", float32, ["B", "T", shape.hidden_size])],
            self._constants,
        )
        return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10)

    def _embedded(self) -> str:
        weights = self._weights
        types = weights.get("embeddings.token_type_embeddings.weight")
        places = weights["embeddings.position_embeddings.weight"]
        self._constant("words", weights["embeddings.word_embeddings.weight"])
        self._constant("places", places if types is None or self._types is not None else places + types[0])
        self._add("Gather", ["words", "ids"], "of_words")
        self._add("Gather", ["places", "positions"], "of_places")
        summed = self._add("Add", ["of_words", "of_places"], "summed")
        if self._types is not None:
            self._constant("kinds", self._types)
            summed = self._add("Add", [summed, self._add("Gather", ["kinds", "types"], "of_types")], "summed_types")
        return self._norm(summed, "embeddings.LayerNorm", "embedded")

    def _layer(self, states: str, layer: int) -> str:
        names, at = layer_names(self._shape, layer), f"layer{layer}_"
        scale = 1 / math.sqrt(self._shape.hidden_size // self._shape.heads)
        heads = []
        for part in ("query", "key", "value"):
            made = self._linear(states, names[part], at + part, scale if part == "query" else 1.0)
            made = self._add("Reshape", [made, "split"], f"{at}{part}_split")
            order = [0, 2, 3, 1] if part == "key" else [0, 2, 1, 3]
            heads.append(self._add("Transpose", [made], f"{at}{part}_heads", perm=order))
        scores = self._add("MatMul", heads[:2], at + "products")
        scores = self._add("Add", [scores, "bias"], at + "biased")
        shares = self._add("Softmax", [scores], at + "shares", axis=-1)
        joined = self._add("MatMul", [shares, heads[2]], at + "attended")
        joined = self._add("Transpose", [joined], at + "attended_rows", perm=[0, 2, 1, 3])
        joined = self._add("Reshape", [joined, "join"], at + "attended_joined")
        joined = self._linear(joined, names["joined"], at + "joined")
        states = self._norm(self._add("Add", [joined, states], at + "sum"), names["joined_norm"], at + "norm")
        inner = self._activated(self._linear(states, names["inner"], at + "inner"), at)
        outer = self._linear(inner, names["outer"], at + "outer")
        return self._norm(self._add("Add", [outer, states], at + "outer_sum"), names["outer_norm"], at + "states")

    def _activated(self, name: str, at: str) -> str:
        if self._shape.activation == "relu":
            return self._add("Relu", [name], at + "active")
        kind = "tanh" if self._shape.activation == "gelu-tanh" else "none"
        return self._add("Gelu", [name], at + "active", approximate=kind)

    def _linear(self, name: str, weights: str, made: str, scale: float = 1.0) -> str:
        weight = self._constant(f"{made}_weight", self._weights[f"{weights}.weight"].T * np.float32(scale))
        bias = self._constant(f"{made}_bias", self._weights[f"{weights}.bias"] * np.float32(scale))
        product = self._add("MatMul", [name, weight], f"{made}_product")
        return self._add("Add", [product, bias], made)

    def _norm(self, name: str, weights: str, made: str) -> str:
        weight = self._constant(f"{made}_weight", self._weights[f"{weights}.weight"])
        bias = self._constant(f"{made}_bias", self._weights[f"{weights}.bias"])
        return self._add("LayerNormalization", [name, weight, bias], made, axis=-1, epsilon=self._shape.epsilon)

    def _constant(self, name: str, values: NDArray[Any]) -> str:
        self._constants.append(self._onnx.numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def _add(self, kind: str, inputs: Sequence[str], made: str, **settings: Any) -> str:
        self._nodes.append(self._onnx.helper.make_node(kind, list(inputs), [made], **settings))
        return made
