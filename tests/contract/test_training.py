"""One table of encoders and objectives, and the laws of training that hold for every one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tiny_training import recipe, stage, tiny_data

from askalike.errors import SettingError
from askalike.models.encoders.model import Model
from askalike.training.loop import read_log
from askalike.training.recipe import LoopSettings
from askalike.types import Question

torch = pytest.importorskip("torch", reason="training needs torch, which is not installed")

from askalike.training import encoder as encoder_module  # noqa: E402
from askalike.training.encoder import TrainingRun, train_encoder  # noqa: E402
from askalike.training.objectives import TextNetwork  # noqa: E402

ENCODERS: dict[str, dict[str, Any]] = {
    "rcnn": {"kind": "rcnn"},
    "rcnn, scalar gate, mean": {"kind": "rcnn", "gate": "scalar", "pooling": "mean"},
    "rcnn, fixed, normalised mean": {"kind": "rcnn", "gate": "fixed", "pooling": "normalised-mean"},
    "rcnn, constant decay": {"kind": "rcnn", "gate": "constant", "pooling": "normalised-last"},
    "rcnn, no gate, order 3, max": {"kind": "rcnn", "gate": "none", "order": 3, "pooling": "max"},
    "lstm": {"kind": "lstm"},
    "lstm, max": {"kind": "lstm", "pooling": "max"},
    "gru, mean": {"kind": "gru", "pooling": "mean"},
    "gru of two layers, mean": {"kind": "gru", "pooling": "mean", "layers": 2},
    "attention of two layers, mean": {"kind": "attention", "pooling": "mean", "layers": 2},
    "cnn": {"kind": "cnn"},
    "cnn of width 3, normalised mean": {"kind": "cnn", "order": 3, "pooling": "normalised-mean"},
}
KINDS = {"rcnn": "last", "lstm": "mean", "gru": "max", "cnn": "normalised-mean", "attention": "mean"}
OBJECTIVES = {
    "decoding": ("rcnn", "lstm", "gru"),
    "max-margin": tuple(KINDS),
    "contrastive": tuple(KINDS),
    "reconstruction": ("gru", "attention"),
}
"""Objective → the kinds of encoder that it can train."""
PAIRS = [(kind, name) for name, kinds in OBJECTIVES.items() for kind in kinds]
EACH = [(kinds[0], name) for name, kinds in OBJECTIVES.items()]
REFUSED = [(kind, name) for name, kinds in OBJECTIVES.items() for kind in KINDS if kind not in kinds]


def contents(model: Model, folder: Path) -> dict[str, bytes]:
    model.save(folder)
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_the_loss_falls(tmp_path: Path, kind: str, name: str) -> None:
    loop = LoopSettings(epochs=4, patience=0, learning_rate=0.03)
    chosen = recipe(stage(name, loop, dropout=0.0), kind=kind, pooling=KINDS[kind], is_trained=True)
    train_encoder(chosen, tiny_data(), TrainingRun(tmp_path))
    losses = [row.value for row in read_log(tmp_path / "log.csv") if row.measure == "loss"]
    assert len(losses) == 4
    assert losses[-1] < 0.85 * losses[0]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("rcnn", "decoding"),
        ("rcnn", "contrastive"),
        ("lstm", "max-margin"),
        ("gru", "decoding"),
        ("gru", "reconstruction"),
        ("attention", "reconstruction"),
    ],
)
def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, kind: str, name: str) -> None:
    chosen = recipe(stage(name, dropout=0.3), kind=kind, is_trained=True)
    models = []
    for number, seed in enumerate((5, 5, 6)):
        torch.manual_seed(number)
        model = train_encoder(chosen, tiny_data(), TrainingRun(tmp_path / f"work{number}", seed))
        models.append(contents(model, tmp_path / f"model{number}"))
    assert models[0] == models[1]
    assert models[0]["weights.safetensors"] != models[2]["weights.safetensors"]


@pytest.mark.parametrize("reads", ["title and body", "title", "joined"])
@pytest.mark.parametrize("name", ENCODERS)
def test_the_model_gives_the_vectors_of_the_network(
    tmp_path: Path, name: str, reads: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    networks: list[TextNetwork] = []

    class Kept(TextNetwork):
        def __init__(self, *arguments: Any, **chosen: Any) -> None:
            super().__init__(*arguments, **chosen)
            networks.append(self)

    monkeypatch.setattr(encoder_module, "TextNetwork", Kept)
    data = tiny_data()
    loop = LoopSettings(epochs=1, patience=0, learning_rate=0.01)
    chosen = recipe(
        stage("max-margin", loop, dropout=0.2), reads=reads, is_trained=True, word_limit=4, **ENCODERS[name]
    )
    questions = [*data.dev["tiny"].questions, Question("unseen", "how unseen words", "<p>t0a</p>", "html")]
    model = train_encoder(chosen, data, TrainingRun(tmp_path))
    texts = model_texts(model, questions)
    expected = networks[0].all_questions(texts)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(model.encode(questions), expected, atol=1e-5)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(Model.load(tmp_path / "model").encode(questions), model.encode(questions))


def model_texts(model: Model, questions: list[Question]) -> Any:
    from askalike.training.corpus import WordList, _question_words

    reader = encoder_module.QuestionReader(model.settings.reads, model.settings.word_limit, model.settings.stems)
    return WordList(_question_words(questions, reader)).over(model.vocabulary)


def test_the_dev_scores_are_those_of_the_vectors(tmp_path: Path) -> None:
    data = tiny_data()
    model = train_encoder(recipe(stage("contrastive")), data, TrainingRun(tmp_path))
    vectors = model.encode(data.dev["tiny"].questions)
    assert model.origin.dev_scores["tiny mrr"] == pytest.approx(data.dev["tiny"].mrr(vectors))
    assert model.origin.dev_scores["map"] == pytest.approx(data.dev["tiny"].map(vectors))
    assert model.origin.training_data == data.digest()


@pytest.mark.parametrize(("kind", "name"), EACH)
def test_fixed_words_stay_and_learned_ones_move(tmp_path: Path, kind: str, name: str) -> None:
    first = train_encoder(recipe(stage(name), kind=kind), tiny_data(), TrainingRun(tmp_path / "a"))
    fixed = train_encoder(recipe(stage(name), stage(name), kind=kind), tiny_data(), TrainingRun(tmp_path / "b"))
    moved = train_encoder(recipe(stage(name), kind=kind, is_trained=True), tiny_data(), TrainingRun(tmp_path / "c"))
    assert np.array_equal(first.embedding(), fixed.embedding())
    assert not np.array_equal(first.embedding()[1:], moved.embedding()[1:])


@pytest.mark.parametrize(("kind", "name"), EACH)
def test_unknown_words_that_are_zero_stay_zero(tmp_path: Path, kind: str, name: str) -> None:
    chosen = recipe(stage(name), kind=kind, is_trained=True, unknown="zero", min_count=9)
    model = train_encoder(chosen, tiny_data(), TrainingRun(tmp_path))
    assert not model.embedding()[0].any()
    vector = train_encoder(
        recipe(stage(name), kind=kind, is_trained=True, min_count=9), tiny_data(), TrainingRun(tmp_path / "v")
    )
    assert vector.embedding()[0].any()


@pytest.mark.parametrize(("kind", "name"), REFUSED)
def test_an_encoder_that_an_objective_cannot_train_is_refused(tmp_path: Path, kind: str, name: str) -> None:
    with pytest.raises(
        SettingError, match=rf"\b{kind} has no (state to start a decoder from|decoder that writes texts)"
    ):
        train_encoder(recipe(stage(name), kind=kind), tiny_data(), TrainingRun(tmp_path))
