"""What single networks promise: agreement with each other and with torch, first values, refused arrays."""

from __future__ import annotations

from functools import partial
from math import sqrt
from typing import Any

import numpy as np
import pytest

from askalike.errors import SettingError
from askalike.models.encoders.settings import EncoderConfig

torch = pytest.importorskip("torch", reason="the encoders are trained with torch, which is not installed")

from askalike.models.encoders.networks.cpu import Buffers  # noqa: E402
from askalike.models.encoders.networks.encoder import build, from_arrays, to_arrays  # noqa: E402
from askalike.models.encoders.networks.packing import Packing  # noqa: E402


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
    for states in (encoder.states(inputs, lengths), without_gradient(encoder.states, inputs, lengths)):
        torch.testing.assert_close(states[:, 0], expected[:, 0])
    torch.testing.assert_close(encoder(inputs, lengths)[1], expected[1, 1])


def without_gradient(function: Any, *given: Any) -> Any:
    with torch.no_grad():
        return function(*given)


@recurrent
def test_a_run_goes_on_from_what_another_left(kind: Any, layers: int) -> None:
    encoder, (inputs, _) = build(EncoderConfig(kind, 3, 5, layers=layers), seed=2), texts()
    four = torch.full((4,), 4), torch.full((4,), 2)
    for run in (encoder.go_on, partial(without_gradient, encoder.go_on)):
        states, carry = run(inputs[:4].flatten(0, 1), Packing.of(four[0]))
        assert carry.shape == (4, {"lstm": 2, "gru": layers}[kind], 5)
        further, last = run(inputs[4:].flatten(0, 1), Packing.of(four[1]), carry)
        whole, expected = run(inputs.flatten(0, 1), Packing.of(four[0] + four[1]))
        torch.testing.assert_close(torch.cat([states, further]), whole)
        torch.testing.assert_close(last, expected)
        torch.testing.assert_close(last[:, 0 if kind == "lstm" else -1], whole[-4:])


