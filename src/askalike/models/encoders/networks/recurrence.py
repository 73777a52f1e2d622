"""The recurrence of the RCNN, forward and backward by hand.

::

    λ_t    = σ(W^λ x_t + U^λ h_{t-1} + b^λ)                              vector or scalar; or a fixed λ
    c¹_t   = λ_t ⊙ c¹_{t-1} + (1 - λ_t) ⊙ (W_1 x_t)
    cᵏ_t   = λ_t ⊙ cᵏ_{t-1} + (1 - λ_t) ⊙ (cᵏ⁻¹_{t-1} + W_k x_t)        k = 2 … n
    h_t    = tanh(cⁿ_t + b)

Why by hand: autograd keeps every intermediate result, adds the gradients of the weights up step by step and allocates
anew for each operation, which costs more than the arithmetic. Here the input projections of several steps (candidates
and gate together) are one GEMM into a buffer that stays in the cache, each step is one GEMM and element-wise operations
in place, and backward needs only λ, c and h. With a^k = cᵏ⁻¹_{t-1} + W_k x_t, u^k = W_k x_t, z_t the gate before σ, and
gradients written d:

::

    dcⁿ_t  += dh_t ⊙ (1 - h_t²)
    dz_t    = λ_t ⊙ Σ_k dcᵏ_t ⊙ (cᵏ_{t-1} - cᵏ_t)        since λ(1 - λ)(c_{t-1} - a) = λ(c_{t-1} - c_t)
    da^k    = (1 - λ_t) ⊙ dcᵏ_t = du^k
    dcᵏ_{t-1} = λ_t ⊙ dcᵏ_t + da^{k+1}
    dh_{t-1}  = dz_t U^λ

b is added to u^n and to cⁿ_0: as λ and 1 - λ sum to one, every cⁿ_t then holds it, and no step has to add it.

Enters: packed words, parameters, a start. Leaves: packed states, gates, the carry at each text's end.
May import: torch. Source: Lei et al. 2016 (NAACL), section 3.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from askalike.models.encoders.networks.backward import Backward
from askalike.models.encoders.networks.forward import Tape, Weights, run_forward
from askalike.models.encoders.networks.plan import Plan

__all__ = ["Plan", "Result", "Weights", "recur"]


class Result(NamedTuple):
    """What a run of the recurrence leaves.

    Args:
        states: h of every packed word.  # (N, D)
        gates: λ of every packed word, without gradient; of no word where nothing was kept for backward.  # (N, G)
        carry: c¹ … cⁿ and h at the end of each text: the start of a run that goes on.  # (R, n + 1, D)
    """

    states: Tensor
    gates: Tensor
    carry: Tensor


def recur(words: Tensor, weights: Weights, plan: Plan, start: Tensor | None = None, is_kept: bool = False) -> Result:
    """Run the RCNN over packed words; gradients flow to words, weights and start.

    Args:
        words: packed word vectors (N, D_in).
        weights: the parameters.
        plan: where the words lie, order and gate.
        start: c¹ … cⁿ and h before the first word, texts in the order of the packing, (R, n + 1, D); None for zero.
        is_kept: return the gates too, of every word.
    """
    if start is None:
        start = words.new_zeros(len(plan.packing.order), plan.order + 1, len(weights.output_bias))
    tensors = (words, weights.projection, weights.recurrent, weights.gate_bias, weights.output_bias, start)
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        states, gates, carry = _Recurrence.apply(plan, *tensors)  # type: ignore[no-untyped-call]
    else:
        tape = run_forward(words, weights, start, plan, is_kept)
        states, gates, carry = tape.states, tape.gates, _carry(tape, weights, plan)
    last = states.index_select(0, plan.packing.last())
    return Result(states, gates if is_kept else gates[:0], torch.cat([carry, last[:, None]], dim=1))


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, plan: Plan, *tensors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        words, *parameters, start = tensors
        weights = Weights(*parameters)
        tape = run_forward(words, weights, start, plan, is_kept=True)
        ctx.plan = plan
        ctx.save_for_backward(*tensors, tape.states, tape.gates, tape.opening, tape.memory)
        ctx.mark_non_differentiable(tape.gates)
        ctx.set_materialize_grads(False)
        return tape.states, tape.gates, _carry(tape, weights, plan)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *arriving: Tensor | None) -> tuple[Tensor | None, ...]:
        words, *parameters, start, states, gates, opening, memory = ctx.saved_tensors
        weights, tape = Weights(*parameters), Tape(states, gates, opening, memory)
        d_states, _, d_carry = arriving
        run = Backward(words, weights, start, tape, ctx.plan)
        found = run.run(d_states, d_carry, ctx.needs_input_grad[1])
        d_output_bias, d_gate_bias = torch.split(found.biases, [len(weights.output_bias), len(weights.gate_bias)])
        return None, found.words, found.projection, found.recurrent, d_gate_bias, d_output_bias, found.start


def _carry(tape: Tape, weights: Weights, plan: Plan) -> Tensor:
    """Return c¹ … cⁿ at the end of each text.  # (R, n, D)"""
    carry = tape.memory.index_select(0, plan.packing.last()) if len(tape.memory) else tape.opening
    carry[:, -1] -= weights.output_bias
    return carry
