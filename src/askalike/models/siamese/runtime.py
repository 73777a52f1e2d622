"""The trained network in NumPy: what ``network`` computes, without torch, and which windows have to be worked on.

A text has some hundred trigrams of tens of thousands. Where a cell of a convolution sees no place that differs from the
background (zero for the trigrams, one vector g_i for what leaves block i), it gives the background of the next block::

    g_0 = 0,   g_i = relu(b_i + Σ_k W_i[:, :, k] g_{i-1})

So only cells that see something else are worked on. Which those are depends on where trigrams stand, not on parameters.

Source: Das et al. 2016 (ACL), section 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.models.siamese.config import SIDES, BlockShape, SiameseConfig, prefix
from askalike.models.siamese.trigram_texts import TrigramTexts


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


_Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Block:
    """One block, ready to be run.

    Args:
        table: a cell's convolution as one product.  # (R·C_in, S·C_out)
        bias: of each filter.  # (C_out,)
        outside: what enters where nothing was seen.  # (C_in,)
        inside: what the convolution makes of that.  # (C_out,)
    """

    table: _Array
    bias: _Array
    outside: _Array
    inside: _Array

    def run(self, seen: _Array, plan: BlockPlan) -> _Array:
        """Return the windows that were worked on.  # (N, C_out)"""
        shape = plan.shape
        inputs = np.empty((plan.cells * shape.reach, shape.inputs), np.float32)
        inputs[:] = self.outside
        inputs[plan.target] = seen[plan.source]
        found = _largest(inputs.reshape(plan.cells, len(self.table)) @ self.table, shape.cell)
        found += self.bias
        if plan.slots is not None:
            filled = np.empty((plan.windows * shape.cells, shape.outputs), np.float32)
            filled[:] = self.inside
            filled[plan.slots] = found
            found = _largest(filled.reshape(plan.windows, shape.cells * shape.outputs), shape.cells)
        np.maximum(found, 0, out=found)
        return found


class Runtime:
    """A network's sides; any number of threads may use it at once.

    Args:
        config: the sizes.
        parameters: by the names of ``config.shapes()``, float32.
    """

    def __init__(self, config: SiameseConfig, parameters: Mapping[str, _Array]) -> None:
        self._config: Final = config
        self._parameters: Final = parameters
        self._blocks = {side: self._prepared(side) for side in config.sides() or ("",)}

    def encode(self, texts: TrigramTexts, rows: NDArray[np.int64], side: str = SIDES[0]) -> _Array:
        """Return the vector of each text, zero for one without known trigrams.  # (B, D)"""
        config = self._config
        side = "" if config.is_shared else side
        plan = Plan.of(texts.keys(rows, config.vocabulary_size), len(rows), config.blocks())
        seen = texts.counts[texts.entries(rows)][:, None]
        for block, worked_on in zip(self._blocks[side], plan.blocks, strict=True):
            seen = block.run(seen, worked_on)
        last = config.blocks()[-1]
        whole = np.empty((len(rows) * last.windows, last.outputs), np.float32)
        whole[:] = np.maximum(self._blocks[side][-1].inside, 0)
        whole[plan.ends] = seen
        own = prefix(side)
        dense, bias = self._parameters[f"{own}dense"], self._parameters[f"{own}dense_bias"]
        found = whole.reshape(len(rows), dense.shape[1]) @ dense.T + bias
        found[texts.sizes()[rows] == 0] = 0
        return found

    def _prepared(self, side: str) -> list[_Block]:
        found = []
        outside = np.zeros(1, np.float32)
        for number, shape in enumerate(self._config.blocks(), start=1):
            kernel = self._parameters[f"{prefix(side)}kernel_{number}"]
            bias = self._parameters[f"{prefix(side)}bias_{number}"]
            inside = (bias + kernel.sum(axis=2) @ outside).astype(np.float32)
            found.append(_Block(_table(kernel, shape), bias, outside, inside))
            outside = np.maximum(inside, 0)
        return found


def _table(kernel: _Array, shape: BlockShape) -> _Array:
    """Return a cell's convolution as one matrix.  # (R·C_in, S·C_out)

    >>> _table(np.array([[[2.0, 3.0]]], np.float32), BlockShape(9, 1, 1, kernel=2, pooling=2)).tolist()
    [[2.0, 0.0], [3.0, 2.0], [0.0, 3.0]]
    """
    table = np.zeros((shape.reach, shape.inputs, shape.cell, shape.outputs), np.float32)
    for place in range(shape.cell):
        table[place : place + shape.kernel, :, place] = kernel.transpose(2, 1, 0)
    return table.reshape(shape.reach * shape.inputs, shape.cell * shape.outputs)


def _largest(rows: _Array, places: int) -> _Array:
    """Return the largest of each number over the places that a row holds, laid end to end.

    >>> _largest(np.array([[1, 5, 3, 2]], np.float32), 2).tolist()
    [[3.0, 5.0]]
    """
    width = rows.shape[1] // places
    found = rows[:, :width].copy()
    for place in range(1, places):
        np.maximum(found, rows[:, place * width : (place + 1) * width], out=found)
    return found
