"""The forward pass of the RCNN's recurrence: equations in ``recurrence``.

Enters: packed words, parameters, a start, a plan. Leaves: a ``Tape``. May import: plan, torch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from askalike.encode.networks.plan import Plan

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
    """What a forward pass leaves.

    Args:
        states: h before the first word, then of every word.  # (R + N, D)
        gates: λ of every word; of no word where nothing was to be kept.  # (N, G)
        memory: c¹ … cⁿ, the last with b added: before the first word and of every word, or where nothing was to be
            kept, at the end of each text.  # (n, R + N, D) or (n, R, D)
    """

    states: Tensor
    gates: Tensor
    memory: Tensor


def run_forward(words: Tensor, weights: Weights, start: Tensor, plan: Plan, is_kept: bool) -> Tape:
    """Run all steps.

    Args:
        words: packed word vectors (N, D_in).
        weights: the parameters.
        start: c¹ … cⁿ and h before the first word of each text, (n + 1, R, D).
        plan: where the words lie, order and gate.
        is_kept: keep λ and c of every word, as backward needs them.
    """
    size, gate_size = weights.output_bias.shape[0], weights.recurrent.shape[0]
    rows = plan.texts + len(words)
    states = words.new_empty(rows, size)
    states[: plan.texts] = start[-1]
    h = torch.split(states, plan.blocks)
    memory = words.new_empty(plan.order, rows if is_kept else plan.texts, size)
    memory[:, : plan.texts] = start[:-1]
    memory[-1, : plan.texts] += weights.output_bias
    gates = words.new_empty(len(words) if is_kept else 0, gate_size)
    fixed = words.new_full((1, 1), plan.decay or 0.0)
    bias = torch.cat([words.new_zeros((plan.order - 1) * size), weights.output_bias, weights.gate_bias])
    widths = [size] * plan.order + [gate_size]
    c = [torch.split(part, plan.blocks) if is_kept else [part[:count] for count in plan.blocks] for part in memory]
    chunks = plan.chunks()
    scratch = words.new_empty(max((chunk.words for chunk in chunks), default=0), len(bias))
    for chunk in chunks:
        counts = list(plan.packing.counts[chunk.first : chunk.end])
        projected = torch.addmm(
            bias, words[chunk.top : chunk.bottom], weights.projection.t(), out=scratch[: chunk.words]
        )
        *candidates, raw = (torch.split(part, counts) for part in torch.split(projected, widths, dim=1))
        kept = torch.split(gates[chunk.top : chunk.bottom], counts) if is_kept else raw
        for i, step in enumerate(range(chunk.first, chunk.end)):
            gate = fixed
            if gate_size:
                raw[i].addmm_(h[step][: counts[i]], weights.recurrent.t())
                gate = torch.sigmoid(raw[i], out=kept[i])
            for k in reversed(range(plan.order)):
                if k:
                    candidates[k][i].add_(c[k - 1][step][: counts[i]])
                torch.lerp(candidates[k][i], c[k][step][: counts[i]], gate, out=c[k][step + 1])
            torch.tanh(c[-1][step + 1], out=h[step + 1])
    return Tape(states, gates, memory)
