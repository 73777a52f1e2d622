"""Folders as sentence-transformers writes them: read and checked, weights by the names of their family.

Such folders are untrusted: paths stay inside, sizes in the settings must be those of the weights, and nothing is
unpickled. A ``tokenizer.json`` is a small program: it replaces by regular expressions, which may take exponential time,
and by texts of any length, again and again. Only what the supported families use is taken, so that no text takes long
to read or grows without end.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import safetensors
from numpy.typing import NDArray

from askalike.errors import DamagedModelError, ModelError, ModelNotFoundError

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
_MAX_EPSILON: Final = 0.1
_MAX_HEADER_BYTES: Final = 1 << 20
_MAX_PROMPT: Final = 2_000
"""Characters; a text is cut behind its prompt."""
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
    check_tokenizer(tokenizer, root / "tokenizer.json")
    pooling = _pooling(modules["Pooling"][0] / "config.json") if "Pooling" in modules else ("mean",)
    dense, width = list[Dense](), shape.hidden_size * len(pooling)
    for folder in modules.get("Dense", []):
        dense.append(_dense(folder, width, digest))
        width = len(dense[-1].weight)
    named = _optional(root / "sentence_bert_config.json").get("max_seq_length")
    if named is None:  # newer versions write it here alone
        named = _optional(root / "tokenizer_config.json").get("model_max_length")
    limit = min(named, shape.max_pieces) if isinstance(named, int) and named > 2 else shape.max_pieces
    stored = _optional(path / "config_sentence_transformers.json").get("prompts")
    prompts = {str(name): str(text) for name, text in stored.items()} if isinstance(stored, dict) else {}
    if any(len(prompt) > _MAX_PROMPT for prompt in prompts.values()):
        raise ModelError(f"{path} has a prompt of more than {_MAX_PROMPT:,} characters", "take another model")
    digest.update(json.dumps([settings, tokenizer, pooling, limit, prompts], sort_keys=True).encode())
    if head is not None:
        digest.update(f"pairs {head.is_probability}".encode())
    return TransformerFolder(
        path, shape, weights, tokenizer, pooling, limit, tuple(dense), prompts, digest.hexdigest(), head
    )


def _modules(path: Path) -> dict[str, list[Path]]:
    """Return the last part of each module's type → their folders, in order; a folder without the list is a model."""
    if not (path / "modules.json").is_file():
        return {}
    paths: dict[str, list[Path]] = {}
    listed = _json(path / "modules.json")
    for entry in listed if isinstance(listed, list) else []:
        kind = str(entry.get("type", "")).rsplit(".", 1)[-1] if isinstance(entry, dict) else ""
        inside = str(entry.get("path", "")) if isinstance(entry, dict) else ""
        folder = path / inside.replace("\0", "")
        if kind not in ("Transformer", "Pooling", "Dense", "Normalize"):
            raise ModelError(
                f"{path} has a module of the kind {kind!r}, expected Transformer, Pooling, Dense or Normalize",
                "take another model, or serve it and name its address",
            )
        if not folder.resolve().is_relative_to(path.resolve()):
            raise DamagedModelError(f"modules.json of {path} names the folder {inside!r} outside the model", _AGAIN)
        paths.setdefault(kind, []).append(folder)
    if "Transformer" not in paths:
        raise DamagedModelError(f"modules.json of {path} names no Transformer", _AGAIN)
    return paths


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
    padding = {"pad_token_id": settings.get("pad_token_id") or 1}
    first = _size(padding, "pad_token_id", path) + 1 if family in ("roberta", "mpnet") else 0
    positions = _size(settings, "max_position_embeddings", path)
    if positions <= first:
        raise DamagedModelError(f"{path} has {positions} positions, of which the first piece takes row {first}", _AGAIN)
    epsilon = 1e-12 if is_distilled else settings.get("layer_norm_eps", 1e-12)
    if not isinstance(epsilon, float) or not 0 < epsilon <= _MAX_EPSILON:
        raise DamagedModelError(
            f"{path} has layer_norm_eps = {epsilon!r:.60}, expected a number above 0, up to {_MAX_EPSILON}", _AGAIN
        )
    return Shape(family, layers, heads, hidden, inner, epsilon, activation, first, positions - first)


