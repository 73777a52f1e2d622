"""What a decoder reads and what it is to write: its words shifted by one, and the layer that scores the next word.

::

    reads    0  w_1  w_2 … w_T          a zero vector first
    writes  w_1 w_2  w_3 … end

The output layer is an adaptive softmax: frequent words are scored with all of a state's numbers, rare ones in clusters
with fewer; its probabilities are normalised, so that perplexity is exact:

::

    perplexity = exp( - (1/T) Σ_t log P(w_t | w_<t, context) ),   over the words and ends of texts

On the CPU its loss is taken a few rows at a time:

::

    loss = (1/N) Σ_i [ log Σ_j exp(z_ij) - z_i,t(i) ],   z_i = W h_i over the head;   + the same over a cluster's words
    dz_i = (softmax(z_i) - one-hot(t(i))) / N

torch's own loss holds the scores of all rows at once, their log-softmax and both gradients: some 30 MB each for the
4,000 words of a batch, which no cache holds and for which memory is taken anew at every step. Here a score lives in a
buffer that stays in the cache, and its gradient is taken at once, as loss and gradient need the same softmax. The
last rows are filled up with zeros: products in bfloat16 prepare themselves for every new shape, which takes longer than
the products.

Source: adaptive softmax: Grave et al. 2017 (ICML); the loss is that of ``torch.nn.AdaptiveLogSoftmaxWithLoss``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import exp
from typing import Any, Final, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from askalike.models.encoders.networks.packing import Packing
from askalike.training.corpus import Texts
from askalike.training.network import TextNetwork

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


END: Final = 0
"""The number of the end of a text; word i is number i + 1: the most frequent come first."""

_HEAD: Final = (2_000, 10_000, 30_000)  # words of the head and of the clusters; more make them smaller, not faster


class Shifted(NamedTuple):
    """What a decoder reads of texts and is to write.

    Args:
        inputs: a zero vector, then the text's words.  # (N, D_in)
        targets: the numbers of the words, then ``END``.  # (N,)
        packing: where they lie; a text has one step more than words.
    """

    inputs: Tensor
    targets: Tensor
    packing: Packing


def shifted(
    network: TextNetwork, texts: Texts, rows: NDArray[np.int64], packing_of: Callable[[Tensor], Packing]
) -> Shifted:
    """Return what a decoder reads of the texts in ``rows``, and what follows each.

    Args:
        packing_of: the packing that suits the decoder, given the steps of each text.
    """
    starts = texts.starts[rows]
    lengths = torch.from_numpy(texts.starts[rows + 1] - starts)
    packing = packing_of(lengths + 1)
    owner = packing.order[packing.place]
    places = torch.from_numpy(starts)[owner] + packing.step
    is_end = packing.step == lengths[owner]
    known = torch.from_numpy(texts.ids)
    targets = torch.where(is_end, END, known[places.clamp_max(len(known) - 1)].long() + 1)
    is_first = packing.step == 0
    inputs = network.words(known[(places - 1).clamp_min(0)].long().to(network.device))
    inputs = inputs.masked_fill(is_first.to(network.device)[:, None], 0.0)
    return Shifted(inputs, targets.to(network.device), packing.to(network.device))


def output_layer(size: int, words: int, seed: int) -> nn.AdaptiveLogSoftmaxWithLoss:
    """Return a layer from states of ``size`` numbers to ``words`` ids and the end; the same seed gives the same one."""
    bounds = cutoffs(words)
    narrower = min(4.0, 0.99 * size ** (1 / len(bounds)))  # at least one number in the last cluster
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.AdaptiveLogSoftmaxWithLoss(size, words + 1, bounds, div_value=narrower)


def cutoffs(words: int) -> list[int]:
    """Return where the clusters of the output layer begin; few words are all in the head but for the last.

    >>> cutoffs(12_000), cutoffs(50)
    ([2000, 10000], [50])
    """
    return [size for size in _HEAD if size < words] or [words]


def perplexity(output: nn.AdaptiveLogSoftmaxWithLoss, written: Iterable[tuple[Tensor, Tensor]]) -> float | None:
    """Return how perplexed the layer is by what follows each state; None where there is nothing.

    Args:
        written: states (N, D) and what follows each (N,), a part at a time.
    """
    total, words = 0.0, 0
    for states, targets in written:
        log_likelihoods = output(states, targets).output
        total -= float(log_likelihoods.double().sum())
        words += len(log_likelihoods)
    return exp(min(total / words, 700.0)) if words else None
