"""First values of an encoder's parameters, from a seed.

RCNN and CNN: weights uniform in ±√(6 / (inputs + outputs)) of each block W_k, W^λ, U^λ, biases zero. LSTM and GRU:
everything uniform in ±1/√D, as ``torch.nn.LSTM`` has it.

Enters: a config and a seed. Leaves: tensors by name. May import: config, torch.
Source: Glorot and Bengio 2010 (AISTATS), equation 16; the documentation of ``torch.nn.LSTM``.
"""

from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor

from askalike.encode.config import EncoderConfig

__all__ = ["initial_values"]


def initial_values(config: EncoderConfig, seed: int) -> dict[str, Tensor]:
    """Return float32 values with the names and shapes of ``config.shapes()``; the same seed gives the same values.

    >>> initial_values(EncoderConfig("cnn", 1, 1, order=1), seed=0)["bias"]
    tensor([0.])
    """
    generator = torch.Generator().manual_seed(seed)
    found: dict[str, Tensor] = {}
    for name, shape in config.shapes().items():
        if config.kind in ("lstm", "gru"):
            bounds = torch.full((shape[0], 1), 1 / sqrt(config.hidden_size))
        elif len(shape) == 1:
            bounds = torch.zeros(shape[0], 1)
        else:
            bounds = torch.cat([torch.full((rows, 1), sqrt(6 / (rows + shape[1]))) for rows in _blocks(config, name)])
        drawn = torch.rand(shape, generator=generator) * 2 - 1
        found[name] = drawn * bounds.view(-1, *[1] * (len(shape) - 1))
    return found


def _blocks(config: EncoderConfig, name: str) -> list[int]:
    """Return the rows of each matrix that is stacked in a parameter."""
    if name == "input":
        return [config.hidden_size] * config.order + [config.gate_size] * (config.gate_size > 0)
    return [config.shapes()[name][0]]