def _size(settings: Mapping[str, Any], name: str, path: Path) -> int:
    value = settings.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1 << 20:
        raise DamagedModelError(
            f"{path} has {name} = {value!r:.60}, expected a whole number from 1 to {1 << 20}", _AGAIN
        )
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
        array = weights.get(name)
        if array is None or len(array.shape) != len(wanted):
            raise DamagedModelError(f"{path} has no {name} of {len(wanted)} dimensions", _AGAIN)
        if any(size is not None and size != real for size, real in zip(wanted, array.shape, strict=True)):
            raise DamagedModelError(f"{path} has {name} of shape {array.shape}, expected {wanted}", _AGAIN)
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
    if int.from_bytes(data[:8], "little") > _MAX_HEADER_BYTES:
        raise DamagedModelError(f"{path} has a header of more than {_MAX_HEADER_BYTES >> 20} MB", _AGAIN)
    try:
        tensors = safetensors.deserialize(data)  # type: ignore[no-untyped-call]
    except (safetensors.SafetensorError, ValueError, OverflowError) as error:
        raise DamagedModelError(f"{path} cannot be read: {str(error)[:200]}", _AGAIN) from error
    arrays: dict[str, Array] = {}
    for name, entry in tensors:
        if entry["dtype"] == "BF16":  # the upper half of a float32
            values = (np.frombuffer(entry["data"], np.uint16).astype(np.uint32) << 16).view(np.float32)
        elif entry["dtype"] in _TYPES:
            with np.errstate(over="ignore"):  # what is too large is refused below
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
        modes = tuple(mode for mode in known if mode == single)
    else:
        keys = {"cls": "cls_token", "max": "max_tokens", "mean": "mean_tokens"}
        modes = tuple(mode for mode in known if settings.get(f"pooling_mode_{keys.get(mode, mode)}") is True)
    if not modes:
        raise ModelError(f"{path} asks for a pooling that cannot be run", f"expected one of {', '.join(known)}")
    return modes


