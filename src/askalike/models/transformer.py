"""Sentence transformers in ONNX Runtime: texts → vectors, from a folder as sentence-transformers writes it.

Texts run in batches, each on one thread, and the batches of a large call side by side on the cores that the process
may use: so the vectors are the same, to the bit, on any number of them, whatever else is encoded with a text.

Such folders are untrusted: paths stay inside, sizes in the settings must be those of the weights, and nothing is
unpickled.

Source: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers", 2019; Song et al., "MPNet", 2020
(relative positions); Reimers and Gurevych, "Sentence-BERT", 2019 (pooling).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import safetensors
from numpy.typing import NDArray

from askalike.errors import DamagedModelError, MissingExtraError, ModelError, ModelNotFoundError, SettingError
from askalike.models.text_encoder import READ_OF_PAIRS, text_of
from askalike.processes import cores, side_by_side
from askalike.types import Question

Array = NDArray[np.float32]
Family = Literal["bert", "roberta", "distilbert", "mpnet"]
Pooling = Literal["mean", "cls", "max", "mean_sqrt_len_tokens", "lasttoken"]

FAMILIES: Final[Mapping[str, Family]] = {
    "bert": "bert",
    "roberta": "roberta",
    "xlm-roberta": "roberta",
    "camembert": "roberta",
    "distilbert": "distilbert",
    "mpnet": "mpnet",
}
"""``model_type`` of a model's settings → how its weights are named and its positions counted."""

ACTIVATIONS: Final = {"gelu": "gelu", "gelu_new": "gelu-tanh", "gelu_pytorch_tanh": "gelu-tanh", "relu": "relu"}

_TYPES: Final = {"F32": np.float32, "F16": np.float16, "F64": np.float64, "I64": np.int64}
_MAX_JSON_BYTES: Final = 4 << 20
_MAX_WEIGHTS_BYTES: Final = 2 << 30
_AGAIN: Final = "take the folder again from where it came"


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a transformer.

    Args:
        hidden_size: D, the size of a state; ``heads`` divides it.
        inner_size: of the feed-forward layer.
        first_position: the row of the first piece's position vector.
        max_pieces: longest text that the position vectors allow, special pieces among them.
    """

    family: Family
    layers: int
    heads: int
    hidden_size: int
    inner_size: int
    epsilon: float
    activation: str
    first_position: int
    max_pieces: int


@dataclass(frozen=True, slots=True)
class Dense:
    """A layer behind the pooling: ``activation(W v + b)``.  # W (D_out, D_in), b (D_out,)"""

    weight: Array
    bias: Array | None
    is_tanh: bool


@dataclass(frozen=True, slots=True)
class Head:
    """What makes one number of the first piece's state: ``out · activation(W s + b) + c``.

    Args:
        weight, bias: W (D, D) and b (D,).
        out, constant: out (D,) and c.
        is_relu: the activation; tanh where not.
        is_probability: a sigmoid follows.
    """

    weight: Array
    bias: Array
    out: Array
    constant: float
    is_relu: bool
    is_probability: bool


@dataclass(frozen=True, slots=True)
class TransformerFolder:
    """What a folder contains.

    Args:
        weights: by the names of the family, without a prefix such as ``bert.``; float32.
        max_pieces: texts are cut here.
        prompts: "query" and "document" → what is written before a text.
        digest: SHA-256 of everything that decides a vector, in hexadecimal.
    """

    path: Path
    shape: Shape
    weights: Mapping[str, Array]
    tokenizer: str
    pooling: tuple[Pooling, ...]
    max_pieces: int
    dense: tuple[Dense, ...] = ()
    prompts: Mapping[str, str] = field(default_factory=dict)
    digest: str = ""
    head: Head | None = None


