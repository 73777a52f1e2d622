"""Word vectors from a forum's own text: skip-gram or CBOW with negative sampling, by gensim.

While vectors are trained, the skip-gram loss is measured on a small fixed sample of the text: gensim adds its loss up
in one float32, which stops growing on millions of words; a fixed sample is exact, costs nothing, and is comparable from
epoch to epoch.

Source: Mikolov et al. 2013, "Distributed Representations of Words and Phrases and their Compositionality".
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askalike.errors import MissingExtraError, SettingError
from askalike.models.encoders.settings import check_number, check_whole
from askalike.models.encoders.vocabulary import UNKNOWN
from askalike.training.corpus import Texts

LONGEST = 10_000
"""Words of the longest text that is given whole; gensim would drop what goes beyond."""


@dataclass(frozen=True, slots=True)
class Word2VecSettings:
    """How word vectors are trained.

    Args:
        size: D, dimensions of a vector.
        window: words to each side that a word is paired with, at most; the reach is drawn for every word.
        negative: K, words drawn at random against each true pair, by count to the power of 3/4.
        epochs: passes over the texts.
        is_skip_gram: a word predicts each neighbour (skip-gram); else the neighbours predict the word (CBOW).
        sample: a word whose share of the texts is above this is often left out; 0 keeps all.
        learning_rate: at the start, ≤ 1; falls in a straight line to ``last_learning_rate``.

    Raises:
        SettingError: a value out of range.
    """

    size: int = 200
    window: int = 5
    negative: int = 5
    epochs: int = 5
    is_skip_gram: bool = True
    sample: float = 1e-4
    learning_rate: float = 0.025
    last_learning_rate: float = 0.0001

    def __post_init__(self) -> None:
        for name in ("size", "window", "negative", "epochs"):
            check_whole(f"word2vec setting {name}", getattr(self, name), 1)
        check_number("word2vec setting sample", self.sample, least=0, below=1)
        check_number("word2vec setting learning_rate", self.learning_rate, above=0, most=1)
        check_number("word2vec setting last_learning_rate", self.last_learning_rate, above=0, most=self.learning_rate)


@dataclass(frozen=True, slots=True)
class Word2VecEpoch:
    """What is known after a pass over the texts.

    Args:
        number: passes done; 0 before the first.
        of: passes in all.
        word_count: known words that were read up to now.
        loss: mean skip-gram loss on a fixed sample of the texts, in nats (``negative_sampling_loss``); NaN where no two
            known words stand side by side. CBOW trains another loss, so that there it only shows a direction.
    """

    number: int
    of: int
    word_count: int
    loss: float


def train_word2vec(
    texts: Texts,
    size: int,
    settings: Word2VecSettings,
    *,
    seed: int,
    workers: int = 1,
    on_progress: Callable[[Word2VecEpoch], None] | None = None,
) -> NDArray[np.float32]:
    """Return a vector for each id, (V, D) float32.

    Row 0, for unknown words, is zero, and so is that of a word which does not occur.

    One worker gives the same vectors for the same seed on the same machine. More are faster and write to the same
    numbers at once, so that no two runs are equal.

    Differs: words outside the vocabulary are taken out before windows are laid, as in the authors' program, and a
    text of more than ``LONGEST`` words is trained in pieces.

    Args:
        texts: read once an epoch; a window does not leave its text.
        size: ids of the vocabulary, V.
        seed: 0 to 2³² − 1.
        workers: training threads, ≥ 1.
        on_progress: called before the first pass and after each.

    Raises:
        SettingError: seed or workers out of range, or no word to train on.
        MissingExtraError: gensim is not installed.
    """
    if not 0 <= seed < 2**32 or workers < 1:
        raise SettingError(f"seed {seed} and {workers} workers, but expected 0 ≤ seed < 2³² and workers ≥ 1")
    counts = texts.counts(size)
    known = int(counts[1:].sum())
    if not known:
        raise SettingError("texts without a known word", "give more text, or lower min_count")
    model = _gensim().Word2Vec(
        vector_size=settings.size,
        window=settings.window,
        negative=settings.negative,
        sg=int(settings.is_skip_gram),
        sample=settings.sample,
        alpha=settings.learning_rate,
        min_alpha=settings.last_learning_rate,
        min_count=1,
        sorted_vocab=0,  # ids stay as the vocabulary has them
        workers=workers,
        seed=seed,
    )
    occurring = np.flatnonzero(counts[1:]) + 1
    sentences = _Sentences(texts)
    model.build_vocab_from_freq(
        dict(zip(occurring.tolist(), counts[occurring].tolist(), strict=True)), corpus_count=sentences.count
    )

    def spread(rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return gensim's rows at their ids.  # (V, D)"""
        found = np.zeros((size, settings.size), np.float32)
        found[occurring] = rows
        return found

    probe = draw_probe(texts, counts, settings.negative, seed)

    def report(done: int) -> None:
        if on_progress is not None:
            loss = math.nan
            if probe.words.size:
                loss = negative_sampling_loss(probe, spread(model.wv.vectors), spread(model.syn1neg))
            on_progress(Word2VecEpoch(done, settings.epochs, done * known, loss))

    model.train(
        sentences,
        total_examples=sentences.count,
        total_words=known,
        epochs=settings.epochs,
        callbacks=[_Callback(report)],
    )
    return spread(model.wv.vectors)


