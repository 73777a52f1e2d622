"""The loss of an adaptive softmax on the CPU, a few rows at a time.

::

    loss = (1/N) Σ_i [ log Σ_j exp(z_ij) - z_i,t(i) ],   z_i = W h_i over the head;   + the same over a cluster's words
    dz_i = (softmax(z_i) - one-hot(t(i))) / N

torch's own loss holds the scores of all rows at once, their log-softmax and both gradients: some 30 MB each for the
4,000 words of a batch, which no cache holds and for which memory is taken anew at every step. Here a score lives in a
buffer that stays in the cache, and its gradient is taken at once, as loss and gradient need the same softmax. The
last rows are filled up with zeros: products in bfloat16 prepare themselves for every new shape, which takes longer than
the products.

Enters: the layer, states, targets. Leaves: the loss, with gradient. May import: torch.
Source: adaptive softmax: Grave et al. 2017 (ICML); the loss is that of ``torch.nn.AdaptiveLogSoftmaxWithLoss``.
"""

from __future__ import annotations

from typing import Any, Final, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

__all__ = ["adaptive_loss"]

_CELLS: Final = 512 * 1024  # scores in the buffer: 2 MB
_ROWS: Final = 64  # rows of a cluster, or of few texts, are a multiple of these


def adaptive_loss(output: nn.AdaptiveLogSoftmaxWithLoss, states: Tensor, targets: Tensor) -> Tensor:
    """Return the mean of -log P of the targets, as ``output(states, targets).loss`` is.

    Args:
        output: a layer without biases.
        states: (N, D), N ≥ 1.
        targets: numbers of words.  # (N,)
    """
    if states.device.type != "cpu":
        return cast("Tensor", output(states, targets).loss)
    first, total = targets.clone(), states.new_zeros(())
    bounds = zip(output.cutoffs, output.cutoffs[1:], strict=False)
    for number, ((begin, end), (narrow, words)) in enumerate(zip(bounds, _clusters(output), strict=True)):
        rows = ((targets >= begin) & (targets < end)).nonzero().view(-1)
        first[rows] = output.cutoffs[0] + number
        if len(rows):
            own = functional.pad(states.index_select(0, rows), (0, 0, 0, -len(rows) % _ROWS))
            total = total + _total(functional.linear(own, narrow), words, targets[rows] - begin)
    return (total + _total(states, output.head.weight, first)) / len(targets)


def _clusters(output: nn.AdaptiveLogSoftmaxWithLoss) -> list[list[Tensor]]:
    """Return of each cluster the weights that make a state narrower, and those of its words."""
    return [list(cluster.parameters()) for cluster in output.tail]


def _total(states: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    return cast("Tensor", _Total.apply(states, weight, targets))  # type: ignore[no-untyped-call]


class _Total(torch.autograd.Function):
    """Σ_i -log softmax(W h_i)_t(i) over the rows that have a target."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
        size = max(16, min(_CELLS // len(weight), len(targets) + -len(targets) % _ROWS))
        scores, shares = (states.new_empty(size, len(weight)) for _ in range(2))
        d_states, d_weight = torch.zeros_like(states), torch.zeros_like(weight)
        total, turned = states.new_zeros(()), weight.t()
        for begin in range(0, len(targets), size):
            target = targets[begin : begin + size, None]
            count = len(target)
            own = functional.pad(states[begin : begin + count], (0, 0, 0, size - count))
            torch.mm(own, turned, out=scores)
            torch.softmax(scores, 1, out=shares)
            log_sums = scores.amax(1) - shares.amax(1).log()
            total += log_sums[:count].sum() - scores[:count].gather(1, target).sum()
            shares[:count].scatter_add_(1, target, shares.new_full((count, 1), -1.0))
            d_states[begin : begin + count] = torch.mm(shares, weight)[:count]
            d_weight.addmm_(shares.t(), own)
        ctx.save_for_backward(d_states, d_weight)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, Tensor, None]:
        d_states, d_weight = ctx.saved_tensors
        return d_states * slope, d_weight * slope, None
