"""From a config and a seed to an encoder, and between an encoder and its parameters as NumPy arrays.

Enters: a config; arrays. Leaves: an ``Encoder``; arrays. May import: config, errors, encoder, gru, initialisation.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from askalike.errors import SettingError
from askalike.models.encoders.config import EncoderConfig
from askalike.models.encoders.networks.encoder import Encoder
from askalike.models.encoders.networks.gru import torch_name
from askalike.models.encoders.networks.initialisation import initial_values

__all__ = ["build", "from_arrays", "to_arrays"]


def build(config: EncoderConfig, seed: int = 0) -> Encoder:
    """Return an untrained encoder; the same seed gives the same parameters."""
    return Encoder(config, initial_values(config, seed))


def to_arrays(encoder: Encoder) -> dict[str, NDArray[np.float32]]:
    """Return a copy of the parameters, with the names, shapes and order of ``config.shapes()``."""
    own = _parameters(encoder)
    return {name: own[name].detach().to("cpu", torch.float32, copy=True).numpy() for name in encoder.config.shapes()}


def from_arrays(config: EncoderConfig, arrays: Mapping[str, NDArray[np.floating]]) -> Encoder:
    """Return the encoder with these parameters, which are copied.

    Raises:
        SettingError: a parameter is missing, unknown or of another shape.
    """
    expected, found = config.shapes(), {name: array.shape for name, array in arrays.items()}
    if found != expected:
        raise SettingError(
            f"encoder parameters {found}, but expected {expected}",
            "use the parameters and the config that were saved together",
        )
    return Encoder(config, {name: torch.from_numpy(np.array(array, np.float32)) for name, array in arrays.items()})


def _parameters(encoder: Encoder) -> dict[str, nn.Parameter]:
    """Return the parameters by their names in ``config.shapes()``; torch's own recurrences have other names."""
    own = dict(encoder.network.named_parameters())
    return {name: own[name] if name in own else own[f"core.{torch_name(name)}"] for name in encoder.config.shapes()}
