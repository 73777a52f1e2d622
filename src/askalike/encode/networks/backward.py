"""The backward pass of the RCNN's recurrence: equations in ``recurrence``.

Enters: what forward left, and the gradients of its results. Leaves: the gradients of words, parameters and start.
May import: forward, plan, torch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from askalike.encode.networks.forward import Tape, Weights
from askalike.encode.networks.plan import Chunk, Plan

__all__ = ["Gradients", "run_backward"]


@dataclass(frozen=True, slots=True)
class Gradients:
    """Gradients of everything that enters the recurrence; that of the words only where it was asked for."""

    words: Tensor | None
    projection: Tensor
    recurrent: Tensor
    biases: Tensor  # b^n and then b^λ: (D + G,)
    start: Tensor


class _Walk:
    """The running gradients of c and h, from the last step to the first."""

    def __init__(self, tape: Tape, weights: Weights, plan: Plan, carry: Tensor | None) -> None:
        size = weights.output_bias.shape[0]
        self.order, self.recurrent = plan.order, weights.recurrent
        self.counts = list(plan.packing.counts)
        self.h = torch.split(tape.states, plan.blocks)
        self.c = [torch.split(part, plan.blocks) for part in tape.memory]
        self.gates = torch.split(tape.gates, self.counts)
        self.fixed = tape.states.new_full((1, 1), plan.decay or 0.0)
        self.dc = tape.states.new_zeros(plan.order, plan.texts, size) if carry is None else carry.clone()
        self.dh = tape.states.new_zeros(plan.texts, size)
        self._first = torch.empty_like(self.dh)
        self._second = torch.empty_like(self.dh)

    def step_back(self, step: int, arriving: Tensor | None, candidates: list[Tensor], raw: Tensor) -> None:
        """Take the gradient arriving at h_t; leave du¹ … duⁿ in ``candidates`` and dz in ``raw``."""
        count = self.counts[step]
        dh, dc = self.dh[:count], [part[:count] for part in self.dc]
        first = self._first[:count]
        gate = self.gates[step] if len(self.recurrent) else self.fixed
        if arriving is not None:
            dh.add_(arriving)
        torch.ops.aten.tanh_backward.grad_input(dh, self.h[step + 1], grad_input=first)
        dc[-1].add_(first)
        if len(self.recurrent):
            self._gate(step, gate, dc, raw)
            torch.mm(raw, self.recurrent, out=dh)
        else:
            dh.zero_()
        for k in range(self.order):
            torch.addcmul(dc[k], dc[k], gate, value=-1, out=candidates[k])
        for k in range(self.order - 1):
            torch.addcmul(candidates[k + 1], dc[k], gate, out=dc[k])
        dc[-1].mul_(gate)

    def _gate(self, step: int, gate: Tensor, dc: list[Tensor], raw: Tensor) -> None:
        """Leave λ ⊙ Σ_k dcᵏ_t ⊙ (cᵏ_{t-1} - cᵏ_t) in ``raw``."""
        count = self.counts[step]
        change, total = self._first[:count], self._second[:count]
        for k in range(self.order):
            torch.sub(self.c[k][step][:count], self.c[k][step + 1], out=change)
            if k:
                total.addcmul_(change, dc[k])
            else:
                torch.mul(change, dc[k], out=total)
        torch.mul(total if raw.shape[1] == total.shape[1] else total.sum(1, keepdim=True), gate, out=raw)


def run_backward(
    words: Tensor,
    weights: Weights,
    tape: Tape,
    plan: Plan,
    arriving: tuple[Tensor | None, Tensor | None],
    for_words: bool,
) -> Gradients:
    """Return the gradients.

    Args:
        words: packed word vectors (N, D_in).
        weights: the parameters.
        tape: what forward kept.
        plan: that of the forward pass.
        arriving: gradients of the states (N, D) and of c¹ … cⁿ at the end of each text (n, R, D); None for zero.
        for_words: whether the gradient of the words is wanted.
    """
    d_states, d_carry = arriving
    size, gate_size = weights.output_bias.shape[0], weights.recurrent.shape[0]
    walk = _Walk(tape, weights, plan, d_carry)
    found = Gradients(
        torch.empty_like(words) if for_words else None,
        torch.zeros_like(weights.projection),
        torch.zeros_like(weights.recurrent),
        words.new_zeros(size + gate_size),
        words.new_empty(plan.order + 1, plan.texts, size),
    )
    widths = [size] * plan.order + [gate_size]
    chunks = plan.chunks()
    scratch = words.new_empty(max((chunk.words for chunk in chunks), default=0), sum(widths))
    previous = plan.packing.previous() if gate_size and not plan.packing.is_full else None
    for chunk in reversed(chunks):
        counts = list(plan.packing.counts[chunk.first : chunk.end])
        slopes = scratch[: chunk.words]
        *candidates, raw = (torch.split(part, counts) for part in torch.split(slopes, widths, dim=1))
        d_h = None if d_states is None else torch.split(d_states[chunk.top : chunk.bottom], counts)
        for i in reversed(range(len(counts))):
            walk.step_back(chunk.first + i, None if d_h is None else d_h[i], [part[i] for part in candidates], raw[i])
        _accumulate(found, slopes, chunk, words, tape, previous)
        if found.words is not None:
            torch.mm(slopes, weights.projection, out=found.words[chunk.top : chunk.bottom])
    found.start[:-1] = walk.dc
    found.start[-1] = walk.dh
    found.biases[:size] += walk.dc[-1].sum(0)
    if d_carry is not None:
        found.biases[:size] -= d_carry[-1].sum(0)
    return found


def _accumulate(
    found: Gradients, slopes: Tensor, chunk: Chunk, words: Tensor, tape: Tape, previous: Tensor | None
) -> None:
    """Add the share of a chunk to the gradients of the parameters: one GEMM each."""
    found.projection.addmm_(slopes.t(), words[chunk.top : chunk.bottom])
    found.biases.add_(slopes[:, slopes.shape[1] - len(found.biases) :].sum(0))
    if len(found.recurrent):
        if previous is None:
            before = tape.states[chunk.top : chunk.bottom]
        else:
            before = tape.states.index_select(0, previous[chunk.top : chunk.bottom])
        found.recurrent.addmm_(slopes[:, -len(found.recurrent) :].t(), before)
