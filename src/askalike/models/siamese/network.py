"""The siamese network in torch: some texts of a corpus to vectors, with gradient.

::

    x_1 = word-hashed text (V,);   x_{i+1} = relu(maxpool_{p_i}(b_i + W_i ∗ x_i));   v = W x_4 + b

exactly, and yet only over the cells that ``runtime.Plan`` names, each block with its gradient by hand::

    Z      (A, R·C_in)      what each cell sees: the background, and over it the places that differ
    T      (R·C_in, S·C_out)  T[(s + k, c), (s, d)] = W[d, c, k], zero elsewhere: a cell's convolution as one product
    y      = max_s (Z T + b)[:, s, :]

    dF     (A, S·C_out)     dy at the place that was the largest, zero elsewhere
    dT     = Zᵀ dF, dW its sum along the diagonals;  dZ = dF Tᵀ, taken to the places that were seen, the rest summed up
             for the background

The fully connected layer is one product for all texts, over the background with what differs from it put in.

Source: Das et al. 2016 (ACL), section 3 and figure 2.
Reading: the paper says nothing of what parameters begin as. Here weights are drawn from N(0, 2/n), n the numbers that
an output is made of (He et al. 2015, ICCV), and biases are zero. ``even`` draws both evenly from ±1/√n, what Torch,
which has this loss by the same formula, had for these layers. But then what the network makes of nothing is most of
every vector: those of any two texts have a cosine of 0.98, and the learning rate of table 1 drives it to 1, from where
next to nothing leads away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from askalike.errors import SettingError
from askalike.models.siamese.config import SIDES, Initial, SiameseConfig, prefix
from askalike.models.siamese.model import BlockPlan, Plan, TrigramTexts


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


_SHARED = "shared"
_BATCH = 100


class SiameseNetwork(nn.Module):
    """One side, or two that share nothing.

    Args:
        values: parameters by the names of ``config.shapes()``.
    """

    def __init__(self, config: SiameseConfig, values: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.config = config
        names = config.shapes()
        self.sides = nn.ModuleDict()
        for side in config.sides() or (_SHARED,):
            start = prefix("" if side == _SHARED else side)
            own = [name.removeprefix(start) for name in names if name.startswith(start)]
            self.sides[side] = nn.ParameterDict({name: nn.Parameter(values[start + name]) for name in own})

    def encode(self, texts: TrigramTexts, rows: NDArray[np.int64], side: str = SIDES[0]) -> Tensor:
        """Return the vector of each text, zero for one without known trigrams.  # (B, D)

        Args:
            side: ``question`` or ``answer``; the same where sides share their parameters.
        """
        own = cast("nn.ParameterDict", self.sides[_SHARED if self.config.is_shared else side])
        dense, device = own["dense"], own["dense"].device
        shapes = self.config.blocks()
        plan = Plan.of(texts.keys(rows, self.config.vocabulary_size), len(rows), shapes)
        seen = torch.from_numpy(texts.counts[texts.entries(rows)]).to(dense)[:, None]
        background = dense.new_zeros(1)
        for number, block in enumerate(plan.blocks, start=1):
            seen, background = run_block(seen, background, own[f"kernel_{number}"], own[f"bias_{number}"], block)
        everywhere = background.expand(len(rows) * shapes[-1].windows, -1)
        whole = everywhere.index_copy(0, torch.from_numpy(plan.ends).to(device), seen).view(-1, dense.shape[1])
        has_trigrams = torch.from_numpy(texts.sizes()[rows] > 0).to(device)
        vectors: Tensor = functional.linear(whole, dense, own["dense_bias"]) * has_trigrams[:, None]
        return vectors

    @torch.no_grad()
    def encode_all(self, texts: TrigramTexts, side: str = SIDES[0]) -> NDArray[np.float32]:
        """Return the vectors of all texts.  # (N, D)"""
        found = np.zeros((len(texts), self.config.output_size), np.float32)
        for begin in range(0, len(texts), _BATCH):
            rows = np.arange(begin, min(begin + _BATCH, len(texts)))
            found[rows] = self.encode(texts, rows, side).cpu().numpy()
        return found


def build(config: SiameseConfig, seed: int = 0, initial: Initial = "he") -> SiameseNetwork:
    """Return an untrained network; the same seed gives the same parameters, and each side its own.

    Args:
        initial: ``he`` or ``even``, see above.
    """
    generator = torch.Generator().manual_seed(seed)
    values: dict[str, Tensor] = {}
    inputs = 1.0
    for name, shape in config.shapes().items():
        if len(shape) > 1:
            inputs = float(np.prod(shape[1:]))  # and of the bias, which follows its weights
        if initial == "even":
            values[name] = (2 * torch.rand(shape, generator=generator) - 1) * inputs**-0.5
        elif len(shape) > 1:
            values[name] = torch.randn(shape, generator=generator) * (2 / inputs) ** 0.5
        else:
            values[name] = torch.zeros(shape)
    return SiameseNetwork(config, values)


def to_arrays(network: SiameseNetwork) -> dict[str, NDArray[np.float32]]:
    """Return a copy of the parameters, with the names, shapes and order of ``config.shapes()``."""
    own = {
        ("" if side == _SHARED else prefix(side)) + name: value
        for side, parameters in network.sides.items()
        for name, value in parameters.named_parameters()
    }
    names = network.config.shapes()
    return {name: own[name].detach().to("cpu", torch.float32, copy=True).numpy() for name in names}


def from_arrays(config: SiameseConfig, arrays: Mapping[str, NDArray[np.floating]]) -> SiameseNetwork:
    """Return the network with these parameters, which are copied.

    Raises:
        SettingError: a parameter is missing, unknown or of another shape.
    """
    expected, found = config.shapes(), {name: array.shape for name, array in arrays.items()}
    if found != expected:
        raise SettingError(
            f"siamese parameters {found}, but expected {expected}",
            "use the parameters and the config that were saved together",
        )
    return SiameseNetwork(config, {name: torch.from_numpy(np.array(one, np.float32)) for name, one in arrays.items()})
