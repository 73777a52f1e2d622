"""Moments of parameters that have no gradient for long end at zero, and nothing else changes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from askalike.training.loop import CLEARED_EVERY, clear_moments, optimiser
from askalike.training.recipe import LoopSettings, SgdSettings

SMALLEST = torch.finfo(torch.float32).tiny  # smaller ones are denormal


def moments(updater: torch.optim.Optimizer) -> list[Tensor]:
    return [value for state in updater.state.values() for value in state.values() if value.dim()]


def trained(settings: LoopSettings, steps: int, *, is_cleared: bool) -> tuple[Tensor, list[Tensor], int]:
    """Return a row with a gradient in each step and one with a gradient in the first, their moments, and at how many
    steps a moment was denormal.
    """
    rows = nn.Parameter(torch.tensor([[1.0, -2.0], [3.0, 4.0]]))
    updater = optimiser(settings, [rows])
    denormal = 0
    for step in range(steps):
        rows.grad = torch.tensor([[0.1, 0.2], [0.3, -0.4] if step == 0 else [0.0, 0.0]])
        updater.step()
        if is_cleared and (step + 1) % CLEARED_EVERY == 0:
            clear_moments(updater)
        denormal += any(bool(((value != 0) & (value.abs() < SMALLEST)).any()) for value in moments(updater))
    return rows.detach(), moments(updater), denormal


@pytest.mark.parametrize("settings", [LoopSettings(), SgdSettings(momentum=0.9)])
def test_moments_without_a_gradient_become_zero_and_never_denormal(settings: LoopSettings) -> None:
    rows, kept, denormal = trained(settings, 1_500, is_cleared=True)
    plain, _, stuck = trained(settings, 1_500, is_cleared=False)
    assert denormal == 0
    assert stuck > 500
    assert not kept[0][1].any()
    assert kept[0][0].all()
    assert torch.equal(rows, plain)
