"""A batch of texts of different lengths as one matrix of words, without padding.

The texts are taken longest first. Step t then holds its texts in the first rows, and the words of all steps lie one
below the other: the layout of ``torch.nn.utils.rnn.PackedSequence``, without the texts that have no word.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

import torch
from torch import Tensor

from askalike.errors import SettingError

PADDED_TO: Final = 8
"""Texts are padded to a multiple of so many words: products in bfloat16 prepare themselves for every new shape."""


@dataclass(frozen=True, slots=True)
class Packing:
    """Where each word of a batch lies in the packed matrix of N words.

    Args:
        batch: texts in the batch, B, with those of length 0.
        order: texts with at least one word, longest first, equal lengths in their own order.  # (R,) int64
        lengths: words of each text of ``order``.  # (R,) int64
        counts: its texts with a word at step t: the first ``counts[t]`` of ``order``; never grows, every count is ≥ 1.
        step: place in its text of every packed word.  # (N,) int64
        place: place in ``order`` of the text of every packed word.  # (N,) int64

    >>> packing = Packing.of(torch.tensor([1, 0, 3]))
    >>> packing.order.tolist(), packing.counts, packing.step.tolist(), packing.place.tolist()
    ([2, 0], (2, 1, 1), [0, 0, 1, 2], [0, 1, 0, 0])
    """

    batch: int
    order: Tensor
    lengths: Tensor
    counts: tuple[int, ...]
    step: Tensor
    place: Tensor

    @classmethod
    def of(cls, lengths: Tensor) -> Packing:
        """Return the packing of texts of these lengths, (B,) whole numbers ≥ 0.

        It lies where the lengths lie, which may be the CPU though the network is elsewhere: ``to`` moves it.

        Raises:
            SettingError: a length below 0, or not one list of whole numbers.
        """
        if lengths.ndim != 1 or lengths.is_floating_point() or (len(lengths) and int(lengths.min()) < 0):
            raise SettingError(
                f"lengths {tuple(lengths.shape)} of {lengths.dtype}, but expected whole numbers ≥ 0, one for each text",
                "give the number of words of each text",
            )
        ordered, order = torch.sort(lengths.long(), descending=True, stable=True)
        texts = int((ordered > 0).sum())
        ordered, order = ordered[:texts], order[:texts]
        counts = texts - torch.bincount(ordered)[:-1].cumsum(0)
        step = torch.repeat_interleave(counts)
        place = torch.arange(len(step), device=step.device) - (counts.cumsum(0) - counts)[step]
        return cls(len(lengths), order, ordered, tuple(counts.tolist()), step, place)

    def to(self, device: torch.device) -> Packing:
        """Return the packing with its tensors on ``device``."""
        if self.order.device == device:
            return self
        moved = [tensor.to(device) for tensor in (self.order, self.lengths, self.step, self.place)]
        return Packing(self.batch, moved[0], moved[1], self.counts, moved[2], moved[3])

    @property
    def steps(self) -> int:
        """Return the words of the longest text."""
        return len(self.counts)

    def by_text(self) -> Tensor:
        """Return the packed rows of the words of each text of ``order``, one text after the other.  # (N,) int64"""
        return self.place.argsort(stable=True)

    def first_by_text(self) -> Tensor:
        """Return where each text of ``order`` begins in ``by_text``.  # (R,) int64"""
        return self.lengths.cumsum(0) - self.lengths

    def last(self) -> Tensor:
        """Return the packed row of the last word of each text of ``order``.  # (R,) int64"""
        rows = (self.step + 1 == self.lengths[self.place]).nonzero().view(-1)
        return torch.empty_like(rows).index_copy_(0, self.place[rows], rows)

    def previous(self) -> Tensor:
        """Return for every packed word the row of the word before it in a matrix of R rows for the start, then N.

        Row i < R stands for what is before text i of ``order``; packed row j is R + j.  # (N,) int64
        """
        rows = self.by_text()
        before = rows.roll(1) + len(self.order)
        before[self.first_by_text()] = torch.arange(len(self.order), device=rows.device)
        return torch.empty_like(rows).index_copy_(0, rows, before)

    def padded(self, packed: Tensor) -> Tensor:
        """Return packed (N, D) with zeros after each text's end.  # (B, T, D)"""
        padded = packed.new_zeros(self.batch * self._padded_steps, packed.shape[1])
        return padded.index_copy(0, self._padded_rows(), packed).view(self.batch, self._padded_steps, -1)

    def packed(self, padded: Tensor) -> Tensor:
        """Return what ``padded`` was given.  # (N, D)"""
        return padded.flatten(0, 1).index_select(0, self._padded_rows())

    def bars(self, padded: Tensor) -> Tensor:
        """Return -∞ for what pads each text, 0 for its words.  # (B, 1, T)"""
        lengths = self.restore(self.lengths)
        is_over = torch.arange(self._padded_steps, device=lengths.device) >= lengths.clamp_min(1)[:, None]
        return padded.new_zeros(is_over.shape).masked_fill(is_over, -inf)[:, None]

    @property
    def _padded_steps(self) -> int:
        return -(-self.steps // PADDED_TO) * PADDED_TO

    def _padded_rows(self) -> Tensor:
        """Return the row b · T + t of every packed word in a padded batch (B · T, …).  # (N,) int64"""
        return self.order[self.place] * self._padded_steps + self.step

    def restore(self, kept: Tensor) -> Tensor:
        """Return ``kept`` (R, …), in the order of ``order``, as (B, …) in the batch's; zero for empty texts."""
        return kept.new_zeros(self.batch, *kept.shape[1:]).index_copy(0, self.order, kept)
