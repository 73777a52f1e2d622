"""A GRU that writes a text from one vector.

::

    c      = (1/T) Σ_t h_t                      the encoder's states of the text that was read
    s^l_0  = tanh(W^l c + b^l)                  the first state of layer l
    s¹_t   = GRU([x'_t ; c], s¹_{t-1})          x' the words shifted by one
    s^l_t  = GRU(s^{l-1}_t, s^l_{t-1})          l > 1

Enters: packed states, packed words. Leaves: packed states of the last layer.
May import: decoder, encode's networks, torch.
Source: Zhang and Wu 2018 (AAAI), analysis on attention autoencoders.
Reading: the paper says "a two-layer decoder with conditional GRU … the sentence representation is fed to the decoder",
and no more. Here the vector is an input of the first layer at every step, and starts every layer.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import torch
from torch import Tensor, nn

from askalike.models.encoders.config import EncoderConfig
from askalike.models.encoders.networks import Packing, build
from askalike.models.encoders.networks.pooling import mean
from askalike.training.decoders.decoder import Decoder, Memory, Read

__all__ = ["ConditionalGruDecoder"]


class ConditionalGruDecoder(Decoder):
    """As many layers of GRU as the encoder has, of the same sizes.

    Args:
        config: of the encoder, a GRU.
        seed: of the first values: uniform in ±1/√D, as those of the encoder.
    """

    def __init__(self, config: EncoderConfig, seed: int) -> None:
        super().__init__()
        size = config.hidden_size
        self.network = build(replace(config, input_size=config.input_size + size), seed)
        self.first = nn.Linear(size, config.layers * size)
        generator = torch.Generator().manual_seed(seed)
        for value in self.first.parameters():
            nn.init.uniform_(value, -1 / sqrt(size), 1 / sqrt(size), generator)

    def forward(self, words: Tensor, packing: Packing, read: Read) -> Tensor:
        """Return the states (M, D) of texts that are known already, all at once."""
        condition, start = self.begin(read)
        inputs = torch.cat([words, condition[packing.order[packing.place]]], dim=1)
        return self.network.go_on(inputs, packing, start)[0]

    def begin(self, read: Read) -> Memory:
        """Return c (B, D) and the first states (B, layers, D)."""
        condition = mean(read.states, read.packing)
        return condition, self.first(condition).tanh().view(len(condition), -1, condition.shape[1])

    def go_on(self, words: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        """Return the states (B, D) after one more word (B, D_in) of every text, and what to go on from."""
        condition, carry = memory
        packing = Packing.of(torch.ones(len(words), dtype=torch.int64)).to(words.device)
        states, carry = self.network.go_on(torch.cat([words, condition], dim=1), packing, carry)
        return states, (condition, carry)
