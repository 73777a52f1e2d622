"""What a decoder reads and what it is to write: its words shifted by one, and the layer that scores the next word.

::

    reads    0  w_1  w_2 … w_T          a zero vector first
    writes  w_1 w_2  w_3 … end

The output layer is an adaptive softmax: frequent words are scored with all of a state's numbers, rare ones in clusters
with fewer; its probabilities are normalised, so that perplexity is exact:

::

    perplexity = exp( - (1/T) Σ_t log P(w_t | w_<t, context) ),   over the words and ends of texts

Enters: texts, rows, states. Leaves: word vectors, targets, probabilities.
May import: encode's networks, network, texts, torch. Source: adaptive softmax: Grave et al. 2017 (ICML).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import exp
from typing import Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from askalike.models.encoders.networks import Packing
from askalike.training.network import TextNetwork
from askalike.training.texts import Texts

__all__ = ["END", "Shifted", "cutoffs", "output_layer", "perplexity", "shifted"]

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
