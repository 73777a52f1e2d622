"""Each text among the others of its batch: the symmetric InfoNCE objective, with hard negatives where there are any.

::

    s_ij = cos(a_i, b_j) / τ
    L    = -½ · (1/B) Σ_i [ log softmax_j(s_ij)_i + log softmax_j(s_ji)_i ]

where a_i and b_i are two views of the same thing: a question's title and its body, two questions labelled as
duplicates, a question and its answer. Hard negatives are further columns b of the first term. What shares a question
with i, or holds a labelled duplicate of a question of i, is no negative of i and is left out of its sums.

Source: van den Oord et al. 2018, equation 4; in-batch, both ways: Radford et al. 2021, section 2.3.
Differs: neither is in Lei et al. 2016; this objective is offered beside max-margin.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from askalike.errors import SettingError
from askalike.training.corpus import Corpus
from askalike.training.network import TextNetwork
from askalike.training.objectives import Objective, in_batches, random_stream
from askalike.training.recipe import ContrastiveOptions

_NONE: Final = -1


def info_nce(scores: Tensor, is_excluded: Tensor, temperature: float) -> Tensor:
    """Return the symmetric loss of B views against B + H.

    Args:
        scores: cosines, the partner of row i in column i.  # (B, B + H)
        is_excluded: what is no negative; never a partner.  # (B, B + H) bool
        temperature: τ > 0.

    >>> even = torch.zeros(2, 2)
    >>> round(info_nce(even, torch.zeros(2, 2, dtype=torch.bool), 1.0).item(), 4)  # log 2 both ways
    0.6931
    """
    logits = (scores / temperature).masked_fill(is_excluded, -torch.inf)
    partner = torch.arange(len(scores), device=scores.device)
    forth = functional.cross_entropy(logits, partner)
    return (forth + functional.cross_entropy(logits[:, : len(scores)].T, partner)) / 2


def _title_and_body(corpus: Corpus) -> NDArray[np.int64]:
    questions = np.arange(corpus.size)
    lengths = corpus.texts.lengths()
    kept = questions[(lengths[0 : 2 * corpus.size : 2] > 0) & (lengths[1 : 2 * corpus.size : 2] > 0)]
    none = np.full(len(kept), _NONE)
    return np.stack([2 * kept, none, 2 * kept + 1, none, kept, kept], axis=1)


def _marked(corpus: Corpus) -> NDArray[np.int64]:
    first, second = corpus.usable_pairs().T
    return np.stack([2 * first, 2 * first + 1, 2 * second, 2 * second + 1, first, second], axis=1)


def _answered(corpus: Corpus) -> NDArray[np.int64]:
    lengths = corpus.texts.lengths()
    asked, row = corpus.answers.T
    has_words = (lengths[2 * asked] + lengths[2 * asked + 1] > 0) & (lengths[row] > 0)
    asked, row = asked[has_words], row[has_words]
    return np.stack([2 * asked, 2 * asked + 1, row, np.full(len(row), _NONE), asked, asked], axis=1)


_ROWS: Final[Mapping[str, Callable[[Corpus], NDArray[np.int64]]]] = {
    "title-body": _title_and_body,
    "marked": _marked,
    "answers": _answered,
}
"""Name of a pair of views → the rows (two texts of a, two texts of b, question of a, question of b) of a corpus, those
with words on both sides; the texts of a view are added, -1 stands for none."""


class Contrastive(Objective):
    """Symmetric InfoNCE with in-batch negatives; a batch holds one kind of views.

    Raises:
        SettingError: a corpus that has too few of the views for a batch.
    """

    def __init__(self, network: TextNetwork, corpus: Corpus, options: ContrastiveOptions) -> None:
        super().__init__(network, corpus)
        self._options: Final = options
        self._labelled: Final = corpus.labelled()
        self._items = [(_ROWS[name](corpus), share) for name, share in options.views.items()]
        if not any(int(share) * len(items) + round(share % 1 * len(items)) > 1 for items, share in self._items):
            found = ", ".join(
                f"{len(rows[0])} of {name}" for name, rows in zip(options.views, self._items, strict=True)
            )
            raise SettingError(
                f"views with words on both sides: {found}; but expected at least two of one kind in an epoch",
                "titles alone have none: give the questions bodies, answers or duplicate links, or name views in the "
                "recipe that the data has",
            )

    def batches(self, epoch: int, seed: int) -> Sequence[NDArray[np.int64]]:
        """Return arrays of rows as ``_ROWS`` has them; a last part of one pair of views only is left out."""
        random = random_stream(seed, epoch)
        found = []
        for items, share in self._items:
            whole, part = divmod(share, 1)
            taken = [random.permutation(len(items)) for _ in range(int(whole))]
            taken.append(random.permutation(len(items))[: round(part * len(items))])
            drawn = items[np.concatenate(taken)]
            bound = round((1 - self._options.topical) * len(drawn))
            topics = self.corpus.topics[drawn[bound:, 4]]
            names = random.permutation(topics.max(initial=0) + 1)  # so that other topics are neighbours every time
            drawn[bound:] = drawn[bound:][np.argsort(names[topics], kind="stable")]
            found += [batch for batch in in_batches(drawn, self._options.batch_size) if len(batch) > 1]
        return [found[place] for place in random.permutation(len(found))]

    def forward(self, batch: NDArray[np.int64]) -> Tensor:
        """Return the mean loss of pairs of views, (B, 6)."""
        sides = np.concatenate([batch[:, :2], batch[:, 2:4]])  # (2B, 2) text rows
        keys = batch[:, 4:]  # (B, 2) questions
        hard = self._hard_negatives(keys)
        sides = np.concatenate([sides, np.stack([2 * hard, 2 * hard + 1], axis=1)])
        vectors = functional.normalize(self._views(sides))
        scores = vectors[: len(batch)] @ vectors[len(batch) :].T  # (B, B + H)
        is_excluded = torch.from_numpy(excluded(keys, hard, self._labelled))
        return info_nce(scores, is_excluded.to(scores.device), self._options.temperature)

    def _views(self, sides: NDArray[np.int64]) -> Tensor:
        """Return the sum of the vectors of each view's texts; each text is encoded once.  # (len(sides), D)"""
        distinct, places = np.unique(sides[sides >= 0], return_inverse=True)
        vectors = self.network.encode(self.corpus.texts, distinct)
        owners = torch.from_numpy(np.nonzero(sides >= 0)[0]).to(vectors.device)
        chosen = vectors.index_select(0, torch.from_numpy(places).to(vectors.device))
        return vectors.new_zeros(len(sides), vectors.shape[1]).index_add(0, owners, chosen)

    def _hard_negatives(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        most = self._options.hard_negatives
        if not most or not self.corpus.hard_negatives.size:
            return np.zeros(0, np.int64)
        found = self.corpus.hard_negatives[keys[:, 0], :most]
        return np.unique(found[found >= 0])


def excluded(
    keys: NDArray[np.int64], hard: NDArray[np.int64], labelled: Mapping[int, Collection[int]]
) -> NDArray[np.bool_]:
    """Return which columns (the batch, then the hard negatives) are no negatives of which rows.  # (B, B + H)

    Args:
        keys: the questions of each row's views.  # (B, 2)
        hard: questions of the further columns.  # (H,)
        labelled: question → its labelled duplicates.

    >>> excluded(np.array([[1, 2], [2, 3], [4, 5]]), np.array([3]), {3: [4], 4: [3]}).tolist()
    [[False, True, False, False], [True, False, True, True], [False, True, False, True]]
    """
    columns: defaultdict[int, list[int]] = defaultdict(list)
    for column, (first, second) in enumerate([*keys.tolist(), *([one, one] for one in hard.tolist())]):
        columns[first].append(column)
        columns[second].append(column)
    found = np.zeros((len(keys), len(keys) + len(hard)), np.bool_)
    for row, questions in enumerate(keys.tolist()):
        for question in questions:
            for near in (question, *labelled.get(question, ())):
                found[row, columns.get(near, [])] = True
    np.fill_diagonal(found, val=False)
    return found
