"""What a run of the recurrence needs to know besides its tensors, and how its steps are cut into chunks.

Enters: a packing, the order and the gate. Leaves: a ``Plan`` and its chunks. May import: packing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from askalike.encode.networks.packing import Packing

__all__ = ["CHUNK_WORDS", "Chunk", "Plan"]

CHUNK_WORDS: Final = 1024
"""Words whose projections are computed at once."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Steps ``first`` up to and without ``end``, whose words are the packed rows ``top`` up to ``bottom``."""

    first: int
    end: int
    top: int
    bottom: int

    @property
    def words(self) -> int:
        """Return how many words the steps of the chunk have."""
        return self.bottom - self.top


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

    @property
    def texts(self) -> int:
        """Return R, the texts with at least one word."""
        return len(self.packing.order)

    @property
    def blocks(self) -> list[int]:
        """Return the rows of each block of a buffer that holds the start and then every step: R, then the counts."""
        return [self.texts, *self.packing.counts]

    def chunks(self) -> list[Chunk]:
        """Return consecutive steps in groups of at most ``CHUNK_WORDS`` words, but at least one step each."""
        found: list[Chunk] = []
        first = top = bottom = 0
        for step, count in enumerate(self.packing.counts):
            if step > first and bottom + count - top > CHUNK_WORDS:
                found.append(Chunk(first, step, top, bottom))
                first, top = step, bottom
            bottom += count
        return [*found, Chunk(first, len(self.packing.counts), top, bottom)] if bottom else []
