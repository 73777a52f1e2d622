"""Attention: an example worked by hand, a plain loop, word order, gradients, first values."""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.naive_encoders import NAIVE

from askalike.models.encoders.settings import EncoderConfig

torch = pytest.importorskip("torch", reason="the encoders are trained with torch, which is not installed")

from tests.padded import states  # noqa: E402

from askalike.models.encoders.networks.encoder import build, from_arrays, to_arrays  # noqa: E402
from askalike.models.encoders.networks.packing import Packing  # noqa: E402

LENGTHS = np.array([3, 0, 6, 1, 6, 4, 3])
STACKS = [EncoderConfig("attention", 7, 7, pooling="mean", layers=layers) for layers in (1, 2, 3)]


def random_arrays(config: EncoderConfig) -> dict[str, NDArray[np.float32]]:
    chance = np.random.default_rng(0)
    return {name: chance.normal(0, 0.6, shape).astype(np.float32) for name, shape in config.shapes().items()}


def random_inputs(size: int = 7) -> NDArray[np.float32]:
    return np.random.default_rng(1).normal(0, 1, (LENGTHS.max(), len(LENGTHS), size)).astype(np.float32)


def states_of(config: EncoderConfig, arrays: Any, inputs: Any, lengths: Any) -> NDArray[np.float32]:
    with torch.no_grad():
        outputs = states(from_arrays(config, arrays), inputs, lengths)
    return np.asarray(outputs.numpy())


# --- worked by hand --------------------------------------------------------------------------------------------------

R = sqrt(1e-5)  # the unit of the example: (y - mean y) = ±δ R gives ±δ / √(δ² + 1)
C = sqrt(sqrt(2) * log(3)) / R
WORDS = [[R / 2, -R / 2], [-R / 2, R / 2]]
BY_HAND = {
    "attention_1": [[2 * C, C], [0, C], [C, 0], [0, C], [2, 1], [0, 1]],  # q = C x, k = C x, v = x for these words
    "attention_norm_1": [[R, 2 * R], [0, 0.2 * R]],
    "inner_1": [[1, -1], [2, 1]],
    "inner_bias_1": [-0.6 * R, -0.7 * R],
    "outer_1": [[2 / 3, 5], [-1, 7]],
    "outer_bias_1": [-0.6 * R, 0],
    "outer_norm_1": [[10, 5], [1, 0]],
}


def test_two_words_worked_by_hand() -> None:
    # Word 1 with itself: q·k / √2 = C² (R²/2) / √2 = ln 3 / 2; with word 2: -ln 3 / 2. As e^ln3 = 3, it takes 3/4 of
    # itself and 1/4 of the other: a' = (3/4 - 1/4) x_1 = (R/4, -R/4). a' + x_1 = (3/4 R, -3/4 R); δ = 3/4 gives ±3/5:
    # a = (0.6 R, -1.2 R + 0.2 R) = (0.6 R, -R). Within: (0.6 + 1 - 0.6) R = R, and (1.2 - 1 - 0.7) R < 0, so 0.
    # h' = (2/3 R - 0.6 R, -R), h' + a = (2/3 R, -2 R) with mean -2/3 R; δ = 4/3 gives ±4/5:
    # h_1 = (10 · 0.8 + 1, -5 · 0.8) = (9, -4)
    # Word 2: a = (-0.6 R, 1.4 R), nothing passes the ReLU, h' + a = (-1.2 R, 1.4 R), δ = 1.3: ±1.3 / √2.69 = ±0.792624
    config = EncoderConfig("attention", 2, 2)
    arrays = {name: np.array(values, dtype=np.float32) for name, values in BY_HAND.items()}
    outputs = states_of(config, arrays, np.array(WORDS, dtype=np.float32)[:, None], np.array([2]))[:, 0]
    np.testing.assert_allclose(outputs, [[9.0, -4.0], [-6.92624, 3.96312]], atol=2e-5)
    expected, _ = NAIVE["attention"](config, arrays, WORDS)
    np.testing.assert_allclose(outputs, expected, atol=2e-5)


# --- laws ------------------------------------------------------------------------------------------------------------


def test_large_scores_do_not_overflow() -> None:
    config = STACKS[1]
    arrays = {name: 50 * array for name, array in random_arrays(config).items()}
    assert np.isfinite(states_of(config, arrays, random_inputs(), LENGTHS)).all()


# --- gradients and first values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("layers", [1, 2])
def test_gradients_are_those_of_small_differences(layers: int) -> None:
    config = EncoderConfig("attention", 3, 3, layers=layers)
    network = from_arrays(config, random_arrays(config)).double().network
    packing = Packing.of(torch.tensor([2, 0, 3, 2, 1]))
    words = torch.randn(8, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2)).requires_grad_()
    names = [name for name, _ in network.named_parameters()]

    def run(words: Any, *values: Any) -> Any:
        return torch.func.functional_call(network, dict(zip(names, values, strict=True)), (words, packing))

    assert torch.autograd.gradcheck(run, (words, *network.parameters()))


def test_first_values_are_those_of_the_paper() -> None:
    arrays = to_arrays(build(EncoderConfig("attention", 30, 30, layers=2), seed=0))
    blocks = [block for layer in (1, 2) for block in arrays[f"attention_{layer}"].reshape(3, 30, 30)]
    for block in blocks:
        np.testing.assert_allclose(block @ block.T, np.eye(30), atol=1e-5)
    assert all(np.abs(block - other).max() > 0.1 for i, block in enumerate(blocks) for other in blocks[:i])
    for layer in (1, 2):
        for name in ("inner", "inner_bias", "outer", "outer_bias"):
            assert 0.08 < np.abs(arrays[f"{name}_{layer}"]).max() <= 0.1
        for name in ("attention_norm", "outer_norm"):
            assert arrays[f"{name}_{layer}"].tolist() == [[1.0] * 30, [0.0] * 30]
