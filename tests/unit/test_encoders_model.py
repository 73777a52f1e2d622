"""A model's vectors and weights of words: worked by hand, and the laws that hold for every kind."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest

from askalike.errors import SettingError
from askalike.models.encoders.model import Model, WordStates
from askalike.models.encoders.settings import EncoderConfig, ModelSettings, Unknown
from askalike.models.vocabulary import Reads, Vocabulary
from askalike.types import Question

WORDS = ["the", "router", "modem", "is", "slow", "reset", "password", "my", "how", "wifi"]
QUESTIONS = [
    Question("1", "How slow is my router", "The wifi is slow."),
    Question("2", "", ""),
    Question("3", "reset password"),
    Question("4", "", "<p>The <b>modem</b></p><pre><code>reset wifi</code></pre>", "html"),
    Question("5", "an unheard-of gadget", "the modem is the router " * 40),
    Question("6", "???", "..."),
]


def text_states(model: Model, texts: Sequence[str], batch_size: int = 256) -> list[WordStates]:
    return model.states([Question("", text) for text in texts], batch_size)


def model_of(
    encoder: EncoderConfig | None = None,
    *,
    reads: Reads = "title and body",
    unknown: Unknown = "vector",
    word_limit: int = 100,
    stems: str = "",
) -> Model:
    encoder = encoder or EncoderConfig("rcnn", 4, 6)
    chance = np.random.default_rng(5)
    embedding = chance.normal(0, 1, (len(WORDS) + 1, encoder.input_size))
    if unknown != "vector":
        embedding[0] = 0
    return Model.build(
        ModelSettings(encoder, reads, word_limit, unknown, stems),
        Vocabulary(WORDS),
        embedding,
        {name: chance.normal(0, 0.6, shape) for name, shape in encoder.shapes().items()},
        dev_scores={"MRR": 0.5},
    )


ENCODERS = [
    EncoderConfig("rcnn", 4, 6, pooling="normalised-mean"),
    EncoderConfig("rcnn", 4, 6, gate="scalar"),
    EncoderConfig("rcnn", 4, 6, gate="fixed"),
    EncoderConfig("gru", 4, 6),
]
every_encoder = pytest.mark.parametrize("encoder", ENCODERS, ids=lambda encoder: f"{encoder.kind}-{encoder.gate}")


def test_a_question_is_the_average_of_title_and_body_worked_by_hand() -> None:
    # a CNN of width 1 over vectors of size 2: a text's vector is tanh of its last word's
    encoder = EncoderConfig("cnn", 2, 2, order=1)
    embedding = np.array([[9, 9], [0.5, 0.25], [-1, 2]])
    parameters = {"weight": np.eye(2), "bias": np.zeros(2)}
    model = Model.build(ModelSettings(encoder), Vocabulary(["router", "modem"]), embedding, parameters)
    title = (math.tanh(0.5), math.tanh(0.25))
    both = (title[0] + math.tanh(-1), title[1] + math.tanh(2))
    questions = [Question("1", "modem router", "<i>router</i> Modem", "html"), Question("2", "router", " ")]
    expected = [[value / math.hypot(*pair) for value in pair] for pair in (both, title)]
    np.testing.assert_allclose(model.encode(questions), expected, atol=1e-6)
    np.testing.assert_allclose(model.encode_text(["Router!"]), expected[1:], atol=1e-6)


def test_known_words_are_those_with_a_vector_of_their_own_among_those_that_are_read() -> None:
    question = Question("1", "The unheard-of Modem", "my <b>wifi</b> gadget is slow", "html")
    assert model_of(word_limit=4).known_words(question) == ["the", "modem", "my", "wifi", "is"]
    assert model_of(reads="title").known_words(question) == ["the", "modem"]


@every_encoder
def test_vectors_have_length_one_and_a_question_without_words_is_zero(encoder: EncoderConfig) -> None:
    vectors = model_of(encoder).encode(QUESTIONS)
    assert vectors.shape == (6, 6)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 0, 1, 1, 1, 0], atol=1e-6)


@every_encoder
def test_a_batch_is_what_its_questions_are_one_by_one(encoder: EncoderConfig) -> None:
    model = model_of(encoder)
    alone = np.concatenate([model.encode([question]) for question in QUESTIONS])
    for batch_size in (1, 2, 3, 256):
        np.testing.assert_allclose(model.encode(QUESTIONS, batch_size), alone, atol=1e-6)
    np.testing.assert_allclose(model.encode(QUESTIONS[::-1]), alone[::-1], atol=1e-6)
    np.testing.assert_allclose(model.encode(QUESTIONS * 20, 2), np.tile(alone, (20, 1)), atol=1e-6)


def test_words_beyond_the_limit_are_not_read() -> None:
    model = model_of(word_limit=3)
    np.testing.assert_array_equal(
        model.encode([Question("1", "reset my router the wifi", "the modem is the router")]),
        model.encode([Question("1", "reset my router", "the modem is slow")]),
    )


def test_a_model_that_reads_titles_alone_does_not_look_at_bodies() -> None:
    model = model_of(reads="title")
    np.testing.assert_array_equal(
        model.encode([Question("1", "reset my router", "the modem")]), model.encode_text(["reset my router"])
    )


def test_dropped_words_leave_vectors_and_states_as_if_they_were_not_there() -> None:
    model = model_of(unknown="dropped")
    with_them, without = "reset gadget wifi gizmo", "reset wifi"
    np.testing.assert_array_equal(*model.encode_text([with_them, without]))
    pair = [Question("1", with_them, with_them), Question("2", without, without)]
    np.testing.assert_array_equal(*model.encode(pair))
    for first, second in (model.states(pair), text_states(model, [with_them, without])):
        assert first.words == second.words
        np.testing.assert_array_equal(first.states, second.states)
    assert not model.encode_text(["gadget gizmo"]).any()


def test_an_unknown_word_has_the_learned_vector_or_zero() -> None:
    policies: tuple[Unknown, ...] = ("vector", "zero")
    for unknown in policies:
        model = model_of(unknown=unknown)
        first, second = model.encode_text(["reset gadget", "reset gizmo"])
        np.testing.assert_array_equal(first, second)
        assert model.embedding()[0].any() == (unknown == "vector")


@every_encoder
def test_a_joined_question_is_one_text(encoder: EncoderConfig) -> None:
    model = model_of(encoder, reads="joined", word_limit=4)
    joined = ["How slow is my", "", "reset password", "The modem reset wifi", "an unheard of gadget", ""]
    np.testing.assert_allclose(model.encode(QUESTIONS), model.encode_text(joined), atol=1e-6)


def test_a_model_of_stems_knows_words_by_their_stems_and_shows_them_as_they_are_written() -> None:
    model = model_of(stems="english")
    question = Question("1", "Routers, cables", "<i>Resetting</i> modems", "html")
    assert model.known_words(question) == ["routers", "resetting", "modems"]
    np.testing.assert_array_equal(model.encode_text(["routers reset"]), model_of().encode_text(["router reset"]))
    assert model_of().known_words(question) == []


# --- states ----------------------------------------------------------------------------------------------------------


def test_states_are_those_of_the_words_worked_by_hand() -> None:
    # a CNN of width 1: the state at a word is tanh of its vector
    encoder = EncoderConfig("cnn", 2, 2, order=1)
    embedding = np.array([[9, 9], [0.5, 0.25], [-1, 2]])
    parameters = {"weight": np.eye(2), "bias": np.zeros(2)}
    settings = ModelSettings(encoder, word_limit=2, stems="english")
    model = Model.build(settings, Vocabulary(["router", "modem"]), embedding, parameters)
    (states,) = model.states([Question("1", "Modems", "<i>the</i> routers router", "html")])
    assert states.words == ("modem", "the", "router")
    assert states.ids.tolist() == [2, 0, 1]
    np.testing.assert_allclose(states.states, np.tanh(embedding[[2, 0, 1]]), atol=1e-6)
    assert (states.ids.dtype, states.states.dtype) == (np.int64, np.float32)
    (of_text,) = text_states(model, ["Routers modem modem"])
    assert of_text.words == ("router", "modem")
    np.testing.assert_allclose(of_text.states, np.tanh(embedding[[1, 2]]), atol=1e-6)


@every_encoder
def test_title_and_body_have_the_states_of_two_texts_and_a_joined_question_those_of_one(encoder: EncoderConfig) -> None:
    apart, joined, titles = (model_of(encoder, reads=reads) for reads in ("title and body", "joined", "title"))
    question = QUESTIONS[0]
    title, body, both = text_states(apart, [question.title, question.body, f"{question.title} {question.body}"])
    states = [model.states([question])[0] for model in (apart, joined, titles)]
    assert states[0].words == states[1].words == both.words == title.words + body.words
    assert states[2].words == title.words
    np.testing.assert_allclose(states[0].states, np.concatenate([title.states, body.states]), atol=1e-6)
    np.testing.assert_allclose(states[1].states, both.states, atol=1e-6)
    np.testing.assert_allclose(states[2].states, title.states, atol=1e-6)


@every_encoder
def test_the_states_of_a_batch_are_those_of_its_questions_one_by_one(encoder: EncoderConfig) -> None:
    model = model_of(encoder)
    alone = [model.states([question])[0] for question in QUESTIONS]
    for batch_size in (1, 2, 256):
        for states, expected in zip(model.states(QUESTIONS, batch_size), alone, strict=True):
            assert states.words == expected.words
            np.testing.assert_array_equal(states.ids, expected.ids)
            np.testing.assert_allclose(states.states, expected.states, atol=1e-6)


# --- what does not fit -----------------------------------------------------------------------------------------------


def test_numbers_that_do_not_fit_do_not_make_a_model() -> None:
    model = model_of()
    settings, vocabulary, parameters = model.settings, model.vocabulary, model.parameters()
    with pytest.raises(SettingError, match="9 vectors of words, but there are 10 words"):
        Model.build(settings, vocabulary, model.embedding()[1:], parameters)
    with pytest.raises(SettingError, match="a vector of unknown words"):
        Model.build(ModelSettings(settings.encoder, unknown="zero"), vocabulary, model.embedding(), parameters)
    with pytest.raises(SettingError, match="nothing for input"):
        Model.build(settings, vocabulary, model.embedding(), {})
    with pytest.raises(SettingError, match="dev_scores"):
        Model.build(settings, vocabulary, model.embedding(), parameters, dev_scores={"MRR": math.nan})
    with pytest.raises(SettingError, match="training_data"):
        Model.build(settings, vocabulary, model.embedding(), parameters, training_data="reddit")
    for wrong, message in (
        (np.zeros(10, np.int64), r"counts of words int64 \(10,\), but expected int64 \(11,\)"),
        (np.zeros(11), r"counts of words float64 \(11,\), but expected int64"),
        (np.full(11, -1), "counts of words down to -1, but expected numbers ≥ 0"),
    ):
        with pytest.raises(SettingError, match=message):
            Model.build(settings, vocabulary, model.embedding(), parameters, counts=wrong)  # type: ignore[arg-type]
    for encode in (model.encode, model.states):
        with pytest.raises(SettingError, match="batch_size 0"):
            encode(QUESTIONS, 0)
    with pytest.raises(SettingError, match="batch_size 0"):
        text_states(model, ["wifi"], 0)


def test_a_model_is_imported_without_torch() -> None:
    program = "import sys, askalike.models.encoders.model; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
