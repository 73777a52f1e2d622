"""One block in torch: convolution, max pooling, ReLU over the cells that a plan names, with its gradient by hand.

::

    Z      (A, R·C_in)      what each cell sees: the background, and over it the places that differ
    T      (R·C_in, S·C_out)  T[(s + k, c), (s, d)] = W[d, c, k], zero elsewhere: a cell's convolution as one product
    y      = max_s (Z T + b)[:, s, :]

    dF     (A, S·C_out)     dy at the place that was the largest, zero elsewhere
    dT     = Zᵀ dF, dW its sum along the diagonals;  dZ = dF Tᵀ, taken to the places that were seen, the rest summed up
             for the background

Enters: places that differ, their background, parameters. Leaves: windows that differ, and theirs.
May import: plan, torch. Source: Das et al. 2016 (ACL), sections 3.2 to 3.4.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from askalike.models.siamese.plan import BlockPlan

__all__ = ["run_block"]


def run_block(seen: Tensor, background: Tensor, kernel: Tensor, bias: Tensor, plan: BlockPlan) -> tuple[Tensor, Tensor]:
    """Return what leaves a block: the windows that were worked on, and what every other window is.

    Args:
        seen: places that differ from the background, in the order of the plan.  # (M, C_in)
        background: every other place.  # (C_in,)
        kernel: W.  # (C_out, C_in, K)
        bias: b.  # (C_out,)

    Returns:
        windows (N, C_out) and their background (C_out,).
    """
    everywhere = bias + kernel.sum(dim=2) @ background
    found: Tensor = _Cells.apply(seen, background, kernel, bias, plan)  # type: ignore[no-untyped-call]
    if plan.slots is not None:
        filled = everywhere.expand(plan.windows * plan.shape.cells, -1)
        filled = filled.index_copy(0, torch.from_numpy(plan.slots).to(found.device), found)
        found = filled.view(plan.windows, plan.shape.cells, plan.shape.outputs).max(dim=1).values
    return found.relu(), everywhere.relu()


class _Cells(torch.autograd.Function):
    """The largest of each cell's convolution."""

    @staticmethod
    def forward(ctx: Any, seen: Tensor, background: Tensor, kernel: Tensor, bias: Tensor, plan: BlockPlan) -> Tensor:
        shape = plan.shape
        source, target = (torch.from_numpy(array).to(seen.device) for array in (plan.source, plan.target))
        inputs = background.repeat(plan.cells * shape.reach, 1)
        inputs.index_copy_(0, target, seen.index_select(0, source))
        table = _table(kernel, shape.cell)
        inputs = inputs.view(plan.cells, len(table))
        found = torch.addmm(bias.repeat(shape.cell), inputs, table).view(plan.cells, shape.cell, shape.outputs)
        largest, where = found.max(dim=1)
        ctx.save_for_backward(inputs, table, where, source, target)
        ctx.plan, ctx.places = plan, len(seen)
        return largest

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        inputs, table, where, source, target = ctx.saved_tensors
        shape, cells = ctx.plan.shape, ctx.plan.cells
        full = slope.new_zeros(cells, shape.cell, shape.outputs).scatter_(1, where[:, None], slope[:, None])
        full = full.view(cells, table.shape[1])
        kernel = _along_diagonals(inputs.t() @ full, shape.cell, (shape.outputs, shape.inputs, shape.kernel))
        seen = background = None
        if ctx.needs_input_grad[0] or ctx.needs_input_grad[1]:
            back = (full @ table.t()).view(cells * shape.reach, shape.inputs)
            seen = slope.new_zeros(ctx.places, shape.inputs).index_add_(0, source, back.index_select(0, target))
            background = back.index_fill_(0, target, 0).sum(0)
        return seen, background, kernel, slope.sum(0), None


def _table(kernel: Tensor, cell: int) -> Tensor:
    """Return T.  # (R·C_in, S·C_out)

    >>> _table(torch.tensor([[[2.0, 3.0]]]), cell=2).tolist()
    [[2.0, 0.0], [3.0, 2.0], [0.0, 3.0]]
    """
    outputs, inputs, width = kernel.shape
    table = kernel.new_zeros(cell + width - 1, inputs, cell, outputs)
    for place in range(cell):
        table[place : place + width, :, place] = kernel.permute(2, 1, 0)
    return table.view(-1, cell * outputs)


def _along_diagonals(slope: Tensor, cell: int, shape: tuple[int, int, int]) -> Tensor:
    """Return the gradient of a kernel of ``shape`` from that of its table.  # (C_out, C_in, K)

    >>> _along_diagonals(torch.tensor([[1.0, 5.0], [2.0, 3.0], [5.0, 4.0]]), 2, (1, 1, 2)).tolist()  # 1 + 3, 2 + 4
    [[[4.0, 6.0]]]
    """
    outputs, inputs, width = shape
    table = slope.view(cell + width - 1, inputs, cell, outputs)
    found = slope.new_zeros(width, inputs, outputs)
    for place in range(cell):
        found += table[place : place + width, :, place]
    return found.permute(2, 1, 0)
