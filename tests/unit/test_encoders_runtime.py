"""What runs encoders, against examples worked by hand and a plain loop in float64."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.naive_encoders import NAIVE, Vector, naive_pooled
from tests.pairwise import pairwise

from askalike.errors import MissingExtraError, SettingError
from askalike.models.encoders.model import runtime_of
from askalike.models.encoders.settings import GATES, POOLINGS, STACKED, EncoderConfig

KINDS = [
    *[{"kind": "rcnn", "gate": gate} for gate in GATES],
    {"kind": "rcnn", "gate": "fixed", "decay": 0.0},
    {"kind": "lstm"},
    {"kind": "gru"},
    {"kind": "cnn"},
    {"kind": "attention"},
]
LENGTHS = {
    "of all lengths": [3, 0, 6, 1, 6, 4],
    "of one length": [5, 5, 5],
    "one alone": [7],
    "many": np.random.default_rng(4).integers(0, 30, 60).tolist(),
}


def config_of(kind: Mapping[str, Any], depth: int, pooling: str) -> EncoderConfig:
    """Return an encoder of so many words a filter or layers, as far as its kind has any."""
    layers = depth if kind["kind"] in STACKED else 1
    size = 7 if kind["kind"] == "attention" else 5
    return EncoderConfig(
        **{**kind, "input_size": size, "hidden_size": 7, "order": depth, "layers": layers, "pooling": pooling}
    )


CASES = [
    pytest.param(config_of(kind, depth, pooling), np.array(LENGTHS[texts]), id=f"{kind} {depth} {pooling}, {texts}")
    for kind, depth, pooling, texts in pairwise(KINDS, (1, 2, 3), POOLINGS, list(LENGTHS))
]
everywhere = pytest.mark.parametrize(("config", "lengths"), CASES)


def random_arrays(config: EncoderConfig, seed: int = 0) -> dict[str, NDArray[np.float32]]:
    chance = np.random.default_rng(seed)
    return {name: chance.normal(0, 0.6, shape).astype(np.float32) for name, shape in config.shapes().items()}


def random_texts(config: EncoderConfig, lengths: NDArray[np.integer]) -> list[NDArray[np.float32]]:
    chance = np.random.default_rng(1)
    return [chance.normal(0, 1, (length, config.input_size)).astype(np.float32) for length in lengths]


# --- worked by hand --------------------------------------------------------------------------------------------------


def only_state(config: EncoderConfig, arrays: Mapping[str, object], words: list[float]) -> Vector:
    runtime = runtime_of(config, {name: np.array(values) for name, values in arrays.items()})
    states = runtime.states(np.array(words, dtype=np.float32)[:, None], np.array([len(words)]))
    return [float(state[0]) for state in states]


def test_a_constant_decay_worked_by_hand() -> None:
    config = EncoderConfig("rcnn", 1, 1, gate="constant", decay=0.5)
    arrays = {"input": [[1.0], [10.0]], "output_bias": [0.1]}
    outputs = only_state(config, arrays, [0.01, 0.02, 0.03, 0.04])
    second = 0.01 + 0.2
    third = (0.02 + 0.3) + (0.01 + 0.3) / 2
    fourth = (0.03 + 0.4) + (0.02 + 0.4) / 2 + (0.01 + 0.4) / 4
    assert outputs == pytest.approx([math.tanh(c + 0.1) for c in (0, second, third, fourth)])


def test_a_fixed_gate_is_not_the_constant_decay() -> None:
    arrays = {"input": [[1.0], [10.0]], "output_bias": [0.0]}
    words = [0.01, 0.02, 0.03]
    fixed = only_state(EncoderConfig("rcnn", 1, 1, gate="fixed", decay=0.5), arrays, words)
    second = 0.5 * (0.01 * 0.5 + 0.2) + 0.25 * 0.1  # c2 = λ c2 + (1 - λ)(c1 before + W_2 x), and the first word too
    assert fixed[:2] == pytest.approx([math.tanh(0.05), math.tanh(second)])


def test_an_rcnn_of_order_two_worked_by_hand() -> None:
    # W_1 = 2, W_2 = 4, W^λ = 0, U^λ = 0, b^λ = ln 3 so that λ = 3/4 always; b = 1/10; words 1 and 2
    config = EncoderConfig("rcnn", 1, 1, order=2)
    arrays = {"input": [[2.0], [4.0], [0.0]], "recurrent": [[0.0]], "gate_bias": [math.log(3)], "output_bias": [0.1]}
    # c¹: 0.25·2 = 0.5, then 0.75·0.5 + 0.25·4;  c²: 0.25·4 = 1, then 0.75·1 + 0.25·(0.5 + 8) = 2.875
    assert only_state(config, arrays, [1, 2]) == pytest.approx([math.tanh(1.1), math.tanh(2.975)], abs=1e-6)


def test_an_rcnns_gate_sees_the_word_and_the_state_before() -> None:
    # W_1 = 1, W^λ = 1, U^λ = -2, b^λ = 0.5, b = 0; words 0.5 and -1
    config = EncoderConfig("rcnn", 1, 1, order=1)
    arrays = {"input": [[1.0], [1.0]], "recurrent": [[-2.0]], "gate_bias": [0.5], "output_bias": [0.0]}
    # λ_1 = σ(1) = 0.731059, c = 0.268941·0.5 = 0.134471, h = 0.133666
    # λ_2 = σ(-1 - 0.267332 + 0.5) = σ(-0.767332) = 0.317057, c = 0.317057·0.134471 - 0.682943 = -0.640309
    assert only_state(config, arrays, [0.5, -1]) == pytest.approx([0.133666, math.tanh(-0.640309)], abs=2e-6)


def test_an_lstm_worked_by_hand() -> None:
    # input weights i, f, g, o = 0, 0, 1, 0; recurrent 0, 0, 1, 0; biases make i = σ(0) = 1/2, f = 3/4, o = 3/4
    config = EncoderConfig("lstm", 1, 1)
    arrays = {
        "weight_ih": [[0.0], [0.0], [1.0], [0.0]],
        "weight_hh": [[0.0], [0.0], [1.0], [0.0]],
        "bias_ih": [0.0, math.log(3), 0.0, 1.0],
        "bias_hh": [0.0, 0.0, 0.0, math.log(3) - 1],
    }
    # c_1 = tanh(1)/2 = 0.380797, h_1 = 0.75·0.363399 = 0.272550
    # c_2 = 0.75·0.380797 + tanh(-0.5 + 0.272550)/2 = 0.285598 - 0.111804 = 0.173794, h_2 = 0.75·0.172065 = 0.129049
    assert only_state(config, arrays, [1, -0.5]) == pytest.approx([0.272550, 0.129049], abs=3e-6)


def test_a_gru_worked_by_hand() -> None:
    # r = σ(0) = 1/2, z = 3/4 always; n = tanh(x + r·(2h + 1))
    config = EncoderConfig("gru", 1, 1)
    arrays = {
        "weight_ih": [[0.0], [0.0], [1.0]],
        "weight_hh": [[0.0], [0.0], [2.0]],
        "bias_ih": [0.0, math.log(3), 0.0],
        "bias_hh": [0.0, 0.0, 1.0],
    }
    # h_1 = tanh(0.5 + 0.5)/4 = 0.190399;  h_2 = 0.75·0.190399 + tanh(-1 + 0.190399 + 0.5)/4 = 0.142799 - 0.075019
    assert only_state(config, arrays, [0.5, -1]) == pytest.approx([0.190399, 0.067780], abs=3e-6)


def test_a_cnn_of_width_three_has_the_oldest_word_first_and_zeros_before_the_text() -> None:
    config = EncoderConfig("cnn", 1, 1, order=3)
    sums = [4.5, 0.5 + 2 * 1 + 4 * -1, 0.5 + 1 * 1 + 2 * -1 + 4 * 0.5, 0.5 + 1 * -1 + 2 * 0.5 + 4 * 0.25]
    outputs = only_state(config, {"weight": [[1.0, 2.0, 4.0]], "bias": [0.5]}, [1, -1, 0.5, 0.25])
    assert outputs == pytest.approx([math.tanh(value) for value in sums], abs=1e-6)


# --- against the plain loop ------------------------------------------------------------------------------------------


@everywhere
def test_states_and_vectors_are_those_of_a_plain_loop(config: EncoderConfig, lengths: NDArray[np.intp]) -> None:
    arrays, texts = random_arrays(config), random_texts(config, lengths)
    runtime, words = runtime_of(config, arrays), np.concatenate(texts)
    pooled = runtime.pooled(words, lengths)
    states = np.split(runtime.states(words, lengths), np.cumsum(lengths)[:-1])
    assert states[0].dtype == pooled.dtype == np.float32
    for text, own, vector in list(zip(texts, states, pooled, strict=True))[:8]:
        expected, _ = NAIVE[config.kind](config, arrays, text.tolist())
        assert own.shape == (len(text), 7)
        np.testing.assert_allclose(own, np.reshape(expected, (-1, 7)), atol=1e-5, rtol=0)
        np.testing.assert_allclose(vector, naive_pooled(config.pooling, expected, 7), atol=1e-5, rtol=0)


# --- laws ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_texts_may_lack(kind: Mapping[str, Any]) -> None:
    config = config_of(kind, 2, "mean")
    runtime, none = runtime_of(config, random_arrays(config)), np.zeros((0, config.input_size), np.float32)
    empty = np.zeros(2, dtype=np.intp)
    assert not runtime.pooled(none, empty).any()
    assert runtime.pooled(none, empty[:0]).shape == (0, 7)
    assert runtime.states(none, empty).shape == (0, 7)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_parameters_that_do_not_fit_the_config_are_refused(kind: Mapping[str, Any]) -> None:
    config = config_of(kind, 1, "last")
    arrays = random_arrays(config)
    name = next(iter(arrays))
    for wrong in ({**arrays, name: arrays[name][1:]}, {**arrays, "more": arrays[name]}, {}):
        with pytest.raises(SettingError, match="but expected"):
            runtime_of(config, wrong)


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "askalike.models.encoders.networks.encoder", None)
    config = EncoderConfig("gru", 1, 1)
    with pytest.raises(MissingExtraError, match="gru encoders run in torch"):
        runtime_of(config, random_arrays(config))
