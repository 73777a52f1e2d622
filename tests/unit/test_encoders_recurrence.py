"""The recurrence by hand against the same equations left to autograd, in float64: results and every gradient.

Everything holds on the CPU, on the CPU with a round number of rows as in bfloat16, and on a GPU where there is one.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.pairwise import pairwise

torch = pytest.importorskip("torch", reason="the encoders are trained with torch, which is not installed")

from askalike.models.encoders.networks import cpu, rcnn  # noqa: E402
from askalike.models.encoders.networks.packing import Lane, Packing  # noqa: E402
from askalike.models.encoders.networks.rcnn import Plan, Weights, recur  # noqa: E402

LENGTHS = {"ragged": [3, 0, 5, 1, 5], "full": [4, 4, 4], "one": [1]}
GATES = ("vector", "scalar", "fixed", "none")
SIZE, INPUT = 5, 3


@pytest.fixture(params=["cpu", "cpu-rounded", *(["cuda"] if torch.cuda.is_available() else [])])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The device to run on."""
    if request.param == "cpu-rounded":
        monkeypatch.setattr(cpu, "GRAIN", 2)
        monkeypatch.setattr(rcnn, "is_rounding", lambda _: True)
    return torch.device(request.param.removesuffix("-rounded"))


def made(
    order: int, gate: str, lengths: list[int], lanes: int = 1, device: Any = "cpu"
) -> tuple[Any, Weights, Plan, Any]:
    """Return words, weights, plan and start of a run with random values."""
    generator = torch.Generator().manual_seed(7)

    def drawn(*shape: int) -> Any:
        return torch.randn(shape, dtype=torch.float64, generator=generator).to(device).requires_grad_()

    packing = Packing.of(torch.tensor(lengths), lanes).to(torch.device(device))
    gates = {"vector": SIZE, "scalar": 1}.get(gate, 0)
    decay = {"fixed": 0.6, "none": 0.0}.get(gate)
    weights = Weights(drawn(order * SIZE + gates, INPUT), drawn(gates, SIZE), drawn(gates), drawn(SIZE))
    start = drawn(len(packing.order), order + 1, SIZE)
    return drawn(sum(lengths), INPUT), weights, Plan(packing, order, decay), start


def by_autograd(words: Any, weights: Weights, plan: Plan, start: Any) -> tuple[Any, Any, Any]:
    """The equations, word for word, one step after the other."""
    runs = [by_autograd_in(lane, words, weights, plan, start) for lane in plan.packing.lanes]
    states, gates, carry = zip(*runs, strict=True)
    return torch.cat(states), torch.cat(gates), torch.cat(carry)


def by_autograd_in(lane: Lane, words: Any, weights: Weights, plan: Plan, start: Any) -> tuple[Any, Any, Any]:
    own = start[lane.texts]
    c, h = [own[:, k] for k in range(plan.order)], own[:, -1]
    states, gates, top = [], [], lane.top
    for count in lane.counts:
        projected = words[top : top + count] @ weights.projection.T
        top += count
        if len(weights.recurrent):
            raw = projected[:, plan.order * SIZE :] + h[:count] @ weights.recurrent.T + weights.gate_bias
            gate = torch.sigmoid(raw)
        else:
            gate = torch.full((count, 1), plan.decay, dtype=torch.float64, device=words.device)
        new = []
        for k in range(plan.order):
            candidate = projected[:, k * SIZE : (k + 1) * SIZE] + (c[k - 1][:count] if k else 0)
            new.append(gate * c[k][:count] + (1 - gate) * candidate)
        states.append(torch.tanh(new[-1] + weights.output_bias))
        gates.append(gate)
        c = [torch.cat([fresh, old[count:]]) for fresh, old in zip(new, c, strict=True)]
        h = torch.cat([states[-1], h[count:]])
    return torch.cat(states), torch.cat(gates), torch.stack([*c, h], dim=1)


