"""Which windows of each block have to be worked on, for some texts: the others see zeros alone and are all the same.

A text has some hundred trigrams of tens of thousands. Where a cell of a convolution sees no place that differs from the
background (zero for the trigrams, one vector g_i for what leaves block i), it gives the background of the next block:

::

    g_0 = 0,   g_i = relu(b_i + Σ_k W_i[:, :, k] g_{i-1})

So only cells that see something else are worked on. Which those are depends on where trigrams stand, not on parameters.

Enters: places of trigrams. Leaves: ``Plan``. May import: config, its own folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askalike.models.siamese.config import BlockShape

__all__ = ["BlockPlan", "Plan"]


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """What of one block is worked on.

    Args:
        shape: the block's lengths.
        source: places that enter and differ from the background, one number for each cell that sees one.  # (E,)
        target: where in that cell it stands, cells laid end to end, each R long.  # (E,)
        cells: how many cells are worked on, A.
        slots: where each cell stands in its window, windows laid end to end; None where a cell is a window.  # (A,)
        windows: how many windows are worked on.
    """

    shape: BlockShape
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    cells: int
    slots: NDArray[np.int64] | None
    windows: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What is worked on for some texts.

    Args:
        texts: how many there are, B.
        blocks: one after the other.
        ends: windows of the last block that were worked on, texts laid end to end.
    """

    texts: int
    blocks: tuple[BlockPlan, ...]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, keys: NDArray[np.int64], texts: int, shapes: Sequence[BlockShape]) -> Plan:
        """Return the plan for texts whose trigrams are at ``keys``, texts laid end to end, rising."""
        blocks: list[BlockPlan] = []
        for shape in shapes:
            block, keys = _block(keys, texts, shape)
            blocks.append(block)
        return cls(texts, tuple(blocks), keys)

    @property
    def share(self) -> list[float]:
        """Return the share of each block's windows that is worked on."""
        return [block.windows / max(1, self.texts * block.shape.windows) for block in self.blocks]


def _block(keys: NDArray[np.int64], texts: int, shape: BlockShape) -> tuple[BlockPlan, NDArray[np.int64]]:
    """Return a block's plan, and the keys of the windows that leave it.

    >>> shape = BlockShape(13, 1, 1, kernel=3, pooling=2)  # window w sees the places 2w to 2w + 3; there are five
    >>> block, windows = _block(np.array([1, 6, 12]), 1, shape)  # 12 is left over at the end
    >>> windows.tolist(), block.source.tolist(), block.target.tolist()
    ([0, 2, 3], [0, 1, 1], [1, 8, 6])
    """
    per_text = shape.windows * shape.cells
    text, place = np.divmod(keys, shape.length)
    cell = (place // shape.cell)[:, None] - np.arange(-(-shape.reach // shape.cell))
    offset = place[:, None] - cell * shape.cell
    is_seen = (cell >= 0) & (cell < per_text) & (offset < shape.reach)
    seen = (text[:, None] * per_text + cell)[is_seen]
    is_active = np.zeros(texts * per_text, np.bool_)
    is_active[seen] = True
    active = np.flatnonzero(is_active)
    number = np.empty(texts * per_text, np.int64)  # only those of active cells are written, and read
    number[active] = np.arange(len(active))
    target = number[seen] * shape.reach + offset[is_seen]
    source = np.nonzero(is_seen)[0]
    if shape.cells == 1:
        return BlockPlan(shape, source, target, len(active), None, len(active)), active
    window = active // shape.cells
    is_first = np.diff(window, prepend=-1) > 0
    slots = (np.cumsum(is_first) - 1) * shape.cells + active % shape.cells
    windows = window[is_first]
    return BlockPlan(shape, source, target, len(active), slots, len(windows)), windows
