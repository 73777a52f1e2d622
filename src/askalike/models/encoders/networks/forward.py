"""The forward pass of the RCNN's recurrence: equations in ``recurrence``.

Enters: packed words, parameters, a start, a plan. Leaves: a ``Tape``.
May import: buffers, lanes, packing, plan, rounding, torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from askalike.models.encoders.networks.buffers import empty
from askalike.models.encoders.networks.lanes import side_by_side
from askalike.models.encoders.networks.packing import Lane
from askalike.models.encoders.networks.plan import Plan, chunks, previous
from askalike.models.encoders.networks.rounding import is_rounding, round_up, with_more

__all__ = ["Tape", "Weights", "run_forward"]


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


def run_forward(words: Tensor, weights: Weights, start: Tensor, plan: Plan, is_kept: bool) -> Tape:
    """Run all steps, the lanes side by side.

    Args:
        words: packed word vectors (N, D_in).
        weights: the parameters.
        start: c¹ … cⁿ and h before the first word of each text, (R, n + 1, D).
        plan: where the words lie, order and gate.
        is_kept: keep λ and c of every word, as backward needs them.
    """
    size, kept = len(weights.output_bias), len(words) if is_kept else 0
    tape = Tape(
        empty(words, len(words), size),
        empty(words, kept, len(weights.gate_bias)),
        start[:, :-1].clone(memory_format=torch.contiguous_format),
        empty(words, kept, plan.order, size),
    )
    tape.opening[:, -1] += weights.output_bias
    works = [partial(_forward_lane, words, weights, start, plan, tape, lane) for lane in plan.packing.lanes]
    side_by_side(works, words.device)
    return tape


def input_bias(weights: Weights, plan: Plan) -> Tensor:
    """Return what is added to the projections of a word: b to the last, b^λ to the gate's.  # (n·D + G,)"""
    none = weights.output_bias.new_zeros((plan.order - 1) * len(weights.output_bias))
    return torch.cat([none, weights.output_bias, weights.gate_bias])


@dataclass(frozen=True, slots=True)
class _Memory:
    """Where c¹ … cⁿ lie, step by step: a view takes as long as a tenth of an operation on it, so all are taken at once.

    Args:
        own: c of the step, to be written.  # (b, n, D) each
        last: cⁿ of the step.  # (b, D)
        before: c of the step before.  # (b, n, D)
        before_shorter: c¹ … cⁿ⁻¹ of the step before.  # (b, n - 1, D)
    """

    own: Sequence[Tensor]
    last: Sequence[Tensor]
    before: Sequence[Tensor]
    before_shorter: Sequence[Tensor]

    @classmethod
    def of(cls, tape: Tape, lane: Lane, counts: list[int]) -> _Memory:
        """Return the places of a lane: a row for every word, or where nothing is to be kept, one for every text."""
        opening = tape.opening[lane.texts]
        if len(tape.memory):
            memory = tape.memory[lane.words]
            own, shorter = torch.split(memory, counts), torch.split(memory[:, :-1], counts)
            last = torch.split(memory[:, -1], counts)
            return cls(own, last, previous(opening, own), previous(opening[:, :-1], shorter))
        parts = {count: opening[:count] for count in set(counts)}
        lasts = {count: part[:, -1] for count, part in parts.items()}
        shorter_parts = {count: part[:, :-1] for count, part in parts.items()}
        own_parts = [parts[count] for count in counts]
        return cls(own_parts, [lasts[count] for count in counts], own_parts, [shorter_parts[c] for c in counts])


class _More:
    """Products of steps with a round number of rows."""

    def __init__(self, words: Tensor, states: Tensor, scratch: Tensor, gate_size: int) -> None:
        self._states = states
        self._found = empty(words, len(scratch), gate_size)

    def product(self, h: Tensor, recurrent: Tensor, *, is_first: bool) -> Tensor:
        """Return U^λ h of the texts of a step, h being consecutive rows of the states but for the first step."""
        rows = h if is_first else with_more(h, self._states)
        return torch.mm(rows, recurrent, out=self._found[: len(rows)])[: len(h)]


def _forward_lane(words: Tensor, weights: Weights, start: Tensor, plan: Plan, tape: Tape, lane: Lane) -> None:
    """Run the steps of a lane into its rows of the tape."""
    counts, inputs, size, gate_size = list(lane.counts), words[lane.words], start.shape[2], len(weights.gate_bias)
    h = torch.split(tape.states[lane.words], counts)
    before_h = previous(start[lane.texts, -1], h)
    c = _Memory.of(tape, lane, counts)
    bias = input_bias(weights, plan)
    recurrent = weights.recurrent.t().contiguous()  # 5 % faster in the small products of a step
    groups = chunks(counts)
    scratch = empty(words, round_up(max(chunk.size for chunk in groups)), len(bias))
    more = _More(words, tape.states, scratch, gate_size) if is_rounding(words) else None
    decay = words.new_full((1, 1, 1), plan.decay or 0.0)
    for chunk in groups:
        own, taken = counts[chunk.steps.start : chunk.steps.stop], inputs[chunk.words]
        taken = taken if more is None else with_more(taken, words)
        projected = torch.addmm(bias, taken, weights.projection.t(), out=scratch[: len(taken)])[: chunk.size]
        rows, raw = projected.split_with_sizes([plan.order * size, gate_size], 1)
        candidates = rows.view(-1, plan.order, size)
        candidate_blocks, later_blocks = torch.split(candidates, own), torch.split(candidates[:, 1:], own)
        raw_blocks = torch.split(raw, own)
        kept = tape.gates[lane.words][chunk.words] if len(tape.gates) else raw
        gate_blocks, wide_blocks = torch.split(kept, own), torch.split(kept[:, None], own)
        for i, step in enumerate(chunk.steps):
            if gate_size:
                if more is None:
                    raw_blocks[i].addmm_(before_h[step], recurrent)
                else:
                    raw_blocks[i].add_(more.product(before_h[step], recurrent, is_first=step == 0))
                torch.sigmoid(raw_blocks[i], out=gate_blocks[i])
            if plan.order > 1:
                later_blocks[i].add_(c.before_shorter[step])
            torch.lerp(candidate_blocks[i], c.before[step], wide_blocks[i] if gate_size else decay, out=c.own[step])
            torch.tanh(c.last[step], out=h[step])
