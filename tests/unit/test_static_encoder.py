"""Static models in folders as model2vec writes them: a worked example, model2vec itself, and damage."""

from __future__ import annotations

import importlib.util
import json
import logging
import shutil
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from askalike import Forum, Question
from askalike.errors import DamagedModelError, ModelNotFoundError
from askalike.models.text_encoder import document_vectors

tokenizers = pytest.importorskip("tokenizers")

from askalike.models.static import StaticEncoder  # noqa: E402

VOCABULARY = {"[UNK]": 0, "wifi": 1, "drops": 2, "printer": 3}
ROWS = np.array([[9, 9], [1, 0], [0, 2], [3, 4]], dtype=np.float32)
TEXTS = ["wifi drops", "wifi wifi drops", "wifi zzz", "zzz", "", "Printer WIFI"]


def saved(folder: Path, arrays: dict[str, np.ndarray]) -> Path:
    folder.mkdir()
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(VOCABULARY, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "model.safetensors").write_bytes(safetensors.numpy.save(arrays))
    (folder / "config.json").write_text(json.dumps({"normalize": False}))
    return folder


def test_a_vector_is_the_mean_of_its_known_pieces(tmp_path: Path) -> None:
    found = StaticEncoder.load(saved(tmp_path / "m", {"embeddings": ROWS})).encode_document(TEXTS)
    np.testing.assert_allclose(found, [[0.5, 1], [2 / 3, 2 / 3], [1, 0], [0, 0], [0, 0], [2, 2]], atol=1e-6)


def test_pieces_have_rows_and_weights_of_their_own(tmp_path: Path) -> None:
    arrays = {
        "embeddings": ROWS[1:].astype(np.float16),
        "mapping": np.array([0, 0, 1, 1], dtype=np.int64),  # "printer" has the row of "drops"
        "weights": np.array([1, 0.5, 2, 1], dtype=np.float32),
    }
    found = StaticEncoder.load(saved(tmp_path / "m", arrays)).encode_query(["wifi drops", "printer"])
    np.testing.assert_allclose(found, [[0.25, 2], [0, 2]], atol=1e-6)


def test_vectors_are_those_of_model2vec(tmp_path: Path) -> None:
    model2vec = pytest.importorskip("model2vec")
    rng = np.random.default_rng(0)
    for number, more in enumerate(({}, {"weights": rng.random(4), "mapping": np.array([0, 2, 1, 3])})):
        folder = saved(tmp_path / str(number), {"embeddings": rng.random((4, 8)).astype(np.float32), **more})
        expected = model2vec.StaticModel.from_pretrained(str(folder), normalize=False).encode(TEXTS)
        np.testing.assert_allclose(StaticEncoder.load(folder).encode_query(TEXTS), expected, atol=1e-6)


def test_a_model_that_model2vec_has_written_is_read(tmp_path: Path) -> None:
    model2vec = pytest.importorskip("model2vec")
    tokenizer = tokenizers.Tokenizer.from_file(str(saved(tmp_path / "own", {"embeddings": ROWS}) / "tokenizer.json"))
    rows = np.random.default_rng(0).random((4, 8)).astype(np.float32)
    model = model2vec.StaticModel(rows, tokenizer, normalize=True)
    model.save_pretrained(tmp_path / "saved")
    found = document_vectors(StaticEncoder.load(tmp_path / "saved"), TEXTS)
    np.testing.assert_allclose(found, model.encode(TEXTS), atol=1e-6)


def wordllama_folder(folder: Path) -> Path:
    """Put the weights and the tokenizer that the package wordllama carries into a folder."""
    package = importlib.util.find_spec("wordllama")
    if package is None or package.origin is None:
        pytest.skip("wordllama is not installed")
    root = Path(package.origin).parent
    folder.mkdir()
    shutil.copy(root / "weights" / "l2_supercat_256.safetensors", folder / "model.safetensors")
    shutil.copy(root / "tokenizers" / "l2_supercat_tokenizer_config.json", folder / "tokenizer.json")
    return folder


def test_a_static_model_of_others_has_their_vectors_and_finds_by_meaning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = wordllama_folder(tmp_path / "wordllama")
    monkeypatch.setattr(logging, "basicConfig", lambda **_: None)  # it sets up everybody's log when it is imported
    inference = pytest.importorskip("wordllama.inference")
    with safetensors.safe_open(folder / "model.safetensors", framework="np") as weights:
        rows = weights.get_tensor("embedding.weight")
    oracle = inference.WordLlamaInference(rows, tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")))
    texts = ["Wifi drops every evening", "Größe, naïve & C++17", "How do I cook rice?"]
    found = document_vectors(StaticEncoder.load(folder), texts)
    np.testing.assert_allclose(found, oracle.embed(texts, norm=True), atol=1e-5)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    with Forum.create(tmp_path / "forum", encoder=f"model2vec:{folder}") as forum:
        forum.add(Question(str(place), text) for place, text in enumerate([*texts, "Printer is offline"]))
        forum.encode()
        assert forum.info().vectors.model.startswith("model2vec:wordllama@")
        assert forum.similar("boiling basmati", ranker="vector", k=1)[0].question.id == "2"
        assert forum.similar("wireless disconnects at night", ranker="vector", k=1)[0].question.id == "0"


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"other": ROWS}, "no embeddings"),
        ({"embeddings": ROWS[0]}, "no embeddings"),
        ({"embeddings": ROWS[:2]}, "4 pieces, and .* 2 vectors"),
        ({"embeddings": np.full_like(ROWS, np.nan)}, "not finite"),
        ({"embeddings": ROWS, "mapping": np.array([0, 1, 2, 4])}, "rows that are not there"),
        ({"embeddings": ROWS, "mapping": np.array([0, 1, 2, -1])}, "rows that are not there"),
        ({"embeddings": ROWS, "weights": np.ones(3)}, r"weights of shape \(3,\)"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path: Path, arrays: dict[str, np.ndarray], said: str) -> None:
    with pytest.raises(DamagedModelError, match=said):
        StaticEncoder.load(saved(tmp_path / "m", arrays))


def test_damaged_and_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="no static model"):
        StaticEncoder.load(tmp_path)
    folder = saved(tmp_path / "m", {"embeddings": ROWS})
    for name in ("model.safetensors", "tokenizer.json"):
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[: len(whole) // 2])
        with pytest.raises(DamagedModelError, match=name):
            StaticEncoder.load(folder)
        (folder / name).write_bytes(whole)
