"""The words of a batch, projected, as a network takes them: step by step, or those of some texts at once.

All that depends on a word and not on a state is computed before a recurrence: for a padded batch in blocks of steps,
one product each; for words of a vocabulary once for each distinct word, and rows of that are gathered.

Enters: vectors, or distinct words and where they stand; the packing. Leaves: projected rows.
May import: packing, projection.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.models.encoders.numpy_runtime.packing import Packing
from askalike.models.encoders.numpy_runtime.projection import Parts, Projection

__all__ = ["ROWS_AT_ONCE", "GatheredWords", "PaddedWords", "Words"]

ROWS_AT_ONCE: Final = 2048
"""Words of a block: enough for a fast product, few enough to stay in the cache."""


class Words(Protocol):
    """The words of a batch."""

    @property
    def packing(self) -> Packing:
        """Return which texts have a word at each step."""
        ...

    def steps(self) -> Iterator[Parts]:
        """Yield the projected rows of each step.

        Yields:
            For each stack (P, counts[t], width), rows in the order of the packing; the next step may write over them.
        """
        ...

    def at(self, steps: NDArray[np.intp], places: NDArray[np.intp]) -> Parts:
        """Return the projected rows of some words.

        Args:
            steps: the place of each word in its text (N,).
            places: the place of its text in the packing's order (N,).

        Returns:
            For each stack (P, N, width), the caller's own.
        """
        ...


class PaddedWords:
    """Words given as vectors.

    Args:
        projection: the input weights.
        inputs: (T, B, D_in) float32; what stands after a text's end is not read.
        packing: of the batch.
    """

    def __init__(self, projection: Projection, inputs: NDArray[np.float32], packing: Packing) -> None:
        self.packing: Final = packing
        self._projection = projection
        self._batch = inputs.shape[1]
        self._flat = inputs.reshape(-1, inputs.shape[2])

    def steps(self) -> Iterator[Parts]:
        """Yield the rows of each step, projected in blocks."""
        order, counts, step = self.packing.order, self.packing.counts, 0
        while step < len(counts):
            last = min(len(counts), step + max(1, ROWS_AT_ONCE // counts[step]))
            of_block = counts[step:last]
            rows = np.concatenate([(step + i) * self._batch + order[:count] for i, count in enumerate(of_block)])
            block = self._projection.of(self._flat[rows])
            end = 0
            for count in of_block:
                begin, end = end, end + count
                yield tuple(part[:, begin:end] for part in block)
            step = last

    def at(self, steps: NDArray[np.intp], places: NDArray[np.intp]) -> Parts:
        """Return the rows of these words, projected now."""
        return self._projection.of(self._flat[steps * self._batch + self.packing.order[places]])


class GatheredWords:
    """Words given as rows of a table.

    Args:
        table: projections of the distinct words, for each stack (P, U, width).
        rows: the row of the table for the word of each text at each step (T, B), texts in the order of the batch.
        packing: of the batch.
    """

    def __init__(self, table: Parts, rows: NDArray[np.intp], packing: Packing) -> None:
        self.packing: Final = packing
        self._table = table
        self._rows = np.ascontiguousarray(rows[:, packing.order])

    def steps(self) -> Iterator[Parts]:
        """Yield the rows of each step, in buffers that the next one fills again."""
        batch = self._rows.shape[1]
        buffers = [np.empty(part.shape[0] * batch * part.shape[2], dtype=np.float32) for part in self._table]
        outs: Parts = ()
        shown = 0
        for step, count in enumerate(self.packing.counts):
            if count != shown:
                outs = tuple(
                    buffer[: part.shape[0] * count * part.shape[2]].reshape(part.shape[0], count, part.shape[2])
                    for buffer, part in zip(buffers, self._table, strict=True)
                )
                shown = count
            for part, out in zip(self._table, outs, strict=True):
                np.take(part, self._rows[step, :count], axis=1, out=out, mode="clip")
            yield outs

    def at(self, steps: NDArray[np.intp], places: NDArray[np.intp]) -> Parts:
        """Return copies of the rows of these words."""
        rows = self._rows[steps, places]
        return tuple(np.take(part, rows, axis=1) for part in self._table)
