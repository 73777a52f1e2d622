"""Networks that read a text word by word, as loops over packed words: LSTM, GRU, and the gated RCNN.

The RCNN is a convolution over words that may lie apart, with a learned decay::

    λ_t    = σ(W^λ x_t + U^λ h_{t-1} + b^λ)                              vector or scalar; or a fixed λ
    c¹_t   = λ_t ⊙ c¹_{t-1} + (1 - λ_t) ⊙ (W_1 x_t)
    cᵏ_t   = λ_t ⊙ cᵏ_{t-1} + (1 - λ_t) ⊙ (cᵏ⁻¹_{t-1} + W_k x_t)        k = 2 … n
    h_t    = tanh(cⁿ_t + b)

torch's own recurrences over packed words take step t as a slice of all words. The gradient of a slice is as large as
what it was cut from: zeros for all N words, added up at each of T steps, which takes ten times as long as this loop.
Splitting once has one gradient, of N rows.

Source: the equations of ``torch.nn.LSTM`` (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000)
and ``torch.nn.GRU`` (Cho et al. 2014, EMNLP, with the reset gate after the product); RCNN: Lei et al. 2016 (NAACL),
section 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from askalike.models.encoders.networks.packing import Packing
from askalike.models.encoders.settings import EncoderConfig

GRAIN: Final = 32
"""Rows are a multiple of this; fewer stay as many as they are."""


def round_up(rows: int) -> int:
    """Return the next multiple of ``GRAIN``, or a number that is smaller than it.

    >>> round_up(7), round_up(32), round_up(33)
    (7, 32, 64)
    """
    return rows if rows < GRAIN else -(-rows // GRAIN) * GRAIN


def project(words: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return ``words · Wᵀ + b`` for all words (N, D_in) at once.  # (N, K)

    On a CPU, products in bfloat16 are compiled for each number of rows, in milliseconds and a megabyte each: rows of
    zeros make it one of few, at most an eighth more.
    """
    if words.device.type != "cpu" or torch.get_float32_matmul_precision() == "highest":
        return functional.linear(words, weight, bias)
    grain = GRAIN
    while 16 * grain <= len(words):
        grain *= 2
    return functional.linear(functional.pad(words, (0, 0, 0, -len(words) % grain)), weight, bias)[: len(words)]


Step = Callable[[Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor]]
"""(what enters it (n, …) each, the parts of the carry before it (n, D) each) → the parts after it, the state first."""


def unroll(step: Step, inputs: Sequence[Tensor], counts: Sequence[int], start: Tensor) -> tuple[Tensor, Tensor]:
    """Return the states of all words, and the carry that each text ended with.

    Args:
        inputs: what enters the steps, packed.  # (N, …) each
        counts: texts with a word at each step; never grows.
        start: the carry before the first step.  # (R, parts, D)

    Returns:
        states (N, D), packed; carries (R, parts, D).
    """
    carry: Sequence[Tensor] = start.unbind(1)
    states, ended = [], []
    for entering in zip(*(torch.split(rows, list(counts)) for rows in inputs), strict=True):
        texts = len(entering[0])
        if texts < len(carry[0]):
            ended.append(torch.stack([part[texts:] for part in carry], dim=1))
            carry = [part[:texts] for part in carry]
        carry = step(entering, carry)
        states.append(carry[0])
    return torch.cat(states), torch.cat([torch.stack(list(carry), dim=1), *reversed(ended)])


