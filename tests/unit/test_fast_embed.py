"""Models of fastembed: the real package with a small network of three words in its cache."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from askalike import Forum, Question
from askalike.errors import EncoderError

onnx = pytest.importorskip("onnx")
pytest.importorskip("fastembed", reason="fastembed is not installed")
tokenizers = pytest.importorskip("tokenizers")

from askalike.models.text_encoder import FastEmbedEncoder  # noqa: E402

NAME = "sentence-transformers/all-MiniLM-L6-v2"
REVISION = "0" * 40
WORDS = {"[PAD]": 0, "[UNK]": 1, "wifi": 2, "drops": 3, "printer": 4}


def put_in_cache(cache: Path, rows: np.ndarray) -> None:
    """Write what the hub's client keeps of a model: a network that gives each word its row, and its tokenizer."""
    repository = cache / "models--Qdrant--all-MiniLM-L6-v2-onnx"
    folder = repository / "snapshots" / REVISION
    folder.mkdir(parents=True, exist_ok=True)
    (repository / "refs").mkdir(exist_ok=True)
    (repository / "refs" / "main").write_text(REVISION)
    helper, integers = onnx.helper, onnx.TensorProto.INT64
    inputs = [
        helper.make_tensor_value_info(name, integers, ["texts", "words"]) for name in ("input_ids", "attention_mask")
    ]
    states = helper.make_tensor_value_info("states", onnx.TensorProto.FLOAT, ["texts", "words", rows.shape[1]])
    graph = helper.make_graph(
        [helper.make_node("Gather", ["rows", "input_ids"], ["states"])],
        "rows",
        inputs,
        [states],
        [onnx.numpy_helper.from_array(rows.astype(np.float32), "rows")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(WORDS, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 0}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 32, "pad_token": "[PAD]"}))
    (folder / "special_tokens_map.json").write_text(json.dumps({"pad_token": "[PAD]", "unk_token": "[UNK]"}))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path / "cache"


def rows(seed: int = 0) -> np.ndarray:
    vectors = np.random.default_rng(seed).normal(size=(len(WORDS), 384))
    vectors[0] = 0
    return vectors


def test_vectors_are_the_mean_of_the_words_states(cache: Path) -> None:
    states = rows()
    put_in_cache(cache, states)
    encoder = FastEmbedEncoder.load(NAME.upper())
    assert (encoder.name, encoder.dimensions) == (f"fastembed:{NAME}", 384)
    expected = np.array([states[2] + states[3], states[4]])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(encoder.encode_query(["wifi drops", "Printer"]), expected, atol=1e-5)
    np.testing.assert_allclose(encoder.encode_document(["wifi drops", "Printer"]), expected, atol=1e-5)
    assert encoder.encode_query([]).size == 0


def test_a_forum_is_searched_by_a_model_of_fastembed_and_opened_again(cache: Path, tmp_path: Path) -> None:
    put_in_cache(cache, rows())
    with Forum.create(tmp_path / "forum", encoder=f"fastembed:{NAME}") as forum:
        forum.add([Question("1", "wifi"), Question("2", "printer")])
        forum.encode()
        assert forum.info().vectors.model.startswith(f"fastembed:{NAME}@")
    with Forum.open(tmp_path / "forum") as forum:
        assert forum.similar("wifi drops", ranker="meaning", k=1)[0].question.id == "1"


def test_another_model_under_the_same_name_is_noticed(cache: Path, tmp_path: Path) -> None:
    put_in_cache(cache, rows())
    with Forum.create(tmp_path / "forum", encoder=f"fastembed:{NAME}") as forum:
        forum.add([Question("1", "wifi"), Question("2", "printer")])
        forum.encode()
    put_in_cache(cache, rows(seed=1))
    with Forum.open(tmp_path / "forum") as forum:
        hit = forum.similar("wifi drops", k=1)[0]
    assert "gives other vectors than those of the forum" in hit.notice


def test_what_a_forum_names_is_not_downloaded(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fastembed = pytest.importorskip("fastembed")
    put_in_cache(cache, rows())
    with Forum.create(tmp_path / "forum", encoder=f"fastembed:{NAME}") as forum:
        forum.add(Question("1", "wifi"))
        forum.encode()
    are_local: list[bool] = []

    def load(name: str, *, local_files_only: bool) -> object:
        are_local.append(local_files_only)
        raise ValueError(f"{name} is not in the cache")

    load.list_supported_models = fastembed.TextEmbedding.list_supported_models  # type: ignore[attr-defined]
    monkeypatch.setattr(fastembed, "TextEmbedding", load)
    with Forum.open(tmp_path / "forum") as forum:
        assert f"askalike encode FORUM --model fastembed:{NAME}" in forum.similar("wifi", k=1)[0].notice
    with pytest.raises(EncoderError, match="not in the cache"):
        Forum.create(tmp_path / "other", encoder="fastembed:BAAI/bge-small-en-v1.5")
    assert are_local == [True, False]


def test_a_name_that_fastembed_does_not_know_is_refused(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match="knows no model 'mine/none'"):
        Forum.create(tmp_path / "forum", encoder="fastembed:mine/none")