def read_folder(path: Path, *, is_of_pairs: bool = False) -> TransformerFolder:
    """Read a folder.

    Args:
        is_of_pairs: it is a cross-encoder: its head is read too.

    Raises:
        ModelNotFoundError: there is no such model.
        ModelError: it is of a family, or has a module, that cannot be run.
        DamagedModelError: a file is missing or damaged, or the files do not fit each other.
    """
    if not (path / "config.json").is_file() and not (path / "modules.json").is_file():
        kind = "cross-encoder" if is_of_pairs else "sentence-transformers model"
        raise ModelNotFoundError(f"there is no {kind} at {path}", "name a folder with modules.json or config.json")
    modules = _modules(path)
    root = modules.get("Transformer", [path])[0]
    settings = _object(root / "config.json")
    digest = hashlib.sha256()
    weights = _weights(root / "model.safetensors", digest)
    shape = _shape(settings, root / "config.json")
    weights = _without_prefix(weights)
    head = _head(path, root, settings, shape, weights) if is_of_pairs else None
    weights = _checked(shape, weights, root / "model.safetensors")
    tokenizer = _text(root / "tokenizer.json")
    pooling = _pooling(modules["Pooling"][0] / "config.json") if "Pooling" in modules else ("mean",)
    dense = tuple(_dense(one, digest) for one in modules.get("Dense", []))
    named = _optional(root / "sentence_bert_config.json").get("max_seq_length")
    if named is None:  # newer versions write it here alone
        named = _optional(root / "tokenizer_config.json").get("model_max_length")
    limit = min(named, shape.max_pieces) if isinstance(named, int) and named > 2 else shape.max_pieces
    found = _optional(path / "config_sentence_transformers.json").get("prompts")
    prompts = {str(name): str(text) for name, text in found.items()} if isinstance(found, dict) else {}
    digest.update(json.dumps([settings, tokenizer, pooling, limit, prompts], sort_keys=True).encode())
    if head is not None:
        digest.update(f"pairs {head.is_probability}".encode())
    return TransformerFolder(path, shape, weights, tokenizer, pooling, limit, dense, prompts, digest.hexdigest(), head)


def _modules(path: Path) -> dict[str, list[Path]]:
    """Return the last part of each module's type → their folders, in order; a folder without the list is a model."""
    if not (path / "modules.json").is_file():
        return {}
    found: dict[str, list[Path]] = {}
    listed = _json(path / "modules.json")
    for one in listed if isinstance(listed, list) else []:
        kind = str(one.get("type", "")).rsplit(".", 1)[-1] if isinstance(one, dict) else ""
        inside = str(one.get("path", "")) if isinstance(one, dict) else ""
        folder = path / inside
        if kind not in ("Transformer", "Pooling", "Dense", "Normalize"):
            raise ModelError(
                f"{path} has a module of the kind {kind!r}, expected Transformer, Pooling, Dense or Normalize",
                "take another model, or serve it and name its address",
            )
        if not folder.resolve().is_relative_to(path.resolve()):
            raise DamagedModelError(f"modules.json of {path} names the folder {inside!r} outside the model", _AGAIN)
        found.setdefault(kind, []).append(folder)
    if "Transformer" not in found:
        raise DamagedModelError(f"modules.json of {path} names no Transformer", _AGAIN)
    return found


def _shape(settings: Mapping[str, Any], path: Path) -> Shape:
    kind = str(settings.get("model_type", ""))
    family = FAMILIES.get(kind)
    if family is None:
        raise ModelError(
            f"{path} is of a model of the type {kind!r}, expected one of {', '.join(FAMILIES)}",
            "take another model, or serve it and name its address",
        )
    is_distilled = family == "distilbert"
    activation = ACTIVATIONS.get(str(settings.get("activation" if is_distilled else "hidden_act", "gelu")))
    position = settings.get("position_embedding_type", "absolute")
    if activation is None or position not in ("absolute", None):
        raise ModelError(f"{path} asks for an activation or for positions that cannot be run", "take another model")
    sizes = (
        ("n_layers", "n_heads", "dim", "hidden_dim")
        if is_distilled
        else (
            "num_hidden_layers",
            "num_attention_heads",
            "hidden_size",
            "intermediate_size",
        )
    )
    layers, heads, hidden, inner = (_size(settings, name, path) for name in sizes)
    if hidden % heads:
        raise DamagedModelError(f"{path} has a hidden size of {hidden}, which {heads} heads do not divide", _AGAIN)
    first = int(settings.get("pad_token_id") or 1) + 1 if family in ("roberta", "mpnet") else 0
    positions = _size(settings, "max_position_embeddings", path)
    epsilon = 1e-12 if is_distilled else float(settings.get("layer_norm_eps", 1e-12))
    return Shape(family, layers, heads, hidden, inner, epsilon, activation, first, positions - first)


def _size(settings: Mapping[str, Any], name: str, path: Path) -> int:
    value = settings.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1 << 20:
        raise DamagedModelError(f"{path} has {name} = {value!r}, expected a whole number from 1 to {1 << 20}", _AGAIN)
    return value


