"""On another device the encoders give the numbers that the CPU gives, and mix no tensors: on one that is pretended."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle
from typing import Any

import pytest

from askalike.models.encoders.settings import POOLINGS, EncoderConfig

torch = pytest.importorskip("torch", reason="the encoders are trained with torch, which is not installed")

from tests.pretend_device import AWAY, Away, PretendDevice, moved  # noqa: E402

from askalike.models.encoders.networks import cpu  # noqa: E402
from askalike.models.encoders.networks.encoder import build  # noqa: E402
from askalike.models.encoders.networks.packing import Packing  # noqa: E402

NETWORKS = {
    "rcnn, vector gate": EncoderConfig("rcnn", 3, 5),
    "rcnn, scalar gate": EncoderConfig("rcnn", 3, 5, gate="scalar"),
    "rcnn, fixed decay": EncoderConfig("rcnn", 3, 5, gate="fixed"),
    "rcnn, constant decay": EncoderConfig("rcnn", 3, 5, gate="constant"),
    "lstm": EncoderConfig("lstm", 3, 5),
    "gru": EncoderConfig("gru", 3, 5),
    "gru of 2 layers": EncoderConfig("gru", 3, 5, layers=2),
    "cnn": EncoderConfig("cnn", 3, 5),
    "attention": EncoderConfig("attention", 3, 3, layers=2),
}


def results(encoder: Any, inputs: Any, lengths: Any, packing: Packing) -> tuple[Any, ...]:
    """Return the vectors, all gradients of their squares, the states and the gates."""
    pooled = encoder.pooled(packing.pack(inputs), packing)
    slopes = torch.autograd.grad(pooled.square().sum(), [inputs, *encoder.parameters()])
    with torch.no_grad():
        return pooled.detach(), *slopes, encoder.states(inputs, lengths), encoder.gates(inputs, lengths)


@pytest.mark.parametrize(("name", "pooling"), list(zip(NETWORKS, cycle(POOLINGS), strict=False)))
def test_an_encoder_mixes_no_devices(name: str, pooling: Any) -> None:
    config = replace(NETWORKS[name], pooling=pooling)
    inputs = torch.randn(6, 4, 3, generator=torch.Generator().manual_seed(5)).requires_grad_()
    lengths = torch.tensor([6, 2, 0, 6])
    here = results(build(config, seed=1), inputs, lengths, Packing.of(lengths))
    encoder = moved(build(config, seed=1))
    with PretendDevice():
        packing = encoder.packing(lengths).to(AWAY)  # made on the CPU
        away = results(encoder, inputs.detach().to(AWAY).requires_grad_(), lengths, packing)
    assert all(isinstance(tensor, Away) for tensor in away)
    torch.testing.assert_close([tensor.held for tensor in away], list(here))


@pytest.mark.parametrize("name", ["rcnn, vector gate", "lstm", "gru", "gru of 2 layers"])
def test_a_run_goes_on_on_the_device(name: str) -> None:
    config = NETWORKS[name]
    lengths, words = torch.tensor([2, 0, 3]), torch.randn(5, 3)

    def run(encoder: Any, packing: Packing, words: Any) -> Any:
        return encoder.go_on(words, packing, encoder.go_on(words, packing)[1])

    here = run(build(config, seed=1), Packing.of(lengths), words)
    with PretendDevice():
        packing = Packing.of(lengths).to(AWAY)
        away = run(moved(build(config, seed=1)), packing, words.to(AWAY))
    torch.testing.assert_close([tensor.detach().held for tensor in away], [tensor.detach() for tensor in here])


def test_the_pretended_device_refuses_what_a_gpu_refuses() -> None:
    with PretendDevice():
        away, here = torch.ones(2, device=AWAY), torch.ones(2)
        for mixed in (
            lambda: away + here,
            lambda: torch.mv(here[None], away),
            lambda: away.index_select(0, here.int()),
        ):
            with pytest.raises(RuntimeError, match="two devices"):
                mixed()
        with pytest.raises((RuntimeError, TypeError)):
            away.numpy()
        assert away[here.long() - 1].add(torch.tensor(1.0)).cpu().tolist() == [2, 2]


def test_on_a_gpu_a_batch_is_one_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    lengths = torch.full((4 * cpu.TEXTS_PER_LANE,), 3)
    encoder = build(EncoderConfig("rcnn", 3, 5))
    assert len(encoder.packing(lengths).lanes) == 2
    assert len(moved(encoder).packing(lengths).lanes) == 1  # though the lengths are on the CPU
