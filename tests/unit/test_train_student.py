"""Training a student: the formulas on numbers worked by hand, and a small teacher that is learned from."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.student import Student
from askalike.models.text_encoder import TextEncoder
from askalike.progress import SilentProgress
from askalike.text.tokens import words
from askalike.training.student import (
    StudentRecipe,
    StudentReport,
    begin,
    learn_buckets,
    make_student,
    misspelt,
    overlaps,
    principal,
    sif_weight,
    student_texts,
)
from askalike.types import Question

TOPICS = ["visa", "flight", "router", "modem", "python", "docker", "kernel", "train", "hotel", "luggage"]
ROUND = ["the", "a", "for", "with", "my", "is", "not", "how"]
RECIPE = StudentRecipe(
    row_size=6,
    least_pair_count=3,
    most_pairs=50,
    buckets=64,
    epochs=20,
    batch_size=32,
    learning_rate=0.02,
    held_out=0.1,
)


def train_student(
    texts: list[str], teacher: TextEncoder, folder: Path, recipe: StudentRecipe, start: Student | None = None
) -> StudentReport:
    student, report = make_student(texts, teacher, recipe, SilentProgress(), start)
    student.save(folder)
    return report


class TopicTeacher:
    """Reads texts as the sum of random vectors of their words; "not" turns the word behind it around."""

    name = "made:topics@1"
    dimensions = 8

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode_query(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        return np.array([self._vector(words(text)) for text in texts], dtype=np.float32)

    def encode_document(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.encode_query(texts)

    def _vector(self, read: list[str]) -> NDArray[np.float64]:
        total = np.full(8, 0.01)
        for before, word in zip(["", *read], read, strict=False):
            seed = sum(ord(letter) * 31**place for place, letter in enumerate(word)) % 2**32
            length = 1.0 if word in TOPICS else 0.1
            total += (-length if before == "not" else length) * np.random.default_rng(seed).normal(0, 1, 8)
        return total


def texts(count: int = 400) -> list[str]:
    chance = random.Random(0)
    return [
        " ".join(chance.choice(TOPICS if chance.random() < 0.5 else ROUND) for _ in range(chance.randint(3, 8)))
        + f" {chance.choice(TOPICS)}"
        for _ in range(count)
    ]


def test_a_word_keeps_the_less_of_its_row_the_more_frequent_it_is() -> None:
    assert sif_weight(0.0, 1e-3) == 1.0
    assert sif_weight(1e-3, 1e-3) == 0.5
    assert sif_weight(0.003, 1e-3) == pytest.approx(0.25)  # 0.001 / 0.004


def test_principal_directions_are_those_of_greatest_variance() -> None:
    # around (1, 1) along (3, 4)/5 by ±5 and along (4, -3)/5 by ±1
    points = np.array([[4.0, 5.0], [-2.0, -3.0], [1.8, 0.4], [0.2, 1.6]])
    mean, directions = principal(points, 2)
    np.testing.assert_allclose(mean, [1.0, 1.0], atol=1e-6)
    np.testing.assert_allclose(directions.T, [[0.6, 0.8], [0.8, -0.6]], atol=1e-6)


def test_training_begins_with_centred_turned_and_damped_vectors_of_words() -> None:
    points = np.array([[4.0, 5.0], [-2.0, -3.0], [1.8, 0.4], [0.2, 1.6]])
    start = begin(points, [0.001, 0.0, 0.0, 0.003], replace(RECIPE, row_size=1, damping=1e-3))
    # projections on (3, 4)/5: 5, -5, 0, 0; weights 1/2, 1, 1, 1/4
    np.testing.assert_allclose(start.rows, [[2.5], [-5.0], [0.0], [0.0]], atol=1e-6)
    np.testing.assert_allclose(start.output, [[0.6], [0.8]], atol=1e-6)
    np.testing.assert_allclose(start.bias, [1.0, 1.0], atol=1e-6)


def test_the_start_is_that_of_a_naive_loop() -> None:
    chance = np.random.default_rng(3)
    vectors = chance.normal(0, 1, (9, 4)).astype(np.float32)
    shares = chance.random(9).tolist()
    start = begin(vectors, shares, replace(RECIPE, row_size=3))
    mean = sum(vectors) / 9
    for row, vector, share in zip(start.rows, vectors, shares, strict=True):
        for number, direction in enumerate(start.output.T):
            product = sum(direction[axis] * (vector[axis] - mean[axis]) for axis in range(4))
            assert row[number] == pytest.approx(product * 1e-3 / (1e-3 + share), rel=1e-3, abs=1e-6)


def test_a_student_comes_nearer_to_its_teacher_than_it_began(tmp_path: Path) -> None:
    report = train_student(texts(), TopicTeacher(), tmp_path / "student", RECIPE)
    assert report.cosine.low > report.start.high
    assert report.gain.mean > 0
    assert 0 < report.overlap.low <= report.overlap.mean <= report.overlap.high <= 1
    student = Student.load(tmp_path / "student")
    asked = ["docker for my router", "how the train is"]
    exact = TopicTeacher().encode_query(asked)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    assert (student.encode_query(asked) * exact).sum(axis=1).min() > 0.7
    assert student.origin.dev_scores["cosine"] == report.cosine.mean
    assert "It is not known here what the teacher was trained on" in student.settings.card


def test_the_same_seed_gives_the_same_student(tmp_path: Path) -> None:
    for name, seed in (("one", 1), ("other", 1), ("third", 2)):
        train_student(texts(150), TopicTeacher(), tmp_path / name, replace(RECIPE, epochs=1, seed=seed))
    names = [Student.load(tmp_path / name).name for name in ("one", "other", "third")]
    assert names[0] == names[1] != names[2]


def test_pairs_learn_what_single_words_cannot_say(tmp_path: Path) -> None:
    with_pairs = train_student(texts(1500), TopicTeacher(), tmp_path / "with", RECIPE)
    without = train_student(texts(1500), TopicTeacher(), tmp_path / "without", replace(RECIPE, most_pairs=0))
    assert with_pairs.cosine.mean > without.cosine.mean


def test_a_student_that_goes_on_keeps_its_rows_and_gets_those_of_new_words(tmp_path: Path) -> None:
    train_student(texts(), TopicTeacher(), tmp_path / "general", RECIPE)
    general = Student.load(tmp_path / "general")
    forum = [text.replace("visa", "passport") for text in texts(300)]
    teacher = TopicTeacher()
    train_student(forum, teacher, tmp_path / "begun", replace(RECIPE, epochs=0, precision="float32"), start=general)
    begun = Student.load(tmp_path / "begun")
    known = len(general.vocabulary.words)
    assert begun.vocabulary.words == (*general.vocabulary.words, "passport")
    assert teacher.asked[:1] == ["passport"]
    np.testing.assert_array_equal(begun.arrays()["words"][:known], general.arrays()["words"])
    np.testing.assert_array_equal(begun.pair_ids[: len(general.pair_ids)], general.pair_ids)
    further = train_student(forum, TopicTeacher(), tmp_path / "forum", RECIPE, start=general)
    assert further.start.mean > train_student(forum, TopicTeacher(), tmp_path / "alone", RECIPE).start.mean


def test_a_student_goes_on_with_its_own_teacher_alone(tmp_path: Path) -> None:
    train_student(texts(150), TopicTeacher(), tmp_path / "general", replace(RECIPE, epochs=0))
    other = TopicTeacher()
    other.name = "made:other@1"
    with pytest.raises(SettingError, match="go on from has the teacher made:topics@1"):
        train_student(texts(150), other, tmp_path / "forum", RECIPE, start=Student.load(tmp_path / "general"))


def test_a_misspelt_word_is_near_to_the_word_that_was_meant() -> None:
    known = [f"{first}{second}" for first in TOPICS for second in TOPICS]
    rows = np.random.default_rng(0).normal(0, 1, (len(known), 6)).astype(np.float32)
    recipe = replace(RECIPE, buckets=4000)
    learned, cosine = learn_buckets(known, rows, recipe, SilentProgress())
    assert learned.shape == (4000, 6)
    assert cosine > 0.4
    assert learn_buckets(known, rows, replace(RECIPE, buckets=0), SilentProgress())[1] == 0.0


def test_a_slip_changes_one_letter_or_two_neighbours() -> None:
    chance = random.Random(0)
    for _ in range(200):
        slipped = misspelt("luggage", chance)
        assert abs(len(slipped) - 7) <= 1
        assert sorted(set(slipped) - set("luggage"))[1:] == []
    assert misspelt("the", chance) == "the"


def test_texts_of_excluded_questions_never_reach_the_teacher(tmp_path: Path) -> None:
    questions = [
        Question(str(number), f"{text}?", f"<p>{text} again. And more of {text}.</p>", "html")
        for number, text in enumerate(texts(120))
    ]
    questions.append(Question("secret", "How is the SECRET   kept", "A body that nobody else wrote in this forum."))
    questions.append(Question("copy", "how is the secret kept", "Another body of more than four words."))
    learned = student_texts(questions, excluded={"secret"})
    teacher = TopicTeacher()
    train_student(learned, teacher, tmp_path / "student", replace(RECIPE, epochs=0))
    assert not [text for text in teacher.asked if "nobody else" in text]
    assert not [text for text in teacher.asked if text.lower().split() == ["how", "is", "the", "secret", "kept"]]
    assert [text for text in teacher.asked if "Another body" in text]


def test_a_question_gives_its_title_its_whole_and_two_sentences() -> None:
    body = "First sentence has five words. Second sentence has five too. Third sentence is also here. Short one."
    found = student_texts([Question("1", "A title", body), Question("2", "Title alone"), Question("3", "A title")])
    assert found[:2] == ["A title", f"A title\n{body}"]
    assert len(found) == 5
    assert found[-1] == "Title alone"
    assert all(sentence in body for sentence in found[2:4])


def test_overlap_counts_the_teachers_nearest_that_the_student_finds() -> None:
    documents = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]], dtype=np.float32)
    asked = np.array([[1.0, 0.0], [1.0, 0.0]], dtype=np.float32)
    found = np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    assert overlaps(found, asked, documents, nearest=2) == [1.0, 0.0]


class WrongTeacher(TopicTeacher):
    def encode_query(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return super().encode_query(texts)[1:]


class NaNTeacher(TopicTeacher):
    def encode_query(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return super().encode_query(texts) * np.nan


@pytest.mark.parametrize("teacher", [WrongTeacher(), NaNTeacher()])
def test_a_teacher_that_gives_wrong_vectors_is_refused_and_nothing_written(
    teacher: TopicTeacher, tmp_path: Path
) -> None:
    with pytest.raises(SettingError, match="made:topics@1 gave vectors"):
        train_student(texts(), teacher, tmp_path / "student", RECIPE)
    assert not (tmp_path / "student").exists()


def test_too_few_texts_or_words_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="expected at least 100"):
        train_student(texts(99), TopicTeacher(), tmp_path / "student", RECIPE)
    with pytest.raises(SettingError, match="row_size is 30"):
        train_student(texts(), TopicTeacher(), tmp_path / "student", replace(RECIPE, row_size=30))


@pytest.mark.parametrize("change", [{"row_size": 0}, {"held_out": 0.0}, {"damping": 0.0}, {"learning_rate": -1.0}])
def test_a_recipe_that_cannot_be_is_refused(change: dict[str, float]) -> None:
    with pytest.raises(SettingError):
        replace(RECIPE, **change)  # type: ignore[arg-type]