def layer_names(shape: Shape, layer: int) -> dict[str, str]:
    """Return what a layer's parts are called in the weights: ``query`` → ``encoder.layer.0.attention.self.query``."""
    if shape.family == "distilbert":
        root = f"transformer.layer.{layer}."
        names = ("attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin", "sa_layer_norm")
        rest = ("ffn.lin1", "ffn.lin2", "output_layer_norm")
    elif shape.family == "mpnet":
        root = f"encoder.layer.{layer}."
        names = ("attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o", "attention.LayerNorm")
        rest = ("intermediate.dense", "output.dense", "output.LayerNorm")
    else:
        root = f"encoder.layer.{layer}."
        own = "attention.self."
        names = (own + "query", own + "key", own + "value", "attention.output.dense", "attention.output.LayerNorm")
        rest = ("intermediate.dense", "output.dense", "output.LayerNorm")
    parts = ("query", "key", "value", "joined", "joined_norm", "inner", "outer", "outer_norm")
    return {part: root + name for part, name in zip(parts, (*names, *rest), strict=True)}


def _checked(shape: Shape, weights: Mapping[str, Array], path: Path) -> dict[str, Array]:
    """Return the weights that the model needs, each of the shape that the settings say."""
    size, inner = shape.hidden_size, shape.inner_size
    square = dict.fromkeys(("query", "key", "value", "joined"), ((size, size), (size,)))
    expected: dict[str, tuple[int | None, ...]] = {
        "embeddings.word_embeddings.weight": (None, size),
        "embeddings.position_embeddings.weight": (shape.max_pieces + shape.first_position, size),
        "embeddings.LayerNorm.weight": (size,),
        "embeddings.LayerNorm.bias": (size,),
    }
    if shape.family in ("bert", "roberta"):
        expected["embeddings.token_type_embeddings.weight"] = (None, size)
    if shape.family == "mpnet":
        expected["encoder.relative_attention_bias.weight"] = (None, shape.heads)
    for layer in range(shape.layers):
        names = layer_names(shape, layer)
        parts = {**square, "inner": ((inner, size), (inner,)), "outer": ((size, inner), (size,))}
        for part in ("joined_norm", "outer_norm"):
            parts[part] = ((size,), (size,))  # type: ignore[assignment]
        for part, (weight, bias) in parts.items():
            expected[f"{names[part]}.weight"], expected[f"{names[part]}.bias"] = weight, bias
        if any(f"{names[part]}.weight" not in weights for part in parts):
            break  # told below, and settings that claim a million layers end here
    for name, wanted in expected.items():
        found = weights.get(name)
        if found is None or len(found.shape) != len(wanted):
            raise DamagedModelError(f"{path} has no {name} of {len(wanted)} dimensions", _AGAIN)
        if any(size is not None and size != real for size, real in zip(wanted, found.shape, strict=True)):
            raise DamagedModelError(f"{path} has {name} of shape {found.shape}, expected {wanted}", _AGAIN)
    return {name: weights[name] for name in expected}


def _without_prefix(weights: Mapping[str, Array]) -> dict[str, Array]:
    """Return the weights by names without the model's own prefix, and with today's names of layer norms."""
    start = next((name for name in weights if name.endswith("embeddings.word_embeddings.weight")), "")
    prefix = start.removesuffix("embeddings.word_embeddings.weight")
    return {
        name.removeprefix(prefix)
        .replace("LayerNorm.gamma", "LayerNorm.weight")
        .replace("LayerNorm.beta", "LayerNorm.bias"): values
        for name, values in weights.items()
    }


def _weights(path: Path, digest: Any) -> dict[str, Array]:
    if not path.is_file():
        raise DamagedModelError(
            f"there is no {path}", "take a model with weights as safetensors; other formats are not read"
        )
    if path.stat().st_size > _MAX_WEIGHTS_BYTES:
        raise ModelError(f"{path} is larger than {_MAX_WEIGHTS_BYTES >> 30} GB", "serve the model and name its address")
    data = path.read_bytes()
    digest.update(hashlib.sha256(data).digest())
    try:
        found = safetensors.deserialize(data)  # type: ignore[no-untyped-call]
    except (safetensors.SafetensorError, ValueError, OverflowError) as error:
        raise DamagedModelError(f"{path} cannot be read: {str(error)[:200]}", _AGAIN) from error
    arrays: dict[str, Array] = {}
    for name, entry in found:
        if entry["dtype"] == "BF16":  # the upper half of a float32
            values = (np.frombuffer(entry["data"], np.uint16).astype(np.uint32) << 16).view(np.float32)
        elif entry["dtype"] in _TYPES:
            values = np.frombuffer(entry["data"], _TYPES[entry["dtype"]]).astype(np.float32)
        else:
            continue
        if not np.isfinite(values).all():
            raise DamagedModelError(f"{path} has numbers in {name[:60]!r} that are not finite", _AGAIN)
        arrays[name] = values.reshape(entry["shape"])
    return arrays


