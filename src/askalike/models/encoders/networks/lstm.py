"""The LSTM as a module, through torch's own but where a gradient is wanted on the CPU.

Enters: packed word vectors. Leaves: packed states. May import: config, packing, unrolling, torch.
Source: Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000; the equations are those of
``torch.nn.LSTM``.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from askalike.models.encoders.config import EncoderConfig
from askalike.models.encoders.networks.packing import Lane, Packing
from askalike.models.encoders.networks.unrolling import in_lanes, inward, unrolled

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
        return in_lanes(words, packing, start, self._unrolled, self._whole)

    def _whole(self, words: Tensor, lane: Lane, start: Tensor | None) -> tuple[Tensor, Tensor]:
        begin = None if start is None else tuple(part.contiguous()[None] for part in start.unbind(1))
        found, (hidden, cell) = self.core(PackedSequence(words, torch.tensor(lane.counts)), begin)
        return found.data, torch.stack([hidden[0], cell[0]], dim=1)

    def _unrolled(self, words: Tensor, lane: Lane, start: Tensor | None) -> tuple[Tensor, Tensor]:
        inputs, recurrent, *biases = self.core.parameters()
        back = recurrent.t()

        def step(own: Tensor, before: Tensor) -> Tensor:
            hidden, cell = before.unbind(1)
            let_in, keep, new, let_out = torch.addmm(own, hidden, back).chunk(4, 1)
            cell = keep.sigmoid() * cell + let_in.sigmoid() * new.tanh()
            return torch.stack([let_out.sigmoid() * cell.tanh(), cell], dim=1)

        if start is None:
            start = words.new_zeros(lane.counts[0], 2, self.core.hidden_size)
        return unrolled(step, inward(words, inputs, biases[0] + biases[1]), lane.counts, start)
