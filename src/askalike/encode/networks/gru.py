"""The GRU as a module, through torch's own.

Enters: packed word vectors. Leaves: packed states. May import: config, packing, torch.
Source: Cho et al. 2014 (EMNLP), with the reset gate after the product as in ``torch.nn.GRU``, whose equations hold.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from askalike.encode.config import EncoderConfig
from askalike.encode.networks.packing import Packing

__all__ = ["Gru"]


class Gru(nn.Module):
    """One layer of GRU.

    Args:
        config: sizes.
        values: ``weight_ih`` (3D, D_in), ``weight_hh`` (3D, D), ``bias_ih``, ``bias_hh`` (3D,); gates r, z, n.
    """

    def __init__(self, config: EncoderConfig, values: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.core = nn.GRU(config.input_size, config.hidden_size)
        with torch.no_grad():
            for name, value in values.items():
                getattr(self.core, f"{name}_l0").copy_(value)

    def forward(self, words: Tensor, packing: Packing) -> Tensor:
        """Return the states (N, D) of packed words (N, D_in)."""
        return self.go_on(words, packing, None)[0]

    def go_on(self, words: Tensor, packing: Packing, start: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return states, and h at the end of each text, (R, 1, D), to start another run with; None for zero."""
        states, carries = [], []
        for lane in packing.lanes:
            begin = None if start is None else start[lane.texts, 0].contiguous()[None]
            found, hidden = self.core(PackedSequence(words[lane.words], torch.tensor(lane.counts)), begin)
            states.append(found.data)
            carries.append(hidden[0][:, None])
        return torch.cat(states), torch.cat(carries)