def _pooling(path: Path) -> tuple[Pooling, ...]:
    settings = _object(path)
    known: tuple[Pooling, ...] = ("cls", "max", "mean", "mean_sqrt_len_tokens", "lasttoken")
    single = settings.get("pooling_mode")
    if isinstance(single, str):
        found = tuple(one for one in known if one == single)
    else:
        keys = {"cls": "cls_token", "max": "max_tokens", "mean": "mean_tokens"}
        found = tuple(one for one in known if settings.get(f"pooling_mode_{keys.get(one, one)}") is True)
    if not found:
        raise ModelError(f"{path} asks for a pooling that cannot be run", f"expected one of {', '.join(known)}")
    return found


def _dense(folder: Path, digest: Any) -> Dense:
    settings = _object(folder / "config.json")
    activation = str(settings.get("activation_function", "")).rsplit(".", 1)[-1]
    if activation not in ("Tanh", "Identity"):
        raise ModelError(f"{folder} asks for the activation {activation!r}, expected Tanh or Identity", "take another")
    weights = _weights(folder / "model.safetensors", digest)
    weight = weights.get("linear.weight")
    if weight is None or weight.ndim != 2:
        raise DamagedModelError(f"{folder} has no linear.weight of two dimensions", _AGAIN)
    return Dense(weight, weights.get("linear.bias"), activation == "Tanh")


_HEADS: Final[Mapping[Family, tuple[str, str]]] = {
    "bert": ("pooler.dense", "classifier"),
    "roberta": ("classifier.dense", "classifier.out_proj"),
    "mpnet": ("classifier.dense", "classifier.out_proj"),
    "distilbert": ("pre_classifier", "classifier"),
}
"""Family → the two layers of its head."""


def _head(path: Path, root: Path, settings: Mapping[str, Any], shape: Shape, weights: Mapping[str, Array]) -> Head:
    size, (inner, outer) = shape.hidden_size, _HEADS[shape.family]
    wanted = {f"{inner}.weight": (size, size), f"{inner}.bias": (size,), f"{outer}.weight": (1, size)}
    wanted[f"{outer}.bias"] = (1,)
    for name, expected in wanted.items():
        if name not in weights or weights[name].shape != expected:
            found = weights[name].shape if name in weights else "nothing"
            raise ModelError(
                f"{root} has {found} as {name}, expected {expected}",
                "name the folder of a cross-encoder with one label, such as ms-marco-MiniLM",
            )
    older = settings.get("sentence_transformers")
    named = _optional(path / "config_sentence_transformers.json").get("activation_fn") or (
        older.get("activation_fn") if isinstance(older, dict) else settings.get("sbert_ce_default_activation_function")
    )
    activation = str(named or "Sigmoid").rsplit(".", 1)[-1]
    if activation not in ("Sigmoid", "Identity"):
        raise ModelError(f"{path} asks for the activation {activation!r}, expected Sigmoid or Identity", "take another")
    weight, bias, out, constant = (weights[name] for name in wanted)
    is_relu = shape.family == "distilbert"
    return Head(weight, bias, out[0], float(constant[0]), is_relu, is_probability=activation == "Sigmoid")


def _object(path: Path) -> Mapping[str, Any]:
    found = _json(path)
    if not isinstance(found, dict):
        raise DamagedModelError(f"{path} is not a JSON object", _AGAIN)
    return found


def _optional(path: Path) -> Mapping[str, Any]:
    return _object(path) if path.is_file() else {}


def _json(path: Path) -> Any:
    try:
        return json.loads(_text(path, _MAX_JSON_BYTES))
    except (ValueError, RecursionError) as error:
        raise DamagedModelError(f"{path} is not JSON: {error}", _AGAIN) from error


def _text(path: Path, most: int = 1 << 27) -> str:
    if not path.is_file() or path.stat().st_size > most:
        raise DamagedModelError(f"{path} is missing or larger than {most} bytes", _AGAIN)
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DamagedModelError(f"{path} is not UTF-8", _AGAIN) from error


Precision = Literal["float32", "int8"]

PIECES_A_BATCH: Final = 1024
"""Padded pieces that run together. Small batches stay in the processor's cache: of 137 pieces a text, 8 texts together
are 1.6 times as fast as 64."""

