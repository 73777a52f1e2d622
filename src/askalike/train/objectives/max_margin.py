"""The max-margin objective over marked pairs and random negatives.

::

    L = max_{p ∈ {p⁺} ∪ Q⁻} { s(q, p) - s(q, p⁺) + δ(p, p⁺) },   s = cosine,   δ = margin where p ≠ p⁺, else 0

Enters: batches of (q, p⁺, negatives …). Leaves: a loss.
May import: objective, corpus, network, torch. Source: Lei et al. 2016 (NAACL), section 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from askalike.errors import SettingError
from askalike.train.corpus import Corpus
from askalike.train.network import TextNetwork
from askalike.train.objectives.objective import Objective, in_batches, random_stream

__all__ = ["MaxMargin", "max_margin"]


def max_margin(scores: Tensor, margin: float) -> Tensor:
    """Return the mean over rows of ``max(0, max_j (s_j - s_0 + margin))``.

    Args:
        scores: s(q, p⁺) first, then those of the negatives.  # (B, 1 + K)
        margin: δ.

    >>> max_margin(torch.tensor([[0.9, 0.5, 0.8], [0.9, 0.1, 0.2]]), margin=0.25).item()
    0.07500000298023224
    """
    over = scores[:, 1:] - scores[:, :1] + margin
    return over.amax(dim=1).clamp_min(0).mean()


class MaxMargin(Objective):
    """Max-margin over the corpus' marked pairs; each pair gets new random negatives every epoch.

    Args:
        batch_size: pairs in a batch.
        negatives: random questions for each pair and epoch, K.
        margin: δ.

    Raises:
        SettingError: the corpus has no marked pairs, or too few questions.
    """

    def __init__(
        self, network: TextNetwork, corpus: Corpus, *, batch_size: int = 25, negatives: int = 20, margin: float = 0.2
    ) -> None:
        super().__init__(network, corpus)
        if not len(corpus.pairs) or corpus.size < 3:
            raise SettingError(
                f"{len(corpus.pairs)} marked pairs among {corpus.size} questions, but max-margin learns from pairs",
                "use a recipe without a max-margin stage, or mark duplicates",
            )
        self._batch_size: Final = batch_size
        self._negatives: Final = negatives
        self._margin: Final = margin
        self._marked = {(first, second) for pair in corpus.pairs.tolist() for first, second in (pair, pair[::-1])}

    def batches(self, epoch: int, seed: int) -> Sequence[NDArray[np.int64]]:
        """Return arrays of rows (q, p⁺, K negatives); no negative is q or is marked with it."""
        random = random_stream(seed, epoch)
        pairs = self.corpus.pairs[random.permutation(len(self.corpus.pairs))]
        drawn = random.integers(0, self.corpus.size, (len(pairs), self._negatives))
        for _ in range(100):  # a question marked with all others would never end
            wrong = self._not_negative(pairs, drawn)
            if not wrong.any():
                break
            drawn[wrong] = random.integers(0, self.corpus.size, int(wrong.sum()))
        return in_batches(np.concatenate([pairs, drawn], axis=1), self._batch_size)

    def forward(self, batch: NDArray[np.int64]) -> Tensor:
        """Return the mean loss of pairs with their negatives, (B, 2 + K) questions; each is encoded once."""
        distinct, places = np.unique(batch, return_inverse=True)
        vectors = functional.normalize(self.network.questions(self.corpus.texts, distinct))
        index = torch.from_numpy(places.reshape(batch.shape)).to(vectors.device)
        scores = torch.einsum("bd,bkd->bk", vectors[index[:, 0]], vectors[index[:, 1:]])
        return max_margin(scores, self._margin)

    def _not_negative(self, pairs: NDArray[np.int64], drawn: NDArray[np.int64]) -> NDArray[np.bool_]:
        is_wrong = (drawn == pairs[:, :1]) | (drawn == pairs[:, 1:])
        for row, query in enumerate(pairs[:, 0].tolist()):
            is_wrong[row] |= [(query, other) in self._marked for other in drawn[row].tolist()]
        return np.asarray(is_wrong)
