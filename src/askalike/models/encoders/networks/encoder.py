"""A network and its pooling: sequences of word vectors to one vector for a text.

Enters: word vectors, padded or packed. Leaves: pooled vectors, states, gates. May import: config, errors, and the
modules beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from torch import Tensor, nn

from askalike.errors import SettingError
from askalike.models.encoders.config import EncoderConfig, Kind
from askalike.models.encoders.networks.attention import Attention
from askalike.models.encoders.networks.cnn import Cnn
from askalike.models.encoders.networks.gru import Gru
from askalike.models.encoders.networks.lanes import lane_count
from askalike.models.encoders.networks.lstm import Lstm
from askalike.models.encoders.networks.packing import Packing
from askalike.models.encoders.networks.pooling import POOLS
from askalike.models.encoders.networks.rcnn import Rcnn

__all__ = ["NETWORKS", "Encoder"]

NETWORKS: Final[dict[Kind, Callable[[EncoderConfig, Mapping[str, Tensor]], nn.Module]]] = {
    "rcnn": Rcnn,
    "lstm": Lstm,
    "gru": Gru,
    "cnn": Cnn,
    "attention": Attention,
}
"""Kind → its network, made with (config, values of its parameters)."""


class Encoder(nn.Module):
    """An encoder that can be trained.

    Batches are time-major: inputs (T, B, D_in), lengths (B,). What stands after a text's end is not read; a text of
    length 0 has the zero vector. Where words are looked up in a table, ``pooled`` spares the padding: look up
    the packed word ids only.

    Args:
        config: what the encoder is.
        values: first values of its parameters.
    """

    def __init__(self, config: EncoderConfig, values: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.config: Final = config
        self.network = NETWORKS[config.kind](config, values)

    def forward(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        """Return one vector for each text.

        Args:
            inputs: word vectors (T, B, D_in).
            lengths: words of each text (B,), 0 ≤ length ≤ T.

        Returns:
            (B, D), rows in the order of the batch.

        Raises:
            SettingError: shapes or lengths that do not fit.
        """
        packing = self.packing(lengths.to(inputs.device))
        return self.pooled(self._packed(inputs, packing), packing)

    def packing(self, lengths: Tensor) -> Packing:
        """Return the packing that suits the network, its device and torch's threads, for ``pooled``.

        It lies where the lengths lie, which may be the CPU though the network is elsewhere: ``Packing.to`` moves it.
        """
        is_rcnn = isinstance(self.network, Rcnn)
        return Packing.of(lengths, lane_count(len(lengths), next(self.parameters()).device) if is_rcnn else 1)

    def pooled(self, words: Tensor, packing: Packing) -> Tensor:
        """Return one vector for each text (B, D), given its packed word vectors (N, D_in)."""
        return POOLS[self.config.pooling](self._states(words, packing), packing)

    def go_on(self, words: Tensor, packing: Packing, start: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return packed states (N, D), and what a later run of a network like this one can start from.

        Args:
            words: packed word vectors (N, D_in).
            packing: where they lie.
            start: what a run left for each text of the batch (B, parts, D); None for zero.

        Returns:
            states; the carry, (B, parts, D), in the order of the batch, zero for a text of length 0.

        Raises:
            SettingError: the network has no state, as a CNN or attention.
        """
        if not isinstance(self.network, Rcnn | Lstm | Gru):
            raise SettingError(
                f"an encoder of the kind {self.config.kind} keeps no state that a decoder could start from",
                "pre-train an rcnn, lstm or gru, or leave pre-training out",
            )
        begin = None if start is None else start.index_select(0, packing.order)
        states, carry = self.network.go_on(words, packing, begin)
        return states, packing.restore(carry)

    def states(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        """Return every state, zero after a text's end: arguments and errors as of ``forward``.  # (T, B, D)"""
        packing = self.packing(lengths.to(inputs.device))
        return packing.unpack(self._states(self._packed(inputs, packing), packing), len(inputs))

    def gates(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        """Return λ_t of every word, zero after a text's end: 1 - λ is the share of the word that is let in.

        Arguments and errors as of ``forward``. No gradient flows through them.  # (T, B, G), G = ``config.gate_size``
        """
        packing = self.packing(lengths.to(inputs.device))
        words = self._packed(inputs, packing)
        if not isinstance(self.network, Rcnn) or not self.config.gate_size:
            return inputs.new_zeros(*inputs.shape[:2], 0)
        return packing.unpack(self.network.run(words, packing, is_kept=True).gates, len(inputs))

    def _states(self, words: Tensor, packing: Packing) -> Tensor:
        if len(words) == 0:
            return words.new_zeros(0, self.config.hidden_size)
        found: Tensor = self.network(words, packing)
        return found

    def _packed(self, inputs: Tensor, packing: Packing) -> Tensor:
        if inputs.ndim != 3 or inputs.shape[2] != self.config.input_size:
            raise SettingError(
                f"inputs of shape {tuple(inputs.shape)}, but expected (words, texts, {self.config.input_size})",
                "give word vectors as (T, B, D_in)",
            )
        return packing.pack(inputs)
