"""The words that training begins with: drawn, read from a file, trained, kept, or taken from a model and added to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tiny_models import gated_model

from askalike.errors import AskalikeError, DamagedModelError, InputError, SettingError
from askalike.models.vocabulary import QuestionReader, Vocabulary
from askalike.progress import SilentProgress
from askalike.training.corpus import TrainingData, WordSource
from askalike.training.recipe import WordSettings
from askalike.training.vector_files import PretrainedVectors, write_word2vec_text
from askalike.training.words import InitialWords, initial_embedding, make_words
from askalike.types import Question

TEXTS = ("wifi drops wifi", "printer drops", "wifi silent")
SMALL = {"min_count": 1, "size": 3, "vectors": "random"}


def source(texts: tuple[str, ...] = TEXTS) -> WordSource:
    questions = [Question(str(number), text) for number, text in enumerate(texts)]
    return WordSource(TrainingData(questions), QuestionReader("title and body", 100), lambda _: None)


def made(folder: Path, texts: tuple[str, ...] = TEXTS, start: Any = None, seed: int = 0, **chosen: Any) -> InitialWords:
    return make_words(WordSettings(**{**SMALL, **chosen}), source(texts), start, folder, (seed, SilentProgress()))


@pytest.fixture
def vector_file(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.txt"
    write_word2vec_text(path, Vocabulary(["wifi", "other"]), np.array([[0, 0, 0], [0, 3, 4], [9, 9, 9]], np.float32))
    return path


def test_drawn_words_have_about_length_one_and_depend_on_the_seed(tmp_path: Path) -> None:
    model = made(tmp_path, size=200)
    assert model.vocabulary.words == ("wifi", "drops", "printer", "silent")
    assert model.embedding.shape == (5, 200)
    np.testing.assert_allclose(np.linalg.norm(model.embedding[1:], axis=1), 1, rtol=0.25)
    assert not model.embedding[0].any()
    (tmp_path / "words.safetensors").unlink()
    again, other = (made(tmp_path, size=200, seed=seed).embedding for seed in (0, 1))
    assert np.array_equal(again, model.embedding)
    assert not np.array_equal(again, other)


def test_vectors_of_a_file_have_a_mean_length_of_one_and_unknown_words_the_mean_of_the_rarest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "vectors.txt"
    vectors = np.array([[0, 0, 0], [0, 3, 4], [15, 0, 0]], np.float32)  # lengths 5 and 15: divided by 10
    write_word2vec_text(path, Vocabulary(["wifi", "printer"]), vectors)
    embedding = made(tmp_path, vectors=str(path)).embedding
    assert embedding.dtype == np.float32
    np.testing.assert_allclose(embedding[[0, 1, 3]], [[0.75, 0.15, 0.2], [0, 0.3, 0.4], [1.5, 0, 0]], rtol=1e-6)
    assert embedding[[2, 4]].any(axis=1).all()
    (tmp_path / "words.safetensors").unlink()
    monkeypatch.setattr("askalike.training.words._RARE", 1)
    np.testing.assert_allclose(made(tmp_path, vectors=str(path)).embedding[0], [1.5, 0, 0])


def test_words_that_a_file_lacks_are_drawn_at_the_scale_of_those_that_it_has() -> None:
    vocabulary = Vocabulary([f"w{number}" for number in range(2000)])
    vectors = np.random.default_rng(1).normal(0, 5, (1000, 50)).astype(np.float32)
    present = PretrainedVectors(vocabulary.words[:1000], vectors)
    embedding, missing = initial_embedding(vocabulary, present, is_unknown_zero=True, seed=0)
    assert missing == list(vocabulary.words[1000:])
    assert embedding[1001:].std() == pytest.approx(embedding[1:1001].std(), rel=0.02)


def test_a_file_is_said_to_lack_words(tmp_path: Path, vector_file: Path) -> None:
    notices: list[str] = []

    class Heard(SilentProgress):
        def notice(self, text: str) -> None:
            notices.append(text)

    make_words(WordSettings(**{**SMALL, "vectors": str(vector_file)}), source(), None, tmp_path, (0, Heard()))
    assert notices == ["3 of 4 words have no vector in the file"]


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (
            {"size": 4},
            SettingError,
            r"vectors.txt holds vectors of 3 numbers, the recipe says 4 \(write the file's size",
        ),
        ({"vectors": "nowhere.txt"}, InputError, "nowhere.txt cannot be opened"),
        ({"min_count": 9}, SettingError, r"no word occurs 9 times in the texts \(give more questions"),
    ],
)
def test_vectors_that_do_not_fit_are_refused(
    tmp_path: Path, vector_file: Path, wrong: dict[str, Any], kind: type[AskalikeError], message: str
) -> None:
    with pytest.raises(kind, match=message):
        made(tmp_path, **{"vectors": str(vector_file), **wrong})
    assert not (tmp_path / "words.safetensors").exists()


def test_words_can_be_weighted_by_their_idf_after_they_were_found_once(tmp_path: Path) -> None:
    plain, weighted = (made(tmp_path, weighted=how) for how in ("equally", "by idf"))
    ratios = np.linalg.norm(weighted.embedding[1:], axis=1) / np.linalg.norm(plain.embedding[1:], axis=1)
    texts, holding = 6, np.array([2, 2, 1, 1])  # three titles, three empty bodies; wifi, drops, printer, silent
    np.testing.assert_allclose(ratios, np.log((1 + texts) / (1 + holding)) + 1, rtol=1e-5)
    assert plain.digest() != weighted.digest()


def test_made_words_are_kept_and_made_anew_where_anything_differs(tmp_path: Path, vector_file: Path) -> None:
    kept, file = tmp_path / "words.safetensors", str(vector_file)

    def is_made_anew(*texts: str, **chosen: Any) -> bool:
        before = kept.stat().st_ino
        made(tmp_path, texts or TEXTS, vectors=file, **chosen)
        return kept.stat().st_ino != before

    first = made(tmp_path, vectors=file)
    assert not is_made_anew(is_trained=True)
    assert np.array_equal(made(tmp_path, vectors=file).embedding, first.embedding)
    assert is_made_anew(seed=1)
    assert is_made_anew("wifi wifi", "wifi", seed=1)
    assert is_made_anew("wifi", "wifi wifi", seed=1)
    os.utime(vector_file, ns=(1, 1))
    assert is_made_anew("wifi", "wifi wifi", seed=1)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["vectors.txt", "words.safetensors"]


@pytest.mark.parametrize("damage", [b"", b"noise", None])
def test_damaged_kept_words_are_refused_by_name(tmp_path: Path, damage: bytes | None) -> None:
    made(tmp_path)
    kept = tmp_path / "words.safetensors"
    kept.write_bytes(kept.read_bytes()[:-1] if damage is None else damage)
    with pytest.raises(DamagedModelError, match=r"words.safetensors cannot be read: .*\(delete it to make the word"):
        made(tmp_path)


def test_a_model_to_go_on_from_keeps_its_words_and_new_ones_follow(tmp_path: Path) -> None:
    start = gated_model()
    texts = ("router router router is", "cable cable", "cup", "wifi wifi")
    model = made(tmp_path, texts, start, size=4, min_count=2)
    assert model.vocabulary.words == (*start.vocabulary.words, "router", "cable")
    assert np.array_equal(model.embedding[:7], start.embedding())
    known = start.embedding()[1:]
    assert (np.abs(model.embedding[7:] - known.mean(axis=0)) < 5 * known.std(axis=0)).all()
    assert model.embedding.dtype == np.float32
    assert np.array_equal(made(tmp_path, texts, start, size=4, min_count=2).embedding, model.embedding)
    assert not list(tmp_path.iterdir())


def test_a_model_to_go_on_from_gets_as_many_words_as_there_is_room_for(tmp_path: Path) -> None:
    start = gated_model()
    texts = ("router router router", "cable cable")
    assert len(made(tmp_path, texts, start, size=4, max_size=7).vocabulary.words) == 7
    assert made(tmp_path, texts, start, size=4, max_size=2).vocabulary.words == start.vocabulary.words


def test_a_model_whose_unknown_word_is_not_zero_can_go_on_with_zero(tmp_path: Path) -> None:
    start = gated_model()
    model = made(tmp_path, start=start, size=4, unknown="zero")
    assert not model.embedding[0].any()
    assert start.embedding()[0].any()


def test_a_model_with_vectors_of_another_size_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="has word vectors of 4 numbers, the recipe 3"):
        made(tmp_path, start=gated_model())


def test_words_are_trained_on_the_texts(tmp_path: Path) -> None:
    pytest.importorskip("gensim", reason="word vectors are trained with gensim, which is not installed")
    notices: list[str] = []

    class Heard(SilentProgress):
        def notice(self, text: str) -> None:
            notices.append(text)

    settings = WordSettings(min_count=1, size=5, epochs=2)
    model = make_words(settings, source(), None, tmp_path, (0, Heard()))
    assert model.embedding.shape == (5, 5)
    np.testing.assert_allclose(np.linalg.norm(model.embedding[1:], axis=1).mean(), 1, rtol=1e-5)
    assert notices == ["word2vec, epoch 1 of 2", "word2vec, epoch 2 of 2"]
    again = make_words(settings, source(), None, tmp_path, (0, Heard()))
    assert len(notices) == 2
    assert np.array_equal(again.embedding, model.embedding)
