"""Write the bundled encoder from a folder of the sentence-transformers kind, with a trained student's weights or not.

Texts are cut at 128 pieces: only so many positions are kept. Everything large is in 8 bits, balanced by sample texts.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from askalike.models.general import (
    GRAPH_FILE,
    MANIFEST_FILE,
    VOCABULARY_FILE,
    GeneralEncoder,
    GeneralManifest,
    read_manifest,
)
from askalike.models.transformer import Transformer, session
from askalike.models.transformer_folder import Array, TransformerFolder, layer_names, read_folder
from askalike.models.transformer_graph import largest_inputs, serialized_graph
from askalike.models.wordpiece import WordPiece

MAX_PIECES: Final = 128
POSITIONS: Final = "embeddings.position_embeddings.weight"
TYPES: Final = "embeddings.token_type_embeddings.weight"


def read_student(base: Path, source: Path | None) -> tuple[TransformerFolder, int]:
    """Return the student's folder, and how many steps it was trained.

    Args:
        base: the folder that the training began with.
        source: a state of ``distill`` or ``average``, or an exported folder; None for the base itself.
    """
    steps, folder = 0, read_folder(base)
    weights = {name: np.array(values) for name, values in folder.weights.items()}
    weights[POSITIONS] = weights[POSITIONS][:MAX_PIECES] + weights[TYPES][0]
    weights[TYPES] = np.zeros_like(weights[TYPES])  # one text alone is read: its type is part of its positions
    folder = replace(folder, shape=replace(folder.shape, max_pieces=MAX_PIECES), max_pieces=MAX_PIECES)
    if source is not None and source.is_dir():
        steps = int(read_manifest(source).origin["steps"])
        weights |= _exported_weights(folder, source)
    elif source is not None:
        import torch

        state: dict[str, Any] = torch.load(source, weights_only=True, map_location="cpu")
        steps = int(state["step"])
        weights = {name: state["student"][name].float().numpy() for name in weights}
        weights[POSITIONS] = weights[POSITIONS][:MAX_PIECES] + weights[TYPES][0]
        weights[TYPES] = np.zeros_like(weights[TYPES])
    return replace(folder, weights=weights), steps


def _exported_weights(folder: TransformerFolder, exported: Path) -> dict[str, Array]:
    """Return the weights of an exported folder in float32, by the names of the folder that it began as."""
    import onnx

    graph = onnx.load(exported / GRAPH_FILE).graph
    constants = {constant.name: onnx.numpy_helper.to_array(constant) for constant in graph.initializer}
    input_of = {node.output[0]: node.input[0] for node in graph.node}
    weights: dict[str, Array] = {
        POSITIONS: constants["places"],
        "embeddings.word_embeddings.weight": constants["words"] * constants["word_scales"],
        "embeddings.LayerNorm.weight": constants["embedded_weight"],
        "embeddings.LayerNorm.bias": constants["embedded_bias"],
    }
    for layer in range(folder.shape.layers):
        names, at = layer_names(folder.shape, layer), f"layer{layer}_"
        for part in ("query", "key", "value", "joined", "inner", "outer"):
            values = constants[f"{at}{part}_weight"] * constants[f"{at}{part}_scales"]
            rounded = input_of[f"{at}{part}_product"].removesuffix("_rounded")
            if (inverse := constants.get(f"{rounded}_inverse")) is not None:
                values = values * inverse[:, None]
            scale = math.sqrt(folder.shape.hidden_size // folder.shape.heads) if part == "query" else 1.0
            weights[f"{names[part]}.weight"] = np.ascontiguousarray(values.T * np.float32(scale))
            weights[f"{names[part]}.bias"] = constants[f"{at}{part}_bias"] * np.float32(scale)
        for part, own in (("joined_norm", "norm"), ("outer_norm", "states")):
            weights[f"{names[part]}.weight"] = constants[f"{at}{own}_weight"]
            weights[f"{names[part]}.bias"] = constants[f"{at}{own}_bias"]
    return weights


def average(base: Path, sources: Sequence[tuple[Path, float]], out: Path) -> None:
    """Write a state whose weights are the mean of several students', each counted by a weight.

    All have to have begun as the base. The steps are the sum of theirs.

    Source: Wortsman et al., "Model soups", ICML 2022.
    """
    import torch

    students = [(*read_student(base, source), share) for source, share in sources]
    total = sum(share for _, _, share in students)
    mean = {
        name: sum(student.weights[name] * np.float32(share / total) for student, _, share in students)
        for name in students[0][0].weights
    }
    state = {name: torch.from_numpy(np.asarray(values)) for name, values in mean.items()}
    torch.save({"student": state, "step": sum(steps for _, steps, _ in students)}, out)


def export(base: Path, source: Path | None, out: Path, samples: Sequence[str]) -> GeneralManifest:
    """Write the encoder's folder and return its manifest; what ``out`` holds under these names is replaced.

    Args:
        source: as ``read_student`` takes it.
        samples: texts by which the inputs of products are balanced.
    """
    student, steps = read_student(base, source)
    words = WordPiece((base / "vocab.txt").read_text(encoding="utf-8").splitlines())
    largest = largest_inputs(student, (words.encode(text, MAX_PIECES) for text in samples), session)
    contents = {
        GRAPH_FILE: serialized_graph(student, "int8", largest),
        VOCABULARY_FILE: (base / "vocab.txt").read_bytes(),
    }
    origin: dict[str, Any] = {"began_as": "all-MiniLM-L6-v2", "steps": steps}
    if steps:
        origin["teacher"] = "all-mpnet-base-v2"
    files = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
    manifest = GeneralManifest(student.shape.hidden_size, MAX_PIECES, origin, files)
    out.mkdir(parents=True, exist_ok=True)
    for name, data in {**contents, MANIFEST_FILE: manifest.to_bytes()}.items():
        (out / name).write_bytes(data)
    return manifest


def cosines_to_float32(base: Path, source: Path | None, out: Path, texts: Sequence[str]) -> Array:
    """Return the cosine of each text's vector with the one in float32.  # (N,)"""
    student, _ = read_student(base, source)
    exact, rounded = Transformer(student).encode_document(texts), GeneralEncoder(out).encode_document(texts)
    cosines: Array = np.einsum("nd,nd->n", exact, rounded)
    return cosines
