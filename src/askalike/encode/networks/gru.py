"""The GRU as a module, through torch's own but where a gradient is wanted on the CPU.

Enters: packed word vectors. Leaves: packed states. May import: config, packing, unrolling, torch.
Source: Cho et al. 2014 (EMNLP), with the reset gate after the product as in ``torch.nn.GRU``, whose equations hold.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from askalike.encode.config import EncoderConfig
from askalike.encode.networks.packing import Lane, Packing
from askalike.encode.networks.unrolling import is_unrolled, unrolled

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
            begin = None if start is None else start[lane.texts]
            found, carry = (self._unrolled if is_unrolled(words) else self._whole)(words[lane.words], lane, begin)
            states.append(found)
            carries.append(carry)
        return torch.cat(states), torch.cat(carries)

    def _whole(self, words: Tensor, lane: Lane, start: Tensor | None) -> tuple[Tensor, Tensor]:
        begin = None if start is None else start[:, 0].contiguous()[None]
        found, hidden = self.core(PackedSequence(words, torch.tensor(lane.counts)), begin)
        return found.data, hidden[0][:, None]

    def _unrolled(self, words: Tensor, lane: Lane, start: Tensor | None) -> tuple[Tensor, Tensor]:
        inputs, recurrent_weights, input_bias, bias = self.core.parameters()
        inward = functional.linear(words, inputs, input_bias)
        back, size = recurrent_weights.t(), self.core.hidden_size

        def step(own: Tensor, before: Tensor) -> Tensor:
            hidden = before[:, 0]
            recurrent = torch.addmm(bias, hidden, back)
            reset, keep = (own[:, : 2 * size] + recurrent[:, : 2 * size]).sigmoid().chunk(2, 1)
            new = torch.addcmul(own[:, 2 * size :], reset, recurrent[:, 2 * size :]).tanh()
            return torch.lerp(new, hidden, keep)[:, None]

        if start is None:
            start = words.new_zeros(lane.counts[0], 1, size)
        return unrolled(step, inward, lane.counts, start)
