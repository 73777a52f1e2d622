"""The NumPy runtime gives what torch gives, for every kind, gate, order and pooling; skipped where torch is absent."""

from __future__ import annotations

import numpy as np
import pytest
from tests.naive_encoders import rows

from askalike.models.encoders.runtime import Runtime
from askalike.models.encoders.settings import GATES, POOLINGS, EncoderConfig

torch = pytest.importorskip("torch", reason="torch is not installed")
networks = pytest.importorskip("askalike.models.encoders.networks.encoder", reason="torch is not installed")

ENCODERS = [
    *[EncoderConfig("rcnn", 12, 20, order, gate) for order in (1, 2, 3) for gate in GATES],
    EncoderConfig("lstm", 12, 20),
    *[EncoderConfig("gru", 12, 20, layers=layers) for layers in (1, 2, 3)],
    *[EncoderConfig("cnn", 12, 20, order) for order in (1, 2, 3, 4)],
    *[EncoderConfig("attention", 20, 20, layers=layers) for layers in (1, 2, 3)],
]
NAMES = [f"{encoder.kind}-{encoder.order}-{encoder.gate}-{encoder.layers}" for encoder in ENCODERS]
LENGTHS = np.array([30, 0, 7, 1, 30, 12, 3, 100])


@pytest.mark.parametrize("encoder", ENCODERS, ids=NAMES)
def test_numpy_gives_what_torch_gives(encoder: EncoderConfig) -> None:
    chance = np.random.default_rng(7)
    arrays = {name: chance.uniform(-0.4, 0.4, shape).astype(np.float32) for name, shape in encoder.shapes().items()}
    inputs = chance.normal(0, 1, (LENGTHS.max(), len(LENGTHS), encoder.input_size)).astype(np.float32)
    both = torch.from_numpy(inputs), torch.from_numpy(LENGTHS)
    for pooling in POOLINGS:
        config = EncoderConfig.from_json({**encoder.to_json(), "pooling": pooling})
        trained, runtime = networks.from_arrays(config, arrays), Runtime(config, arrays)
        with torch.no_grad():
            pooled, states, gates = trained(*both), trained.states(*both), trained.gates(*both)
        np.testing.assert_allclose(runtime.pooled(*rows(inputs), LENGTHS), pooled, atol=1e-5, rtol=0, err_msg=pooling)
    np.testing.assert_allclose(runtime.states(*rows(inputs), LENGTHS), states, atol=1e-5, rtol=0)
    np.testing.assert_allclose(runtime.gates(*rows(inputs), LENGTHS), gates, atol=1e-5, rtol=0)
    assert runtime.gates(*rows(inputs), LENGTHS).shape == tuple(gates.shape)


def test_untrained_parameters_of_torch_run_in_numpy() -> None:
    config = EncoderConfig("rcnn", 12, 20)
    trained = networks.build(config, seed=3)
    runtime = Runtime(config, networks.to_arrays(trained))
    inputs = np.random.default_rng(8).normal(0, 1, (9, 2, 12)).astype(np.float32)
    lengths = np.array([4, 9])
    with torch.no_grad():
        expected = trained(torch.from_numpy(inputs), torch.from_numpy(lengths))
    np.testing.assert_allclose(runtime.pooled(*rows(inputs), lengths), expected, atol=1e-5, rtol=0)
