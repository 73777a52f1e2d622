"""Students: their formulas on numbers worked by hand, their runtime against a naive loop, their folder when damaged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from numpy.typing import NDArray

from askalike.data import bundled_forum, default_students
from askalike.errors import DamagedModelError, ModelNotFoundError, SettingError
from askalike.models.folder import digest
from askalike.models.student import RowReader, Student, StudentSettings, buckets_of
from askalike.models.vocabulary import Vocabulary

WORDS = ["new", "york", "visa", "for", "zealand"]
PAIRS = np.array([[1, 2], [1, 5]])
TEXTS = ["Visa for New York?", "new zealand, new york", "", "!!!", "unknwon visas for " + "x" * 60, "visa " * 40]


class OwnTeacher:
    name = "made:teacher@1"
    dimensions = 4

    def encode_query(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.ones((len(texts), 4), dtype=np.float32)

    def encode_document(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.full((len(texts), 4), 0.5, dtype=np.float32)


def tables(seed: int = 0) -> dict[str, NDArray[np.float32]]:
    chance = np.random.default_rng(seed)
    shapes = {"words": (5, 3), "pairs": (2, 3), "buckets": (7, 3), "output": (4, 3), "bias": (4,)}
    return {name: chance.normal(0, 1, shape).astype(np.float32) for name, shape in shapes.items()}


def student(precision: str = "float32", seed: int = 0) -> Student:
    settings = StudentSettings(
        3,
        4,
        words=5,
        pairs=2,
        buckets=7,
        word_limit=20,
        precision=precision,  # type: ignore[arg-type]
        teacher="made:teacher@1",
        card="# A card\n",
    )
    return Student.build(settings, Vocabulary(WORDS), PAIRS, tables(seed), training_data="ab" * 32)


def naive(text: str, arrays: dict[str, NDArray[np.float32]]) -> NDArray[np.float64]:
    """One row after the other, as the equation is written."""
    reader = RowReader(Vocabulary(WORDS), PAIRS, 7, 20)
    read = reader.words(text)
    total, is_known = np.zeros(3), False
    for place, word in enumerate(read):
        if word in WORDS:
            total += arrays["words"][WORDS.index(word)]
            is_known = True
        elif len(word) <= 40:
            grams = buckets_of(word, 7)
            for gram in grams:
                total += arrays["buckets"][gram].astype(float) / len(grams)
            is_known = True
        for number, pair in enumerate([("new", "york"), ("new", "zealand")]):
            if tuple(read[place : place + 2]) == pair:
                total += arrays["pairs"][number]
    if not is_known:
        return np.zeros(4)
    vector = np.array([sum(row * total) for row in arrays["output"]]) + arrays["bias"]
    return vector / np.sqrt(sum(vector**2))


def test_a_vector_is_the_sum_of_the_rows_through_the_layer_at_length_1() -> None:
    # h = (1, 0) + (0, 2) + (1, 0) for the pair = (2, 2); W h + b = (2, 2·2 - 1) = (2, 3) / √13
    settings = StudentSettings(2, 2, words=2, pairs=1, precision="float32")
    arrays = {
        "words": np.array([[1.0, 0.0], [0.0, 2.0]]),
        "pairs": np.array([[1.0, 0.0]]),
        "output": np.array([[1.0, 0.0], [0.0, 2.0]]),
        "bias": np.array([0.0, -1.0]),
    }
    made = Student.build(settings, Vocabulary(["new", "york"]), np.array([[1, 2]]), arrays)
    expected = np.array([[2.0, 3.0]]) / np.sqrt(13)
    np.testing.assert_allclose(made.encode_query(["New York"]), expected, rtol=1e-6)


def test_the_runtime_gives_the_vectors_of_a_naive_loop() -> None:
    found = student().encode_query(TEXTS)
    assert found.dtype == np.float32
    for text, vector in zip(TEXTS, found, strict=True):
        np.testing.assert_allclose(vector, naive(text, tables()), atol=1e-5)


def test_texts_together_have_the_vectors_of_texts_alone() -> None:
    made = student()
    together = made.encode_query(TEXTS)
    np.testing.assert_allclose(together, np.concatenate([made.encode_query([text]) for text in TEXTS]), atol=1e-6)
    assert made.encode_query([]).shape == (0, 4)


def test_a_text_of_which_nothing_is_known_has_the_zero_vector() -> None:
    assert not student().encode_query(["", "?!", "y" * 41]).any()


def test_words_beyond_the_limit_are_not_read() -> None:
    made = student()
    text = "visa " * 20
    np.testing.assert_array_equal(made.encode_query([text]), made.encode_query([text + "new york"]))


def test_a_misspelt_word_is_read_by_its_n_grams() -> None:
    assert RowReader(Vocabulary(WORDS), PAIRS, 7, 20).read("vissa").unknown == [buckets_of("vissa", 7)]
    assert RowReader(Vocabulary(WORDS), PAIRS, 0, 20).read("vissa").unknown == []


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
def test_a_saved_student_reads_as_the_one_that_was_saved(precision: str, tmp_path: Path) -> None:
    made = student(precision)
    made.save(tmp_path / "student")
    again = Student.load(tmp_path / "student")
    np.testing.assert_array_equal(again.encode_query(TEXTS), made.encode_query(TEXTS))
    assert (again.name, again.dimensions, again.settings) == (made.name, 4, made.settings)
    assert again.name.startswith("student:made:teacher@1@")
    cosines = (made.encode_query(TEXTS) * student().encode_query(TEXTS)).sum(axis=1)
    assert cosines[[0, 1, 4, 5]].min() > 0.999
    assert student(precision, seed=1).name != made.name


def test_a_student_is_small_without_pairs_and_n_grams(tmp_path: Path) -> None:
    arrays = {name: array for name, array in tables().items() if name not in ("pairs", "buckets")}
    settings = StudentSettings(3, 4, words=5, word_limit=20)
    made = Student.build(settings, Vocabulary(WORDS), np.zeros((0, 2), dtype=np.int64), arrays)
    made.save(tmp_path / "student")
    again = Student.load(tmp_path / "student")
    np.testing.assert_array_equal(again.encode_query(TEXTS), made.encode_query(TEXTS))
    assert not again.encode_query(["unknwon"]).any()


def test_documents_are_encoded_by_the_teacher_where_it_is_given(tmp_path: Path) -> None:
    student().save(tmp_path / "student")
    alone, taught = Student.load(tmp_path / "student"), Student.load(tmp_path / "student", OwnTeacher())
    np.testing.assert_array_equal(alone.encode_document(TEXTS), alone.encode_query(TEXTS))
    assert taught.encode_document(TEXTS).tolist() == [[0.5] * 4] * len(TEXTS)
    np.testing.assert_array_equal(taught.encode_query(TEXTS), alone.encode_query(TEXTS))
    assert taught.name == alone.name + "+teacher"


def test_another_encoder_than_its_teacher_is_refused(tmp_path: Path) -> None:
    student().save(tmp_path / "student")
    other = OwnTeacher()
    other.name = "made:other@1"
    with pytest.raises(SettingError, match="is not the teacher of this student"):
        Student.load(tmp_path / "student", other)


def stored(folder: Path) -> dict[str, NDArray[np.generic]]:
    return dict(safetensors.numpy.load((folder / "weights.safetensors").read_bytes()))


def restore(folder: Path, name: str, data: bytes) -> None:
    """Change a file, and the manifest with it, as whoever means harm would."""
    (folder / name).write_bytes(data)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][name] = digest(data)
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"words": np.zeros((4, 3), np.float32)}, "expected float32 \\(5, 3\\)"),
        ({"output": np.full((4, 3), np.nan, np.float32)}, "not finite"),
        ({"bias": np.zeros((4,), np.float16)}, "expected float32 \\(4,\\)"),
        ({"pair_ids": np.array([[1, 2], [1, 6]])}, "expected two ids from 1 to 5"),
        ({"pair_ids": np.array([[0, 2], [1, 5]])}, "expected two ids from 1 to 5"),
        ({"pair_ids": np.array([[1, 2], [1, 2]])}, "occurs twice"),
        ({"pair_ids": np.array([[1, 2, 3], [1, 2, 4]])}, "expected int64 \\(2, 2\\)"),
        ({"more": np.zeros((1,), np.float32)}, "more than the model needs: more"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change: dict[str, NDArray[np.generic]], said: str, tmp_path: Path) -> None:
    folder = tmp_path / "student"
    student().save(folder)
    restore(folder, "weights.safetensors", safetensors.numpy.save(stored(folder) | change))
    with pytest.raises(DamagedModelError, match=said):
        Student.load(folder)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("words", 6, "expected float32 \\(6, 3\\)"),
        ("row_size", 0, "whole number from 1"),
        ("word_limit", 10**9, "whole number from 1"),
        ("pairs", True, "whole number from 0"),
        ("precision", "int4", "precision is 'int4'"),
        ("card", 3, "card is 3"),
        ("card", "x" * 8001, "longer than 8000 characters"),
        ("kind", "siamese", "but expected buckets, card"),
        ("further", 1, "a student are buckets, card, dimensions, further"),
    ],
)
def test_settings_that_cannot_be_are_refused(name: str, value: object, said: str, tmp_path: Path) -> None:
    folder = tmp_path / "student"
    student().save(folder)
    config = json.loads((folder / "config.json").read_text()) | {name: value}
    restore(folder, "config.json", json.dumps(config).encode())
    with pytest.raises(DamagedModelError, match=said):
        Student.load(folder)


def test_a_changed_byte_is_found(tmp_path: Path) -> None:
    student().save(tmp_path / "student")
    file = tmp_path / "student" / "weights.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(bytes(data))
    with pytest.raises(DamagedModelError, match="SHA-256"):
        Student.load(tmp_path / "student")


def test_where_there_is_no_student_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="there is no model"):
        Student.load(tmp_path / "none")


def test_the_package_carries_a_student_of_minilm_that_says_what_its_teacher_may_have_seen() -> None:
    (folder,) = default_students()
    found = Student.load(folder)
    assert found.settings.teacher.startswith("minilm:all-MiniLM-L6-v2@")
    for said in ("What the teacher may have seen", "Stack Exchange", "Learned from: titles", "Not for:"):
        assert said in found.settings.card
    asked = found.encode_query(["My wifi is slow", "The wireless connection is slow", "How do I bake bread?"])
    assert asked[0] @ asked[1] > asked[0] @ asked[2] + 0.3


def test_the_data_of_the_package_stays_below_20_megabytes() -> None:
    files = [one for one in bundled_forum().parent.parent.rglob("*") if one.is_file() and one.suffix != ".pyc"]
    assert sum(one.stat().st_size for one in files) < 20e6
