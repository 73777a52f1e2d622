"""Questions near their answers and away from others': the loss of SCQA.

::

    loss(q, a) = 1 - cos(q, a)            y = 1,  a the best answer to q
                 max(0, cos(q, a) - m)    y = -1, a the answer to another random question
    L          = Σ loss over the samples of a batch

Enters: batches of pairs. Leaves: a loss. May import: siamese, corpus, recipe, train's objective, torch.

Source: Das et al. 2016 (ACL), section 4, with equation 2.
Reading: equation 2 is a sum over the batch, and the learning rate of table 1 is taken to be for that sum. So a last
batch of fewer samples makes a smaller step.
Differs: the other question is one of the same batch, each as likely as any, so that its answer is encoded already. The
order of the pairs is drawn anew for each epoch, and the other is random all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from askalike.siamese.config import SIDES
from askalike.siamese.network import SiameseNetwork
from askalike.training.objectives.objective import Trainable, in_batches, random_stream
from askalike.training.siamese.corpus import PairCorpus
from askalike.training.siamese.recipe import HELD_OUT_LOSS, PairOptions

__all__ = ["QuestionAnswer", "pair_loss"]


def pair_loss(cosines: Tensor, others: Tensor, margin: float) -> Tensor:
    """Return the sum of the loss over positive and negative samples.

    Args:
        cosines: cos(q, a) of questions with their answers.  # (P,)
        others: cos(q, a) of questions with answers to other questions.  # (N,)
        margin: m.

    >>> round(pair_loss(torch.tensor([0.75, 1.0]), torch.tensor([0.5, 0.125]), margin=0.25).item(), 4)  # 0.25 + 0.25
    0.5
    """
    return (1 - cosines).sum() + (others - margin).clamp_min(0).sum()


class QuestionAnswer(Trainable):
    """The loss over the pairs of a corpus; each epoch gives every question another random one's answer.

    Args:
        network: what is trained.
        corpus: what it is trained on.
        options: batch size and margin.
    """

    def __init__(self, network: SiameseNetwork, corpus: PairCorpus, options: PairOptions) -> None:
        super().__init__()
        self.network = network
        self._corpus: Final = corpus
        self._options: Final = options

    def batches(self, epoch: int, seed: int) -> Sequence[NDArray[np.int64]]:
        """Return arrays (P, 2): a pair, and the pair whose answer is the negative; a last part of one is left out."""
        random = random_stream(seed, epoch)
        parts = in_batches(random.permutation(self._corpus.learned), self._options.batch_size // 2)
        found = []
        for part in parts:
            if len(part) > 1:
                found.append(np.stack([part, np.roll(part, random.integers(1, len(part)))], axis=1))
        return found

    def forward(self, batch: NDArray[np.int64]) -> Tensor:
        """Return the sum of the loss over the 2 P samples of P pairs with their others, (P, 2)."""
        distinct, places = np.unique(batch, return_inverse=True)
        corpus, network = self._corpus, self.network
        asked = functional.normalize(network.encode(corpus.questions, batch[:, 0], SIDES[0]))  # (P, D)
        answered = functional.normalize(network.encode(corpus.answers, distinct, SIDES[1]))
        own, other = torch.from_numpy(places.reshape(batch.shape)).to(answered.device).T
        cosines = [(asked * answered.index_select(0, some)).sum(dim=1) for some in (own, other)]
        return pair_loss(cosines[0], cosines[1], self._options.margin)

    @torch.no_grad()
    def held_out(self) -> dict[str, float]:
        """Return the mean loss of the samples of the pairs that are kept out, the others always the same."""
        pairs = self._corpus.held_out
        if len(pairs) < 2:
            return {}
        batches = in_batches(np.stack([pairs, np.roll(pairs, 1)], axis=1), self._options.batch_size // 2)
        return {HELD_OUT_LOSS: sum(float(self(batch)) for batch in batches) / (2 * len(pairs))}
