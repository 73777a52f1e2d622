"""Whitened states: a worked example, degenerate ones, and states that are changed on their way to a matcher."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tiny_models import synonym_model

from askalike.papers.zhang2018 import autoencoders as module
from askalike.papers.zhang2018.autoencoders import LEAST_SHARE, TransformedStates, Whitening
from askalike.papers.zhang2018.ramn import ModelStates
from askalike.types import Question


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


def test_of_many_texts_evenly_spread_ones_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    states = ModelStates(synonym_model())
    texts = [
        Question(str(number), title) for number, title in enumerate(("wifi drops", "?!", "printer silent", "lost"))
    ]
    found = Whitening.of_texts(states, texts)
    read = np.concatenate([text.states for text in states.states([texts[0], texts[2], texts[3]])])
    np.testing.assert_allclose(found.mean, read.mean(axis=0), atol=1e-6)
    monkeypatch.setattr(module, "WHITENED", 2)
    fewer = Whitening.of_texts(states, texts)
    np.testing.assert_allclose(fewer.mean, np.concatenate([read[:2], read[2:4]]).mean(axis=0), atol=1e-6)


def test_the_words_stay_and_their_states_are_changed() -> None:
    states, question = ModelStates(synonym_model()), Question("1", "wifi drops printer")
    doubled = TransformedStates(states, lambda own: 2 * own)
    (before,), (after,) = states.states([question]), doubled.states([question])
    assert after.words == before.words
    np.testing.assert_array_equal(after.states, 2 * before.states)
    assert doubled.frequencies(["printer"]).tolist() == states.frequencies(["printer"]).tolist()
