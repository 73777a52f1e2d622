"""An encoder to be trained: a network and its pooling, first values from a seed, parameters to and from NumPy arrays.

First values, where nothing else is asked for. RCNN and CNN: weights uniform in ±√(6 / (inputs + outputs)) of each block
W_k, W^λ, U^λ, biases zero. LSTM
and GRU: everything uniform in ±1/√D, as ``torch.nn.LSTM`` has it. Attention: W^q, W^k and W^v orthogonal, weights and
biases of the position-wise part uniform in ±0.1, norms with gain 1 and bias 0.

Source: poolings: Lei et al. 2016 (NAACL), section 4.1 (last and mean), Joshi's thesis 2016, chapter 7 (states
normalised first); first values: Glorot and Bengio 2010 (AISTATS), equation 16, the documentation of
``torch.nn.LSTM``, Zhang and Wu 2018 (AAAI), "Experimental Setup", Saxe et al. 2014 (ICLR) for orthogonal ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import sqrt
from typing import Final, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from askalike.errors import SettingError
from askalike.models.encoders.networks.attention import Attention
from askalike.models.encoders.networks.convolution import Cnn, Patterns
from askalike.models.encoders.networks.packing import Packing
from askalike.models.encoders.networks.recurrent import Gru, Lstm, Rcnn, Recurrent
from askalike.models.encoders.settings import EncoderConfig, Kind, Pooling

_TINY = 1e-12


def last(states: Tensor, packing: Packing) -> Tensor:
    """Return h_T: the state after the last word.

    >>> last(torch.tensor([[1.0], [2.0], [3.0]]), Packing.of(torch.tensor([2, 1]))).tolist()
    [[3.0], [2.0]]
    """
    return packing.restore(states.index_select(0, packing.last()))


def normalised_last(states: Tensor, packing: Packing) -> Tensor:
    """Return h_T / |h_T|, so that titles and bodies count the same; a zero state stays zero.

    >>> normalised_last(torch.tensor([[9.0, 9.0], [0.0, 0.5]]), Packing.of(torch.tensor([2]))).tolist()
    [[0.0, 1.0]]
    """
    return functional.normalize(last(states, packing), eps=_TINY)


def mean(states: Tensor, packing: Packing) -> Tensor:
    """Return (1/T) Σ_t h_t.

    >>> mean(torch.tensor([[1.0], [2.0], [3.0]]), Packing.of(torch.tensor([2, 1]))).tolist()
    [[2.0], [2.0]]
    """
    return _gather(states, packing, "mean")


def normalised_mean(states: Tensor, packing: Packing) -> Tensor:
    """Return (1/T) Σ_t h_t / |h_t|: every word counts the same, however large its state; a zero state stays zero.

    >>> normalised_mean(torch.tensor([[3.0, 4.0], [0.0, 0.5]]), Packing.of(torch.tensor([2]))).tolist()
    [[0.30000001192092896, 0.8999999761581421]]
    """
    if len(states) == 0:
        return packing.restore(states)
    norms = torch.linalg.vector_norm(states, dim=1).clamp_min(_TINY)
    rows = packing.by_text()
    shares = norms.reciprocal().index_select(0, rows) / torch.repeat_interleave(packing.lengths, packing.lengths)
    return packing.restore(
        functional.embedding_bag(rows, states, packing.first_by_text(), mode="sum", per_sample_weights=shares)
    )


def largest(states: Tensor, packing: Packing) -> Tensor:
    """Return max_t h_t in each dimension.

    >>> largest(torch.tensor([[-1.0], [2.0], [-3.0]]), Packing.of(torch.tensor([2, 1]))).tolist()
    [[-1.0], [2.0]]
    """
    return _gather(states, packing, "max")


def _gather(states: Tensor, packing: Packing, mode: Literal["mean", "max"]) -> Tensor:
    if len(states) == 0:
        return packing.restore(states)
    return packing.restore(functional.embedding_bag(packing.by_text(), states, packing.first_by_text(), mode=mode))


POOLS: Final[dict[Pooling, Callable[[Tensor, Packing], Tensor]]] = {
    "last": last,
    "normalised-last": normalised_last,
    "mean": mean,
    "normalised-mean": normalised_mean,
    "max": largest,
}
"""Pooling → its function of (states, packing)."""


def initial_values(config: EncoderConfig, seed: int) -> dict[str, Tensor]:
    """Return float32 values with the names and shapes of ``config.shapes()``; the same seed gives the same values.

    >>> initial_values(EncoderConfig("cnn", 1, 1, order=1), seed=0)["bias"]
    tensor([0.])
    """
    generator = torch.Generator().manual_seed(seed)
    return {name: _drawn(config, name, shape, generator) for name, shape in config.shapes().items()}


def _drawn(config: EncoderConfig, name: str, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    bounds: Tensor | float
    if config.kind in ("lstm", "gru"):
        bounds = 1 / sqrt(config.hidden_size)
    elif config.kind == "attention":
        if "_norm_" in name:
            return torch.stack([torch.ones(shape[1]), torch.zeros(shape[1])])
        if name.startswith("attention_"):
            return torch.cat([nn.init.orthogonal_(torch.empty(shape[1:] * 2), generator=generator) for _ in range(3)])
        bounds = 0.1
    elif len(shape) == 1:
        bounds = 0.0  # drawn too: the numbers that follow stay what they were
    else:
        stacked = [config.hidden_size] * config.order + [config.gate_size] if name == "input" else [shape[0]]
        bounds = torch.cat([torch.full((rows, 1), sqrt(6 / (rows + shape[1]))) for rows in stacked])
    return (torch.rand(shape, generator=generator) * 2 - 1) * bounds


def _gated(config: EncoderConfig, values: Mapping[str, Tensor]) -> nn.Module:
    return Patterns(config, values) if config.gate == "constant" else Rcnn(config, values)


NETWORKS: Final[dict[Kind, Callable[[EncoderConfig, Mapping[str, Tensor]], nn.Module]]] = {
    "rcnn": _gated,
    "lstm": Lstm,
    "gru": Gru,
    "cnn": Cnn,
    "attention": Attention,
}
"""Kind → its network, made with (config, values of its parameters)."""


class EncoderNetwork(nn.Module):
    """An encoder that can be trained; a text of length 0 has the zero vector."""

    def __init__(self, config: EncoderConfig, values: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.config: Final = config
        self.network = NETWORKS[config.kind](config, values)

    def pooled(self, words: Tensor, packing: Packing) -> Tensor:
        """Return one vector for each text (B, D), given its packed word vectors (N, D_in)."""
        return POOLS[self.config.pooling](self.packed_states(words, packing), packing)

    def go_on(self, words: Tensor, packing: Packing, start: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return packed states (N, D), and what a later run of a network like this one can start from.

        Args:
            start: what a run left for each text of the batch (B, parts, D); None for zero.

        Returns:
            states; the carry, (B, parts, D), in the order of the batch, zero for a text of length 0.

        Raises:
            SettingError: the network has no state, as a CNN or attention.
        """
        if not isinstance(self.network, Recurrent):
            raise SettingError(
                f"an encoder of the kind {self.config.kind} and gate {self.config.gate} keeps no state that a decoder "
                "could start from",
                "pre-train an lstm, a gru or an rcnn with another gate than constant, or leave pre-training out",
            )
        begin = None if start is None else start.index_select(0, packing.order)
        states, carry = self.network.go_on(words, packing, begin)
        return states, packing.restore(carry)

    def packed_states(self, words: Tensor, packing: Packing) -> Tensor:
        """Return the state of every packed word (N, D)."""
        if len(words) == 0:
            return words.new_zeros(0, self.config.hidden_size)
        states: Tensor = self.network(words, packing)
        return states