MOST_THREADS: Final = 8
"""Each takes some 75 MB of MiniLM in 8 bits, 130 in float32."""

MASKED: Final = np.float32(-1e9)


class Transformer:
    """A sentence transformer: every text is a vector of length 1, the dot product of two is their cosine.

    Equations of a layer, ``X`` the states (T, D) of T pieces, ``M`` the bias of masked and relative positions::

        A = softmax(Q Kᵀ / √(D/H) + M) V          Q, K, V = X W + b, for each of H heads
        X' = norm(X + A W_o + b_o)
        X'' = norm(X' + W_2 act(W_1 X' + b_1) + b_2)

    Args:
        folder: as ``read_folder`` returns it.
        precision: ``int8`` multiplies 8-bit weights and states (twice as fast, cosine .998 to float32).
        threads: batches that run side by side; as many as there are cores, at most ``MOST_THREADS``, if not given.

    Raises:
        MissingExtraError: ONNX Runtime, onnx or tokenizers is not installed.
        DamagedModelError: the tokenizer cannot be read, or does not fit the word vectors.
    """

    def __init__(
        self, folder: TransformerFolder, *, precision: Precision = "float32", threads: int | None = None
    ) -> None:
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
    def load(cls, path: str | Path, *, precision: Precision = "float32", threads: int | None = None) -> Transformer:
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
        for places, vectors in self._network.run([prompt + text for text in texts], self._pooled):
            found[places] = vectors
        return found

    def _pooled(self, states: Array, mask: NDArray[np.bool_]) -> Array:
        vectors = np.concatenate([POOLINGS[one](states, mask) for one in self._folder.pooling], axis=1)  # (B, D)
        for layer in self._folder.dense:
            vectors = _projected(layer, vectors)
        return normalised(vectors)


