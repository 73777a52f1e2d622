"""First values of an encoder's parameters, from a seed.

RCNN and CNN: weights uniform in ±√(6 / (inputs + outputs)) of each block W_k, W^λ, U^λ, biases zero. LSTM and GRU:
everything uniform in ±1/√D, as ``torch.nn.LSTM`` has it. Attention: W^q, W^k and W^v orthogonal, weights and biases of
the position-wise part uniform in ±0.1, norms with gain 1 and bias 0.

Enters: a config and a seed. Leaves: tensors by name. May import: config, torch.
Source: Glorot and Bengio 2010 (AISTATS), equation 16; the documentation of ``torch.nn.LSTM``; Zhang and Wu
2018 (AAAI), "Experimental Setup"; Saxe et al. 2014 (ICLR) for orthogonal ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Final

import torch
from torch import Tensor, nn

from askalike.models.encoders.config import EncoderConfig, Kind

__all__ = ["initial_values"]


def initial_values(config: EncoderConfig, seed: int) -> dict[str, Tensor]:
    """Return float32 values with the names and shapes of ``config.shapes()``; the same seed gives the same values.

    >>> initial_values(EncoderConfig("cnn", 1, 1, order=1), seed=0)["bias"]
    tensor([0.])
    """
    generator = torch.Generator().manual_seed(seed)
    draw = _DRAWS[config.kind]
    return {name: draw(config, name, generator) for name in config.shapes()}


def _within(bounds: Tensor | float, shape: Sequence[int], generator: torch.Generator) -> Tensor:
    return (torch.rand(tuple(shape), generator=generator) * 2 - 1) * bounds


def _convolution(config: EncoderConfig, name: str, generator: torch.Generator) -> Tensor:
    shape = config.shapes()[name]
    if len(shape) == 1:
        return _within(0.0, shape, generator)  # drawn too: the numbers that follow stay what they were
    bounds = torch.cat([torch.full((rows, 1), sqrt(6 / (rows + shape[1]))) for rows in _blocks(config, name)])
    return _within(bounds, shape, generator)


def _recurrence(config: EncoderConfig, name: str, generator: torch.Generator) -> Tensor:
    return _within(1 / sqrt(config.hidden_size), config.shapes()[name], generator)


def _attention(config: EncoderConfig, name: str, generator: torch.Generator) -> Tensor:
    size = config.hidden_size
    if "_norm_" in name:
        return torch.stack([torch.ones(size), torch.zeros(size)])
    if name.startswith("attention_"):
        return torch.cat([nn.init.orthogonal_(torch.empty(size, size), generator=generator) for _ in range(3)])
    return _within(0.1, config.shapes()[name], generator)


def _blocks(config: EncoderConfig, name: str) -> list[int]:
    """Return the rows of each matrix that is stacked in a parameter."""
    if name == "input":
        return [config.hidden_size] * config.order + [config.gate_size] * (config.gate_size > 0)
    return [config.shapes()[name][0]]


_DRAWS: Final[dict[Kind, Callable[[EncoderConfig, str, torch.Generator], Tensor]]] = {
    "rcnn": _convolution,
    "lstm": _recurrence,
    "gru": _recurrence,
    "cnn": _convolution,
    "attention": _attention,
}
"""Kind → what draws a parameter, given its name."""
