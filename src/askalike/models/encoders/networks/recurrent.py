"""LSTM and GRU as modules: torch's own recurrences, but for a loop of steps where a gradient is wanted on the CPU.

torch's own recurrences over packed words take step t as a slice of all words. The gradient of a slice is as large as
what it was cut from: zeros for all N words, added up at each of T steps, T · N rows of memory traffic for N rows of
work. Splitting once has one gradient, of N rows.

Source: the equations are those of ``torch.nn.LSTM`` (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et
al. 2000) and ``torch.nn.GRU`` (Cho et al. 2014, EMNLP, with the reset gate after the product).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from askalike.models.encoders.networks.cpu import is_rounding, round_far_up
from askalike.models.encoders.networks.packing import Lane, Packing
from askalike.models.encoders.settings import EncoderConfig


def is_unrolled(words: Tensor) -> bool:
    """Return whether the loop is faster than torch's own recurrence: on the CPU, where a gradient is wanted."""
    return words.device.type == "cpu" and torch.is_grad_enabled()


def inward(words: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return ``words · Wᵀ + b`` for all words (N, D_in) at once.  # (N, K)"""
    if not is_rounding(words):
        return functional.linear(words, weight, bias)
    return functional.linear(_rounded(words), weight, bias)[: len(words)]


def _rounded(rows: Tensor) -> Tensor:
    """Return a matrix with rows of zeros below it, up to a round number."""
    return functional.pad(rows, (0, 0, 0, round_far_up(len(rows)) - len(rows)))


def unrolled(
    step: Callable[[Tensor, Tensor], Tensor], inward: Tensor, counts: Sequence[int], start: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the states of all words, and what each text ended with.

    Args:
        step: (what enters it (n, …), the carry before it (n, parts, D)) → the carry after it (n, parts, D), of which
            the first part is the state.
        inward: what enters the steps, packed.  # (N, …)
        counts: texts with a word at each step; never grows.
        start: the carry before the first step.  # (counts[0], parts, D)

    Returns:
        states (N, D), packed; carries (counts[0], parts, D).
    """
    carry, states, ended = start, [], []
    for own in torch.split(inward, list(counts)):
        if len(own) < len(carry):
            carry, done = torch.split(carry, [len(own), len(carry) - len(own)])
            ended.append(done)
        carry = step(own, carry)
        states.append(carry[:, 0])
    return torch.cat(states), torch.cat([carry, *reversed(ended)])


class Recurrent(nn.Module):
    """What LSTM and GRU share."""

    def __init__(self, core: nn.RNNBase, values: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.core = core
        with torch.no_grad():
            for name, value in values.items():
                getattr(core, torch_name(name)).copy_(value)

    def forward(self, words: Tensor, packing: Packing) -> Tensor:
        """Return the states (N, D) of packed words (N, D_in)."""
        return self.go_on(words, packing, None)[0]

    def go_on(self, words: Tensor, packing: Packing, start: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return states, and the carry at the end of each text, (R, parts, D), to start another run with.

        Args:
            start: the carry before the first word, texts in the order of the packing; None for zero.
        """
        run = self._unrolled if is_unrolled(words) else self._whole
        found = [run(words[lane.words], lane, None if start is None else start[lane.texts]) for lane in packing.lanes]
        states, carries = zip(*found, strict=True)
        return torch.cat(states), torch.cat(carries)

    def _whole(self, words: Tensor, lane: Lane, start: Tensor | None) -> tuple[Tensor, Tensor]:
        """Run a lane by torch's own recurrence."""
        raise NotImplementedError

    def _unrolled(self, words: Tensor, lane: Lane, start: Tensor | None) -> tuple[Tensor, Tensor]:
        """Run a lane as a loop of steps."""
        raise NotImplementedError


class Lstm(Recurrent):
    """One layer of LSTM; its carry is h and c, (R, 2, D).

    Args:
        values: ``weight_ih`` (4D, D_in), ``weight_hh`` (4D, D), ``bias_ih``, ``bias_hh`` (4D,); gates i, f, g, o.
    """

    def __init__(self, config: EncoderConfig, values: Mapping[str, Tensor]) -> None:
        super().__init__(nn.LSTM(config.input_size, config.hidden_size), values)

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


class Gru(Recurrent):
    """A GRU of one layer or several, each over the states of the one before; its carry is h of each, (R, layers, D).

    Args:
        values: ``weight_ih`` (3D, D_in), ``weight_hh`` (3D, D), ``bias_ih``, ``bias_hh`` (3D,), gates r, z, n; for
            layer l > 1 ``weight_ih_l`` (3D, D) and so on.
    """

    def __init__(self, config: EncoderConfig, values: Mapping[str, Tensor]) -> None:
        super().__init__(nn.GRU(config.input_size, config.hidden_size, config.layers), values)

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
