"""What single networks promise: agreement with each other and with torch, first values, refused arrays."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest

from askalike.errors import SettingError
from askalike.models.encoders.settings import EncoderConfig

torch = pytest.importorskip("torch", reason="the encoders are trained with torch, which is not installed")

from tests.padded import pack, pooled, states  # noqa: E402

from askalike.models.encoders.networks.encoder import build, from_arrays, to_arrays  # noqa: E402
from askalike.models.encoders.networks.packing import Packing  # noqa: E402
from askalike.models.encoders.networks.recurrent import project  # noqa: E402


def texts(input_size: int = 3) -> tuple[Any, Any]:
    return torch.randn(6, 4, input_size, generator=torch.Generator().manual_seed(5)), torch.tensor([6, 2, 0, 6])


recurrent = pytest.mark.parametrize(("kind", "layers"), [("lstm", 1), ("gru", 1), ("gru", 2), ("gru", 3)])


@recurrent
def test_lstm_and_gru_are_those_of_torch(kind: Any, layers: int) -> None:
    encoder, (inputs, lengths) = build(EncoderConfig(kind, 3, 5, layers=layers), seed=2), texts()
    core = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[kind](3, 5, layers)
    arrays, names = to_arrays(encoder), ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    numbers = ["", *(f"_{layer}" for layer in range(2, layers + 1))]
    core.load_state_dict(
        {f"{name}_l{i}": torch.from_numpy(arrays[name + number]) for i, number in enumerate(numbers) for name in names}
    )
    expected = core(inputs)[0]
    torch.testing.assert_close(states(encoder, inputs, lengths)[:, 0], expected[:, 0])
    torch.testing.assert_close(pooled(encoder, inputs, lengths)[1], expected[1, 1])
    slopes = torch.randn(6, 5)
    own = torch.autograd.grad(states(encoder, inputs, lengths)[:, 0], list(encoder.parameters()), slopes)
    torch.testing.assert_close(own, torch.autograd.grad(expected[:, 0], list(core.parameters()), slopes))


@pytest.mark.parametrize(
    ("config", "parts"),
    [
        (EncoderConfig("lstm", 3, 5), 2),
        (EncoderConfig("gru", 3, 5, layers=2), 2),
        (EncoderConfig("rcnn", 3, 5, order=3), 4),
        (EncoderConfig("rcnn", 3, 5, gate="fixed"), 3),
    ],
    ids=str,
)
def test_a_run_goes_on_from_what_another_left(config: EncoderConfig, parts: int) -> None:
    encoder, (inputs, _) = build(config, seed=2), texts()
    first = Packing.of(torch.tensor([4, 2, 0, 4]))
    before, carry = encoder.go_on(pack(inputs[:4], first), first)
    assert carry.shape == (4, parts, 5)
    assert not carry[2].any()
    second, whole = Packing.of(torch.tensor([2, 0, 0, 2])), Packing.of(torch.tensor([6, 2, 0, 6]))
    further, last = encoder.go_on(pack(inputs[4:], second), second, carry)
    expected, carry_of_whole = encoder.go_on(pack(inputs, whole), whole)
    torch.testing.assert_close(torch.cat([before, further]), expected)
    torch.testing.assert_close(last[[0, 3]], carry_of_whole[[0, 3]])
    torch.testing.assert_close(carry_of_whole[1], carry[1])


def test_a_round_number_of_rows_does_not_change_a_product() -> None:
    words, weight, bias = torch.randn(33, 3), torch.randn(5, 3), torch.randn(5)
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        rounded = project(words, weight, bias)
    finally:
        torch.set_float32_matmul_precision(before)
    torch.testing.assert_close(rounded, words @ weight.T + bias, rtol=0.05, atol=0.05)


@pytest.mark.parametrize(
    "config",
    [EncoderConfig("cnn", 3, 5), EncoderConfig("attention", 3, 3), EncoderConfig("rcnn", 3, 5, gate="constant")],
)
def test_a_network_without_a_state_says_so_when_a_run_is_to_go_on(config: EncoderConfig) -> None:
    packing = Packing.of(torch.tensor([2]))
    with pytest.raises(SettingError, match=f"kind {config.kind} and gate {config.gate} keeps no state"):
        build(config).go_on(torch.ones(2, 3), packing)


@pytest.mark.parametrize("gate", ["vector", "scalar"])
def test_a_closed_gate_lets_no_word_in(gate: Any) -> None:
    inputs, lengths = texts()
    config = EncoderConfig("rcnn", 3, 5, gate=gate)
    closed = from_arrays(config, to_arrays(build(config)) | {"gate_bias": np.full(config.gate_size, 200, np.float32)})
    assert not pooled(closed, inputs, lengths).any()


def test_first_values_are_uniform_within_their_stated_bounds() -> None:
    rcnn = to_arrays(build(EncoderConfig("rcnn", 20, 30, gate="scalar"), seed=0))
    assert 0.95 < np.abs(rcnn["input"][:60]).max() / sqrt(6 / 50) <= 1
    assert 0.5 < np.abs(rcnn["input"][60:]).max() / sqrt(6 / 21) <= 1
    assert 0.5 < np.abs(rcnn["recurrent"]).max() / sqrt(6 / 31) <= 1
    assert not rcnn["output_bias"].any()
    assert not rcnn["gate_bias"].any()
    gru = to_arrays(build(EncoderConfig("gru", 20, 30), seed=0))
    assert all(0.9 < np.abs(value).max() * sqrt(30) <= 1 for value in gru.values())


def test_a_gate_bias_is_where_decay_begins_and_nothing_else_changes() -> None:
    config = EncoderConfig("rcnn", 3, 2)
    plain, biased = (to_arrays(build(config, 5, bias)) for bias in (0.0, 3.0))
    assert biased.pop("gate_bias").tolist() == [3.0, 3.0]
    assert plain.pop("gate_bias").tolist() == [0.0, 0.0]
    assert all(np.array_equal(plain[name], biased[name]) for name in plain)
