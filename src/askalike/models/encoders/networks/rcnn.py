"""The RCNN as a module: a convolution over words that may lie apart, with a learned decay.

Enters: packed word vectors. Leaves: packed states; gates; the carry, with which another run can start.
May import: config, recurrence, packing. Source: Lei et al. 2016 (NAACL), section 3; equations in ``recurrence``.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from askalike.models.encoders.config import EncoderConfig
from askalike.models.encoders.networks.packing import Packing
from askalike.models.encoders.networks.recurrence import Plan, Result, Weights, recur

__all__ = ["Rcnn"]


class Rcnn(nn.Module):
    """A gated convolution of order n.

    Args:
        config: sizes, order and gate.
        values: ``input`` (n·D + G, D_in), ``recurrent`` (G, D), ``gate_bias`` (G,), ``output_bias`` (D,).
    """

    def __init__(self, config: EncoderConfig, values: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.config = config
        for name, value in values.items():
            self.register_parameter(name, nn.Parameter(value))

    def forward(self, words: Tensor, packing: Packing) -> Tensor:
        """Return the states (N, D) of packed words (N, D_in)."""
        return self.run(words, packing).states

    def go_on(self, words: Tensor, packing: Packing, start: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return states, and c¹ … cⁿ and h at the end of each text, (R, n + 1, D), to start another run with."""
        found = self.run(words, packing, start)
        return found.states, found.carry

    def run(self, words: Tensor, packing: Packing, start: Tensor | None = None, *, is_kept: bool = False) -> Result:
        """Return states, gates and carry of packed words (N, D_in).

        Args:
            words: word vectors of the packed texts.
            packing: where the words lie.
            start: the carry of another run, (R, n + 1, D), texts in the order of the packing; None for zero.
            is_kept: return the gates although no gradient is wanted.
        """
        own = dict(self.named_parameters())
        size, none = self.config.hidden_size, words.new_zeros(0)
        weights = Weights(
            own["input"], own.get("recurrent", none.view(0, size)), own.get("gate_bias", none), own["output_bias"]
        )
        decay = {"fixed": float(self.config.decay), "none": 0.0}.get(self.config.gate)
        return recur(words, weights, Plan(packing, self.config.order, decay), start, is_kept)
