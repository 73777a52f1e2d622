"""The LSTM as a module, through torch's own.

Enters: packed word vectors. Leaves: packed states. May import: config, packing, torch.
Source: Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000; the equations are those of
``torch.nn.LSTM``.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from askalike.encode.config import EncoderConfig
from askalike.encode.networks.packing import Packing

__all__ = ["Lstm"]


class Lstm(nn.Module):
    """One layer of LSTM.

    Args:
        config: sizes.
        values: ``weight_ih`` (4D, D_in), ``weight_hh`` (4D, D), ``bias_ih``, ``bias_hh`` (4D,); gates i, f, g, o.
    """

    def __init__(self, config: EncoderConfig, values: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.core = nn.LSTM(config.input_size, config.hidden_size)
        with torch.no_grad():
            for name, value in values.items():
                getattr(self.core, f"{name}_l0").copy_(value)

    def forward(self, words: Tensor, packing: Packing) -> Tensor:
        """Return the states (N, D) of packed words (N, D_in)."""
        found = [
            self.core(PackedSequence(words[lane.words], torch.tensor(lane.counts)))[0].data for lane in packing.lanes
        ]
        return torch.cat(found)
