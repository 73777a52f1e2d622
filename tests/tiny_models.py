"""Models made by hand: small enough to be worked out, and quick."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from askalike.models.encoders.model import Model
from askalike.models.encoders.settings import EncoderConfig, ModelSettings
from askalike.models.general import GRAPH_FILE, MANIFEST_FILE, VOCABULARY_FILE, GeneralManifest
from askalike.models.transformer_folder import Shape, TransformerFolder, layer_names
from askalike.models.transformer_graph import serialized_graph
from askalike.models.vocabulary import Vocabulary

SYNONYMS = ({"wifi", "wireless", "wlan"}, {"drops", "disconnects", "lost"}, {"printer"}, {"offline", "silent"})
"""Words of one set have one direction, at a right angle to the others'; every other word is unknown, a zero vector."""


def synonym_model(groups: Sequence[set[str]] = SYNONYMS, *, has_counts: bool = True) -> Model:
    """Return a model by which a text's vector is the mean of its words' directions; word i was counted i² times."""
    encoder = EncoderConfig("rcnn", len(groups), len(groups), order=1, gate="none", pooling="mean")
    parameters = {"input": np.eye(len(groups)), "output_bias": np.zeros(len(groups))}
    directions: Mapping[str, int] = {word: number for number, group in enumerate(groups) for word in sorted(group)}
    embedding = np.zeros((len(directions) + 1, len(groups)))
    for row, number in enumerate(directions.values(), start=1):
        embedding[row, number] = 1.0
    counts = np.arange(len(embedding), dtype=np.int64) ** 2 if has_counts else None
    settings = ModelSettings(encoder, unknown="zero")
    return Model.build(settings, Vocabulary(directions), embedding, parameters, counts=counts)


def gated_model(seed: int = 0) -> Model:
    """Return a model with a gate, of random numbers, so that its words have weights."""
    words = ["printer", "offline", "wifi", "drops", "the", "is"]
    encoder = EncoderConfig("rcnn", 4, 6)
    chance = np.random.default_rng(seed)
    parameters = {name: chance.normal(0, 0.6, shape) for name, shape in encoder.shapes().items()}
    return Model.build(ModelSettings(encoder), Vocabulary(words), chance.normal(0, 1, (len(words) + 1, 4)), parameters)


PIECES = ("[UNK]", "[CLS]", "[SEP]", "wifi", "wireless", "printer", "drops", "offline", "##s", "the", "is", "?")
MOST_PIECES = 32


def tiny_bert(folder: Path, seed: int = 0, size: int = 16, layers: int = 2) -> TransformerFolder:
    """Return a transformer of random numbers that reads ``PIECES``, as a folder of sentence-transformers gives one."""
    chance = np.random.default_rng(seed)

    def draw(*shape: int) -> NDArray[np.float32]:
        return chance.normal(0, 0.3, shape).astype(np.float32)

    shape = Shape("bert", layers, 2, size, 2 * size, 1e-12, "gelu", 0, MOST_PIECES)
    weights = {
        "embeddings.word_embeddings.weight": draw(len(PIECES), size),
        "embeddings.position_embeddings.weight": draw(MOST_PIECES, size),
        "embeddings.token_type_embeddings.weight": draw(2, size),
        "embeddings.LayerNorm.weight": 1 + draw(size),
        "embeddings.LayerNorm.bias": draw(size),
    }
    for layer in range(layers):
        for part, name in layer_names(shape, layer).items():
            if part.endswith("norm"):
                weights[f"{name}.weight"], weights[f"{name}.bias"] = 1 + draw(size), draw(size)
                continue
            of_part = {"inner": (2 * size, size), "outer": (size, 2 * size)}.get(part, (size, size))
            weights[f"{name}.weight"], weights[f"{name}.bias"] = draw(*of_part), draw(of_part[0])
    return TransformerFolder(folder, shape, weights, "", ("mean",), MOST_PIECES)


def tiny_general(folder: Path, seed: int = 0) -> None:
    """Write a bundled encoder of random numbers."""
    transformer = tiny_bert(folder, seed)
    contents = {
        GRAPH_FILE: serialized_graph(transformer, "int8"),
        VOCABULARY_FILE: "".join(f"{piece}\n" for piece in PIECES).encode(),
    }
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
    manifest = GeneralManifest(transformer.shape.hidden_size, MOST_PIECES, {}, digests)
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in {**contents, MANIFEST_FILE: manifest.to_bytes()}.items():
        (folder / name).write_bytes(data)


def write_tiny_folder(folder: Path, seed: int = 0) -> None:
    """Write the same transformer as a folder of the sentence-transformers kind."""
    from tokenizers import BertWordPieceTokenizer

    transformer = tiny_bert(folder, seed)
    shape = transformer.shape
    folder.mkdir(parents=True)
    settings = {
        "model_type": "bert",
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "hidden_size": shape.hidden_size,
        "intermediate_size": shape.inner_size,
        "max_position_embeddings": shape.max_pieces,
    }
    (folder / "config.json").write_text(json.dumps(settings))
    safetensors.numpy.save_file(dict(transformer.weights), folder / "model.safetensors")
    BertWordPieceTokenizer({piece: number for number, piece in enumerate(PIECES)}).save(str(folder / "tokenizer.json"))
