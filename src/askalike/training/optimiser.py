"""Adam or SGD, and moments that end at zero.

A parameter without a gradient for some time, such as the vector of a rare word, keeps moments that shrink by a factor
at each step: m ← 0.9 m. After some 700 steps they are denormal numbers, below 1.2e-38, for which processors take ten
times as long, and there they stay: nine tenths of four times the smallest number, rounded, is four times the smallest.

Enters: settings, parameters. Leaves: an optimiser, its moments. May import: loop_settings, torch.
Source: Adam: Kingma and Ba 2015 (ICLR).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import torch
from torch import Tensor, nn

from askalike.training.loop_settings import LoopSettings, SgdSettings

__all__ = ["CLEARED_EVERY", "clear_moments", "optimiser"]

CLEARED_EVERY: Final = 64
"""Steps between clearings. Moments shrink to 0.9^64 = 1e-3 meanwhile: from 1e-30 they cannot become denormal."""

_NOTHING: Final = 1e-30  # its square root is far below the ε = 1e-8 that Adam adds to it


def optimiser(settings: LoopSettings, learned: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Return what updates parameters by their gradients."""
    if isinstance(settings, SgdSettings):
        return torch.optim.SGD(learned, lr=settings.learning_rate, momentum=settings.momentum)
    return torch.optim.Adam(learned, lr=settings.learning_rate, fused=True)


@torch.no_grad()
def clear_moments(updater: torch.optim.Optimizer) -> None:
    """Set moments of at most 1e-30 to zero, which no update can tell from them."""
    for state in updater.state.values():
        for moment in state.values():
            if isinstance(moment, Tensor) and moment.dim():
                torch.hardshrink(moment, _NOTHING, out=moment)
