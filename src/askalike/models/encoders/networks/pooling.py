"""Packed states to one vector for a text.

Enters: states (N, D) and their packing. Leaves: vectors (B, D), zero for a text without words.
May import: config, packing, torch.

Source: Lei et al. 2016 (NAACL), section 3 (last and mean); Joshi's thesis 2016, chapter 7 (states normalised first).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import torch
from torch import Tensor
from torch.nn import functional

from askalike.models.encoders.config import Pooling
from askalike.models.encoders.networks.packing import Packing

__all__ = ["POOLS"]

_TINY = 1e-12


def last(states: Tensor, packing: Packing) -> Tensor:
    """Return h_T: the state after the last word.

    >>> last(torch.tensor([[1.0], [2.0], [3.0]]), Packing.of(torch.tensor([2, 1]))).tolist()
    [[3.0], [2.0]]
    """
    return packing.restore(states.index_select(0, packing.last()))


def mean(states: Tensor, packing: Packing) -> Tensor:
    """Return (1/T) Σ_t h_t.

    >>> mean(torch.tensor([[1.0], [2.0], [3.0]]), Packing.of(torch.tensor([2, 1]))).tolist()
    [[2.0], [2.0]]
    """
    return _gather(states, packing, "mean")


def normalised_mean(states: Tensor, packing: Packing) -> Tensor:
    """Return (1/T) Σ_t h_t / |h_t|: every word counts the same, however large its state; a zero state stays zero.

    >>> normalised_mean(torch.tensor([[3.0, 4.0], [0.0, 0.5]]), Packing.of(torch.tensor([2]))).tolist()
    [[0.30000001192092896, 0.8999999761581421]]
    """
    if len(states) == 0:
        return packing.restore(states)
    norms = torch.linalg.vector_norm(states, dim=1).clamp_min(_TINY)
    rows = packing.by_text()
    shares = norms.reciprocal().index_select(0, rows) / torch.repeat_interleave(packing.lengths, packing.lengths)
    return packing.restore(
        functional.embedding_bag(rows, states, packing.first_by_text(), mode="sum", per_sample_weights=shares)
    )


def largest(states: Tensor, packing: Packing) -> Tensor:
    """Return max_t h_t in each dimension.

    >>> largest(torch.tensor([[-1.0], [2.0], [-3.0]]), Packing.of(torch.tensor([2, 1]))).tolist()
    [[-1.0], [2.0]]
    """
    return _gather(states, packing, "max")


def _gather(states: Tensor, packing: Packing, mode: Literal["mean", "max"]) -> Tensor:
    if len(states) == 0:
        return packing.restore(states)
    return packing.restore(functional.embedding_bag(packing.by_text(), states, packing.first_by_text(), mode=mode))


POOLS: Final[dict[Pooling, Callable[[Tensor, Packing], Tensor]]] = {
    "last": last,
    "mean": mean,
    "normalised-mean": normalised_mean,
    "max": largest,
}
"""Pooling → its function of (states, packing)."""