@pytest.mark.parametrize(("order", "gate", "lengths", "lanes"), pairwise((1, 2, 3), GATES, list(LENGTHS), (1, 2)))
def test_results_and_gradients_are_those_of_autograd(
    order: int, gate: str, lengths: str, lanes: int, device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rcnn, "CHUNK_WORDS", 6)  # several chunks
    words, weights, plan, start = made(order, gate, LENGTHS[lengths], lanes, device)
    found, expected = recur(words, weights, plan, start, is_kept=True), by_autograd(words, weights, plan, start)
    torch.testing.assert_close(found.states, expected[0])
    torch.testing.assert_close(found.carry, expected[2])
    if len(weights.recurrent):
        torch.testing.assert_close(found.gates, expected[1].detach())
    slopes = [torch.randn_like(found.states), torch.randn_like(found.carry)]
    leaves = [leaf for leaf in (words, *parameters(weights), start) if leaf.numel()]
    torch.testing.assert_close(
        torch.autograd.grad([found.states, found.carry], leaves, slopes),
        torch.autograd.grad([expected[0], expected[2]], leaves, slopes),
    )


@pytest.mark.parametrize(("order", "gate"), list(zip((1, 2, 3, 2), GATES, strict=True)))
def test_without_gradient_the_results_are_the_same(order: int, gate: str, device: Any) -> None:
    words, weights, plan, start = made(order, gate, LENGTHS["ragged"], device=device)
    exactly = {"rtol": 0.0, "atol": 0.0} if device.type == "cpu" else {}  # two kernels may round differently
    kept = recur(words, weights, plan, start, is_kept=True)
    with torch.no_grad():
        free, asked = recur(words, weights, plan, start), recur(words, weights, plan, start, is_kept=True)
    for other in (free, asked):
        torch.testing.assert_close(other.states, kept.states.detach(), **exactly)
        torch.testing.assert_close(other.carry, kept.carry.detach())
    torch.testing.assert_close(asked.gates, kept.gates, **exactly)


def test_a_hand_worked_example(device: Any) -> None:
    # D_in = D = 1, order 2, λ = 0.5, W_1 = 1, W_2 = 2, b = 0, words 1 and 3:
    # c¹ = 0.5, then 0.25 + 1.5 = 1.75; c² = 0.5·(0 + 2) = 1, then 0.5·1 + 0.5·(0.5 + 6) = 3.75
    values = torch.tensor([[1.0], [2.0]]), torch.zeros(0, 1), torch.zeros(0), torch.zeros(1)
    words, weights = torch.tensor([[1.0], [3.0]], device=device), Weights(*(value.to(device) for value in values))
    result = recur(words, weights, Plan(Packing.of(torch.tensor([2], device=device)), 2, 0.5))
    torch.testing.assert_close(result.states.cpu(), torch.tensor([[1.0], [3.75]]).tanh())
    torch.testing.assert_close(result.carry[0, :2, 0].cpu(), torch.tensor([1.75, 3.75]))


def test_backward_twice_through_a_retained_graph_gives_the_same(device: Any) -> None:
    words, weights, plan, start = made(2, "vector", LENGTHS["ragged"], device=device)
    total = recur(words, weights, plan, start).states.sum()
    first = torch.autograd.grad(total, weights.projection, retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(total, weights.projection), first, rtol=0, atol=0)


def parameters(weights: Weights) -> tuple[Any, ...]:
    """Return the four parameters in their order."""
    return weights.projection, weights.recurrent, weights.gate_bias, weights.output_bias


def test_products_in_bfloat16_have_the_same_bits_with_a_round_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(3)
    lengths = torch.randint(1, 30, (90,), generator=generator)
    packing = Packing.of(lengths)
    words = torch.randn(int(lengths.sum()), 24, generator=generator)
    shapes = ((3 * 40, 24), (40, 40), (40,), (40,))
    weights = [torch.randn(shape, generator=generator) / 5 for shape in shapes]
    start = torch.zeros(90, 3, 40)

    def run() -> list[Any]:
        inputs = [one.clone().requires_grad_() for one in (words, *weights)]
        found = recur(inputs[0], Weights(*inputs[1:]), Plan(packing, 2), start, False)
        return [found.states, *torch.autograd.grad(found.states.sin().sum(), inputs)]

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        rounded = run()
        monkeypatch.setattr(rcnn, "is_rounding", lambda _: False)
        torch.testing.assert_close(rounded, run(), rtol=1e-5, atol=1e-5)
    finally:
        torch.set_float32_matmul_precision(before)
