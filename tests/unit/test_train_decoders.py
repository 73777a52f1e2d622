"""The decoders of autoencoders: their equations computed another way, what a step may look at, word by word."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from askalike.models.encoders.settings import EncoderConfig

torch = pytest.importorskip("torch", reason="training needs torch, which is not installed")

from tests.padded import pack, unpack  # noqa: E402

from askalike.models.encoders.networks.encoder import to_arrays  # noqa: E402
from askalike.models.encoders.networks.packing import Packing  # noqa: E402
from askalike.training.decoders import (  # noqa: E402
    AttentionDecoder,
    ConditionalGruDecoder,
    Decoder,
    EncodedTexts,
)

Array = NDArray[np.float64]
SIZE = 6
LENGTHS = [3, 1, 5, 3]  # of the texts that were read; one step more is written
DECODERS: dict[str, Any] = {"attention": AttentionDecoder, "gru": ConditionalGruDecoder}
every_depth = pytest.mark.parametrize("layers", [1, 2])


def made(kind: Any, layers: int = 2, seed: int = 0) -> Decoder:
    decoder: Decoder = DECODERS[kind](EncoderConfig(kind, SIZE, SIZE, layers=layers), seed)
    generator = torch.Generator().manual_seed(9)
    with torch.no_grad():  # so that gains and biases of norms count
        for value in decoder.parameters():
            value += 0.3 * torch.randn(value.shape, generator=generator)
    return decoder


def texts(lengths: list[int], seed: int) -> list[Any]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(length, SIZE, generator=generator) for length in lengths]


def packed(sequences: list[Any]) -> tuple[Any, Packing]:
    packing = Packing.of(torch.tensor([len(sequence) for sequence in sequences]))
    padded = torch.nn.utils.rnn.pad_sequence(sequences)
    return pack(padded, packing), packing


def unpacked(states: Any, packing: Packing) -> list[Any]:
    padded = unpack(states, packing, packing.steps)
    lengths = packing.restore(packing.lengths).tolist()
    return [padded[:length, column] for column, length in enumerate(lengths)]


def decoded(decoder: Decoder, read: list[Any], words: list[Any]) -> list[Any]:
    inputs, packing = packed(words)
    return unpacked(decoder(inputs, packing, EncodedTexts(*packed(read))), packing)


def softmax(scores: Array) -> Array:
    shares = np.exp(scores - scores.max())
    return shares / shares.sum()


def normalised(vector: Array, norm: Any) -> Array:
    gain, bias = (value.detach().numpy() for value in (norm.weight, norm.bias))
    return gain * (vector - vector.mean()) / np.sqrt(vector.var() + norm.eps) + bias


def looked(state: Array, others: Array, head: Any) -> Array:
    query, key, value = (weight.detach().numpy() for weight in (head.query, head.key, head.value))
    scores = np.array([(query @ state) @ (key @ other) / sqrt(len(state)) for other in others])
    context = sum(share * (value @ other) for share, other in zip(softmax(scores), others, strict=True))
    return normalised(context + state, head.norm)


def attended(decoder: Any, read: Array, words: Array) -> Array:
    """Return the states of one text, one step after the other, as the paper's equations have them."""
    for layer in decoder.layers:
        states = []
        for step in range(len(words)):
            written = looked(words[step], words[: step + 1], layer.written)
            both = looked(written, read, layer.read)
            inner, outer = (
                [value.detach().numpy() for value in (linear.weight, linear.bias)]
                for linear in (layer.inner, layer.outer)
            )
            after = outer[0] @ np.maximum(inner[0] @ both + inner[1], 0) + outer[1]
            states.append(normalised(after + both, layer.norm))
        words = np.array(states)
    return words


def test_a_step_of_attention_worked_by_hand() -> None:
    decoder = AttentionDecoder(EncoderConfig("attention", 2, 2, layers=1), seed=0)
    layer = decoder.layers[0]
    with torch.no_grad():
        for head in (layer.written, layer.read):
            for weight in (head.query, head.key, head.value):
                weight.copy_(torch.eye(2))
        for linear in (layer.inner, layer.outer):
            linear.weight.copy_(torch.eye(2))
            linear.bias.zero_()
        layer.norm.weight.fill_(3.0)
        layer.norm.bias.fill_(0.5)
    read, words = [torch.tensor([[1.0, -1.0]])], [torch.tensor([[0.0, 0.0], [2.0, 0.0]])]
    # step 1 sees itself, zeros: a_d = (0, 0); a_ed = norm(1, -1) = (1, -1); (1, 0) + (1, -1) normalised is (1, -1)
    # step 2: shares 1/(1+e^√8) and 1/(1+e^-√8) of (0, 0) and (2, 0); (3.89, 0) normalised is (1, -1), and so on
    expected = torch.tensor([[3.5, -2.5], [3.5, -2.5]])
    torch.testing.assert_close(decoded(decoder, read, words)[0], expected, atol=1e-4, rtol=0)


@every_depth
def test_attention_is_that_of_the_equations_taken_one_step_after_the_other(layers: int) -> None:
    decoder = made("attention", layers)
    read, words = texts(LENGTHS, 1), texts([length + 1 for length in LENGTHS], 2)
    for own, source, states in zip(words, read, decoded(decoder, read, words), strict=True):
        expected = attended(decoder, source.double().numpy(), own.double().numpy())
        np.testing.assert_allclose(states.detach().numpy(), expected, atol=1e-5)


@every_depth
def test_the_conditional_gru_is_a_gru_that_reads_the_mean_at_every_step(layers: int) -> None:
    decoder: Any = made("gru", layers)
    core = torch.nn.GRU(2 * SIZE, SIZE, layers)
    own = list(to_arrays(decoder.network).values())  # layer after layer, as torch has them
    with torch.no_grad():
        for value, array in zip(core.parameters(), own, strict=True):
            value.copy_(torch.from_numpy(array))
    read, words = texts(LENGTHS, 1), texts([length + 1 for length in LENGTHS], 2)
    for text, source, states in zip(words, read, decoded(decoder, read, words), strict=True):
        mean = source.mean(0)
        first = [
            torch.tanh(
                decoder.first.weight[layer * SIZE : (layer + 1) * SIZE] @ mean
                + decoder.first.bias[layer * SIZE : (layer + 1) * SIZE]
            )
            for layer in range(layers)
        ]
        expected, _ = core(torch.cat([text, mean.expand(len(text), -1)], dim=1), torch.stack(first))
        torch.testing.assert_close(states, expected, atol=1e-5, rtol=1e-5)


def test_the_first_values_of_attention_are_those_of_the_paper() -> None:
    for layer in AttentionDecoder(EncoderConfig("attention", SIZE, SIZE, layers=2), seed=5).layers:
        for head in (layer.written, layer.read):
            for weight in (head.query, head.key, head.value):
                torch.testing.assert_close(weight @ weight.T, torch.eye(SIZE))
        for value in (*layer.inner.parameters(), *layer.outer.parameters()):
            assert 0.02 < value.abs().max() <= 0.1
        for norm in (layer.written.norm, layer.read.norm, layer.norm):
            assert torch.equal(norm.weight, torch.ones(SIZE))
            assert not norm.bias.any()
