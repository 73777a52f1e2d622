"""Folders of sentence transformers that somebody else has made: each ends in a clear error, soon, or gives vectors."""

# ruff: noqa: E402 - the packages are imported where they are installed
from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

for _name in ("onnxruntime", "onnx", "tokenizers"):
    pytest.importorskip(_name, reason=f"{_name} is not installed")

from askalike.errors import ModelError
from askalike.models.transformer import Transformer

TEXTS = ["wifi drops", "", "a" * 60 + "!", "a " * 100, "printer " * 30]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "wifi", "drops", "printer", "##s", "a"]
WORDPIECE = {
    "type": "WordPiece",
    "unk_token": "[UNK]",
    "continuing_subword_prefix": "##",
    "max_input_chars_per_word": 100,
    "vocab": {piece: number for number, piece in enumerate(PIECES)},
}
TOKENIZER = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [],
    "normalizer": {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": True,
    },
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": None,
    "decoder": None,
    "model": WORDPIECE,
}
CONFIG = {
    "model_type": "bert",
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 20,
    "layer_norm_eps": 1e-12,
}
WORDS = "embeddings.word_embeddings.weight"


def weights() -> dict[str, Any]:
    chance = np.random.default_rng(0)
    sizes = {
        "attention.self.query": (8, 8),
        "attention.self.key": (8, 8),
        "attention.self.value": (8, 8),
        "attention.output.dense": (8, 8),
        "attention.output.LayerNorm": (8,),
        "intermediate.dense": (16, 8),
        "output.dense": (8, 16),
        "output.LayerNorm": (8,),
    }
    shapes: dict[str, tuple[int, ...]] = {
        WORDS: (9, 8),
        "embeddings.position_embeddings.weight": (20, 8),
        "embeddings.token_type_embeddings.weight": (2, 8),
        "embeddings.LayerNorm.weight": (8,),
        "embeddings.LayerNorm.bias": (8,),
    }
    for name, shape in sizes.items():
        shapes |= {f"encoder.layer.0.{name}.weight": shape, f"encoder.layer.0.{name}.bias": shape[:1]}
    return {name: chance.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}


def write(folder: Path, files: dict[str, Any]) -> Path:
    """Write a model that is sound but for these files: bytes, or what becomes JSON."""
    folder.mkdir()
    usual = {"config.json": CONFIG, "tokenizer.json": TOKENIZER, "model.safetensors": safetensors.numpy.save(weights())}
    for name, content in {**usual, **files}.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return folder


def header(content: bytes, data: bytes = b"") -> dict[str, Any]:
    return {"model.safetensors": struct.pack("<Q", len(content)) + content + data}


def config(**fields: Any) -> dict[str, Any]:
    return {"config.json": {**CONFIG, **fields}}


def tokenizer(**fields: Any) -> dict[str, Any]:
    return {"tokenizer.json": {**TOKENIZER, **fields}}


def replaced(pattern: Any, content: str = "x") -> Any:
    return {"type": "Replace", "pattern": pattern, "content": content}


def split(expression: str) -> dict[str, Any]:
    pattern = {"Regex": expression}
    return tokenizer(pre_tokenizer={"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False})


def around(ids: list[int], times: int) -> dict[str, Any]:
    first = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}] * times
    text = [{"Sequence": {"id": "A", "type_id": 0}}]
    both = [*text, {"Sequence": {"id": "B", "type_id": 1}}]
    special = {"[CLS]": {"id": "[CLS]", "ids": ids, "tokens": ["[CLS]"] * len(ids)}}
    fields = {"type": "TemplateProcessing", "single": [*first, *text], "pair": both, "special_tokens": special}
    return tokenizer(post_processor=fields)


def dense(weight: Any, **more: Any) -> dict[str, Any]:
    return {
        "modules.json": [{"path": "", "type": "x.Transformer"}, {"path": "d", "type": "x.Dense"}],
        "d/config.json": {"activation_function": "torch.nn.Identity"},
        "d/model.safetensors": safetensors.numpy.save({"linear.weight": weight, **more}),
    }


def tensor(shape: str) -> dict[str, Any]:
    return header(f'{{"{WORDS}": {{"dtype": "F32", "shape": {shape}, "data_offsets": [0, 4]}}}}'.encode(), b"0000")


