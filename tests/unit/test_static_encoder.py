"""Static models in folders as model2vec writes them: a worked example, model2vec itself, and damage."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from askalike.errors import DamagedModelError, ModelNotFoundError

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
