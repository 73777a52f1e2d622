"""The backward pass of the RCNN's recurrence: equations in ``recurrence``.

Enters: what forward left, and the gradients of its results. Leaves: the gradients of words, parameters and start.
May import: buffers, forward, lanes, packing, plan, rounding, torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from askalike.models.encoders.networks.buffers import empty
from askalike.models.encoders.networks.forward import Tape, Weights
from askalike.models.encoders.networks.lanes import side_by_side
from askalike.models.encoders.networks.packing import Lane
from askalike.models.encoders.networks.plan import Chunk, Plan, chunks, previous
from askalike.models.encoders.networks.rounding import is_rounding, round_up, with_more

__all__ = ["Backward", "Gradients"]


@dataclass(frozen=True, slots=True)
class Gradients:
    """Gradients of everything that enters the recurrence; that of the words only where it was asked for."""

    words: Tensor | None
    projection: Tensor
    recurrent: Tensor
    biases: Tensor  # b^n and then b^λ: (D + G,)
    start: Tensor


class _Walk:
    """The running gradients of c (R, n, D) and h (R, D) in a lane, from the last step to the first."""

    def __init__(self, run: Backward, lane: Lane, start: Tensor) -> None:
        counts, tape = list(lane.counts), run.tape
        self.recurrent = run.weights.recurrent
        self.h = torch.split(tape.states[lane.words], counts)
        self.before_h = previous(run.start[lane.texts, -1], self.h)
        self.c = torch.split(tape.memory[lane.words], counts)
        self.before_c = previous(tape.opening[lane.texts], self.c)
        self.gates = torch.split(tape.gates[lane.words], counts)
        self.fixed = start.new_full((1, 1), run.plan.decay or 0.0)
        self.dc, self.dh = start[lane.texts, :-1], start[lane.texts, -1]
        self._change = torch.empty_like(self.dc)
        self._total = torch.empty_like(self.dh)
        self._more = start.new_empty(round_up(len(self.dh)), start.shape[2]) if is_rounding(start) else None

    def step_back(self, step: int, arriving: Tensor | None, candidates: Tensor, raw: Tensor, raws: Tensor) -> None:
        """Take the gradient arriving at h_t; leave du¹ … duⁿ in ``candidates`` (b, n, D) and dz in ``raw`` (b, G).

        ``raw`` is a part of ``raws``.
        """
        count = len(self.h[step])
        dh, dc, total = self.dh[:count], self.dc[:count], self._total[:count]
        if arriving is not None:
            dh.add_(arriving)
        dc[:, -1].add_(torch.ops.aten.tanh_backward.grad_input(dh, self.h[step], grad_input=total))
        gate = self.fixed
        if len(self.recurrent):
            gate = self.gates[step]
            change = torch.sub(self.before_c[step], self.c[step], out=self._change[:count])
            torch.sum(change.mul_(dc), 1, out=total)
            torch.mul(total if raw.shape[1] == total.shape[1] else total.sum(1, keepdim=True), gate, out=raw)
            if self._more is None:
                torch.mm(raw, self.recurrent, out=dh)
            else:
                rows = with_more(raw, raws)
                dh.copy_(torch.mm(rows, self.recurrent, out=self._more[: len(rows)])[:count])
        else:
            dh.zero_()
        gate = gate[:, None]
        torch.addcmul(dc, dc, gate, value=-1, out=candidates)
        dc.mul_(gate)
        if dc.shape[1] > 1:
            dc[:, :-1].add_(candidates[:, 1:])

    def before(self, chunk: Chunk, whole: Tensor, room: Tensor | None) -> Tensor:
        """Return h_{t-1} for the words of a chunk, without a copy where they lie one below the other.

        Args:
            chunk: some steps.
            whole: the states of all words, of which those before a step are a part.
            room: where a copy is put; more rows may follow then, up to a round number. None for neither.
        """
        blocks = self.before_h[chunk.steps.start : chunk.steps.stop]
        count = len(blocks[-1])
        if chunk.steps.start and len(self.h[chunk.steps.start - 1]) == count:
            rows = blocks[0].as_strided((chunk.size, blocks[0].shape[1]), blocks[0].stride())
            return rows if room is None else with_more(rows, whole)
        if room is None:
            return blocks[0] if len(blocks) == 1 else torch.cat(blocks)
        torch.cat(blocks, out=room[: chunk.size])
        return room[: round_up(chunk.size)]


@dataclass(frozen=True, slots=True)
class Backward:
    """A run from the last step to the first.

    Args:
        words: packed word vectors (N, D_in).
        weights: the parameters.
        start: c¹ … cⁿ and h before the first word (R, n + 1, D).
        tape: what forward kept.
        plan: that of the forward pass.
    """

    words: Tensor
    weights: Weights
    start: Tensor
    tape: Tape
    plan: Plan

    def run(self, d_states: Tensor | None, d_carry: Tensor | None, is_for_words: bool) -> Gradients:
        """Return the gradients.

        Args:
            d_states: the gradient arriving at the states (N, D); None for zero.
            d_carry: the gradient arriving at c¹ … cⁿ at the end of each text (R, n, D); None for zero.
            is_for_words: whether the gradient of the words is wanted.
        """
        size = len(self.weights.output_bias)
        d_start = torch.zeros_like(self.start, memory_format=torch.contiguous_format)
        if d_carry is not None:
            d_start[:, :-1] = d_carry
        d_words = empty(self.words, *self.words.shape) if is_for_words else None
        lanes = self.plan.packing.lanes
        works = [partial(_backward_lane, self, lane, d_states, d_start, d_words) for lane in lanes]
        found = side_by_side(works, self.words.device)
        sums = [torch.stack(parts).sum(0) for parts in zip(*found, strict=True)] if found else self.nothing()
        projection, recurrent, biases = sums
        biases[:size] += d_start[:, -2].sum(0)
        if d_carry is not None:
            biases[:size] -= d_carry[:, -1].sum(0)
        return Gradients(d_words, projection, recurrent, biases, d_start)

    def nothing(self) -> list[Tensor]:
        """Return zero gradients of projection, recurrent and biases b, b^λ."""
        weights = self.weights
        biases = weights.projection.new_zeros(len(weights.output_bias) + len(weights.gate_bias))
        return [torch.zeros_like(weights.projection), torch.zeros_like(weights.recurrent), biases]


def _backward_lane(
    run: Backward, lane: Lane, d_states: Tensor | None, d_start: Tensor, d_words: Tensor | None
) -> list[Tensor]:
    """Return a lane's share in the gradients of projection, recurrent and biases; put its own into the others.

    Args:
        run: the whole run.
        lane: a part of the texts.
        d_states: the gradient arriving at the states.
        d_start: holds that of the carry; takes that of the start.
        d_words: takes that of the words; None where it is not wanted.
    """
    counts, order, size = list(lane.counts), run.plan.order, d_start.shape[2]
    walk = _Walk(run, lane, d_start)
    inputs, projection = run.words[lane.words], run.weights.projection
    arriving = None if d_states is None else torch.split(d_states[lane.words], counts)
    leaving = None if d_words is None else d_words[lane.words]
    _, d_recurrent, d_biases = run.nothing()
    d_projection = torch.zeros_like(projection.t())  # 7 % faster this way round
    groups = chunks(counts)
    rounds = is_rounding(d_start)
    most = max(chunk.size for chunk in groups)
    scratch = empty(d_start, round_up(most) if rounds else most, len(projection))
    room = d_start.new_zeros(len(scratch), size) if rounds and len(d_recurrent) else None
    d_taken = empty(d_start, len(scratch), inputs.shape[1]) if rounds and leaving is not None else None
    for chunk in reversed(groups):
        own, taken = counts[chunk.steps.start : chunk.steps.stop], inputs[chunk.words]
        taken = with_more(taken, run.words) if rounds else taken
        slopes = scratch[: len(taken)]
        slopes[chunk.size :].zero_()  # so that what follows the chunk's words adds nothing
        candidates, raws = slopes.split_with_sizes([order * size, len(d_recurrent)], 1)
        blocks = torch.split(candidates[: chunk.size].view(-1, order, size), own)
        raw_blocks = torch.split(raws[: chunk.size], own)
        for i, step in reversed(list(enumerate(chunk.steps))):
            walk.step_back(step, None if arriving is None else arriving[step], blocks[i], raw_blocks[i], raws)
        d_projection.addmm_(taken.t(), slopes)
        d_biases.add_(slopes[: chunk.size, (order - 1) * size :].sum(0))
        if len(d_recurrent):
            before = walk.before(chunk, run.tape.states, room)
            both = min(len(before), len(raws))
            d_recurrent.addmm_(raws[:both].t(), before[:both])
        if leaving is not None and d_taken is not None:
            leaving[chunk.words] = torch.mm(slopes, projection, out=d_taken[: len(slopes)])[: chunk.size]
        elif leaving is not None:
            torch.mm(slopes, projection, out=leaving[chunk.words])
    return [d_projection.t(), d_recurrent, d_biases]
