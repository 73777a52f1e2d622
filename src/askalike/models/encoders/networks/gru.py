"""The GRU as a module, through torch's own but where a gradient is wanted on the CPU.

Enters: packed word vectors. Leaves: packed states. May import: config, packing, unrolling, torch.
Source: Cho et al. 2014 (EMNLP), with the reset gate after the product as in ``torch.nn.GRU``, whose equations hold.
A layer after the first takes the states of the one before it as its words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from askalike.models.encoders.config import EncoderConfig
from askalike.models.encoders.networks.packing import Lane, Packing
from askalike.models.encoders.networks.unrolling import in_lanes, inward, unrolled

__all__ = ["Gru", "torch_name"]


class Gru(nn.Module):
    """A GRU of one layer or several.

    Args:
        config: sizes and layers.
        values: ``weight_ih`` (3D, D_in), ``weight_hh`` (3D, D), ``bias_ih``, ``bias_hh`` (3D,), gates r, z, n; for
            layer l > 1 ``weight_ih_l`` (3D, D) and so on.
    """

    def __init__(self, config: EncoderConfig, values: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.core = nn.GRU(config.input_size, config.hidden_size, config.layers)
        with torch.no_grad():
            for name, value in values.items():
                getattr(self.core, torch_name(name)).copy_(value)

    def forward(self, words: Tensor, packing: Packing) -> Tensor:
        """Return the states (N, D) of packed words (N, D_in)."""
        return self.go_on(words, packing, None)[0]

    def go_on(self, words: Tensor, packing: Packing, start: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return states, and h of each layer at the end of each text, (R, layers, D), to start another run with.

        Args:
            words: packed word vectors (N, D_in).
            packing: where they lie.
            start: h of each layer before the first word, texts in the order of the packing; None for zero.
        """
        return in_lanes(words, packing, start, self._unrolled, self._whole)

    def _whole(self, words: Tensor, lane: Lane, start: Tensor | None) -> tuple[Tensor, Tensor]:
        begin = None if start is None else start.transpose(0, 1).contiguous()
        found, hidden = self.core(PackedSequence(words, torch.tensor(lane.counts)), begin)
        return found.data, hidden.transpose(0, 1)

    def _unrolled(self, words: Tensor, lane: Lane, start: Tensor | None) -> tuple[Tensor, Tensor]:
        if start is None:
            start = words.new_zeros(lane.counts[0], self.core.num_layers, self.core.hidden_size)
        parameters, carries = list(self.core.parameters()), []
        for layer, begin in enumerate(torch.split(start, 1, dim=1)):
            words, carry = self._unrolled_layer(words, parameters[4 * layer : 4 * layer + 4], lane, begin)
            carries.append(carry)
        return words, torch.cat(carries, dim=1)

    def _unrolled_layer(
        self, words: Tensor, parameters: Sequence[Tensor], lane: Lane, start: Tensor
    ) -> tuple[Tensor, Tensor]:
        inputs, recurrent_weights, input_bias, bias = parameters
        back, size = recurrent_weights.t(), self.core.hidden_size

        def step(own: Tensor, before: Tensor) -> Tensor:
            hidden = before[:, 0]
            recurrent = torch.addmm(bias, hidden, back)
            reset, keep = (own[:, : 2 * size] + recurrent[:, : 2 * size]).sigmoid().chunk(2, 1)
            new = torch.addcmul(own[:, 2 * size :], reset, recurrent[:, 2 * size :]).tanh()
            return torch.lerp(new, hidden, keep)[:, None]

        return unrolled(step, inward(words, inputs, input_bias), lane.counts, start)


def torch_name(name: str) -> str:
    """Return torch's name of a parameter of a recurrence: it counts layers from 0, and names the first too.

    >>> torch_name("weight_ih"), torch_name("weight_ih_2")
    ('weight_ih_l0', 'weight_ih_l1')
    """
    stem, _, layer = name.rpartition("_")
    return f"{stem}_l{int(layer) - 1}" if layer.isdigit() else f"{name}_l0"
