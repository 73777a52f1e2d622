"""The loss of an adaptive softmax a few rows at a time is torch's own, and so are its gradients."""

from __future__ import annotations

from math import log
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="training needs torch, which is not installed")

from askalike.training import decoders as module  # noqa: E402
from askalike.training.decoders import adaptive_loss  # noqa: E402

SIZE, WORDS = 6, 40


def layer(cutoffs: list[int], size: int = SIZE) -> Any:
    torch.manual_seed(0)
    return torch.nn.AdaptiveLogSoftmaxWithLoss(size, WORDS, cutoffs, div_value=1.5).double()


def drawn(rows: int, most: int = WORDS, size: int = SIZE) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(1)
    states = 3 * torch.randn(rows, size, generator=generator, dtype=torch.float64)
    return states.requires_grad_(), torch.randint(0, most, (rows,), generator=generator)


def slopes(loss: Any, *of: Any) -> tuple[Any, ...]:
    found: tuple[Any, ...] = torch.autograd.grad(loss, of, allow_unused=True, materialize_grads=True)
    return found


@pytest.mark.parametrize("cutoffs", [[39], [8], [4, 9], [4, 9, 25]])
@pytest.mark.parametrize("rows", [1, 15, 16, 70])
@pytest.mark.parametrize("cells", [1, 40 * 17, 1 << 19])
def test_loss_and_gradients_are_those_of_torch(
    monkeypatch: pytest.MonkeyPatch, cutoffs: list[int], rows: int, cells: int
) -> None:
    monkeypatch.setattr(module, "_CELLS", cells)
    output, (states, targets) = layer(cutoffs), drawn(rows)
    expected, found = output(states, targets).loss, adaptive_loss(output, states, targets)
    torch.testing.assert_close(found, expected)
    learned = (states, *output.parameters())
    torch.testing.assert_close(slopes(2.5 * found, *learned), slopes(2.5 * expected, *learned))


def test_clusters_of_which_no_word_is_written_learn_nothing() -> None:
    output, (states, targets) = layer([8, 20]), drawn(30, most=8)
    found = adaptive_loss(output, states, targets)
    torch.testing.assert_close(found, output(states, targets).loss)
    head, *tail = slopes(found, *output.parameters())
    assert head.any()
    assert not any(slope.any() for slope in tail)


def test_equal_scores_are_worth_the_logarithm_of_their_number() -> None:
    output = layer([39])
    with torch.no_grad():
        output.head.weight.zero_()  # 39 words and one cluster of a single word
    states, targets = drawn(5, most=39)
    assert adaptive_loss(output, states, targets).item() == pytest.approx(log(40))


def test_words_that_are_as_good_as_impossible_have_a_finite_loss() -> None:
    output, (states, targets) = layer([8]), drawn(20)
    large = (1e4 * states).detach().requires_grad_()
    found = adaptive_loss(output, large, targets)
    torch.testing.assert_close(found, output(large, targets).loss)
    assert found.isfinite()
    assert slopes(found, large)[0].isfinite().all()


def test_a_loss_without_gradient_is_the_same() -> None:
    output, (states, targets) = layer([8]), drawn(20)
    expected = adaptive_loss(output, states, targets).item()
    with torch.no_grad():
        assert adaptive_loss(output, states, targets).item() == expected
