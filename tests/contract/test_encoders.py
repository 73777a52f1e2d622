"""One table of encoders, and the laws that hold for every one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from askalike.errors import SettingError
from askalike.models.encoders.settings import EncoderConfig

torch = pytest.importorskip("torch", reason="the encoders are trained with torch, which is not installed")

from tests.padded import pooled  # noqa: E402

from askalike.models.encoders.networks.encoder import EncoderNetwork, build, from_arrays, to_arrays  # noqa: E402
from askalike.models.encoders.networks.packing import Packing  # noqa: E402

SIZE, INPUT = 5, 3
TABLE: dict[str, dict[str, Any]] = {
    "rcnn": {"kind": "rcnn"},
    "rcnn of order 3": {"kind": "rcnn", "order": 3},
    "rcnn, max": {"kind": "rcnn", "pooling": "max"},
    "rcnn, scalar gate, order 3, mean": {"kind": "rcnn", "gate": "scalar", "order": 3, "pooling": "mean"},
    "rcnn, fixed decay, order 1, max": {"kind": "rcnn", "gate": "fixed", "order": 1, "pooling": "max"},
    "rcnn, constant decay, last of length 1": {"kind": "rcnn", "gate": "constant", "pooling": "normalised-last"},
    "rcnn, constant decay, order 3, mean": {"kind": "rcnn", "gate": "constant", "order": 3, "pooling": "mean"},
    "lstm": {"kind": "lstm"},
    "gru, normalised mean": {"kind": "gru", "pooling": "normalised-mean"},
    "gru of 3 layers, mean": {"kind": "gru", "layers": 3, "pooling": "mean"},
    "cnn of width 3, max": {"kind": "cnn", "order": 3, "pooling": "max"},
    "cnn of width 4, normalised mean": {"kind": "cnn", "order": 4, "pooling": "normalised-mean"},
    "attention, max": {"kind": "attention", "input_size": SIZE, "pooling": "max"},
    "attention of 3 layers, normalised mean": {
        "kind": "attention",
        "input_size": SIZE,
        "layers": 3,
        "pooling": "normalised-mean",
    },
}
LENGTHS = [4, 0, 6, 1, 6, 2]
everywhere = pytest.mark.parametrize("name", TABLE)


def config_of(name: str) -> EncoderConfig:
    return EncoderConfig(**{"input_size": INPUT, "hidden_size": SIZE, **TABLE[name]})


def encoder_of(name: str, seed: int = 3) -> EncoderNetwork:
    return build(config_of(name), seed)


def texts(name: str, lengths: list[int] = LENGTHS, steps: int = 6) -> tuple[Any, Any]:
    """Return word vectors (T, B, D_in) with noise as padding, and lengths (B,)."""
    generator = torch.Generator().manual_seed(1)
    return torch.randn(steps, len(lengths), config_of(name).input_size, generator=generator), torch.tensor(lengths)


def first_state(encoder: EncoderNetwork) -> int:
    """Return how many words of a text come before its first state: with a constant decay, before the first pattern."""
    return encoder.config.order - 1 if encoder.config.gate == "constant" else 0


@everywhere
def test_a_batch_gives_what_its_texts_give_one_by_one(name: str) -> None:
    encoder, (inputs, lengths) = encoder_of(name), texts(name)
    alone = [pooled(encoder, inputs[: max(n, 1), i : i + 1], lengths[i : i + 1])[0] for i, n in enumerate(LENGTHS)]
    torch.testing.assert_close(pooled(encoder, inputs, lengths), torch.stack(alone))


@everywhere
def test_every_parameter_and_the_words_get_a_finite_gradient(name: str) -> None:
    encoder, (inputs, lengths) = encoder_of(name), texts(name)
    inputs.requires_grad_()
    wanted = torch.linspace(-1, 1, 6 * SIZE).view(6, SIZE)
    (pooled(encoder, inputs, lengths) - wanted).square().sum().backward()
    for parameter in encoder.parameters():
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()
        assert parameter.grad.any()
    for text, n in enumerate(LENGTHS):
        assert inputs.grad[:n, text].isfinite().all()
        assert not inputs.grad[n:, text].any()
        assert bool(inputs.grad[:n, text].any()) == (n > first_state(encoder))


@everywhere
def test_the_same_seed_gives_the_same_parameters(name: str) -> None:
    first, same, other = (to_arrays(encoder_of(name, seed)) for seed in (3, 3, 4))
    assert all(np.array_equal(first[key], same[key]) for key in first)
    assert any(not np.array_equal(first[key], other[key]) for key in first)


@everywhere
def test_the_number_of_parameters_is_that_of_the_config(name: str) -> None:
    encoder = encoder_of(name)
    assert sum(parameter.numel() for parameter in encoder.parameters()) == encoder.config.parameter_count()


@everywhere
def test_an_encoder_survives_its_arrays(name: str) -> None:
    encoder, (inputs, lengths) = encoder_of(name), texts(name)
    arrays = to_arrays(encoder)
    assert {key: array.shape for key, array in arrays.items()} == encoder.config.shapes()
    assert {array.dtype for array in arrays.values()} == {np.dtype(np.float32)}
    again = from_arrays(encoder.config, arrays)
    for array in arrays.values():
        array.fill(0)  # the arrays and both encoders share nothing
    assert torch.equal(pooled(again, inputs, lengths), pooled(encoder, inputs, lengths))
    assert pooled(encoder, inputs, lengths).any()


@pytest.mark.parametrize("lengths", [[2, -1], [2.0, 1.0], [[2], [1]]])
def test_lengths_that_are_none_are_refused(lengths: list[Any]) -> None:
    with pytest.raises(SettingError, match="but expected whole numbers ≥ 0"):
        Packing.of(torch.tensor(lengths))