@recurrent
def test_the_loop_that_gradients_take_has_the_states_carries_and_gradients_of_torch(
    kind: Any, layers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = build(EncoderConfig(kind, 3, 5, layers=layers), seed=2)
    packing = encoder.packing(torch.tensor([2, 6, 0, 4, 6, 1]))
    torch.manual_seed(0)
    words, start = torch.randn(19, 3), torch.randn(6, {"lstm": 2, "gru": layers}[kind], 5)

    def gone_on(begin: Any) -> list[Any]:
        inputs = words.clone().requires_grad_()
        found = encoder.go_on(inputs, packing, begin)
        loss = sum((values * torch.arange(values.numel()).view_as(values).sin()).sum() for values in found)
        return [*found, *torch.autograd.grad(loss, [inputs, *encoder.parameters()])]

    for begin in (None, start):
        own = gone_on(begin)
        with monkeypatch.context() as patched:
            patched.setattr("askalike.models.encoders.networks.recurrent.is_unrolled", lambda _: False)
            expected = gone_on(begin)
        torch.testing.assert_close(own, expected)
        with monkeypatch.context() as patched:
            patched.setattr("askalike.models.encoders.networks.recurrent.is_rounding", lambda _: True)
            patched.setattr("askalike.models.encoders.networks.recurrent.round_far_up", lambda rows: rows + 5)
            torch.testing.assert_close(gone_on(begin), expected)


@pytest.mark.parametrize(
    "config",
    [EncoderConfig("cnn", 3, 5), EncoderConfig("attention", 3, 3), EncoderConfig("rcnn", 3, 5, gate="constant")],
)
def test_a_network_without_a_state_says_so_when_a_run_is_to_go_on(config: EncoderConfig) -> None:
    packing = Packing.of(torch.tensor([2]))
    with pytest.raises(SettingError, match=f"kind {config.kind} and gate {config.gate} keeps no state"):
        build(config).go_on(torch.ones(2, 3), packing)


@pytest.mark.parametrize("gate", ["vector", "scalar"])
def test_gates_lie_between_0_and_1_and_a_closed_one_lets_no_word_in(gate: Any) -> None:
    inputs, lengths = texts()
    config = EncoderConfig("rcnn", 3, 5, gate=gate)
    gates = build(config).gates(inputs, lengths)
    assert ((gates[:2, 0] > 0) & (gates[:2, 0] < 1)).all()
    assert not gates[2:, 1].any()
    closed = from_arrays(config, to_arrays(build(config)) | {"gate_bias": np.full(config.gate_size, 200, np.float32)})
    assert torch.equal(closed.gates(inputs, lengths)[:, 0], torch.ones(6, config.gate_size))
    assert not closed(inputs, lengths).any()


def test_first_values_are_uniform_within_their_stated_bounds() -> None:
    rcnn = to_arrays(build(EncoderConfig("rcnn", 20, 30, gate="scalar"), seed=0))
    assert 0.95 < np.abs(rcnn["input"][:60]).max() / sqrt(6 / 50) <= 1
    assert 0.5 < np.abs(rcnn["input"][60:]).max() / sqrt(6 / 21) <= 1
    assert 0.5 < np.abs(rcnn["recurrent"]).max() / sqrt(6 / 31) <= 1
    assert not rcnn["output_bias"].any()
    assert not rcnn["gate_bias"].any()
    gru = to_arrays(build(EncoderConfig("gru", 20, 30), seed=0))
    assert all(0.9 < np.abs(value).max() * sqrt(30) <= 1 for value in gru.values())


@pytest.mark.parametrize(
    "config",
    [
        EncoderConfig("rcnn", 3, 5),
        EncoderConfig("rcnn", 3, 5, gate="scalar", pooling="normalised-mean"),
        EncoderConfig("lstm", 3, 5, pooling="mean"),
        EncoderConfig("gru", 3, 5, layers=2),
        EncoderConfig("cnn", 3, 5, pooling="max"),
        EncoderConfig("attention", 3, 3, layers=2),
    ],
    ids=str,
)
def test_lanes_change_nothing(config: EncoderConfig) -> None:
    encoder, (inputs, lengths) = build(config), texts()
    packing = Packing.of(lengths, lanes=3)
    assert len(packing.lanes) > 1
    torch.testing.assert_close(encoder.pooled(packing.pack(inputs), packing), encoder(inputs, lengths))


def test_threads_share_a_large_batch_and_keep_their_number() -> None:
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        encoder = build(EncoderConfig("rcnn", 3, 5))
        inputs, lengths = torch.randn(4, 100, 3), torch.full((100,), 4)
        packing = encoder.packing(lengths)
        assert len(packing.lanes) == 2
        apart = encoder(inputs, lengths)
        assert torch.get_num_threads() == 2
        torch.set_num_threads(1)
        torch.testing.assert_close(encoder(inputs, lengths), apart)
    finally:
        torch.set_num_threads(threads)


def test_memory_comes_back_when_its_last_view_is_gone() -> None:
    buffers = Buffers(kept_bytes=1 << 22)
    tensor = buffers.take((1 << 18, 2), torch.float32)
    view = tensor.fill_(3.0)[5:]
    del tensor
    assert buffers.free_bytes == 0
    assert view.min() == 3
    del view
    assert buffers.free_bytes == 1 << 21
    again = [buffers.take((1 << 18, 2), torch.float32) for _ in range(3)]
    assert buffers.free_bytes == 0
    del again
    assert buffers.free_bytes == 1 << 22  # what is beyond goes back to the system


def test_a_gate_bias_is_where_decay_begins_and_nothing_else_changes() -> None:
    config = EncoderConfig("rcnn", 3, 2)
    plain, biased = (to_arrays(build(config, 5, bias)) for bias in (0.0, 3.0))
    assert biased.pop("gate_bias").tolist() == [3.0, 3.0]
    assert plain.pop("gate_bias").tolist() == [0.0, 0.0]
    assert all(np.array_equal(plain[name], biased[name]) for name in plain)
