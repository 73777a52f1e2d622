"""The NumPy runtime against examples worked by hand and a plain loop in float64, for every kind of encoder."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.naive_encoders import NAIVE, Vector, naive_pooled, rows

from askalike.errors import SettingError
from askalike.models.encoders.runtime import Runtime, by_length
from askalike.models.encoders.settings import POOLINGS, EncoderConfig

CONFIGS = [
    *[
        EncoderConfig("rcnn", 5, 7, order, gate)
        for order in (1, 2, 3)
        for gate in ("vector", "scalar", "fixed", "constant", "none")
    ],
    EncoderConfig("rcnn", 5, 7, gate="fixed", decay=0.0),
    EncoderConfig("lstm", 5, 7),
    *[EncoderConfig("gru", 5, 7, layers=layers) for layers in (1, 2, 3)],
    *[EncoderConfig("cnn", 5, 7, order) for order in (1, 2, 3, 4)],
    *[EncoderConfig("attention", 7, 7, layers=layers) for layers in (1, 2, 3)],
]
NAMES = [
    f"{c.kind}-{c.order}-{c.gate}-{c.decay}" if c.kind == "rcnn" else f"{c.kind}-{c.order}-{c.layers}" for c in CONFIGS
]
every_kind = pytest.mark.parametrize("config", CONFIGS, ids=NAMES)
LENGTHS = np.array([3, 0, 6, 1, 6, 4])


def with_pooling(config: EncoderConfig, pooling: str) -> EncoderConfig:
    return EncoderConfig.from_json({**config.to_json(), "pooling": pooling})


def random_arrays(config: EncoderConfig, seed: int = 0) -> dict[str, NDArray[np.float32]]:
    chance = np.random.default_rng(seed)
    return {name: chance.normal(0, 0.6, shape).astype(np.float32) for name, shape in config.shapes().items()}


def random_inputs(config: EncoderConfig, lengths: NDArray[np.integer], seed: int = 1) -> NDArray[np.float32]:
    chance = np.random.default_rng(seed)
    return chance.normal(0, 1, (int(lengths.max(initial=0)), len(lengths), config.input_size)).astype(np.float32)


# --- worked by hand --------------------------------------------------------------------------------------------------


def only_state(config: EncoderConfig, arrays: Mapping[str, object], words: list[float]) -> Vector:
    runtime = Runtime(config, {name: np.array(values) for name, values in arrays.items()})
    states = runtime.states(*rows(np.array(words).reshape(-1, 1, 1)), np.array([len(words)]))
    return [float(state[0, 0]) for state in states]


def test_a_constant_decay_worked_by_hand() -> None:
    config = EncoderConfig("rcnn", 1, 1, gate="constant", decay=0.5)
    arrays = {"input": [[1.0], [10.0]], "output_bias": [0.1]}
    found = only_state(config, arrays, [0.01, 0.02, 0.03, 0.04])
    second = 0.01 + 0.2
    third = (0.02 + 0.3) + (0.01 + 0.3) / 2
    fourth = (0.03 + 0.4) + (0.02 + 0.4) / 2 + (0.01 + 0.4) / 4
    assert found == pytest.approx([math.tanh(c + 0.1) for c in (0, second, third, fourth)])


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


def test_a_cnn_of_width_two_worked_by_hand() -> None:
    # W = 0.5 for the word before and 2 for the word, b = 1; words 0.5 and -0.25: 2/2 + 1, then 1/4 - 2/4 + 1
    arrays = {"weight": [[0.5, 2.0]], "bias": [1.0]}
    found = only_state(EncoderConfig("cnn", 1, 1, order=2), arrays, [0.5, -0.25])
    assert found == pytest.approx([math.tanh(2), math.tanh(0.75)], abs=1e-6)


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
    found = only_state(config, {"weight": [[1.0, 2.0, 4.0]], "bias": [0.5]}, [1, -1, 0.5, 0.25])
    assert found == pytest.approx([math.tanh(value) for value in sums], abs=1e-6)


# --- against the plain loop ------------------------------------------------------------------------------------------


@every_kind
def test_states_and_gates_are_those_of_a_plain_loop(config: EncoderConfig) -> None:
    arrays, inputs = random_arrays(config), random_inputs(config, LENGTHS)
    runtime = Runtime(config, arrays)
    states, gates = runtime.states(*rows(inputs), LENGTHS), runtime.gates(*rows(inputs), LENGTHS)
    assert states.shape == (6, 6, 7)
    assert gates.shape == (6, 6, config.gate_size)
    assert states.dtype == gates.dtype == np.float32
    for row, length in enumerate(LENGTHS):
        expected, expected_gates = NAIVE[config.kind](config, arrays, inputs[:length, row].tolist())
        np.testing.assert_allclose(states[:length, row].tolist(), expected, atol=1e-5, rtol=0)
        assert not states[length:, row].any()
        if config.gate_size and length:
            np.testing.assert_allclose(gates[:length, row], expected_gates, atol=1e-5, rtol=0)
        assert not gates[length:, row].any()


@pytest.mark.parametrize("pooling", POOLINGS)
@every_kind
def test_pooled_vectors_are_those_of_a_plain_loop(config: EncoderConfig, pooling: str) -> None:
    config = with_pooling(config, pooling)
    arrays, inputs = random_arrays(config), random_inputs(config, LENGTHS)
    pooled = Runtime(config, arrays).pooled(*rows(inputs), LENGTHS)
    assert pooled.shape == (6, 7)
    assert pooled.dtype == np.float32
    for row, length in enumerate(LENGTHS):
        states, _ = NAIVE[config.kind](config, arrays, inputs[:length, row].tolist())
        np.testing.assert_allclose(pooled[row], naive_pooled(pooling, states, 7), atol=1e-5, rtol=0)


@pytest.mark.parametrize("pooling", POOLINGS)
@every_kind
def test_words_taken_from_a_table_give_the_vectors_of_their_inputs(config: EncoderConfig, pooling: str) -> None:
    runtime = Runtime(with_pooling(config, pooling), random_arrays(config))
    chance = np.random.default_rng(2)
    table = chance.normal(0, 1, (9, config.input_size)).astype(np.float32)
    places = chance.integers(0, 9, (6, len(LENGTHS)))
    found = runtime.pooled(table, places, LENGTHS)
    np.testing.assert_allclose(found, runtime.pooled(*rows(table[places]), LENGTHS), atol=1e-6, rtol=0)


# --- laws ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pooling", POOLINGS)
@every_kind
def test_padding_does_not_change_a_vector(config: EncoderConfig, pooling: str) -> None:
    runtime = Runtime(with_pooling(config, pooling), random_arrays(config))
    inputs = random_inputs(config, LENGTHS)
    padded = np.full((9, *inputs.shape[1:]), np.nan, dtype=np.float32)
    for row, length in enumerate(LENGTHS):
        padded[:length, row] = inputs[:length, row]
    np.testing.assert_array_equal(runtime.pooled(*rows(padded), LENGTHS), runtime.pooled(*rows(inputs), LENGTHS))


@pytest.mark.parametrize("pooling", POOLINGS)
@every_kind
def test_a_batch_gives_what_its_texts_give_one_by_one_in_any_order(config: EncoderConfig, pooling: str) -> None:
    runtime = Runtime(with_pooling(config, pooling), random_arrays(config))
    inputs = random_inputs(config, LENGTHS)
    together = runtime.pooled(*rows(inputs), LENGTHS)
    alone = [runtime.pooled(*rows(inputs[:, [row]]), LENGTHS[[row]])[0] for row in range(len(LENGTHS))]
    np.testing.assert_allclose(together, alone, atol=1e-6, rtol=0)
    order = np.random.default_rng(3).permutation(len(LENGTHS))
    shuffled = runtime.pooled(*rows(inputs[:, order]), LENGTHS[order])
    np.testing.assert_allclose(shuffled, together[order], atol=1e-6, rtol=0)


@every_kind
def test_the_inputs_are_left_as_they_were(config: EncoderConfig) -> None:
    arrays, inputs = random_arrays(config), random_inputs(config, LENGTHS)
    before = {name: array.copy() for name, array in arrays.items()}
    kept = inputs.copy()
    runtime = Runtime(config, arrays)
    runtime.pooled(*rows(inputs), LENGTHS)
    places = np.zeros((6, len(LENGTHS)), dtype=np.intp)
    runtime.pooled(inputs[0], places, LENGTHS)
    np.testing.assert_array_equal(inputs, kept)
    assert all(np.array_equal(arrays[name], before[name]) for name in before)


@pytest.mark.parametrize("pooling", POOLINGS)
@every_kind
def test_texts_without_words_and_a_batch_without_texts(config: EncoderConfig, pooling: str) -> None:
    runtime = Runtime(with_pooling(config, pooling), random_arrays(config))
    empty, d_in = np.zeros(2, dtype=np.intp), config.input_size
    assert not runtime.pooled(*rows(np.ones((4, 2, d_in), dtype=np.float32)), empty).any()
    assert not runtime.pooled(*rows(np.ones((0, 2, d_in), dtype=np.float32)), empty).any()
    assert runtime.pooled(*rows(np.ones((4, 0, d_in), dtype=np.float32)), empty[:0]).shape == (0, 7)
    assert runtime.pooled(np.ones((1, d_in), np.float32), np.zeros((0, 0), np.intp), empty[:0]).shape == (0, 7)
    assert runtime.states(*rows(np.ones((4, 0, d_in), dtype=np.float32)), empty[:0]).shape == (4, 0, 7)


def test_an_rcnn_without_a_gate_is_a_cnn() -> None:
    rcnn, cnn = EncoderConfig("rcnn", 5, 7, 3, "none"), EncoderConfig("cnn", 5, 7, 3)
    arrays = random_arrays(cnn)
    stacked = arrays["weight"].reshape(7, 3, 5).transpose(1, 0, 2).reshape(21, 5)
    inputs = random_inputs(cnn, LENGTHS)
    same = Runtime(rcnn, {"input": stacked, "output_bias": arrays["bias"]}).states(*rows(inputs), LENGTHS)
    np.testing.assert_allclose(same, Runtime(cnn, arrays).states(*rows(inputs), LENGTHS), atol=1e-6, rtol=0)


def test_many_texts_have_the_states_of_a_plain_loop() -> None:
    config = EncoderConfig("rcnn", 5, 7)
    lengths = np.random.default_rng(4).integers(0, 40, 300)
    arrays, inputs = random_arrays(config), random_inputs(config, lengths)
    states = Runtime(config, arrays).states(*rows(inputs), lengths)
    row = int(np.argmax(lengths))
    expected, _ = NAIVE["rcnn"](config, arrays, inputs[: lengths[row], row].tolist())
    np.testing.assert_allclose(states[: lengths[row], row], expected, atol=1e-5, rtol=0)


def test_a_packing_takes_the_longest_first_and_narrows() -> None:
    packing = by_length(LENGTHS)
    assert packing.order.tolist() == [2, 4, 5, 0, 3, 1]
    assert packing.counts == (5, 4, 4, 3, 2, 2)
    assert by_length(np.zeros(3, dtype=np.intp)).counts == ()


@every_kind
def test_parameters_that_do_not_fit_the_config_are_refused(config: EncoderConfig) -> None:
    arrays = random_arrays(config)
    name = next(iter(arrays))
    for wrong in ({**arrays, name: arrays[name][1:]}, {**arrays, "more": arrays[name]}, {}):
        with pytest.raises(SettingError, match="but expected"):
            Runtime(config, wrong)
