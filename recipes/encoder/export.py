"""Write the bundled encoder from a folder of the sentence-transformers kind, with a trained student's weights or not.

Texts are cut at 128 pieces: no more positions are kept. Everything large is in 8 bits, balanced by sample texts.
"""

from __future__ import annotations

import hashlib
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
)
from askalike.models.transformer import Transformer, session
from askalike.models.transformer_folder import Array, TransformerFolder, read_folder
from askalike.models.transformer_graph import largest_inputs, serialized_graph
from askalike.models.wordpiece import WordPiece

MAX_PIECES: Final = 128
POSITIONS: Final = "embeddings.position_embeddings.weight"
TYPES: Final = "embeddings.token_type_embeddings.weight"


def read_student(base: Path, source: Path | None) -> tuple[TransformerFolder, int]:
    """Return the student's folder, and how many steps it was trained.

    Args:
        base: the folder that the training began with.
        source: a state of ``distill``; None for the base itself.
    """
    steps, folder = 0, read_folder(base)
    weights = {name: np.array(values) for name, values in folder.weights.items()}
    if source is not None:
        import torch

        state: dict[str, Any] = torch.load(source, weights_only=True, map_location="cpu")
        steps = int(state["step"])
        weights = {name: state["student"][name].float().numpy() for name in weights}
    weights[POSITIONS] = weights[POSITIONS][:MAX_PIECES] + weights[TYPES][0]
    weights[TYPES] = np.zeros_like(weights[TYPES])  # one text alone is read: its type is part of its positions
    shape = replace(folder.shape, max_pieces=MAX_PIECES)
    return replace(folder, weights=weights, shape=shape, max_pieces=MAX_PIECES), steps


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
