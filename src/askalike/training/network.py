"""An encoder with its word vectors: questions of a corpus to vectors, with gradient.

::

    v(question) = (v(title) + v(body)) / 2,   or the one of them that has words

Source: Lei et al. 2016 (NAACL), section 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from askalike.models.encoders.networks.encoder import EncoderNetwork
from askalike.models.encoders.networks.packing import Packing
from askalike.training.corpus import Texts

_BATCH: Final = 512


@dataclass(frozen=True, slots=True)
class Dropped:
    """What dropout leaves out of some texts, so that it can be left out again when a part of them is encoded again.

    Args:
        words: factors of the word vectors, 0 or 1 / (1 - p), one text after the other.  # (W, D_in)
        starts: where each text's words begin.  # (B,)
        pooled: factors of the pooled vectors.  # (B, D)
    """

    words: Tensor
    starts: Tensor
    pooled: Tensor

    def of(self, questions: NDArray[np.int64]) -> Dropped:
        """Return the same for some of the questions whose titles, then bodies, these texts are; by their places."""
        rows = np.concatenate([questions, len(self.starts) // 2 + questions])
        chosen = torch.from_numpy(rows).to(self.starts.device)
        return Dropped(self.words, self.starts[chosen], self.pooled[chosen])


class TextNetwork(nn.Module):
    """Word vectors and an encoder.

    Args:
        encoder: the network that pools.
        embedding: word vectors (V, D_in), row 0 for unknown words.
        is_embedding_trained: whether the word vectors learn too.
        is_unknown_zero: row 0 is zero and stays so.
        dropout: share of the numbers of word vectors and pooled vectors that are left out in training, in [0, 1).
    """

    def __init__(
        self,
        encoder: EncoderNetwork,
        embedding: Tensor,
        *,
        is_embedding_trained: bool = False,
        is_unknown_zero: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.embedding = nn.Parameter(embedding, requires_grad=is_embedding_trained)
        self.dropout = dropout
        self._unknown: Final = 0 if is_unknown_zero else None

    @property
    def device(self) -> torch.device:
        """Return where the parameters are."""
        return self.embedding.device

    def words(self, ids: Tensor) -> Tensor:
        """Return the word vectors of ids, with dropout in training.  # (N, D_in)"""
        found = functional.embedding(ids, self.embedding, padding_idx=self._unknown)
        return functional.dropout(found, self.dropout, self.training)

    def packed(self, texts: Texts, rows: NDArray[np.int64]) -> tuple[Tensor, Packing]:
        """Return the ids of texts, packed, and the packing."""
        starts = texts.starts[rows]
        lengths = torch.from_numpy(texts.starts[rows + 1] - starts)
        packing = self.encoder.packing(lengths)  # made on the CPU, where its numbers are looked at
        places = torch.from_numpy(starts)[packing.order[packing.place]] + packing.step
        ids = torch.from_numpy(texts.ids)[places].long()
        return ids.to(self.device), packing.to(self.device)

    def encode(self, texts: Texts, rows: NDArray[np.int64], dropped: Dropped | None = None) -> Tensor:
        """Return the pooled vector of each text, zero for one without words.  # (B, D)

        Args:
            texts: all texts.
            rows: those to encode.  # (B,)
            dropped: what to leave out of them; None draws it anew in training.
        """
        ids, packing = self.packed(texts, rows)
        if dropped is None:
            return functional.dropout(self.encoder.pooled(self.words(ids), packing), self.dropout, self.training)
        found = functional.embedding(ids, self.embedding, padding_idx=self._unknown)
        places = dropped.starts[packing.order[packing.place]] + packing.step
        return self.encoder.pooled(found * dropped.words[places], packing) * dropped.pooled

    def questions(self, texts: Texts, questions: NDArray[np.int64], dropped: Dropped | None = None) -> Tensor:
        """Return the vector of each question i, whose title is row 2i and whose body row 2i + 1.  # (B, D)

        Args:
            texts: all texts.
            questions: those to encode.  # (B,)
            dropped: what ``question_dropout`` drew for them; None draws it anew in training.
        """
        both = self.encode(texts, _title_and_body(questions), dropped)
        return both.view(2, len(questions), -1).sum(0)  # a vector's length does not matter to a cosine

    def question_dropout(self, texts: Texts, questions: NDArray[np.int64]) -> Dropped | None:
        """Draw what dropout leaves out of questions; None where it leaves out nothing."""
        if not (self.training and self.dropout):
            return None
        rows = _title_and_body(questions)
        lengths = texts.starts[rows + 1] - texts.starts[rows]
        starts = np.cumsum(lengths) - lengths
        return Dropped(
            self._factors(int(lengths.sum()), self.encoder.config.input_size),
            torch.from_numpy(starts).to(self.device),
            self._factors(len(rows), self.encoder.config.hidden_size),
        )

    def _factors(self, rows: int, size: int) -> Tensor:
        return functional.dropout(torch.ones(rows, size, device=self.device), self.dropout)

    @torch.no_grad()
    def all_questions(self, texts: Texts) -> NDArray[np.float32]:
        """Return the vectors of all questions as evaluation has them, without dropout.  # (N, D)"""
        was_training = self.training
        self.eval()
        rows = np.argsort(-texts.lengths(), kind="stable")  # of like length together
        found = np.zeros((len(texts), self.encoder.config.hidden_size), np.float32)
        for begin in range(0, len(rows), _BATCH):
            part = rows[begin : begin + _BATCH]
            found[part] = self.encode(texts, part).cpu().numpy()
        self.train(was_training)
        return found[0::2] + found[1::2]


def _title_and_body(questions: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([2 * questions, 2 * questions + 1])