class CrossEncoder:
    """A model that reads two texts together and gives one number: higher where they fit better.

    Args:
        folder: as ``read_folder(…, is_of_pairs=True)`` returns it.
        precision, threads: as ``Transformer``.

    Raises:
        MissingExtraError, DamagedModelError: as ``Transformer``.
    """

    def __init__(
        self, folder: TransformerFolder, *, precision: Precision = "float32", threads: int | None = None
    ) -> None:
        assert folder.head is not None
        self.name = f"cross-encoder:{folder.path.name}@{folder.digest[:12]}"
        self._head = folder.head
        self._network = _Network(folder, precision, threads)

    def score(self, query: Question, questions: Sequence[Question]) -> list[float]:
        """Return a number for each question, read with the query as text; see ``score_texts``."""
        return self.score_texts(text_of(query, READ_OF_PAIRS), [text_of(one, READ_OF_PAIRS) for one in questions])

    def score_texts(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return a number for each text, as sentence-transformers' ``CrossEncoder.predict`` does."""
        head, found = self._head, np.zeros(len(texts))
        for places, scores in self._network.run([(query, text) for text in texts], self._scored):
            found[places] = scores
        return (1 / (1 + np.exp(-found)) if head.is_probability else found).tolist()  # type: ignore[no-any-return]

    def _scored(self, states: Array, _: NDArray[np.bool_]) -> Array:
        inner = states[:, 0] @ self._head.weight.T + self._head.bias  # (B, D)
        inner = np.maximum(inner, 0) if self._head.is_relu else np.tanh(inner)
        scores: Array = inner @ self._head.out + self._head.constant  # (B,)
        return scores


class _Network:
    """Texts, or pairs of texts, → the states of their pieces; any thread may ask.

    Raises:
        SettingError, MissingExtraError, DamagedModelError: as ``Transformer``.
    """

    def __init__(self, folder: TransformerFolder, precision: Precision, threads: int | None) -> None:
        self._first_position = folder.shape.first_position
        self._types = types_of(folder)
        self._tokenizer = _tokenizer(folder)
        self._session = _session(folder, precision)
        self._bias = _RelativeBias(folder) if folder.shape.family == "mpnet" else None
        self._threads = threads or min(MOST_THREADS, cores())

    def run(
        self, texts: Sequence[str] | Sequence[tuple[str, str]], made: Callable[[Array, NDArray[np.bool_]], Array]
    ) -> Iterator[tuple[list[int], Array]]:
        """Yield places of texts, and what is made of the states of their pieces.

        Args:
            made: of states (B, T, D) and which of them are pieces (B, T); called in threads.
        """
        read = self._tokenizer.encode_batch(texts)

        def one(places: list[int]) -> tuple[list[int], Array]:
            return places, made(*self._states([read[place] for place in places]))

        yield from side_by_side(one, _batches([len(one.ids) for one in read]), self._threads)

    def _states(self, read: Sequence[Any]) -> tuple[Array, NDArray[np.bool_]]:
        longest = max(len(one.ids) for one in read)
        ids = np.zeros((len(read), longest), dtype=np.int64)  # (B, T)
        types = np.zeros_like(ids)  # (B, T)
        mask = np.zeros((len(read), longest), dtype=bool)  # (B, T)
        for row, one in enumerate(read):
            ids[row, : len(one.ids)] = one.ids
            types[row, : len(one.ids)] = one.type_ids
            mask[row, : len(one.ids)] = True
        bias = np.where(mask, np.float32(0), MASKED)[:, None, None, :]  # (B, 1, 1, T)
        if self._bias is not None:
            bias = bias + self._bias.of(longest)  # (B, H, T, T)
        given = {"ids": ids, "positions": np.arange(longest) + self._first_position, "bias": bias}
        if self._types is not None:
            given["types"] = np.minimum(types, len(self._types) - 1)
        return self._session.run(None, given)[0], mask


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


def _projected(layer: Dense, vectors: Array) -> Array:
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
        found = self._made.get(length)
        if found is None:
            if len(self._made) >= 16:
                self._made.clear()
            places = np.arange(length)
            buckets = relative_buckets(places[None, :] - places[:, None], len(self._table))
            found = self._made[length] = np.ascontiguousarray(self._table[buckets].transpose(2, 0, 1)[None])
        return found


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


def _session(folder: TransformerFolder, precision: Precision) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise _missing("onnxruntime") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.enable_cpu_mem_arena = False  # texts differ in length, and the arena keeps the largest of each
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")

    graph = (_Graph if precision == "float32" else _EightBitGraph)(folder).model().SerializeToString()
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


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
        self._in_eight_bits: set[str] = set()

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
        operators = [onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid("com.microsoft", 1)]
        return onnx.helper.make_model(graph, opset_imports=operators, ir_version=10)

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


_ZERO: Final = np.uint8(128)
_STEPS: Final = np.float32(127)


class _EightBitGraph(_Graph):
    """The same with the products of states and weights in 8 bits.

    Weights have a scale for each output, states one for each piece, the largest of its numbers: no vector depends on
    what else is encoded with it. ::

        m_t = max_j |x_tj|,   q_tj = round(127 x_tj / m_t),   x W ≈ m_t s_o Σ_j q_tj w_jo / 127
    """

    def _linear(self, name: str, weights: str, made: str, scale: float = 1.0) -> str:
        values = self._weights[f"{weights}.weight"].T * np.float32(scale)
        scales = np.maximum(np.abs(values).max(axis=0), np.float32(1e-20)) / _STEPS
        weight = self._constant(f"{made}_weight", np.round(values / scales).astype(np.int8))
        steps = self._constant(f"{made}_scales", scales)
        bias = self._constant(f"{made}_bias", self._weights[f"{weights}.bias"] * np.float32(scale))
        largest, states = self._rounded(name)
        inputs = [states, weight, "step", steps, "zero"]
        product = self._add("MatMulIntegerToFloat", inputs, f"{made}_product", domain="com.microsoft")
        return self._add("Add", [self._add("Mul", [product, largest], f"{made}_scaled"), bias], made)

    def _rounded(self, name: str) -> tuple[str, str]:
        """Return the largest number of each piece, and its numbers in 8 bits; made once for several products."""
        largest, states = f"{name}_largest", f"{name}_rounded"
        if name not in self._in_eight_bits:
            if not self._in_eight_bits:
                for constant, value in (("step", 1 / _STEPS), ("zero", _ZERO), ("least", np.float32(1e-20))):
                    self._constant(constant, np.array(value))
                self._constant("last", np.array([-1]))
            self._in_eight_bits.add(name)
            highest = self._add("ReduceMax", [name, "last"], f"{name}_highest", keepdims=1)
            lowest = self._add("ReduceMin", [name, "last"], f"{name}_lowest", keepdims=1)
            self._add("Max", [highest, self._add("Neg", [lowest], f"{name}_depth"), "least"], largest)
            shares = self._add("Div", [name, largest], f"{name}_shares")
            self._add("QuantizeLinear", [shares, "step", "zero"], states)
        return largest, states
