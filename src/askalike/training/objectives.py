"""What training makes smaller: the network of an encoder, what the loop asks of an objective, and those over pairs.

**Network.** Questions of a corpus to vectors, with gradient.

::

    v(question) = (v(title) + v(body)) / 2,   or the one of them that has words

Source: Lei et al. 2016 (NAACL), section 4.1.

**Max-margin.** Over labelled pairs and random negatives.

::

    L = max_{p ∈ {p⁺} ∪ Q⁻} { s(q, p) - s(q, p⁺) + δ(p, p⁺) },   s = cosine,   δ = margin where p ≠ p⁺, else 0

The largest term alone has a gradient. So all negatives are encoded without one, and what is left to learn from, a pair
and its hardest negative where the loss is not zero, is encoded once more with it: the same loss, the same gradient, a
half of the time and a tenth of the memory.

Source: Lei et al. 2016 (NAACL), section 3.

**Contrastive.** Each text among the others of its batch: symmetric InfoNCE.

::

    s_ij = cos(a_i, b_j) / τ
    L    = -½ · (1/B) Σ_i [ log softmax_j(s_ij)_i + log softmax_j(s_ji)_i ]

where a_i and b_i are two views of the same thing: a question's title and its body, two questions labelled as
duplicates, a question and its answer. What shares a question with i, or holds a labelled duplicate of a question of i,
is no negative of i and is left out of its sums.

Source: van den Oord et al. 2018, equation 4; in-batch, both ways: Radford et al. 2021, section 2.3.
Differs: neither is in Lei et al. 2016; this objective is offered beside max-margin.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from askalike.errors import SettingError
from askalike.models.encoders.networks.encoder import EncoderNetwork
from askalike.models.encoders.networks.packing import Packing
from askalike.training.corpus import Corpus, Texts
from askalike.training.pieces import PieceNetwork
from askalike.training.recipe import ContrastiveOptions, MaxMarginOptions

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
        vectors = functional.embedding(ids, self.embedding, padding_idx=self._unknown)
        return functional.dropout(vectors, self.dropout, self.training)

    def packed(self, texts: Texts, rows: NDArray[np.int64]) -> tuple[Tensor, Packing]:
        """Return the ids of texts, packed, and the packing."""
        starts = texts.starts[rows]
        lengths = torch.from_numpy(texts.starts[rows + 1] - starts)
        packing = Packing.of(lengths)  # made on the CPU, where its numbers are looked at
        places = torch.from_numpy(starts)[packing.order[packing.place]] + packing.step
        ids = torch.from_numpy(texts.ids)[places].long()
        return ids.to(self.device), packing.to(self.device)

    def encode(self, texts: Texts, rows: NDArray[np.int64], dropped: Dropped | None = None) -> Tensor:
        """Return the pooled vector of each text, zero for one without words.  # (B, D)

        Args:
            dropped: what to leave out of them; None draws it anew in training.
        """
        ids, packing = self.packed(texts, rows)
        if dropped is None:
            return functional.dropout(self.encoder.pooled(self.words(ids), packing), self.dropout, self.training)
        vectors = functional.embedding(ids, self.embedding, padding_idx=self._unknown)
        places = dropped.starts[packing.order[packing.place]] + packing.step
        return self.encoder.pooled(vectors * dropped.words[places], packing) * dropped.pooled

    def questions(self, texts: Texts, questions: NDArray[np.int64], dropped: Dropped | None = None) -> Tensor:
        """Return the vector of each question i, whose title is row 2i and whose body row 2i + 1.  # (B, D)

        Args:
            dropped: what ``question_dropout`` drew for them; None draws it anew in training.
        """
        both = self.encode(texts, _title_and_body(questions), dropped)
        return both.view(2, len(questions), -1).sum(0)  # a vector's length does not matter to a cosine

    def views(self, texts: Texts, sides: NDArray[np.int64]) -> Tensor:
        """Return the sum of the vectors of each view's texts; each text is encoded once.  # (len(sides), D)

        Args:
            sides: rows of texts, -1 for none.  # (B, 2)
        """
        distinct, places = np.unique(sides[sides >= 0], return_inverse=True)
        vectors = self.encode(texts, distinct)
        owners = torch.from_numpy(np.nonzero(sides >= 0)[0]).to(vectors.device)
        chosen = vectors.index_select(0, torch.from_numpy(places).to(vectors.device))
        return vectors.new_zeros(len(sides), vectors.shape[1]).index_add(0, owners, chosen)

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
        vectors = np.zeros((len(texts), self.encoder.config.hidden_size), np.float32)
        for begin in range(0, len(rows), _BATCH):
            part = rows[begin : begin + _BATCH]
            vectors[part] = self.encode(texts, part).cpu().numpy()
        self.train(was_training)
        return vectors[0::2] + vectors[1::2]


def _title_and_body(questions: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([2 * questions, 2 * questions + 1])


class Trainable(nn.Module):
    """A loss over batches, with the parameters that make it smaller: all that the training loop knows of."""

    def batches(self, epoch: int, seed: int) -> Sequence[NDArray[np.int64]]:
        """Return the batches of an epoch in their order; the same epoch and seed give the same ones."""
        raise NotImplementedError

    def forward(self, batch: NDArray[np.int64]) -> Tensor:
        """Return the loss of a batch, a scalar."""
        raise NotImplementedError

    def held_out(self) -> dict[str, float]:
        """Return measures of texts that are kept out of training, none by default."""
        return {}


class Objective(Trainable):
    """A loss over batches of a corpus, the mean over what a batch holds."""

    def __init__(self, network: TextNetwork, corpus: Corpus) -> None:
        super().__init__()
        self.network = network
        self.corpus = corpus


def random_stream(seed: int, epoch: int) -> np.random.Generator:
    """Return the generator that an epoch draws from."""
    return np.random.default_rng([seed, epoch])


def held_out_questions(corpus: Corpus, most: int, seed: int) -> NDArray[np.int64]:
    """Return questions to keep out of training, by rising number: those that the data name.

    Where they name none, ``most`` are drawn, but a tenth of all at most.
    """
    if len(corpus.held_out):
        return corpus.held_out
    order = np.random.default_rng(seed).permutation(corpus.size)
    return np.sort(order[: min(most, corpus.size // 10)])


def in_batches(items: NDArray[np.int64], size: int) -> list[NDArray[np.int64]]:
    """Return ``items`` in parts of ``size``, the last one smaller."""
    return [items[begin : begin + size] for begin in range(0, len(items), size)]


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


class MaxMargin(Trainable):
    """Max-margin over the corpus' labelled pairs; each pair or query gets new random negatives every epoch.

    A pair whose first question is labelled with all others has no negative and is left out.

    Raises:
        SettingError: the corpus has no labelled pair with a negative.
    """

    def __init__(self, network: TextNetwork | PieceNetwork, corpus: Corpus, options: MaxMarginOptions) -> None:
        super().__init__()
        self.network = network
        self.corpus = corpus
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
        batches = []
        for part in in_batches(queries, size):
            pairs = self._pairs[np.isin(self._pairs[:, 0], part)]
            batches.append(np.concatenate([pairs, np.stack([drawn[query] for query in pairs[:, 0].tolist()])], axis=1))
        return batches

    def _drawn(self, queries: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
        """Return random negatives of each query.  # (Q, K)"""
        excluded = [self._excluded[query] for query in queries.tolist()]
        left = np.array([self.corpus.size - len(rows_out) for rows_out in excluded])
        drawn = random.integers(0, left[:, None], (len(queries), self._options.negatives))
        return np.stack([skip(row, rows_out) for row, rows_out in zip(drawn, excluded, strict=True)])

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


