"""A batch of texts of different lengths as one matrix of words, without padding.

The texts are taken longest first. Step t then holds its texts in the first rows, and the words of all steps lie one
below the other: the layout of ``torch.nn.utils.rnn.PackedSequence``, without the texts that have no word.

Enters: lengths in words. Leaves: a ``Packing``, which knows where each word lies. May import: errors, torch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from askalike.errors import SettingError

__all__ = ["Packing"]


@dataclass(frozen=True, slots=True)
class Packing:
    """Where each word of a batch lies in the packed matrix of N words.

    Args:
        batch: texts in the batch, B, with those of length 0.
        order: texts with at least one word, longest first, equal lengths in their own order.  # (R,) int64
        counts: texts with a word at step t: the first ``counts[t]`` of ``order``; never grows.
        lengths: words of each text in the order of ``order``.  # (R,) int64
        starts: packed row of the first word of each step.  # (T,) int64

    >>> packing = Packing.of(torch.tensor([1, 0, 3]))
    >>> packing.order.tolist(), packing.counts, packing.rows(5).tolist()
    ([2, 0], (2, 1, 1), [2, 0, 7, 12])
    """

    batch: int
    order: Tensor
    counts: tuple[int, ...]
    lengths: Tensor
    starts: Tensor

    @classmethod
    def of(cls, lengths: Tensor) -> Packing:
        """Return the packing of texts of these lengths, (B,) whole numbers ≥ 0.

        Raises:
            SettingError: a length below 0, or not one list of whole numbers.
        """
        if lengths.ndim != 1 or lengths.is_floating_point() or (len(lengths) and int(lengths.min()) < 0):
            raise SettingError(
                f"lengths {tuple(lengths.shape)} of {lengths.dtype}, but expected whole numbers ≥ 0, one for each text",
                "give the number of words of each text",
            )
        sorted_lengths, order = torch.sort(lengths.long(), descending=True, stable=True)
        kept = int((sorted_lengths > 0).sum())
        ended = torch.bincount(sorted_lengths)[:-1] if kept else sorted_lengths[:0]
        counts = len(lengths) - ended.cumsum(0)
        starts = counts.cumsum(0) - counts
        return cls(len(lengths), order[:kept], tuple(counts.tolist()), sorted_lengths[:kept], starts)

    @property
    def is_full(self) -> bool:
        """Whether every text has the same length, ≥ 1, so that packing moves nothing."""
        return len(self.counts) > 0 and self.counts[-1] == self.batch

    def rows(self, width: int) -> Tensor:
        """Return the place t · width + b of every packed word, where b is its text.  # (N,) int64"""
        step, place = self._steps_and_places()
        return step * width + self.order[place]

    def previous(self) -> Tensor:
        """Return for every packed word the row of the word before it in a matrix of R rows for the start, then N.

        Row i < R stands for what is before text i of ``order``; packed row i is R + i.  # (N,) int64
        """
        step, place = self._steps_and_places()
        before = torch.cat([self.starts.new_zeros(1), self.starts[:-1] + len(self.order)])
        return before[step] + place

    def by_text(self) -> Tensor:
        """Return the packed rows of the words of each text of ``order``, one text after the other.  # (N,) int64"""
        place = torch.repeat_interleave(torch.arange(len(self.lengths), device=self.lengths.device), self.lengths)
        step = torch.arange(len(place), device=place.device) - self.first_by_text()[place]
        return self.starts[step] + place

    def first_by_text(self) -> Tensor:
        """Return where each text of ``order`` begins in ``by_text``.  # (R,) int64"""
        return self.lengths.cumsum(0) - self.lengths

    def last(self) -> Tensor:
        """Return the packed row of the last word of each text of ``order``.  # (R,) int64"""
        return self.starts[self.lengths - 1] + torch.arange(len(self.lengths), device=self.lengths.device)

    def pack(self, padded: Tensor) -> Tensor:
        """Return the words of ``padded`` (T, B, …) as (N, …); gradients flow back.

        Raises:
            SettingError: another number of texts, or fewer steps than the longest text has words.
        """
        if padded.ndim < 3 or padded.shape[1] != self.batch or len(padded) < len(self.counts):
            raise SettingError(
                f"inputs of shape {tuple(padded.shape)}, but expected ({len(self.counts)} or more, {self.batch}, …)",
                "give word vectors as (T, B, D_in), and lengths of at most T",
            )
        if self.is_full:
            return padded[: len(self.counts)].flatten(0, 1)
        return padded.flatten(0, 1).index_select(0, self.rows(self.batch))

    def unpack(self, packed: Tensor, steps: int) -> Tensor:
        """Return ``packed`` (N, …) as (steps, B, …), zero where a text has ended."""
        if self.is_full and steps == len(self.counts):
            return packed.reshape(steps, self.batch, *packed.shape[1:])
        padded = packed.new_zeros(steps * self.batch, *packed.shape[1:])
        return padded.index_copy(0, self.rows(self.batch), packed).view(steps, self.batch, *packed.shape[1:])

    def restore(self, kept: Tensor) -> Tensor:
        """Return ``kept`` (R, …), in the order of ``order``, as (B, …) in the batch's; zero for empty texts."""
        return kept.new_zeros(self.batch, *kept.shape[1:]).index_copy(0, self.order, kept)

    def _steps_and_places(self) -> tuple[Tensor, Tensor]:
        """Return the step t of every packed word, and the place of its text in ``order``.  # two (N,) int64"""
        counts = torch.tensor(self.counts, dtype=torch.int64, device=self.order.device)
        step = torch.repeat_interleave(torch.arange(len(counts), device=self.order.device), counts)
        return step, torch.arange(len(step), device=step.device) - self.starts[step]
