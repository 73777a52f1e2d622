"""On another device the objectives have the losses and gradients of the CPU, and mix no tensors: on a pretended one."""

from __future__ import annotations

from typing import Any

import pytest
from tests.tiny_training import STAGES, tiny_corpus

from askalike.models.encoders.settings import EncoderConfig
from askalike.training.recipe import OBJECTIVES

torch = pytest.importorskip("torch", reason="training needs torch, which is not installed")

from tests.pretend_device import Away, PretendDevice, moved  # noqa: E402

from askalike.models.encoders.networks.encoder import build  # noqa: E402
from askalike.training.decoders import (  # noqa: E402
    Decoding,
    Reconstruction,
)
from askalike.training.objectives import (  # noqa: E402
    Contrastive,
    MaxMargin,
    TextNetwork,
)

KINDS = {
    "decoding": Decoding,
    "max-margin": MaxMargin,
    "contrastive": Contrastive,
    "reconstruction": Reconstruction,
}
ENCODERS = {"decoding": ("rcnn", "lstm", "gru"), "reconstruction": ("gru", "attention")}
WITH_ENCODERS = [
    (name, kind) for name in KINDS for kind in ENCODERS.get(name, ("rcnn", "lstm", "gru", "cnn", "attention"))
]
CORPUS = tiny_corpus()


def objective(name: str, kind: Any) -> Any:
    vectors = torch.randn(int(CORPUS.texts.ids.max()) + 1, 4, generator=torch.Generator().manual_seed(1))
    config = EncoderConfig(kind, 4, 4 if kind == "attention" else 5)
    network = TextNetwork(build(config, seed=2), vectors, is_embedding_trained=True)
    return KINDS[name](network, CORPUS, OBJECTIVES[name](**STAGES[name]))


@pytest.mark.parametrize(("name", "kind"), WITH_ENCODERS)
def test_an_objective_mixes_no_devices(name: str, kind: str) -> None:
    here = objective(name, kind)
    batch = here.batches(0, 0)[0]
    here(batch).backward()
    with PretendDevice():
        there = moved(objective(name, kind))
        loss = there(batch)
        loss.backward()
        vectors, held_out = there.network.all_questions(CORPUS.texts), there.held_out()
        examples = there.examples()
    assert isinstance(loss, Away)
    torch.testing.assert_close(loss.detach().held, here(batch).detach())
    slopes = {label: value.grad for label, value in here.named_parameters()}
    assert {label for label, value in there.named_parameters() if value.grad is not None} == {
        label for label, slope in slopes.items() if slope is not None
    }
    for label, value in there.named_parameters():
        if value.grad is not None:
            torch.testing.assert_close(value.grad.held, slopes[label])
    assert vectors == pytest.approx(here.network.all_questions(CORPUS.texts), abs=1e-5)
    assert held_out == pytest.approx(here.held_out(), rel=1e-4)
    assert examples == here.examples()