class Recurrent(nn.Module):
    """A network whose parameters have the names of ``EncoderConfig.shapes``, and their shapes."""

    def __init__(self, config: EncoderConfig, values: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.config = config
        for name, value in values.items():
            self.register_parameter(name, nn.Parameter(value))

    @property
    def parts(self) -> int:
        """Return how many vectors of D numbers one word leaves to the next."""
        raise NotImplementedError

    def forward(self, words: Tensor, packing: Packing) -> Tensor:
        """Return the states (N, D) of packed words (N, D_in)."""
        return self.go_on(words, packing, None)[0]

    def go_on(self, words: Tensor, packing: Packing, start: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return states, and the carry at the end of each text, (R, parts, D), to start another run with.

        Args:
            start: the carry before the first word, texts in the order of the packing; None for zero.
        """
        if start is None:
            start = words.new_zeros(len(packing.order), self.parts, self.config.hidden_size)
        return self.run(words, packing.counts, start)

    def run(self, words: Tensor, counts: Sequence[int], start: Tensor) -> tuple[Tensor, Tensor]:
        """Return states and carries, as ``unroll``."""
        raise NotImplementedError


class Lstm(Recurrent):
    """One layer of LSTM; its carry is h and c."""

    weight_ih: nn.Parameter
    weight_hh: nn.Parameter
    bias_ih: nn.Parameter
    bias_hh: nn.Parameter

    @property
    def parts(self) -> int:
        """Return 2."""
        return 2

    def run(self, words: Tensor, counts: Sequence[int], start: Tensor) -> tuple[Tensor, Tensor]:
        """Return states and carries, as ``unroll``."""
        back = self.weight_hh.t()

        def step(entering: Sequence[Tensor], before: Sequence[Tensor]) -> Sequence[Tensor]:
            hidden, cell = before
            let_in, keep, new, let_out = torch.addmm(entering[0], hidden, back).chunk(4, 1)
            cell = keep.sigmoid() * cell + let_in.sigmoid() * new.tanh()
            return let_out.sigmoid() * cell.tanh(), cell

        return unroll(step, [project(words, self.weight_ih, self.bias_ih + self.bias_hh)], counts, start)


class Gru(Recurrent):
    """A GRU of one layer or several, each over the states of the one before; its carry is h of each layer."""

    @property
    def parts(self) -> int:
        """Return the number of layers."""
        return self.config.layers

    def run(self, words: Tensor, counts: Sequence[int], start: Tensor) -> tuple[Tensor, Tensor]:
        """Return states and carries, as ``unroll``."""
        parameters, carries = list(self.parameters()), []
        for layer, begin in enumerate(torch.split(start, 1, dim=1)):
            words, carry = _run_layer(words, parameters[4 * layer : 4 * layer + 4], counts, begin)
            carries.append(carry)
        return words, torch.cat(carries, dim=1)


def _run_layer(
    words: Tensor, parameters: Sequence[Tensor], counts: Sequence[int], start: Tensor
) -> tuple[Tensor, Tensor]:
    weight_ih, weight_hh, bias_ih, bias_hh = parameters
    back, size = weight_hh.t(), weight_hh.shape[1]

    def step(entering: Sequence[Tensor], before: Sequence[Tensor]) -> Sequence[Tensor]:
        own, (hidden,) = entering[0], before
        recurrent = torch.addmm(bias_hh, hidden, back)
        reset, keep = (own[:, : 2 * size] + recurrent[:, : 2 * size]).sigmoid().chunk(2, 1)
        new = torch.addcmul(own[:, 2 * size :], reset, recurrent[:, 2 * size :]).tanh()
        return (torch.lerp(new, hidden, keep),)

    return unroll(step, [project(words, weight_ih, bias_ih)], counts, start)


class Rcnn(Recurrent):
    """A gated convolution of order n; its carry is h and c¹ … cⁿ."""

    input: nn.Parameter
    recurrent: nn.Parameter
    gate_bias: nn.Parameter
    output_bias: nn.Parameter

    @property
    def parts(self) -> int:
        """Return n + 1."""
        return self.config.order + 1

    def run(self, words: Tensor, counts: Sequence[int], start: Tensor) -> tuple[Tensor, Tensor]:
        """Return states and carries, as ``unroll``."""
        order, size, gates = self.config.order, self.config.hidden_size, self.config.gate_size
        bias = words.new_zeros(order * size)
        if gates:
            bias, back = torch.cat([bias, self.gate_bias]), self.recurrent.t().contiguous()
        decay = self.config.decay if self.config.gate == "fixed" else 0.0

        def step(entering: Sequence[Tensor], before: Sequence[Tensor]) -> Sequence[Tensor]:
            hidden, *sums = before
            gate = torch.addmm(entering[order], hidden, back).sigmoid() if gates else decay
            shares = [entering[0], *map(torch.add, entering[1:order], sums)]
            sums = [torch.lerp(share, kept, gate) for share, kept in zip(shares, sums, strict=True)]
            return (sums[-1] + self.output_bias).tanh(), *sums

        projected = project(words, self.input, bias)
        inputs = torch.split(projected, [size] * order + [gates] * bool(gates), dim=1)
        return unroll(step, inputs, counts, start)
