"""A recurrence over packed words as a loop of steps, for gradients on the CPU.

torch's own recurrences over packed words take step t as a slice of all words. The gradient of a slice is as large as
what it was cut from: zeros for all N words, added up at each of T steps, T · N rows of memory traffic for N rows of
work. Splitting once has one gradient, of N rows.

Enters: a step, what enters each step, counts. Leaves: states and carries. May import: packing, rounding, torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from askalike.models.encoders.networks.packing import Lane, Packing
from askalike.models.encoders.networks.rounding import is_rounding, round_far_up

__all__ = ["LaneRun", "in_lanes", "inward", "is_unrolled", "unrolled"]

LaneRun = Callable[[Tensor, Lane, Tensor | None], tuple[Tensor, Tensor]]
"""(words of a lane, the lane, the carry before it or None) → its states, the carry after it."""


def is_unrolled(words: Tensor) -> bool:
    """Return whether the loop is faster than torch's own recurrence: on the CPU, where a gradient is wanted."""
    return words.device.type == "cpu" and torch.is_grad_enabled()


def in_lanes(
    words: Tensor, packing: Packing, start: Tensor | None, stepwise: LaneRun, whole: LaneRun
) -> tuple[Tensor, Tensor]:
    """Return the states of all words (N, D), and what each text ended with (R, parts, D).

    Args:
        words: packed word vectors (N, D_in).
        packing: where they lie.
        start: the carry before the first word, texts in the order of the packing; None for zero.
        stepwise: runs a lane as a loop of steps, where that is faster.
        whole: runs it by torch's own recurrence.
    """
    run = stepwise if is_unrolled(words) else whole
    found = [run(words[lane.words], lane, None if start is None else start[lane.texts]) for lane in packing.lanes]
    states, carries = zip(*found, strict=True)
    return torch.cat(states), torch.cat(carries)


def inward(words: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return ``words · Wᵀ + b`` for all words (N, D_in) at once.  # (N, K)"""
    if not is_rounding(words):
        return functional.linear(words, weight, bias)
    return functional.linear(_rounded(words), weight, bias)[: len(words)]


def _rounded(rows: Tensor) -> Tensor:
    """Return a matrix with rows of zeros below it, up to a round number."""
    return functional.pad(rows, (0, 0, 0, round_far_up(len(rows)) - len(rows)))


def unrolled(
    step: Callable[[Tensor, Tensor], Tensor], inward: Tensor, counts: Sequence[int], start: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the states of all words, and what each text ended with.

    Args:
        step: (what enters it (n, …), the carry before it (n, parts, D)) → the carry after it (n, parts, D), of which
            the first part is the state.
        inward: what enters the steps, packed.  # (N, …)
        counts: texts with a word at each step; never grows.
        start: the carry before the first step.  # (counts[0], parts, D)

    Returns:
        states (N, D), packed; carries (counts[0], parts, D).
    """
    carry, states, ended = start, [], []
    for own in torch.split(inward, list(counts)):
        if len(own) < len(carry):
            carry, done = torch.split(carry, [len(own), len(carry) - len(own)])
            ended.append(done)
        carry = step(own, carry)
        states.append(carry[:, 0])
    return torch.cat(states), torch.cat([carry, *reversed(ended)])
