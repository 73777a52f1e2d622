"""The forward pass of the RCNN's recurrence: equations in ``recurrence``.

Enters: packed words, parameters, a start, a plan. Leaves: a ``Tape``.
May import: buffers, lanes, packing, plan, rounding, torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from askalike.encode.networks.buffers import empty
from askalike.encode.networks.lanes import side_by_side
from askalike.encode.networks.packing import Lane
from askalike.encode.networks.plan import Plan, chunks, previous
from askalike.encode.networks.rounding import is_rounding, round_up, with_more

__all__ = ["ForwardLane", "Tape", "Weights", "forward_lane", "input_bias", "run_forward"]


@dataclass(frozen=True, slots=True)
class Weights:
    """The parameters of the RCNN.

    Args:
        projection: W_1 … W_n stacked, then W^λ.  # (n·D + G, D_in)
        recurrent: U^λ.  # (G, D), G = 0 where λ is fixed
        gate_bias: b^λ.  # (G,)
        output_bias: b.  # (D,)
    """

    projection: Tensor
    recurrent: Tensor
    gate_bias: Tensor
    output_bias: Tensor


@dataclass(frozen=True, slots=True)
class Tape:
    """What a forward pass leaves. The last c has b added.

    Args:
        states: h of every word.  # (N, D)
        gates: λ of every word; of no word where nothing was to be kept.  # (N, G)
        opening: c¹ … cⁿ before the first word, or where nothing was to be kept, at the end of each text.  # (R, n, D)
        memory: c¹ … cⁿ of every word; of no word where nothing was to be kept.  # (N, n, D)
    """

    states: Tensor
    gates: Tensor
    opening: Tensor
    memory: Tensor


ForwardLane = Callable[[Tensor, Weights, Tensor, Plan, Tape, Lane], None]
"""Runs the steps of a lane, given words, weights, start and plan, into its rows of the tape."""


def run_forward(
    words: Tensor, weights: Weights, start: Tensor, plan: Plan, is_kept: bool, run_lane: ForwardLane
) -> Tape:
    """Run all steps, the lanes side by side.

    Args:
        words: packed word vectors (N, D_in).
        weights: the parameters.
        start: c¹ … cⁿ and h before the first word of each text, (R, n + 1, D).
        plan: where the words lie, order and gate.
        is_kept: keep λ and c of every word, as backward needs them.
        run_lane: how a lane is run.
    """
    size, kept = len(weights.output_bias), len(words) if is_kept else 0
    tape = Tape(
        empty(words, len(words), size),
        empty(words, kept, len(weights.gate_bias)),
        start[:, :-1].clone(memory_format=torch.contiguous_format),
        empty(words, kept, plan.order, size),
    )
    tape.opening[:, -1] += weights.output_bias
    works = [partial(run_lane, words, weights, start, plan, tape, lane) for lane in plan.packing.lanes]
    side_by_side(works, words.device)
    return tape


def input_bias(weights: Weights, plan: Plan) -> Tensor:
    """Return what is added to the projections of a word: b to the last, b^λ to the gate's.  # (n·D + G,)"""
    none = weights.output_bias.new_zeros((plan.order - 1) * len(weights.output_bias))
    return torch.cat([none, weights.output_bias, weights.gate_bias])


class _More:
    """Products of steps with a round number of rows."""

    def __init__(self, words: Tensor, states: Tensor, scratch: Tensor, gate_size: int) -> None:
        self._states = states
        self._found = empty(words, len(scratch), gate_size)

    def product(self, h: Tensor, recurrent: Tensor, *, is_first: bool) -> Tensor:
        """Return U^λ h of the texts of a step, h being consecutive rows of the states but for the first step."""
        rows = h if is_first else with_more(h, self._states)
        return torch.mm(rows, recurrent, out=self._found[: len(rows)])[: len(h)]


def forward_lane(words: Tensor, weights: Weights, start: Tensor, plan: Plan, tape: Tape, lane: Lane) -> None:
    """Run the steps of a lane by torch's operations, into its rows of the tape."""
    counts, inputs, size, gate_size = list(lane.counts), words[lane.words], start.shape[2], len(weights.gate_bias)
    h = torch.split(tape.states[lane.words], counts)
    before_h = previous(start[lane.texts, -1], h)
    is_kept = len(tape.memory) > 0
    opening = tape.opening[lane.texts]
    c = torch.split(tape.memory[lane.words], counts) if is_kept else [opening[:count] for count in counts]
    before_c = previous(opening, c)
    gates = torch.split(tape.gates[lane.words], counts) if is_kept else []
    gate = words.new_full((1, 1), plan.decay or 0.0)
    bias = input_bias(weights, plan)
    recurrent = weights.recurrent.t().contiguous()  # 5 % faster in the small products of a step
    groups = chunks(counts)
    scratch = empty(words, round_up(max(chunk.size for chunk in groups)), len(bias))
    more = _More(words, tape.states, scratch, gate_size) if is_rounding(words) else None
    for chunk in groups:
        own, taken = counts[chunk.steps.start : chunk.steps.stop], inputs[chunk.words]
        taken = taken if more is None else with_more(taken, words)
        projected = torch.addmm(bias, taken, weights.projection.t(), out=scratch[: len(taken)])[: chunk.size]
        rows, raws = (torch.split(part, own) for part in projected.split_with_sizes([plan.order * size, gate_size], 1))
        for i, step in enumerate(chunk.steps):
            if gate_size:
                raw = (
                    raws[i].addmm_(before_h[step], recurrent)
                    if more is None
                    else raws[i].add_(more.product(before_h[step], recurrent, is_first=step == 0))
                )
                gate = torch.sigmoid(raw, out=gates[step] if is_kept else raw)
            candidates = rows[i].view(-1, plan.order, size)
            if plan.order > 1:
                candidates[:, 1:].add_(before_c[step][:, :-1])
            torch.lerp(candidates, before_c[step], gate[:, None], out=c[step])
            torch.tanh(c[step][:, -1], out=h[step])