def _gensim() -> Any:
    """Return the module of gensim that trains."""
    try:
        return importlib.import_module("gensim.models.word2vec")
    except ImportError as error:
        raise MissingExtraError("training word vectors needs gensim, which is not installed", "train") from error


class _Sentences:
    """Texts as gensim reads them: lists of ids; the one for unknown words is not in its table, so it is skipped."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self.count = sum(1 for _ in self)

    def __iter__(self) -> Iterator[list[int]]:
        for row in range(len(self._texts)):
            ids = self._texts[row]
            yield from (ids[first : first + LONGEST].tolist() for first in range(0, len(ids), LONGEST))


class _Callback:
    """What gensim calls during training."""

    def __init__(self, report: Callable[[int], None]) -> None:
        self._report, self._done = report, 0

    def on_train_begin(self, model: Any) -> None:
        self._report(0)

    def on_epoch_begin(self, model: Any) -> None:
        pass

    def on_epoch_end(self, model: Any) -> None:
        self._done += 1
        self._report(self._done)

    def on_train_end(self, model: Any) -> None:
        pass


_LOOK = 20  # places of a large corpus that are looked at for each pair wanted


@dataclass(frozen=True, slots=True)
class Probe:
    """Pairs of words that stand side by side, and words drawn at random.

    Args:
        words: (P,) ids.
        contexts: (P,) ids of their right neighbours.
        negatives: (P, K) ids, drawn by count to the power of 3/4.
    """

    words: NDArray[np.int32]
    contexts: NDArray[np.int32]
    negatives: NDArray[np.int32]


def draw_probe(texts: Texts, counts: NDArray[np.int64], negatives: int, seed: int, size: int = 2000) -> Probe:
    """Return a sample of texts with these counts of ids: neighbours with a vector; empty where there are none."""
    random = np.random.default_rng(seed)
    ids = texts.ids
    places = np.arange(max(len(ids) - 1, 0))
    if places.size > _LOOK * size:
        places = np.unique(random.integers(places.size, size=_LOOK * size))
    is_inside = ~np.isin(places + 1, texts.starts)
    places = places[is_inside & (ids[places] != UNKNOWN) & (ids[places + 1] != UNKNOWN)]
    places = random.permutation(places)[:size]
    weights = counts.astype(np.float64) ** 0.75
    weights[UNKNOWN] = 0.0
    drawn = (
        random.choice(len(weights), (places.size, negatives), p=weights / weights.sum())
        if places.size
        else np.zeros((0, negatives), np.int32)
    )
    return Probe(ids[places], ids[places + 1], drawn.astype(np.int32))


def negative_sampling_loss(probe: Probe, vectors: NDArray[np.float32], outputs: NDArray[np.float32]) -> float:
    """Return the mean of −log σ(u_c·v) − Σ_k log σ(−u_k·v), in nats, ≥ 0.

    Before training, all outputs being zero, it is (1 + K) log 2.

    Source: Mikolov et al. 2013, "Distributed Representations of Words and Phrases", equation 4.

    Args:
        probe: P pairs with K negatives each.
        vectors: (V, D) v of each id.
        outputs: (V, D) u of each id.

    >>> probe = Probe(np.array([1]), np.array([2]), np.array([[1, 2]]))
    >>> vectors, outputs = np.array([[0, 0], [1, 0], [0, 1]]), np.array([[0, 0], [-1, 0], [2, 3]])
    >>> round(negative_sampling_loss(probe, vectors, outputs), 4)  # log(1 + e^-2) + log(1 + e^-1) + log(1 + e^2)
    2.5671
    """
    states = vectors[probe.words].astype(np.float64)  # (P, D)
    right = np.einsum("pd,pd->p", states, outputs[probe.contexts])  # (P,)
    wrong = np.einsum("pd,pkd->pk", states, outputs[probe.negatives])  # (P, K)
    return float((np.logaddexp(0, -right) + np.logaddexp(0, wrong).sum(axis=1)).mean())
