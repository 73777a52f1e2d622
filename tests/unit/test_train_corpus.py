"""Training data becomes ids: texts, pairs, answers, dev sets; and it has a name."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.tiny_training import tiny_corpus, tiny_data

from askalike.errors import SettingError
from askalike.models.vocabulary import QuestionReader
from askalike.training.corpus import TrainingData, WordSource
from askalike.types import Answer, Question

QUESTIONS = [
    Question("x", "Wifi drops", "<p>daily wifi</p>", "html"),
    Question("y", "printer", ""),
    Question("z", "wifi lost", "router"),
]
BOTH = QuestionReader("title and body", 100)
DATA = TrainingData(QUESTIONS, [("x", "z")], [Answer("1", "y", "paper **jam**", "markdown")])


def read(data: TrainingData, reader: QuestionReader = BOTH) -> tuple[list[list[str]], WordSource]:
    source = WordSource(data, reader, lambda _: None)
    read = source.words
    return [[read.words[number] for number in read.texts[row]] for row in range(len(read.texts))], source


def test_titles_and_bodies_alternate_and_answers_follow() -> None:
    assert read(DATA)[0] == [
        ["wifi", "drops"],
        ["daily", "wifi"],
        ["printer"],
        [],
        ["wifi", "lost"],
        ["router"],
        ["paper", "jam"],
    ]


def test_a_model_of_titles_has_no_bodies_and_long_texts_are_cut() -> None:
    assert read(DATA, QuestionReader("title", 1))[0] == [["wifi"], [], ["printer"], [], ["wifi"], [], ["paper"]]


def test_a_joined_question_is_read_as_its_title_and_rows_stay_where_they_are() -> None:
    words = [["wifi", "drop", "daili"], [], ["printer"], [], ["wifi", "lost", "router"], [], ["paper", "jam"]]
    assert read(DATA, QuestionReader("joined", 3, "english"))[0] == words


def test_names_become_places() -> None:
    _, source = read(DATA)
    corpus = source.corpus(source.vocabulary(1, 2))
    assert corpus.size == 3
    assert corpus.pairs.tolist() == [[0, 2]]
    assert corpus.answers.tolist() == [[1, 6]]
    assert [row.tolist() for row in map(corpus.texts.__getitem__, (0, 1, 3))] == [[1, 0], [2, 1], []]


def test_dev_sets_are_read_with_the_same_words() -> None:
    corpus = tiny_corpus()
    assert corpus.dev["tiny"].texts.ids.tolist() == corpus.texts.ids[: corpus.texts.starts[2 * corpus.size]].tolist()


def test_usable_pairs_are_of_two_different_questions_with_words() -> None:
    questions = [*QUESTIONS, Question("empty", "?", "")]
    _, source = read(TrainingData(questions, [("x", "y"), ("x", "x"), ("empty", "x"), ("z", "empty"), ("z", "y")]))
    corpus = source.corpus(source.vocabulary(1, None))
    assert corpus.usable_pairs().tolist() == [[0, 1], [2, 1]]
    assert corpus.labelled() == {0: {1, 3}, 1: {0, 2}, 2: {1, 3}, 3: {0, 2}}


@pytest.mark.parametrize(
    "wrong",
    [
        replace(DATA, pairs=[("x", "nobody")]),
        replace(DATA, answers=[Answer("1", "nobody", "text")]),
    ],
)
def test_a_name_that_is_no_question_is_refused(wrong: TrainingData) -> None:
    _, source = read(wrong)
    with pytest.raises(SettingError, match="names question 'nobody', which is not among"):
        source.corpus(source.vocabulary(1, None))


def test_two_questions_with_one_id_are_refused() -> None:
    _, source = read(replace(DATA, questions=[*QUESTIONS, QUESTIONS[0]]))
    with pytest.raises(SettingError, match="4 questions with 3 ids"):
        source.corpus(source.vocabulary(1, None))


def test_everything_that_is_learned_from_changes_the_digest() -> None:
    first, second = QUESTIONS[:2]
    others = [
        replace(DATA, questions=QUESTIONS[:2]),
        replace(DATA, questions=[replace(first, body="other"), *QUESTIONS[1:]]),
        replace(DATA, questions=[replace(first, markup="plain"), *QUESTIONS[1:]]),
        replace(DATA, questions=[replace(first, title=""), replace(second, title="Wifi dropsprinter"), QUESTIONS[2]]),
        replace(DATA, pairs=[("z", "x")]),
        replace(DATA, pairs=[("x", "z"), ("x", "z")]),
        replace(DATA, answers=[]),
    ]
    assert len({data.digest() for data in [DATA, *others]}) == 1 + len(others)
    assert DATA.digest() == replace(DATA, pairs=tuple(DATA.pairs), dev=tiny_data().dev).digest()
    assert DATA.dev_digest() != replace(DATA, dev=tiny_data().dev).dev_digest()
