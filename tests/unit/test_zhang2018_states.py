"""RAMN over pieces of words: words with their states, and layers with nothing to choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.tiny_models import synonym_model

from askalike.data import general_folder
from askalike.evaluation.forum.tasks import RerankTask, judge
from askalike.models.general import GeneralEncoder
from askalike.papers.zhang2018.ramn import Matcher, ModelStates
from askalike.papers.zhang2018.states import LAYERS, ContextualWords, FixedRamn, MeanStates, joined_text, words_of
from askalike.types import Question

QUESTIONS = {
    "q": Question("q", "wifi drops"),
    "a": Question("a", "a cat on the mat"),
    "b": Question("b", "wlan lost"),
    "c": Question("c", "printer silent"),
}
TASK = RerankTask(
    name="dev",
    protocol="semeval",
    queries={"q": QUESTIONS["q"]},
    documents={name: QUESTIONS[name] for name in "abc"},
    given={"q": [("a", 1.0), ("b", 0.5), ("c", 0.1)]},
    qrels={"q": {"a": 0, "b": 1, "c": 0}},
    statistics=(),
)
LEXICAL = {"dev": {"q": [("a", 0.0), ("b", 0.0), ("c", 2.0)]}}


def test_layers_are_those_of_the_rows_and_sums_weigh_each_part_the_same() -> None:
    source = ModelStates(synonym_model())
    runs = FixedRamn(MeanStates(source), "cosine", LEXICAL).runs(TASK)
    for layer in ("base", "mismatch"):
        assert runs[layer] == Matcher(source).run(TASK, replace(LAYERS[layer], similarity="cosine"))
    assert judge(TASK, runs["base"]).means["map"] == 1, "wlan stands for wifi, lost for drops"
    assert judge(TASK, runs["matches"]).means["map"] == judge(TASK, runs["cosine"]).means["map"] == 1
    searched = np.array([1.0, 2.0, 10.0]), np.array([0.0, 0.0, 2.0])
    expected = sum((own - own.mean()) / own.std() for own in (-searched[0], searched[1]))
    near = np.array([score for _, score in runs["cosine"]["q"]])
    control = [score for _, score in runs["control"]["q"]]
    assert control == pytest.approx(expected + (near - near.mean()) / near.std())


def encode(texts: Sequence[str]) -> list[tuple[list[str], NDArray[np.float32]]]:
    """Return each letter as a piece with its place in the alphabet as its state."""
    encoded = []
    for text in texts:
        pieces = [
            "[CLS]",
            *(f"##{letter}" if place else letter for word in text.split() for place, letter in enumerate(word)),
        ]
        states = [[float(ord(piece[-1]) - ord("a"))] for piece in pieces]
        encoded.append((pieces, np.array(states, np.float32)))
    return encoded


def test_words_have_the_mean_of_their_pieces_and_each_text_is_encoded_once() -> None:
    read: list[str] = []

    def counted(texts: Sequence[str]) -> list[tuple[list[str], NDArray[np.float32]]]:
        read.extend(texts)
        return encode(texts)

    source = ContextualWords(counted, lambda words: np.zeros(len(words), np.int64))
    first, second = Question("1", "ab", "ce"), Question("2", "ab")
    encoded = source.states([first, second, first])
    assert [text.words for text in encoded] == [("ab", "ce"), ("ab",), ("ab", "ce")]
    assert encoded[0].states.tolist() == [[0.5], [3.0]]
    source.states([second])
    assert source.vectors([first]).tolist() == [[1.0]]
    assert read == ["ab ce", "ab"] == [joined_text(question) for question in (first, second)]
    words, none = words_of(["[CLS]", "?", "[SEP]"], np.ones((3, 2), np.float32))
    assert (words, none.shape) == ((), (0, 2))


def test_the_bundled_encoder_gives_the_states_whose_mean_is_its_vector() -> None:
    folder = general_folder()
    if folder is None:
        pytest.skip("the package has no bundled encoder")
    encoder = GeneralEncoder(folder, threads=1)
    texts = ["My printer prints nothing", "wifi"]
    for text, (pieces, states) in zip(texts, encoder.token_states(texts), strict=True):
        assert (pieces[0], pieces[-1], len(pieces)) == ("[CLS]", "[SEP]", len(states))
        mean = states.mean(axis=0)
        np.testing.assert_allclose(mean / np.linalg.norm(mean), encoder.encode_query([text])[0], atol=1e-4)
