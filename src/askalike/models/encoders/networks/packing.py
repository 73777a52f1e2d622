"""A batch of texts of different lengths as one matrix of words, without padding.

The texts are taken longest first. Step t then holds its texts in the first rows, and the words of all steps lie one
below the other: the layout of ``torch.nn.utils.rnn.PackedSequence``, without the texts that have no word.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from askalike.errors import SettingError


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

    @property
    def is_moving(self) -> bool:
        """Whether words must move to be packed: not so where every text has the same length ≥ 1."""
        return not self.counts or self.counts[-1] != self.batch

    def rows(self) -> Tensor:
        """Return the row t · B + b of every packed word in a padded batch (T · B, …).  # (N,) int64"""
        return self.step * self.batch + self.order[self.place]

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

    def pack(self, padded: Tensor) -> Tensor:
        """Return the words of ``padded`` (T, B, …) as (N, …); gradients flow back.

        Raises:
            SettingError: another number of texts, or fewer steps than the longest text has words.
        """
        if padded.ndim < 2 or padded.shape[1] != self.batch or len(padded) < self.steps:
            raise SettingError(
                f"inputs of shape {tuple(padded.shape)}, but expected ({self.steps} or more, {self.batch}, …)",
                "give words as (T, B, …), and lengths of at most T",
            )
        if self.is_moving:
            return padded.flatten(0, 1).index_select(0, self.rows())
        return padded[: self.steps].flatten(0, 1)

    def unpack(self, packed: Tensor, steps: int) -> Tensor:
        """Return ``packed`` (N, …) as (steps, B, …), zero where a text has ended."""
        if not self.is_moving and steps == self.steps:
            return packed.reshape(steps, self.batch, *packed.shape[1:])
        padded = packed.new_zeros(steps * self.batch, *packed.shape[1:])
        return padded.index_copy(0, self.rows(), packed).view(steps, self.batch, *packed.shape[1:])

    def restore(self, kept: Tensor) -> Tensor:
        """Return ``kept`` (R, …), in the order of ``order``, as (B, …) in the batch's; zero for empty texts."""
        return kept.new_zeros(self.batch, *kept.shape[1:]).index_copy(0, self.order, kept)