REFUSED: dict[str, dict[str, Any]] = {
    "no numbers": {"model.safetensors": safetensors.numpy.save(weights() | {WORDS: np.full((9, 8), np.nan)})},
    "numbers beyond float32": {
        "model.safetensors": safetensors.numpy.save(weights() | {WORDS: np.full((9, 8), 1e300)})
    },
    "a huge shape": tensor("[1099511627776, 1048576]"),
    "a negative shape": tensor("[-1]"),
    "a shape that overflows": tensor("[9223372036854775808, 2]"),
    "a header of exabytes": {"model.safetensors": struct.pack("<Q", 1 << 62) + b"{}"},
    "a deep header": header(b'{"__metadata__":' * 20_000),
    "hundred thousand arrays": header(
        json.dumps({f"t{n}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for n in range(100_000)}).encode()
    ),
    "no weights": {"model.safetensors": b""},
    **{f"layer_norm_eps {value!r:.20}": config(layer_norm_eps=value) for value in ([1], "x", None, -1.0, 10**400)},
    "layer_norm_eps that is no number": {
        "config.json": json.dumps({**CONFIG, "layer_norm_eps": float("nan")}).encode()
    },
    **{
        f"pad_token_id {value!r:.20}": config(model_type="roberta", pad_token_id=value)
        for value in ("x", [1], 10**30, -5, 19)
    },
    "sizes that are lists": config(hidden_size=[8]),
    "a million layers": config(num_hidden_layers=1 << 20),
    "settings that are nested": {"config.json": b"[" * 200_000},
    "settings that are no object": {"config.json": b"[]"},
    "ten thousand digits": {"config.json": b'{"a":' + b"9" * 10_000 + b"}"},
    "a prompt of megabytes": {"config_sentence_transformers.json": {"prompts": {"query": "wifi " * 500_000}}},
    "a module outside": {"modules.json": [{"path": "../other", "type": "x.Transformer"}]},
    "a module with a zero byte": {"modules.json": [{"path": "a\0b", "type": "x.Transformer"}]},
    "a dense layer of another width": dense(np.ones((4, 5), np.float32)),
    "a bias of another width": dense(np.ones((4, 8), np.float32), **{"linear.bias": np.ones(3, np.float32)}),
    "an exponential replacement": tokenizer(normalizer=replaced({"Regex": "(a+)+$"})),
    "an exponential cut": split("(a|a)*b"),
    "a polynomial cut": split(".*.*.*.*b"),
    "replacements that grow": tokenizer(
        normalizer={"type": "Sequence", "normalizers": [replaced({"String": "a"}, "a" * 1_000)] * 4}
    ),
    "texts before texts": tokenizer(
        normalizer={"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "a" * 1_000_000}] * 9}
    ),
    "words without end": tokenizer(model={**WORDPIECE, "max_input_chars_per_word": 10**9}),
    "more special pieces than positions": around([2], 30),
    "special pieces without end": around([2], 10_000),
    "a special piece that is none": around([4_000_000_000], 1),
    "a piece beyond the vectors": tokenizer(model={**WORDPIECE, "vocab": {**WORDPIECE["vocab"], "a": 4_000_000}}),  # type: ignore[dict-item]
    "no unknown piece": tokenizer(model={**WORDPIECE, "vocab": {"wifi": 0}}),
    "no pieces": tokenizer(model={**WORDPIECE, "vocab": {}}),
    "a nested tokenizer": {"tokenizer.json": b'{"normalizer":' * 5_000},
    "a tokenizer that is no object": {"tokenizer.json": b"[]"},
}

TAKEN: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a dense layer that overflows": dense(np.full((8, 8), 3e38, np.float32)),
    "huge numbers": {
        "model.safetensors": safetensors.numpy.save({k: v * np.float32(1e37) for k, v in weights().items()})
    },
    "a negative length": {"sentence_bert_config.json": {"max_seq_length": -4}},
    "padding to a billion": tokenizer(
        padding={
            "strategy": {"Fixed": 10**9},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "[PAD]",
        }
    ),
    "spaces joined as XLM-R does": tokenizer(normalizer=replaced({"Regex": " {2,}"}, " ")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_folder_is_refused(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path / "model", REFUSED[name])
    with pytest.raises(ModelError, match="model"):
        Transformer.load(folder, threads=1).encode_document(TEXTS)


@pytest.mark.parametrize("name", TAKEN)
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_an_odd_folder_gives_vectors_that_are_finite(tmp_path: Path, name: str, precision: Any) -> None:
    vectors = Transformer.load(write(tmp_path / "model", TAKEN[name]), precision=precision).encode_query(TEXTS)
    assert vectors.shape == (len(TEXTS), 8)
    assert np.isfinite(vectors).all()


def pipe(path: Path) -> None:
    os.mkfifo(path)


LINKS: dict[str, Callable[[Path], None]] = {
    "a pipe": pipe,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a loop": lambda path: path.symlink_to(path.name),
    "a folder": lambda path: path.mkdir(),
    "another file": lambda path: path.symlink_to(__file__),
}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pipes in folders")
@pytest.mark.parametrize("kind", LINKS)
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_what_stands_in_the_place_of_a_file_is_refused_unread(tmp_path: Path, name: str, kind: str) -> None:
    folder = write(tmp_path / "model", {})
    (folder / name).unlink()
    LINKS[kind](folder / name)
    with pytest.raises(ModelError):
        Transformer.load(folder, threads=1)