def build(config: EncoderConfig, seed: int = 0, gate_bias: float = 0.0, spread: float = 0.0) -> EncoderNetwork:
    """Return an untrained encoder; the same seed gives the same parameters.

    Args:
        gate_bias: what is added to the first b^λ of a gated RCNN.
        spread: all parameters are drawn evenly from ± this; 0 draws them as the module says.

    >>> values = to_arrays(build(EncoderConfig("rcnn", 20, 30), spread=0.05))
    >>> bool(all(0.04 < abs(array).max() <= 0.05 for array in values.values()))
    True
    """
    values = initial_values(config, seed)
    if spread:
        generator = torch.Generator().manual_seed(seed)
        values = {
            name: (torch.rand(value.shape, generator=generator) * 2 - 1) * spread for name, value in values.items()
        }
    if config.gate_size:
        values["gate_bias"] = values["gate_bias"] + gate_bias
    return EncoderNetwork(config, values)


def to_arrays(encoder: EncoderNetwork) -> dict[str, NDArray[np.float32]]:
    """Return a copy of the parameters, with the names, shapes and order of ``config.shapes()``."""
    own = dict(encoder.network.named_parameters())
    return {name: own[name].detach().to("cpu", torch.float32, copy=True).numpy() for name in encoder.config.shapes()}


def from_arrays(config: EncoderConfig, arrays: Mapping[str, NDArray[np.floating]]) -> EncoderNetwork:
    """Return the encoder with these parameters, which are copied."""
    config.check_shapes(arrays)
    return EncoderNetwork(
        config, {name: torch.from_numpy(np.array(array, np.float32)) for name, array in arrays.items()}
    )


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


class EncoderRuntime:
    """An encoder that is ready to run.

    It is given the vectors of words, text after text (N, D_in), and how many words each text has (B,), 0 for a text
    with the zero vector.

    Args:
        arrays: its parameters, with the names and shapes of ``config.shapes()``.

    Raises:
        SettingError: a parameter is missing, unknown or of another shape.
    """

    def __init__(self, config: EncoderConfig, arrays: Mapping[str, NDArray[np.floating]]) -> None:
        self.config: Final = config
        self._network = from_arrays(config, arrays)

    def pooled(self, words: NDArray[np.floating], lengths: NDArray[np.integer]) -> NDArray[np.float32]:
        """Return one vector for each text.  # (B, D) float32"""
        with _exact():
            packing, rows = _packing_of(lengths)
            return self._network.pooled(torch.from_numpy(words)[rows], packing).numpy()

    def states(self, words: NDArray[np.floating], lengths: NDArray[np.integer]) -> NDArray[np.float32]:
        """Return the state of each word, text after text.  # (N, D) float32"""
        with _exact():
            packing, rows = _packing_of(lengths)
            states = self._network.packed_states(torch.from_numpy(words)[rows], packing)
            return torch.empty_like(states).index_copy_(0, rows, states).numpy()


def _packing_of(lengths: NDArray[np.integer]) -> tuple[Packing, Tensor]:
    """Return the packing of texts, and for each packed word its place where the words lie text after text."""
    counts = torch.from_numpy(np.asarray(lengths, dtype=np.int64))
    packing = Packing.of(counts)
    return packing, (counts.cumsum(0) - counts)[packing.order[packing.place]] + packing.step
