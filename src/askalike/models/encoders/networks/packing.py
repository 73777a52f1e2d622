"""A batch of texts of different lengths as one matrix of words, without padding.

The texts are taken longest first. Step t then holds its texts in the first rows, and the words of all steps lie one
below the other: the layout of ``torch.nn.utils.rnn.PackedSequence``, without the texts that have no word. A batch may
be cut into lanes, which are laid out in this way one after the other, so that each can be worked on by its own thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from askalike.errors import SettingError


@dataclass(frozen=True, slots=True)
class Lane:
    """Texts of a packing that are worked on together.

    Args:
        first: place in the packing's order of its first text.
        top: packed row of its first word.
        counts: its texts with a word at step t: its first ``counts[t]``; never grows, every count is ≥ 1.
    """

    first: int
    top: int
    counts: tuple[int, ...]

    @property
    def texts(self) -> slice:
        """Return the places of its texts in the packing's order."""
        return slice(self.first, self.first + self.counts[0])

    @property
    def words(self) -> slice:
        """Return its packed rows."""
        return slice(self.top, self.top + sum(self.counts))


@dataclass(frozen=True, slots=True)
class Packing:
    """Where each word of a batch lies in the packed matrix of N words.

    Args:
        batch: texts in the batch, B, with those of length 0.
        order: texts with at least one word, longest first, equal lengths in their own order.  # (R,) int64
        lengths: words of each text of ``order``.  # (R,) int64
        lanes: consecutive parts of ``order``.
        step: place in its text of every packed word.  # (N,) int64
        place: place in ``order`` of the text of every packed word.  # (N,) int64

    >>> packing = Packing.of(torch.tensor([1, 0, 3]))
    >>> packing.order.tolist(), packing.lanes[0].counts, packing.step.tolist(), packing.place.tolist()
    ([2, 0], (2, 1, 1), [0, 0, 1, 2], [0, 1, 0, 0])
    >>> Packing.of(torch.tensor([2, 2]), lanes=2).place.tolist()
    [0, 0, 1, 1]
    """

    batch: int
    order: Tensor
    lengths: Tensor
    lanes: tuple[Lane, ...]
    step: Tensor
    place: Tensor

    @classmethod
    def of(cls, lengths: Tensor, lanes: int = 1) -> Packing:
        """Return the packing of texts of these lengths, (B,) whole numbers ≥ 0.

        Args:
            lanes: cut the batch into at most so many parts, ≥ 1, with about the same number of words.

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
        made = tuple(_lanes(ordered.cpu(), lanes))
        counts = torch.tensor([count for lane in made for count in lane.counts], dtype=torch.int64)
        steps = torch.cat([torch.arange(len(lane.counts)) for lane in made] or [counts])
        firsts = torch.repeat_interleave(
            torch.tensor([lane.first for lane in made], dtype=torch.int64),
            torch.tensor([len(lane.counts) for lane in made], dtype=torch.int64),
        )
        step = torch.repeat_interleave(steps, counts)
        place = torch.arange(len(step)) - torch.repeat_interleave(counts.cumsum(0) - counts - firsts, counts)
        return cls(len(lengths), order, ordered, made, step.to(order.device), place.to(order.device))

    def to(self, device: torch.device) -> Packing:
        """Return the packing with its tensors on ``device``."""
        if self.order.device == device:
            return self
        moved = [tensor.to(device) for tensor in (self.order, self.lengths, self.step, self.place)]
        return Packing(self.batch, moved[0], moved[1], self.lanes, moved[2], moved[3])

    @property
    def steps(self) -> int:
        """Return the words of the longest text."""
        return len(self.lanes[0].counts) if self.lanes else 0

    @property
    def is_moving(self) -> bool:
        """Whether words must move to be packed: not so where every text has the same length ≥ 1, in one lane."""
        return len(self.lanes) != 1 or self.lanes[0].counts[-1] != self.batch

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


def _lanes(lengths: Tensor, wanted: int) -> list[Lane]:
    """Return at most ``wanted`` lanes of texts of these lengths, longest first, with about the same number of words."""
    before = lengths.cumsum(0)
    shares = before[-1:] * torch.arange(1, wanted) // wanted
    bounds = sorted({0, len(lengths), *(torch.searchsorted(before, shares) + 1).tolist()})
    found: list[Lane] = []
    for first, end in pairwise(bounds):
        counts = end - first - torch.bincount(lengths[first:end])[:-1].cumsum(0)
        found.append(Lane(first, int(before[first] - lengths[first]), tuple(counts.tolist())))
    return found
