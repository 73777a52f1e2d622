"""The max-margin objective over labelled pairs and random negatives.

::

    L = max_{p ∈ {p⁺} ∪ Q⁻} { s(q, p) - s(q, p⁺) + δ(p, p⁺) },   s = cosine,   δ = margin where p ≠ p⁺, else 0

The largest term alone has a gradient. So all negatives are encoded without one, and what is left to learn from, a pair
and its hardest negative where the loss is not zero, is encoded once more with it: the same loss, the same gradient, a
half of the time and a tenth of the memory.

Source: Lei et al. 2016 (NAACL), section 3.
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
from askalike.training.corpus import Corpus
from askalike.training.network import Dropped, TextNetwork
from askalike.training.objectives import Objective, in_batches, random_stream
from askalike.training.recipe import MaxMarginOptions


def max_margin(scores: Tensor, margin: float) -> Tensor:
    """Return the mean over rows of ``max(0, max_j (s_j - s_0 + margin))``.

    Args:
        scores: s(q, p⁺) first, then those of the negatives.  # (B, 1 + K)
        margin: δ.

    >>> round(max_margin(torch.tensor([[0.9, 0.5, 0.8], [0.9, 0.1, 0.2]]), margin=0.25).item(), 4)  # (0.15 + 0) / 2
    0.075
    """
    over = scores[:, 1:] - scores[:, :1] + margin
    return over.amax(dim=1).clamp_min(0).mean()


class MaxMargin(Objective):
    """Max-margin over the corpus' labelled pairs; each pair or query gets new random negatives every epoch.

    A pair whose first question is labelled with all others has no negative and is left out.

    Raises:
        SettingError: the corpus has no labelled pair with a negative.
    """

    def __init__(self, network: TextNetwork, corpus: Corpus, options: MaxMarginOptions) -> None:
        super().__init__(network, corpus)
        self._options: Final = options
        labelled = corpus.labelled()
        pairs = corpus.usable_pairs()
        self._excluded = {query: np.sort([query, *labelled[query]]) for query in np.unique(pairs[:, 0]).tolist()}
        has_negative = np.array([len(self._excluded[query]) < corpus.size for query in pairs[:, 0].tolist()], np.bool_)
        self._pairs = pairs[has_negative]
        if not len(self._pairs):
            raise SettingError(
                f"{len(corpus.pairs)} labelled pairs among {corpus.size} questions, but max-margin learns from pairs "
                "of questions with words, and from others that are not labelled with them",
                "use a recipe without a max-margin stage, or label duplicates",
            )

    def batches(self, epoch: int, seed: int) -> Sequence[NDArray[np.int64]]:
        """Return arrays of rows (q, p⁺, K negatives); no negative is q or labelled with it."""
        random, size = random_stream(seed, epoch), self._options.batch_size
        if self._options.drawn_for == "pair":
            pairs = self._pairs[random.permutation(len(self._pairs))]
            return in_batches(np.concatenate([pairs, self._drawn(pairs[:, 0], random)], axis=1), size)
        queries = random.permutation(np.unique(self._pairs[:, 0]))
        drawn = dict(zip(queries.tolist(), self._drawn(queries, random), strict=True))
        found = []
        for part in in_batches(queries, size):
            pairs = self._pairs[np.isin(self._pairs[:, 0], part)]
            found.append(np.concatenate([pairs, np.stack([drawn[query] for query in pairs[:, 0].tolist()])], axis=1))
        return found

    def _drawn(self, queries: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
        """Return random negatives of each query.  # (Q, K)"""
        excluded = [self._excluded[query] for query in queries.tolist()]
        left = np.array([self.corpus.size - len(some) for some in excluded])
        drawn = random.integers(0, left[:, None], (len(queries), self._options.negatives))
        return np.stack([skip(row, some) for row, some in zip(drawn, excluded, strict=True)])

    def forward(self, batch: NDArray[np.int64]) -> Tensor:
        """Return the mean loss of pairs with their negatives, (B, 2 + K) questions."""
        distinct, places = np.unique(batch, return_inverse=True)
        places = places.reshape(batch.shape)
        dropped = self.network.question_dropout(self.corpus.texts, distinct)
        with torch.no_grad():
            scores = self._scores(distinct, places, dropped)
        over, hardest = (scores[:, 1:] - scores[:, :1] + self._options.margin).max(dim=1)
        learned = over.cpu().numpy() > 0
        learned[0] = True  # so that there is always something to encode
        triples = np.stack([*places[:, :2].T, places[np.arange(len(batch)), 2 + hardest.cpu().numpy()]], axis=1)
        used, again = np.unique(triples[learned], return_inverse=True)
        part = None if dropped is None else dropped.of(used)
        scores = self._scores(distinct[used], again.reshape(-1, 3), part)
        return max_margin(scores, self._options.margin) * (int(learned.sum()) / len(batch))

    def _scores(self, questions: NDArray[np.int64], places: NDArray[np.int64], dropped: Dropped | None) -> Tensor:
        """Return s(q, p) of the first of each row of places with the others.  # (B, 1 + K)"""
        vectors = functional.normalize(self.network.questions(self.corpus.texts, questions, dropped))
        index = torch.from_numpy(places).to(vectors.device)
        return torch.einsum("bd,bkd->bk", vectors[index[:, 0]], vectors[index[:, 1:]])


def skip(places: NDArray[np.int64], excluded: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers that stand at ``places`` among 0, 1, 2 … without the excluded ones.

    Args:
        excluded: rising, each once.

    >>> skip(np.arange(4), np.array([1, 2, 5])).tolist()
    [0, 3, 4, 6]
    """
    return places + np.searchsorted(excluded - np.arange(len(excluded)), places, side="right")