_NONE: Final = -1


def info_nce(scores: Tensor, is_excluded: Tensor, temperature: float) -> Tensor:
    """Return the symmetric loss of B pairs of views.

    Args:
        scores: cosines, the partner of row i in column i.  # (B, B)
        is_excluded: what is no negative; never a partner.  # (B, B) bool
        temperature: τ > 0.

    >>> even = torch.zeros(2, 2)
    >>> round(info_nce(even, torch.zeros(2, 2, dtype=torch.bool), 1.0).item(), 4)  # log 2 both ways
    0.6931
    """
    logits = (scores / temperature).masked_fill(is_excluded, -torch.inf)
    partner = torch.arange(len(scores), device=scores.device)
    forth = functional.cross_entropy(logits, partner)
    return (forth + functional.cross_entropy(logits.T, partner)) / 2


def _own_views(corpus: Corpus) -> NDArray[np.int64]:
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
    questions_at, row = corpus.answers.T
    has_words = (lengths[2 * questions_at] + lengths[2 * questions_at + 1] > 0) & (lengths[row] > 0)
    questions_at, row = questions_at[has_words], row[has_words]
    return np.stack(
        [2 * questions_at, 2 * questions_at + 1, row, np.full(len(row), _NONE), questions_at, questions_at], axis=1
    )


