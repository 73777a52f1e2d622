"""The siamese network in torch: some texts of a corpus to vectors, with gradient.

::

    x_1 = word-hashed text (V,);   x_{i+1} = relu(maxpool_{p_i}(b_i + W_i ∗ x_i));   v = W x_4 + b

exactly, and yet only where a text has something: ``plan`` and ``block`` say how. The fully connected layer is one
product for all texts, over the background with what differs from it put in.

Enters: texts as trigrams, rows. Leaves: tensors. May import: config, hashed, plan, block, errors, torch.
Source: Das et al. 2016 (ACL), section 3 and figure 2.
Reading: the paper says nothing of what parameters begin as. Here weights are drawn from N(0, 2/n), n the numbers that
an output is made of (He et al. 2015, ICCV), and biases are zero. ``even`` draws both evenly from ±1/√n, what Torch,
which has this loss by the same formula, had for these layers. But then what the network makes of nothing is most of
every vector: those of any two texts have a cosine of 0.98, and the learning rate of table 1 drives it to 1, from where
next to nothing leads away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from askalike.errors import SettingError
from askalike.models.siamese.block import run_block
from askalike.models.siamese.config import SIDES, Initial, SiameseConfig, prefix
from askalike.models.siamese.hashed import Hashed
from askalike.models.siamese.plan import Plan

__all__ = ["SiameseNetwork", "build", "from_arrays", "to_arrays"]

_SHARED = "shared"
_BATCH = 100


class SiameseNetwork(nn.Module):
    """One side, or two that share nothing.

    Args:
        config: the sizes.
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

    def encode(self, texts: Hashed, rows: NDArray[np.int64], side: str = SIDES[0]) -> Tensor:
        """Return the vector of each text, zero for one without known trigrams.  # (B, D)

        Args:
            texts: all texts.
            rows: those to encode.  # (B,)
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
    def encode_all(self, texts: Hashed, side: str = SIDES[0]) -> NDArray[np.float32]:
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
