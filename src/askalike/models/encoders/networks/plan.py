"""What a run of the recurrence needs to know besides its tensors, and how its steps are taken in chunks.

Enters: a packing, the order and the gate. Leaves: a ``Plan``, chunks of steps. May import: packing, torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from torch import Tensor

from askalike.models.encoders.networks.packing import Packing

__all__ = ["CHUNK_WORDS", "Chunk", "Plan", "chunks", "previous"]

CHUNK_WORDS: Final = 1024
"""Words whose projections are computed at once, in one lane."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A run of the recurrence.

    Args:
        packing: where the words lie.
        order: filter width n.
        decay: the fixed λ, or None where gates are computed.
    """

    packing: Packing
    order: int
    decay: float | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive steps of a lane, and the rows of their words, counted from the first word of the lane."""

    steps: range
    words: slice

    @property
    def size(self) -> int:
        """Return how many words the chunk has."""
        return int(self.words.stop - self.words.start)


def chunks(counts: Sequence[int]) -> list[Chunk]:
    """Return the steps of a lane in groups of at most ``CHUNK_WORDS`` words, but at least one step each."""
    found: list[Chunk] = []
    first = top = bottom = 0
    for step, count in enumerate(counts):
        if step > first and bottom + count - top > CHUNK_WORDS:
            found.append(Chunk(range(first, step), slice(top, bottom)))
            first, top = step, bottom
        bottom += count
    return [*found, Chunk(range(first, len(counts)), slice(top, bottom))] if counts else []


def previous(start: Tensor, blocks: Sequence[Tensor]) -> list[Tensor]:
    """Return for every step the rows of the step before it, cut to the texts that have a word: ``start`` comes first.

    >>> [rows.tolist() for rows in previous(torch.tensor([7, 8]), [torch.tensor([1, 2]), torch.tensor([3])])]
    [[7, 8], [1]]
    """
    before = [start, *blocks[:-1]]
    return [rows if len(rows) == len(own) else rows[: len(own)] for rows, own in zip(before, blocks, strict=True)]
