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
        return self.go_on(words, packing, None)[0]

    def go_on(self, words: Tensor, packing: Packing, start: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return states, and h and c at the end of each text, (R, 2, D), to start another run with; None for zero."""
        states, carries = [], []
        for lane in packing.lanes:
            begin = None if start is None else tuple(part.contiguous()[None] for part in start[lane.texts].unbind(1))
            found, (hidden, cell) = self.core(PackedSequence(words[lane.words], torch.tensor(lane.counts)), begin)
            states.append(found.data)
            carries.append(torch.stack([hidden[0], cell[0]], dim=1))
        return torch.cat(states), torch.cat(carries)
