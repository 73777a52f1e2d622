"""Whitened states: a worked example, degenerate ones, and how a model keeps and gives them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from numpy.typing import NDArray
from tests.tiny_models import gated_model, synonym_model

from askalike.encode import model as model_module
from askalike.encode.layout import Layout
from askalike.encode.manifest import Manifest, digest
from askalike.encode.model import Model
from askalike.encode.whitening import LEAST_SHARE, Whitening
from askalike.errors import DamagedModelError, SettingError
from askalike.forum.states import ModelStates
from askalike.rank.query import Query
from askalike.types import Question

QUESTIONS = [
    Question("1", "printer offline", "the printer is offline again"),
    Question("2", "wifi drops", "the wifi drops and is offline"),
    Question("3", "is the printer wifi"),
]


def test_whitened_states_have_mean_zero_and_covariance_one() -> None:
    chance = np.random.default_rng(1)
    mixed = (chance.normal(size=(500, 5)) @ chance.normal(size=(5, 5)) + 7).astype(np.float32)
    found = Whitening.of(mixed).applied(mixed)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(found.T @ found / len(found), np.eye(5), atol=1e-3)
    assert found.dtype == np.float32


def test_directions_without_variance_are_not_blown_up() -> None:
    flat = np.zeros((50, 3), np.float32)
    flat[:, 0] = np.linspace(-1, 1, 50)
    made = Whitening.of(flat)
    largest = float(np.var(flat[:, 0]))
    assert np.abs(made.matrix).max() == pytest.approx(1 / np.sqrt(LEAST_SHARE * largest), rel=1e-3)
    same = np.full((4, 3), 2.5, np.float32)
    assert Whitening.of(same).applied(same).tolist() == np.zeros((4, 3)).tolist()


def test_states_that_are_all_nearly_alike_are_told_apart() -> None:
    """What an encoder in its first epochs gives: one large direction that every word has."""
    words = np.random.default_rng(2).normal(size=(400, 8)).astype(np.float32) * 0.1
    words[:, 0] += 5

    def mean_cosine(states: NDArray[np.float32]) -> float:
        unit = states / np.linalg.norm(states, axis=1, keepdims=True)
        return float(np.abs(unit @ unit.T).mean())

    assert mean_cosine(words) > 0.99
    assert mean_cosine(Whitening.of(words).applied(words)) < 0.4


def test_a_model_keeps_its_whitening(tmp_path: Path) -> None:
    plain = gated_model()
    assert plain.whitening is None
    made = plain.with_whitening(QUESTIONS)
    assert made.whitening is not None
    states = np.concatenate([one.states for one in plain.states(QUESTIONS)])
    np.testing.assert_allclose(made.whitening.matrix, Whitening.of(states).matrix)
    np.testing.assert_array_equal(made.encode(QUESTIONS), plain.encode(QUESTIONS))
    made.save(tmp_path / "model")
    read = Model.load(tmp_path / "model").whitening
    assert read is not None
    np.testing.assert_array_equal(read.mean, made.whitening.mean)
    np.testing.assert_array_equal(read.matrix, made.whitening.matrix)
    with pytest.raises(SettingError, match="no words"):
        plain.with_whitening([Question("1", "?!")])


def test_of_many_questions_evenly_spread_ones_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_module, "WHITENED", 2)
    read: list[str] = []
    states = Model.states

    def told(self: Model, questions: list[Question]) -> object:
        read.extend(one.id for one in questions)
        return states(self, questions)

    monkeypatch.setattr(Model, "states", told)
    gated_model().with_whitening([Question(str(number), "printer wifi") for number in range(5)])
    assert read == ["0", "2"]


def without(name: str) -> Callable[[dict[str, NDArray[np.generic]]], object]:
    return lambda arrays: arrays.pop(name)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (without("whitening.mean"), r"whitening.mean holds nothing, but expected finite float32 \(6,\)"),
        (without("whitening.matrix"), r"whitening.matrix holds nothing, but expected finite float32 \(6, 6\)"),
        (
            lambda arrays: arrays.update({"whitening.mean": np.zeros(5, np.float32)}),
            r"whitening.mean holds float32 \(5,\), but expected finite float32 \(6,\)",
        ),
        (
            lambda arrays: arrays.update({"whitening.matrix": np.full((6, 6), np.nan, np.float32)}),
            "whitening.matrix holds float32",
        ),
        (
            lambda arrays: arrays.update({"whitening.matrix": np.zeros((6, 6), np.float16)}),
            r"whitening.matrix holds float16 \(6, 6\)",
        ),
    ],
)
def test_a_damaged_whitening_is_refused(
    tmp_path: Path, damage: Callable[[dict[str, NDArray[np.generic]]], object], message: str
) -> None:
    gated_model().with_whitening(QUESTIONS).save(tmp_path / "model")
    layout = Layout(tmp_path / "model")
    arrays = safetensors.numpy.load_file(layout.weights)
    damage(arrays)
    written = safetensors.numpy.save(arrays)
    layout.weights.write_bytes(written)
    manifest = Manifest.from_bytes(layout.manifest.read_bytes())
    files = {**manifest.files, layout.weights.name: digest(written)}
    layout.manifest.write_bytes(replace(manifest, files=files).to_bytes())
    with pytest.raises(DamagedModelError, match=message):
        Model.load(tmp_path / "model")


def test_states_are_given_whitened_where_the_model_knows_how() -> None:
    counted = synonym_model()
    query = Query("wifi drops printer", "", "plain")
    (plain,) = ModelStates(counted).of_questions([(1, Question("1", query.title))])
    np.testing.assert_array_equal(ModelStates(counted, is_whitened=True).of_query(query).states, plain.states)
    learned = counted.with_whitening([Question("1", "wifi drops"), Question("2", "printer silent")])
    assert learned.whitening is not None
    for found in (
        ModelStates(learned, is_whitened=True).of_query(query),
        *ModelStates(learned, is_whitened=True).of_questions([(1, Question("1", query.title))]),
    ):
        assert found.words == plain.words
        np.testing.assert_allclose(found.states, learned.whitening.applied(plain.states), atol=1e-6)
    np.testing.assert_array_equal(ModelStates(learned).of_query(query).states, plain.states)
