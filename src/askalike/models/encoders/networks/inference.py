"""Trained encoders of any kind through their torch networks: word vectors in, vectors out, in float32."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askalike.models.encoders.networks.encoder import from_arrays
from askalike.models.encoders.networks.packing import Packing
from askalike.models.encoders.settings import EncoderConfig


@contextmanager
def _exact() -> Iterator[None]:
    """Work without gradient and in float32 throughout, whatever a training around it has set."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with torch.no_grad():
            yield
    finally:
        torch.set_float32_matmul_precision(before)


class TorchRuntime:
    """An encoder that is ready to run; methods and arguments as those of ``runtime.Runtime``.

    Args:
        arrays: its parameters, with the names and shapes of ``config.shapes()``.

    Raises:
        SettingError: a parameter is missing, unknown or of another shape.
    """

    def __init__(self, config: EncoderConfig, arrays: Mapping[str, NDArray[np.floating]]) -> None:
        self.config: Final = config
        self._network = from_arrays(config, arrays)

    def pooled(
        self, vectors: NDArray[np.floating], places: NDArray[np.intp], lengths: NDArray[np.integer]
    ) -> NDArray[np.float32]:
        """Return one vector for each text.  # (B, D) float32"""
        with _exact():
            return self._network.pooled(*_packed(vectors, places, lengths)).numpy()

    def states(
        self, vectors: NDArray[np.floating], places: NDArray[np.intp], lengths: NDArray[np.integer]
    ) -> NDArray[np.float32]:
        """Return every state, zero after a text's end.  # (T, B, D) float32"""
        with _exact():
            words, packing = _packed(vectors, places, lengths)
            return packing.unpack(self._network.packed_states(words, packing), len(places)).numpy()

    def gates(
        self, vectors: NDArray[np.floating], places: NDArray[np.intp], lengths: NDArray[np.integer]
    ) -> NDArray[np.float32]:
        """Return nothing of each word: no kind that runs here weighs words.  # (T, B, 0) float32"""
        return np.zeros((*places.shape, 0), dtype=np.float32)


def _packed(
    vectors: NDArray[np.floating], places: NDArray[np.intp], lengths: NDArray[np.integer]
) -> tuple[Tensor, Packing]:
    """Return the packed word vectors (N, D_in) of texts, and their packing."""
    packing = Packing.of(torch.from_numpy(np.asarray(lengths, dtype=np.int64)))
    rows = torch.from_numpy(np.asarray(places, dtype=np.int64)).reshape(-1)[packing.rows()]
    return torch.from_numpy(np.asarray(vectors, dtype=np.float32))[rows], packing
