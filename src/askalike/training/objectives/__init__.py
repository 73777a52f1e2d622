"""What training makes smaller, one file an objective; here what the training loop asks of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from askalike.training.corpus import Corpus
from askalike.training.network import TextNetwork


class Example(NamedTuple):
    """A text that was read, and what was written of it, as ids."""

    read: list[int]
    written: list[int]


class Trainable(nn.Module):
    """A loss over batches, with the parameters that make it smaller: all that the training loop knows of."""

    def batches(self, epoch: int, seed: int) -> Sequence[NDArray[np.int64]]:
        """Return the batches of an epoch in their order; the same epoch and seed give the same ones."""
        raise NotImplementedError

    def forward(self, batch: NDArray[np.int64]) -> Tensor:
        """Return the loss of a batch, a scalar."""
        raise NotImplementedError

    def held_out(self) -> dict[str, float]:
        """Return measures of texts that are kept out of training, none by default."""
        return {}


class Objective(Trainable):
    """A loss over batches of a corpus, the mean over what a batch holds.

    Args:
        network: what is trained.
        corpus: what it is trained on.
    """

    def __init__(self, network: TextNetwork, corpus: Corpus) -> None:
        super().__init__()
        self.network = network
        self.corpus = corpus

    def examples(self) -> list[Example]:
        """Return what the network makes of a few texts that are kept out of training, nothing by default."""
        return []


def random_stream(seed: int, epoch: int) -> np.random.Generator:
    """Return the generator that an epoch draws from."""
    return np.random.default_rng([seed, epoch])


def held_out_questions(corpus: Corpus, most: int, seed: int) -> NDArray[np.int64]:
    """Return questions to keep out of training, by rising number: those that the data name.

    Where they name none, ``most`` are drawn, but a tenth of all at most.
    """
    if len(corpus.held_out):
        return corpus.held_out
    order = np.random.default_rng(seed).permutation(corpus.size)
    return np.sort(order[: min(most, corpus.size // 10)])


def in_batches(items: NDArray[np.int64], size: int) -> list[NDArray[np.int64]]:
    """Return ``items`` in parts of ``size``, the last one smaller."""
    return [items[begin : begin + size] for begin in range(0, len(items), size)]
