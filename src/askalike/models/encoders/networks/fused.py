"""A lane of the recurrence on a GPU: products by torch, everything else of a step in one Triton kernel.

The input projections of all words are one GEMM. With a vector gate a step is one GEMM (z_t += U^λ h_{t-1}) and one
kernel; with a scalar or a fixed λ all steps are one kernel. Backward likewise, with dh_{t-1} = dz_t U^λ as the product,
and the gradients of the weights as one GEMM each over all words.

Enters: what the functions of the same names in ``forward`` and ``backward`` take. Leaves: the same.
May import: backward, forward, packing, plan, torch; ``kernels``, and with it triton, when a lane is run.
Equations: ``recurrence``. Checked without a GPU: docs/decisions/0008.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import accumulate
from typing import Any, Final

import torch
from torch import Tensor

from askalike.models.encoders.networks.backward import Backward
from askalike.models.encoders.networks.forward import Tape, Weights, input_bias
from askalike.models.encoders.networks.packing import Lane
from askalike.models.encoders.networks.plan import Plan, previous

__all__ = ["backward_lane", "forward_lane"]

_BLOCK: Final = 256
"""Numbers of a text in one program at most, where programs can share a text."""

_OPTIONS: Final = {"num_stages": 1, "enable_fp_fusion": True}
"""Loads stay in the step that they are written in; a product and a sum are rounded once."""


def forward_lane(words: Tensor, weights: Weights, start: Tensor, plan: Plan, tape: Tape, lane: Lane) -> None:
    """Run the steps of a lane, into its rows of the tape."""
    projected = torch.addmm(input_bias(weights, plan), words[lane.words], weights.projection.t())
    own = start[lane.texts].contiguous()
    counts = list(lane.counts)
    kernel: Callable[..., None] = partial(
        _launch,
        "forward_steps",
        (projected, weights.recurrent.contiguous(), own, *_rows(tape, lane)),
        _where(lane, plan, words.device),
        _constants(weights, plan) | {"is_kept": len(tape.memory) > 0},
    )
    if len(weights.gate_bias) < 2:
        kernel(counts[0], 0, len(counts))
        return
    raws = torch.split(projected[:, plan.order * start.shape[2] :], counts)
    before = previous(own[:, -1], torch.split(tape.states[lane.words], counts))
    for step, count in enumerate(counts):
        raws[step].addmm_(before[step], weights.recurrent.t())
        kernel(count, step, step + 1)


def backward_lane(
    run: Backward, lane: Lane, d_states: Tensor | None, d_start: Tensor, d_words: Tensor | None
) -> list[Tensor]:
    """Return the lane's share in the gradients of projection, recurrent and biases."""
    weights, tape, order, size = run.weights, run.tape, run.plan.order, d_start.shape[2]
    words, projection, counts = run.words[lane.words], weights.projection, list(lane.counts)
    arriving = tape.states.new_zeros(len(words), size) if d_states is None else d_states[lane.words].contiguous()
    running = d_start[lane.texts]
    slopes = words.new_empty(len(words), len(projection))
    opening, memory, states, gates = _rows(tape, lane)
    kernel: Callable[..., None] = partial(
        _launch,
        "backward_steps",
        (arriving, states, gates, opening, memory, weights.recurrent.contiguous(), slopes, running),
        _where(lane, run.plan, words.device),
        _constants(weights, run.plan),
    )
    raws = slopes[:, order * size :]
    if raws.shape[1] < 2:
        kernel(counts[0], 0, len(counts))
    else:
        blocks = torch.split(raws, counts)
        for step, count in reversed(list(enumerate(counts))):
            kernel(count, step, step + 1)
            torch.mm(blocks[step], weights.recurrent, out=running[:count, -1])
    before = torch.cat(previous(run.start[lane.texts, -1], torch.split(states, counts)))
    if d_words is not None:
        torch.mm(slopes, projection, out=d_words[lane.words])
    return [slopes.t() @ words, raws.t() @ before, slopes[:, (order - 1) * size :].sum(0)]


def _rows(tape: Tape, lane: Lane) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the lane's rows of opening, memory, states and gates."""
    return tape.opening[lane.texts], tape.memory[lane.words], tape.states[lane.words], tape.gates[lane.words]


def _where(lane: Lane, plan: Plan, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the row of the first word of every step, from the lane's first, and the words of every text."""
    tops = list(accumulate(lane.counts[:-1], initial=0))
    return torch.tensor(tops).to(device), plan.packing.lengths[lane.texts]


def _constants(weights: Weights, plan: Plan) -> dict[str, Any]:
    """Return what the kernels are compiled for."""
    size, gate_size = len(weights.output_bias), len(weights.gate_bias)
    whole = 1 << (size - 1).bit_length()
    return {
        "order": plan.order,
        "size": size,
        "gate_size": gate_size,
        "decay": float(plan.decay or 0.0),
        "block": whole if gate_size == 1 else min(whole, _BLOCK),
    }


def _launch(
    name: str,
    tensors: tuple[Tensor, ...],
    where: tuple[Tensor, Tensor],
    constants: dict[str, Any],
    texts: int,
    first: int,
    last: int,
) -> None:
    """Run a kernel over the first ``texts`` texts of a lane, steps ``first`` to ``last``, on the tensors' device."""
    kernel = getattr(import_module("askalike.models.encoders.networks.kernels"), name)
    grid = (texts, -(-constants["size"] // constants["block"]))
    with torch.cuda.device_of(tensors[0]):  # type: ignore[no-untyped-call]  # a launch is on the current device
        kernel[grid](*tensors, *where, first, last, **constants, **_OPTIONS)
