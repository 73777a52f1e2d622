"""The bundled encoder's numbers read, replaced and learned anew; with a hand-made encoder of two layers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tiny_models import synonym_model, tiny_general

from askalike.data import general_folder
from askalike.errors import DamagedModelError, ModelVersionError
from askalike.evaluation.candidates import CandidateTask
from askalike.models.adapted import AdaptedEncoder, bundled_numbers, load_model
from askalike.models.folder import Manifest
from askalike.models.general import GRAPH_FILE, GeneralEncoder
from askalike.models.graph_weights import (
    digest_without_numbers,
    in_8_bits,
    in_float32,
    numbers_of,
    stored_numbers,
    with_weights,
)
from askalike.models.wordpiece import WordPiece
from askalike.types import Answer, Question

TEXTS = ["wifi drops ?", "the printer is offline", "wireless", "is the wifi printer offline ? the printer drops"]
QUESTIONS = [
    Question("1", "wifi drops", "the wireless is offline"),
    Question("2", "printer offline", "is the printer offline ?"),
    Question("3", "wireless drops", "the wifi drops"),
    Question("4", "the printer drops", "offline printer"),
]


@pytest.fixture(autouse=True)
def bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "general"
    tiny_general(folder)
    monkeypatch.setattr("askalike.models.adapted.general_folder", lambda: folder)
    return folder


def graph_of(folder: Path) -> bytes:
    return (folder / GRAPH_FILE).read_bytes()


def adapted(scale: float = 1.1) -> AdaptedEncoder:
    weights = in_float32(bundled_numbers())
    return AdaptedEncoder.build({name: values * np.float32(scale) for name, values in weights.items()})


def test_the_numbers_of_a_graph_are_those_that_onnx_reads(bundled: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    graph = graph_of(bundled)
    expected = {
        constant.name: onnx.numpy_helper.to_array(constant)
        for constant in onnx.load_from_string(graph).graph.initializer
    }
    numbers = numbers_of(graph)
    assert numbers.keys() == expected.keys()
    for name, values in numbers.items():
        assert (values.dtype, values.shape) == (expected[name].dtype, expected[name].shape)
        np.testing.assert_array_equal(values, expected[name])


def test_weights_in_float32_and_back_are_the_same_graph(bundled: Path) -> None:
    graph = graph_of(bundled)
    numbers = numbers_of(graph)
    again = in_8_bits(in_float32(numbers), numbers)
    assert numbers.keys() - again.keys() == {"split", "join", "step", "zero", "least", "last"}
    for name, values in again.items():
        np.testing.assert_allclose(values, numbers[name], rtol=1e-6)
    assert len(with_weights(graph, again)) == len(graph)


def test_a_column_of_weights_has_a_scale_by_hand() -> None:
    numbers: dict[str, Any] = {
        "x_weight": np.array([[127, 10], [-64, 127]], np.int8),
        "x_scales": np.array([0.5, 2.0], np.float32),
        "x_bias": np.array([1.0, 2.0], np.float32),
    }
    weights = in_float32(numbers)
    assert weights["x_weight"].tolist() == [[63.5, 20.0], [-32.0, 254.0]]
    again = in_8_bits({**weights, "x_weight": 2 * weights["x_weight"]}, numbers)
    assert again["x_weight"].tolist() == numbers["x_weight"].tolist()
    assert again["x_scales"].tolist() == [1.0, 4.0]


def test_the_digest_of_a_graph_is_its_structure_alone(bundled: Path, tmp_path: Path) -> None:
    tiny_general(tmp_path / "other", seed=1)
    assert digest_without_numbers(graph_of(bundled)) == digest_without_numbers(graph_of(tmp_path / "other"))


@pytest.mark.parametrize("cut", [1, 100, 5_000])
def test_a_graph_that_is_cut_off_is_damaged(bundled: Path, cut: int) -> None:
    graph = graph_of(bundled)
    with pytest.raises(DamagedModelError):
        stored_numbers(graph[:-cut])


def test_other_numbers_give_other_vectors_and_a_folder_gives_the_same(tmp_path: Path, bundled: Path) -> None:
    encoder, plain = adapted(), GeneralEncoder(bundled, threads=1)
    vectors = encoder.encode_text(TEXTS)
    assert np.abs(vectors - plain.encode_document(TEXTS)).max() > 0.01
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    encoder.save(tmp_path / "own")
    again = load_model(tmp_path / "own")
    assert isinstance(again, AdaptedEncoder)
    np.testing.assert_array_equal(again.encode_text(TEXTS), vectors)
    first = {file.name: file.read_bytes() for file in (tmp_path / "own").iterdir()}
    again.save(tmp_path / "own")
    assert {file.name: file.read_bytes() for file in (tmp_path / "own").iterdir()} == first


def test_a_question_is_its_title_and_body_and_an_empty_one_is_zeros() -> None:
    encoder = adapted()
    vectors = encoder.encode([Question("1", "wifi", "drops"), Question("2", "", "")])
    np.testing.assert_allclose(vectors[0], encoder.encode_text(["wifi\ndrops"])[0])
    assert not vectors[1].any()
    assert encoder.known_words(Question("1", "WiFi drops")) == ["wifi", "drops"]


def test_a_folder_of_a_network_is_read_as_one(tmp_path: Path) -> None:
    synonym_model().save(tmp_path / "network")
    assert load_model(tmp_path / "network").dimensions == synonym_model().dimensions


def test_numbers_that_do_not_fit_are_refused() -> None:
    numbers = in_8_bits(in_float32(bundled_numbers()), bundled_numbers())
    origin = Manifest.of_origin("")
    for name, values in (
        ("places", numbers["places"][:3]),
        ("words", numbers["words"].astype(np.float32)),
        ("embedded_bias", np.full_like(numbers["embedded_bias"], np.nan)),
    ):
        with pytest.raises(DamagedModelError, match=name):
            AdaptedEncoder({**numbers, name: values}, origin)
    with pytest.raises(DamagedModelError, match="not those of the graph: more"):
        AdaptedEncoder({**numbers, "more": numbers["places"]}, origin)


def test_an_encoder_that_began_as_another_one_is_refused(tmp_path: Path, bundled: Path) -> None:
    adapted().save(tmp_path / "own")
    manifest = json.loads((bundled / "manifest.json").read_text())
    (bundled / "manifest.json").write_text(json.dumps({**manifest, "max_pieces": 16}))
    with pytest.raises(ModelVersionError, match="began as another encoder"):
        load_model(tmp_path / "own")


# -- training ------------------------------------------------------------------------------------------------------


def network_of(folder: Path) -> tuple[Any, Any]:
    from askalike.training.pieces import PieceNetwork

    words = WordPiece((folder / "vocabulary.txt").read_text(encoding="utf-8").splitlines())
    first, last = words.encode("", 32)
    return PieceNetwork(numbers_of(graph_of(folder)), (first, last), 32), words


def as_texts(words: WordPiece, texts: Sequence[str]) -> Any:
    from askalike.training.corpus import Texts

    ids = [np.array(words.encode(text, 32)[1:-1], np.int32) for text in texts]
    return Texts(np.concatenate(ids), np.concatenate([[0], np.cumsum([len(text) for text in ids])]))


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_torch_gives_the_vectors_of_the_runtime(bundled: Path, kind: Any) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from askalike.training.encoder import arithmetic

    network, words = network_of(bundled)
    sides = np.array([[row, -1] for row in range(len(TEXTS))])
    with arithmetic(kind):
        vectors = network.views(as_texts(words, TEXTS), sides).detach().numpy()
    assert vectors.dtype == np.float32
    cosines = np.einsum("nd,nd->n", vectors, GeneralEncoder(bundled, threads=1).encode_document(TEXTS))
    assert cosines.min() > 0.99


@pytest.mark.slow
def test_torch_gives_the_vectors_of_the_bundled_encoder() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    folder = general_folder()
    assert folder is not None
    texts = [
        "How do I stop the wifi from dropping every evening?",
        "My printer is offline after the router was replaced\nIt is connected by cable and the light is green.",
        "Can two routers share one network name?",
    ]
    network, words = network_of(folder)
    vectors = network.views(as_texts(words, texts), np.array([[row, -1] for row in range(3)])).detach().numpy()
    cosines = np.einsum("nd,nd->n", vectors, GeneralEncoder(folder, threads=1).encode_document(texts))
    assert cosines.mean() > 0.995


def test_two_texts_are_read_as_one_and_each_view_has_its_place(bundled: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    network, words = network_of(bundled)
    texts = as_texts(words, ["wifi", "drops the printer", "wifi drops the printer"])
    vectors = network.views(texts, np.array([[0, 1], [0, -1], [2, -1]])).detach().numpy()
    np.testing.assert_allclose(vectors[0], vectors[2], atol=1e-5)
    assert np.abs(vectors[0] - vectors[1]).max() > 0.01
    np.testing.assert_allclose(network.all_questions(as_texts(words, ["wifi", "drops"]))[0].shape, (16,))


def tiny_recipe(epochs: int = 3) -> Any:
    from askalike.training.recipe import Adaptation, ContrastiveOptions, LoopSettings, StageSettings

    options = ContrastiveOptions({"title-body": 1.0, "answers": 1.0, "marked": 1.0}, batch_size=4, temperature=0.1)
    loop = LoopSettings(epochs=epochs, patience=0, learning_rate=1e-2, schedule="linear", clip=1.0)
    return Adaptation((StageSettings("contrastive", options, loop, dropout=0.0),), "float32")


def tiny_data() -> Any:
    from askalike.training.corpus import TrainingData

    answers = [Answer("a", "1", "the wifi is offline"), Answer("b", "2", "is the printer offline ?")]
    return TrainingData(QUESTIONS, [("1", "3"), ("2", "4")], answers)


def test_training_makes_the_loss_smaller_and_the_same_training_the_same_weights(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from askalike.training.adaptation import adapt_encoder
    from askalike.training.encoder import TrainingRun
    from askalike.training.loop import read_log

    encoders = [adapt_encoder(tiny_recipe(), tiny_data(), TrainingRun(tmp_path / name)) for name in ("a", "b")]
    _assert_same(encoders[0], encoders[1])
    losses = [entry.value for entry in read_log(tmp_path / "a" / "log.csv") if entry.measure == "loss"]
    assert losses[-1] < losses[0]
    cosines = [encoder.encode(QUESTIONS)[0] @ encoder.encode(QUESTIONS)[2] for encoder in (encoders[0], adapted(1.0))]
    assert cosines[0] != pytest.approx(cosines[1], abs=1e-4)
    np.testing.assert_array_equal(encoders[0].numbers["words"], bundled_numbers()["words"])


def test_a_stopped_training_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from askalike.progress import SilentProgress
    from askalike.training.adaptation import adapt_encoder
    from askalike.training.encoder import TrainingRun

    class Stopped(SilentProgress):
        def start(self, phase: str, total: int, unit: str) -> None:
            if phase.endswith("epoch 2/3"):
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        adapt_encoder(tiny_recipe(), tiny_data(), TrainingRun(tmp_path / "a", progress=Stopped()))
    again = adapt_encoder(tiny_recipe(), tiny_data(), TrainingRun(tmp_path / "a"))
    _assert_same(again, adapt_encoder(tiny_recipe(), tiny_data(), TrainingRun(tmp_path / "b")))


def test_max_margin_brings_labelled_questions_nearer_and_keeps_the_best_epoch_on_dev(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from askalike.training.adaptation import adapt_encoder
    from askalike.training.encoder import TrainingRun
    from askalike.training.loop import read_log
    from askalike.training.recipe import Adaptation, LoopSettings, MaxMarginOptions, StageSettings

    options = MaxMarginOptions(batch_size=2, negatives=2, margin=0.5)
    loop = LoopSettings(epochs=3, patience=3, learning_rate=1e-2)
    recipe = Adaptation((StageSettings("max-margin", options, loop, dropout=0.0, first_epoch=1),))
    task = CandidateTask(QUESTIONS, queries=[0], candidates=[[1, 2]], labels=[[0, 1]])
    data = replace(tiny_data(), dev={"dev": task})
    encoder = adapt_encoder(recipe, data, TrainingRun(tmp_path / "a"))
    margins = [
        vectors[0] @ (vectors[2] - vectors[1])
        for vectors in (encoder.encode(QUESTIONS), adapted(1.0).encode(QUESTIONS))
    ]
    assert margins[0] > margins[1]
    measured = [entry.epoch for entry in read_log(tmp_path / "a" / "log.csv") if entry.measure == "mrr"]
    assert measured == [0, 1, 2, 3]


def _assert_same(first: AdaptedEncoder, second: AdaptedEncoder) -> None:
    for name, values in first.numbers.items():
        np.testing.assert_array_equal(values, second.numbers[name])


def test_questions_that_are_left_out_are_in_no_batch(bundled: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from dataclasses import replace

    from askalike.training.adaptation import texts_of
    from askalike.training.corpus import corpus_of
    from askalike.training.objectives import Contrastive

    network, words = network_of(bundled)
    data = replace(tiny_data(), held_out=["1"])
    corpus = corpus_of(data, texts_of(data, lambda text: words.encode(text, 32)[1:-1], lambda _: None), {})
    trained = Contrastive(network, corpus, tiny_recipe().stages[0].options)
    assert 0 not in np.concatenate(trained.batches(0, 0))[:, 4:]


def test_an_epoch_draws_at_most_so_many_of_all_batches(bundled: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from askalike.training.adaptation import texts_of
    from askalike.training.corpus import corpus_of
    from askalike.training.objectives import Contrastive

    network, words = network_of(bundled)
    data = tiny_data()
    corpus = corpus_of(data, texts_of(data, lambda text: words.encode(text, 32)[1:-1], lambda _: None), {})
    options = replace(tiny_recipe().stages[0].options, batch_size=2)
    whole = Contrastive(network, corpus, options).batches(0, 0)
    limited = [Contrastive(network, corpus, replace(options, max_batches=2)).batches(epoch, 0) for epoch in range(20)]
    assert len(whole) > 2
    assert {len(batches) for batches in limited} == {2}
    drawn = {tuple(row) for batches in limited for batch in batches for row in batch.tolist()}
    assert drawn == {tuple(row) for batch in whole for row in batch.tolist()}


def test_the_rank_of_an_own_body_by_hand() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from askalike.training.adaptation import left_out, own_bodies

    angles = {"wifi drops": 0, "the wireless is offline": 10, "printer offline": 80, "is the printer offline ?": 30}
    angles |= {"wireless drops": 20, "the wifi drops": 21, "the printer drops": 90, "offline printer": 85}

    def embed(texts: Sequence[str]) -> Any:
        degrees = np.radians([angles[text] for text in texts])
        return np.stack([np.cos(degrees), np.sin(degrees)], axis=1).astype(np.float32)

    report = own_bodies(QUESTIONS, embed)
    assert report.per_query["mrr"] == pytest.approx({"1": 1.0, "2": 1 / 2, "3": 1.0, "4": 1.0})
    assert left_out(QUESTIONS) == []
    assert len(left_out([*QUESTIONS, Question("5", "a", "b")])) == 1
