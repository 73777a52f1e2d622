"""One table of siamese models, and the laws that hold for every one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askalike.errors import DamagedModelError, ModelNotFoundError, SettingError
from askalike.models.encoders.model import Model
from askalike.models.folder import digest
from askalike.models.siamese.config import SiameseConfig, SiameseSettings
from askalike.models.siamese.model import SiameseModel, trigrams
from askalike.models.vocabulary import Vocabulary
from askalike.text.settings import TextSettings
from askalike.types import Answer, Question

WORDS = ["router", "modem", "cable", "antenna", "wifi", "bluetooth", "kernel", "driver", "printer", "charger", "café"]
TRIGRAMS = list(dict.fromkeys(part for word in [*WORDS, "screen", "battery", "中国", "22"] for part in trigrams(word)))
SIZES: dict[str, Any] = {
    "vocabulary_size": len(TRIGRAMS),
    "kernel_width": 4,
    "channels": (3, 4),
    "poolings": (3, 2),
    "output_size": 5,
}
TABLE: dict[str, dict[str, Any]] = {
    "SCQA": {},
    "SCQA that pools in the first block alone": {"poolings": (12, 1), "kernel_width": 3},
    "SCQA with titles alone": {"reads": "title"},
    "DSQA": {"is_shared": False},
    "DSQA of words as they are written": {"is_shared": False, "text": TextSettings(stem=False, stop_words=False)},
}
QUESTIONS = [
    Question("1", "wifi router", "the antenna and the antenna cable"),
    Question("2", "***"),
    Question("3", "battery charger café"),
    Question("4", "", "<p>kernel driver</p>", "html"),
    Question("5", "zzzz qqqq"),
    Question("6", "bluetooth printer 22 中国"),
]
everywhere = pytest.mark.parametrize("name", TABLE)


def model_of(name: str, seed: int = 0) -> SiameseModel:
    chosen = dict(TABLE[name])
    around = {key: chosen.pop(key) for key in ("reads", "text") if key in chosen}
    settings = SiameseSettings(SiameseConfig(**{**SIZES, **chosen}), **around)
    chance = np.random.default_rng(seed)
    values = {key: chance.normal(0, 0.5, shape) for key, shape in settings.network.shapes().items()}
    parameters = {key: value.astype(np.float32) for key, value in values.items()}
    return SiameseModel.build(
        settings, Vocabulary(TRIGRAMS), parameters, training_data="ab" * 32, dev_scores={"mrr": 0.5}
    )


def files_of(path: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in path.iterdir()}


@everywhere
def test_vectors_have_length_1_and_those_without_known_trigrams_are_zero(name: str) -> None:
    model = model_of(name)
    found = model.encode(QUESTIONS)
    assert found.shape == (6, model.dimensions) == (6, 5)
    assert found.dtype == np.float32
    is_read = [True, False, True, model.settings.reads == "joined", False, True]
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), is_read, atol=1e-6)
    assert model.encode([]).shape == (0, 5)
    assert not model.encode_text(["", "?"]).any()
    assert not model.encode_answers([Answer("1", "1", "")]).any()


@everywhere
@pytest.mark.parametrize("batch_size", [1, 2, 5])
def test_a_batch_gives_what_its_texts_give_one_by_one(name: str, batch_size: int) -> None:
    model = model_of(name)
    np.testing.assert_allclose(model.encode(QUESTIONS, batch_size), model.encode(QUESTIONS), atol=1e-6)


@everywhere
def test_the_order_of_texts_does_not_matter(name: str) -> None:
    model, order = model_of(name), [4, 2, 0, 5, 1, 3]
    shuffled = model.encode([QUESTIONS[place] for place in order])
    np.testing.assert_allclose(shuffled, model.encode(QUESTIONS)[order], atol=1e-6)


@everywhere
def test_the_order_of_words_does_not_matter(name: str) -> None:
    model = model_of(name)
    first, second = model.encode_text(["wifi router cable", "cable wifi router"])
    np.testing.assert_array_equal(first, second)


@everywhere
def test_a_text_is_read_as_the_title_of_a_question(name: str) -> None:
    model = model_of(name)
    np.testing.assert_array_equal(model.encode_text(["wifi router"]), model.encode([Question("1", "wifi router")]))


@everywhere
def test_leaving_a_word_out_gives_what_the_other_words_give(name: str) -> None:
    model = model_of(name)
    words, vectors = model.without_words(Question("1", "wifi router wifi", "zzzz"))
    assert words == (["wifi", "router"] if model.settings.reads == "title" else ["wifi", "router", "zzzz"])
    rest = [" ".join(one for one in ("wifi", "router", "wifi", "zzzz") if one != word) for word in words]
    np.testing.assert_allclose(vectors, model.encode_text(rest), atol=1e-6)
    first, some = model.without_words(Question("1", "wifi router cable"), most=2)
    assert first == ["wifi", "router"], "of three"
    np.testing.assert_allclose(some[0], model.encode_text(["router cable"])[0], atol=1e-6)
    assert model.without_words(Question("1", "?"))[0] == []
    assert model.without_words(Question("1", "?"))[1].shape == (0, 5)


@everywhere
def test_answers_go_through_their_own_side_where_there_is_one(name: str) -> None:
    model = model_of(name)
    asked, answered = model.encode_text(["wifi router"]), model.encode_answers([Answer("1", "1", "wifi router")])
    assert np.allclose(asked, answered) == model.settings.network.is_shared


@everywhere
def test_a_saved_model_is_loaded_bit_for_bit(name: str, tmp_path: Path) -> None:
    model = model_of(name)
    model.save(tmp_path / "MODEL")
    loaded = SiameseModel.load(tmp_path / "MODEL")
    np.testing.assert_array_equal(loaded.encode(QUESTIONS), model.encode(QUESTIONS))
    assert loaded.settings == model.settings
    assert loaded.vocabulary.words == model.vocabulary.words
    assert (loaded.origin.training_data, loaded.origin.dev_scores) == ("ab" * 32, {"mrr": 0.5})
    loaded.save(tmp_path / "again")
    assert files_of(tmp_path / "again") == files_of(tmp_path / "MODEL")
    for key, value in model.parameters().items():
        np.testing.assert_array_equal(loaded.parameters()[key], value)


def rewrite(path: Path, name: str, data: bytes) -> None:
    """Put ``data`` into a file and its hash into the manifest, as someone hostile would."""
    (path / name).write_bytes(data)
    manifest = json.loads((path / "manifest.json").read_bytes())
    manifest["files"][name] = digest(data)
    (path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def changed(path: Path, **network: object) -> bytes:
    config = json.loads((path / "config.json").read_bytes())
    return json.dumps({**config, "network": {**config["network"], **network}}).encode()


@everywhere
@pytest.mark.parametrize("file", ["config.json", "vocabulary.txt", "weights.safetensors", "manifest.json"])
@pytest.mark.parametrize("damage", ["short", "noise", "absent"])
def test_a_damaged_file_is_refused(name: str, tmp_path: Path, file: str, damage: str) -> None:
    path = tmp_path / "MODEL"
    model_of(name).save(path)
    whole = (path / file).read_bytes()
    if damage == "absent":
        (path / file).unlink()
    else:
        (path / file).write_bytes(whole[:-5] if damage == "short" else b"x" * len(whole))
    with pytest.raises((DamagedModelError, ModelNotFoundError)):
        SiameseModel.load(path)


@everywhere
def test_files_that_do_not_fit_each_other_are_refused(name: str, tmp_path: Path) -> None:
    path, size = tmp_path / "MODEL", len(TRIGRAMS)
    vocabulary = "".join(f"{one}\n" for one in TRIGRAMS).encode()
    for file, data, message in [
        ("vocabulary.txt", vocabulary + b"xyz\n", f"{size + 1} trigrams, but the network has {size}"),
        ("vocabulary.txt", vocabulary[:-1], "has no end"),
        ("config.json", b"{}", "a siamese model are none, but expected network, reads, text"),
        ("config.json", b'{"network": {}, "text": {}, "reads": "title"}', "network: vocabulary_size is missing"),
        ("weights.safetensors", b"\x02\0\0\0\0\0\0\0{}", "weights hold nothing for"),
    ]:
        model_of(name).save(path)
        rewrite(path, file, data)
        with pytest.raises(DamagedModelError, match=message):
            SiameseModel.load(path)
    for wrong in ({"output_size": 6}, {"channels": [3]}, {"kernel_width": 0}, {"is_shared": "no"}, {"poolings": 5}):
        model_of(name).save(path)
        rewrite(path, "config.json", changed(path, **wrong))
        with pytest.raises(DamagedModelError):
            SiameseModel.load(path)


def test_an_encoder_does_not_load_as_a_siamese_model_nor_the_other_way(tmp_path: Path) -> None:
    model_of("SCQA").save(tmp_path / "MODEL")
    with pytest.raises(DamagedModelError, match=r"config.json"):
        Model.load(tmp_path / "MODEL")
    with pytest.raises(ModelNotFoundError):
        SiameseModel.load(tmp_path / "none")


def test_a_model_and_a_recipe_need_no_torch() -> None:
    names = "askalike.models.siamese.model, askalike.training.recipe"
    program = f"import sys, {names}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_what_does_not_fit_is_refused_when_a_model_is_made() -> None:
    model = model_of("SCQA")
    parameters = model.parameters()
    with pytest.raises(SettingError, match="2 trigrams, but the network has"):
        SiameseModel.build(model.settings, Vocabulary(["#ab", "ab#"]), parameters)
    with pytest.raises(SettingError, match="siamese parameters"):
        SiameseModel.build(model.settings, model.vocabulary, {**parameters, "more": parameters["dense_bias"]})
    with pytest.raises(SettingError, match="not finite"):
        SiameseModel.build(model.settings, model.vocabulary, {**parameters, "dense": parameters["dense"] * np.nan})
    with pytest.raises(SettingError, match="training_data"):
        SiameseModel.build(model.settings, model.vocabulary, parameters, training_data="?")
    with pytest.raises(SettingError, match="batch_size 0"):
        model.encode(QUESTIONS, 0)
    with pytest.raises(SettingError, match="reads is 'body'"):
        SiameseSettings(model.settings.network, reads="body")  # type: ignore[arg-type]