def _dense(folder: Path, width: int, digest: Any) -> Dense:
    """Read a layer behind vectors of this width."""
    settings = _object(folder / "config.json")
    activation = str(settings.get("activation_function", "")).rsplit(".", 1)[-1]
    if activation not in ("Tanh", "Identity"):
        raise ModelError(f"{folder} asks for the activation {activation!r}, expected Tanh or Identity", "take another")
    weights = _weights(folder / "model.safetensors", digest)
    weight = weights.get("linear.weight")
    if weight is None or weight.ndim != 2 or weight.shape[1] != width:
        raise DamagedModelError(f"{folder} has no linear.weight of two dimensions, the second {width}", _AGAIN)
    bias = weights.get("linear.bias")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise DamagedModelError(
            f"{folder} has a linear.bias of shape {bias.shape}, expected {weight.shape[:1]}", _AGAIN
        )
    return Dense(weight, bias, activation == "Tanh")


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
            actual = weights[name].shape if name in weights else "nothing"
            raise ModelError(
                f"{root} has {actual} as {name}, expected {expected}",
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
    content = _json(path)
    if not isinstance(content, dict):
        raise DamagedModelError(f"{path} is not a JSON object", _AGAIN)
    return content


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


def types_of(folder: TransformerFolder) -> Array | None:
    """Return what tells the first text of a pair from the second, where the model reads pairs.  # (2, D)"""
    return None if folder.head is None else folder.weights.get("embeddings.token_type_embeddings.weight")


_NORMALIZERS: Final = frozenset(
    ["BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Precompiled", "Prepend", "Replace", "Strip"]
) | {"StripAccents"}
_PRE_TOKENIZERS: Final = frozenset(
    ["BertPreTokenizer", "ByteLevel", "Digits", "Metaspace", "Punctuation", "Split", "Whitespace", "WhitespaceSplit"]
)
_MODELS: Final = frozenset(["BPE", "Unigram", "WordLevel", "WordPiece"])
_MAX_STEPS: Final = 16
_MAX_PATTERN: Final = 100
_MAX_WORD: Final = 1_000
"""The time that WordPiece takes grows with the square of a word."""
_MAX_POST_PROCESSOR: Final = 10_000
"""Characters of JSON: it names the special pieces that are put around each text."""
_ANOTHER: Final = "take another model, or serve it and name its address"


def check_tokenizer(text: str, path: Path) -> None:
    """Check what a tokenizer asks for.

    Args:
        path: for messages.

    Raises:
        DamagedModelError: it is no JSON object.
        ModelError: it asks for what takes exponential time or space, or is not known.
    """
    try:
        fields = json.loads(text)
        steps = [
            *((step, _NORMALIZERS) for step in _steps(fields["normalizer"], "normalizers")),
            *((step, _PRE_TOKENIZERS) for step in _steps(fields["pre_tokenizer"], "pretokenizers")),
        ]
        kinds = [step["type"] for step, _ in steps]
        model = fields["model"]
        is_long = len(json.dumps(fields.get("post_processor"))) > _MAX_POST_PROCESSOR
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedModelError(f"{path} is no tokenizer: {error!r:.200}", _ANOTHER) from error
    unknown = [kind for (_, known), kind in zip(steps, kinds, strict=True) if kind not in known]
    faults = (
        (len(steps) > _MAX_STEPS or kinds.count("Precompiled") > 1, f"changes texts in {len(steps)} steps"),
        (bool(unknown), f"changes texts by {unknown[:1]!r:.60}"),
        (any(map(_grows, (step for step, _ in steps))), "makes texts longer"),
        (any(map(_is_slow, (step for step, _ in steps))), "has a regular expression that may take long"),
        (model.get("type") not in _MODELS, f"is of the kind {model.get('type')!r:.60}"),
        (_word_limit(model) > _MAX_WORD, f"reads words of more than {_MAX_WORD} characters"),
        (bool(model.get("dropout")), "reads a text in another way each time"),
        (is_long, "puts more around a text than special pieces"),
    )
    for is_fault, what in faults:
        if is_fault:
            raise ModelError(f"the tokenizer in {path} {what}", _ANOTHER)


def _steps(step: Mapping[str, Any] | None, several: str) -> Iterator[Mapping[str, Any]]:
    """Yield what a text passes, one after the other."""
    if step is None:
        return
    if step["type"] == "Sequence":
        for inner in step[several]:
            yield from _steps(inner, several)
    else:
        yield step


def _grows(step: Mapping[str, Any]) -> bool:
    """Return whether a replacement is longer than what it replaces, or a text is put before each."""
    if step["type"] == "Prepend":
        return len(str(step.get("prepend"))) > 1
    if step["type"] != "Replace":
        return False
    pattern = step.get("pattern")
    length = len(str(pattern.get("String", ""))) if isinstance(pattern, dict) else 0
    return len(str(step.get("content"))) > max(1, length)


def _is_slow(step: Mapping[str, Any]) -> bool:
    """Return whether a regular expression may try more than one way to match: groups, or several repetitions."""
    pattern = step.get("pattern")
    expression = str(pattern["Regex"]) if isinstance(pattern, dict) and "Regex" in pattern else ""
    repetitions = sum(map(expression.count, "*+{"))
    return len(expression) > _MAX_PATTERN or repetitions > 1 or any(mark in expression for mark in "(|")


def _word_limit(model: Mapping[str, Any]) -> int:
    limit = model.get("max_input_chars_per_word", 0)
    return limit if isinstance(limit, int) else _MAX_WORD + 1