_ROWS: Final[Mapping[str, Callable[[Corpus], NDArray[np.int64]]]] = {
    "title-body": _own_views,
    "marked": _marked,
    "answers": _answered,
}
"""Name of a pair of views → the rows (two texts of a, two texts of b, question of a, question of b) of a corpus, those
with words on both sides; the texts of a view are added, -1 stands for none."""


class Contrastive(Trainable):
    """Symmetric InfoNCE with in-batch negatives; a batch holds one kind of views.

    Raises:
        SettingError: a corpus that has too few of the views for a batch.
    """

    def __init__(self, network: TextNetwork | PieceNetwork, corpus: Corpus, options: ContrastiveOptions) -> None:
        super().__init__()
        self.network = network
        self.corpus = corpus
        self._options: Final = options
        self._labelled: Final = corpus.labelled()
        rows = ((_ROWS[name](corpus), share) for name, share in options.views.items())
        self._items = [(items[~np.isin(items[:, 4:], corpus.held_out).any(axis=1)], share) for items, share in rows]
        if not any(int(share) * len(items) + round(share % 1 * len(items)) > 1 for items, share in self._items):
            listed = ", ".join(
                f"{len(rows[0])} of {name}" for name, rows in zip(options.views, self._items, strict=True)
            )
            raise SettingError(
                f"views with words on both sides: {listed}; but expected at least two of one kind in an epoch",
                "titles alone have none: give the questions bodies, answers or duplicate links, or name views in the "
                "recipe that the data has",
            )

    def batches(self, epoch: int, seed: int) -> Sequence[NDArray[np.int64]]:
        """Return arrays of rows as ``_ROWS`` has them; a last part of one pair of views only is left out."""
        random = random_stream(seed, epoch)
        batches = []
        for items, share in self._items:
            whole, part = divmod(share, 1)
            taken = [random.permutation(len(items)) for _ in range(int(whole))]
            taken.append(random.permutation(len(items))[: round(part * len(items))])
            drawn = items[np.concatenate(taken)]
            batches += [batch for batch in in_batches(drawn, self._options.batch_size) if len(batch) > 1]
        order = random.permutation(len(batches))[: self._options.max_batches or None]
        return [batches[place] for place in order]

    def forward(self, batch: NDArray[np.int64]) -> Tensor:
        """Return the mean loss of pairs of views, (B, 6)."""
        sides = np.concatenate([batch[:, :2], batch[:, 2:4]])  # (2B, 2) text rows
        vectors = functional.normalize(self.network.views(self.corpus.texts, sides))
        scores = vectors[: len(batch)] @ vectors[len(batch) :].T  # (B, B)
        is_excluded = torch.from_numpy(excluded(batch[:, 4:], self._labelled))
        return info_nce(scores, is_excluded.to(scores.device), self._options.temperature)


def excluded(keys: NDArray[np.int64], labelled: Mapping[int, Collection[int]]) -> NDArray[np.bool_]:
    """Return which columns of a batch are no negatives of which rows.  # (B, B)

    Args:
        keys: the questions of each row's views.  # (B, 2)
        labelled: question → its labelled duplicates.

    >>> excluded(np.array([[1, 2], [2, 3], [4, 5]]), {3: [4], 4: [3]}).tolist()
    [[False, True, False], [True, False, True], [False, True, False]]
    """
    columns: defaultdict[int, list[int]] = defaultdict(list)
    for column, (first, second) in enumerate(keys.tolist()):
        columns[first].append(column)
        columns[second].append(column)
    is_positive = np.zeros((len(keys), len(keys)), np.bool_)
    for row, questions in enumerate(keys.tolist()):
        for question in questions:
            for near in (question, *labelled.get(question, ())):
                is_positive[row, columns.get(near, [])] = True
    np.fill_diagonal(is_positive, val=False)
    return is_positive
