"""What an autoencoder asks of its decoder.

Enters: an encoder's states of the texts that were read, the words written so far. Leaves: a state for each next word.
May import: encode's networks, torch.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from torch import Tensor, nn

from askalike.models.encoders.networks import Packing

__all__ = ["Decoder", "Memory", "Read"]

Memory: TypeAlias = tuple[Tensor, ...]
"""What a decoder keeps of texts that it writes word by word: tensors (B, …), a row for each text."""


class Read(NamedTuple):
    """What an encoder has read.

    Args:
        states: of the last layer, packed.  # (N, D)
        packing: where they lie; every text of the batch has words.
    """

    states: Tensor
    packing: Packing


class Decoder(nn.Module):
    """A network that writes a text, word after word, from what was read."""

    def forward(self, words: Tensor, packing: Packing, read: Read) -> Tensor:
        """Return the states (M, D) of texts that are known already, all at once.

        Args:
            words: what was written before each state, a zero vector before the first; packed.  # (M, D_in)
            packing: where they lie; texts in the order of the batch that was read.
            read: what the texts are written from.
        """
        raise NotImplementedError

    def begin(self, read: Read) -> Memory:
        """Return what to go on from before the first word, texts in the order of the batch."""
        raise NotImplementedError

    def go_on(self, words: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        """Return the states (B, D) after one more word (B, D_in) of every text, and what to go on from."""
        raise NotImplementedError
